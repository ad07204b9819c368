//! SHA-256, as lower-case hex.

use std::fmt::Write as _;
use std::io::{self, Read};

use sha2::{Digest as _, Sha256};

/// Read at one time.
const PIECE: usize = 256 * 1024;

/// The digest of `bytes`.
pub(crate) fn of_bytes(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// The digest of everything that `source` gives.
///
/// # Errors
/// The first failed read.
pub(crate) fn of_reader(mut source: impl Read) -> io::Result<String> {
    let mut hasher = Sha256::new();
    let mut piece = vec![0; PIECE];
    loop {
        match source.read(&mut piece)? {
            0 => return Ok(hex(&hasher.finalize())),
            length => hasher.update(piece.get(..length).unwrap_or_default()),
        }
    }
}

/// The first digits of a digest, by which people tell it from others.
pub(crate) fn short(digest: &str) -> String {
    digest.chars().take(12).collect()
}

/// `bytes` as lower-case hex.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
