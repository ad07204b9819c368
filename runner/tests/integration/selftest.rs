//! `runner selftest`: the blocked ways out, the layer that blocks each, and the output if a result is inconclusive.

use std::fs;
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use probes::probe::Kind;
use probes::table;
use serde_json::Value;

use crate::kit::{Run, runner};
use crate::needs_sandbox;
use crate::teardown::watch::until;

/// Classes whose twins succeed on every machine with a sandbox, with the layer that refuses each in isolation
/// `namespace`.
const EVERYWHERE: [(&str, &str); 32] = [
    ("network/tcp", "ENETUNREACH supervisor"),
    ("network/udp", "ENETUNREACH supervisor"),
    ("network/everybody", "ENETUNREACH supervisor"),
    ("network/neighbours", "ECONNREFUSED network namespace"),
    ("network/changing-address", "ENETUNREACH network namespace"),
    ("network/links", "EPERM no capabilities"),
    ("names/daemons", "ENOENT own root"),
    ("names/servers", "ENETUNREACH supervisor"),
    ("names/resolver", "EACCES no capabilities"),
    ("sockets/abstract", "ECONNREFUSED network namespace"),
    ("sockets/pathname", "ENOENT own root"),
    ("sockets/raw", "EPERM supervisor"),
    ("sockets/packet", "EAFNOSUPPORT supervisor"),
    ("sockets/netlink", "EPROTONOSUPPORT supervisor"),
    (
        "sockets/forced-link",
        "ENETUNREACH supervisor, ENOPROTOOPT supervisor",
    ),
    ("sockets/urgent-bytes", "EOPNOTSUPP supervisor"),
    (
        "processes/memory",
        "EPERM filter, ESRCH pid namespace, EACCES Landlock",
    ),
    ("processes/init", "EPERM filter, EPERM Landlock"),
    ("processes/signals", "ESRCH pid namespace, EPERM Landlock"),
    (
        "processes/supervisor",
        "ESRCH pid namespace, EBUSY filter, nothing supervisor",
    ),
    ("processes/namespaces", "EPERM filter, ENOSYS filter"),
    ("processes/capabilities", "nothing no capabilities"),
    ("processes/set-id", "nothing no_new_privs"),
    ("processes/descriptors", "nothing closed descriptors"),
    ("files/read", "ENOENT own root, EACCES Landlock"),
    ("files/own-proc", "EACCES Landlock"),
    ("files/magic-links", "EACCES Landlock"),
    ("files/execute", "EACCES supervisor, EPERM noexec"),
    ("files/devices", "EACCES Landlock"),
    ("files/attributes", "EOPNOTSUPP filter"),
    ("mounts/calls", "EPERM filter"),
    ("mounts/propagation", "nothing private mounts"),
];

/// The differing layers in isolation `inherited`.
const IN_A_CONTAINER: [(&str, &str); 10] = [
    ("network/listeners", "EACCES supervisor"),
    ("sockets/unix", "EACCES supervisor"),
    ("network/neighbours", "EACCES supervisor"),
    ("sockets/abstract", "EACCES supervisor"),
    ("sockets/pathname", "EACCES supervisor"),
    ("sockets/raw", "EPERM supervisor"),
    ("processes/signals", "EPERM Landlock"),
    ("files/read", "EACCES Landlock"),
    ("files/write", "EACCES Landlock"),
    ("files/execute", "EACCES supervisor"),
];

/// The differing layers without a fresh /proc, so that the sandbox's root has none.
const WITHOUT_PROC: [(&str, &str); 4] = [
    (
        "processes/memory",
        "EPERM filter, ESRCH pid namespace, ENOENT own root",
    ),
    ("processes/descriptors", "nothing closed descriptors"),
    ("files/own-proc", "ENOENT own root"),
    ("files/magic-links", "ENOENT own root"),
];

