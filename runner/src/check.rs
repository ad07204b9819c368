//! Compares the evidence of one run with what its case expects: a finding for each check, and the verdict.
//!
//! Owns the stable ids, their order, the section of the specification behind each and the evidence that each
//! needs. Everything in here is pure: it must not know how evidence was collected nor how a report looks.
//!
//! A finding has four ends. *Passed* and *failed* are what the evidence shows. *Errored* is evidence that a
//! check needs and that is missing. *Skipped* is an object that is not there (no preflight, no message request:
//! the checks that count them fail instead) or a question that the case does not ask.

use crate::case::Case;
use crate::evidence::{CanaryStatus, Evidence, Exit, GapKind, LayerNeed, LayerStatus};
use crate::profile::Profile;
use crate::verdict::{Finding, Status, Verdict};

use outcome::{Deviation, NotPassed, Outcome, Run};

pub use attempts::{AttemptGroup, attempt_groups, reason_for_attempt, reason_for_name};
pub use files::reason_for_file;
pub(crate) use outbound::kernel_refuses;
pub(crate) use outcome::count;

mod attempts;
mod body;
mod files;
mod headers;
mod outbound;
mod outcome;
mod process;
mod records;
mod requests;
mod secrets;

#[cfg(test)]
mod tests;

/// One check.
struct Check {
    id: &'static str,
    /// Section of the specification.
    spec: &'static str,
    /// A gap of one of these kinds makes it errored.
    needs: &'static [GapKind],
    judges: Judges,
    run: fn(&Run) -> Outcome,
}

/// Whose behaviour a check judges.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Judges {
    /// The client's: skipped when it was never started.
    Client,
    /// The sandbox's, or the run's own.
    Sandbox,
}

const REQUESTS: &[GapKind] = &[GapKind::Requests];
const RECORDS: &[GapKind] = &[GapKind::Records];
const BOTH: &[GapKind] = &[GapKind::Requests, GapKind::Records];
const FILES: &[GapKind] = &[GapKind::Files];
const PROCESSES: &[GapKind] = &[GapKind::Processes];
const ORDER: &[GapKind] = &[GapKind::Order, GapKind::Requests, GapKind::Records];
const ATTEMPTS: &[GapKind] = &[GapKind::Attempts];
/// The canaries, and the ledger: that nothing was let through is read there.
const OUTBOUND: &[GapKind] = &[GapKind::Isolation, GapKind::Attempts];
/// The credential is searched in whatever was collected: where that is incomplete, so is the search.
const SEARCHED: &[GapKind] = &[
    GapKind::Secrets,
    GapKind::Requests,
    GapKind::Records,
    GapKind::Stderr,
    GapKind::Files,
];

