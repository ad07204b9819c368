//! Toolchains of clients: followed by their links, shebangs and virtual environments, anew on each machine.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Output;

use tempfile::TempDir;

use crate::kit::{Done, Run, is_root};
use crate::needs_program;

/// Prints where Python finds itself, and imports a module of its standard library.
const AGENT: &str = "#!/usr/bin/env python3
import json, sys
print(json.dumps({\"prefix\": sys.prefix, \"base\": sys.base_prefix, \"argv0\": sys.orig_argv[0]}))
";

/// A directory that every user can enter, not in /tmp.
fn open_directory() -> TempDir {
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    directory
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Makes a Python with a prefix of its own: the executable of the system, and links to its library.
fn python_at(prefix: &Path) {
    let real = fs::canonicalize("/usr/bin/python3").unwrap();
    let name = real.file_name().unwrap();
    fs::create_dir_all(prefix.join("bin")).unwrap();
    fs::create_dir_all(prefix.join("lib")).unwrap();
    fs::copy(&real, prefix.join("bin").join(name)).unwrap();
    symlink(name, prefix.join("bin/python3")).unwrap();
    let library = Path::new("/usr/lib").join(name);
    symlink(library, prefix.join("lib").join(name)).unwrap();
}

fn path_of(prefix: &Path) -> String {
    format!("{}:/usr/bin:/bin", prefix.join("bin").display())
}

/// `runner init` in a project.
fn init(project: &Path, prefix: &Path, words: &[&str]) -> Output {
    let mut run = Run::case("init").argument(project.join("made.toml"));
    for word in words {
        run = run.client_argument(*word);
    }
    let mut command = run.variable("PATH", path_of(prefix)).command();
    command.current_dir(project).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Runs a case as an ordinary user.
fn run(project: &Path, prefix: &Path) -> Done {
    let run = Run::case("run").argument(project.join("made.toml"));
    run.variable("PATH", path_of(prefix))
        .as_ordinary_user()
        .json()
}

/// The human report of a run as an ordinary user, without blanks and line breaks.
fn report(project: &Path, prefix: &Path) -> String {
    let run = Run::case("run")
        .argument(project.join("made.toml"))
        .argument("--report=human");
    let output = run
        .variable("PATH", path_of(prefix))
        .as_ordinary_user()
        .output();
    let lines = String::from_utf8(output.stdout).unwrap();
    let lines = lines
        .lines()
        .map(|line| line.trim_start().trim_start_matches('|'));
    lines.flat_map(str::split_whitespace).collect()
}

#[test]
fn case_of_init_passes_with_the_toolchain_of_another_user() {
    needs_program!("/usr/bin/python3");
    let (made, elsewhere) = (open_directory(), open_directory());
    let (here, there) = (made.path().join("py"), elsewhere.path().join("opt/python"));
    python_at(&here);
    python_at(&there);
    let absolute = here.join("bin/python3").display().to_string();
    for program in [
        &["./agent.py"][..],
        &["python3", "agent.py"],
        &[&absolute, "agent.py"],
    ] {
        let (from, to) = (open_directory(), open_directory());
        for project in [&from, &to] {
            write(&project.path().join("agent.py"), AGENT);
        }
        let output = init(from.path(), &here, program);
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        let case = fs::read_to_string(from.path().join("made.toml")).unwrap();
        assert!(case.contains("toolchain = \"follow\""), "{case}");
        for directory in [made.path(), from.path()] {
            assert!(!case.contains(directory.to_str().unwrap()), "{case}");
        }
        fs::write(to.path().join("made.toml"), &case).unwrap();
        let done = run(to.path(), &there);
        done.assert_passed();
        let report = report(to.path(), &there);
        let name = Path::new(program[0]).file_name().unwrap().to_str().unwrap();
        let rule = format!("read-execute{}:toolchainthat{name}leadsto", there.display());
        assert!(report.contains(&rule), "{report}");
        assert!(!report.contains(here.to_str().unwrap()), "{report}");
    }
}

#[test]
fn virtual_environment_keeps_prefix_and_name() {
    needs_program!("/usr/bin/python3");
    let (project, elsewhere) = (open_directory(), open_directory());
    let prefix = elsewhere.path().join("python");
    python_at(&prefix);
    let at = |name: &str| project.path().join(name);
    write(&at("agent.py"), AGENT);
    fs::create_dir_all(at(".venv/bin")).unwrap();
    symlink(prefix.join("bin/python3"), at(".venv/bin/python")).unwrap();
    write(
        &at(".venv/pyvenv.cfg"),
        &format!("home = {}\n", prefix.join("bin").display()),
    );
    let nowhere = Path::new("/nonexistent");
    let output = init(project.path(), nowhere, &[".venv/bin/python", "agent.py"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let case = fs::read_to_string(at("made.toml")).unwrap();
    assert!(
        case.contains("program = \"{project}/.venv/bin/python\""),
        "{case}"
    );
    let done = run(project.path(), nowhere);
    done.assert_passed();
    let audit = Run::case("audit").argument("--read").argument(&prefix);
    let audit = audit.argument("--read=.");
    let audit = audit
        .client_argument(".venv/bin/python")
        .client_argument("agent.py");
    let audited = audit
        .command()
        .current_dir(project.path())
        .output()
        .unwrap();
    for printed in [printed_by(project.path(), nowhere), audited.stdout] {
        let printed: serde_json::Value = serde_json::from_slice(&printed).unwrap();
        assert_eq!(printed["prefix"], at(".venv").to_str().unwrap());
        assert_eq!(printed["base"], prefix.to_str().unwrap());
    }
    let printed: serde_json::Value =
        serde_json::from_slice(&printed_by(project.path(), nowhere)).unwrap();
    assert_eq!(printed["argv0"], at(".venv/bin/python").to_str().unwrap());
}

/// Standard output of the client of a case.
fn printed_by(project: &Path, prefix: &Path) -> Vec<u8> {
    let out = open_directory();
    if is_root() {
        chown(out.path(), Some(1000), Some(1000)).unwrap();
    }
    let run = Run::case("run").argument(project.join("made.toml"));
    let run = run.argument("--out").argument(out.path());
    let run = run.variable("PATH", path_of(prefix)).as_ordinary_user();
    assert_eq!(run.output().status.code(), Some(0));
    let files = ["stdout.jsonl", "stdout.txt"].map(|name| out.path().join(name));
    let file: &PathBuf = files.iter().find(|file| file.exists()).unwrap();
    fs::read(file).unwrap()
}

#[test]
fn case_without_the_key_proposes_it() {
    needs_program!("/usr/bin/python3");
    let (project, elsewhere) = (open_directory(), open_directory());
    let prefix = elsewhere.path().join("python");
    python_at(&prefix);
    let script = format!("#!{}\nprint(1)\n", prefix.join("bin/python3").display());
    write(&project.path().join("agent.py"), &script);
    let case = "schema = \"runner.case/1\"\nname = \"x\"\n[client]\nprogram = \"{project}/agent.py\"\ncwd = \"{project}\"\n";
    let run = |text: &str| {
        fs::write(project.path().join("made.toml"), text).unwrap();
        Run::case("run")
            .argument(project.path().join("made.toml"))
            .output()
    };
    let output = run(case);
    assert_eq!(output.status.code(), Some(3));
    let hint = format!(
        "hint: write toolchain = \"follow\" into [client] of the case; it shows {}",
        prefix.display()
    );
    assert!(said(&output).contains(&hint), "{}", said(&output));
    let output = run(&format!("{case}toolchain = \"follow\"\n"));
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
}

#[test]
fn interpreter_in_a_home_is_not_shown_for_a_case() {
    needs_program!("/usr/bin/python3");
    let (project, home) = (open_directory(), open_directory());
    fs::copy("/bin/dash", home.path().join("shell")).unwrap();
    let script = format!("#!{}\nexit 0\n", home.path().join("shell").display());
    write(&project.path().join("agent"), &script);
    let run = |home: &Path| {
        let _ = fs::remove_file(project.path().join("made.toml"));
        let run = Run::case("init").argument(project.path().join("made.toml"));
        let run = run.variable("HOME", home).client_argument("./agent");
        run.command().current_dir(project.path()).output().unwrap()
    };
    let output = run(home.path());
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    let message = format!(
        "{} is not shown for a program in it, because it is a whole home",
        home.path().display()
    );
    assert!(said(&output).contains(&message), "{}", said(&output));
    assert!(said(&output).contains("hint: install the interpreter in a directory of its own"));
    // The twin: the same directory is nobody's home.
    let output = run(Path::new("/nonexistent"));
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
}