/// The class that is inconclusive there, with the reason: the list of mounts is a file of /proc.
const UNKNOWN_WITHOUT_PROC: (&str, &str) = ("mounts/propagation", "ENOENT inside, not nothing");

/// Returns the exit code, and the answer, valid against its schema by a third-party validator.
#[track_caller]
fn answer(run: &Run) -> (Option<i32>, Value) {
    let output = run.output();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let answer = serde_json::from_slice(&output.stdout);
    let answer: Value = answer.unwrap_or_else(|error| panic!("no answer ({error}): {said}"));
    assert_eq!(said, "");
    let schema = runner::selftest::schema();
    let schema = jsonschema::draft202012::new(schema.as_value()).unwrap();
    let faults: Vec<String> = schema
        .iter_errors(&answer)
        .map(|fault| format!("{}: {fault}", fault.instance_path()))
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    (output.status.code(), answer)
}

fn selftest() -> Run {
    Run::case("selftest")
        .argument("--json")
        .argument("--strict")
}

#[track_caller]
fn class<'a>(answer: &'a Value, id: &str) -> &'a Value {
    let classes = answer["classes"].as_array().unwrap();
    let found = classes.iter().find(|class| class["id"] == id);
    found.unwrap_or_else(|| panic!("no {id}"))
}

/// Asserts that the answer has each probe of the table for this kind of sandbox, with an errno and a layer of its row.
/// A probe is inconclusive only if its twin was refused or could not be made.
#[track_caller]
fn holds(code: Option<i32>, answer: &Value, kind: Kind) {
    assert_eq!(answer["schema"], "runner.selftest/1");
    assert_eq!(answer["counts"]["through"], 0, "{answer:#}");
    let known = answer["counts"]["inconclusive"] == 0;
    let (status, expected) = if known {
        ("blocked", 0)
    } else {
        ("inconclusive", 3)
    };
    assert_eq!((&answer["status"], code), (&status.into(), Some(expected)));
    let mut found = Vec::new();
    for class in answer["classes"].as_array().unwrap() {
        for attempt in class["attempts"].as_array().unwrap() {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let name = format!("{}/{}", text(&class["id"]), text(&attempt["name"]));
            let probe = table::find(&name).unwrap();
            let as_listed = probe.expected(kind).refusals.iter().any(|refusal| {
                attempt["inside"] == *refusal.reply.words()
                    && attempt["layer"] == refusal.layer.words()
            });
            let reason = text(&attempt["reason"]);
            let is_known = if attempt["status"] == "blocked" {
                as_listed && reason.is_empty()
            } else {
                reason.starts_with("refused outside too")
                    || reason == "nothing was found outside either"
                    || reason.starts_with("its twin was not made")
                    || (kind == Kind::NamespaceWithoutProc
                        && (text(&class["id"]).as_str(), reason.as_str()) == UNKNOWN_WITHOUT_PROC)
            };
            assert!(is_known, "{name}: {attempt:#}");
            found.push(name);
        }
    }
    let made = table::classes().flat_map(|class| {
        let probes = class.probes.iter();
        let made = probes.filter(|probe| !probe.expected(kind).refusals.is_empty());
        made.map(|probe| class.full_name(probe))
    });
    assert_eq!(found, Vec::from_iter(made));
    let blocked = answer["classes"].as_array().unwrap().iter();
    let blocked = blocked.filter(|class| class["status"] == "blocked").count();
    assert_eq!(answer["counts"]["blocked"], blocked);
}

#[test]
fn nothing_gets_out_whoever_starts_it() {
    needs_sandbox!();
    for run in [selftest(), selftest().as_ordinary_user()] {
        let (code, answer) = answer(&run);
        assert_eq!(answer["tier"], "namespace");
        assert!(answer["because"].is_null());
        holds(code, &answer, Kind::Namespace);
        for (id, because) in EVERYWHERE {
            let class = class(&answer, id);
            assert_eq!(class["status"], "blocked", "{class:#}");
            assert_eq!(class["because"], because, "{class:#}");
        }
    }
}