#[rustfmt::skip]
const CHECKS: [Check; 36] = [
    client("requests/first-and-only",           "4.2", REQUESTS,  requests::first_and_only),
    client("requests/sequence",                 "4.1", REQUESTS,  requests::sequence),
    client("requests/post-count",               "4.2", REQUESTS,  requests::post_count),
    client("requests/connections",              "4.2", REQUESTS,  requests::connections),
    client("requests/query",                    "4.2", REQUESTS,  requests::query),
    client("headers/api-key-present",           "5",   REQUESTS,  headers::api_key_present),
    client("headers/authorization-absent",      "5",   REQUESTS,  headers::authorization_absent),
    client("headers/user-agent",                "2.2", BOTH,      headers::user_agent),
    client("headers/beta-families",             "2.2", REQUESTS,  headers::beta_families),
    client("headers/preflight-unauthenticated", "5",   REQUESTS,  headers::preflight_unauthenticated),
    client("headers/nothing-else",              "2.2", REQUESTS,  headers::nothing_else),
    client("body/fields",                       "2.1", REQUESTS,  body::fields),
    client("body/messages-blocks",              "2.1", REQUESTS,  body::messages_blocks),
    client("body/system-blocks",                "2.1", REQUESTS,  body::system_blocks),
    client("body/cache-control",                "2.1", REQUESTS,  body::cache_control),
    client("body/tools-empty",                  "2.1", REQUESTS,  body::tools_empty),
    client("body/stream",                       "2.1", REQUESTS,  body::stream),
    client("records/json-lines",                "2.3", RECORDS,   records::json_lines),
    client("records/sequence",                  "6.2", BOTH,      records::sequence),
    client("records/init-fields",               "2.3", RECORDS,   records::init_fields),
    client("records/tools-empty",               "2.3", RECORDS,   records::tools_empty),
    client("records/init-before-post",          "6.2", ORDER,     records::init_before_post),
    client("records/events-match-provider",     "6.2", BOTH,      records::events_match_provider),
    client("records/assistant-text",            "2.3", BOTH,      records::assistant_text),
    client("records/assistant-position",        "6.2", RECORDS,   records::assistant_position),
    client("records/result-success",            "2.3", RECORDS,   records::result_success),
    client("files/state-file",                  "2.4", FILES,     files::state_file),
    client("files/backup",                      "2.4", FILES,     files::backup),
    client("files/modes",                       "2.4", FILES,     files::modes),
    client("files/nothing-else",                "2.4", FILES,     files::nothing_else),
    client("files/no-transcript",               "2.4", FILES,     files::no_transcript),
    client("secrets/credential-not-written",    "5",   SEARCHED,  secrets::credential_not_written),
    sandbox("outbound/denied",                  "1",   OUTBOUND,  outbound::denied),
    client("outbound/no-attempts",              "1",   ATTEMPTS,  attempts::no_attempts),
    sandbox("process/exit-zero",                "1",   PROCESSES, process::exit_zero),
    client("process/no-survivors",              "1",   PROCESSES, process::no_survivors),
];

/// The stable ids of all checks, in the order of every report.
pub fn ids() -> impl Iterator<Item = &'static str> {
    CHECKS.iter().map(|check| check.id)
}

/// Makes every check: one finding for each id, in the order of [`ids`].
pub fn check(case: &Case, profile: &Profile, evidence: &Evidence) -> Vec<Finding> {
    let run = Run {
        case,
        profile,
        evidence,
    };
    CHECKS.iter().map(|check| check.make(&run)).collect()
}

/// The one word for the run.
///
/// *Errored* as soon as the run itself is unsound, whatever the checks say: a client is not to blame for what it
/// did in a broken sandbox or against a lost stub. Then *failed*, then *errored*; *passed* is what is left, and
/// only if something passed.
pub fn verdict(findings: &[Finding], evidence: &Evidence) -> Verdict {
    let any = |status| findings.iter().any(|finding| finding.status == status);
    if !unsound(evidence).is_empty() {
        Verdict::Errored
    } else if any(Status::Failed) {
        Verdict::Failed
    } else if any(Status::Errored) || !any(Status::Passed) {
        Verdict::Errored
    } else {
        Verdict::Passed
    }
}

/// Why the run itself says nothing: a layer or canary lost, an instrument lost, no run to its own end or a limit.
/// One phrase each; empty for a sound run.
pub fn unsound(evidence: &Evidence) -> Vec<String> {
    let mut reasons = Vec::new();
    if evidence.layers.is_empty() {
        reasons.push("no layer of the sandbox was read back".to_owned());
    }
    let lost = evidence
        .layers
        .iter()
        .filter(|layer| layer.need == LayerNeed::Required && layer.status != LayerStatus::Enforced);
    reasons.extend(lost.map(|layer| {
        format!(
            "required layer not enforced: {} ({})",
            layer.name, layer.detail
        )
    }));
    let leaks = evidence
        .canaries
        .iter()
        .filter(|canary| canary.status == CanaryStatus::NotHeld);
    reasons.extend(leaks.map(|canary| format!("canary did not hold: {}", canary.name)));
    reasons.extend(
        outbound::let_through(evidence)
            .map(|attempt| format!("the supervisor let a call through: {}", attempt.target())),
    );
    let instruments = [GapKind::Isolation, GapKind::Requests];
    let gaps = evidence
        .gaps
        .iter()
        .filter(|gap| instruments.contains(&gap.what));
    reasons.extend(gaps.map(|gap| gap.detail.clone()));
    match evidence.exit {
        Exit::NotStarted => reasons.push("the client was never started".to_owned()),
        Exit::Interrupted => reasons.push("the run was interrupted".to_owned()),
        Exit::Code(_)
        | Exit::Signal(_)
        | Exit::Timeout(_)
        | Exit::OutputLimit
        | Exit::RequestLimit => {}
    }
    reasons
}

