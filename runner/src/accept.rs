//! Changes of a user's case that accept the findings of a run, as TOML for its reports.

use std::time::SystemTime;

use judge::accept::Judged;
use model::case::expect::NOT_REVIEWED;
use model::case::{Case, Expectations, Source};
use model::evidence::Evidence;
use model::finding::{Finding, Status};
use model::profile::Profile;
use model::time::rfc3339;

use crate::workload::Workload;

/// Writes the changes into the failed checks. A built-in case is not to be changed, so its findings get none.
pub(crate) fn propose(workload: &Workload, uid: u32, evidence: &Evidence, checks: &mut [Finding]) {
    let (case, profile): (&Case, Option<&Profile>) = match workload {
        Workload::Client { case, profile, .. } => (case, Some(profile)),
        Workload::Inline { case, .. } => (case, None),
        Workload::Program(_) => return,
    };
    let place = workload.project();
    let place = place.map(|(project, found)| (project.to_string_lossy(), found));
    if !matches!(case.origin.source, Source::File(_)) {
        return;
    }
    let complete = |own: &Expectations| {
        let completed = match (profile, &place) {
            (Some(profile), _) => own.of_client(profile),
            (None, Some((project, interpreters))) => own.on_machine(project, interpreters),
            (None, None) => own.clone(),
        };
        completed.with_uid(uid)
    };
    let reason = reason();
    let judged = Judged {
        own: &case.expect,
        complete: &complete,
        evidence,
        project: place.as_ref().map(|(project, _)| &**project),
        reason: &reason,
    };
    for finding in checks {
        if finding.status == Status::Failed {
            let changes = judged.changes(&finding.id);
            let is_some = !changes.is_empty();
            finding.accept = is_some
                .then(|| policy::write::changes(&case.expect, &changes))
                .flatten();
        }
    }
}

/// Reason of a rule that was seen today: `seen on 2026-11-30, not reviewed`.
pub(crate) fn reason() -> String {
    format!("seen on {}, {NOT_REVIEWED}", today())
}

/// Date of today, in UTC.
pub(crate) fn today() -> String {
    let now = rfc3339(SystemTime::now());
    now.get(..10).unwrap_or(&now).to_owned()
}
