//! Compares the evidence of one run with the expectations of its case: a finding for each check, and the verdict.
//!
//! Owns the section of the specification behind each check, and the evidence that each needs. Ids and order are those
//! of [`model::finding::ids`].
//! Pure: does not know how evidence is collected or how a report looks.
//!
//! A finding has one of four statuses:
//! - *failed*: the evidence shows a deviation, even if other evidence is lost.
//! - *passed*: all evidence that the check needs is there and shows no deviation.
//! - *errored*: evidence that the check needs is missing.
//! - *skipped*: the object is absent (a preflight, a message request; other checks count them), the case does not ask,
//!   or the object is a leftover of a client that the runner ended.

use Rule::{Any, Case as Asked};
use model::case::Expectations;
use model::evidence::{CanaryStatus, Evidence, Exit, GapKind, LayerNeed, LayerStatus};
use model::finding::{
    AskedBy, ENDED_BY_RUNNER, Finding, INTERRUPTED, NEVER_STARTED, Status, Verdict,
};
use model::profile::{ExpectedAttempt, Files};

use outcome::{Deviation, EffectOfEnd, JudgedRun, NotPassed, Outcome};

pub(crate) use files::is_of as is_file_of;
pub use outbound::kernel_refuses;

mod attempts;
mod body;
mod files;
mod headers;
mod init_record;
mod outbound;
mod outcome;
mod process;
mod record_rules;
mod records;
mod requests;
mod secrets;

#[cfg(test)]
mod tests;

/// One check.
struct Check {
    id: &'static str,
    /// Section of the specification that asks for the check, or [`CASE`].
    spec: &'static str,
    /// Kinds of gaps that make the check errored.
    needs: &'static [GapKind],
    judges: Judges,
    rule: Rule,
}

/// Function of a check.
#[derive(Clone, Copy)]
enum Rule {
    /// Check of a client against a case.
    Case(fn(&JudgedRun) -> Outcome),
    /// Check of any program, an audited one too. Needs the expected attempts only.
    Any(fn(&Evidence, Expected<'_>) -> Outcome),
}

/// Expectations of the attempts of any program.
#[derive(Clone, Copy)]
struct Expected<'a> {
    /// Attempts that are no finding.
    attempts: &'a [ExpectedAttempt],
    /// Header of the message that carries the credential; `None` for all known headers.
    credential: Option<&'a str>,
    /// Files of the case, of which some may hold the credential; `None` without rules.
    files: Option<&'a Files>,
    /// The ledger must cover every class of attempts.
    complete_ledger: bool,
}

/// Subject of a check.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Judges {
    /// The client. Such checks are skipped if the client was never started.
    Client,
    /// The sandbox, or the run itself.
    Sandbox,
}

const REQUESTS: &[GapKind] = &[GapKind::Requests];
const RECORDS: &[GapKind] = &[GapKind::Records];
const BOTH: &[GapKind] = &[GapKind::Requests, GapKind::Records];
const FILES: &[GapKind] = &[GapKind::Files];
const PROCESSES: &[GapKind] = &[GapKind::Processes];
/// The ledger, which lists the programs, and its cut.
const PROGRAMS: &[GapKind] = &[GapKind::Processes, GapKind::Attempts, GapKind::Cut];
const ORDER: &[GapKind] = &[GapKind::Order, GapKind::Requests, GapKind::Records];
const ATTEMPTS: &[GapKind] = &[GapKind::Attempts];
/// The canary, and the ledger, which shows the calls that were let through.
const OUTBOUND: &[GapKind] = &[GapKind::Isolation, GapKind::Attempts];
/// All evidence that is searched for the credential.
const SEARCHED: &[GapKind] = &[
    GapKind::Secrets,
    GapKind::Requests,
    GapKind::Records,
    GapKind::Stderr,
    GapKind::Files,
];

/// Source of an expectation that only a case can have.
const CASE: &str = "case";

