//! `--baseline`.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::{Place, lines, straight};
use crate::kit::{Done, Run, fixture, runner};
use crate::needs_sandbox;

const CHECK: &str = "baseline/unchanged";
const GOOD: &str = "schema = \"runner.baseline/1\"\ncase = \"case-b\"\ntier = \"namespace\"\n";

fn with(run: Run, lock: &Path) -> Run {
    run.argument("--baseline").argument(lock)
}

fn updating(run: Run, lock: &Path) -> Run {
    with(run, lock).argument("--update-baseline")
}

/// A lock file of the straight client.
fn locked(place: &Place) -> std::path::PathBuf {
    let lock = place.at("agent.lock");
    let done = updating(straight(), &lock).json();
    done.assert_passed();
    assert_eq!(done.check(CHECK)["status"], "skipped");
    assert_eq!(done.report["baseline"]["outcome"], "made");
    lock
}

/// Applies the report's advice for each difference by hand.
fn accept(lock: &Path, differences: &Value) {
    let mut text = fs::read_to_string(lock).unwrap();
    for difference in differences.as_array().unwrap() {
        let accept = |key: &str| difference["accept"][key].as_str().unwrap();
        let line = format!("{}\n", accept("line"));
        let (key, _) = line.split_once("\" = \"").unwrap();
        let present = text
            .lines()
            .find(|line| line.starts_with(&format!("{key}\" = ")))
            .map(str::to_owned);
        text = match (accept("verb"), present) {
            ("add", None) => format!("{text}{line}"),
            ("change", Some(old)) => text.replace(&format!("{old}\n"), &line),
            ("delete", Some(old)) => text.replace(&format!("{old}\n"), ""),
            other => panic!("{other:?}"),
        };
    }
    fs::write(lock, text).unwrap();
}

#[test]
fn a_run_passes_its_own_lock_file_in_both_tiers_and_as_an_ordinary_user() {
    needs_sandbox!();
    for case in [Run::case_a, Run::case_b] {
        let inherited = || case().on_a_host_without("network,namespaces");
        let runs: [&dyn Fn() -> Run; 4] =
            [&case, &|| case().as_ordinary_user(), &inherited, &|| {
                inherited().as_ordinary_user()
            }];
        for run in runs {
            let place = Place::new();
            let lock = place.at("agent.lock");
            updating(run(), &lock).json().assert_passed();
            let first = fs::read(&lock).unwrap();
            let again = updating(run(), &lock).json();
            again.assert_passed();
            assert_eq!(again.report["baseline"]["outcome"], "updated");
            assert_eq!(fs::read(&lock).unwrap(), first);
            let done = with(run(), &lock).json();
            done.assert_passed();
            assert_eq!(done.check(CHECK)["status"], "passed");
            assert_eq!(fs::read(&lock).unwrap(), first);
        }
    }
}

#[test]
fn a_lock_file_of_one_checkout_is_good_in_another() {
    needs_sandbox!();
    let place = Place::new();
    let lock = place.at("agent.lock");
    let report = |run: Run, program: &Path| {
        let run = run.on_a_host_without("network,namespaces");
        let run = run.argument("--report").argument("json");
        Done::of(&run.command_of(program).output().unwrap())
    };
    let copied = |program: &Path| {
        let copy = place.at("elsewhere");
        fs::copy(program, &copy).unwrap();
        copy
    };
    let elsewhere = copied(runner());
    report(updating(Run::case_b(), &lock), runner()).assert_passed();
    report(with(Run::case_b(), &lock), &elsewhere).assert_passed();

    let client = fixture("deviant-client");
    let of = |client: &Path| {
        let run = Run::case_b().client(client).client_argument("--deviate");
        run.client_argument("ended-child")
    };
    fs::remove_file(&lock).unwrap();
    report(updating(of(&client), &lock), runner());
    let done = report(with(of(&copied(&client)), &lock), runner());
    assert_eq!(done.check(CHECK)["status"], "passed", "{}", done.text);
    assert!(!fs::read_to_string(&lock).unwrap().contains("target"));
}

/// Asserts the drift lines of a deviation, and that applying the advice of each makes the run pass.
#[track_caller]
fn assert_drifts(deviation: &str, expected: &[&str]) {
    let place = Place::new();
    let lock = locked(&place);
    let run = || with(Run::case_b().deviating(deviation), &lock);
    let done = run().json();
    assert_eq!(done.check(CHECK)["status"], "failed");
    assert_eq!(done.code, Some(1));
    let differences = &done.report["baseline"]["differences"];
    assert_eq!(lines(differences), expected);
    accept(&lock, differences);
    let done = run().json();
    assert_eq!(done.check(CHECK)["status"], "passed", "{deviation}");
}

