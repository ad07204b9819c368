//! The report for code scanning: SARIF 2.1.0, one run, a rule for each check.
//!
//! A result is what somebody should look at: a check that failed, or one that could not be made. Those that passed or
//! were not asked for are none. The standard has kinds for them, but GitHub documents no `kind` and would show each
//! as an alert; how many they are stands in the other reports.
//!
//! A check that could not be made is a result of level `warning`, beside a notification. What is not among the
//! results counts as fixed: a run that says nothing would close the alerts of the run before. For the same reason a
//! run that is unsound has a result for each check that it should have made, and blames nobody with an `error`.
//!
//! Text of the client is escaped as for people, and stands in messages so that it makes no link.

use model::evidence::Exit;
use model::finding::{self, Finding, Status, Verdict};
use model::report::{Purpose, Report};
use model::{escape, time};

use super::{RenderError, json, phrases};
use identity::{case_file, category, fingerprints, lock_file, places};
use log::{
    Artifact, AutomationDetails, Configuration, Driver, FindingProperties, Hashes, Invocation,
    Level, Location, Log, LogicalLocation, Notification, PhysicalLocation, Region, Rule,
    RuleProperties, RuleReference, Run, RunProperties, Text, Tool, UriBase, UriBases,
};
use message::literal;

mod identity;
mod log;
pub(super) mod message;

/// Renders the report as a SARIF log in UTF-8.
pub fn render(report: &Report) -> Result<Vec<u8>, RenderError> {
    let log = Log {
        schema: log::SCHEMA,
        version: log::VERSION,
        runs: [run(report)],
    };
    Ok(json::document(&log)?)
}

fn run(report: &Report) -> Run {
    let told = told(report);
    Run {
        tool: Tool {
            driver: Driver {
                name: "runner",
                version: escape::visible(&report.runner.version),
                semantic_version: escape::visible(&report.runner.version),
                rules: report.made().map(rule).collect(),
            },
        },
        automation_details: AutomationDetails {
            id: category(report),
        },
        invocations: [invocation(report, &told)],
        original_uri_base_ids: UriBases {
            source_root: UriBase {
                description: text("The directory in which the runner was started."),
            },
        },
        artifacts: artifacts(report),
        results: told.iter().map(|told| result(report, told)).collect(),
        properties: properties(report),
    }
}

/// A finding that is a result.
struct Told<'r> {
    finding: &'r Finding,
    /// Of its rule.
    index: usize,
    decision: Decision,
}

/// Either way the result's kind is `fail`. The standard has `open` for what could not be decided, but without a level,
/// and what has none is shown nowhere.
enum Decision {
    /// It failed in a sound run.
    Failed,
    /// Nothing is known of it, for this reason.
    Undecided(String),
}

impl Told<'_> {
    fn undecided(&self) -> Option<&str> {
        match &self.decision {
            Decision::Failed => None,
            Decision::Undecided(because) => Some(because),
        }
    }
}

fn told(report: &Report) -> Vec<Told<'_>> {
    let nothing_known = says_nothing(report);
    let any_made = report.evidence.exit != Exit::NotStarted
        && report.made().any(|one| one.status != Status::Skipped);
    let decision = |finding: &Finding| match (finding.status, &nothing_known) {
        (Status::Passed | Status::Skipped, None) => None,
        // The case does not ask for it, or its object is not there.
        (Status::Skipped, Some(_)) if any_made => None,
        (Status::Failed, None) => Some(Decision::Failed),
        (Status::Errored, _) => Some(Decision::Undecided(because(finding))),
        (Status::Failed | Status::Passed | Status::Skipped, Some(reason)) => {
            Some(Decision::Undecided(reason.clone()))
        }
    };
    let made = report.made().enumerate();
    let told = made.filter_map(|(index, finding)| {
        Some(Told {
            finding,
            index,
            decision: decision(finding)?,
        })
    });
    told.collect()
}

/// Why the whole run says nothing, where it does not.
fn says_nothing(report: &Report) -> Option<String> {
    if report.verdict != Verdict::Errored {
        return None;
    }
    let unsound = report.unsound.first().cloned();
    unsound.or_else(|| {
        let any_errored = report.made().any(|one| one.status == Status::Errored);
        (!any_errored).then(|| "no check was made".to_owned())
    })
}

fn because(finding: &Finding) -> String {
    let because = finding.because.clone();
    because.unwrap_or_else(|| "evidence is missing".to_owned())
}

fn rule(finding: &Finding) -> Rule {
    let meaning = finding::meaning(finding.id).sentence;
    let asked = format!("Asked by: {}.", phrases::asked_by(finding.asked_by));
    Rule {
        id: finding.id.to_owned(),
        short_description: text(meaning),
        full_description: text(&format!("{meaning} {asked}")),
        help: text(&format!(
            "{meaning} {asked} What is expected stands at the place of the result; the other reports of the \
             runner show the evidence."
        )),
        default_configuration: Configuration {
            level: Level::Error,
        },
        properties: RuleProperties {
            tags: [area(finding.id).to_owned()],
            specification: finding.asked_by.section().to_owned(),
        },
    }
}

fn area(id: &str) -> &str {
    id.split_once('/').map_or(id, |(area, _)| area)
}

