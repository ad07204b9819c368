//! Differences between the facts of two runs, and the lock-file line that accepts one.

use std::borrow::Cow;
use std::fmt::{self, Write as _};

use scenario::closed_set;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

closed_set! {
    /// Area of behaviour.
    pub enum Area {
        /// Requests to the stub.
        Requests = "requests",
        /// Names and values of request headers.
        Headers = "headers",
        /// Request bodies, one fact per leaf.
        Body = "body",
        /// Lines of standard output: their kinds and fields.
        Records = "records",
        /// Files left behind.
        Files = "files",
        /// Calls to destinations outside the client.
        Attempts = "attempts",
        /// Names asked of the resolver.
        Names = "names",
        /// Started programs.
        Processes = "processes",
        /// End of the client.
        Outcome = "outcome",
    }
}

impl Area {
    /// Returns the word for one fact of the area.
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

/// Identity of a fact.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fact {
    /// Area of the fact.
    pub area: Area,
    /// Key of the fact, unique in its area; may contain text of the client.
    pub key: String,
}

impl Fact {
    /// Reads the form of a lock file: the area, a blank and the key.
    pub fn parse(text: &str) -> Option<Self> {
        let (word, key) = text.split_once(' ')?;
        let area = Area::ALL.into_iter().find(|area| area.word() == word)?;
        let key = key.to_owned();
        Some(Self { area, key })
    }
}

impl fmt::Display for Fact {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.area.word(), self.key)
    }
}

/// One fact that differs between two runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Form", into = "Form")]
pub struct Difference {
    /// The fact.
    pub fact: Fact,
    /// Its change.
    pub change: Change,
}

/// Change of a fact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Only the new run has the fact, with this value.
    Added(String),
    /// Only the old run has the fact, with this value.
    Removed(String),
    /// Its value changed.
    Changed {
        /// Value in the old run.
        old: String,
        /// Value in the new run.
        new: String,
    },
}

impl Change {
    /// Returns `added`, `removed` or `changed`.
    pub fn word(&self) -> &'static str {
        self.kind().word()
    }

    fn kind(&self) -> Kind {
        match self {
            Self::Added(_) => Kind::Added,
            Self::Removed(_) => Kind::Removed,
            Self::Changed { .. } => Kind::Changed,
        }
    }

    /// Returns the value in the old run.
    pub fn before(&self) -> Option<&str> {
        match self {
            Self::Added(_) => None,
            Self::Removed(old) | Self::Changed { old, .. } => Some(old),
        }
    }

    /// Returns the value in the new run.
    pub fn now(&self) -> Option<&str> {
        match self {
            Self::Removed(_) => None,
            Self::Added(new) | Self::Changed { new, .. } => Some(new),
        }
    }
}

/// JSON form of a difference.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Change")]
struct Form {
    /// The part of the behaviour.
    area: Area,
    /// Kind of the difference.
    kind: Kind,
    /// Key of the fact: `POST /v1/messages user-agent`.
    key: String,
    /// Value in the old run or the lock file; null if it was not there.
    old: Option<String>,
    /// Value in the new run; null if it is not there.
    new: Option<String>,
}

impl From<Difference> for Form {
    fn from(Difference { fact, change }: Difference) -> Self {
        let kind = change.kind();
        let (old, new) = match change {
            Change::Added(new) => (None, Some(new)),
            Change::Removed(old) => (Some(old), None),
            Change::Changed { old, new } => (Some(old), Some(new)),
        };
        Self {
            area: fact.area,
            kind,
            key: fact.key,
            old,
            new,
        }
    }
}

impl TryFrom<Form> for Difference {
    type Error = &'static str;

    fn try_from(form: Form) -> Result<Self, &'static str> {
        let change = match (form.kind, form.old, form.new) {
            (Kind::Added, None, Some(new)) => Change::Added(new),
            (Kind::Removed, Some(old), None) => Change::Removed(old),
            (Kind::Changed, Some(old), Some(new)) => Change::Changed { old, new },
            _ => return Err("expected the values that the kind of the difference has"),
        };
        let (area, key) = (form.area, form.key);
        Ok(Self {
            fact: Fact { area, key },
            change,
        })
    }
}

closed_set! {
    /// Kind of a change, without its values.
    pub enum Kind {
        /// Only the new run has the fact.
        Added = "added",
        /// Only the old run has the fact.
        Removed = "removed",
        /// Both runs have the fact, with different values.
        Changed = "changed",
    }
}

/// Summarises differences: `4 differences: 2 headers, 1 body, 1 process`, or `no difference`.
pub fn summary(differences: &[Difference]) -> String {
    let number = match differences.len() {
        0 => return "no difference".to_owned(),
        1 => "1 difference".to_owned(),
        more => format!("{more} differences"),
    };
    let counts = Area::ALL.map(|area| {
        let in_area = differences.iter().filter(|one| one.fact.area == area);
        (in_area.count(), area)
    });
    let present = counts.iter().filter(|(count, _)| *count > 0);
    let present: Vec<String> = present
        .map(|(count, area)| match count {
            1 => format!("1 {}", area.singular()),
            more => format!("{more} {}", area.word()),
        })
        .collect();
    format!("{number}: {}", present.join(", "))
}

/// Edit of a lock file that accepts one difference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Accept {
    /// `add`, `change` or `delete`.
    pub verb: Cow<'static, str>,
    /// The line of the file.
    pub line: String,
}

impl Accept {
    /// Returns the edit that accepts one difference.
    pub fn of(difference: &Difference) -> Self {
        let (verb, value) = match &difference.change {
            Change::Added(new) => ("add", new),
            Change::Removed(old) => ("delete", old),
            Change::Changed { new, .. } => ("change", new),
        };
        Self {
            verb: verb.into(),
            line: line(&difference.fact, value),
        }
    }
}

/// Formats one line of a lock file.
pub fn line(fact: &Fact, value: &str) -> String {
    format!("{} = {}", string(&fact.to_string()), string(value))
}

/// Quotes a text as a TOML basic string (TOML 1.0, section String) of printable ASCII. Some CI logs interpret two
/// adjacent number signs as a command, so the second one is escaped.
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
