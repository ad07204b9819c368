//! Differences between two runs, fact by fact, and the line of a lock file that would accept one.

use std::fmt::Write as _;

use crate::schema::values::closed_sets;

/// Part of the behaviour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Area {
    /// What was asked of the stub.
    Requests,
    /// Names and values of their headers.
    Headers,
    /// Their bodies, leaf by leaf.
    Body,
    /// Lines of standard output: their kinds and fields.
    Records,
    /// What was left behind.
    Files,
    /// Calls that lead, or could lead, out of the client.
    Attempts,
    /// Names that the resolver was asked for.
    Names,
    /// Programs that were started.
    Processes,
    /// How it ended.
    Outcome,
}

impl Area {
    /// Every one there is, in the order of every answer.
    pub const ALL: [Self; 9] = [
        Self::Requests,
        Self::Headers,
        Self::Body,
        Self::Records,
        Self::Files,
        Self::Attempts,
        Self::Names,
        Self::Processes,
        Self::Outcome,
    ];

    /// The word in every answer, and the name of its table in a lock file.
    pub fn word(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Headers => "headers",
            Self::Body => "body",
            Self::Records => "records",
            Self::Files => "files",
            Self::Attempts => "attempts",
            Self::Names => "names",
            Self::Processes => "processes",
            Self::Outcome => "outcome",
        }
    }

    /// One fact of it.
    fn singular(self) -> &'static str {
        match self {
            Self::Requests => "request",
            Self::Headers => "header",
            Self::Body => "body",
            Self::Records => "record",
            Self::Files => "file",
            Self::Attempts => "attempt",
            Self::Names => "name",
            Self::Processes => "process",
            Self::Outcome => "outcome",
        }
    }
}

closed_sets! {
    /// Part of the behaviour.
    Area of ALL,
}

/// What one fact is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fact {
    /// The part of the behaviour.
    pub area: Area,
    /// What it is about, unique in its area; may hold text of the client.
    pub key: String,
}

/// One fact that two runs do not share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Which.
    pub fact: Fact,
    /// What became of it.
    pub change: Change,
}

/// What became of a fact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Only the new run has it, with this value.
    Added(String),
    /// Only the old one had it.
    Removed(String),
    /// Its value changed.
    Changed {
        /// In the old run.
        old: String,
        /// In the new one.
        new: String,
    },
}

impl Change {
    /// `added`, `removed` or `changed`.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Added(_) => Kind::Added,
            Self::Removed(_) => Kind::Removed,
            Self::Changed { .. } => Kind::Changed,
        }
        .word()
    }

    /// The value before.
    pub fn before(&self) -> Option<&str> {
        match self {
            Self::Added(_) => None,
            Self::Removed(old) | Self::Changed { old, .. } => Some(old),
        }
    }

    /// The value now.
    pub fn now(&self) -> Option<&str> {
        match self {
            Self::Removed(_) => None,
            Self::Added(new) | Self::Changed { new, .. } => Some(new),
        }
    }
}

/// A change without its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Added,
    Removed,
    Changed,
}

impl Kind {
    const ALL: [Self; 3] = [Self::Added, Self::Removed, Self::Changed];

    fn word(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Removed => "removed",
            Self::Changed => "changed",
        }
    }
}

closed_sets! {
    /// What became of a fact.
    Kind of ALL,
}

/// `4 differences: 2 headers, 1 body, 1 process`; `no difference`.
pub fn summary(differences: &[Difference]) -> String {
    let number = match differences.len() {
        0 => return "no difference".to_owned(),
        1 => "1 difference".to_owned(),
        more => format!("{more} differences"),
    };
    let counts = Area::ALL.map(|area| {
        let in_it = differences.iter().filter(|one| one.fact.area == area);
        (in_it.count(), area)
    });
    let told = counts.iter().filter(|(count, _)| *count > 0);
    let told: Vec<String> = told
        .map(|(count, area)| match count {
            1 => format!("1 {}", area.singular()),
            more => format!("{more} {}", area.word()),
        })
        .collect();
    format!("{number}: {}", told.join(", "))
}

/// What to do with the file so that a difference is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accept {
    /// Whether the line is put in, in place of another of the same key, or deleted.
    pub verb: &'static str,
    /// `[headers]`
    pub table: String,
    /// The line, as it stands in the file.
    pub line: String,
}

impl Accept {
    /// Of one difference.
    pub fn of(difference: &Difference) -> Self {
        let (verb, value) = match &difference.change {
            Change::Added(new) => ("add", new),
            Change::Removed(old) => ("delete", old),
            Change::Changed { new, .. } => ("change", new),
        };
        Self {
            verb,
            table: table(difference.fact.area),
            line: line(&difference.fact.key, value),
        }
    }
}

/// Header of the table of `area`: `[headers]`.
pub fn table(area: Area) -> String {
    format!("[{}]", area.word())
}

/// One line of a lock file.
pub fn line(key: &str, value: &str) -> String {
    format!("{} = {}", string(key), string(value))
}

/// A basic string of TOML (1.0, section String) that is printable ASCII. Two number signs side by side are a command
/// to some logs.
pub fn string(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '#' if out.ends_with('#') => out.push_str("\\u0023"),
            ' '..='~' => out.push(c),
            _ => {
                let code = u32::from(c);
                let _ = match code {
                    0..=0xffff => write!(out, "\\u{code:04X}"),
                    _ => write!(out, "\\U{code:08X}"),
                };
            }
        }
    }
    out.push('"');
    out
}
