//! Lock file: TOML of the form `runner.baseline/1`, sorted, a line for each fact, in plain ASCII. Two runs of one
//! client give equal bytes. The file can be reviewed and edited by hand: the value `*` accepts any value, and a missing
//! fact.
//!
//! A user with write access to the file decides which behaviour is accepted. Keys and values are hostile text, so they
//! are escaped: they can end neither a line nor a string.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::ops::Range;

use model::difference::{Area, Difference, Fact, line, string, table};
use model::quote::{Position, known_words, quoted};
use model::report::Report;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::facts::RunFacts;

pub mod drift;

#[cfg(test)]
mod tests;

/// Schema of the file.
pub const SCHEMA: &str = "runner.baseline/1";
/// Value that accepts any value, and a missing fact.
pub const ANY: &str = "*";

/// Top-level keys of the file, in addition to a table for each [`Area`].
const TOP: [&str; 4] = ["schema", "case", "tier", "made"];

/// Comment before the first key.
const HEAD: &str = r#"# What one client does under one case: `runner CASE --baseline FILE` fails where it does anything else.
# Each line is a fact. Where a run differs, its report names the line to put here, or to delete.
# `--update-baseline` writes the whole file anew; read what it changed before you commit it.
# The value "*" accepts any value, and none; it is kept when the file is written anew.
"#;
const MADE: &str = "\n# Of the run that wrote this; nothing in this table is compared.\n[made]\n";

/// Parsed lock file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lock {
    case: String,
    tier: String,
    made: Made,
    facts: BTreeMap<Fact, String>,
}

/// Origin of a lock file. Not compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Made {
    /// Name of the program.
    pub client: String,
    /// SHA-256 of the program.
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
        pair(&mut text, "sha256", &self.made.sha256);
        pair(&mut text, "runner", &self.made.runner);
        for area in Area::ALL {
            let _ = writeln!(text, "\n{}", table(area));
            for (fact, value) in self.facts.iter().filter(|(fact, _)| fact.area == area) {
                let _ = writeln!(text, "{}", line(&fact.key, value));
            }
        }
        text
    }

    /// Parses a file.
    ///
    /// # Errors
    /// The first fault, with its position, the expected value and the value found.
    pub fn parse(bytes: &[u8]) -> Result<Self, LockFault> {
        let text = std::str::from_utf8(bytes).map_err(|error| LockFault {
            at: Position::of(bytes, error.valid_up_to()),
            problem: "expected UTF-8 text, found other bytes".to_owned(),
        })?;
        let reader = Reader { text };
        let table = DeTable::parse(text).map_err(|error| {
            let span = error.span().unwrap_or(text.len()..text.len());
            let said = quoted(error.message());
            reader.fault(&span, &format!("not well-formed TOML: {said}"))
        })?;
        reader.lock(table.get_ref())
    }
}

/// Line numbers of these differences in `file`, from 1 and each once. A fact without a line has that of its table; a
/// missing table has none. `file` must parse.
pub fn lines<'d>(file: &[u8], differences: impl Iterator<Item = &'d Difference>) -> Vec<usize> {
    let text = std::str::from_utf8(file).unwrap_or_default();
    let Ok(tables) = DeTable::parse(text) else {
        return Vec::new();
    };
    let mut lines = Vec::new();
    for Difference { fact, .. } in differences {
        let Some((name, facts)) = tables.get_ref().get_key_value(fact.area.word()) else {
            continue;
        };
        let own = facts.get_ref().as_table();
        let own = own.and_then(|facts| facts.get_key_value(fact.key.as_str()));
        let place = own.map_or(name, |(key, _)| key);
        let line = Position::of(file, place.span().start).line;
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

/// Line number of the key `tier` in `file`, which must parse.
pub fn line_of_tier(file: &[u8]) -> Vec<usize> {
    let text = std::str::from_utf8(file).unwrap_or_default();
    let table = DeTable::parse(text).ok();
    let key = table
        .as_ref()
        .and_then(|table| Some(table.get_ref().get_key_value("tier")?.0.span()));
    key.map(|span| Position::of(file, span.start).line)
        .into_iter()
        .collect()
}

struct Reader<'t> {
    text: &'t str,
}

impl Reader<'_> {
    fn fault(&self, span: &Range<usize>, problem: &str) -> LockFault {
        LockFault {
            at: Position::of(self.text.as_bytes(), span.start),
            problem: problem.to_owned(),
        }
    }

    fn lock(&self, table: &DeTable<'_>) -> Result<Lock, LockFault> {
        let mut lock = Lock::default();
        let mut schema = None;
        let (mut case, mut tier) = (None, None);
        for (key, value) in table {
            let name = key.get_ref().as_ref();
            if let Some(area) = Area::ALL.into_iter().find(|area| area.word() == name) {
                self.facts(area, value, &mut lock.facts)?;
                continue;
            }
            match name {
                "schema" => schema = Some((value.span(), self.string(value)?)),
                "case" => case = Some(self.string(value)?),
                "tier" => tier = Some(self.string(value)?),
                "made" => lock.made = self.made(value)?,
                other => {
                    let known = TOP.into_iter().chain(Area::ALL.map(Area::word));
                    return Err(self.unknown(&key.span(), other, known));
                }
            }
        }
        let missing =
            |key: &str| self.fault(&(0..0), &format!("expected the key `{key}`, found none"));
        let (span, schema) = schema.ok_or_else(|| missing("schema"))?;
        if schema != SCHEMA {
            let found = quoted(&schema);
            let problem = format!("expected the schema `{SCHEMA}`, found {found}");
            return Err(self.fault(&span, &problem));
        }
        lock.case = case.ok_or_else(|| missing("case"))?;
        lock.tier = tier.ok_or_else(|| missing("tier"))?;
        Ok(lock)
    }

    fn facts(
        &self,
        area: Area,
        value: &Spanned<DeValue<'_>>,
        facts: &mut Map,
    ) -> Result<(), LockFault> {
        for (key, value) in self.table(value)? {
            let fact = Fact {
                area,
                key: key.get_ref().to_string(),
            };
            facts.insert(fact, self.string(value)?);
        }
        Ok(())
    }

    fn made(&self, value: &Spanned<DeValue<'_>>) -> Result<Made, LockFault> {
        let mut made = Made::default();
        for (key, value) in self.table(value)? {
            match key.get_ref().as_ref() {
                "client" => made.client = self.string(value)?,
                "sha256" => made.sha256 = self.string(value)?,
                "runner" => made.runner = self.string(value)?,
                other => {
                    let known = ["client", "sha256", "runner"];
                    return Err(self.unknown(&key.span(), other, known.into_iter()));
                }
            }
        }
        Ok(made)
    }

    fn table<'v, 't>(&self, value: &'v Spanned<DeValue<'t>>) -> Result<&'v DeTable<'t>, LockFault> {
        let found = value.get_ref();
        found.as_table().ok_or_else(|| {
            let problem = format!("expected a table, found {}", found.type_str());
            self.fault(&value.span(), &problem)
        })
    }

    fn string(&self, value: &Spanned<DeValue<'_>>) -> Result<String, LockFault> {
        let found = value.get_ref();
        found.as_str().map(str::to_owned).ok_or_else(|| {
            let problem = format!("expected a string, found {}", found.type_str());
            self.fault(&value.span(), &problem)
        })
    }

    fn unknown<'k>(
        &self,
        span: &Range<usize>,
        found: &str,
        known: impl Iterator<Item = &'k str>,
    ) -> LockFault {
        let known = known_words(found, known);
        let problem = format!("expected a known key, found {}: {known}", quoted(found));
        self.fault(span, &problem)
    }
}
