//! Test builds only (feature `weaken`): protections switched off, so that a test can see them missed.
//!
//! In every other build [`Plan::keeps`] is constant and nothing of this is in the program.

use serde::{Deserialize, Serialize};

/// One protection, by the name that RUNNER_WEAKEN gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protection {
    /// A network namespace of its own.
    NetworkNamespace,
    /// The root is read-only.
    ReadOnlyRoot,
    /// Nothing is executable in the writable trees.
    NoExec,
    /// The five capability sets are empty.
    Capabilities,
    /// Init is out of reach.
    HiddenInit,
    /// Resource limits.
    Limits,
    /// Landlock's rules.
    Landlock,
    /// The calls that the filter refuses by itself.
    Filter,
    /// The supervisor refuses.
    Refusals,
    /// The supervisor records.
    Records,
    /// There is a supervisor at all: to measure what it costs. Nothing of such a run is a claim.
    Ledger,
    /// Nothing is started where a layer or a canary does not hold: to see what a client comes to without one.
    Judgement,
}

/// What RUNNER_WEAKEN names, separated by commas. What it misspells is not weakened, so its test fails.
#[cfg(feature = "weaken")]
pub fn asked() -> Vec<Protection> {
    let names = std::env::var("RUNNER_WEAKEN").unwrap_or_default();
    let named = names.split(',').map(serde_json::Value::from);
    named
        .filter_map(|name| serde_json::from_value(name).ok())
        .collect()
}
