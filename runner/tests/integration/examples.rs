//! The agents of `examples/` with their cases: as they are, and with one deviation each.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::kit::{Done, Run};
use crate::needs_program;

/// A copy of an example that any user may read, in whose files `text` is replaced by `other`.
fn copy(name: &str, (text, other): (&str, &str)) -> TempDir {
    let example = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../examples")
        .join(name);
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let mut is_there = text.is_empty();
    for entry in fs::read_dir(example).unwrap() {
        let entry = entry.unwrap();
        let file = fs::read_to_string(entry.path()).unwrap();
        is_there |= file.contains(text);
        let file = if text.is_empty() {
            file
        } else {
            file.replace(text, other)
        };
        let copy = directory.path().join(entry.file_name());
        fs::write(&copy, file).unwrap();
        fs::set_permissions(copy, entry.metadata().unwrap().permissions()).unwrap();
    }
    assert!(is_there, "no file of {name} says {text}");
    if name == "c" {
        compile(directory.path());
    }
    directory
}

/// Builds the static program, as the comment in its file says.
fn compile(directory: &Path) {
    let built = Command::new("cc")
        .args(["-static", "-O2", "-o", "agent", "agent.c"])
        .current_dir(directory)
        .output()
        .unwrap();
    assert!(
        built.status.success(),
        "{}",
        String::from_utf8_lossy(&built.stderr)
    );
}

fn case(example: &TempDir) -> PathBuf {
    example.path().join("agent.toml")
}

/// Runs an example with one change.
fn changed(name: &str, text: &str, other: &str) -> Done {
    let example = copy(name, (text, other));
    Run::case("run").argument(case(&example)).json()
}

/// Runs `init` for an agent, in its directory.
fn init(example: &TempDir, program: &[&str]) -> Output {
    let init = Run::case("init")
        .argument(example.path().join("made.toml"))
        .argument("--env=ANTHROPIC_BASE_URL={base_url}")
        .argument("--env=ANTHROPIC_API_KEY={credential}");
    let init = program
        .iter()
        .fold(init, |init, word| init.client_argument(*word));
    let mut command = init.command();
    command.current_dir(example.path()).output().unwrap()
}

/// Runs the example as each user, then the case that `init` writes for the same command.
fn passes(name: &str, program: &[&str]) {
    let example = copy(name, ("", ""));
    let run = || {
        Run::case("run")
            .argument("--require-reviewed")
            .argument(case(&example))
    };
    run().json().assert_passed();
    run().as_ordinary_user().json().assert_passed();
    let output = init(&example, program);
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{told}");
    Run::case("run")
        .argument(example.path().join("made.toml"))
        .as_ordinary_user()
        .json()
        .assert_passed();
}

#[test]
fn node_agent_passes_its_case_and_one_by_init() {
    needs_program!("/usr/bin/node");
    passes("node", &["node", "agent.mjs", "hello"]);
}

#[test]
fn shell_agent_passes_its_case_and_one_by_init() {
    needs_program!("/usr/bin/curl");
    passes("shell", &["./agent.sh", "hello"]);
}

#[test]
fn static_agent_passes_its_case_and_one_by_init() {
    needs_program!("/usr/bin/cc");
    passes("c", &["./agent", "hello"]);
}

#[test]
fn outputs_may_lie_beside_a_case_that_is_shown() {
    needs_program!("/usr/bin/cc");
    let example = copy("c", ("", ""));
    let output = |name: &str| example.path().join(name);
    let run = || {
        let report = format!("--report=junit={}", output("junit.xml").display());
        Run::case("run").argument(case(&example)).argument(report)
    };
    let locked = run()
        .argument(format!("--baseline={}", output("lock.json").display()))
        .argument("--update-baseline");
    let done = locked.json();
    done.assert_passed();
    assert!(output("junit.xml").exists() && output("lock.json").exists());
    let sentence = "That it does not know the expectations";
    assert!(done.text.contains(sentence), "{}", done.text);
    let done = Run::case_b().json();
    assert!(!done.text.contains(sentence), "{}", done.text);
}

#[test]
fn init_names_what_its_own_case_fails() {
    needs_program!("/usr/bin/cc");
    let example = copy("c", ("host: %s", "host: x%s"));
    let output = init(&example, &["./agent", "hello"]);
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    let note = "no rule accepts headers/nothing-else: The Host header is not the provider's.";
    assert!(told.contains(note), "{told}");
    let case = fs::read_to_string(example.path().join("made.toml")).unwrap();
    assert!(case.contains("# - headers/nothing-else"), "{case}");
}

#[test]
fn deviation_of_an_example_fails_its_check_alone() {
    needs_program!("/usr/bin/node");
    needs_program!("/usr/bin/curl");
    needs_program!("/usr/bin/cc");
    for (name, text, other, failed) in [
        (
            "node",
            "stream: true",
            "stream: false",
            &["body/stream"][..],
        ),
        ("node", "mode: 0o600", "mode: 0o644", &["files/rules"]),
        ("node", "\"uname\"", "\"echo\"", &["process/programs"]),
        (
            "node",
            "node-agent/1.0",
            "node-agent",
            &["headers/user-agent"],
        ),
        ("shell", "umask 077", "umask 022", &["files/rules"]),
        (
            "shell",
            "updates.example.com/",
            "updates.example.net/",
            &["outbound/no-attempts"],
        ),
        (
            "shell",
            "--header @- ",
            "--header \"x-api-key: $ANTHROPIC_API_KEY\" ",
            &["secrets/credential-not-written"],
        ),
        (
            "c",
            "\\\"ok\\\":true",
            "\\\"ok\\\":false",
            &["records/rules"],
        ),
        ("c", "host: %s", "host: x%s", &["headers/nothing-else"]),
        (
            "c",
            "{\\\"type\\\":\\\"end\\\"",
            "\\\"end\\\"",
            &["records/json-lines", "records/rules"],
        ),
    ] {
        let done = changed(name, text, other);
        assert_eq!(
            done.checks("failed"),
            failed,
            "{name}: {other}: {}",
            done.stderr
        );
        assert_eq!(done.checks("errored"), [""; 0], "{name}: {other}");
    }
}
