//! Why a policy could not be had, with the place, what was expected there, and what helps.
//!
//! A file is text from somewhere: what is quoted of it is escaped and cut, so that an error stays one line.

use std::ops::Range;
use std::{fmt, io};

use thiserror::Error;

use super::Kind;

pub use model::quote::Position;

/// The longest policy file that is read, in bytes.
pub const MAX_FILE_BYTES: u64 = 256 * 1024;

/// Why a policy could not be had. `file` is its name for messages: a path, escaped, or `built-in case-a`.
#[derive(Debug, Error)]
#[allow(
    missing_docs,
    reason = "`file`, `at`, `found` and `wanted` say the same in each variant"
)]
pub enum PolicyError {
    /// A name that is none of the built-in ones; `wanted` is `None` where either kind would do.
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
    /// A directory, FIFO, socket or device.
    #[error("{file} is {found}, not a regular file")]
    NotAFile { file: String, found: &'static str },
    /// Longer than [`MAX_FILE_BYTES`].
    #[error("{file} is longer than {MAX_FILE_BYTES} bytes")]
    TooLarge { file: String },
    /// Not text.
    #[error("{file}:{at}: expected UTF-8 text, found the byte {byte:#04x}")]
    NotUtf8 {
        file: String,
        at: Position,
        byte: u8,
    },
    /// Text, but not TOML.
    #[error("{file}:{at}: not well-formed TOML: {message}, at {found}")]
    Syntax {
        file: String,
        at: Position,
        message: String,
        found: String,
    },
    /// TOML, but no policy.
    #[error("{0}")]
    Fault(Box<Fault>),
    /// A policy of the other kind.
    #[error("{file} is of the kind {found}, but a {wanted} is needed here", found = found.word(), wanted = wanted.word())]
    WrongKind {
        file: String,
        found: Kind,
        wanted: Kind,
    },
}

impl PolicyError {
    /// What the user can do about it, in one line.
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
            Self::WrongKind { found: Kind::Audit, .. } => "the policy of audits is built in; `runner audit` uses it".into(),
            Self::WrongKind { found: Kind::Case, .. } => "run the case with `runner run CASE.toml`".into(),
        }
    }
}

/// A file that is well-formed TOML and yet no policy.
#[derive(Debug)]
pub struct Fault {
    /// Its name for messages.
    pub file: String,
    /// Where the fault begins.
    pub at: Position,
    /// Dotted path of the key, where there is one.
    pub key: Option<String>,
    /// `expected …, found …`
    pub problem: String,
    /// What helps.
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

/// A fault found in a value, before its place in the file is worked out.
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
