//! Errors of policies: position, expected and found values, and a hint.
//!
//! Quotes from a file are escaped and cut, because the file is untrusted and an error must stay one line.

use std::ops::Range;
use std::{fmt, io};

use thiserror::Error;

use super::Kind;

pub(crate) use model::quote::Position;

/// Maximum size of a policy file, in bytes.
pub const MAX_FILE_BYTES: u64 = 256 * 1024;

/// Failure to load a policy. `file` is the name for messages: an escaped path, or `built-in case-a`.
#[derive(Debug, Error)]
#[allow(
    missing_docs,
    reason = "`file`, `at`, `found` and `wanted` mean the same in each variant"
)]
pub enum PolicyError {
    /// Unknown name of a built-in policy; `wanted` is `None` if any kind is accepted.
    #[error("no built-in {} is named {name}", wanted.map_or("policy", Kind::word))]
    UnknownName {
        wanted: Option<Kind>,
        name: String,
        hint: String,
    },
    /// open(2) failed.
    #[error("cannot open {file}")]
    Open {
        file: String,
        #[source]
        source: io::Error,
    },
    /// read(2) or fstat(2) failed.
    #[error("cannot read {file}")]
    Read {
        file: String,
        #[source]
        source: io::Error,
    },
    /// The file is a directory, FIFO, socket or device.
    #[error("{file} is {found}, not a regular file")]
    NotAFile { file: String, found: &'static str },
    /// The file is longer than [`MAX_FILE_BYTES`].
    #[error("{file} is longer than {MAX_FILE_BYTES} bytes")]
    TooLarge { file: String },
    /// The file is not UTF-8.
    #[error("{file}:{at}: expected UTF-8 text, found the byte {byte:#04x}")]
    NotUtf8 {
        file: String,
        at: Position,
        byte: u8,
    },
    /// The text is not TOML.
    #[error("{file}:{at}: not well-formed TOML: {message}, at {found}")]
    Syntax {
        file: String,
        at: Position,
        message: String,
        found: String,
    },
    /// The TOML document is not a valid policy.
    #[error("{0}")]
    Fault(Box<Fault>),
    /// The policy is of another kind than wanted.
    #[error("{file}: expected a policy of the kind {}, found {}", wanted.word(), found.word())]
    WrongKind {
        file: String,
        found: Kind,
        wanted: Kind,
    },
}

impl PolicyError {
    /// Returns a remedy, in one line.
    pub fn hint(&self) -> String {
        match self {
            Self::UnknownName { hint, .. } => hint.clone(),
            Self::Open { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                "a name with `/` or ending in `.toml` is a file; `runner policy list` shows the built-in ones".into()
            }
            Self::Open { .. } | Self::Read { .. } => "the file must be readable by the user who starts the runner".into(),
            Self::NotAFile { .. } => "name the policy file itself".into(),
            Self::TooLarge { .. } => "a policy is a short text; is this the right file?".into(),
            Self::NotUtf8 { .. } => "save the file as UTF-8".into(),
            Self::Syntax { .. } => "`runner policy show case-a` prints a well-formed file".into(),
            Self::Fault(fault) => fault.hint.clone(),
            Self::WrongKind { found: Kind::Profile, .. } => "give the profile with --profile".into(),
            Self::WrongKind { found: Kind::Audit, .. } => "the audit policy is built in; `runner audit` uses it".into(),
            Self::WrongKind { found: Kind::Case, .. } => "run the case with `runner run CASE.toml`".into(),
        }
    }
}

/// Fault in well-formed TOML.
#[derive(Debug)]
pub struct Fault {
    /// Name of the file for messages.
    pub file: String,
    /// Position of the fault.
    pub at: Position,
    /// Dotted path of the key; `None` at the top level.
    pub key: Option<String>,
    /// Description: `expected …, found …`.
    pub problem: String,
    /// Remedy, in one line.
    pub hint: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}: ", self.file, self.at)?;
        if let Some(key) = &self.key {
            write!(out, "`{key}`: ")?;
        }
        out.write_str(&self.problem)
    }
}

/// Fault at a byte range, before its line and key are known.
#[derive(Debug)]
pub(super) struct Flaw {
    pub(super) span: Range<usize>,
    pub(super) problem: String,
    pub(super) hint: String,
}

impl Flaw {
    pub(super) fn new(
        span: Range<usize>,
        expected: impl fmt::Display,
        found: impl fmt::Display,
        hint: impl Into<String>,
    ) -> Self {
        Self {
            span,
            problem: format!("expected {expected}, found {found}"),
            hint: hint.into(),
        }
    }
}
