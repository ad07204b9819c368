//! Several cases in one command: their common reports, exit codes, and the end by a signal.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::OnceLock;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;

use crate::failures::interrupts::client_of;
use crate::kit::{Run, parsed};
use crate::needs_sandbox;

/// A directory with cases like case-b, each of a name, a file and an entry of `[stub]`. Not in /tmp, which is never
/// shown.
fn folder(cases: &[(&str, &str, &str)]) -> TempDir {
    let policies = Path::new(env!("CARGO_MANIFEST_DIR")).join("../policies");
    let policy = fs::read_to_string(policies.join("case-b.toml")).unwrap();
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    for (name, file, stub) in cases {
        let text = policy.replacen("name = \"case-b\"", &format!("name = \"{name}\""), 1);
        let text = text.replacen("text = \"This is a synthetic answer.\"", stub, 1);
        assert_ne!(text, policy);
        fs::write(directory.path().join(file), text).unwrap();
    }
    directory
}

const ANSWER: &str = "text = \"Another answer.\"";
const OVERLOADED: &str = "scenario = \"error-529\"";
const STALLED: &str = "scenario = \"stall-before-head\"";

fn run(folder: &TempDir) -> Run {
    Run::case("run").argument(folder.path())
}

/// Parses a JSON document of several runs, and validates it and each report in it.
#[track_caller]
fn fleet(document: &[u8]) -> Value {
    static SCHEMA: OnceLock<jsonschema::Validator> = OnceLock::new();
    let schema = SCHEMA
        .get_or_init(|| jsonschema::draft202012::new(report::fleet::schema().as_value()).unwrap());
    let fleet: Value = serde_json::from_slice(document).unwrap();
    let faults: Vec<String> = schema
        .iter_errors(&fleet)
        .map(|fault| fault.to_string())
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    for run in fleet["runs"].as_array().unwrap() {
        if !run["report"].is_null() {
            parsed(run["report"].to_string().as_bytes(), "");
        }
    }
    fleet
}

fn verdicts(fleet: &Value) -> Vec<(&str, &str)> {
    let runs = fleet["runs"].as_array().unwrap().iter();
    let runs = runs.map(|run| {
        let case = run["case"].as_str().unwrap();
        (case, run["verdict"].as_str().unwrap_or("not run"))
    });
    runs.collect()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn folder_runs_its_cases_in_order_of_names() {
    needs_sandbox!();
    let folder = folder(&[("b", "1.toml", ANSWER), ("a", "2.toml", ANSWER)]);
    fs::write(folder.path().join("pyproject.toml"), "[project]\n").unwrap();
    for run in [run(&folder), run(&folder).as_ordinary_user()] {
        let output = run.argument("--report").argument("json").output();
        let fleet = fleet(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        assert_eq!(verdicts(&fleet), [("a", "passed"), ("b", "passed")]);
        assert_eq!(fleet["runs"][0]["report"]["case"]["name"], "a");
        assert_eq!(fleet["not_cases"].as_array().unwrap().len(), 1);
        let lines = said(&output);
        let first: Vec<&str> = lines.lines().take(2).collect();
        assert!(first[0].starts_with("[1/2] PASSED   a, "), "{lines}");
        assert!(first[1].starts_with("[2/2] PASSED   b, "), "{lines}");
        assert!(lines.ends_with("PASSED  2 cases: 2 passed\n"), "{lines}");
    }
}

#[test]
fn folder_exits_with_the_worst_verdict() {
    needs_sandbox!();
    let folder = folder(&[("good", "1.toml", ANSWER), ("bad", "2.toml", OVERLOADED)]);
    let output = run(&folder).output();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        text.starts_with("FAILED  2 cases: 1 failed, 1 passed\n"),
        "{text}"
    );
    assert!(
        text.contains("bad   exit code 1: error: the provider answered"),
        "{text}"
    );

    // A client that cannot start makes its case errored; the other case is run.
    let policy = fs::read_to_string(folder.path().join("2.toml")).unwrap();
    let client = "[client]\nprogram = \"{project}/agent\"\n\n[stub]";
    let inline = "schema = \"runner.case/1\"\nname = \"bad\"\n\n".to_owned() + client;
    assert!(policy.contains("[stub]"));
    fs::write(folder.path().join("2.toml"), inline + "\ntext = \"x\"\n").unwrap();
    let agent = folder.path().join("agent");
    fs::write(&agent, "#!/no/such/interpreter\n").unwrap();
    fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).unwrap();
    let output = run(&folder).argument("--report").argument("json").output();
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    let fleet = fleet(&output.stdout);
    assert_eq!(verdicts(&fleet), [("bad", "errored"), ("good", "passed")]);
    let finding = fleet["runs"][0]["first_finding"]["message"]
        .as_str()
        .unwrap();
    assert!(finding.contains("/no/such/interpreter"), "{finding}");
}

