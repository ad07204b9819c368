//! The sandbox of a run: its layers, as read back from the kernel, and the probes of the canary.

use scenario::closed_set;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One layer of the sandbox, as verified from inside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Layer {
    /// `network namespace`, `landlock`, …
    pub name: String,
    /// State of the layer in the kernel.
    pub status: LayerStatus,
    /// Enforced rules, or missing parts.
    pub detail: String,
    /// Rule for a run without the layer.
    pub need: LayerNeed,
}

closed_set! {
    /// Rule for a run without a layer. The isolation decides, not a check.
    pub enum LayerNeed {
        /// Any status but [`LayerStatus::Enforced`] makes the verdict *errored*.
        Required = "required",
        /// The layer is used if the kernel offers it; its absence is only reported.
        IfOffered = "if-offered",
    }
}

closed_set! {
    /// State of a layer in the kernel.
    pub enum LayerStatus {
        /// All parts are enforced.
        Enforced = "enforced",
        /// Some parts are enforced; the detail names the missing ones.
        Partial = "partial",
        /// No part is enforced.
        Absent = "absent",
    }
}

/// One probe of the canary: an attempt that must fail, made by the runner in the client's place before the client
/// starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Canary {
    /// Name such as `tcp4`, `packet`, `ptrace`; the positive twins are `stub` and `home`.
    pub name: String,
    /// The side that should refuse the probe.
    pub mode: CanaryMode,
    /// Expected result, such as `ENETUNREACH`; `ok` for a positive twin.
    pub expected: String,
    /// Observed result, in the same words.
    pub observed: String,
    /// Outcome of the probe.
    pub status: CanaryStatus,
    /// True if the supervisor should have recorded the probe but was never asked: a filter outside the sandbox refused
    /// it.
    #[serde(skip)]
    pub unseen: bool,
}

closed_set! {
    /// The side that refuses a probe.
    pub enum CanaryMode {
        /// The supervisor refuses the probe and records it.
        Answered = "answered",
        /// The kernel refuses the probe.
        Continued = "continued",
    }
}

closed_set! {
    /// Outcome of a probe.
    pub enum CanaryStatus {
        /// The expected result was observed.
        Held = "held",
        /// Another result was observed: the sandbox leaks, or the instrument is broken.
        NotHeld = "not-held",
        /// The host refuses the probe outside the sandbox too, so it proves nothing.
        NotApplicable = "not-applicable",
    }
}
