//! Cases with a client of their own: the example of a Python agent, as it is and with one deviation each.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use tempfile::TempDir;

use crate::kit::{Done, Run};
use crate::needs_program;

mod accepted;
mod records;

/// The example in a directory of its own, in whose files `text` is replaced by `other`. Not in /tmp, which is never
/// shown.
fn project(text: &str, other: &str) -> TempDir {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/python");
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let mut is_there = text.is_empty();
    for name in ["agent.py", "agent.toml"] {
        let file = fs::read_to_string(example.join(name)).unwrap();
        is_there |= file.contains(text);
        let file = if text.is_empty() {
            file
        } else {
            file.replace(text, other)
        };
        fs::write(directory.path().join(name), file).unwrap();
    }
    assert!(is_there, "no file says {text}");
    directory
}

fn run(project: &TempDir) -> Run {
    Run::case("run").argument(project.path().join("agent.toml"))
}

/// Runs the example with one change.
fn changed(text: &str, other: &str) -> Done {
    let project = project(text, other);
    run(&project).json()
}

#[test]
fn agent_that_does_what_its_case_says_passes_as_any_user() {
    needs_program!("/usr/bin/python3");
    let project = project("", "");
    for run in [run(&project), run(&project).as_ordinary_user()] {
        let done = run.json();
        done.assert_passed();
        let skipped = done.checks("skipped");
        assert!(skipped.contains(&"records/json-lines"), "{skipped:?}");
        for judged in [
            "requests/first-and-only",
            "headers/rules",
            "body/fields",
            "files/rules",
            "process/programs",
        ] {
            assert!(done.checks("passed").contains(&judged), "{judged}");
        }
        assert!(!done.text.contains("one short sentence"), "{}", done.text);
    }
}

#[test]
fn each_deviation_fails_the_check_of_its_rule_alone() {
    needs_program!("/usr/bin/python3");
    let end = "print(\"\".join";
    let at_end = |line: &str| format!("{line}\n{end}");
    for (text, other, failed) in [
        (
            end,
            at_end("ask(\"again\")"),
            &["requests/first-and-only", "requests/post-count"][..],
        ),
        (
            "\"max_tokens\": 100",
            "\"max_tokens\": 100, \"metadata\": {}".to_owned(),
            &["body/fields"],
        ),
        (
            "\"anthropic-version\": \"2023-06-01\"",
            "\"cookie\": \"a=b\"".to_owned(),
            &["headers/rules"],
        ),
        (
            "\"x-api-key\": os",
            "\"x-other-key\": os".to_owned(),
            // The stub refuses a request without its credential, which ends the agent.
            &[
                "headers/api-key-present",
                "files/rules",
                "secrets/credential-not-written",
                "process/exit-zero",
            ],
        ),
        ("0o600", "0o644".to_owned(), &["files/rules"]),
        (end, at_end("keep(answer)"), &["files/rules"]),
        (
            end,
            at_end("open(os.environ[\"HOME\"] + \"/log\", \"w\").close()"),
            &["files/nothing-else"],
        ),
        (
            end,
            at_end("import subprocess; subprocess.run([\"/bin/true\"])"),
            &["process/programs"],
        ),
        (
            end,
            at_end("import socket; socket.socket().connect_ex((\"192.0.2.7\", 443))"),
            &["outbound/no-attempts"],
        ),
        (end, at_end("sys.exit(3)"), &["process/exit-zero"]),
    ] {
        let done = changed(text, &other);
        assert_eq!(done.checks("failed"), failed, "{other}: {}", done.stderr);
        assert_eq!(done.checks("errored"), [""; 0], "{other}");
        done.assert_verdict(1, "failed");
    }
}

