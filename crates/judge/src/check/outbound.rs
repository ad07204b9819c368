//! What the network canaries say: only the kernel's own refusals, inside this very run, support the claim that
//! other attempts were impossible. The supervisor's refusals are judged beside them, and support none.

use model::evidence::{Attempt, Canary, CanaryMode, CanaryStatus, Evidence, GapKind};

use super::NotPassed;
use super::outcome::{Deviation, Outcome, list};

/// Network canaries that the kernel itself, and the supervisor as well, must have refused in every run.
pub(super) const REFUSED: [&str; 6] = ["tcp4", "tcp6", "udp4", "udp6", "broadcast", "multicast"];
/// Those of them that need IPv6, which a kernel may lack.
const NEED_IPV6: [&str; 2] = ["tcp6", "udp6"];
/// What socket(2) says where the kernel has no such family.
const NO_FAMILY: &str = "EAFNOSUPPORT";
/// The positive twin: the same probe code reaches the stub, so the others do not fail for its own faults.
pub(super) const REACHED: &str = "stub";
const MODES: [CanaryMode; 2] = [CanaryMode::Continued, CanaryMode::Answered];

pub(super) fn denied(evidence: &Evidence) -> Outcome {
    canaries_hold(evidence)?;
    if let Some(attempt) = let_through(evidence).next() {
        return Deviation::new(
            "A call to somewhere else than loopback was let through to the kernel.",
        )
        .at(format!("attempt {}", attempt.seq))
        .expected("denied by the supervisor")
        .found(format!("{} let through", attempt.target()))
        .undecided(
            "the supervisor is not what it should be; the canaries say what the kernel does",
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

/// Whether the canaries show that the kernel itself refuses every other attempt. A gap in the ledger takes
/// nothing from it.
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
        return Deviation::new("A canary did not hold: the sandbox is not what it should be.")
            .at(format!("canary {}", spell(&leak.name, leak.mode)))
            .expected(&leak.expected)
            .found(&leak.observed)
            .undecided("nothing that the client did in such a sandbox can be judged");
    }
    for mode in MODES {
        for name in REFUSED {
            held(canaries, name, mode)?;
        }
    }
    held(canaries, REACHED, CanaryMode::Continued)
}

/// Every canary of this name and mode held, and there is one.
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
    Deviation::new("A canary that the claim rests on says nothing.")
        .at(format!("canary {}", spell(name, mode)))
        .expected("held")
        .found(found)
        .undecided("that other attempts were impossible is not shown")
}

/// A kernel without IPv6 has nothing that could be refused: there is no way out by it either.
fn is_without_family(canary: &Canary) -> bool {
    canary.status == CanaryStatus::NotApplicable
        && canary.observed == NO_FAMILY
        && NEED_IPV6.contains(&canary.name.as_str())
}

/// `tcp4`, and for the supervisor's own `tcp4 (answered)`.
fn spell(name: &str, mode: CanaryMode) -> String {
    match mode {
        CanaryMode::Continued => name.to_owned(),
        CanaryMode::Answered => format!("{name} (answered)"),
    }
}
