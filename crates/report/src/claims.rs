//! What a run proves, what it merely saw, and what it leaves open. The claims about requests and attempts are kept
//! apart: none of them follows from another.

use model::evidence::Before;
use model::expected;
use model::finding::Status;
use model::report::{Purpose, Report};
use model::text::count;

/// What no run proves.
const NEVER_PROVED: [&str; 4] = [
    "A client that recognises the sandbox, or waits longer, may behave otherwise.",
    "What the client says inside the permitted POST is not judged.",
    "The kernel, the runner and the stub are trusted.",
    "Production destinations are not tested.",
];

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

/// What the run is about: each claim with its standing, what is refuted first, then the proved ones.
pub(super) fn claims(report: &Report) -> Vec<Claim> {
    let mut claims: Vec<Claim> = match report.purpose {
        Purpose::Judge => {
            let all = [served(report), impossible(report), seen(report)];
            all.into_iter().chain(order(report)).collect()
        }
        // Nobody said what would be an other request.
        Purpose::Audit => [impossible(report), seen(report)].into(),
    };
    claims.sort_by_key(|claim| match claim.standing {
        Standing::Refuted => 0,
        Standing::Proved => 1,
        Standing::Seen => 2,
        Standing::NotProved => 3,
    });
    claims
}

/// The sentences of the report's `not_proved`: the claims that this run leaves open, and [`further_not_proved`].
pub(super) fn not_proved(report: &Report) -> Vec<String> {
    let open = claims(report)
        .into_iter()
        .filter(|claim| claim.standing == Standing::NotProved)
        .map(|claim| claim.text);
    open.chain(further_not_proved(report).map(str::to_owned))
        .collect()
}

/// What no run proves, and what this tier or run does not, beside its claims.
pub(super) fn further_not_proved(report: &Report) -> impl Iterator<Item = &str> {
    let of_this_run = report.not_proved.iter().map(String::as_str);
    NEVER_PROVED.into_iter().chain(of_this_run)
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
    let requests = report.evidence.requests.iter();
    let expected = requests
        .filter(|request| expected::is_expected_side_request(&report.known.side_requests, request))
        .count();
    let (standing, text) = match (counting, carried) {
        (Some(Status::Passed), Some(Status::Passed)) if expected > 0 => (
            Standing::Proved,
            format!("No other request was served but {expected} that the profile names: {counts}."),
        ),
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
    let (standing, ground) = if report.kernel_refuses {
        (
            Standing::Proved,
            "in the client's place the kernel itself refused every network canary.",
        )
    } else {
        (Standing::NotProved, "the canaries do not show it.")
    };
    Claim {
        standing,
        text: format!("Other attempts were impossible: {ground}"),
    }
}

/// Never proved: what the client did not try in this run, it may try in another.
fn seen(report: &Report) -> Claim {
    let finding = report
        .checks
        .iter()
        .find(|finding| finding.id == "outbound/no-attempts");
    let allowed = expected::attempt_groups(&report.known.attempts, &report.evidence)
        .iter()
        .filter(|group| group.reason.is_some())
        .count();
    let limits = report.evidence.limits_of_ledger().join(" ");
    let (standing, ground) = match finding.map(|finding| finding.status) {
        Some(Status::Failed) => {
            let place = match report.purpose {
                Purpose::Judge => "see the findings.",
                Purpose::Audit => "see the attempts.",
            };
            (Standing::Refuted, place.to_owned())
        }
        Some(Status::Passed) => {
            let but = match allowed {
                0 => String::new(),
                _ => format!(" but {} that the profile names", count(allowed, "kind")),
            };
            let text = if limits.is_empty() {
                format!("the ledger is complete and has none{but}.")
            } else {
                format!("the ledger has none{but}. {limits}")
            };
            (Standing::Seen, text)
        }
        Some(Status::Skipped) => (
            Standing::NotProved,
            "the client was never started.".to_owned(),
        ),
        Some(Status::Errored) | None => {
            let text = format!("the ledger is incomplete. {limits}");
            (Standing::NotProved, text.trim_end().to_owned())
        }
    };
    Claim {
        standing,
        text: format!("No other attempt was seen: {ground}"),
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
        Before::Post => (
            Standing::Seen,
            "within 50 ms of the first byte of the POST.",
        ),
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

#[cfg(test)]
mod tests;
