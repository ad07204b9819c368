//! Gates and verdicts of audits.

use model::evidence::fixture::{case_b, connect, gap, question};
use model::evidence::{LookupKind, Sensitive, SensitivePath, Sighting, Survivor};
use model::report::Purpose;

use super::*;
use crate::check::audit;
use crate::fixture::report;

/// Audit of a program, with this change of its evidence.
fn audited(change: impl FnOnce(&mut Evidence)) -> Report {
    let mut run = case_b();
    change(&mut run.evidence);
    let checks = audit(&[], &run.evidence);
    let mut report = report(run);
    report.purpose = Purpose::Audit;
    report.verdict = verdict(&checks, &report.evidence);
    report.checks = checks;
    report
}

fn gate(report: &Report, kinds: &[FindingKind]) -> (Status, Verdict) {
    let finding = fail_on(kinds, report);
    let status = finding.status;
    let checks = [report.checks.clone(), vec![finding]].concat();
    (status, verdict(&checks, &report.evidence))
}

fn with(kind: FindingKind) -> Report {
    audited(|evidence| match kind {
        FindingKind::Attempts => evidence
            .attempts
            .push(connect("inet", "192.0.2.1", Some(443))),
        FindingKind::Names => evidence.names.push(question("api.example.com")),
        FindingKind::Credential => evidence.sightings.push(Sighting {
            place: "stdout".to_owned(),
            form: "base64".to_owned(),
        }),
        FindingKind::Survivors => evidence.survivors.push(Survivor {
            pid: 7,
            program: "sleep".to_owned(),
        }),
        FindingKind::Sensitive => evidence.sensitive.push(SensitivePath {
            what: Sensitive::Aws,
            path: "/root/.aws".to_owned(),
            kind: LookupKind::Read,
            count: 1,
            at_us: 0,
        }),
    })
}

#[test]
fn audit_without_a_gate_is_audited() {
    for kind in FindingKind::ALL {
        assert_eq!(with(kind).verdict, Verdict::Audited, "{kind:?}");
    }
    assert_eq!(audited(|_| {}).verdict, Verdict::Audited);
}

#[test]
fn gate_fails_for_its_own_kind_only() {
    for found in FindingKind::ALL {
        let report = with(found);
        for asked in FindingKind::ALL {
            let expected = if asked == found {
                (Status::Failed, Verdict::Failed)
            } else {
                (Status::Passed, Verdict::Passed)
            };
            assert_eq!(gate(&report, &[asked]), expected, "{found:?} {asked:?}");
        }
        let any = gate(&report, &FindingKind::ALL);
        assert_eq!(any, (Status::Failed, Verdict::Failed), "{found:?}");
    }
    let none = gate(&audited(|_| {}), &FindingKind::ALL);
    assert_eq!(none, (Status::Passed, Verdict::Passed));
}

#[test]
fn lost_evidence_is_errored_whatever_was_found() {
    let mut report = with(FindingKind::Attempts);
    report.evidence.gaps.push(gap(GapKind::Requests));
    let (status, verdict) = gate(&report, &[FindingKind::Attempts]);
    assert_eq!((status, verdict), (Status::Failed, Verdict::Errored));
}

#[test]
fn kind_that_was_not_recorded_is_errored() {
    let lost = |kind, change: fn(&mut Report)| {
        let mut report = audited(|_| {});
        change(&mut report);
        gate(&report, &[kind])
    };
    let errored = (Status::Errored, Verdict::Errored);
    let inherited = |report: &mut Report| report.tier = Tier::Inherited;
    assert_eq!(lost(FindingKind::Names, inherited), errored);
    assert_eq!(lost(FindingKind::Sensitive, inherited), errored);
    let passed = (Status::Passed, Verdict::Passed);
    assert_eq!(lost(FindingKind::Attempts, inherited), passed);
    let cut = |report: &mut Report| report.evidence.gaps.push(gap(GapKind::Lookups));
    assert_eq!(lost(FindingKind::Sensitive, cut), errored);
    assert_eq!(lost(FindingKind::Names, cut), passed);
}

#[test]
fn program_that_never_started_is_not_judged() {
    let report = audited(|evidence| evidence.exit = Exit::NotStarted);
    let expected = (Status::Skipped, Verdict::Errored);
    assert_eq!(gate(&report, &FindingKind::ALL), expected);
}