#[test]
fn wrong_case_of_a_folder_runs_nothing() {
    let folder = folder(&[
        ("a", "1.toml", ANSWER),
        ("b", "2.toml", "scenario = \"none\""),
    ]);
    let report = folder.path().join("report.json");
    let json = format!("json={}", report.display());
    let out = folder.path().join("evidence");
    let run = run(&folder).argument("--report").argument(json);
    let output = run.argument("--out").argument(&out).output();
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("/2.toml:"), "{}", said(&output));
    assert!(!said(&output).contains("[1/2]"), "{}", said(&output));
    assert!(!report.exists() && !out.exists());
}

#[test]
fn two_cases_of_one_name_are_an_error() {
    let folder = folder(&[("a", "1.toml", ANSWER), ("a", "2.toml", ANSWER)]);
    let output = run(&folder).output();
    assert_eq!(output.status.code(), Some(2));
    let said = said(&output);
    assert!(said.contains("two cases have the name a: "), "{said}");
    assert!(
        said.contains("/1.toml and ") && said.contains("/2.toml\n"),
        "{said}"
    );
}

#[test]
fn folder_without_cases_is_an_error() {
    let folder = folder(&[]);
    fs::write(
        folder.path().join("p.toml"),
        "schema = \"runner.profile/1\"\n",
    )
    .unwrap();
    let output = run(&folder).output();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        said(&output).contains("there is no case in "),
        "{}",
        said(&output)
    );
}

#[test]
fn option_of_one_case_is_an_error_for_several() {
    let folder = folder(&[("a", "1.toml", ANSWER), ("b", "2.toml", ANSWER)]);
    let zeros = "0".repeat(64);
    for (option, value) in [
        ("--baseline", "agent.lock"),
        ("--require-case", &zeros),
        ("--stdin", "inherit"),
    ] {
        let output = run(&folder).argument(option).argument(value).output();
        assert_eq!(output.status.code(), Some(2), "{option}");
        let said = said(&output);
        assert!(
            said.contains("does not apply to several cases"),
            "{option}: {said}"
        );
    }
}

#[test]
fn each_format_holds_all_cases() {
    needs_sandbox!();
    let folder = folder(&[("a", "1.toml", ANSWER), ("b", "2.toml", OVERLOADED)]);
    let written = tempfile::tempdir().unwrap();
    let file = |format: &str| written.path().join(format);
    let mut run = run(&folder);
    for format in ["junit", "sarif", "markdown", "html"] {
        let value = format!("{format}={}", file(format).display());
        run = run.argument("--report").argument(value);
    }
    assert_eq!(run.output().status.code(), Some(1));
    let read = |format: &str| fs::read_to_string(file(format)).unwrap();
    let junit = quick_junit::Report::deserialize_from_str(&read("junit")).unwrap();
    let suites = junit.test_suites.iter();
    let suites: Vec<(&str, bool)> = suites
        .map(|suite| (suite.name.as_str(), suite.failures > 0))
        .collect();
    assert_eq!(suites, [("a", false), ("b", true)]);
    let failures: usize = junit.test_suites.iter().map(|suite| suite.failures).sum();
    let tests: usize = junit
        .test_suites
        .iter()
        .map(|suite| suite.test_cases.len())
        .sum();
    assert_eq!((junit.failures, junit.tests), (failures, tests));
    let sarif: Value = serde_json::from_str(&read("sarif")).unwrap();
    let ids: Vec<&str> = (sarif["runs"].as_array().unwrap().iter())
        .map(|run| run["automationDetails"]["id"].as_str().unwrap())
        .collect();
    assert_eq!(
        ids,
        [
            "runner/a/reference/built-in/",
            "runner/b/reference/built-in/"
        ]
    );
    assert!(read("markdown").starts_with("## FAILED: ` 2 cases: 1 failed, 1 passed `\n"));
    assert!(read("html").contains("2 cases: 1 failed, 1 passed"));
}

