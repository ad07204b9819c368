//! Standard input of an audited program: its source, and the pipe in between.

use std::fs::{self, File};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use super::{Audit, open_directory};
use crate::kit::Run;
use crate::{needs_program, needs_sandbox};

/// Runs a command with this text on a pipe as standard input.
fn fed(mut command: Command, text: &str) -> Output {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(text.as_bytes()).unwrap();
    drop(stdin);
    child.wait_with_output().unwrap()
}

fn printed(output: &Output) -> (Option<i32>, &str) {
    let text = std::str::from_utf8(&output.stdout).unwrap();
    (output.status.code(), text)
}

/// An audit of a line of shell, as root and as an ordinary user.
fn both(line: &str) -> [Audit; 2] {
    [Audit::shell(line), Audit::shell(line).as_ordinary_user()]
}

#[test]
fn pipe_is_passed_on() {
    needs_sandbox!();
    for line in ["cat", "cat /dev/stdin"] {
        for audit in both(line) {
            assert_eq!(
                printed(&fed(audit.command(), "hello\n")),
                (Some(0), "hello\n")
            );
        }
    }
    for word in ["-", "inherit"] {
        let audit = Audit::of(["cat"]).option("--stdin").option(word);
        assert_eq!(printed(&fed(audit.command(), "hello")), (Some(0), "hello"));
    }
    let audit = Audit::of(["cat"]).option("--stdin=none");
    assert_eq!(printed(&fed(audit.command(), "hello")), (Some(0), ""));
}

#[test]
fn long_input_arrives_whole() {
    needs_sandbox!();
    let text = "0123456789abcdef".repeat(1 << 16);
    let output = fed(Audit::of(["wc", "-c"]).command(), &text);
    assert_eq!(printed(&output), (Some(0), "1048576\n"));
    // The rest of the input neither delays the end nor is an error.
    let output = fed(Audit::of(["head", "-c", "3"]).command(), "abcdef");
    assert_eq!(printed(&output), (Some(0), "abc"));
}

#[test]
fn file_is_read_and_named_in_the_report() {
    needs_sandbox!();
    let directory = open_directory("/var/tmp");
    let file = directory.path().join("input");
    fs::write(&file, "from a file\n").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let audited = Audit::of(["cat"]).option("--stdin").option(&file).run();
    audited.assert_printed(0, "from a file\n");
    let client = &audited.report["client"];
    assert_eq!(client["stdin"], json!({ "file": file.to_str().unwrap() }));
    assert!(audited.stderr.contains("\n  stdin       /var/tmp/"));
    let audited = Audit::of(["cat"]).option("--stdin=inherit").run();
    assert_eq!(audited.report["client"]["stdin"], json!("inherited"));
    let audited = Audit::of(["cat"]).option("--stdin=none").run();
    assert_eq!(audited.report["client"]["stdin"], json!("none"));
    assert!(!audited.stderr.contains("stdin"));
}

#[test]
fn caller_reads_on_behind_what_the_program_has_read() {
    needs_sandbox!();
    let directory = open_directory("/var/tmp");
    let path = directory.path().join("input");
    fs::write(&path, "one\ntwo\nthree\n").unwrap();
    for (line, left) in [
        ("true", "two\nthree\n"),
        ("read line", "three\n"),
        ("cat >/dev/null", ""),
    ] {
        let mut file = File::open(&path).unwrap();
        file.seek(std::io::SeekFrom::Start(4)).unwrap();
        let mut command = Audit::of(["/bin/dash", "-c", line]).command();
        command.stdin(file.try_clone().unwrap());
        assert_eq!(command.output().unwrap().status.code(), Some(0));
        let mut rest = String::new();
        file.read_to_string(&mut rest).unwrap();
        // dash(1) reads a pipe byte by byte.
        assert_eq!(rest, left, "{line}");
    }
}

#[test]
fn program_cannot_write_to_its_input() {
    needs_sandbox!();
    let tried = "mkfifo fifo; for to in fifo /dev/stdin /proc/self/fd/0; do \
        (exec 5<>$to) 2>&1 && echo open; done; echo >&0";
    for audit in both(tried) {
        let output = fed(audit.command(), "");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let denied = text.matches("Permission denied").count();
        // The own FIFO is the positive twin.
        assert_eq!((denied, text.matches("open\n").count()), (2, 1), "{text}");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(stderr.contains("I/O error") || stderr.contains("Bad file descriptor"));
    }
}

#[test]
fn terminal_never_reaches_the_program() {
    needs_program!("/usr/bin/script");
    // script(1) gives its child a new controlling terminal.
    let on_terminal = |option: &str| {
        let runner = crate::kit::runner().display();
        let line = format!(
            "{runner} audit {option} -- sh -c 'test -t 0 && echo terminal; cat' 2>/dev/null"
        );
        let mut command = Command::new("/usr/bin/script");
        command.args([
            "--quiet",
            "--return",
            "--echo",
            "never",
            "--command",
            &line,
            "/dev/null",
        ]);
        let output = fed(command, "typed\n");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert!(!on_terminal("").contains("typed"));
    let passed = on_terminal("--stdin=inherit");
    assert!(passed.contains("typed"), "{passed}");
    assert!(!passed.contains("terminal"), "{passed}");
}

#[test]
fn input_that_cannot_be_opened_ends_before_the_run() {
    for (file, words) in [
        ("/no/such/file", "No such file or directory"),
        ("/var/tmp", "it is a directory"),
    ] {
        let audit = Audit::of(["touch", "made"]).option("--stdin").option(file);
        let output = audit.command().output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(125));
        assert!(
            stderr.contains(words) && stderr.contains("--stdin none"),
            "{stderr}"
        );
        let output = Run::case_b().argument("--stdin").argument(file).output();
        assert_eq!(output.status.code(), Some(2));
    }
}

#[test]
fn case_has_an_empty_input_unless_asked() {
    needs_sandbox!();
    let stdin = |run: Run| -> Value {
        let mut command = run.argument("--report=json").command();
        command.stdin(File::open("/etc/hostname").unwrap());
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()["client"]["stdin"].clone()
    };
    assert_eq!(stdin(Run::case_b()), json!("none"));
    assert_eq!(
        stdin(Run::case_b().argument("--stdin=-")),
        json!("inherited")
    );
}
