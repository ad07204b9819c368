//! What one attempt came to, and the line in which the hostile client says it.

use std::borrow::Cow;
use std::io;

use nix::errno::Errno;
use nix::sys::signal::Signal;
use serde::{Deserialize, Serialize};

/// What an attempt came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reply {
    /// It got through.
    Through,
    /// It looked for something, and found nothing.
    Nothing,
    /// The number of an errno.
    Refused(i32),
    /// The number of the signal that ended it.
    Killed(i32),
    /// It was not made: its surroundings could not be.
    Unmade,
}

/// One line of the hostile client's standard output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Said {
    /// `sockets/vsock/stream`.
    pub attempt: String,
    pub reply: Reply,
    /// What it got hold of, or why it was not made.
    pub detail: String,
}

/// An I/O error by the name of its errno, as a reply has it.
pub(super) fn error_words(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(number) => format!("{:?}", Errno::from_raw(number)),
        None => error.to_string(),
    }
}

impl Reply {
    /// `through`, `nothing`, `EPERM`, `SIGSYS`.
    pub fn words(self) -> Cow<'static, str> {
        match self {
            Self::Through => "through".into(),
            Self::Nothing => "nothing".into(),
            Self::Unmade => "not made".into(),
            Self::Refused(number) => format!("{:?}", Errno::from_raw(number)).into(),
            Self::Killed(number) => match Signal::try_from(number) {
                Ok(signal) => signal.as_str().into(),
                Err(_) => format!("signal {number}").into(),
            },
        }
    }
}