/// Lines of the agent that write a state file and its backup; the case names both.
const STATE: &str = r#"
import time
home = os.environ["HOME"] + "/.python-agent/"
write = lambda name: os.close(os.open(home + name, os.O_CREAT, 0o600))
open(home + "state.json", "w").write("{}")
os.chmod(home + "state.json", 0o600)
write("state.json.backup.%d" % (time.time() * 1000))
print("".join"#;

#[test]
fn state_file_and_backup_of_a_case_are_judged() {
    needs_program!("/usr/bin/python3");
    let case = "[expect.files]\nstate = \".python-agent/state.json\"\n\
        backup_prefix = \".python-agent/state.json.backup.\"\ntranscript = \"forbidden\"\n\n[[expect.files.rule]]";
    for (text, other, failed) in [
        ("", "", &[][..]),
        ("0o600)\nwrite", "0o640)\nwrite", &["files/modes"]),
        (
            "home + \"state.json\"",
            "home + \"state\"",
            &["files/state-file", "files/nothing-else"],
        ),
        (
            "time.time() * 1000",
            "time.time() * 1000 - 5000",
            &["files/backup"],
        ),
        (
            "time.time() * 1000",
            "time.time() * 10000",
            &["files/backup", "files/nothing-else"],
        ),
        (
            "print(",
            "write(\"log.jsonl\")\nprint(",
            &["files/nothing-else", "files/no-transcript"],
        ),
    ] {
        let project = project(
            "print(\"\".join",
            &if text.is_empty() {
                STATE.to_owned()
            } else {
                STATE.replace(text, other)
            },
        );
        let file = project.path().join("agent.toml");
        let toml = fs::read_to_string(&file).unwrap();
        fs::write(&file, toml.replacen("[[expect.files.rule]]", case, 1)).unwrap();
        let done = run(&project).json();
        assert_eq!(done.checks("failed"), failed, "{other}: {}", done.stderr);
        assert_eq!(done.checks("errored"), [""; 0], "{other}");
        for id in [
            "files/state-file",
            "files/backup",
            "files/modes",
            "files/no-transcript",
        ] {
            assert!(!done.checks("skipped").contains(&id), "{id}");
        }
    }
}

#[test]
fn rules_that_allow_more_accept_the_same_deviations() {
    needs_program!("/usr/bin/python3");
    changed(
        "# No program but Python.\n[expect.programs]",
        "[[expect.attempts.rule]]\ndestination = \"name:telemetry.example.com\"\nreason = \"asked at start\"",
    )
    .assert_passed();
    changed("user_agent = \"Python-urllib/{version}\"\n", "").assert_passed();
    changed("count = { from = 1, to = 1 }", "count = { from = 0 }").assert_passed();
}

#[test]
fn value_of_the_caller_is_passed_on_and_not_shown() {
    needs_program!("/usr/bin/python3");
    let variable = "\n[[client.environment]]\nname = \"AGENT_ORG\"\nfrom_env = true\n\n[stub]";
    let project = project("\n[stub]", variable);
    let refused = run(&project).output();
    assert_eq!(refused.status.code(), Some(2));
    let told = String::from_utf8_lossy(&refused.stderr);
    assert!(
        told.contains("AGENT_ORG") && told.contains("hint: "),
        "{told}"
    );
    let done = run(&project).variable("AGENT_ORG", "org-Zq81").json();
    done.assert_passed();
    assert!(!done.text.contains("org-Zq81"), "{}", done.text);
}

#[test]
fn options_for_the_client_of_a_profile_are_refused() {
    needs_program!("/usr/bin/python3");
    let project = project("", "");
    for options in [
        &["--profile", "reference"][..],
        &["--client", "/bin/true"],
        &["--plain"],
    ] {
        let with = options
            .iter()
            .fold(run(&project), |run, word| run.argument(*word));
        let output = with.output();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(told.contains(options[0]), "{told}");
    }
}

/// `runner init` for the agent of the example, in a directory with the agent alone.
fn init(directory: &TempDir, program: &[&str]) -> std::process::Output {
    let file = directory.path().join("made.toml");
    let mut run = Run::case("init")
        .argument(file)
        .argument("--env=ANTHROPIC_BASE_URL={base_url}")
        .argument("--env=ANTHROPIC_API_KEY={credential}");
    for word in program {
        run = run.client_argument(*word);
    }
    run.command()
        .current_dir(directory.path())
        .output()
        .unwrap()
}

#[test]
fn case_made_by_init_passes_elsewhere_and_fails_for_another_agent() {
    needs_program!("/usr/bin/python3");
    let made = project("", "");
    let output = init(&made, &["/usr/bin/python3", "agent.py", "hello"]);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{told}");
    assert!(told.contains("next: runner run "), "{told}");
    let case = fs::read_to_string(made.path().join("made.toml")).unwrap();
    for line in [
        "path = \".python-agent/sessions/{uuid}.json\"",
        "mode = \"0600\"",
        "auth = \"x-api-key\"",
        "user_agent = \"Python-urllib/{version}\"",
        "arguments = [\"agent.py\", \"hello\"]",
        "cwd = \"{project}\"",
    ] {
        assert!(case.contains(line), "no {line} in\n{case}");
    }
    assert!(!case.contains(&*made.path().to_string_lossy()), "{case}");
    // Another user, in another directory.
    for (text, other, verdict) in [
        ("", "", (0, "passed")),
        ("0o600", "0o644", (1, "failed")),
        ("uuid.uuid4()", "\"fixed\"", (1, "failed")),
    ] {
        let elsewhere = project(text, other);
        fs::write(elsewhere.path().join("made.toml"), &case).unwrap();
        let path = elsewhere.path().join("made.toml");
        let done = Run::case("run").argument(path).as_ordinary_user().json();
        done.assert_verdict(verdict.0, verdict.1);
    }
}

#[test]
fn init_writes_no_rule_for_a_credential_on_disk_and_says_so() {
    needs_program!("/usr/bin/python3");
    let made = project(
        "print(\"\".join",
        "open(os.environ[\"HOME\"] + \"/key\", \"w\").write(os.environ[\"ANTHROPIC_API_KEY\"])\nprint(\"\".join",
    );
    let output = init(&made, &["/usr/bin/python3", "agent.py", "hello"]);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(
        told.contains("no rule accepts the credential in file"),
        "{told}"
    );
    let case = fs::read_to_string(made.path().join("made.toml")).unwrap();
    assert!(
        case.contains("# - the credential in file home: key"),
        "{case}"
    );
    let done = run_made(&made);
    let failed = ["files/nothing-else", "secrets/credential-not-written"];
    assert_eq!(done.checks("failed"), failed);
    // A person may allow the file, with a reason.
    let rule = case.split("\n#[[expect.files.rule]]\n").nth(1).unwrap();
    let rule: String = rule
        .lines()
        .map(|line| format!("{}\n", &line[1..]))
        .collect();
    assert!(rule.contains("may_hold_credential = true\n"), "{rule}");
    let allowed = format!("{case}\n[[expect.files.rule]]\n{rule}");
    let file = made.path().join("made.toml");
    fs::write(&file, &allowed).unwrap();
    let refused = Run::case("run").argument(&file).output();
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{told}");
    assert!(told.contains("expected a reason of your own"), "{told}");
    let (rest, end) = allowed.rsplit_once(", not reviewed").unwrap();
    fs::write(
        &file,
        format!("{rest}: the agent keeps its login there{end}"),
    )
    .unwrap();
    for run in [Run::case("run"), Run::case("run").as_ordinary_user()] {
        let done = run.argument(&file).json();
        done.assert_passed();
        let message = done.check("secrets/credential-not-written")["message"]
            .as_str()
            .unwrap();
        assert!(
            message.ends_with("1 file that may hold it: home: key."),
            "{message}"
        );
    }
}

#[test]
fn init_names_sensitive_places_and_blesses_none() {
    needs_program!("/usr/bin/python3");
    let made = project(
        "print(\"\".join",
        "os.path.exists(os.environ[\"HOME\"] + \"/.aws/credentials\")
import socket; socket.socket().connect_ex((\"169.254.169.254\", 80))
print(\"\".join",
    );
    let output = init(&made, &["/usr/bin/python3", "agent.py", "hello"]);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{told}");
    for place in [
        "/home/sandbox/.aws/credentials (aws)",
        "inet:169.254.169.254:80 (cloud-metadata)",
    ] {
        assert!(
            told.contains(&format!("no rule accepts the sensitive place {place}")),
            "{told}"
        );
    }
    let case = fs::read_to_string(made.path().join("made.toml")).unwrap();
    assert!(
        case.contains("\n#destination = \"inet:169.254.169.254:80\"\n"),
        "{case}"
    );
    assert_eq!(run_made(&made).checks("failed"), ["outbound/no-attempts"]);
}

fn run_made(made: &TempDir) -> Done {
    Run::case("run")
        .argument(made.path().join("made.toml"))
        .json()
}

#[test]
fn init_keeps_a_file_that_exists() {
    needs_program!("/usr/bin/python3");
    let made = project("", "");
    fs::write(made.path().join("made.toml"), "mine").unwrap();
    let output = init(&made, &["/bin/true"]);
    assert_eq!(output.status.code(), Some(2));
    let file = fs::read_to_string(made.path().join("made.toml")).unwrap();
    assert_eq!(file, "mine");
}

#[test]
fn init_escapes_the_names_in_its_notes() {
    needs_program!("/usr/bin/python3");
    let made = project(
        "print(\"\".join",
        "open(os.environ[\"HOME\"] + \"/\\x1b[31m{a}\", \"w\")\nprint(\"\".join",
    );
    let output = init(&made, &["/usr/bin/python3", "agent.py", "hello"]);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("braces: \\u{1b}[31m{a}"), "{told}");
    assert!(!told.contains('\u{1b}'), "{told}");
}

#[test]
fn rules_that_nobody_has_reviewed_are_in_the_headline_and_can_be_refused() {
    needs_program!("/usr/bin/python3");
    let made = project("", "");
    init(&made, &["/usr/bin/python3", "agent.py", "hello"]);
    let run = || Run::case("run").argument(made.path().join("made.toml"));
    let output = run().output();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = said.lines().next().unwrap();
    assert!(
        line.ends_with(", 2 rules not reviewed; not judged: records"),
        "{line}"
    );
    let refused = run().argument("--require-reviewed").output();
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{told}");
    assert!(told.contains("2 rules that nobody has reviewed"), "{told}");
    let file = made.path().join("made.toml");
    let case = fs::read_to_string(&file).unwrap();
    let reviewed = case.replace(", not reviewed", ", and right");
    fs::write(&file, reviewed).unwrap();
    run().argument("--require-reviewed").json().assert_passed();
}

#[test]
fn agent_with_another_base_path_gets_its_own_case() {
    needs_program!("/usr/bin/python3");
    let made = project("/v1/messages", "/openai/v1/messages");
    let output = init(&made, &["/usr/bin/python3", "agent.py", "hello"]);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{told}");
    let case = fs::read_to_string(made.path().join("made.toml")).unwrap();
    let rule = "protocol = \"messages\"\nmethod = \"POST\"\npath = \"/openai/v1/messages\"\n";
    assert!(case.contains(rule), "{case}");
    run_made(&made).assert_passed();
    let agent = made.path().join("agent.py");
    let text = fs::read_to_string(&agent).unwrap();
    for (path, failed) in [
        (
            "/v1/messages",
            &["requests/first-and-only", "requests/post-count"][..],
        ),
        (
            "/proxy/v1/messages",
            &["requests/first-and-only", "requests/post-count"],
        ),
    ] {
        fs::write(&agent, text.replace("/openai/v1/messages", path)).unwrap();
        assert_eq!(run_made(&made).checks("failed"), failed, "{path}");
    }
}
