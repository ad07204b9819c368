//! Protections that test builds (feature `weaken`) switch off, so that the tests of each must fail.
//!
//! In every other build [`Plan::keeps`](super::plan::Plan::keeps) is constant.

use serde::{Deserialize, Serialize};

/// A protection, by its name in RUNNER_WEAKEN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protection {
    /// New network namespace.
    NetworkNamespace,
    /// Read-only root.
    ReadOnlyRoot,
    /// noexec on the writable trees.
    NoExec,
    /// Empty capability sets.
    Capabilities,
    /// Non-dumpable init.
    HiddenInit,
    /// Resource limits.
    Limits,
    /// Landlock rules.
    Landlock,
    /// Refusals by the filter itself.
    Filter,
    /// Refusals by the supervisor.
    Refusals,
    /// Records of the supervisor.
    Records,
    /// Notifications to the supervisor. Without them a run measures its cost, and the report proves no claim.
    Ledger,
    /// Refusal to start the client if a layer or a probe does not hold. Without it a test observes the client.
    Judgement,
}

/// Protections named in RUNNER_WEAKEN, separated by commas. Unknown names are skipped, so that their test fails.
#[cfg(feature = "weaken")]
pub fn from_env() -> Vec<Protection> {
    let names = std::env::var("RUNNER_WEAKEN").unwrap_or_default();
    let named = names.split(',').map(serde_json::Value::from);
    named
        .filter_map(|name| serde_json::from_value(name).ok())
        .collect()
}
