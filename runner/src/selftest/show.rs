//! The selftest's answer: for people, a line for each class; for machines, JSON of schema `runner.selftest/1`.

use std::fmt::Write as _;

use serde::Serialize;

use super::Answer;
use super::judge::{Judged, Outcome, Status};
use crate::report::human::Colour;
use crate::report::{RenderError, json, visible};

const SCHEMA: &str = "runner.selftest/1";

impl Status {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Blocked => "blocked",
            Self::Inconclusive => "inconclusive",
            Self::Through => "through",
        }
    }

    /// SGR: green, yellow, red.
    fn colour(self) -> u8 {
        match self {
            Self::Blocked => 32,
            Self::Inconclusive => 33,
            Self::Through => 31,
        }
    }

    /// In capitals, and as wide as the longest.
    fn painted(self, colour: Colour) -> String {
        let word = format!("{:<12}", self.word().to_uppercase());
        match colour {
            Colour::Plain => word,
            Colour::Ansi => format!("\u{1b}[{}m{word}\u{1b}[0m", self.colour()),
        }
    }
}

impl Outcome {
    /// What stands behind the status: errno and layer, or the reason.
    pub(super) fn because(&self) -> String {
        let mut parts: Vec<String> = Vec::new();
        for attempt in &self.attempts {
            let part = match (self.status, attempt.status) {
                (Status::Blocked, _) => attempt.refusal(),
                (status, own) if own == status => format!("{}: {}", attempt.name, attempt.reason),
                _ => continue,
            };
            if !parts.contains(&part) {
                parts.push(part);
            }
        }
        parts.join(", ")
    }
}

impl Judged {
    /// `EPERM filter`
    fn refusal(&self) -> String {
        let reply = self
            .inside
            .map(super::reply::Reply::words)
            .unwrap_or_default();
        let layer = self
            .layer
            .map(super::class::Layer::words)
            .unwrap_or_default();
        format!("{reply} {layer}")
    }
}

impl Answer {
    fn counts(&self) -> [usize; 3] {
        [Status::Blocked, Status::Through, Status::Inconclusive].map(|status| {
            let of_it = self.classes.iter().filter(|class| class.status == status);
            of_it.count()
        })
    }

    /// As its worst class.
    pub(super) fn status(&self) -> Status {
        let worst = self.classes.iter().map(|class| class.status).max();
        worst.unwrap_or(Status::Inconclusive)
    }

    /// For people.
    pub(super) fn human(&self, colour: Colour) -> String {
        let mut text = String::new();
        let wide = |class: &Outcome| class.class.id.len();
        let width = self.classes.iter().map(wide).max().unwrap_or(0);
        let mut group = "";
        for class in &self.classes {
            if class.class.group() != group {
                if !group.is_empty() {
                    text.push('\n');
                }
                group = class.class.group();
            }
            let (status, because) = (class.status.painted(colour), visible(&class.because()));
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{:<width$}  {status}  {because}", class.class.id);
        }
        let [blocked, through, inconclusive] = self.counts();
        let _ = writeln!(
            text,
            "\n{} {blocked} blocked, {through} through, {inconclusive} inconclusive; tier {}",
            self.status().painted(colour),
            self.tier.word()
        );
        text
    }

    /// For machines.
    ///
    /// # Errors
    /// None is known.
    pub(super) fn json(&self) -> Result<Vec<u8>, RenderError> {
        let [blocked, through, inconclusive] = self.counts();
        Ok(json::document(&Document {
            schema: SCHEMA,
            runner: Runner {
                version: env!("CARGO_PKG_VERSION"),
            },
            tier: self.tier.word(),
            status: self.status().word(),
            counts: Counts {
                blocked,
                through,
                inconclusive,
            },
            classes: self.classes.iter().map(ClassForm::from).collect(),
        })?)
    }
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    runner: Runner,
    tier: &'static str,
    status: &'static str,
    counts: Counts,
    classes: Vec<ClassForm<'a>>,
}

#[derive(Serialize)]
struct Runner {
    version: &'static str,
}

#[derive(Serialize)]
struct Counts {
    blocked: usize,
    through: usize,
    inconclusive: usize,
}

#[derive(Serialize)]
struct ClassForm<'a> {
    id: &'static str,
    about: &'static str,
    status: &'static str,
    because: String,
    attempts: Vec<AttemptForm<'a>>,
}

#[derive(Serialize)]
struct AttemptForm<'a> {
    name: &'static str,
    status: &'static str,
    inside: Option<String>,
    outside: Option<String>,
    layer: Option<&'static str>,
    reason: &'a str,
}

impl<'a> From<&'a Outcome> for ClassForm<'a> {
    fn from(outcome: &'a Outcome) -> Self {
        Self {
            id: outcome.class.id,
            about: outcome.class.about,
            status: outcome.status.word(),
            because: outcome.because(),
            attempts: outcome.attempts.iter().map(AttemptForm::from).collect(),
        }
    }
}

impl<'a> From<&'a Judged> for AttemptForm<'a> {
    fn from(judged: &'a Judged) -> Self {
        Self {
            name: judged.name,
            status: judged.status.word(),
            inside: judged.inside.map(|reply| reply.words().into_owned()),
            outside: judged.outside.map(|reply| reply.words().into_owned()),
            layer: judged.layer.map(super::class::Layer::words),
            reason: &judged.reason,
        }
    }
}
