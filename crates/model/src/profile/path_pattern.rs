//! Path patterns below the home, temporary or working directory, with placeholders for parts that vary between runs.
//!
//! | placeholder | matches |
//! |---|---|
//! | `{uid}` | the client's user id: 1000, or without a user namespace the id of the user who started the runner |
//! | `{pid}` | a whole number without leading zeros |
//! | `{digits}` | decimal digits |
//! | `{hex}` | hexadecimal digits in lower case |
//! | `{alnum}` | letters and digits of ASCII, as mkstemp(3) chooses them |
//! | `{uuid}` | five groups of hexadecimal digits in lower case (RFC 9562, section 4) |
//! | `{version}` | letters, digits, `.`, `-`, `+` and `_`, as in `2.1.177` or `0.12.4-rc.1+build` |
//!
//! A placeholder matches a maximal run of its characters, at least one; all other text matches exactly. No placeholder
//! matches a `/`.

use std::fmt;
use std::str::FromStr;

use scenario::closed_set;
use thiserror::Error;

use super::template::{Piece, pieces};
use crate::layout::INSIDE_ID;

/// Returns the names of the placeholders that a path may have.
pub fn path_placeholders() -> [&'static str; Placeholder::ALL.len()] {
    Placeholder::ALL.map(Placeholder::word)
}

/// Lengths of the groups of a UUID.
const UUID_GROUPS: [usize; 5] = [8, 4, 4, 4, 12];

/// A parsed path pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathPattern {
    /// Text in the profile, with the client's names filled in.
    text: String,
    /// Parts of each name between the `/`.
    names: Vec<Vec<Part>>,
}

/// A part of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Text(String),
    Placeholder(Placeholder),
}

closed_set! {
    /// Kind of a placeholder.
    pub(super) enum Placeholder {
        Uid = "uid",
        Pid = "pid",
        Digits = "digits",
        Hex = "hex",
        Alnum = "alnum",
        Uuid = "uuid",
        Version = "version",
    }
}

/// Reason why a text is not a path pattern.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PatternError {
    /// The placeholder is none of [`path_placeholders`].
    #[error("{{{0}}} is not a placeholder of a path")]
    Unknown(String),
    /// The placeholder also matches the text after it, so no path can match the pattern.
    #[error("{{{0}}} also matches the text after it")]
    Swallowed(&'static str),
}

impl PathPattern {
    /// Returns the pattern for a client with this user id.
    pub fn of_client(&self, uid: u32) -> Self {
        let part = |part: &Part| match part {
            Part::Placeholder(Placeholder::Uid) => Part::Text(uid.to_string()),
            Part::Text(_) | Part::Placeholder(_) => part.clone(),
        };
        let names = self.names.iter();
        Self {
            text: self.text.clone(),
            names: names
                .map(|parts| parts.iter().map(part).collect())
                .collect(),
        }
    }

    /// Returns true if `path` matches; `path` is a [`crate::evidence::FileEntry::path`].
    pub fn matches(&self, path: &str) -> bool {
        self.names.len() == path.split('/').count() && self.begins_with(path)
    }

    /// Returns true if `directory` contains a path that matches.
    pub fn lies_below(&self, directory: &str) -> bool {
        self.names.len() > directory.split('/').count() && self.begins_with(directory)
    }

    fn begins_with(&self, path: &str) -> bool {
        let mut names = self.names.iter().zip(path.split('/'));
        names.all(|(parts, name)| is(parts, name))
    }
}

impl FromStr for PathPattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        let names = text.split('/').map(parts);
        Ok(Self {
            text: text.to_owned(),
            names: names.collect::<Result<_, _>>()?,
        })
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

pub(super) fn parts(name: &str) -> Result<Vec<Part>, PatternError> {
    let mut parts = Vec::new();
    for piece in pieces(name) {
        let part = match piece {
            Piece::Text(text) => Part::Text(text.to_owned()),
            Piece::Placeholder(name) => Part::Placeholder(
                Placeholder::ALL
                    .into_iter()
                    .find(|run| run.word() == name)
                    .ok_or_else(|| PatternError::Unknown(name.to_owned()))?,
            ),
        };
        match (parts.last(), &part) {
            (Some(Part::Placeholder(run)), Part::Placeholder(_)) => {
                return Err(PatternError::Swallowed(run.word()));
            }
            (Some(Part::Placeholder(run)), Part::Text(text))
                if text.starts_with(|c| run.takes(c)) =>
            {
                return Err(PatternError::Swallowed(run.word()));
            }
            (Some(Part::Placeholder(_) | Part::Text(_)) | None, _) => parts.push(part),
        }
    }
    Ok(parts)
}

