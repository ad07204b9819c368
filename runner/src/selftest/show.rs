//! Output of the selftest: a line for each class, or JSON with the schema `runner.selftest/1`.

use std::fmt::Write as _;

use model::case::Tier;
use model::escape::visible;
use model::schema::{self, values};
use report::human::Colour;
use report::human::page::{WIDTH, wrap};
use report::{RenderError, json};
use schemars::{JsonSchema, Schema};
use serde::Serialize;

use super::Answer;
use super::judge::{Judged, Outcome, Status};

const SCHEMA: &str = "runner.selftest/1";

/// Width of the longest status.
const STATUS_WIDTH: usize = 12;

/// JSON Schema of the output of `runner selftest --json`.
pub fn schema() -> Schema {
    schema::of_document::<Document<'_>>(SCHEMA)
}

values::closed_sets! {
    /// `blocked`: refused inside, and not outside. `through`: it left the sandbox, or the ledger does not have it.
    /// `inconclusive`: not testable on this machine, which is no pass.
    Status of ALL,
}

impl Status {
    pub(super) const ALL: [Self; 3] = [Self::Blocked, Self::Inconclusive, Self::Through];

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Blocked => "blocked",
            Self::Inconclusive => "inconclusive",
            Self::Through => "through",
        }
    }

    /// SGR code: green, yellow, red.
    fn colour(self) -> u8 {
        match self {
            Self::Blocked => 32,
            Self::Inconclusive => 33,
            Self::Through => 31,
        }
    }

    /// The status in capitals, padded to the longest one.
    fn painted(self, colour: Colour) -> String {
        let word = format!("{:<STATUS_WIDTH$}", self.word().to_uppercase());
        match colour {
            Colour::Plain => word,
            Colour::Ansi => format!("\u{1b}[{}m{word}\u{1b}[0m", self.colour()),
        }
    }
}

impl Outcome {
    /// Details of the status: errno and layer, or the reason.
    pub(super) fn because(&self) -> String {
        if self.status == Status::Blocked {
            let mut refusals: Vec<String> = Vec::new();
            for refusal in self.attempts.iter().map(Judged::refusal) {
                if !refusals.contains(&refusal) {
                    refusals.push(refusal);
                }
            }
            return refusals.join(", ");
        }
        // Attempts with the same reason are grouped.
        let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
        let worst = |attempt: &&Judged| attempt.status == self.status;
        for attempt in self.attempts.iter().filter(worst) {
            let reason = attempt.reason.as_deref().unwrap_or_default();
            match groups.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, names)) => names.push(attempt.name),
                None => groups.push((reason, vec![attempt.name])),
            }
        }
        let line = |(reason, names): &(&str, Vec<&str>)| format!("{}: {reason}", names.join(", "));
        groups.iter().map(line).collect::<Vec<_>>().join("; ")
    }
}

impl Judged {
    /// Errno and layer, such as `EPERM filter`.
    fn refusal(&self) -> String {
        let reply = self
            .inside
            .map(probes::hostile::reply::Reply::words)
            .unwrap_or_default();
        let layer = self
            .layer
            .map(probes::hostile::class::Layer::words)
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

    /// Status of the worst class.
    pub(super) fn status(&self) -> Status {
        let worst = self.classes.iter().map(|class| class.status).max();
        worst.unwrap_or(Status::Inconclusive)
    }

    /// Text form of the answer.
    pub(super) fn human(&self, colour: Colour) -> String {
        let mut text = String::new();
        let id_width = |class: &Outcome| class.class.id.len();
        let width = self.classes.iter().map(id_width).max().unwrap_or(0);
        let mut group = "";
        for class in &self.classes {
            if class.class.group() != group {
                if !group.is_empty() {
                    text.push('\n');
                }
                group = class.class.group();
            }
            let status = class.status.painted(colour);
            let before = width + STATUS_WIDTH + 4;
            let because = visible(&class.because());
            for (index, line) in wrap(&because, WIDTH.saturating_sub(before)).enumerate() {
                // Writing to a string cannot fail.
                let _ = match index {
                    0 => writeln!(text, "{:<width$}  {status}  {line}", class.class.id),
                    _ => writeln!(text, "{:<before$}{line}", ""),
                };
            }
        }
        let [blocked, through, inconclusive] = self.counts();
        if let Some(because) = &self.because {
            text.push('\n');
            for line in wrap(&visible(because), WIDTH) {
                let _ = writeln!(text, "{line}");
            }
        }
        let _ = writeln!(
            text,
            "\n{} {blocked} blocked, {through} through, {inconclusive} inconclusive; isolation {}",
            self.status().painted(colour),
            self.tier.word()
        );
        text
    }

    /// JSON form of the answer.
    ///
    /// # Errors
    /// The answer has no JSON form.
    pub(super) fn json(&self) -> Result<Vec<u8>, RenderError> {
        let [blocked, through, inconclusive] = self.counts();
        Ok(json::document(&Document {
            schema: SCHEMA,
            runner: Runner {
                version: env!("CARGO_PKG_VERSION"),
            },
            tier: self.tier.word(),
            because: self.because.as_deref(),
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

/// Result of each attempt of the hostile client, with its twin outside. Readers ignore unknown keys.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "Selftest of runner")]
struct Document<'a> {
    /// Schema of this document.
    schema: &'static str,
    /// The tested program.
    runner: Runner,
    /// Isolation of the network.
    #[schemars(with = "Tier")]
    tier: &'static str,
    /// Reason why a stronger isolation was not used; null if it is the strongest, or was requested.
    because: Option<&'a str>,
    /// Status of the worst class.
    #[schemars(with = "Status")]
    status: &'static str,
    /// Number of classes by status.
    counts: Counts,
    /// Classes with attempts in this isolation, in the order of the report.
    classes: Vec<ClassForm<'a>>,
}

/// The tested program.
#[derive(Serialize, JsonSchema)]
struct Runner {
    /// Version of the program, such as `0.1.0`.
    version: &'static str,
}

/// Numbers of classes.
#[derive(Serialize, JsonSchema)]
struct Counts {
    /// Classes in which each attempt was blocked.
    blocked: usize,
    /// Classes in which an attempt got through.
    through: usize,
    /// Classes in which no attempt got through, and at least one is inconclusive.
    inconclusive: usize,
}

/// A class of attempts.
#[derive(Serialize, JsonSchema)]
struct ClassForm<'a> {
    /// Id of the class, such as `sockets/vsock`; it is stable.
    id: &'static str,
    /// Description of the class, for people.
    about: &'static str,
    /// Status of the worst attempt.
    #[schemars(with = "Status")]
    status: &'static str,
    /// Errnos and layers, or the reasons, for people.
    because: String,
    /// Attempts of the class.
    attempts: Vec<AttemptForm<'a>>,
}

/// An attempt: one call, or a short sequence.
#[derive(Serialize, JsonSchema)]
struct AttemptForm<'a> {
    /// Name of the attempt; unique within the class.
    name: &'static str,
    /// Status of the attempt.
    #[schemars(with = "Status")]
    status: &'static str,
    /// Reply inside: an errno, a signal, `nothing`, `through` or `not made`; null without a reply.
    inside: Option<String>,
    /// Reply outside, in the same words; null without a reply.
    outside: Option<String>,
    /// Layer that refused the attempt inside, for people; null if it is not known.
    layer: Option<&'static str>,
    /// Reason why the attempt is not blocked, for people; null if it is blocked.
    reason: Option<&'a str>,
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
            layer: judged.layer.map(probes::hostile::class::Layer::words),
            reason: judged.reason.as_deref(),
        }
    }
}