#[test]
fn each_deviation_drifts_by_its_own_lines_and_the_advice_accepts_it() {
    needs_sandbox!();
    assert_drifts("extra-header", &["+ headers POST /v1/messages x-trace: 1"]);
    assert_drifts(
        "one-tool",
        &[
            "- body POST /v1/messages $.tools: empty array",
            "+ body POST /v1/messages $.tools[0].input_schema: empty object",
            "+ body POST /v1/messages $.tools[0].name: text of 4 bytes, sha256 37d2b12d5d9abc2a364ef9448767ee03938e383c0284193477dc7618f4b7c6c2",
        ],
    );
    assert_drifts(
        "line-that-is-no-json",
        &[
            "+ records not a record: after system/status",
            "~ records stream_event/message_start: after not a record",
        ],
    );
    assert_drifts(
        "no-backup",
        &["- files home .agent/backups/.agent.json.backup.{digits}: file 0600"],
    );
    assert_drifts(
        "key-in-state-as-base64",
        &[
            "+ outcome credential in file home: .agent/.agent.json: base64",
            "+ outcome credential in file home: .agent/backups/.agent.json.backup.{digits}: base64",
        ],
    );
}

/// The client's texts are escaped in the file: they cannot add a line, a table or a star.
#[test]
fn a_client_writes_no_line_of_its_lock_file() {
    needs_sandbox!();
    let place = Place::new();
    let lock = place.at("agent.lock");
    let run = || Run::case_b().deviating("names-of-a-lock-file");
    updating(run(), &lock).json();
    let text = fs::read_to_string(&lock).unwrap();
    assert!(text.is_ascii() && !text.contains("##"), "{text}");
    let (_, facts) = text.split_once("\n[facts]\n").unwrap();
    assert!(facts.lines().all(|line| line.starts_with('"')), "{text}");
    assert!(!facts.contains(" = \"*\"\n"), "{text}");
    assert_eq!(with(run(), &lock).json().check(CHECK)["status"], "passed");

    let other = Place::new();
    let straight = locked(&other);
    let done = with(run(), &straight).json();
    let differences = &done.report["baseline"]["differences"];
    let areas = lines(differences);
    for area in ["headers", "body", "records", "files"] {
        assert!(
            areas
                .iter()
                .any(|line| line.starts_with(&format!("+ {area} "))),
            "{areas:?}"
        );
    }
    accept(&straight, differences);
    assert_eq!(
        with(run(), &straight).json().check(CHECK)["status"],
        "passed"
    );
}

#[test]
fn the_human_report_has_each_line_that_would_accept_a_difference() {
    needs_sandbox!();
    let place = Place::new();
    let lock = locked(&place);
    let output = with(Run::case_b().deviating("extra-header"), &lock).output();
    let said = String::from_utf8(output.stdout).unwrap();
    for line in [
        "  failed      baseline/unchanged                the lock file\n",
        "  | + POST /v1/messages x-trace: 1\n",
        "  |       add \"headers POST /v1/messages x-trace\" = \"1\"\n",
    ] {
        assert!(said.contains(line), "no `{line}` in: {said}");
    }
}

#[test]
fn an_update_says_what_it_accepted() {
    needs_sandbox!();
    let place = Place::new();
    let lock = locked(&place);
    let output = updating(Run::case_b().deviating("extra-header"), &lock).output();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(
        said.contains("rewritten; these lines were accepted"),
        "{said}"
    );
    assert!(
        said.contains("  | + POST /v1/messages x-trace: 1\n"),
        "{said}"
    );
    let text = fs::read_to_string(&lock).unwrap();
    assert!(text.contains("\"headers POST /v1/messages x-trace\" = \"1\"\n"));
}

#[test]
fn an_update_leaves_nothing_to_accept() {
    needs_sandbox!();
    let place = Place::new();
    let lock = locked(&place);
    let done = updating(Run::case_b().deviating("extra-header"), &lock).json();
    assert_eq!(done.report["baseline"]["outcome"], "updated");
    let differences = &done.report["baseline"]["differences"];
    assert_eq!(
        lines(differences),
        ["+ headers POST /v1/messages x-trace: 1"]
    );
    for difference in differences.as_array().unwrap() {
        assert_eq!(difference.get("accept"), Some(&Value::Null));
    }
}

