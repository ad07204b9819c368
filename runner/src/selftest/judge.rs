//! Judgement of the attempts and their twins. Pure.
//!
//! An attempt is blocked if it is refused inside as its class lists, has its entry in the ledger where required, and
//! succeeds outside. Any other attempt that did not get through is inconclusive, because it does not test the layer.

use std::ffi::OsString;

use model::evidence;
use probes::probe::{Class, Kind, LedgerEntry, Probe, Refusal};
use probes::reply::{Reply, Said};
use schemars::JsonSchema;
use serde::Serialize;

/// `blocked`: refused inside, and not outside. `through`: it left the sandbox, or the ledger does not have it.
/// `inconclusive`: not testable on this machine, which is no pass.
// The worst is last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Status {
    Blocked,
    Inconclusive,
    Through,
}

/// An attempt: one call, or a short sequence.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "AttemptForm")]
pub(super) struct Judged {
    /// Name of the attempt; unique within the class.
    pub(super) name: &'static str,
    /// Status of the attempt.
    pub(super) status: Status,
    /// Reply inside: an errno, a signal, `nothing`, `through` or `not made`; null without a reply.
    pub(super) inside: Option<String>,
    /// Reply outside, in the same words; null without a reply.
    pub(super) outside: Option<String>,
    /// Layer that refused the attempt inside, for people; null if it is not known.
    pub(super) layer: Option<&'static str>,
    /// Reason why the attempt is not blocked, for people; null if it is blocked.
    pub(super) reason: Option<String>,
}

/// A class of attempts.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "ClassForm")]
pub(super) struct Outcome {
    /// Id of the class, such as `sockets/vsock`; it is stable.
    pub(super) id: &'static str,
    /// Description of the class, for people.
    pub(super) about: &'static str,
    /// Status of the worst attempt.
    pub(super) status: Status,
    /// Errnos and layers, or the reasons, for people.
    pub(super) because: String,
    /// Attempts of the class.
    pub(super) attempts: Vec<Judged>,
}

/// Input of the judgement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Input<'a> {
    pub(super) kind: Kind,
    pub(super) inside: &'a [Said],
    pub(super) outside: &'a [Said],
    pub(super) ledger: &'a [evidence::Attempt],
}

impl Input<'_> {
    /// Judges a class. Returns `None` if the isolation has no attempts of the class. `targets` returns the texts of the
    /// targets inside.
    pub(super) fn judge(
        &self,
        class: &Class,
        targets: impl Fn(&Probe) -> Vec<OsString>,
    ) -> Option<Outcome> {
        let made = class
            .probes
            .iter()
            .filter(|probe| !probe.expected(self.kind).refusals.is_empty());
        let attempts: Vec<Judged> = made
            .map(|probe| self.judge_attempt(&class.full_name(probe), probe, &targets(probe)))
            .collect();
        let status = attempts.iter().map(|attempt| attempt.status).max()?;
        Some(Outcome {
            id: class.id,
            about: class.about,
            status,
            because: because(status, &attempts),
            attempts,
        })
    }

    fn judge_attempt(&self, name: &str, probe: &Probe, targets: &[OsString]) -> Judged {
        let find = |said: &[Said]| said.iter().find(|said| said.attempt == name).cloned();
        let (inside, outside) = (find(self.inside), find(self.outside));
        let expected = probe.expected(self.kind);
        let refusal = inside.as_ref().and_then(|said| {
            let mut refusals = expected.refusals.iter();
            refusals.find(|refusal| refusal.reply == said.reply)
        });
        let recorded = || {
            let is_entry = |entry| is_recorded(expected.entry, refusal, entry, targets);
            expected.entry == LedgerEntry::None || self.ledger.iter().any(is_entry)
        };
        let (status, reason) = match (&inside, &outside) {
            (Some(said), _) if arrived(said.reply, probe) => (Status::Through, reached(said)),
            (None, _) => (
                Status::Inconclusive,
                "the client did not make it".to_owned(),
            ),
            (Some(said), _) if said.reply == Reply::Unmade => {
                let reason = format!("not made inside: {}", said.detail);
                (Status::Inconclusive, reason)
            }
            (Some(said), _) if refusal.is_none() => {
                let expected: Vec<_> = expected
                    .refusals
                    .iter()
                    .map(|refusal| refusal.reply.words())
                    .collect();
                let reason = format!(
                    "{} inside, not {}",
                    said.reply.words(),
                    expected.join(" or ")
                );
                (Status::Inconclusive, reason)
            }
            (Some(said), twin) if !is_refused_outside(twin.as_ref(), probe) && !recorded() => {
                let reason = format!("{}, but not in the ledger", said.reply.words());
                (Status::Through, reason)
            }
            (Some(_), None) => (Status::Inconclusive, "its twin was not made".to_owned()),
            (Some(_), Some(twin)) if twin.reply == Reply::Unmade => {
                let reason = format!("its twin was not made: {}", twin.detail);
                (Status::Inconclusive, reason)
            }
            (Some(_), Some(twin)) if !arrived(twin.reply, probe) => {
                let reason = if twin.reply == Reply::Nothing {
                    "nothing was found outside either".to_owned()
                } else {
                    format!("refused outside too ({})", twin.reply.words())
                };
                (Status::Inconclusive, reason)
            }
            (Some(_), Some(_)) => (Status::Blocked, String::new()),
        };
        let words = |said: Option<Said>| Some(said?.reply.words().into_owned());
        Judged {
            name: probe.name,
            status,
            inside: words(inside),
            outside: words(outside),
            layer: refusal.map(|refusal| refusal.layer.words()),
            reason: (status != Status::Blocked).then_some(reason),
        }
    }
}