#[rustfmt::skip]
const CHECKS: [Check; 40] = [
    client("requests/first-and-only",           "4.2", REQUESTS,  Asked(requests::first_and_only)),
    client("requests/sequence",                 "4.1", REQUESTS,  Asked(requests::sequence)),
    client("requests/post-count",               "4.2", REQUESTS,  Asked(requests::post_count)),
    client("requests/connections",              "4.2", REQUESTS,  Asked(requests::connections)),
    client("requests/query",                    "4.2", REQUESTS,  Asked(requests::query)),
    client("headers/api-key-present",           "5",   REQUESTS,  Asked(headers::api_key_present)),
    client("headers/authorization-absent",      "5",   REQUESTS,  Asked(headers::authorization_absent)),
    client("headers/user-agent",                "2.2", BOTH,      Asked(headers::user_agent)),
    client("headers/beta-families",             "2.2", REQUESTS,  Asked(headers::beta_families)),
    client("headers/preflight-unauthenticated", "5",   REQUESTS,  Asked(headers::preflight_unauthenticated)),
    client("headers/nothing-else",              "2.2", REQUESTS,  Asked(headers::nothing_else)),
    client("headers/rules",                     CASE,  REQUESTS,  Asked(headers::rules)),
    client("body/fields",                       "2.1", REQUESTS,  Asked(body::fields)),
    client("body/messages-blocks",              "2.1", REQUESTS,  Asked(body::messages_blocks)),
    client("body/system-blocks",                "2.1", REQUESTS,  Asked(body::system_blocks)),
    client("body/cache-control",                "2.1", REQUESTS,  Asked(body::cache_control)),
    client("body/tools-empty",                  "2.1", REQUESTS,  Asked(body::tools_empty)),
    client("body/stream",                       "2.1", REQUESTS,  Asked(body::stream)),
    client("records/json-lines",                "2.3", RECORDS,   Asked(records::json_lines)),
    client("records/sequence",                  "6.2", BOTH,      Asked(records::sequence)),
    client("records/init-fields",               "2.3", RECORDS,   Asked(init_record::init_fields)),
    client("records/tools-empty",               "2.3", RECORDS,   Asked(init_record::tools_empty)),
    client("records/init-before-post",          "6.2", ORDER,     Asked(records::init_before_post)),
    client("records/events-match-provider",     "6.2", BOTH,      Asked(records::events_match_provider)),
    client("records/assistant-text",            "2.3", BOTH,      Asked(records::assistant_text)),
    client("records/assistant-position",        "6.2", RECORDS,   Asked(records::assistant_position)),
    client("records/result-success",            "2.3", RECORDS,   Asked(records::result_success)),
    client("records/rules",                     CASE,  RECORDS,   Asked(record_rules::rules)),
    client("files/state-file",                  "2.4", FILES,     Asked(files::state_file)),
    client("files/backup",                      "2.4", FILES,     Asked(files::backup)),
    client("files/modes",                       "2.4", FILES,     Asked(files::modes)),
    client("files/nothing-else",                "2.4", FILES,     Asked(files::nothing_else)),
    client("files/rules",                       CASE,  FILES,     Asked(files::rules)),
    client("files/no-transcript",               "2.4", FILES,     Asked(files::no_transcript)),
    client("secrets/credential-not-written",    "5",   SEARCHED,  Any(|evidence, expected| secrets::credential_not_written(evidence, expected.credential, expected.files))),
    sandbox("outbound/denied",                  "1",   OUTBOUND,  Any(|evidence, _| outbound::denied(evidence))),
    client("outbound/no-attempts",              "1",   ATTEMPTS,  Any(attempts::no_attempts)),
    sandbox("process/exit-zero",                "1",   PROCESSES, Asked(process::exit_zero)),
    client("process/programs",                  CASE,  PROGRAMS,  Asked(process::programs)),
    client("process/no-survivors",              "1",   PROCESSES, Any(|evidence, _| process::no_survivors(evidence))),
];

