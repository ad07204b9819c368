//! Check of the network probes. Only the kernel's own refusals inside this run prove that other attempts were
//! impossible. The supervisor's refusals are checked too, but prove nothing.

use model::evidence::{Attempt, Canary, CanaryMode, CanaryStatus, Evidence, GapKind};

use super::NotPassed;
use super::outcome::{Deviation, Outcome, list};

/// Network probes that both the kernel and the supervisor must have refused in every run.
pub(super) const REFUSED: [&str; 6] = ["tcp4", "tcp6", "udp4", "udp6", "broadcast", "multicast"];
/// Network probes that need IPv6, which a kernel may lack.
const NEED_IPV6: [&str; 2] = ["tcp6", "udp6"];
/// Errno of socket(2) for a family that the kernel lacks.
const NO_FAMILY: &str = "EAFNOSUPPORT";
/// Positive twin: the same code reaches the stub, so the other probes do not fail by a fault of that code.
pub(super) const REACHED: &str = "stub";
const MODES: [CanaryMode; 2] = [CanaryMode::Continued, CanaryMode::Answered];

pub(super) fn denied(evidence: &Evidence) -> Outcome {
    canaries_hold(evidence)?;
    if let Some(attempt) = let_through(evidence).next() {
        return Deviation::new("The supervisor let a call through that leads away from loopback.")
            .at(format!("attempt {}", attempt.seq))
            .expected("denied by the supervisor")
            .found(format!("{} let through", attempt.target()))
            .undecided(
                "the supervisor did not refuse the call; the canary shows what the kernel refuses",
            );
    }
    let lacking = evidence
        .canaries
        .iter()
        .filter(|one| is_without_family(one));
    let lacking: Vec<_> = lacking.map(|canary| canary.name.as_str()).collect();
    let refused = REFUSED.into_iter().filter(|name| !lacking.contains(name));
    let without = if lacking.is_empty() {
        ""
    } else {
        " and has no IPv6"
    };
    Ok(format!(
        "The kernel refused {} inside this run{without}, and nothing but loopback was let through to it.",
        list(refused)
    ))
}

/// Checks that the canary proves that the kernel itself refuses all other attempts. A gap in the ledger does not
/// matter.
pub fn kernel_refuses(evidence: &Evidence) -> bool {
    canaries_hold(evidence).is_ok()
        && evidence.gap(&[GapKind::Isolation]).is_none()
        && let_through(evidence).next().is_none()
}

/// Calls that the supervisor let through although they lead away from loopback.
pub(super) fn let_through(evidence: &Evidence) -> impl Iterator<Item = &Attempt> {
    let attempts = evidence.attempts.iter();
    attempts.filter(|attempt| attempt.leaves_loopback())
}

fn canaries_hold(evidence: &Evidence) -> Result<(), NotPassed> {
    let canaries = &evidence.canaries;
    if let Some(leak) = canaries
        .iter()
        .find(|canary| canary.status == CanaryStatus::NotHeld)
    {
        return Deviation::new("A probe did not hold: the sandbox is broken.")
            .at(format!("probe {}", spell(&leak.name, leak.mode)))
            .expected(&leak.expected)
            .found(&leak.observed)
            .undecided("a client in a broken sandbox cannot be judged");
    }
    for mode in MODES {
        for name in REFUSED {
            held(canaries, name, mode)?;
        }
    }
    held(canaries, REACHED, CanaryMode::Continued)
}

/// Checks that there is a probe of this name and mode, and that each such probe held.
fn held(canaries: &[Canary], name: &str, mode: CanaryMode) -> Result<(), NotPassed> {
    let suitable: Vec<_> = canaries
        .iter()
        .filter(|canary| canary.name == name && canary.mode == mode)
        .collect();
    let doubtful = suitable
        .iter()
        .find(|canary| canary.status != CanaryStatus::Held && !is_without_family(canary));
    let found = match doubtful {
        None if !suitable.is_empty() => return Ok(()),
        None => "it was not tried".to_owned(),
        Some(canary) => format!(
            "{}, and refused outside of the sandbox as well",
            canary.observed
        ),
    };
    Deviation::new("A probe that this check needs is inconclusive.")
        .at(format!("probe {}", spell(name, mode)))
        .expected("held")
        .found(found)
        .undecided("this run does not prove that other attempts were impossible")
}

/// Checks for a probe of IPv6 on a kernel without IPv6, which needs no refusal.
fn is_without_family(canary: &Canary) -> bool {
    canary.status == CanaryStatus::NotApplicable
        && canary.observed == NO_FAMILY
        && NEED_IPV6.contains(&canary.name.as_str())
}

/// Name of a probe with its mode: `tcp4` for the kernel's, `tcp4 (answered)` for the supervisor's.
fn spell(name: &str, mode: CanaryMode) -> String {
    match mode {
        CanaryMode::Continued => name.to_owned(),
        CanaryMode::Answered => format!("{name} (answered)"),
    }
}