fn artifacts(report: &Report) -> Vec<Artifact> {
    let case = Artifact {
        location: case_file(report),
        hashes: Some(Hashes {
            sha256: report.case.origin.sha256.clone(),
        }),
    };
    let lock = lock_file(report).map(|location| Artifact {
        location,
        hashes: None,
    });
    std::iter::once(case).chain(lock).collect()
}

fn result(report: &Report, told: &Told<'_>) -> log::Finding {
    let finding = told.finding;
    let (file, lines) = places(report, finding);
    let location = |start_line| Location {
        physical_location: PhysicalLocation {
            artifact_location: file.clone(),
            region: Region { start_line },
        },
        logical_locations: finding.object.as_deref().map(|object| {
            [LogicalLocation {
                name: escape::visible(object),
            }]
        }),
    };
    log::Finding {
        rule_id: finding.id.to_owned(),
        rule_index: told.index,
        kind: "fail",
        level: match told.decision {
            Decision::Failed => Level::Error,
            Decision::Undecided(_) => Level::Warning,
        },
        message: message(told),
        locations: lines.into_iter().map(location).collect(),
        partial_fingerprints: fingerprints(report, finding),
        properties: FindingProperties {
            status: finding.status.word(),
        },
    }
}

/// The finding in sentences, each on a line of its own. Viewers with little room show the first.
fn message(told: &Told<'_>) -> Text {
    let finding = told.finding;
    let mut lines = Vec::new();
    if let Some(because) = told.undecided() {
        lines.push(literal(&not_decided(because)));
    }
    lines.push(match finding.status {
        Status::Failed | Status::Errored => literal(&sentence(&finding.message)),
        // What it says of itself is not so.
        Status::Passed | Status::Skipped => {
            format!("Asked: {}", literal(finding::meaning(finding.id).sentence))
        }
    });
    let told = |label, part: &str| format!("{label}: '{}'.", literal(part));
    let part = |label, part: &Option<String>| part.as_deref().map(|part| told(label, part));
    lines.extend(part("Object", &finding.object));
    lines.extend(part("Expected", &finding.expected));
    let mut found = phrases::found(finding).into_iter();
    lines.extend(found.next().map(|first| told("Found", first)));
    lines.extend(found.map(|drift| told("Drift", drift)));
    Text {
        text: lines.join("\n"),
    }
}

fn not_decided(because: &str) -> String {
    sentence(&format!("Not decided: {because}"))
}

/// Closed by a full stop, as viewers expect it of messages.
fn sentence(words: &str) -> String {
    format!("{}.", words.trim_end_matches('.'))
}

/// Words that stand for themselves.
fn text(words: &str) -> Text {
    Text {
        text: literal(words),
    }
}

fn invocation(report: &Report, told: &[Told<'_>]) -> Invocation {
    let (start, end) = report.evidence.wall;
    Invocation {
        execution_successful: report.verdict != Verdict::Errored,
        // An audit's is its program's own.
        exit_code: match report.purpose {
            Purpose::Judge => Some(report.verdict.exit_code()),
            Purpose::Audit => None,
        },
        exit_code_description: match report.purpose {
            Purpose::Judge => report.verdict.word().to_owned(),
            Purpose::Audit => format!(
                "{}; the program: {}",
                report.verdict.word(),
                phrases::exit(&report.evidence)
            ),
        },
        start_time_utc: time::rfc3339(start),
        end_time_utc: time::rfc3339(end),
        tool_execution_notifications: notifications(report, told),
    }
}

/// Why the run says nothing, and which checks could not be made.
fn notifications(report: &Report, told: &[Told<'_>]) -> Vec<Notification> {
    let reasons = report.unsound.iter();
    let lost = reasons.map(|reason| Notification {
        level: Level::Error,
        message: text(&sentence(reason)),
        associated_rule: None,
    });
    let errored = told.iter().filter_map(|told| {
        let because = told.undecided()?;
        Some(Notification {
            level: Level::Error,
            message: text(&not_decided(because)),
            associated_rule: Some(RuleReference {
                id: told.finding.id.to_owned(),
                index: told.index,
            }),
        })
    });
    let left = report.made().enumerate();
    let left = left.filter(|(_, finding)| phrases::is_left(finding));
    let left = left.map(|(index, finding)| Notification {
        level: Level::Note,
        message: text(&format!(
            "Not judged: {} Found: '{}'.",
            sentence(&because(finding)),
            phrases::found(finding).join("; ")
        )),
        associated_rule: Some(RuleReference {
            id: finding.id.to_owned(),
            index,
        }),
    });
    lost.chain(errored).chain(left).collect()
}

fn properties(report: &Report) -> RunProperties {
    let client = &report.client;
    let profile = client.profile.as_ref();
    RunProperties {
        verdict: report.verdict.word(),
        tier: report.tier.word(),
        case: escape::visible(&report.case.name),
        case_sha256: report.case.origin.sha256.clone(),
        client: escape::visible(&client.program),
        client_sha256: client.sha256.clone(),
        profile: profile.map(|profile| escape::visible(&profile.name)),
        runner_sha256: report.runner.sha256.clone(),
    }
}
