//! Judgement of the attempts and their twins. Pure.
//!
//! An attempt is blocked if it is refused inside as its class lists, has its entry in the ledger where required, and
//! succeeds outside. Any other attempt that did not get through is inconclusive, because it does not test the layer.

use std::net::SocketAddr;

use model::case::Tier;
use model::evidence;
use nix::errno::Errno;
use probes::hostile::class::{Attempt, Class, Layer, LedgerEntry, Refusal};
use probes::hostile::reply::{Reply, Said};

/// Status of an attempt or class; the worst is last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Status {
    Blocked,
    Inconclusive,
    Through,
}

/// Result of an attempt.
#[derive(Clone, Debug)]
pub(super) struct Judged {
    pub(super) name: &'static str,
    pub(super) status: Status,
    /// Reply inside; `None` without a reply.
    pub(super) inside: Option<Reply>,
    pub(super) outside: Option<Reply>,
    /// The layer that refused the attempt.
    pub(super) layer: Option<Layer>,
    /// Reason why the attempt is not blocked; `None` if it is blocked.
    pub(super) reason: Option<String>,
}

/// Result of a class, which has the status of its worst attempt.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    pub(super) class: &'static Class,
    pub(super) status: Status,
    pub(super) attempts: Vec<Judged>,
}

/// Input of the judgement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Input<'a> {
    pub(super) tier: Tier,
    pub(super) inside: &'a [Said],
    pub(super) outside: &'a [Said],
    pub(super) ledger: &'a [evidence::Attempt],
}

/// Name of an attempt with its class.
pub(super) fn full_name(class: &Class, attempt: &Attempt) -> String {
    format!("{}/{}", class.id, attempt.name)
}

impl Input<'_> {
    /// Judges a class. Returns `None` if the isolation has no attempts of the class. `words` returns the targets
    /// inside.
    pub(super) fn judge(
        &self,
        class: &'static Class,
        words: &impl Fn(&Attempt) -> Vec<String>,
    ) -> Option<Outcome> {
        let attempts: Vec<Judged> = class
            .attempts
            .iter()
            .filter(|attempt| !attempt.column(self.tier).refusals.is_empty())
            .map(|attempt| self.judge_attempt(&full_name(class, attempt), attempt, &words(attempt)))
            .collect();
        let status = attempts.iter().map(|attempt| attempt.status).max()?;
        Some(Outcome {
            class,
            status,
            attempts,
        })
    }

    fn judge_attempt(&self, name: &str, attempt: &'static Attempt, words: &[String]) -> Judged {
        let find = |said: &[Said]| said.iter().find(|said| said.attempt == name).cloned();
        let (inside, outside) = (find(self.inside), find(self.outside));
        let column = attempt.column(self.tier);
        let reply = inside.as_ref().map(|said| said.reply);
        let refusal = column
            .refusals
            .iter()
            .find(|refusal| Some(refusal.reply) == reply);
        let recorded = || {
            column.record == LedgerEntry::None
                || self
                    .ledger
                    .iter()
                    .any(|entry| is_recorded(column.record, refusal, entry, words))
        };
        let (status, reason) = match (&inside, &outside) {
            (Some(said), _) if arrived(said.reply, attempt) => (Status::Through, reached(said)),
            (None, _) => (
                Status::Inconclusive,
                "the client did not make it".to_owned(),
            ),
            (Some(said), _) if said.reply == Reply::Unmade => {
                let reason = format!("not made inside: {}", said.detail);
                (Status::Inconclusive, reason)
            }
            (Some(said), _) if refusal.is_none() => {
                let expected: Vec<_> = column
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
            (Some(said), twin) if !is_refused_outside(twin.as_ref(), attempt) && !recorded() => {
                let reason = format!("{}, but not in the ledger", said.reply.words());
                (Status::Through, reason)
            }
            (Some(_), None) => (Status::Inconclusive, "its twin was not made".to_owned()),
            (Some(_), Some(twin)) if twin.reply == Reply::Unmade => {
                let reason = format!("its twin was not made: {}", twin.detail);
                (Status::Inconclusive, reason)
            }
            (Some(_), Some(twin)) if !arrived(twin.reply, attempt) => {
                let reason = if twin.reply == Reply::Nothing {
                    "nothing was found outside either".to_owned()
                } else {
                    format!("refused outside too ({})", twin.reply.words())
                };
                (Status::Inconclusive, reason)
            }
            (Some(_), Some(_)) => (Status::Blocked, String::new()),
        };
        Judged {
            name: attempt.name,
            status,
            inside: reply,
            outside: outside.map(|said| said.reply),
            layer: refusal.map(|refusal| refusal.layer),
            reason: (status != Status::Blocked).then_some(reason),
        }
    }
}

/// True if the host refused the twin too. A filter around the sandbox then refuses the attempt inside before the
/// supervisor sees it, so the ledger has no entry.
fn is_refused_outside(twin: Option<&Said>, attempt: &Attempt) -> bool {
    twin.is_some_and(|twin| {
        matches!(twin.reply, Reply::Refused(_)) && !arrived(twin.reply, attempt)
    })
}

/// True if a reply shows that the attempt passed the layer.
fn arrived(reply: Reply, attempt: &Attempt) -> bool {
    match reply {
        Reply::Through => true,
        Reply::Refused(number) => attempt.arrives.iter().any(|errno| *errno as i32 == number),
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
    record: LedgerEntry,
    refusal: Option<&Refusal>,
    entry: &evidence::Attempt,
    words: &[String],
) -> bool {
    let answered = match refusal {
        Some(Refusal {
            reply: Reply::Refused(number),
            layer: Layer::Supervisor,
        }) => entry.outcome == evidence::Outcome::Denied(Errno::from_raw(*number)),
        Some(_) | None => true,
    };
    let protocol = words.get(2).and_then(|word| word.parse::<u32>().ok());
    match record {
        LedgerEntry::None => true,
        LedgerEntry::Call(call) => answered && entry.syscall == call,
        LedgerEntry::Socket(family, kind) => {
            answered
                && entry.syscall == "socket"
                && entry.family.as_deref() == Some(family)
                && entry.socket_type.as_deref() == Some(kind)
                && (protocol.is_none() || entry.protocol == protocol)
        }
        LedgerEntry::To(call) => {
            let word = words.first().map(String::as_str).unwrap_or_default();
            answered && entry.syscall == call && is_address(entry, word)
        }
    }
}

/// True if the entry has this address: an IP address with a port, a path, or an abstract name after `@`.
fn is_address(entry: &evidence::Attempt, word: &str) -> bool {
    match word.parse::<SocketAddr>() {
        Ok(address) => {
            entry.address.as_deref() == Some(address.ip().to_string().as_str())
                && entry.port == Some(address.port())
        }
        Err(_) => entry.address.as_deref() == Some(word),
    }
}

#[cfg(test)]
mod tests;
