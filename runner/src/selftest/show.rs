//! Output of the selftest: a line for each class, or JSON with the schema `runner.selftest/1`.

use std::fmt::Write as _;

use model::case::Tier;
use model::escape::visible;
use model::schema;
use report::human::Colour;
use report::human::page::{WIDTH, wrap};
use report::{RenderError, json};
use schemars::{JsonSchema, Schema};
use serde::Serialize;

use super::judge::{Outcome, Status};

const SCHEMA: &str = "runner.selftest/1";

/// Width of the longest status.
const STATUS_WIDTH: usize = 12;

/// JSON Schema of the output of `runner selftest --json`.
pub fn schema() -> Schema {
    schema::of_document::<Answer>(SCHEMA)
}

impl Status {
    /// The status in capitals, padded to the longest one; on a terminal green, yellow or red.
    fn painted(self, colour: Colour) -> String {
        let word = format!("{self:?}").to_uppercase();
        let word = format!("{word:<STATUS_WIDTH$}");
        let code = match self {
            Self::Blocked => 32,
            Self::Inconclusive => 33,
            Self::Through => 31,
        };
        match colour {
            Colour::Plain => word,
            Colour::Ansi => format!("\u{1b}[{code}m{word}\u{1b}[0m"),
        }
    }
}

/// Result of each attempt of the hostile client, with its twin outside. Readers ignore unknown keys.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "Selftest of runner")]
pub(super) struct Answer {
    /// Schema of this document.
    schema: &'static str,
    /// The tested program.
    runner: Runner,
    /// Isolation of the network.
    tier: Tier,
    /// Reason why a stronger isolation was not used; null if it is the strongest, or was requested.
    because: Option<String>,
    /// Status of the worst class.
    pub(super) status: Status,
    /// Number of classes by status.
    counts: Counts,
    /// Classes with attempts in this isolation, in the order of the report.
    classes: Vec<Outcome>,
}

/// The tested program.
#[derive(Debug, Serialize, JsonSchema)]
struct Runner {
    /// Version of the program, such as `0.1.0`.
    version: &'static str,
}

/// Numbers of classes.
#[derive(Debug, Serialize, JsonSchema)]
struct Counts {
    /// Classes in which each attempt was blocked.
    blocked: usize,
    /// Classes in which an attempt got through.
    through: usize,
    /// Classes in which no attempt got through, and at least one is inconclusive.
    inconclusive: usize,
}

impl Answer {
    /// Answer from the results of all classes; `because` is the reason why a stronger isolation was not used.
    pub(super) fn new(tier: Tier, because: Option<String>, classes: Vec<Outcome>) -> Self {
        let count = |status| {
            classes
                .iter()
                .filter(|class| class.status == status)
                .count()
        };
        let worst = classes.iter().map(|class| class.status).max();
        Self {
            schema: SCHEMA,
            runner: Runner {
                version: env!("CARGO_PKG_VERSION"),
            },
            tier,
            because,
            status: worst.unwrap_or(Status::Inconclusive),
            counts: Counts {
                blocked: count(Status::Blocked),
                through: count(Status::Through),
                inconclusive: count(Status::Inconclusive),
            },
            classes,
        }
    }

    /// Text form of the answer.
    pub(super) fn human(&self, colour: Colour) -> String {
        let mut text = String::new();
        let width = self.classes.iter().map(|class| class.id.len()).max();
        let width = width.unwrap_or(0);
        let group = |class: &Outcome| class.id.split('/').next().unwrap_or_default();
        let mut last = "";
        for class in &self.classes {
            if group(class) != last {
                if !last.is_empty() {
                    text.push('\n');
                }
                last = group(class);
            }
            let status = class.status.painted(colour);
            let before = width + STATUS_WIDTH + 4;
            let because = visible(&class.because);
            for (index, line) in wrap(&because, WIDTH.saturating_sub(before)).enumerate() {
                // Writing to a string cannot fail.
                let _ = match index {
                    0 => writeln!(text, "{:<width$}  {status}  {line}", class.id),
                    _ => writeln!(text, "{:<before$}{line}", ""),
                };
            }
        }
        if let Some(because) = &self.because {
            text.push('\n');
            for line in wrap(&visible(because), WIDTH) {
                let _ = writeln!(text, "{line}");
            }
        }
        let Counts {
            blocked,
            through,
            inconclusive,
        } = self.counts;
        let _ = writeln!(
            text,
            "\n{} {blocked} blocked, {through} through, {inconclusive} inconclusive; isolation {}",
            self.status.painted(colour),
            self.tier.word()
        );
        text
    }

    /// JSON form of the answer.
    ///
    /// # Errors
    /// The answer has no JSON form.
    pub(super) fn json(&self) -> Result<Vec<u8>, RenderError> {
        Ok(json::document(self)?)
    }
}
