//! The selftest's answer: for people, a line for each class; for machines, JSON of schema `runner.selftest/1`.

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

/// As wide as the longest word for a status.
const STATUS_WIDTH: usize = 12;

/// The schema of what `runner selftest --json` writes.
pub fn schema() -> Schema {
    schema::of_document::<Document<'_>>(SCHEMA)
}

values::closed_sets! {
    /// `blocked`: refused inside, and not outside. `through`: it got out, or left no evidence where it must.
    /// `inconclusive`: neither is known, and it is no pass.
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
        let word = format!("{:<STATUS_WIDTH$}", self.word().to_uppercase());
        match colour {
            Colour::Plain => word,
            Colour::Ansi => format!("\u{1b}[{}m{word}\u{1b}[0m", self.colour()),
        }
    }
}

impl Outcome {
    /// What stands behind the status: errno and layer, or the reason.
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
        // Attempts of one reason stand together.
        let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
        let worst = |attempt: &&Judged| attempt.status == self.status;
        for attempt in self.attempts.iter().filter(worst) {
            let reason = attempt.reason.as_deref().unwrap_or_default();
            match groups.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, names)) => names.push(attempt.name),
                None => groups.push((reason, vec![attempt.name])),
            }
        }
        let told = |(reason, names): &(&str, Vec<&str>)| format!("{}: {reason}", names.join(", "));
        groups.iter().map(told).collect::<Vec<_>>().join("; ")
    }
}

impl Judged {
    /// `EPERM filter`
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

/// What became of each way out that the hostile client tried, beside its twin outside. Readers ignore keys that they do
/// not know.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "Selftest of runner")]
struct Document<'a> {
    /// The form of this document.
    schema: &'static str,
    /// The program that was tested, and its version.
    runner: Runner,
    /// What sealed the network.
    #[schemars(with = "Tier")]
    tier: &'static str,
    /// Why the tier is not a stronger one that would have done; null where it is the strongest, or was asked for.
    because: Option<&'a str>,
    /// As the worst class.
    #[schemars(with = "Status")]
    status: &'static str,
    /// How many classes have each status.
    counts: Counts,
    /// Each class that this tier has something of, in the order of the report.
    classes: Vec<ClassForm<'a>>,
}

/// The program that was tested.
#[derive(Serialize, JsonSchema)]
struct Runner {
    /// Its version: `0.1.0`.
    version: &'static str,
}

/// Numbers of classes.
#[derive(Serialize, JsonSchema)]
struct Counts {
    /// Each of their attempts was blocked.
    blocked: usize,
    /// One of their attempts got through.
    through: usize,
    /// None got through, and of one it is not known.
    inconclusive: usize,
}

/// A class of ways out.
#[derive(Serialize, JsonSchema)]
struct ClassForm<'a> {
    /// Stable: `sockets/vsock`.
    id: &'static str,
    /// What is tried, for people.
    about: &'static str,
    /// As its worst attempt.
    #[schemars(with = "Status")]
    status: &'static str,
    /// The errnos and who refused, or the reasons, for people.
    because: String,
    /// Each attempt.
    attempts: Vec<AttemptForm<'a>>,
}

/// One call, or a short sequence.
#[derive(Serialize, JsonSchema)]
struct AttemptForm<'a> {
    /// Its own within the class.
    name: &'static str,
    /// What it came to.
    #[schemars(with = "Status")]
    status: &'static str,
    /// The reply inside: an errno, a signal, `nothing`, `through` or `not made`; null where none was heard.
    inside: Option<String>,
    /// The reply outside, in the same words; null where there is none.
    outside: Option<String>,
    /// Who refused it inside, for people; null where that is not known.
    layer: Option<&'static str>,
    /// Why it is not blocked, for people; null where it is.
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