#[test]
fn another_tier_is_no_comparison() {
    needs_sandbox!();
    let place = Place::new();
    let lock = place.at("agent.lock");
    updating(Run::case_b(), &lock).json().assert_passed();
    let run = Run::case_b().on_a_host_without("network,namespaces");
    let done = with(run, &lock).json();
    done.assert_verdict(3, "errored");
    assert_eq!(done.checks("errored"), [CHECK]);
}

#[test]
fn the_lock_file_of_another_case_is_refused_before_the_run() {
    let place = Place::new();
    let lock = place.at("agent.lock");
    fs::write(&lock, GOOD).unwrap();
    for run in [with(Run::case_a(), &lock), updating(Run::case_a(), &lock)] {
        assert_refused(
            run,
            &[
                "agent.lock: it belongs to `case-b`, and this run to case-a",
                "hint: name this case's own lock file",
            ],
        );
    }
    assert_eq!(fs::read_to_string(&lock).unwrap(), GOOD);
}

#[test]
fn a_run_that_says_nothing_is_not_written() {
    needs_sandbox!();
    let place = Place::new();
    let lock = locked(&place);
    let before = fs::read(&lock).unwrap();
    let script = place.at("client");
    fs::write(&script, "#!/no/such/interpreter\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&script, mode).unwrap();
    let done: Done = updating(Run::case_b().client(&script), &lock).json();
    done.assert_verdict(3, "errored");
    assert_eq!(done.check(CHECK)["status"], "errored");
    assert_eq!(fs::read(&lock).unwrap(), before);
}

/// Asserts that no run starts: a run would leave its home.
#[track_caller]
fn assert_refused(run: Run, words: &[&str]) {
    let homes = Place::new();
    let run = run
        .argument("--keep-home")
        .variable("TMPDIR", homes.at("."));
    let output = run.output();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    for word in words {
        assert!(said.contains(word), "no `{word}` in: {said}");
    }
    assert_eq!(fs::read_dir(homes.at(".")).unwrap().count(), 0);
}

#[test]
fn without_a_good_lock_file_or_a_place_for_it_nothing_is_run() {
    let place = Place::new();
    let lock = place.at("agent.lock");
    assert_refused(
        with(Run::case_b(), &lock),
        &[
            "cannot read the lock file",
            "hint: --update-baseline makes it",
        ],
    );
    assert_refused(
        updating(Run::case_b(), &place.at("absent/agent.lock")),
        &["cannot open the lock file"],
    );
    fs::write(&lock, "schema = \"runner.baseline/1\"\nkase = \"case-b\"\n").unwrap();
    for run in [with(Run::case_b(), &lock), updating(Run::case_b(), &lock)] {
        assert_refused(
            run,
            &["agent.lock:2:1: unknown field `kase`, expected one of "],
        );
    }
    fs::remove_file(&lock).unwrap();
    nix::unistd::mkfifo(&lock, nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert_refused(
        with(Run::case_b(), &lock),
        &["is a FIFO, not a regular file"],
    );
    assert_refused(
        updating(Run::case_b(), &lock),
        &["is a FIFO, not a regular file"],
    );
}

#[test]
fn the_lock_file_is_no_report_and_the_client_is_not_shown_it() {
    let place = Place::new();
    let lock = place.at("agent.lock");
    let report = format!("json={}", lock.display());
    let run = Run::case_b().argument("--report").argument(&report);
    assert_refused(
        updating(run, &lock),
        &[
            "cannot write a report and the lock file to",
            "hint: give the lock file a name of its own",
        ],
    );
    let place = Place::showable();
    let lock = place.at("agent.lock");
    let shown = format!(
        "[[paths]]\npath = {:?}\naccess = \"read\"\nreason = \"a test\"\n",
        place.at(".").canonicalize().unwrap()
    );
    for using in [updating, with] {
        fs::write(&lock, GOOD).unwrap();
        let run = using(Run::case_b().knowing(&shown), &lock);
        assert_refused(run, &["or has its lock file"]);
    }
}

#[test]
fn a_report_does_not_replace_the_lock_file_that_the_run_reads() {
    needs_sandbox!();
    let place = Place::new();
    let lock = locked(&place);
    let report = format!("json={}", lock.display());
    let run = Run::case_b().argument("--report").argument(&report);
    assert_refused(
        with(run, &lock),
        &["the report file would replace the lock file"],
    );
}
