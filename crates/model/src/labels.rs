//! Labels: the stable words of closed sets in every report, and their JSON Schemas.

use crate::evidence::{
    Advice, AttemptKind, Before, CanaryMode, CanaryStatus, FileKind, GapKind, LayerNeed,
    LayerStatus, LookupKind, Outcome, Reason, RequestClass,
};
use crate::profile::Cases;

/// Defines, for each closed set, a function from a value to its word, and the schema of the words.
macro_rules! labels {
    ($($(#[doc = $doc:literal])+ $function:ident($type:ident $(by $reference:tt)?) { $($value:pat => $word:literal,)+ })+) => {$(
        $(#[doc = $doc])+
        pub fn $function(value: $($reference)? $type) -> &'static str {
            match value {
                $($value => $word,)+
            }
        }

        impl ::schemars::JsonSchema for $type {
            fn schema_name() -> ::std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut ::schemars::SchemaGenerator) -> ::schemars::Schema {
                let words = $crate::schema::values::one_of(&[$($word),+]);
                $crate::schema::values::described(concat!($($doc),+), words)
            }
        }
    )+};
}

labels! {
    /// Scope of a variable: every case (`always`) or some cases (`case`).
    scope(Cases by &) {
        Cases::Every => "always",
        Cases::Only(_) => "case",
    }

    /// Purpose of a request.
    class(RequestClass) {
        RequestClass::Message => "message",
        RequestClass::Retry => "retry",
        RequestClass::Preflight => "preflight",
        RequestClass::Side => "side",
        RequestClass::Unknown => "unknown",
    }

    /// Event that had not happened when a record was on the pipe.
    before(Before) {
        Before::Connect => "connect",
        Before::Post => "post",
        Before::None => "none",
    }

    /// Type of a file system object.
    file_kind(FileKind) {
        FileKind::File => "file",
        FileKind::Directory => "directory",
        FileKind::Symlink => "symlink",
        FileKind::Fifo => "fifo",
        FileKind::Socket => "socket",
        FileKind::Device => "device",
    }

    /// Rule for an entry of the ledger: judged (`attempt`), or part of connecting to the stub (`setup`).
    attempt_kind(AttemptKind) {
        AttemptKind::Attempt => "attempt",
        AttemptKind::Setup => "setup",
    }

    /// Outcome of a call.
    outcome(Outcome) {
        Outcome::Allowed => "allowed",
        Outcome::Denied(_) => "denied",
    }

    /// Rule for a run without a layer.
    layer_need(LayerNeed) {
        LayerNeed::Required => "required",
        LayerNeed::IfOffered => "if-offered",
    }

    /// State of a layer in the kernel.
    layer_status(LayerStatus) {
        LayerStatus::Enforced => "enforced",
        LayerStatus::Partial => "partial",
        LayerStatus::Absent => "absent",
    }

    /// Side that should refuse a probe: the supervisor (`answered`) or the kernel (`continued`).
    canary_mode(CanaryMode) {
        CanaryMode::Answered => "answered",
        CanaryMode::Continued => "continued",
    }

    /// Outcome of a probe; `not-applicable` if the host refuses it outside the sandbox too.
    canary_status(CanaryStatus) {
        CanaryStatus::Held => "held",
        CanaryStatus::NotHeld => "not-held",
        CanaryStatus::NotApplicable => "not-applicable",
    }

    /// Use of a path.
    lookup_kind(LookupKind) {
        LookupKind::Read => "read",
        LookupKind::List => "list",
        LookupKind::Execute => "execute",
        LookupKind::Write => "write",
    }

    /// Option of `runner audit` that would show a path; `never` if none would.
    advice(Advice by &) {
        Advice::Read(_) => "read",
        Advice::Write(_) => "write",
        Advice::Never(_) => "never",
    }

    /// Reason why a path cannot be shown.
    reason(Reason) {
        Reason::System => "system",
        Reason::Special => "special",
        Reason::Broad => "broad",
        Reason::Own => "own",
        Reason::Unspelt => "unspelt",
        Reason::Absent => "absent",
    }

    /// Part of the evidence that is incomplete.
    gap(GapKind) {
        GapKind::Order => "order",
        GapKind::Requests => "requests",
        GapKind::Records => "records",
        GapKind::Stderr => "stderr",
        GapKind::Files => "files",
        GapKind::Processes => "processes",
        GapKind::Attempts => "attempts",
        GapKind::Isolation => "isolation",
        GapKind::Secrets => "secrets",
        GapKind::Lookups => "lookups",
        GapKind::Cut => "cut",
    }
}