#[test]
fn nothing_gets_out_where_the_sandbox_has_no_proc() {
    needs_sandbox!();
    let run = || selftest().on_a_host_without("proc");
    for run in [run(), run().as_ordinary_user()] {
        let (code, answer) = answer(&run);
        assert_eq!(answer["tier"], "namespace");
        holds(code, &answer, Kind::NamespaceWithoutProc);
        let differs = |id: &str| {
            let mut others = WITHOUT_PROC.iter().map(|(id, _)| *id);
            id == UNKNOWN_WITHOUT_PROC.0 || others.any(|other| other == id)
        };
        let same = EVERYWHERE.into_iter().filter(|(id, _)| !differs(id));
        for (id, because) in same.chain(WITHOUT_PROC) {
            let class = class(&answer, id);
            assert_eq!(class["status"], "blocked", "{class:#}");
            assert_eq!(class["because"], because, "{class:#}");
        }
        assert_own_program(&answer, "EROFS own root");
    }
}

/// Asserts the layers that protect the program: the owner has write permission by the mode, but is refused while the
/// program runs.
#[track_caller]
fn assert_own_program(answer: &Value, mode: &str) {
    let class = class(answer, "files/own-program");
    assert_eq!(class["status"], "blocked", "{class:#}");
    let refusals = ["ETXTBSY running program", "EACCES file mode"];
    let refusals = refusals.map(|write| format!("{write}, {mode}"));
    let because = class["because"].as_str();
    assert!(refusals.iter().any(|one| because == Some(one)), "{class:#}");
}

#[test]
fn nothing_gets_out_where_the_network_is_the_containers() {
    needs_sandbox!();
    // If namespaces are refused, twins that need them cannot be made, so only the network is a container's.
    let run = || {
        selftest()
            .on_a_host_without("network")
            .argument("--isolation")
            .argument("inherited")
    };
    for run in [run(), run().as_ordinary_user()] {
        let (code, answer) = answer(&run);
        assert_eq!(answer["tier"], "inherited");
        holds(code, &answer, Kind::Inherited);
        assert_own_program(&answer, "EPERM supervisor");
        for (id, because) in IN_A_CONTAINER {
            let class = class(&answer, id);
            assert_eq!(class["status"], "blocked", "{class:#}");
            assert_eq!(class["because"], because, "{class:#}");
        }
    }
}

#[test]
fn where_namespaces_are_refused_the_twins_that_need_them_are_said_to_be_missing() {
    needs_sandbox!();
    let run = selftest().on_a_host_without("network,namespaces");
    let (code, answer) = answer(&run);
    assert_eq!((code, &answer["tier"]), (Some(3), &"inherited".into()));
    holds(code, &answer, Kind::Inherited);
    let tcp = class(&answer, "network/tcp");
    assert_eq!(tcp["status"], "inconclusive");
    let because = tcp["because"].as_str().unwrap();
    assert!(
        because.ends_with("fast-open: its twin was not made: namespaces of its own: EPERM"),
        "{because}"
    );
    let passed_over = "isolation namespace is not available here: cannot make a user namespace and a network namespace: EPERM";
    let because = answer["because"].as_str().unwrap();
    assert!(because.starts_with(passed_over), "{because}");
}

#[test]
fn a_tier_that_was_passed_over_is_said_to_people_in_lines_of_100_columns() {
    needs_sandbox!();
    let run = Run::case("selftest").on_a_host_without("network,namespaces");
    let text = String::from_utf8(run.output().stdout).unwrap();
    assert!(
        text.contains(
            "\n\nisolation namespace is not available here: cannot make a user namespace"
        ),
        "{text}"
    );
    assert!(
        text.lines().all(|line| line.chars().count() <= 100),
        "{text}"
    );
    let grouped = "INCONCLUSIVE  ipv4, ipv6, mapped, fast-open: its twin was not";
    assert!(text.contains(grouped), "{text}");
}

