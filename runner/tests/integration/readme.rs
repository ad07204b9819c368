//! The commands of the README and of `docs/` work as they are written, and the README's samples and exit codes are
//! true.
//!
//! Each `sh` block is one script, each `$ ` line of a `console` block one command with its output. The blocks of a
//! section run in one temporary directory; `cargo run --release --` and `runner` are the executable under test.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use crate::{kit, needs_program, needs_sandbox};

mod text;

use text::{README, blocks_of, section};

const MAIN_COMMAND: &str = "cargo run --release -- case-b";
const TEST_COMMAND: &str = "cargo test --workspace";

#[test]
fn the_start_is_two_commands_one_for_the_main_job_and_one_for_the_tests() {
    let start = section("Start");
    let scripts: Vec<_> = blocks("sh")
        .into_iter()
        .filter(|script| start.contains(script.as_str()))
        .collect();
    assert_eq!(
        scripts,
        [MAIN_COMMAND, TEST_COMMAND].map(|line| format!("{line}\n"))
    );
}

/// The blocks of one section are steps in one directory.
#[test]
fn each_shell_block_runs_as_written() {
    needs_sandbox!();
    for section in README.split("\n## ") {
        let place = Place::new();
        for script in blocks_of(section, "sh") {
            let Some(script) = runnable(&script) else {
                continue;
            };
            let output = place.sh(&script);
            assert!(output.status.success(), "{script}\n{}", said(&output));
        }
    }
}

/// The blocks are one script, in a directory with the examples.
#[test]
fn commands_of_the_page_on_agents_run_as_written() {
    needs_program!("/usr/bin/curl");
    let page = include_str!("../../../docs/judge-your-own-agent.md");
    let script = runnable(&blocks_of(page, "sh").concat()).unwrap();
    let output = Place::with_examples().sh(&script);
    assert!(output.status.success(), "{}", said(&output));
}

#[test]
fn the_samples_are_what_the_commands_print() {
    needs_sandbox!();
    let samples = blocks("console");
    assert_eq!(samples.len(), 4);
    for sample in samples {
        let (command, expected) = sample.split_once('\n').unwrap();
        let place = Place::new();
        if command.contains("--baseline") {
            make_lock_file(&place);
        }
        let output = place.sh(&as_runner(command.strip_prefix("$ ").unwrap()));
        let printed = String::from_utf8(output.stdout).unwrap();
        assert_sample(expected, &printed);
    }
}

/// Runs the steps that precede the sample, in the sample's directory.
#[track_caller]
fn make_lock_file(place: &Place) {
    let steps = blocks_of(section("Keep a client under lock in CI"), "sh");
    let output = place.sh(&runnable(&steps.concat()).unwrap());
    assert!(output.status.success(), "{}", said(&output));
}

#[test]
fn each_exit_code_is_shown_by_its_example() {
    needs_sandbox!();
    let mut shown = Vec::new();
    for row in section("Exit codes").lines() {
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        // Rows of a run name the verdict; rows of an audit have no verdict.
        let ([_, code, _, _, example, _] | [_, code, _, example, _]) = cells[..] else {
            continue;
        };
        let Ok(code) = code.parse::<i32>() else {
            continue;
        };
        let output = Place::new().sh(example.trim_matches('`'));
        assert_eq!(
            output.status.code(),
            Some(code),
            "{example}\n{}",
            said(&output)
        );
        shown.push(code);
    }
    assert_eq!(shown, [0, 1, 2, 3, 123, 124, 125, 126, 127]);
}

#[test]
fn the_messages_of_the_requirements_are_those_of_the_program() {
    let requirements = section("Requirements");
    let sources = [
        include_str!("../../../crates/sandbox/src/error.rs"),
        include_str!("../../src/advice/table.rs"),
        include_str!("../../build.rs"),
    ]
    .concat();
    for words in [
        "make a user namespace and a network namespace",
        "write the user and group id maps",
        "set the loopback device up",
        "make the mounts private",
        "apply the Landlock rules",
        "the executable would not be static",
        "kernel.unprivileged_userns_clone=1",
        "kernel.apparmor_restrict_unprivileged_userns=0",
        "unset RUSTFLAGS",
    ] {
        assert!(requirements.contains(words), "not in the README: {words}");
        assert!(
            sources.contains(words),
            "no message of the program: {words}"
        );
    }
    let docker = "--network none";
    assert!(section("Containers and CI").contains(docker) && sources.contains(docker));
}

/// Returns the contents of the fenced blocks in this language.
fn blocks(language: &str) -> Vec<String> {
    blocks_of(README, language)
}

