//! Attempts that a profile accepts.

use std::collections::BTreeSet;

use model::profile::{Destination, DestinationError, ExpectedAttempt};
use model::quote::quoted;
use toml::Spanned;

use super::ExpectedAttemptFile;
use crate::error::Flaw;
use crate::values::{reject_repeated, sentence};

/// Parses the attempts, each destination once. `fill` fills in the names of the profile.
pub(crate) fn parsed(
    file: Vec<ExpectedAttemptFile>,
    fill: impl Fn(Spanned<String>) -> Result<Spanned<String>, Flaw>,
) -> Result<Vec<ExpectedAttempt>, Flaw> {
    let mut seen = BTreeSet::new();
    let mut parsed = Vec::new();
    for attempt in file {
        let text = fill(attempt.destination)?;
        reject_repeated(&mut seen, &text, "each destination once")?;
        parsed.push(ExpectedAttempt {
            destination: destination(&text)?,
            reason: sentence(attempt.reason)?,
        });
    }
    Ok(parsed)
}

fn destination(text: &Spanned<String>) -> Result<Destination, Flaw> {
    text.get_ref().parse().map_err(|error| {
        let hint = match error {
            DestinationError::Family => {
                "write it as a report shows it: inet:192.0.2.1:443, unix:/path, name:api.example.com, listen, io_uring_setup"
            }
            DestinationError::Unix => "write it as unix:/var/run/nscd/socket or unix:@name",
            DestinationError::Inet => "write it as inet:192.0.2.1:443, or inet:192.0.2.1:* for any port",
            DestinationError::Inet6 => {
                "write it as inet6:[2001:db8::1]:443; a mapped address is inet:192.0.2.1:443"
            }
            DestinationError::Port => "write one port, or * for any",
            DestinationError::Netlink => "write it as netlink:42",
            DestinationError::Call => {
                "write it as a report shows it: listen, setsockopt IP_OPTIONS, socket inet stream protocol 262"
            }
            DestinationError::Name => "write it as name:api.example.com, one rule for each name",
        };
        let found = format!("{} ({error})", quoted(text.get_ref()));
        Flaw::new(text.span(), "a destination", found, hint)
    })
}