/// Details of the status of a class: errnos and layers, such as `EPERM filter`, or the reasons.
fn because(status: Status, attempts: &[Judged]) -> String {
    let detail = |attempt: &Judged| {
        let reply = attempt.inside.as_deref().unwrap_or_default();
        let layer = attempt.layer.unwrap_or_default();
        let refusal = || format!("{reply} {layer}");
        attempt.reason.clone().unwrap_or_else(refusal)
    };
    // Attempts with the same detail are grouped.
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    for attempt in attempts.iter().filter(|one| one.status == status) {
        let detail = detail(attempt);
        match groups.iter_mut().find(|(known, _)| *known == detail) {
            Some((_, names)) => names.push(attempt.name),
            None => groups.push((detail, vec![attempt.name])),
        }
    }
    let line = |(detail, names): (String, Vec<&str>)| match status {
        Status::Blocked => detail,
        Status::Inconclusive | Status::Through => format!("{}: {detail}", names.join(", ")),
    };
    let separator = if status == Status::Blocked {
        ", "
    } else {
        "; "
    };
    let lines: Vec<String> = groups.into_iter().map(line).collect();
    lines.join(separator)
}

/// True if the host refused the twin too. A filter around the sandbox then refuses the attempt inside before the
/// supervisor sees it, so the ledger has no entry.
fn is_refused_outside(twin: Option<&Said>, probe: &Probe) -> bool {
    twin.is_some_and(|twin| matches!(twin.reply, Reply::Refused(_)) && !arrived(twin.reply, probe))
}

/// True if a reply shows that the attempt passed the layer.
fn arrived(reply: Reply, probe: &Probe) -> bool {
    match reply {
        Reply::Through => true,
        Reply::Refused(number) => probe.arrives.iter().any(|errno| *errno as i32 == number),
        Reply::Nothing | Reply::Killed(_) | Reply::Unmade => false,
    }
}

fn reached(said: &Said) -> String {
    match (said.reply, said.detail.as_str()) {
        (Reply::Through, "") => "it got through".to_owned(),
        (Reply::Through, detail) => format!("it got through: {detail}"),
        (reply, _) => format!("it arrived ({})", reply.words()),
    }
}

/// True if the entry is the one that the attempt must leave. If the supervisor refused, the entry has the same errno.
fn is_recorded(
    expected: LedgerEntry,
    refusal: Option<&Refusal>,
    entry: &evidence::Attempt,
    targets: &[OsString],
) -> bool {
    let outcome = refusal.and_then(Refusal::outcome);
    outcome.is_none_or(|outcome| entry.outcome == outcome) && expected.is(entry, targets)
}

#[cfg(test)]
mod tests;
