//! SARIF 2.1.0 report for code scanning: one run, a rule for each check.
//!
//! Results are the failed and the errored checks. Passed and skipped checks are left out: the standard has kinds for
//! them, but GitHub does not document `kind` and would show each as an alert. The other reports count them.
//!
//! An errored check is a result of level `warning` and a notification, because code scanning closes the alerts of
//! absent results. For the same reason, an unsound run has a result for each check that it should have made. These are
//! warnings too, because such a run does not judge the client.
//!
//! Text of the client is escaped for people, and again so that messages contain no link.

use model::evidence::Exit;
use model::finding::{self, Finding, Status, Verdict};
use model::report::{Purpose, Report};
use model::{escape, time};

use super::frame::Frame;
use super::headline::headline;
use super::{RenderError, json, phrases};
use identity::{case_file, category, fingerprints, locations, lock_file};
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
        runs: vec![run(report)],
    };
    Ok(json::document(&log)?)
}

/// Renders the run of one report of several.
pub(super) fn part(report: &Report) -> Result<Vec<u8>, RenderError> {
    Ok(json::indented(&json::document(&run(report))?))
}

/// Renders a log without its runs.
pub(super) fn frame() -> Result<Frame, RenderError> {
    let log = Log {
        schema: log::SCHEMA,
        version: log::VERSION,
        runs: Vec::new(),
    };
    Frame::split(&json::document(&log)?, json::NO_RUNS, json::AROUND_RUNS)
        .ok_or(RenderError::NoPlace)
}

fn run(report: &Report) -> Run {
    let reported = reported(report);
    Run {
        tool: Tool {
            driver: Driver {
                name: "runner",
                version: escape::visible(&report.runner.version),
                semantic_version: escape::visible(&report.runner.version),
                rules: report.checks.iter().map(rule).collect(),
            },
        },
        automation_details: AutomationDetails {
            id: category(report),
        },
        invocations: [invocation(report, &reported)],
        original_uri_base_ids: UriBases {
            source_root: UriBase {
                description: text("The directory in which the runner was started."),
            },
        },
        artifacts: artifacts(report),
        results: reported.iter().map(|one| result(report, one)).collect(),
        properties: properties(report),
    }
}

/// A finding that becomes a SARIF result.
struct Reported<'r> {
    finding: &'r Finding,
    /// Index of the rule.
    index: usize,
    decision: Decision,
}

/// Outcome of a reported check. The result's kind is always `fail`.
///
/// The standard has `open` for undecided results, but those have no level, and viewers hide them.
enum Decision {
    /// The check failed in a sound run.
    Failed,
    /// The check has no result, for this reason.
    Undecided(String),
}

impl Reported<'_> {
    fn undecided(&self) -> Option<&str> {
        match &self.decision {
            Decision::Failed => None,
            Decision::Undecided(because) => Some(because),
        }
    }
}

/// Selects the findings that become results.
fn reported(report: &Report) -> Vec<Reported<'_>> {
    let unsound = unsound_reason(report);
    let any_made = report.evidence.exit != Exit::NotStarted
        && report
            .checks
            .iter()
            .any(|one| one.status != Status::Skipped);
    let decision = |finding: &Finding| match (finding.status, &unsound) {
        (Status::Passed | Status::Skipped, None) => None,
        // The case does not require the check, or its object does not exist.
        (Status::Skipped, Some(_)) if any_made => None,
        (Status::Failed, None) => Some(Decision::Failed),
        (Status::Errored, _) => Some(Decision::Undecided(because(finding))),
        (Status::Failed | Status::Passed | Status::Skipped, Some(reason)) => {
            Some(Decision::Undecided(reason.clone()))
        }
    };
    let made = report.checks.iter().enumerate();
    let reported = made.filter_map(|(index, finding)| {
        Some(Reported {
            finding,
            index,
            decision: decision(finding)?,
        })
    });
    reported.collect()
}

/// Returns the reason why the whole run does not judge the client, if it does not.
fn unsound_reason(report: &Report) -> Option<String> {
    if report.verdict != Verdict::Errored {
        return None;
    }
    let unsound = report.unsound.first().cloned();
    unsound.or_else(|| {
        let any_errored = report
            .checks
            .iter()
            .any(|one| one.status == Status::Errored);
        (!any_errored).then(|| "no check was made".to_owned())
    })
}

fn because(finding: &Finding) -> String {
    let because = finding.because.clone();
    because.unwrap_or_else(|| "evidence is missing".to_owned())
}