/// Makes all checks of a case: one finding for each id, in the order of [`model::finding::ids`].
pub fn check(expect: &Expectations, evidence: &Evidence) -> Vec<Finding> {
    let run = JudgedRun { expect, evidence };
    let outcome = |check: &Check| match check.rule {
        Rule::Case(rule) => rule(&run),
        Rule::Any(rule) => rule(
            evidence,
            Expected {
                attempts: &expect.attempts,
                credential: expect.credential_header(),
                files: expect.files.as_ref(),
                complete_ledger: expect.complete_ledger,
            },
        ),
    };
    make_all(evidence, outcome)
}

/// Makes the checks of any program. `expected` lists the attempts that are no finding.
pub fn audit(expected: &[ExpectedAttempt], evidence: &Evidence) -> Vec<Finding> {
    let expected = Expected {
        attempts: expected,
        credential: None,
        files: None,
        complete_ledger: false,
    };
    let make = |check: &Check| match check.rule {
        Rule::Case(_) => None,
        Rule::Any(rule) => Some(check.make(evidence, || rule(evidence, expected))),
    };
    CHECKS.iter().filter_map(make).collect()
}

fn make_all(evidence: &Evidence, outcome: impl Fn(&Check) -> Outcome) -> Vec<Finding> {
    let make = |check: &Check| check.make(evidence, || outcome(check));
    CHECKS.iter().map(make).collect()
}

/// Verdict of the run, by the first rule that applies:
///
/// 1. *Errored* if the sandbox did not hold before the launch: a client in a broken sandbox cannot be judged.
/// 2. *Failed* if a check failed, so that a client cannot hide a certain deviation by causing loss of evidence.
/// 3. *Errored* if evidence is lost, a check is errored, or no check passed.
/// 4. *Passed*.
pub fn verdict(findings: &[Finding], evidence: &Evidence) -> Verdict {
    let any = |status| findings.iter().any(|finding| finding.status == status);
    if !broken(evidence).is_empty() {
        Verdict::Errored
    } else if any(Status::Failed) {
        Verdict::Failed
    } else if !lost(evidence).is_empty() || any(Status::Errored) || !any(Status::Passed) {
        Verdict::Errored
    } else {
        Verdict::Passed
    }
}

/// Faults of the run itself, one phrase each: layers, probes, lost evidence, interruption. Only a run without faults
/// can pass.
pub fn unsound(evidence: &Evidence) -> Vec<String> {
    [broken(evidence), lost(evidence)].concat()
}

