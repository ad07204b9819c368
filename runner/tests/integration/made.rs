//! Cases that `runner init` makes: their project, the options that they keep, and command lines that make none.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Output;

use tempfile::TempDir;

use crate::kit::Run;
use crate::needs_sandbox;

/// A directory with these entries, each an executable file or, with a slash at its end, a directory.
fn tree(entries: &[(&str, &str)]) -> TempDir {
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    let open = |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    open(directory.path());
    for (path, text) in entries {
        let path = directory.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        match text {
            &"/" => fs::create_dir_all(&path).unwrap(),
            text => fs::write(&path, text).unwrap(),
        }
        open(&path);
    }
    directory
}

/// `runner init` in a directory, with a line of a shell as the program.
fn init(directory: &Path, options: &[&str], line: &str) -> Output {
    init_of(Run::case("init"), directory, options, &["sh", "-c", line])
}

fn init_of(run: Run, directory: &Path, options: &[&str], program: &[&str]) -> Output {
    let run = options
        .iter()
        .fold(run, |run, option| run.argument(*option));
    let run = program
        .iter()
        .fold(run, |run, word| run.client_argument(*word));
    run.command().current_dir(directory).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[track_caller]
fn made(output: &Output, file: &Path) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", said(output));
    fs::read_to_string(file).unwrap()
}

#[test]
fn nearest_mark_names_the_project() {
    needs_sandbox!();
    for (mark, text) in [
        ("pyproject.toml", ""),
        ("package.json", "{}"),
        (".git", "/"),
    ] {
        let outer = tree(&[
            ("package.json", "{}"),
            ("repo/data", "text\n"),
            ("repo/ci/agents/beside", ""),
            (&format!("repo/{mark}"), text),
        ]);
        let root = outer.path().join("repo");
        let own = root.join("ci/agents");
        let file = own.join("made.toml");
        let output = init(&own, &["made.toml"], "cat ../../data; cat beside");
        let case = made(&output, &file);
        let note = format!("shows {} as {{project}}: {mark} is there", root.display());
        assert!(said(&output).contains(&note), "{}", said(&output));
        for line in [
            "project = \"../..\"",
            "cwd = \"{project}/ci/agents\"",
            "path = \"{project}\"",
            "code = 0",
        ] {
            assert!(case.contains(line), "no {line} in\n{case}");
        }
        assert!(!case.contains(outer.path().to_str().unwrap()), "{case}");
        for run in [Run::case("run"), Run::case("run").as_ordinary_user()] {
            run.argument(&file).json().assert_passed();
        }
        // From the root itself, the case needs no way up.
        let output = init(&root, &["root.toml"], "cat data");
        let case = made(&output, &root.join("root.toml"));
        assert!(said(&output).contains(&note), "{}", said(&output));
        assert!(!case.contains("project = "), "{case}");
    }
}

#[test]
fn directory_without_a_mark_is_the_project() {
    needs_sandbox!();
    let directory = tree(&[("data", "text\n")]);
    let output = init(directory.path(), &["made.toml"], "cat data");
    let case = made(&output, &directory.path().join("made.toml"));
    let note = format!("shows {} as {{project}}\n", directory.path().display());
    assert!(said(&output).contains(&note), "{}", said(&output));
    assert!(
        case.contains("cwd = \"{project}\"") && case.contains("code = 0"),
        "{case}"
    );
}

#[test]
fn program_of_the_project_is_found_in_that_of_the_run() {
    needs_sandbox!();
    let script = "#!/bin/sh\n";
    let (from, to) = (
        tree(&[("bin/helper", script)]),
        tree(&[("bin/helper", script)]),
    );
    let output = init(from.path(), &["made.toml"], "./bin/helper; $PWD/bin/helper");
    let case = made(&output, &from.path().join("made.toml"));
    assert!(
        case.contains("program = \"{project}/bin/helper\""),
        "{case}"
    );
    let run = |case: &str| {
        fs::write(to.path().join("made.toml"), case).unwrap();
        let run = Run::case("run").argument(to.path().join("made.toml"));
        run.as_ordinary_user().json()
    };
    run(&case).assert_passed();
    let other = case.replace("{project}/bin/helper", "{project}/bin/other");
    run(&other).assert_fails(&["process/programs"]);
}

#[test]
fn home_is_no_project() {
    needs_sandbox!();
    let home = tree(&[(".git", "/"), ("data", "text\n"), ("sub/data", "text\n")]);
    for (directory, shown) in [("", false), ("sub", true)] {
        let directory = home.path().join(directory);
        let run = Run::case("init").variable("HOME", home.path());
        let output = init_of(
            run,
            &directory,
            &["made.toml"],
            &["sh", "-c", "cat data || exit 3"],
        );
        // The program fails without the file.
        assert_eq!(output.status.code(), Some(i32::from(!shown)));
        let case = fs::read_to_string(directory.join("made.toml")).unwrap();
        assert_eq!(case.contains("cwd = "), shown, "{case}");
        assert_eq!(case.contains("code = 0"), shown, "{case}");
        let note = "is not shown for a program in it, because it is a whole home";
        assert_eq!(said(&output).contains(note), !shown, "{}", said(&output));
    }
    // A case that shows its project is not run in a home.
    let run = || Run::case("run").argument(home.path().join("sub/made.toml"));
    assert_eq!(run().output().status.code(), Some(0));
    let output = run().variable("HOME", home.path().join("sub")).output();
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(
        said(&output).contains("as {project}: it is a whole home"),
        "{}",
        said(&output)
    );
}

