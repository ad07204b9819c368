//! Opaque identifiers: of the session, of each record, and in `metadata.user_id`.
//!
//! Identifiers must be unique and must not reveal facts about the host. So one random key of the kernel is enough: each
//! identifier is a keyed hash of its number. The generator of `uuid` opens `/dev/random` in a static executable, reads
//! `/dev/urandom` for each identifier, and panics without these files.
//!
//! Knows no use of the identifiers.

use std::hash::{BuildHasher, RandomState};

use uuid::{Builder, Uuid};

/// Generator of the identifiers of one run.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    key: RandomState,
    count: u64,
}

impl Ids {
    /// Makes a generator whose identifiers differ from those of other runs.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Returns the next identifier, in the form of a random UUID.
    pub(crate) fn next(&mut self) -> Uuid {
        self.count += 1;
        let high = self.key.hash_one((self.count, "high"));
        let low = self.key.hash_one((self.count, "low"));
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
