//! Programs that the audited program wrote itself: refused, unless `--allow-exec` names their directory.

use std::fs;

use super::{Audit, Audited};
use crate::kit::{Run, runner};
use crate::needs_sandbox;

/// Copies a program to each of the three directories, and starts it there.
const COPIES: &str = "for tree in \"$HOME\" \"$TMPDIR\" .; do \
    cp /bin/true \"$tree/made\"; \"$tree/made\"; echo $?; done";

/// An audit as root, as a user, and both without namespaces.
fn everywhere(audit: impl Fn() -> Audit) -> [Audit; 4] {
    [
        audit(),
        audit().as_ordinary_user(),
        audit().in_container(),
        audit().in_container().as_ordinary_user(),
    ]
}

/// Directories with a program of this kind, from the paths in the report, and its errno.
fn made(audited: &Audited) -> Vec<(String, Option<String>)> {
    let programs = audited.report["evidence"]["processes"].as_array().unwrap();
    let made = programs.iter().filter_map(|process| {
        let tree = process["program"].as_str()?.strip_suffix("/made")?;
        let tree = tree.rsplit('/').next().unwrap().replace("sandbox", "home");
        Some((tree, process["refused"].as_str().map(str::to_owned)))
    });
    made.collect()
}

#[test]
fn own_program_is_refused_and_not_started() {
    needs_sandbox!();
    for audit in everywhere(|| Audit::shell(COPIES)) {
        let audited = audit.run();
        audited.assert_printed(0, "126\n126\n126\n");
        let expected =
            ["home", "tmp", "work"].map(|tree| (tree.to_owned(), Some("EACCES".to_owned())));
        assert_eq!(made(&audited), expected);
        let told = &audited.stderr;
        assert!(!told.contains("can be executed"), "{told}");
        assert!(told.contains("refused to execute: 3"), "{told}");
    }
}

#[test]
fn own_program_starts_where_an_option_allows() {
    needs_sandbox!();
    for audit in everywhere(|| Audit::shell(COPIES).option("--allow-exec=home")) {
        let audited = audit.run();
        audited.assert_printed(0, "0\n126\n126\n");
        let refused = || Some("EACCES".to_owned());
        let expected = [
            ("home".to_owned(), None),
            ("tmp".to_owned(), refused()),
            ("work".to_owned(), refused()),
        ];
        assert_eq!(made(&audited), expected);
        let told = &audited.stderr;
        assert!(told.contains("files in home can be executed"), "{told}");
    }
}

#[test]
fn every_tree_can_be_allowed_in_one_run() {
    needs_sandbox!();
    let audit = || {
        let options = ["--allow-exec=home", "--allow-exec=tmp", "--allow-exec=work"];
        options
            .into_iter()
            .fold(Audit::shell(COPIES), Audit::option)
    };
    for audit in everywhere(audit) {
        audit.run().assert_printed(0, "0\n0\n0\n");
    }
}

/// A shared library in the home. Landlock has no right for mappings, so isolation `inherited` maps it.
#[test]
fn own_library_is_mapped_where_an_option_allows() {
    needs_sandbox!();
    let program = "import mmap, os\n\
        path = os.environ['HOME'] + '/library'\n\
        open(path, 'wb').write(b'x' * 4096)\n\
        try: mmap.mmap(os.open(path, 0), 4096, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)\n\
        except OSError as error: print(error.errno)\n\
        else: print('mapped')";
    let audit = || Audit::of(["/usr/bin/python3", "-c", program]);
    for (audit, printed) in [
        (audit(), "1\n"),
        (audit().option("--allow-exec=home"), "mapped\n"),
        (audit().option("--allow-exec=tmp"), "1\n"),
        (audit().in_container(), "mapped\n"),
    ] {
        audit.run().assert_printed(0, printed);
    }
}

#[test]
fn script_of_its_own_is_refused_as_a_program() {
    needs_sandbox!();
    let line = "printf '#!/bin/sh\\necho ran\\n' > made; chmod +x made; ./made; sh ./made";
    let audited = Audit::shell(line).run();
    audited.assert_printed(0, "ran\n");
    let expected = [("work".to_owned(), Some("EACCES".to_owned()))];
    assert_eq!(made(&audited), expected);
    let allowed = Audit::shell(line).option("--allow-exec=work").run();
    allowed.assert_printed(0, "ran\nran\n");
    assert_eq!(made(&allowed), [(".".to_owned(), None)]);
}

#[test]
fn built_in_case_has_no_programs_of_its_own() {
    for case in ["case-a", "case-b"] {
        let output = Run::case(case).argument("--allow-exec=home").output();
        assert_eq!(output.status.code(), Some(2));
        let told = String::from_utf8_lossy(&output.stderr);
        let expected = format!("error: the built-in case `{case}` does not allow --allow-exec\n");
        assert!(told.starts_with(&expected), "{told}");
    }
}

#[test]
fn case_of_init_allows_what_its_option_allowed() {
    needs_sandbox!();
    let project = super::open_directory("/var/tmp");
    let file = project.path().join("agent.toml");
    let script = project.path().join("agent.sh");
    fs::write(&script, "cp /bin/true \"$HOME/made\" && \"$HOME/made\"\n").unwrap();
    let run = |words: &[&str]| {
        let mut command = std::process::Command::new(runner());
        command.current_dir(project.path()).args(words);
        let output = command.output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), told)
    };
    let program = ["--", "/bin/sh", "agent.sh"];
    let init = [&["init", "agent.toml", "--allow-exec=home"], &program[..]].concat();
    let (code, told) = run(&init);
    assert_eq!(code, Some(0), "{told}");
    let text = fs::read_to_string(&file).unwrap();
    assert!(
        text.contains("[sandbox]\nallow_exec = [\"home\"]\n"),
        "{text}"
    );
    let (code, told) = run(&["run", "agent.toml"]);
    assert_eq!(code, Some(0), "{told}");
    let without = text.replace("allow_exec = [\"home\"]\n", "");
    fs::write(&file, without).unwrap();
    let (code, told) = run(&["run", "agent.toml"]);
    assert_eq!(code, Some(1), "{told}");
    let (code, told) = run(&["run", "agent.toml", "--allow-exec=home"]);
    assert_eq!(code, Some(0), "{told}");
}
