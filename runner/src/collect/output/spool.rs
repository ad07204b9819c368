//! Copy of a stream for a bundle: redacted as it arrives, in a file that has no name yet.

use std::fs::File;
use std::io::{self, Seek as _, Write as _};

use model::secret::{Redactor, SecretScanner};

/// Bytes that are redacted at one time.
const PIECE: usize = 64 * 1024;

/// Copy of a stream up to a limit.
#[derive(Debug)]
pub(crate) struct Spool {
    file: File,
    redactor: Redactor,
    longest: usize,
    /// Bytes of the stream that may still be copied.
    left: u64,
    /// Bytes beyond the limit were dropped.
    is_full: bool,
    /// First error of a write; later bytes are dropped.
    lost: Option<io::Error>,
}

/// Copied output, with the credential redacted.
#[derive(Debug)]
pub(crate) struct Shown {
    /// The bytes, from the beginning.
    pub(crate) file: File,
    pub(crate) fidelity: Fidelity,
}

/// Relation of shown output to the bytes that the client wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fidelity {
    /// All of them, unchanged.
    Exact,
    /// All of them, some of which are redacted.
    Redacted,
    /// The first part.
    Cut,
}

impl Spool {
    /// Creates a copy of at most `limit` bytes in the empty file.
    pub(crate) fn new(file: File, limit: u64, secrets: &SecretScanner) -> Self {
        Self {
            file,
            redactor: Redactor::new(secrets),
            longest: secrets.longest(),
            left: limit,
            is_full: false,
            lost: None,
        }
    }

    /// Copies bytes up to the limit.
    pub(super) fn push(&mut self, piece: &[u8]) {
        let space = usize::try_from(self.left).unwrap_or(usize::MAX);
        let kept = piece.get(..space).unwrap_or(piece);
        self.is_full |= kept.len() < piece.len();
        self.left -= kept.len() as u64;
        for piece in kept.chunks(PIECE) {
            let redacted = self.redactor.push(piece);
            self.write(&redacted);
        }
    }

    /// Returns true if bytes beyond the limit were dropped.
    pub(super) fn is_full(&self) -> bool {
        self.is_full
    }

    /// Returns the copy. If the stream is cut, drops the end that could be the beginning of a redacted text.
    ///
    /// # Errors
    /// Returns the first error of a write.
    pub(super) fn finish(mut self, is_cut: bool) -> io::Result<Shown> {
        let rest = self.redactor.finish();
        self.write(&rest);
        if let Some(error) = self.lost {
            return Err(error);
        }
        if is_cut {
            let length = self.file.stream_position()?;
            let longest = self.longest as u64;
            self.file.set_len(length.saturating_sub(longest))?;
        }
        self.file.rewind()?;
        Ok(Shown {
            file: self.file,
            fidelity: match () {
                () if is_cut => Fidelity::Cut,
                () if self.redactor.has_replaced() => Fidelity::Redacted,
                () => Fidelity::Exact,
            },
        })
    }

    fn write(&mut self, bytes: &[u8]) {
        if self.lost.is_none() {
            self.lost = self.file.write_all(bytes).err();
        }
    }
}
