//! The words of the report's schema for closed sets. They are stable.

use crate::case::Source;
use crate::evidence::{
    AttemptKind, Before, CanaryMode, CanaryStatus, FileKind, GapKind, LayerNeed, LayerStatus,
    LookupKind, Outcome, Reason, RequestClass,
};
use crate::profile::Cases;

/// `built in`, or the path.
pub(super) fn source(source: &Source) -> String {
    match source {
        Source::BuiltIn => "built in".to_owned(),
        Source::File(path) => path.display().to_string(),
    }
}

/// Whether a variable belongs to some cases or to every one.
pub(super) fn scope(cases: &Cases) -> &'static str {
    match cases {
        Cases::Every => "always",
        Cases::Only(_) => "case",
    }
}

pub(super) fn class(class: RequestClass) -> &'static str {
    match class {
        RequestClass::Message => "message",
        RequestClass::Retry => "retry",
        RequestClass::Preflight => "preflight",
        RequestClass::Side => "side",
        RequestClass::Unknown => "unknown",
    }
}

pub(super) fn before(before: Before) -> &'static str {
    match before {
        Before::Connect => "connect",
        Before::Post => "post",
        Before::None => "none",
    }
}

pub(super) fn file_kind(kind: FileKind) -> &'static str {
    match kind {
        FileKind::File => "file",
        FileKind::Directory => "directory",
        FileKind::Symlink => "symlink",
        FileKind::Fifo => "fifo",
        FileKind::Socket => "socket",
        FileKind::Device => "device",
    }
}

pub(super) fn attempt_kind(kind: AttemptKind) -> &'static str {
    match kind {
        AttemptKind::Attempt => "attempt",
        AttemptKind::Setup => "setup",
    }
}

pub(super) fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Allowed => "allowed",
        Outcome::Denied(_) => "denied",
    }
}

pub(super) fn layer_need(need: LayerNeed) -> &'static str {
    match need {
        LayerNeed::Required => "required",
        LayerNeed::IfOffered => "if-offered",
    }
}

pub(super) fn layer_status(status: LayerStatus) -> &'static str {
    match status {
        LayerStatus::Enforced => "enforced",
        LayerStatus::Partial => "partial",
        LayerStatus::Absent => "absent",
    }
}

pub(super) fn canary_mode(mode: CanaryMode) -> &'static str {
    match mode {
        CanaryMode::Answered => "answered",
        CanaryMode::Continued => "continued",
    }
}

pub(super) fn canary_status(status: CanaryStatus) -> &'static str {
    match status {
        CanaryStatus::Held => "held",
        CanaryStatus::NotHeld => "not-held",
        CanaryStatus::NotApplicable => "not-applicable",
    }
}

pub(super) fn lookup_kind(kind: LookupKind) -> &'static str {
    match kind {
        LookupKind::Read => "read",
        LookupKind::List => "list",
        LookupKind::Execute => "execute",
        LookupKind::Write => "write",
    }
}

pub(super) fn reason(reason: Reason) -> &'static str {
    match reason {
        Reason::System => "system",
        Reason::Special => "special",
        Reason::Broad => "broad",
        Reason::Own => "own",
        Reason::Unspelt => "unspelt",
        Reason::Absent => "absent",
    }
}

pub(super) fn reason_in_full(reason: Reason) -> &'static str {
    match reason {
        Reason::System => "never shown: the system's own",
        Reason::Special => "never shown: a device, a socket, a pipe, or names of other machines",
        Reason::Broad => "never shown as a whole: it is or holds a home or a tree of the sandbox",
        Reason::Own => "the sandbox has its own",
        Reason::Unspelt => "its name cannot be typed",
        Reason::Absent => "not in its empty home",
    }
}

pub(super) fn gap(kind: GapKind) -> &'static str {
    match kind {
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
    }
}