fn rule(finding: &Finding) -> Rule {
    let meaning = finding::meaning(&finding.id).sentence;
    let asked = format!("Asked by: {}.", phrases::asked_by(&finding.asked_by));
    Rule {
        id: finding.id.to_string(),
        short_description: text(meaning),
        full_description: text(&format!("{meaning} {asked}")),
        help: text(&format!(
            "{meaning} {asked} The location of the result holds the expectation; the other reports of the \
             runner show the evidence."
        )),
        default_configuration: Configuration {
            level: Level::Error,
        },
        properties: RuleProperties {
            tags: [area(&finding.id).to_owned()],
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

fn result(report: &Report, reported: &Reported<'_>) -> log::Finding {
    let finding = reported.finding;
    let (file, lines) = locations(report, finding);
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
        rule_id: finding.id.to_string(),
        rule_index: reported.index,
        kind: "fail",
        level: match reported.decision {
            Decision::Failed => Level::Error,
            Decision::Undecided(_) => Level::Warning,
        },
        message: message(reported),
        locations: lines.into_iter().map(location).collect(),
        partial_fingerprints: fingerprints(report, finding),
        properties: FindingProperties {
            status: finding.status.word(),
            accept: finding.accept.clone(),
        },
    }
}

/// Builds the message of a result, a sentence on each line, because some viewers show the first line only.
fn message(reported: &Reported<'_>) -> Text {
    let finding = reported.finding;
    let mut lines = Vec::new();
    if let Some(because) = reported.undecided() {
        lines.push(literal(&not_decided(because)));
    }
    lines.push(match finding.status {
        Status::Failed | Status::Errored => literal(&sentence(&finding.message)),
        // The message of such a check states a result that an unsound run cannot prove.
        Status::Passed | Status::Skipped => {
            format!("Asked: {}", literal(finding::meaning(&finding.id).sentence))
        }
    });
    let line = |label, part: &str| format!("{label}: '{}'.", literal(part));
    let part = |label, part: &Option<String>| part.as_deref().map(|part| line(label, part));
    lines.extend(part("Object", &finding.object));
    lines.extend(part("Expected", &finding.expected));
    let mut found = phrases::found(finding).into_iter();
    lines.extend(found.next().map(|first| line("Found", first)));
    lines.extend(found.map(|drift| line("Drift", drift)));
    Text {
        text: lines.join("\n"),
    }
}

fn not_decided(because: &str) -> String {
    sentence(&format!("Not decided: {because}"))
}

/// Ends a message with a full stop, as viewers expect.
fn sentence(words: &str) -> String {
    format!("{}.", words.trim_end_matches('.'))
}

/// Text without SARIF markup.
fn text(words: &str) -> Text {
    Text {
        text: literal(words),
    }
}

fn invocation(report: &Report, reported: &[Reported<'_>]) -> Invocation {
    let (start, end) = report.evidence.wall;
    Invocation {
        execution_successful: report.verdict != Verdict::Errored,
        // An audit exits with the exit code of its program.
        exit_code: match report.purpose {
            Purpose::Judge => Some(report.verdict.exit_code()),
            Purpose::Audit => None,
        },
        exit_code_description: match report.purpose {
            Purpose::Judge if phrases::is_cause(report) => escape::visible(&format!(
                "{}; the client: {}",
                report.verdict.word(),
                phrases::exit(&report.evidence)
            )),
            Purpose::Judge => report.verdict.word().to_owned(),
            Purpose::Audit => escape::visible(&format!(
                "{}; the program: {}",
                headline(report).line(),
                phrases::exit(&report.evidence)
            )),
        },
        start_time_utc: time::rfc3339(start),
        end_time_utc: time::rfc3339(end),
        tool_execution_notifications: notifications(report, reported),
    }
}

/// Notifications: reasons of an unsound run, errored checks, and leftovers that were not judged.
fn notifications(report: &Report, reported: &[Reported<'_>]) -> Vec<Notification> {
    let reasons = report.unsound.iter();
    let lost = reasons.map(|reason| Notification {
        level: Level::Error,
        message: text(&sentence(reason)),
        associated_rule: None,
    });
    let errored = reported.iter().filter_map(|one| {
        let because = one.undecided()?;
        Some(Notification {
            level: Level::Error,
            message: text(&not_decided(because)),
            associated_rule: Some(RuleReference {
                id: one.finding.id.to_string(),
                index: one.index,
            }),
        })
    });
    let left = report.checks.iter().enumerate();
    let left = left.filter(|(_, finding)| phrases::is_leftover(finding));
    let left = left.map(|(index, finding)| Notification {
        level: Level::Note,
        message: text(&format!(
            "Not judged: {} Found: '{}'.",
            sentence(&because(finding)),
            phrases::found(finding).join("; ")
        )),
        associated_rule: Some(RuleReference {
            id: finding.id.to_string(),
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
        findings: report.findings().map(|found| found.count),
        tier: report.tier.word(),
        case: escape::visible(&report.case.name),
        case_sha256: report.case.origin.sha256.clone(),
        client: escape::visible(&client.program),
        client_sha256: client.content.sha256().map(str::to_owned),
        client_from: client.content.from().word(),
        profile: profile.map(|profile| escape::visible(&profile.name)),
        runner_commit: escape::visible(&report.runner.commit),
        runner_build_id: escape::visible(&report.runner.build_id),
    }
}