#[test]
fn options_of_init_are_kept_by_its_case() {
    needs_sandbox!();
    let directory = tree(&[("input", "typed\n")]);
    let options = [
        "made.toml",
        "--stub=error-529",
        "--stdin=input",
        "--limit=open_files=64",
        "--limit=memory=1 GiB",
        "--timeout=30s",
        "--isolation=namespace",
        "--allow-attempt=name:telemetry.example.com",
    ];
    let line = "cat >$HOME/copy; test $(ulimit -n) = 64";
    let output = init(directory.path(), &options, line);
    let file = directory.path().join("made.toml");
    let case = made(&output, &file);
    for line in [
        "stdin = \"{project}/input\"",
        "scenario = \"error-529\"",
        "tiers = [\"namespace\"]",
        "timeout = \"30s\"",
        "memory = \"1 GiB\"",
        "open_files = 64",
        "destination = \"name:telemetry.example.com\"",
        "path = \"copy\"",
        "code = 0",
    ] {
        assert!(case.contains(line), "no {line} in\n{case}");
    }
    assert!(!case.contains("home_size"), "{case}");
    let run = || Run::case("run").argument(&file);
    for run in [run(), run().as_ordinary_user()] {
        let done = run.json();
        done.assert_passed();
        let input = directory.path().join("input");
        assert_eq!(
            done.report["client"]["stdin"]["file"],
            input.to_str().unwrap()
        );
        let copy = &done.report["evidence"]["files"][0];
        assert_eq!(copy["bytes"], 6, "{copy}");
    }
    // Another standard input of the command line counts.
    let done = run().argument("--stdin=none").json();
    assert_eq!(done.report["evidence"]["files"][0]["bytes"], 0);
}

#[test]
fn command_line_that_makes_no_case_is_refused_before_a_run() {
    needs_sandbox!();
    let directory = tree(&[]);
    for (options, word, message) in [
        (&[][..], "{foo}", "found `{foo}`"),
        (&["--env=X={bar}"], "x", "found `{bar}`"),
        (
            &["--stdin=inherit"],
            "x",
            "cannot write the standard input of the runner",
        ),
        (&["--stub=no-such"], "x", "no-such"),
        (&["--limit=memory=1"], "x", "limit memory"),
    ] {
        let options: Vec<&str> = ["made.toml"]
            .into_iter()
            .chain(options.iter().copied())
            .collect();
        let output = init_of(
            Run::case("init"),
            directory.path(),
            &options,
            &["sleep", "600", word],
        );
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        assert!(said(&output).contains(message), "{}", said(&output));
        assert!(said(&output).contains("hint: "), "{}", said(&output));
        assert!(!directory.path().join("made.toml").exists());
    }
}

#[test]
fn next_command_is_one_word_for_a_shell() {
    needs_sandbox!();
    let directory = tree(&[("it's a dir/x", "")]);
    let own = directory.path().join("it's a dir");
    let output = init(&own, &["made.toml"], "true");
    made(&output, &own.join("made.toml"));
    let text = said(&output);
    let next = text
        .lines()
        .find_map(|line| line.split_once("next: runner "))
        .unwrap()
        .1;
    let shell = std::process::Command::new("sh")
        .args(["-c", &format!("printf '%s\\n' {next}")])
        .output()
        .unwrap();
    let words = String::from_utf8(shell.stdout).unwrap();
    let expected = format!("run\n{}\n", own.join("made.toml").display());
    assert_eq!(words, expected);
}

/// A link of the project to a program in the home, or in a directory of keys, shows the program alone.
#[test]
fn home_is_not_shown_for_a_program_in_it() {
    needs_sandbox!();
    let script = "#!/bin/sh\ntrue\n";
    let home = tree(&[
        ("tool", script),
        (".ssh/tool", script),
        (".ssh/id_rsa", "key"),
        ("opt/tool", script),
        ("project/data", ""),
    ]);
    let case =
        "schema = \"runner.case/1\"\nname = \"linked\"\n\n[client]\nprogram = \"{project}/link\"\n";
    let file = home.path().join("project/case.toml");
    fs::write(&file, case).unwrap();
    for (program, is_shown) in [("tool", false), (".ssh/tool", false), ("opt/tool", true)] {
        let link = home.path().join("project/link");
        let _ = fs::remove_file(&link);
        symlink(home.path().join(program), &link).unwrap();
        let run = Run::case("run").argument(&file);
        let done = run.variable("HOME", home.path()).json();
        done.assert_passed();
        let directory = home.path().join(program);
        let directory = directory.parent().unwrap().display();
        let rule = format!("read-execute {directory}: the program's own directory");
        assert_eq!(done.stderr.contains(&rule), is_shown, "{}", done.stderr);
    }
}

/// A client that never ends is a deviation, whatever its case judges.
#[test]
fn client_without_an_end_fails_a_case_without_exit() {
    needs_sandbox!();
    let directory = tree(&[(
        "case.toml",
        "schema = \"runner.case/1\"\nname = \"endless\"\n\n[client]\nprogram = \"/bin/sh\"\narguments = [\"-c\", \"echo loot > $HOME/loot; exec sleep 100\"]\n\n[sandbox.limits]\ntimeout = \"1s\"\n\n[expect.files]\n",
    )]);
    let done = Run::case("run")
        .argument(directory.path().join("case.toml"))
        .json();
    done.assert_verdict(1, "failed");
    assert_eq!(done.checks("failed"), ["process/exit-zero"]);
}
