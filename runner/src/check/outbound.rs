//! What the network canaries say: only the kernel's own refusals, inside this very run, support the claim that
//! other attempts were impossible.

use crate::evidence::{Canary, CanaryMode, CanaryStatus};

use super::NotPassed;
use super::outcome::{Deviation, Outcome, Run, list};

/// Network canaries that the kernel itself must have refused, in every run.
pub(super) const REFUSED: [&str; 6] = ["tcp4", "tcp6", "udp4", "udp6", "broadcast", "multicast"];
/// The positive twin: the same probe code reaches the stub, so the others do not fail for its own faults.
pub(super) const REACHED: &str = "stub";

pub(super) fn denied(run: &Run) -> Outcome {
    let canaries = &run.evidence.canaries;
    if let Some(leak) = canaries
        .iter()
        .find(|canary| canary.status == CanaryStatus::NotHeld)
    {
        return Deviation::new("A canary did not hold: the sandbox is not what it should be.")
            .at(format!("canary {}", leak.name))
            .expected(&leak.expected)
            .found(&leak.observed)
            .undecided("nothing that the client did in such a sandbox can be judged");
    }
    for name in REFUSED {
        held(canaries, name, |canary| {
            canary.mode == CanaryMode::Continued
        })?;
    }
    held(canaries, REACHED, |_| true)?;
    Ok(format!(
        "The kernel refused {} inside this run.",
        list(REFUSED)
    ))
}

fn held(canaries: &[Canary], name: &str, suits: impl Fn(&Canary) -> bool) -> Result<(), NotPassed> {
    let suitable: Vec<_> = canaries
        .iter()
        .filter(|canary| canary.name == name && suits(canary))
        .collect();
    if !suitable.is_empty()
        && suitable
            .iter()
            .all(|canary| canary.status == CanaryStatus::Held)
    {
        return Ok(());
    }
    let found = match suitable.first() {
        None => "it was not tried".to_owned(),
        Some(canary) => format!(
            "{}, and refused outside of the sandbox as well",
            canary.observed
        ),
    };
    Deviation::new("A canary that the claim rests on says nothing.")
        .at(format!("canary {name}"))
        .expected("held")
        .found(found)
        .undecided("that other attempts were impossible is not shown")
}