/// Returns the script without its builds and tests, which have run already; `None` if no line remains.
fn runnable(script: &str) -> Option<String> {
    let kept: Vec<_> = script
        .lines()
        .filter(|line| !line.starts_with("cargo build ") && *line != TEST_COMMAND)
        .filter(|line| !line.starts_with("jq ") || jq_is_here())
        .map(as_runner)
        .collect();
    (!kept.is_empty()).then(|| kept.join("\n"))
}

fn as_runner(command: &str) -> String {
    command.replace("cargo run --release --", "runner")
}

fn jq_is_here() -> bool {
    let here = Command::new("jq").arg("--version").output().is_ok();
    let may_skip = std::env::var_os("SANDBOX_MUST_WORK").is_none();
    assert!(here || may_skip, "jq is not installed");
    if !here {
        eprintln!("skipped a line of the README: jq is not installed");
    }
    here
}

/// A directory like a clone after its build: the programs are at the README's paths.
struct Place {
    directory: TempDir,
}

impl Place {
    fn new() -> Self {
        Self::in_directory(tempfile::tempdir().unwrap())
    }

    /// In /var/tmp: of /tmp, only the caller's own files are shown.
    fn with_examples() -> Self {
        let directory = tempfile::tempdir_in("/var/tmp").unwrap();
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
        let copied = Command::new("cp")
            .arg("-r")
            .args([&examples, directory.path()])
            .status()
            .unwrap();
        assert!(copied.success());
        Self::in_directory(directory)
    }

    fn in_directory(directory: TempDir) -> Self {
        let programs = directory.path().join("target/this-machine/release");
        fs::create_dir_all(&programs).unwrap();
        symlink(kit::runner(), programs.join("runner")).unwrap();
        symlink(
            kit::runner().with_file_name("agent-cli"),
            programs.join("agent-cli"),
        )
        .unwrap();
        Self { directory }
    }

    fn sh(&self, script: &str) -> Output {
        let path = std::env::var("PATH").unwrap_or_default();
        let programs = self.directory.path().join("target/this-machine/release");
        Command::new("sh")
            .args(["-euc", script])
            .current_dir(&self.directory)
            .env("PATH", format!("{}:{path}", programs.display()))
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }
}

fn said(output: &Output) -> String {
    [&output.stdout, &output.stderr]
        .map(|text| String::from_utf8_lossy(text))
        .concat()
}

/// Asserts that the output contains the sample's lines in this order, without a gap except at `...`, and ends with the
/// sample. Values that vary by run or machine are blanked in both.
#[track_caller]
fn assert_sample(sample: &str, printed: &str) {
    let printed: Vec<_> = printed.lines().map(blanked).collect();
    let mut rest = printed.as_slice();
    let mut gap = false;
    for line in sample.lines() {
        if line == "..." {
            gap = true;
            continue;
        }
        let wanted = blanked(line);
        let at = rest.iter().position(|line| *line == wanted);
        let at = at.unwrap_or_else(|| panic!("not printed, or not here: {line}\n{printed:#?}"));
        assert!(
            gap || at == 0,
            "lines are left out before: {line}\n{:#?}",
            &rest[..at]
        );
        rest = &rest[at + 1..];
        gap = false;
    }
    assert_eq!(rest, [""; 0], "printed after the sample's end");
}

/// The line in words, without digests, times, sizes and versions.
fn blanked(line: &str) -> String {
    let words: Vec<_> = line.split_whitespace().collect();
    let next = |at: usize| words.get(at + 1).copied().unwrap_or_default();
    let before = |at: usize| at.checked_sub(1).map_or("", |at| words[at]);
    let varies = |at: usize, word: &str| {
        let bare = word.trim_end_matches(',');
        let digest = bare.len() == 12 && bare.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = word
            .trim_start_matches('+')
            .starts_with(|first: char| first.is_ascii_digit());
        digest
            || (number && word.contains('.'))
            || (number && next(at) == "bytes")
            || matches!(before(at), "ABI" | "from" | "ms" | "runner" | "commit")
            || matches!(bare, "x86_64" | "aarch64")
    };
    let blank = |(at, word): (usize, &&str)| match word.rsplit_once('.') {
        _ if varies(at, word) => "#".to_owned(),
        Some((name, end)) if end.len() == 13 && end.parse::<u64>().is_ok() => format!("{name}.#"),
        _ => (*word).to_owned(),
    };
    words
        .iter()
        .enumerate()
        .map(blank)
        .collect::<Vec<_>>()
        .join(" ")
}
