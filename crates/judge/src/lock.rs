//! Lock file: TOML of the form `runner.baseline/1`, in plain ASCII: the sorted facts of a run, a line each. Two runs of
//! one client give equal bytes. The file can be reviewed and edited by hand: the value `*` accepts any value, and a
//! missing fact.
//!
//! A user with write access to the file decides which behaviour is accepted. Keys and values are hostile text, so they
//! are escaped: they can end neither a line nor a string.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::ops::Range;

use model::difference::{Area, Difference, Fact, line, string};
use model::escape::visible;
use model::quote::{Position, known_words, quoted};
use model::report::Report;
use model::text::truncated;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use toml::Spanned;

use crate::facts::RunFacts;

pub mod drift;

#[cfg(test)]
mod tests;

/// Schema of the file.
pub const SCHEMA: &str = "runner.baseline/1";
/// Value that accepts any value, and a missing fact.
pub const ANY: &str = "*";

/// Most characters of a message of the TOML parser.
const MAX_MESSAGE: usize = 240;

/// Comment before the first key.
const HEAD: &str = r#"# Behaviour of one client in one case, or of one program in an audit. `--baseline FILE` fails on each difference.
# Each line below [facts] is a fact. Where a run differs, its report has the line to add, to change or to delete.
# `--update-baseline` writes the whole file anew; read what it changed before you commit it.
# The value "*" accepts any value and a missing fact. `--update-baseline` keeps the line.
"#;
const MADE: &str = "\n# Origin of this file. Not compared.\n[made]\n";

/// Parsed lock file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lock {
    case: String,
    tier: String,
    made: Made,
    facts: BTreeMap<Fact, String>,
}

/// Origin of a lock file. Not compared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Made {
    /// Name of the program.
    pub client: String,
    /// SHA-256 of the program; empty for a client that is part of the runner's executable.
    pub sha256: String,
    /// Version of the runner.
    pub runner: String,
}

/// Fault of a lock file, with its position.
#[derive(Debug, PartialEq, Eq)]
pub struct LockFault {
    at: Position,
    problem: String,
}

impl fmt::Display for LockFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.at, self.problem)
    }
}

/// Values by fact.
type Map = BTreeMap<Fact, String>;

impl Lock {
    /// Lock of a run. Facts with the value [`ANY`] in the old lock keep it.
    pub fn of(behaviour: &RunFacts, made: Made, old: Option<&Self>, report: &Report) -> Self {
        let mut facts = behaviour.facts().clone();
        let kept = old.into_iter().flat_map(|old| &old.facts);
        let any = kept.filter(|(_, value)| *value == ANY);
        facts.extend(any.map(|(fact, value)| (fact.clone(), value.clone())));
        Self {
            case: report.case.name.clone(),
            tier: report.tier.word().to_owned(),
            made,
            facts,
        }
    }

    /// Name of the case that was run.
    pub fn case(&self) -> &str {
        &self.case
    }

    /// Tier of the run.
    pub fn tier(&self) -> &str {
        &self.tier
    }

    /// All facts, with [`ANY`] for those that accept any value.
    pub fn facts(&self) -> &Map {
        &self.facts
    }

    /// Facts of the lock and `found` facts, both without those that the lock accepts with any value.
    pub fn comparable(&self, found: &Map) -> (Map, Map) {
        let is_any = |fact: &Fact| self.facts.get(fact).is_some_and(|value| value == ANY);
        let without = |facts: &Map| {
            let kept = facts.iter().filter(|(fact, _)| !is_any(fact));
            kept.map(|(fact, value)| (fact.clone(), value.clone()))
                .collect()
        };
        (without(&self.facts), without(found))
    }

    /// Text of the file.
    pub fn print(&self) -> String {
        let mut text = HEAD.to_owned();
        let pair = |text: &mut String, key: &str, value: &str| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{key} = {}", string(value));
        };
        pair(&mut text, "schema", SCHEMA);
        pair(&mut text, "case", &self.case);
        pair(&mut text, "tier", &self.tier);
        text.push_str(MADE);
        pair(&mut text, "client", &self.made.client);
        if !self.made.sha256.is_empty() {
            pair(&mut text, "sha256", &self.made.sha256);
        }
        pair(&mut text, "runner", &self.made.runner);
        text.push_str("\n[facts]\n");
        for (fact, value) in &self.facts {
            let _ = writeln!(text, "{}", line(fact, value));
        }
        text
    }

    /// Parses a file.
    ///
    /// # Errors
    /// The first fault, with its position, the expected value and the value found.
    pub fn parse(bytes: &[u8]) -> Result<Self, LockFault> {
        let Head { schema } = read(bytes)?;
        if schema.get_ref() != SCHEMA {
            let found = quoted(schema.get_ref());
            let problem = format!("expected the schema `{SCHEMA}`, found {found}");
            return Err(fault(bytes, schema.span(), problem));
        }
        let File {
            case,
            tier,
            made,
            facts: lines,
            ..
        } = read(bytes)?;
        let mut facts = BTreeMap::new();
        for (key, value) in lines {
            let fact = Fact::parse(key.get_ref()).ok_or_else(|| {
                let (area, _) = key.get_ref().split_once(' ').unwrap_or((key.get_ref(), ""));
                let known = known_words(area, Area::ALL.map(Area::word));
                let found = quoted(key.get_ref());
                let problem = format!("expected an area and a key, found {found}: {known}");
                fault(bytes, key.span(), problem)
            })?;
            facts.insert(fact, value);
        }
        Ok(Self {
            case,
            tier: tier.into_inner(),
            made,
            facts,
        })
    }
}

/// Line numbers of these differences in `file`, from 1 and each once. A fact without a line has that of the key
/// `facts`. `file` must parse.
pub fn lines<'d>(file: &[u8], differences: impl Iterator<Item = &'d Difference>) -> Vec<usize> {
    let Ok(File { facts, .. }) = read(file) else {
        return Vec::new();
    };
    let places: BTreeMap<&str, usize> = facts
        .keys()
        .map(|key| (key.get_ref().as_str(), key.span().start))
        .collect();
    let table = file.windows(8).position(|bytes| bytes == b"\n[facts]");
    let mut lines = Vec::new();
    for Difference { fact, .. } in differences {
        let own = places.get(fact.to_string().as_str()).copied();
        if let Some(offset) = own.or(table.map(|end| end + 1)) {
            let line = Position::of(file, offset).line;
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
    }
    lines
}

/// Line number of the key `tier` in `file`, which must parse.
pub fn line_of_tier(file: &[u8]) -> Vec<usize> {
    let tier = read(file).map(|File { tier, .. }| tier.span().start);
    let line = tier.map(|offset| Position::of(file, offset).line);
    line.into_iter().collect()
}

/// Key that is read before all others.
#[derive(Deserialize)]
struct Head {
    schema: Spanned<String>,
}

/// Keys of a file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(rename = "schema")]
    _schema: String,
    case: String,
    tier: Spanned<String>,
    #[serde(default)]
    made: Made,
    #[serde(default)]
    facts: BTreeMap<Spanned<String>, String>,
}

fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, LockFault> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let at = error.valid_up_to();
        fault(
            bytes,
            at..at,
            "expected UTF-8 text, found other bytes".to_owned(),
        )
    })?;
    toml::from_str(text).map_err(|error| {
        let span = error.span().unwrap_or(0..0);
        fault(
            bytes,
            span,
            truncated(&visible(error.message()), MAX_MESSAGE),
        )
    })
}

fn fault(bytes: &[u8], span: Range<usize>, problem: String) -> LockFault {
    let at = Position::of(bytes, span.start);
    LockFault { at, problem }
}
