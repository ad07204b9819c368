//! The judgement: which tier the results leave possible, what stands in the way of the others, and whether a real run
//! agrees. Pure.

use model::case::Tier;
use model::finding::Verdict as RunVerdict;

use super::probes::{Need, Probe};
use super::trial::Observation;
use super::whole_run::{Ended, WholeRun};

/// A probe and what it came to.
pub(super) struct Tried {
    pub(super) probe: &'static Probe,
    pub(super) observation: Observation,
}

/// The word for what a probe came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    /// It works as a run needs it.
    Works,
    /// It was tried and does not.
    Refused,
    /// It could not be tried.
    Untried,
    /// Nothing that is started like this needs it.
    NotNeeded,
}

impl Status {
    /// Every one.
    pub(super) const ALL: [Self; 4] = [Self::Works, Self::Refused, Self::Untried, Self::NotNeeded];

    /// The word for it in reports.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Works => "works",
            Self::Refused => "refused",
            Self::Untried => "untried",
            Self::NotNeeded => "not-needed",
        }
    }
}

impl Tried {
    pub(super) fn status(&self) -> Status {
        match self.observation {
            Observation::Works(_) => Status::Works,
            Observation::Refused { .. }
            | Observation::Wrong(_)
            | Observation::Killed(_)
            | Observation::Hung => Status::Refused,
            Observation::Untried(_) => Status::Untried,
            Observation::NotNeeded(_) => Status::NotNeeded,
        }
    }

    /// Whether a run that requires it can go on.
    pub(super) fn is_fulfilled(&self) -> bool {
        matches!(self.status(), Status::Works | Status::NotNeeded)
    }
}

/// What of a tier's requirements is not there. Where something that others build on is missing, they are untried, and
/// it is the one to be mended.
pub(super) fn missing(tried: &[Tried], tier: Tier) -> Vec<&Tried> {
    let required = tried
        .iter()
        .filter(|one| one.probe.need(tier) == Need::Required);
    required.filter(|one| !one.is_fulfilled()).collect()
}

/// What the probes leave possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Possible {
    /// The strongest tier.
    pub(super) tier: Option<Tier>,
    /// A run of tier `namespace` has a fresh /proc.
    pub(super) fresh_proc: bool,
}

pub(super) fn possible(tried: &[Tried]) -> Possible {
    let fresh_proc = tried
        .iter()
        .any(|one| one.probe.id == "fresh-proc" && one.status() == Status::Works);
    Possible {
        tier: Tier::ALL
            .into_iter()
            .find(|tier| missing(tried, *tier).is_empty()),
        fresh_proc,
    }
}

/// The one word, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    /// The tier that a run gets here; `None` where it gets none, or where that is not sure.
    pub(super) tier: Option<Tier>,
    /// Fits into a line, behind the word.
    pub(super) reason: &'static str,
    /// Sentences of any length; may be empty.
    pub(super) details: String,
}

impl Verdict {
    /// All of it, in one line of any length.
    pub(super) fn told(&self) -> String {
        if self.details.is_empty() {
            return self.reason.to_owned();
        }
        format!("{}. {}", self.reason, self.details)
    }

    /// 0 namespace, 1 only inherited, 3 none.
    pub(super) fn exit_code(&self) -> u8 {
        match self.tier {
            Some(Tier::Namespace) => 0,
            Some(Tier::Inherited) => 1,
            None => 3,
        }
    }
}

/// Whether a real run came to what the probes say.
pub(super) fn agrees(possible: Possible, run: &WholeRun) -> bool {
    match (&run.ended, possible.tier) {
        (Ended::Code(0), Some(tier)) => {
            run.tier == Some(tier) && run.verdict == Some(RunVerdict::Passed)
        }
        // A run that came to a verdict on its client was made.
        (Ended::Code(code), None) => !matches!(code, 0 | 1),
        // No run, which is what was said of it.
        (Ended::Signal(_) | Ended::Hung | Ended::NotStarted(_), None) => true,
        (Ended::Code(_) | Ended::Signal(_) | Ended::Hung | Ended::NotStarted(_), Some(_)) => false,
    }
}

/// The verdict of the probes, unless a real run says something else.
pub(super) fn verdict(tried: &[Tried], possible: Possible, run: &WholeRun) -> Verdict {
    if !agrees(possible, run) {
        let said = match possible.tier {
            Some(tier) => format!("tier {}", tier.word()),
            None => "no tier".to_owned(),
        };
        return Verdict {
            tier: None,
            reason: "the probes and a real run do not agree",
            details: format!("The probes say {said}, and a real run {}", run.told()),
        };
    }
    let lacking = |tier| named(&missing(tried, tier));
    let (reason, details) = match possible.tier {
        Some(Tier::Namespace) if possible.fresh_proc => (
            "a run has namespaces of its own; case-b was run, and passed",
            String::new(),
        ),
        Some(Tier::Namespace) => (
            "a run has namespaces of its own, without a fresh /proc; case-b was run, and passed",
            String::new(),
        ),
        Some(Tier::Inherited) => (
            "a run takes this network namespace, which has loopback only; case-b was run, and passed",
            format!("Tier namespace lacks {}", lacking(Tier::Namespace)),
        ),
        None => (
            "no run can be made here",
            format!(
                "Tier namespace lacks {}; tier inherited lacks {}",
                lacking(Tier::Namespace),
                lacking(Tier::Inherited)
            ),
        ),
    };
    Verdict {
        tier: possible.tier,
        reason,
        details,
    }
}

/// Those that were tried and do not work, by id: the others follow from them.
fn named(missing: &[&Tried]) -> String {
    let refused = missing.iter().filter(|one| one.status() == Status::Refused);
    let mut ids: Vec<&str> = refused.map(|one| one.probe.id).collect();
    if ids.is_empty() {
        ids = missing.iter().map(|one| one.probe.id).collect();
    }
    ids.join(", ")
}
