//! Claims of a run, each proved, seen, refuted or open.
//!
//! Claims about requests and about attempts are separate, because neither follows from the other.

use model::evidence::Before;
use model::expected;
use model::finding::Status;
use model::report::{Purpose, Report};
use model::text::count;

use super::tone::Tone;

/// Limits of every run, a sentence each.
const NEVER_PROVED: [&str; 4] = [
    "A client that recognises the sandbox, or waits longer, may behave otherwise.",
    "What the client says inside the permitted POST is not judged.",
    "The kernel, the runner and the stub are trusted.",
    "Production destinations are not tested.",
];

/// Strength of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Strength {
    /// The evidence proves the claim for any client.
    Proved,
    /// The claim holds for this run only.
    Seen,
    /// The evidence contradicts the claim.
    Refuted,
    /// The evidence does not decide.
    NotProved,
}

impl Strength {
    /// Returns the word and its tone.
    pub(super) fn word(self) -> (&'static str, Tone) {
        match self {
            Self::Proved => ("proved", Tone::Good),
            Self::Seen => ("seen", Tone::Seen),
            Self::Refuted => ("not so", Tone::Bad),
            Self::NotProved => ("not proved", Tone::Doubtful),
        }
    }
}

/// A claim with its strength.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) strength: Strength,
    pub(super) text: String,
}

/// Returns the claims of a run: refuted ones first, then proved, seen and open ones.
pub(super) fn claims(report: &Report) -> Vec<Claim> {
    let mut claims: Vec<Claim> = match report.purpose {
        Purpose::Judge => {
            let all = [served(report), impossible(report), seen(report)];
            all.into_iter().chain(order(report)).collect()
        }
        // An audit has no case, so no request is an unexpected one.
        Purpose::Audit => [impossible(report), seen(report)].into(),
    };
    claims.sort_by_key(|claim| match claim.strength {
        Strength::Refuted => 0,
        Strength::Proved => 1,
        Strength::Seen => 2,
        Strength::NotProved => 3,
    });
    claims
}

/// Returns the claims of a run, then the limits of every run and of this one, which are open.
pub(super) fn with_limits(report: &Report) -> Vec<Claim> {
    let limits = further_not_proved(report).map(|text| Claim {
        strength: Strength::NotProved,
        text: text.to_owned(),
    });
    claims(report).into_iter().chain(limits).collect()
}

/// Returns the sentences of the report's `not_proved`: open claims, then limits.
pub(super) fn not_proved(report: &Report) -> Vec<String> {
    let open = with_limits(report).into_iter();
    open.filter(|claim| claim.strength == Strength::NotProved)
        .map(|claim| claim.text)
        .collect()
}

/// Returns the limits of every run, then those of this isolation and of this run. Claims are not included.
fn further_not_proved(report: &Report) -> impl Iterator<Item = &str> {
    let this_run = report.not_proved.iter().map(String::as_str);
    NEVER_PROVED.into_iter().chain(this_run)
}

/// Claims that the stub served no other request.
fn served(report: &Report) -> Claim {
    let request_check = match check_status(report, "requests/first-and-only") {
        None | Some(Status::Skipped) => check_status(report, "requests/sequence"),
        counted => counted,
    };
    let connection_check = check_status(report, "requests/connections");
    let counts = format!(
        "{} on {}",
        count(report.evidence.requests.len(), "request"),
        count(report.evidence.connections.len(), "connection")
    );
    let requests = report.evidence.requests.iter();
    let expected = requests
        .filter(|request| request.expected.is_some())
        .count();
    let (strength, text) = match (request_check, connection_check) {
        (Some(Status::Passed), Some(Status::Passed)) if expected > 0 => (
            Strength::Proved,
            format!("No other request was served but {expected} that the profile names: {counts}."),
        ),
        (Some(Status::Passed), Some(Status::Passed)) => (
            Strength::Proved,
            format!("No other request was served: {counts}."),
        ),
        (Some(Status::Failed), _) | (_, Some(Status::Failed)) => (
            Strength::Refuted,
            format!("No other request was served: {counts}, see the findings."),
        ),
        _ => (
            Strength::NotProved,
            format!("No other request was served: {counts}, evidence incomplete."),
        ),
    };
    Claim { strength, text }
}

/// Claims that the kernel refuses other attempts.
fn impossible(report: &Report) -> Claim {
    let (strength, reason) = if report.kernel_refuses {
        (
            Strength::Proved,
            "in the client's place the kernel itself refused every network probe.",
        )
    } else {
        (Strength::NotProved, "the canary does not show it.")
    };
    Claim {
        strength,
        text: format!("Other attempts were impossible: {reason}"),
    }
}

/// Claims that the ledger has no other attempt.
///
/// The claim is seen at most: the client may behave otherwise in another run.
fn seen(report: &Report) -> Claim {
    let finding = report
        .checks
        .iter()
        .find(|finding| finding.id == "outbound/no-attempts");
    let limits = report.evidence.limits_of_ledger().join(" ");
    let (strength, reason) = match finding.map(|finding| finding.status) {
        Some(Status::Failed) => (Strength::Refuted, "see the findings.".to_owned()),
        Some(Status::Passed) => {
            let groups = expected::explained_groups(&report.evidence);
            let allowed = groups.iter().filter(|group| group.reason.is_some());
            let exception = match allowed.count() {
                0 => String::new(),
                kinds => format!(" but {} that the profile names", count(kinds, "kind")),
            };
            let text = if limits.is_empty() {
                format!("the ledger is complete and has none{exception}.")
            } else {
                format!("the ledger has none{exception}. {limits}")
            };
            (Strength::Seen, text)
        }
        Some(Status::Skipped) => (
            Strength::NotProved,
            "the client was never started.".to_owned(),
        ),
        Some(Status::Errored) | None => {
            let text = format!("the ledger is incomplete. {limits}");
            (Strength::NotProved, text.trim_end().to_owned())
        }
    };
    Claim {
        strength,
        text: format!("No other attempt was seen: {reason}"),
    }
}

/// Claims that the startup records came before the POST. Returns `None` if the order is not known.
fn order(report: &Report) -> Option<Claim> {
    if check_status(report, "records/init-before-post") != Some(Status::Passed) {
        return None;
    }
    let (strength, moment) = match report.evidence.startup_before()? {
        Before::Connect => (
            Strength::Proved,
            "before the connection of the POST was made.",
        ),
        Before::Post => (
            Strength::Seen,
            "within 50 ms of the first byte of the POST.",
        ),
        Before::None => return None,
    };
    Some(Claim {
        strength,
        text: format!("The init and status records were on standard output {moment}"),
    })
}

fn check_status(report: &Report, id: &str) -> Option<Status> {
    report
        .checks
        .iter()
        .find(|finding| finding.id == id)
        .map(|finding| finding.status)
}

#[cfg(test)]
mod tests;
