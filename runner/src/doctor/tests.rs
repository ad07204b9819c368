//! Tests of the verdict for tables of results, and of both output forms. Tests on machines that lack features
//! (`tests/integration/doctor.rs`) check the results themselves.

mod causes;

use model::case::Tier;
use model::finding::Verdict as RunVerdict;
use nix::errno::Errno;
use nix::unistd::Uid;

use super::context::Engine;
use super::judge::{agrees, missing, possible, verdict};
use super::probes::{ALL, Need};
use super::whole_run::Ended;
use super::*;

fn refused(errno: Errno) -> Observation {
    Observation::Refused {
        doing: "do it".to_owned(),
        errno: errno as i32,
    }
}

/// A machine on which all probes work except `lacking`. Probes that depend on those are untried.
fn host(lacking: &[(&str, Observation)]) -> Vec<ProbeResult> {
    for (id, _) in lacking {
        assert!(probes::named(id).is_some(), "no probe {id}");
    }
    try_all(|id| {
        let lacking = lacking.iter().find(|(lacks, _)| *lacks == id);
        lacking.map_or_else(
            || Observation::Works("done".to_owned()),
            |(_, observation)| observation.clone(),
        )
    })
}

fn lacking(ids: &[&str]) -> Vec<ProbeResult> {
    let lacking: Vec<_> = ids.iter().map(|id| (*id, refused(Errno::EPERM))).collect();
    host(&lacking)
}

fn context() -> Context {
    Context {
        kernel: "6.18.0".to_owned(),
        arch: "x86_64".to_owned(),
        uid: Uid::from_raw(1000),
        engine: None,
        is_wsl: false,
        modules: Some("capability,landlock,yama".to_owned()),
        apparmor_restricts: false,
        apparmor_profile: None,
        ptrace_scope: Some(1),
        debian_forbids: false,
        in_user_namespace: false,
        filters: 0,
    }
}

fn ran(code: i32, tier: Option<Tier>, verdict: Option<RunVerdict>) -> WholeRun {
    WholeRun {
        ended: Ended::Code(code),
        tier,
        verdict,
        errors: Vec::new(),
    }
}

fn passed(tier: Tier) -> WholeRun {
    ran(0, Some(tier), Some(RunVerdict::Passed))
}

fn not_made() -> WholeRun {
    ran(3, Some(Tier::Namespace), Some(RunVerdict::Errored))
}

#[test]
fn a_host_that_has_everything_has_tier_namespace() {
    let tried = host(&[]);
    let possible = possible(&tried);
    assert_eq!(possible.tier, Some(Tier::Namespace));
    assert!(possible.fresh_proc);
    let verdict = verdict(&tried, possible, &passed(Tier::Namespace));
    assert_eq!(verdict.exit_code(), 0, "{}", verdict.reason);
}

/// On a machine where only one probe fails, the isolation is the strongest one that does not require it.
#[test]
fn what_a_tier_requires_and_nothing_else_takes_it_away() {
    for probe in ALL {
        let possible = possible(&lacking(&[probe.id]));
        let expected = Tier::ALL
            .into_iter()
            .find(|tier| probe.need(*tier) != Need::Required);
        assert_eq!(possible.tier, expected, "{}", probe.id);
    }
}

#[test]
fn what_is_missing_together_is_judged_together() {
    let inherited = Some(Tier::Inherited);
    for (ids, tier) in [
        (&["user-namespace"][..], inherited),
        (&["user-namespace", "loopback-only"], None),
        (&["user-namespace", "landlock-scopes"], None),
        (&["user-namespace", "temporary-directory"], None),
        (&["user-namespace", "memory-here"], None),
        (&["user-namespace", "inotify", "descriptor-copy"], inherited),
        (
            &["loopback-only", "temporary-directory"],
            Some(Tier::Namespace),
        ),
        (&["landlock-tcp", "landlock-scopes"], Some(Tier::Namespace)),
        (&["seccomp-listener"], None),
        (&["own-file"], None),
    ] {
        assert_eq!(possible(&lacking(ids)).tier, tier, "{ids:?}");
    }
}