fn is(parts: &[Part], name: &str) -> bool {
    let mut rest = Some(name);
    for part in parts {
        rest = rest.and_then(|rest| match part {
            Part::Text(text) => rest.strip_prefix(text.as_str()),
            Part::Placeholder(run) => run.strip(rest),
        });
    }
    rest == Some("")
}

impl Placeholder {
    fn takes(self, c: char) -> bool {
        match self {
            Self::Uid | Self::Pid | Self::Digits => c.is_ascii_digit(),
            Self::Hex => is_hex(c),
            Self::Alnum => c.is_ascii_alphanumeric(),
            Self::Uuid => is_hex(c) || c == '-',
            Self::Version => c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+' | '_'),
        }
    }

    /// Returns the text after the maximal run of the placeholder, if there is a well-formed run.
    pub(super) fn strip(self, text: &str) -> Option<&str> {
        let end = text.find(|c| !self.takes(c)).unwrap_or(text.len());
        let (run, rest) = text.split_at(end);
        let fits = match self {
            Self::Uid => run == INSIDE_ID.to_string(),
            Self::Pid => !run.is_empty() && !run.starts_with('0'),
            Self::Digits | Self::Hex | Self::Alnum | Self::Version => !run.is_empty(),
            Self::Uuid => run.split('-').map(str::len).eq(UUID_GROUPS),
        };
        fits.then_some(rest)
    }
}

fn is_hex(c: char) -> bool {
    matches!(c, '0'..='9' | 'a'..='f')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> PathPattern {
        text.parse().unwrap()
    }

    #[test]
    fn a_path_without_placeholders_is_itself_alone() {
        let path = pattern(".agent/cache");
        assert!(path.matches(".agent/cache"));
        for other in [".agent", ".agent/cache/x", ".agent/cach", "agent/cache", ""] {
            assert!(!path.matches(other), "{other}");
        }
        assert_eq!(path.to_string(), ".agent/cache");
    }

    #[test]
    fn each_placeholder_takes_a_whole_run_of_its_own_and_nothing_else() {
        let uuid = "6db11834-c499-40d1-a9cc-0a6533b3cade";
        for (text, good, bad) in [
            (
                "agent-{uid}",
                &["agent-1000"][..],
                &["agent-0", "agent-10000", "agent-"][..],
            ),
            (
                "s/{pid}.json",
                &["s/2.json", "s/4194304.json"],
                &["s/.json", "s/02.json", "s/2x.json"],
            ),
            ("t.{digits}", &["t.0", "t.0017"], &["t.", "t.1a", "t.1.2"]),
            (
                "t.{hex}",
                &["t.e39bc1be4939", "t.0"],
                &["t.", "t.E3", "t.xyz"],
            ),
            ("t.{alnum}", &["t.aZ09", "t.0"], &["t.", "t.a_", "t.é"]),
            (
                "{uuid}.x",
                &[&format!("{uuid}.x")],
                &["-.x", &format!("{uuid}0.x"), &format!("{uuid}-.x")],
            ),
        ] {
            for path in good {
                assert!(pattern(text).matches(path), "{text} {path}");
            }
            for path in bad {
                assert!(!pattern(text).matches(path), "{text} {path}");
            }
        }
    }

    #[test]
    fn a_client_without_a_user_namespace_has_the_callers_id() {
        let path = pattern("agent-{uid}/x").of_client(0);
        assert!(path.matches("agent-0/x") && path.lies_below("agent-0"));
        assert!(!path.matches("agent-1000/x"));
        assert_eq!(path.to_string(), "agent-{uid}/x");
    }

    #[test]
    fn a_directory_on_the_way_is_known_by_whole_names() {
        let path = pattern("a-{pid}/b/c");
        for directory in ["a-7", "a-7/b"] {
            assert!(
                path.lies_below(directory) && !path.matches(directory),
                "{directory}"
            );
        }
        for other in ["a-x", "a-7/b/c", "a-7/b/c/d", "a", ""] {
            assert!(!path.lies_below(other), "{other}");
        }
    }

    #[test]
    fn what_can_never_be_met_is_refused() {
        for text in [
            "{digits}0",
            "{digits}{hex}",
            "{hex}a",
            "{alnum}Z",
            "{uuid}-x",
            "{pid}{uid}",
        ] {
            let swallowed = matches!(text.parse::<PathPattern>(), Err(PatternError::Swallowed(_)));
            assert!(swallowed, "{text}");
        }
        assert_eq!(
            "{user}".parse::<PathPattern>(),
            Err(PatternError::Unknown("user".to_owned()))
        );
        for text in ["{digits}a", "{hex}.{hex}", "{uuid}g", "{pid}/{pid}"] {
            pattern(text);
        }
    }
}
