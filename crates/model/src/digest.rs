//! SHA-256 digests in lower-case hexadecimal.

use std::fmt::Write as _;
use std::io::{self, Read};

use sha2::{Digest as _, Sha256};

/// Size of the read buffer, in bytes. Larger ones are not faster: a piece of 256 KiB fits into the processor's cache.
pub const BUFFER_BYTES: usize = 256 * 1024;

/// State of a digest, which another thread can continue.
#[derive(Clone, Debug, Default)]
pub struct Hasher(Sha256);

impl Hasher {
    /// Adds the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Returns the digest of all bytes.
    pub fn finish(self) -> String {
        hex(&self.0.finalize())
    }
}

/// Returns the digest of `bytes`.
pub fn of_bytes(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Returns the digest of all bytes of `source`.
///
/// # Errors
/// The first failed read.
pub fn of_reader(source: impl Read) -> io::Result<String> {
    of_pieces(source, &mut vec![0; BUFFER_BYTES], |_| Ok(()))
}

/// Returns the digest of all bytes of `source`, and passes each piece to `see`. `buffer` limits the size of a piece.
///
/// # Errors
/// The first failed read, or the first error of `see`.
pub fn of_pieces(
    mut source: impl Read,
    buffer: &mut [u8],
    mut see: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<String> {
    let mut hasher = Hasher::default();
    loop {
        let piece = match source.read(buffer) {
            Ok(0) => return Ok(hasher.finish()),
            Ok(length) => buffer.get(..length).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        hasher.update(piece);
        see(piece)?;
    }
}

/// Returns the first 12 digits of a digest, for display.
pub fn short(digest: &str) -> String {
    digest.chars().take(12).collect()
}

/// Encodes `bytes` in lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reader that returns one byte at a time, and fails with EINTR before each.
    struct Interrupted<'b> {
        bytes: &'b [u8],
        is_next: bool,
    }

    impl Read for Interrupted<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.is_next = !self.is_next;
            if self.is_next {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let Some((byte, others)) = self.bytes.split_first() else {
                return Ok(0);
            };
            (self.bytes, buffer[0]) = (others, *byte);
            Ok(1)
        }
    }

    #[test]
    fn a_read_that_is_interrupted_is_made_again() {
        let source = Interrupted {
            bytes: b"text",
            is_next: false,
        };
        assert_eq!(of_reader(source).unwrap(), of_bytes(b"text"));
    }

    #[test]
    fn an_error_of_see_ends_the_read() {
        let mut seen = Vec::new();
        let see = |piece: &[u8]| {
            seen.extend_from_slice(piece);
            match seen.len() {
                4 => Err(io::ErrorKind::StorageFull.into()),
                _ => Ok(()),
            }
        };
        let error = of_pieces(b"abcdef".as_slice(), &mut [0; 2], see).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert_eq!(seen, b"abcd");
    }
}