#[test]
fn a_covered_proc_leaves_tier_namespace_without_a_fresh_one() {
    let tried = lacking(&["fresh-proc"]);
    let possible = possible(&tried);
    assert_eq!(
        (possible.tier, possible.fresh_proc),
        (Some(Tier::Namespace), false)
    );
    let verdict = verdict(&tried, possible, &passed(Tier::Namespace));
    assert_eq!(verdict.exit_code(), 0);
    assert!(
        verdict.reason.contains("without a fresh /proc"),
        "{}",
        verdict.reason
    );
}

#[test]
fn what_could_not_be_tried_is_missing_and_the_cause_is_what_it_builds_on() {
    let tried = lacking(&["user-namespace", "loopback-only"]);
    let ids: Vec<_> = missing(&tried, Tier::Namespace)
        .iter()
        .map(|one| one.probe.id)
        .collect();
    assert!(
        ids.contains(&"id-map") && ids.contains(&"new-root"),
        "{ids:?}"
    );
    let verdict = verdict(&tried, possible(&tried), &not_made());
    assert_eq!(verdict.exit_code(), 3);
    assert_eq!(
        verdict.text(),
        "no run is possible here. Isolation namespace lacks user-namespace; isolation inherited lacks loopback-only"
    );
}

#[test]
fn the_weaker_tier_says_what_the_stronger_one_lacks() {
    let tried = lacking(&["user-namespace"]);
    let verdict = verdict(&tried, possible(&tried), &passed(Tier::Inherited));
    assert_eq!(verdict.exit_code(), 1);
    assert_eq!(verdict.details, "Isolation namespace lacks user-namespace");
}

#[test]
fn a_probe_that_ends_its_process_or_does_not_end_is_one_that_does_not_work() {
    for observation in [
        Observation::Killed(libc::SIGSYS),
        Observation::Hung,
        Observation::Wrong("was not refused".to_owned()),
        Observation::Untried("no place".to_owned()),
    ] {
        let tried = host(&[("landlock", observation)]);
        assert_eq!(possible(&tried).tier, None);
    }
    let tried = host(&[("other-user", Observation::NotNeeded("a user".to_owned()))]);
    assert_eq!(possible(&tried).tier, Some(Tier::Namespace));
}

#[test]
fn a_real_run_has_the_last_word() {
    let hung = WholeRun {
        ended: Ended::Hung,
        ..not_made()
    };
    let failed = ran(1, Some(Tier::Namespace), Some(RunVerdict::Failed));
    for (ids, run, agree) in [
        (&[][..], passed(Tier::Namespace), true),
        (&[], passed(Tier::Inherited), false),
        (&[], not_made(), false),
        (&[], failed.clone(), false),
        (&[], hung.clone(), false),
        (&["user-namespace"], passed(Tier::Inherited), true),
        (&["user-namespace"], passed(Tier::Namespace), false),
        (&["user-namespace"], not_made(), false),
        (&["seccomp-filter"], not_made(), true),
        (&["seccomp-filter"], hung, true),
        (&["seccomp-filter"], ran(2, None, None), true),
        (&["seccomp-filter"], passed(Tier::Namespace), false),
        (&["seccomp-filter"], failed, false),
    ] {
        let tried = lacking(ids);
        let possible = possible(&tried);
        assert_eq!(agrees(possible, &run), agree, "{ids:?} {run:?}");
        let verdict = verdict(&tried, possible, &run);
        if !agree {
            assert_eq!(verdict.exit_code(), 3);
            assert!(verdict.reason.contains("disagrees"), "{}", verdict.reason);
        }
    }
}