const fn client(
    id: &'static str,
    spec: &'static str,
    needs: &'static [GapKind],
    run: fn(&Run) -> Outcome,
) -> Check {
    Check {
        id,
        spec,
        needs,
        judges: Judges::Client,
        run,
    }
}

const fn sandbox(
    id: &'static str,
    spec: &'static str,
    needs: &'static [GapKind],
    run: fn(&Run) -> Outcome,
) -> Check {
    Check {
        judges: Judges::Sandbox,
        ..client(id, spec, needs, run)
    }
}

impl Check {
    fn make(&self, run: &Run) -> Finding {
        if self.judges == Judges::Client && run.evidence.exit == Exit::NotStarted {
            return self.skipped("the client was never started".to_owned());
        }
        let outcome = (self.run)(run);
        match self.missing(run.evidence) {
            None => self.finding(outcome),
            Some(because) => self.undecided(outcome, because),
        }
    }

    /// Why the evidence for this check is incomplete.
    fn missing(&self, evidence: &Evidence) -> Option<String> {
        if let Some(gap) = evidence.gap(self.needs) {
            return Some(gap.detail.clone());
        }
        (self.judges == Judges::Client && evidence.exit == Exit::Interrupted)
            .then(|| "the run was interrupted".to_owned())
    }

    fn finding(&self, outcome: Outcome) -> Finding {
        match outcome {
            Ok(message) => self.blank(Status::Passed, message),
            Err(NotPassed::Failed(deviation)) => self.deviating(Status::Failed, *deviation),
            Err(NotPassed::Undecided(deviation, because)) => Finding {
                because: Some(because),
                ..self.deviating(Status::Errored, *deviation)
            },
            Err(NotPassed::Absent(because) | NotPassed::NotAsked(because)) => self.skipped(because),
        }
    }

    /// The finding where evidence is missing: never passed, but a deviation that is there already is told.
    fn undecided(&self, outcome: Outcome, because: String) -> Finding {
        let finding = match outcome {
            Ok(_) | Err(NotPassed::Absent(_)) => self.blank(
                Status::Errored,
                "The evidence for this check is incomplete.".to_owned(),
            ),
            Err(NotPassed::Failed(deviation) | NotPassed::Undecided(deviation, _)) => {
                self.deviating(Status::Errored, *deviation)
            }
            Err(NotPassed::NotAsked(because)) => return self.skipped(because),
        };
        Finding {
            because: Some(because),
            ..finding
        }
    }

    fn deviating(&self, status: Status, deviation: Deviation) -> Finding {
        Finding {
            object: deviation.object,
            expected: deviation.expected,
            found: deviation.found,
            ..self.blank(status, deviation.message)
        }
    }

    fn skipped(&self, because: String) -> Finding {
        Finding {
            because: Some(because),
            ..self.blank(Status::Skipped, "Not checked.".to_owned())
        }
    }

    fn blank(&self, status: Status, message: String) -> Finding {
        Finding {
            id: self.id,
            status,
            message,
            object: None,
            expected: None,
            found: None,
            because: None,
            spec: self.spec,
        }
    }
}