/// Layers and probes that did not hold before the launch.
fn broken(evidence: &Evidence) -> Vec<String> {
    let mut reasons = Vec::new();
    if evidence.layers.is_empty() {
        reasons.push("no layer of the sandbox was verified".to_owned());
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
    reasons.extend(leaks.map(|canary| format!("probe did not hold: {}", canary.name)));
    if evidence.exit == Exit::NotStarted {
        reasons.push(NEVER_STARTED.to_owned());
    }
    reasons
}

/// Faults after the launch.
fn lost(evidence: &Evidence) -> Vec<String> {
    let mut reasons: Vec<String> = outbound::let_through(evidence)
        .map(|attempt| format!("the supervisor let a call through: {}", attempt.target()))
        .collect();
    let instruments = [GapKind::Isolation, GapKind::Requests];
    let gaps = evidence
        .gaps
        .iter()
        .filter(|gap| instruments.contains(&gap.what));
    reasons.extend(gaps.map(|gap| gap.detail.clone()));
    if evidence.exit == Exit::Interrupted {
        reasons.push(INTERRUPTED.to_owned());
    }
    reasons
}

/// Reason `ended by the runner (time-out after 1.0 s)`. Returns `None` if the client ended by itself or never started.
fn ended_by_runner(exit: Exit) -> Option<String> {
    let why = match exit {
        Exit::Code(_) | Exit::Signal(_) | Exit::NotStarted => return None,
        Exit::Timeout(after) => format!("time-out after {:.1} s", after.as_secs_f64()),
        Exit::OutputLimit => "output limit".to_owned(),
        Exit::RequestLimit => "request limit".to_owned(),
        Exit::Interrupted => "interrupted".to_owned(),
    };
    Some(format!("{ENDED_BY_RUNNER} ({why})"))
}

const fn client(
    id: &'static str,
    spec: &'static str,
    needs: &'static [GapKind],
    rule: Rule,
) -> Check {
    Check {
        id,
        spec,
        needs,
        judges: Judges::Client,
        rule,
    }
}

const fn sandbox(
    id: &'static str,
    spec: &'static str,
    needs: &'static [GapKind],
    rule: Rule,
) -> Check {
    Check {
        judges: Judges::Sandbox,
        ..client(id, spec, needs, rule)
    }
}

impl Check {
    fn make(&self, evidence: &Evidence, outcome: impl FnOnce() -> Outcome) -> Finding {
        if self.judges == Judges::Client && evidence.exit == Exit::NotStarted {
            return self.skipped(NEVER_STARTED.to_owned());
        }
        let missing = self.missing(self.needs, evidence);
        match (outcome(), missing) {
            (Err(NotPassed::NotAsked(because)), _) => self.skipped(because),
            (Err(NotPassed::Failed(deviation)), missing) => {
                self.deviates(*deviation, missing, evidence)
            }
            (Err(NotPassed::Undecided(deviation, because)), missing) => {
                self.errored(*deviation, missing.unwrap_or(because))
            }
            (Ok(_) | Err(NotPassed::Absent(_)), Some(because)) => {
                let message = "The evidence for this check is incomplete.";
                self.errored(Deviation::new(message), because)
            }
            (Ok(message), None) => self.blank(Status::Passed, message),
            (Err(NotPassed::Absent(because)), None) => self.skipped(because),
        }
    }

    /// Finding of a deviation: failed if certain, errored if evidence is missing, skipped for a leftover of a client
    /// that the runner ended. A failed finding of such a client has the reason if the client might have produced what is
    /// missing.
    fn deviates(
        &self,
        deviation: Deviation,
        missing: Option<String>,
        evidence: &Evidence,
    ) -> Finding {
        let needed = self.missing(deviation.needs, evidence);
        let doubt = needed.filter(|_| !deviation.needs.is_empty());
        let end = ended_by_runner(evidence.exit);
        let end = end.and_then(|end| Some((end, deviation.effect?)));
        // All evidence of an interrupted run is incomplete, so its gaps add no reason.
        let lost = missing.filter(|_| evidence.exit != Exit::Interrupted);
        match (end, doubt) {
            (None, None) => self.deviating(Status::Failed, deviation),
            (None | Some((_, EffectOfEnd::Unfinished)), Some(because)) => {
                self.errored(deviation, because)
            }
            (Some((end, EffectOfEnd::Unfinished)), None) => Finding {
                because: Some(end),
                ..self.deviating(Status::Failed, deviation)
            },
            (Some((end, EffectOfEnd::Leftover)), _) => match lost {
                Some(because) => self.errored(deviation, because),
                None => Finding {
                    because: Some(end),
                    ..self.deviating(Status::Skipped, deviation)
                },
            },
        }
    }

    /// Reason why evidence of one of these kinds is incomplete.
    fn missing(&self, needs: &[GapKind], evidence: &Evidence) -> Option<String> {
        if let Some(gap) = evidence.gap(needs) {
            return Some(gap.detail.clone());
        }
        (self.judges == Judges::Client && evidence.exit == Exit::Interrupted)
            .then(|| INTERRUPTED.to_owned())
    }

    fn errored(&self, deviation: Deviation, because: String) -> Finding {
        Finding {
            because: Some(because),
            ..self.deviating(Status::Errored, deviation)
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
            id: self.id.into(),
            status,
            message,
            object: None,
            expected: None,
            found: None,
            because: None,
            accept: None,
            asked_by: match self.spec {
                CASE => AskedBy::Case,
                section => AskedBy::Specification(section.into()),
            },
        }
    }
}