#[test]
fn out_has_a_bundle_for_each_case() {
    needs_sandbox!();
    let folder = folder(&[("a", "1.toml", ANSWER), ("b", "2.toml", ANSWER)]);
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("evidence");
    let output = run(&folder).argument("--out").argument(&out).output();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    for case in ["a", "b"] {
        let verified = Run::case("verify").argument(out.join(case)).output();
        assert_eq!(verified.status.code(), Some(0), "{}", said(&verified));
    }
    let again = run(&folder).argument("--out").argument(&out).output();
    assert_eq!(again.status.code(), Some(2), "{}", said(&again));
}

#[test]
fn several_files_are_run_like_a_folder() {
    needs_sandbox!();
    let folder = folder(&[("b", "1.toml", ANSWER), ("a", "2.toml", ANSWER)]);
    let files: [PathBuf; 2] = ["1.toml", "2.toml"].map(|file| folder.path().join(file));
    let [first, second] = files;
    let run = Run::case("run").argument(&first).argument(second);
    let output = run.argument("--report").argument("json").output();
    assert_eq!(
        verdicts(&fleet(&output.stdout)),
        [("a", "passed"), ("b", "passed")]
    );
    // One file keeps the report of a single run.
    let single = Run::case("run").argument(first).json();
    single.assert_passed();
}

#[test]
fn interrupt_ends_all_runs_and_writes_the_reports() {
    needs_sandbox!();
    let folder = folder(&[
        ("a", "1.toml", ANSWER),
        ("b", "2.toml", STALLED),
        ("c", "3.toml", ANSWER),
    ]);
    let written = tempfile::tempdir().unwrap();
    let report = written.path().join("report.json");
    let xml = written.path().join("report.xml");
    let mut command = run(&folder)
        .argument("--report")
        .argument(format!("json={}", report.display()))
        .argument("--report")
        .argument(format!("junit={}", xml.display()))
        .command();
    let mut runner = command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The line of the first case precedes the second run.
    let mut lines = std::io::BufReader::new(runner.stderr.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut lines, &mut line).unwrap();
    assert!(line.starts_with("[1/3] PASSED   a, "), "{line}");
    client_of(&runner);
    kill(
        Pid::from_raw(i32::try_from(runner.id()).unwrap()),
        Signal::SIGINT,
    )
    .unwrap();
    assert_eq!(runner.wait().unwrap().code(), Some(3));
    let fleet = fleet(&fs::read(report).unwrap());
    assert_eq!(fleet["verdict"], "errored");
    assert_eq!(
        verdicts(&fleet),
        [("a", "passed"), ("b", "errored"), ("c", "not run")]
    );
    assert_eq!(fleet["runs"][1]["first_finding"]["message"], "interrupted");
    let junit = fs::read_to_string(xml).unwrap();
    let junit = quick_junit::Report::deserialize_from_str(&junit).unwrap();
    let errors: Vec<usize> = junit.test_suites.iter().map(|suite| suite.errors).collect();
    assert!(
        errors[0] == 0 && errors[1] > 0 && errors[2] == 1,
        "{errors:?}"
    );
    assert_eq!(junit.errors, errors.iter().sum::<usize>());
}
