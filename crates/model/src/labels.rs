//! Stable words of closed sets, as every report spells them, and their JSON Schemas.

use crate::evidence::{
    Advice, AttemptKind, Before, CanaryMode, CanaryStatus, FileKind, GapKind, LayerNeed,
    LayerStatus, LookupKind, Outcome, Reason, RequestClass,
};
use crate::profile::Cases;

/// For each closed set a function from its value to its word, and from the same table its schema.
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
    /// Whether a variable belongs to some cases or to every one.
    scope(Cases by &) {
        Cases::Every => "always",
        Cases::Only(_) => "case",
    }

    /// What a request is for.
    class(RequestClass) {
        RequestClass::Message => "message",
        RequestClass::Retry => "retry",
        RequestClass::Preflight => "preflight",
        RequestClass::Side => "side",
        RequestClass::Unknown => "unknown",
    }

    /// What had not happened yet when a record was on the pipe.
    before(Before) {
        Before::Connect => "connect",
        Before::Post => "post",
        Before::None => "none",
    }

    /// What lies at a path.
    file_kind(FileKind) {
        FileKind::File => "file",
        FileKind::Directory => "directory",
        FileKind::Symlink => "symlink",
        FileKind::Fifo => "fifo",
        FileKind::Socket => "socket",
        FileKind::Device => "device",
    }

    /// Whether an entry of the ledger is judged (`attempt`), or part of reaching the stub (`setup`).
    attempt_kind(AttemptKind) {
        AttemptKind::Attempt => "attempt",
        AttemptKind::Setup => "setup",
    }

    /// What became of a call.
    outcome(Outcome) {
        Outcome::Allowed => "allowed",
        Outcome::Denied(_) => "denied",
    }

    /// Whether a run counts without a layer.
    layer_need(LayerNeed) {
        LayerNeed::Required => "required",
        LayerNeed::IfOffered => "if-offered",
    }

    /// What the kernel says of a layer.
    layer_status(LayerStatus) {
        LayerStatus::Enforced => "enforced",
        LayerStatus::Partial => "partial",
        LayerStatus::Absent => "absent",
    }

    /// Who was to refuse a canary: the supervisor (`answered`) or the kernel itself (`continued`).
    canary_mode(CanaryMode) {
        CanaryMode::Answered => "answered",
        CanaryMode::Continued => "continued",
    }

    /// What a canary says; `not-applicable` where it is refused outside of the sandbox as well.
    canary_status(CanaryStatus) {
        CanaryStatus::Held => "held",
        CanaryStatus::NotHeld => "not-held",
        CanaryStatus::NotApplicable => "not-applicable",
    }

    /// What was wanted of a path.
    lookup_kind(LookupKind) {
        LookupKind::Read => "read",
        LookupKind::List => "list",
        LookupKind::Execute => "execute",
        LookupKind::Write => "write",
    }

    /// An option of `runner audit` that would show a path, or `never` where none would.
    advice(Advice by &) {
        Advice::Read(_) => "read",
        Advice::Write(_) => "write",
        Advice::Never(_) => "never",
    }

    /// Why a path cannot be shown.
    reason(Reason) {
        Reason::System => "system",
        Reason::Special => "special",
        Reason::Broad => "broad",
        Reason::Own => "own",
        Reason::Unspelt => "unspelt",
        Reason::Absent => "absent",
    }

    /// Which part of the evidence is incomplete.
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
