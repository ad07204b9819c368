//! Verdict of `runner doctor`: the isolation that the probes allow, the features that others lack, and the agreement
//! of a real run. Pure.

use model::case::Tier;
use model::finding::Verdict as RunVerdict;

use super::probes::{Need, Probe};
use super::trial::Observation;
use super::whole_run::{Ended, WholeRun};

/// A probe with its observation.
pub(super) struct ProbeResult {
    pub(super) probe: &'static Probe,
    pub(super) observation: Observation,
}

/// Status of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    /// The feature works as a run needs it.
    Works,
    /// The feature was tested and does not work.
    Refused,
    /// The feature could not be tested.
    Untried,
    /// Runs that are started in this way do not need the feature.
    NotNeeded,
}

impl Status {
    /// All statuses.
    pub(super) const ALL: [Self; 4] = [Self::Works, Self::Refused, Self::Untried, Self::NotNeeded];

    /// Word for the status in reports.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Works => "works",
            Self::Refused => "refused",
            Self::Untried => "untried",
            Self::NotNeeded => "not-needed",
        }
    }
}

impl ProbeResult {
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

    /// True if a run that requires the feature can proceed.
    pub(super) fn is_fulfilled(&self) -> bool {
        matches!(self.status(), Status::Works | Status::NotNeeded)
    }
}

/// Required probes of an isolation that are not fulfilled. If a probe does not work, the probes that depend on it are
/// untried.
pub(super) fn missing(tried: &[ProbeResult], tier: Tier) -> Vec<&ProbeResult> {
    let required = tried
        .iter()
        .filter(|one| one.probe.need(tier) == Need::Required);
    required.filter(|one| !one.is_fulfilled()).collect()
}

/// Result of the probes alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Possible {
    /// The strongest possible isolation.
    pub(super) tier: Option<Tier>,
    /// True if a run with isolation `namespace` has a new /proc.
    pub(super) fresh_proc: bool,
}

pub(super) fn possible(tried: &[ProbeResult]) -> Possible {
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

/// The verdict, with its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    /// Isolation that a run gets here; `None` if a run is not possible, or if the real run disagrees with the probes.
    pub(super) tier: Option<Tier>,
    /// Short reason, which fits on the verdict's line.
    pub(super) reason: &'static str,
    /// Further sentences of any length; may be empty.
    pub(super) details: String,
}

impl Verdict {
    /// Reason and details in one line of any length.
    pub(super) fn text(&self) -> String {
        if self.details.is_empty() {
            return self.reason.to_owned();
        }
        format!("{}. {}", self.reason, self.details)
    }

    /// Exit code: 0 for namespace, 1 for inherited only, 3 for none.
    pub(super) fn exit_code(&self) -> u8 {
        match self.tier {
            Some(Tier::Namespace) => 0,
            Some(Tier::Inherited) => 1,
            None => 3,
        }
    }
}

/// True if the result of the real run agrees with the probes.
pub(super) fn agrees(possible: Possible, run: &WholeRun) -> bool {
    match (&run.ended, possible.tier) {
        (Ended::Code(0), Some(tier)) => {
            run.tier == Some(tier) && run.verdict == Some(RunVerdict::Passed)
        }
        // Exit codes 0 and 1 mean that the client was judged, so a sandbox was possible.
        (Ended::Code(code), None) => !matches!(code, 0 | 1),
        // No run took place, as the probes predict.
        (Ended::Signal(_) | Ended::Hung | Ended::NotStarted(_), None) => true,
        (Ended::Code(_) | Ended::Signal(_) | Ended::Hung | Ended::NotStarted(_), Some(_)) => false,
    }
}

/// The verdict of the probes, or a disagreement with the real run.
pub(super) fn verdict(tried: &[ProbeResult], possible: Possible, run: &WholeRun) -> Verdict {
    if !agrees(possible, run) {
        let possible_isolation = match possible.tier {
            Some(tier) => format!("isolation {}", tier.word()),
            None => "no isolation".to_owned(),
        };
        return Verdict {
            tier: None,
            reason: "the real run disagrees with the probes",
            details: format!(
                "By the probes, {possible_isolation} is possible; the real run {}",
                run.describe()
            ),
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
            "a run uses this network namespace, which has loopback only; case-b was run, and passed",
            format!("Isolation namespace lacks {}", lacking(Tier::Namespace)),
        ),
        None => (
            "no run is possible here",
            format!(
                "Isolation namespace lacks {}; isolation inherited lacks {}",
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

/// Ids of the refused probes. If no probe was refused, the ids of all.
fn named(missing: &[&ProbeResult]) -> String {
    let refused = missing.iter().filter(|one| one.status() == Status::Refused);
    let mut ids: Vec<&str> = refused.map(|one| one.probe.id).collect();
    if ids.is_empty() {
        ids = missing.iter().map(|one| one.probe.id).collect();
    }
    ids.join(", ")
}