fn in_a_default_container() -> Examination {
    let tried = host(&[
        (
            "user-namespace",
            Observation::Refused {
                doing: "make a user namespace".to_owned(),
                errno: libc::EPERM,
            },
        ),
        (
            "descriptor-copy",
            Observation::Refused {
                doing: "copy a descriptor by pidfd_getfd".to_owned(),
                errno: libc::EPERM,
            },
        ),
        (
            "locked-memory",
            Observation::NotNeeded("a run locks no memory".to_owned()),
        ),
    ]);
    let possible = possible(&tried);
    let run = passed(Tier::Inherited);
    let verdict = verdict(&tried, possible, &run);
    Examination {
        context: Context {
            engine: Some((Engine::Docker, "/.dockerenv".to_owned())),
            apparmor_profile: Some("docker-default (enforce)".to_owned()),
            filters: 1,
            ..context()
        },
        tried,
        possible,
        run,
        verdict,
    }
}

#[test]
fn the_examination_for_people() {
    let text = human::render(&in_a_default_container(), Colour::Plain).unwrap();
    insta::assert_snapshot!(String::from_utf8(text).unwrap());
}

#[test]
fn the_verdict_is_the_first_and_the_last_line_and_nothing_is_coloured_unless_asked() {
    let text = |colour| {
        String::from_utf8(human::render(&in_a_default_container(), colour).unwrap()).unwrap()
    };
    let plain = text(Colour::Plain);
    let lines: Vec<_> = plain.lines().collect();
    assert!(lines[0].starts_with("INHERITED  "));
    assert_eq!(lines.first(), lines.last());
    assert!(!plain.contains('\u{1b}'));
    assert!(text(Colour::Ansi).contains("\u{1b}[33mINHERITED\u{1b}[0m"));
}

#[test]
fn a_line_is_no_wider_than_a_terminal() {
    let failed = || ran(1, Some(Tier::Namespace), Some(RunVerdict::Failed));
    let all: Vec<_> = ALL.iter().map(|probe| probe.id).collect();
    for (ids, run) in [
        (&[][..], passed(Tier::Namespace)),
        (&["fresh-proc"], passed(Tier::Namespace)),
        (&["user-namespace"], passed(Tier::Inherited)),
        (&["user-namespace", "loopback-only"], not_made()),
        (&["loopback", "landlock-scopes"], failed()),
        (&all, not_made()),
        (&[], failed()),
    ] {
        let tried = lacking(ids);
        let possible = possible(&tried);
        let verdict = verdict(&tried, possible, &run);
        let examination = Examination {
            context: context(),
            tried,
            possible,
            run,
            verdict,
        };
        let text = human::render(&examination, Colour::Plain).unwrap();
        let text = String::from_utf8(text).unwrap();
        let wide: Vec<_> = text
            .lines()
            .filter(|line| line.chars().count() > 100)
            .collect();
        assert!(wide.is_empty(), "{ids:?}: {wide:?}");
        assert_eq!(text.lines().next(), text.lines().last());
    }
}

#[test]
fn the_examination_for_machines_fits_its_schema() {
    let examination = in_a_default_container();
    let document: serde_json::Value =
        serde_json::from_slice(&json::render(&examination).unwrap()).unwrap();
    let schema = jsonschema::draft202012::new(json::schema().as_value()).unwrap();
    let faults: Vec<_> = schema
        .iter_errors(&document)
        .map(|one| one.to_string())
        .collect();
    assert!(faults.is_empty(), "{faults:?}");
    assert_eq!(document["verdict"]["tier"], "inherited");
    assert_eq!(document["verdict"]["exit_code"], 1);
    let probes = document["probes"].as_array().unwrap();
    assert_eq!(probes.len(), ALL.len());
    let one = probes
        .iter()
        .find(|one| one["id"] == "user-namespace")
        .unwrap();
    assert_eq!(one["status"], "refused");
    assert_eq!(one["errno"], "EPERM");
    assert_eq!(one["needed"]["namespace"], "required");
    assert_eq!(one["needed"]["inherited"], "unneeded");
    assert!(one["fixes"][0].as_str().unwrap().starts_with("docker run"));
}
