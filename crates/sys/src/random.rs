//! Unique, unpredictable tokens from getrandom(2), without opening a file. Common generators open /dev/urandom in a
//! static executable, and panic if it is missing.

use std::hash::{BuildHasher as _, RandomState};

/// Returns 32 hexadecimal digits. Each call uses new keys, which the standard library takes from getrandom(2).
pub fn token() -> String {
    let keys = RandomState::new();
    format!(
        "{:016x}{:016x}",
        keys.hash_one("high"),
        keys.hash_one("low")
    )
}

/// Returns a number below `bound`, which must not be 0.
pub fn below(bound: u32) -> u32 {
    (RandomState::new().hash_one("number") % u64::from(bound.max(1))) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_token_is_given_twice() {
        let tokens: std::collections::HashSet<String> = (0..1000).map(|_| token()).collect();
        assert_eq!(tokens.len(), 1000);
        assert!(tokens.iter().all(|token| token.len() == 32));
    }

    #[test]
    fn numbers_stay_below_their_bound() {
        assert!((0..1000).all(|_| below(7) < 7));
    }
}