#[test]
fn a_run_that_can_be_made_in_no_tier_has_an_error_and_a_hint_for_each() {
    needs_sandbox!();
    let output = selftest()
        .on_a_host_without("namespaces,landlock,network")
        .output();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(3), 0));
    let said = String::from_utf8(output.stderr).unwrap();
    for line in [
        "error: cannot make a sandbox with isolation namespace: cannot make a user namespace and a network namespace: EPERM",
        "  hint: already inside a sandbox, whose system call filter refuses a call",
        "error: the hostile client was not started",
        "  hint: the kernel has Landlock, and a filter around the runner refuses its calls",
    ] {
        assert!(said.lines().any(|told| told.starts_with(line)), "{said}");
    }
}

#[test]
fn limits_that_are_too_low_for_it_are_said_with_what_to_raise() {
    needs_sandbox!();
    let runs = [
        selftest().on_a_host_without("data=1000000"),
        selftest()
            .on_a_host_without("processes=1")
            .as_ordinary_user(),
    ];
    for run in runs {
        let output = run.output();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(3), 0));
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.starts_with("error: cannot make "), "{said}");
        assert!(
            said.contains("\n  hint: a limit on processes or memory is reached"),
            "{said}"
        );
    }
}

#[test]
fn a_selftest_that_is_ended_leaves_no_directory() {
    needs_sandbox!();
    let directory = tempfile::tempdir().unwrap();
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGKILL] {
        let names = || fs::read_dir(directory.path()).unwrap().count();
        let run = selftest().variable("TMPDIR", directory.path());
        let mut command = run.command();
        let mut started = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        until("the targets", || (names() == 1).then_some(()));
        kill(Pid::from_raw(started.id() as i32), signal).unwrap();
        started.wait().unwrap();
        until("their end", || (names() == 0).then_some(()));
    }
}

#[test]
fn people_get_a_line_for_each_class_and_the_counts_at_the_end() {
    needs_sandbox!();
    let output = Run::case("selftest").output();
    let text = String::from_utf8(output.stdout).unwrap();
    // A wrapped line continues with an indent.
    let lines = text.lines();
    let lines: Vec<&str> = lines
        .filter(|line| !line.is_empty() && !line.starts_with(' '))
        .collect();
    let (last, classes) = lines.split_last().unwrap();
    let words = |line: &str| {
        line.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    for (id, because) in EVERYWHERE {
        let line = classes.iter().find(|line| words(line)[0] == id).unwrap();
        assert_eq!(words(line)[1], "BLOCKED", "{line}");
        assert!(line.ends_with(&format!("  {because}")), "{line}");
    }
    let count = |word: &str| classes.iter().filter(|line| words(line)[1] == word).count();
    let (blocked, inconclusive) = (count("BLOCKED"), count("INCONCLUSIVE"));
    assert_eq!(blocked + inconclusive, classes.len(), "{text}");
    let end =
        format!("{blocked} blocked, 0 through, {inconclusive} inconclusive; isolation namespace");
    assert!(last.ends_with(&end), "{last}");
    assert!(!text.contains('\u{1b}'));
}

#[test]
fn an_answer_that_nobody_gets_is_an_error() {
    needs_sandbox!();
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", r#"exec "$0" selftest >/dev/full"#]);
    let output = shell.arg(runner()).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        said,
        "error: cannot write the answer\n  caused by: No space left on device (os error 28)\n"
    );
}

#[test]
fn nothing_of_a_selftest_is_left_behind() {
    needs_sandbox!();
    let directory = tempfile::tempdir().unwrap();
    let run = selftest().variable("TMPDIR", directory.path());
    let (code, answer) = answer(&run);
    holds(code, &answer, Kind::Namespace);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}
