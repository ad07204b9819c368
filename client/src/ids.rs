//! Opaque identifiers: of the session, of each record, of the `metadata.user_id`.
//!
//! They only have to be unique and to say nothing about the host, so one random key of the kernel
//! is enough: each identifier is a keyed hash of its number. In a static executable, `uuid`'s own
//! generator opens `/dev/random` and reads `/dev/urandom` for each one, and panics without them.
//!
//! Must not know: what is being identified.

use std::hash::{BuildHasher, RandomState};

use uuid::{Builder, Uuid};

/// The identifiers of one run.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    key: RandomState,
    given: u64,
}

impl Ids {
    /// A source of identifiers that no other run shares.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// The next identifier, in the shape of a random UUID.
    pub(crate) fn next(&mut self) -> Uuid {
        self.given += 1;
        let high = self.key.hash_one((self.given, "high"));
        let low = self.key.hash_one((self.given, "low"));
        let bytes = (u128::from(high) << 64) | u128::from(low);
        Builder::from_random_bytes(bytes.to_be_bytes()).into_uuid()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_identifier_is_given_twice_in_a_run_or_in_two() {
        let (mut one, mut other) = (Ids::new(), Ids::new());
        let given: HashSet<Uuid> = (0..1000).flat_map(|_| [one.next(), other.next()]).collect();
        assert_eq!(given.len(), 2000);
    }

    #[test]
    fn an_identifier_has_the_shape_of_a_random_uuid() {
        let id = Ids::new().next();
        assert_eq!(id.get_version_num(), 4);
        assert_eq!(id.to_string().len(), 36);
    }
}
