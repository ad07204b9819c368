//! Tests of the verdict, and of both output forms. Tests on machines that lack features (`tests/integration/doctor.rs`)
//! check the results themselves.

use nix::errno::Errno;

use super::probe::{Outcome, Refusal};
use super::*;
use crate::advice::Advice;

fn works() -> Outcome {
    Ok("done".to_owned())
}

fn refused() -> Outcome {
    Err(Refusal::operation(
        "make a user namespace",
        Errno::EPERM,
        "a filter refuses it",
        "start the runner outside of it",
    ))
}

fn probe(id: &str, isolation: Option<Tier>, need: Need, outcome: Outcome) -> Probe {
    Probe::new((id, "a feature"), isolation, need, outcome)
}

fn run_of(tier: Tier, outcome: Outcome) -> Probe {
    probe(tier.word(), Some(tier), Need::Required, outcome)
}

fn examined(of_case: &[Probe], others: &[Probe]) -> Examination {
    let probes = [of_case, others].concat();
    Examination {
        evidence: Evidence::default(),
        tier: tier(of_case, &probes),
        probes,
    }
}

#[test]
fn verdict_is_the_isolation_of_the_run() {
    let [namespace, inherited] = Tier::ALL;
    for (of_case, tier, code) in [
        (vec![run_of(namespace, works())], Some(namespace), 0),
        (
            vec![run_of(namespace, refused()), run_of(inherited, works())],
            Some(inherited),
            1,
        ),
        (vec![run_of(namespace, refused())], None, 3),
        (
            vec![run_of(namespace, refused()), run_of(inherited, refused())],
            None,
            3,
        ),
        (Vec::new(), None, 3),
    ] {
        let examined = examined(&of_case, &[]);
        assert_eq!((examined.tier, examined.exit_code()), (tier, code));
    }
}

/// A run on demand works where a run by default is not possible.
#[test]
fn run_on_demand_does_not_change_the_verdict() {
    let of_case = [run_of(Tier::Namespace, refused())];
    let examined = examined(&of_case, &[run_of(Tier::Inherited, works())]);
    assert_eq!(examined.exit_code(), 3);
}

#[test]
fn refused_requirement_of_the_isolation_leaves_none() {
    let of_case = [run_of(Tier::Namespace, works())];
    for (isolation, need, code) in [
        (None, Need::Required, 3),
        (Some(Tier::Namespace), Need::Required, 3),
        (Some(Tier::Inherited), Need::Required, 0),
        (None, Need::Used, 0),
        (None, Need::Audit, 0),
    ] {
        let other = probe("landlock-abi-1", isolation, need, refused());
        assert_eq!(examined(&of_case, &[other]).exit_code(), code);
    }
    let untried = Err(Refusal::Untried("no directory".to_owned()));
    let untried = probe("landlock-abi-2", None, Need::Required, untried);
    assert_eq!(examined(&of_case, &[untried]).exit_code(), 0);
}

#[test]
fn covered_proc_is_in_the_reason() {
    let layer = |outcome| probe("fresh-proc", Some(Tier::Namespace), Need::Used, outcome);
    let of_case = |outcome| [run_of(Tier::Namespace, works()), layer(outcome)];
    let reason = examined(&of_case(refused()), &[]).reason();
    assert!(reason.contains("without a fresh /proc"), "{reason}");
    let reason = examined(&of_case(works()), &[]).reason();
    assert!(!reason.contains("without"), "{reason}");
}

#[test]
fn ended_and_hung_trials_have_a_cause() {
    for refusal in [
        Refusal::Killed(libc::SIGSYS),
        Refusal::Killed(libc::SIGKILL),
        Refusal::Killed(libc::SIGABRT),
        Refusal::Hung,
        Refusal::Wrong("was not refused".to_owned()),
    ] {
        let probe = probe("inotify", None, Need::Used, Err(refusal));
        assert_eq!(probe.status, Status::Refused);
        assert!(probe.cause.is_some() && !probe.fixes.is_empty());
    }
}

/// The observation says the cause of such a refusal once; advice has its own cause and fixes.
#[test]
fn refused_run_says_each_text_once() {
    let refused = |advice| {
        let text = "cannot use /proc".to_owned();
        let errno = Some(Errno::ENOENT);
        let run = Refusal::Run {
            text,
            errno,
            advice,
        };
        probe("run", None, Need::Required, Err(run))
    };
    let bare = refused(None);
    assert_eq!(bare.observed, "cannot use /proc");
    assert_eq!(bare.errno.as_deref(), Some("ENOENT"));
    assert_eq!((bare.cause, bare.fixes), (None, Vec::new()));
    let fixed = refused(Some(Advice::fix("mount it")));
    assert_eq!(
        (fixed.cause, fixed.fixes),
        (None, vec!["mount it".to_owned()])
    );
    let advice = Advice {
        cause: Some("it is not mounted".to_owned()),
        fixes: vec!["mount it".to_owned()],
    };
    let advised = refused(Some(advice));
    assert_eq!(advised.cause.as_deref(), Some("it is not mounted"));
    assert_eq!(advised.fixes, ["mount it"]);
}

fn in_a_container() -> Examination {
    let of_case = [
        run_of(Tier::Namespace, refused()),
        run_of(Tier::Inherited, works()),
    ];
    let others = [
        probe("landlock-abi-1", None, Need::Required, works()),
        probe("audit", None, Need::Audit, works()),
        probe("descriptor-copy", None, Need::Used, refused()),
    ];
    examined(&of_case, &others)
}

#[test]
fn the_examination_for_people() {
    let text = human::render(&in_a_container(), Colour::Plain).unwrap();
    insta::assert_snapshot!(String::from_utf8(text).unwrap());
}

#[test]
fn verdict_is_the_first_and_the_last_line() {
    let text =
        |colour| String::from_utf8(human::render(&in_a_container(), colour).unwrap()).unwrap();
    let plain = text(Colour::Plain);
    let lines: Vec<_> = plain.lines().collect();
    assert!(lines[0].starts_with("INHERITED  "));
    assert_eq!(lines.first(), lines.last());
    assert!(
        lines.iter().all(|line| line.chars().count() <= 100),
        "{plain}"
    );
    assert!(!plain.contains('\u{1b}'));
    assert!(text(Colour::Ansi).contains("\u{1b}[33mINHERITED\u{1b}[0m"));
}

#[test]
fn the_examination_for_machines_fits_its_schema() {
    let document = json::render(&in_a_container()).unwrap();
    let document: serde_json::Value = serde_json::from_slice(&document).unwrap();
    let schema = jsonschema::draft202012::new(json::schema().as_value()).unwrap();
    let faults: Vec<_> = schema
        .iter_errors(&document)
        .map(|one| one.to_string())
        .collect();
    assert!(faults.is_empty(), "{faults:?}");
    assert_eq!(document["verdict"]["tier"], "inherited");
    assert_eq!(document["verdict"]["exit_code"], 1);
    let first = &document["probes"][0];
    assert_eq!(first["id"], "namespace");
    assert_eq!(first["isolation"], "namespace");
    assert_eq!(first["status"], "refused");
    assert_eq!(first["errno"], "EPERM");
    assert_eq!(first["need"], "required");
    assert_eq!(first["fixes"][0], "start the runner outside of it");
}
