//! Result of one attempt, and its line in the output of the hostile client.

use std::borrow::Cow;
use std::io;

use nix::errno::Errno;
use nix::sys::signal::Signal;
use serde::{Deserialize, Serialize};

/// Result of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reply {
    /// The attempt got through.
    Through,
    /// The attempt searched for something and found nothing.
    Nothing,
    /// The attempt failed with this errno.
    Refused(i32),
    /// This signal ended the attempt.
    Killed(i32),
    /// The attempt was not made, since its environment could not be set up.
    Unmade,
}

/// One line of the hostile client's standard output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Said {
    /// Class and name: `sockets/vsock/stream`.
    pub attempt: String,
    /// Result.
    pub reply: Reply,
    /// Object that the attempt reached, or the reason why it was not made.
    pub detail: String,
}

/// I/O error by the name of its errno, as in a reply.
pub(super) fn error_words(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(number) => format!("{:?}", Errno::from_raw(number)),
        None => error.to_string(),
    }
}

impl Reply {
    /// Errno of a refusal.
    pub fn errno(self) -> Option<Errno> {
        match self {
            Self::Refused(number) => Some(Errno::from_raw(number)),
            Self::Through | Self::Nothing | Self::Killed(_) | Self::Unmade => None,
        }
    }

    /// Text of the result: `through`, `nothing`, `not made`, `EPERM`, `SIGSYS`.
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
