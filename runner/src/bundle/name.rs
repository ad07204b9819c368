//! Encoding of names that a client chose, for use in a bundle.
//!
//! Characters that can be packed, uploaded, unpacked and shown on every system are kept. Others are
//! percent-encoded, so that different names stay different. A leading full stop is encoded too, because uploads
//! leave hidden files out. Names that differ only in case stay different, but a few file systems cannot store
//! both.

use std::fmt::Write as _;

use model::digest;

/// Longest encoded name that is not cut, in bytes.
const MAX_LENGTH: usize = 200;
/// Kept part of a longer name, before its digest.
const KEPT: usize = 120;
/// Separator before a digest or a number; a complete name never contains it.
const MARK: char = '~';

/// Encodes the name of one file or directory. The result is never empty, `.` or `..`, and has no `/`.
pub(crate) fn encoded(name: &[u8]) -> String {
    let mut encoded = String::with_capacity(name.len());
    let last = name.len().saturating_sub(1);
    for (at, byte) in name.iter().enumerate() {
        let is_border = at == 0 || at == last;
        if is_kept(*byte, is_border) {
            encoded.push(char::from(*byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    if encoded.is_empty() {
        encoded.push(MARK);
    }
    if encoded.len() > MAX_LENGTH {
        let mut end = KEPT;
        // The cut must not split the three characters of an encoded byte.
        if let Some(begun) = encoded.get(KEPT - 2..KEPT).and_then(|tail| tail.find('%')) {
            end = KEPT - 2 + begun;
        }
        encoded.truncate(end);
        encoded.push(MARK);
        encoded.push_str(&digest::of_bytes(name));
    }
    encoded
}

/// Encodes a name that several objects may share, because it holds a replacement. `number` is unique in a
/// bundle.
pub(crate) fn numbered(name: &[u8], number: u64) -> String {
    format!("{}{MARK}{number}", encoded(name))
}

/// Checks whether a byte is kept; at the border of a name fewer bytes are.
fn is_kept(byte: u8, is_border: bool) -> bool {
    match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' => true,
        b'.' | b'-' | b'+' | b'=' | b'@' | b',' => !is_border,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn plain_names_stay_and_everything_else_is_encoded() {
        for (name, expected) in [
            (b"state-1.json".as_slice(), "state-1.json"),
            (b".agent", "%2Eagent"),
            (b".", "%2E"),
            (b"..", "%2E%2E"),
            (b"a.", "a%2E"),
            (b"-rf", "%2Drf"),
            (b"..%2f", "%2E.%252f"),
            (b"a/b", "a%2Fb"),
            (b"new\nline", "new%0Aline"),
            (b"a:b*?\"<>|\\", "a%3Ab%2A%3F%22%3C%3E%7C%5C"),
            (b"\xff~ ", "%FF%7E%20"),
            ("ü".as_bytes(), "%C3%BC"),
            (b"", "~"),
        ] {
            assert_eq!(encoded(name), expected);
        }
    }

    #[test]
    fn a_long_name_is_cut_between_characters_and_told_by_its_digest() {
        let whole = [b'n'; MAX_LENGTH];
        assert_eq!(encoded(&whole).len(), MAX_LENGTH);
        for name in [[b'n'; 255], [b' '; 255]] {
            let other = [&name[..254], b"x"].concat();
            let (one, other) = (encoded(&name), encoded(&other));
            assert_ne!(one, other);
            let (kept, digest) = one.split_once('~').unwrap();
            assert_eq!(digest, digest::of_bytes(&name));
            assert!(kept.len() > KEPT - 3 && kept.len() <= KEPT);
            assert!(kept.bytes().all(|byte| byte == b'n') || kept.len() % 3 == 0);
        }
    }

    #[test]
    fn names_that_hold_a_replacement_are_told_by_their_number() {
        assert_eq!(numbered(b"<credential>", 1), "%3Ccredential%3E~1");
        assert_ne!(numbered(b"x", 1), encoded(b"x~1"));
        assert!(numbered(&[b' '; 255], u64::MAX).len() <= 255);
    }

    /// Reverses [`encoded`] for a name that was not cut.
    fn decoded(name: &str) -> Vec<u8> {
        let mut bytes = name.bytes();
        let mut decoded = Vec::new();
        while let Some(byte) = bytes.next() {
            decoded.push(if byte == b'%' {
                let digits = [bytes.next().unwrap(), bytes.next().unwrap()];
                u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap()
            } else {
                byte
            });
        }
        decoded
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn every_name_has_one_that_is_harmless_and_its_own(
            name in proptest::collection::vec(any::<u8>(), 1..256)
        ) {
            let made = encoded(&name);
            prop_assert!(made.len() <= MAX_LENGTH && made != "." && made != "..");
            let is_harmless = |byte: u8| byte.is_ascii_alphanumeric() || b"%._-+=@,~".contains(&byte);
            prop_assert!(made.bytes().all(is_harmless), "{made}");
            prop_assert!(!made.starts_with(['.', '-', '~']));
            match made.split_once('~') {
                Some((_, told)) => prop_assert_eq!(told, digest::of_bytes(&name)),
                None => prop_assert_eq!(decoded(&made), name),
            }
        }
    }
}
