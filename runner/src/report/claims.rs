//! What a run proves, what it merely saw, and what it leaves open. The claims about requests and attempts are kept
//! apart: none of them follows from another.

use crate::check::count;
use crate::evidence::Before;
use crate::verdict::Status;

use super::Report;

/// What no run proves.
const NEVER_PROVED: [&str; 4] = [
    "A client that recognises the sandbox, or waits longer, may behave otherwise.",
    "What the client says inside the permitted POST is not judged.",
    "The kernel, the runner and the stub are trusted.",
    "Production destinations are not tested.",
];
const NO_ATTEMPTS: &str = "No other attempt was seen: attempts are not recorded in this version.";

/// How far a claim stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// The evidence shows it, whatever the client does.
    Proved,
    /// It was observed.
    Seen,
    /// The evidence shows the contrary.
    Refuted,
    /// It is open.
    NotProved,
}

/// A claim, and how far it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) standing: Standing,
    pub(super) text: String,
}

/// What the run is about: each claim with its standing, the proved ones first.
pub(super) fn claims(report: &Report) -> Vec<Claim> {
    let mut claims: Vec<Claim> = [served(report), impossible(report)].into();
    claims.extend(order(report));
    claims.push(Claim {
        standing: Standing::NotProved,
        text: NO_ATTEMPTS.to_owned(),
    });
    claims.sort_by_key(|claim| match claim.standing {
        Standing::Refuted => 0,
        Standing::Proved => 1,
        Standing::Seen => 2,
        Standing::NotProved => 3,
    });
    claims
}

/// The sentences of the report's `not_proved`: what no run proves, what this version leaves open, what this run does.
pub(super) fn not_proved(report: &Report) -> Vec<&str> {
    let mut sentences = NEVER_PROVED.to_vec();
    sentences.push(NO_ATTEMPTS);
    sentences.extend(report.not_proved.iter().map(String::as_str));
    sentences
}

/// The same without the sentence that [`claims`] has already.
pub(super) fn further_not_proved(report: &Report) -> impl Iterator<Item = &str> {
    not_proved(report)
        .into_iter()
        .filter(|sentence| *sentence != NO_ATTEMPTS)
}

fn served(report: &Report) -> Claim {
    let counting = match status(report, "requests/first-and-only") {
        None | Some(Status::Skipped) => status(report, "requests/sequence"),
        counted => counted,
    };
    let carried = status(report, "requests/connections");
    let counts = format!(
        "{} on {}",
        count(report.evidence.requests.len(), "request"),
        count(report.evidence.connections.len(), "connection")
    );
    let (standing, text) = match (counting, carried) {
        (Some(Status::Passed), Some(Status::Passed)) => (
            Standing::Proved,
            format!("No other request was served: {counts}."),
        ),
        (Some(Status::Failed), _) | (_, Some(Status::Failed)) => (
            Standing::Refuted,
            format!("No other request was served: {counts}, see the findings."),
        ),
        _ => (
            Standing::NotProved,
            format!("No other request was served: {counts}, evidence incomplete."),
        ),
    };
    Claim { standing, text }
}

fn impossible(report: &Report) -> Claim {
    let (standing, ground) = match status(report, "outbound/denied") {
        Some(Status::Passed) => (
            Standing::Proved,
            "in the client's place the kernel itself refused every network canary.",
        ),
        _ => (Standing::NotProved, "the canaries do not show it."),
    };
    Claim {
        standing,
        text: format!("Other attempts were impossible: {ground}"),
    }
}

fn order(report: &Report) -> Option<Claim> {
    if status(report, "records/init-before-post") != Some(Status::Passed) {
        return None;
    }
    let (standing, moment) = match report.evidence.startup_before()? {
        Before::Connect => (
            Standing::Proved,
            "before the connection of the POST was made.",
        ),
        Before::Post => (Standing::Seen, "at the first byte of the POST."),
        Before::None => return None,
    };
    Some(Claim {
        standing,
        text: format!("The init and status records were on standard output {moment}"),
    })
}

fn status(report: &Report, id: &str) -> Option<Status> {
    report
        .checks
        .iter()
        .find(|finding| finding.id == id)
        .map(|finding| finding.status)
}
