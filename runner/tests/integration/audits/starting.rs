//! Start of an audited program: its current directory and its interpreter.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use serde_json::Value;

use super::{Audit, open_directory};
use crate::kit::{Run, is_root};
use crate::needs_sandbox;

#[test]
fn current_directory_shown_by_another_name_is_kept() {
    needs_sandbox!();
    let directory = open_directory("/var/tmp");
    let at = |name: &str| directory.path().join(name);
    fs::create_dir_all(at("real/p")).unwrap();
    fs::write(at("real/p/beside"), "beside\n").unwrap();
    fs::write(
        at("real/p/s.sh"),
        "#!/bin/sh\ncat beside \"${0%/*}/beside\"\n",
    )
    .unwrap();
    for name in ["real", "real/p", "real/p/s.sh"] {
        fs::set_permissions(at(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    symlink("real", at("link")).unwrap();
    // The kernel knows the current directory by its name without links.
    for shown in [at("link/p"), at("link"), at("real"), ".".into()] {
        let audit = || {
            let audit = Audit::of(["./s.sh"]).in_directory(at("link/p"));
            audit.option("--read").option(&shown)
        };
        for audit in [audit(), audit().as_ordinary_user()] {
            let audited = audit.run();
            audited.assert_printed(0, "beside\nbeside\n");
            assert_eq!(audited.report["client"]["hidden_directory"], Value::Null);
        }
    }
    // The negative twin: another directory is shown, and the report says that this one is not.
    let audit = Audit::shell("cat beside").in_directory(at("link/p"));
    let audited = audit.option("--read=/etc/hostname").run();
    audited.assert_printed(1, "");
    let real = at("real/p");
    let hidden = real.to_str().unwrap();
    assert_eq!(audited.report["client"]["hidden_directory"], *hidden);
    assert!(
        audited
            .stderr
            .contains("\n  directory   an empty one, because ")
    );
}

/// A directory with an executable script of each name and text.
fn scripts(files: &[(&str, &str)]) -> tempfile::TempDir {
    let directory = open_directory("/var/tmp");
    for (name, text) in files {
        let path = directory.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    directory
}

#[test]
fn script_that_cannot_start_is_refused_with_one_message() {
    needs_sandbox!();
    let directory = scripts(&[
        ("crlf", "#!/bin/sh\r\necho ran\r\n"),
        ("env-crlf", "#!/usr/bin/env sh\r\necho ran\r\n"),
        ("absent", "#!/no/such/interpreter -x\n"),
        ("env-absent", "#!/usr/bin/env -S no-such-interpreter -x\n"),
        ("env-relative", "#!/usr/bin/env /no/such/interpreter\n"),
        ("plain", "#! /bin/sh -e\necho ran\n"),
        ("env", "#!/usr/bin/env -S sh -e\necho ran\n"),
        ("nested", "#!/usr/bin/env /bin/sh\necho ran\n"),
    ]);
    for (name, need) in [
        ("crlf", "its first line ends with a carriage return"),
        ("env-crlf", "so its interpreter is `/usr/bin/env sh\\r`"),
        (
            "absent",
            "its interpreter /no/such/interpreter does not exist",
        ),
        (
            "env-absent",
            "its interpreter `no-such-interpreter` is not in the PATH",
        ),
        (
            "env-relative",
            "its interpreter /no/such/interpreter does not exist",
        ),
    ] {
        let program = directory.path().join(name);
        let audit = || Audit::of([program.as_os_str()]);
        for audit in [audit(), audit().as_ordinary_user()] {
            let output = audit.command().output().unwrap();
            let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(127), "{stderr}");
            assert!(stderr.contains(need), "{stderr}");
            // The error and its hint.
            assert_eq!(stderr.lines().count(), 2, "{stderr}");
        }
    }
    for name in ["plain", "env", "nested"] {
        Audit::of([directory.path().join(name)])
            .run()
            .assert_printed(0, "ran\n");
    }
}

#[test]
fn hidden_toolchain_is_named_with_the_option_that_shows_it() {
    needs_sandbox!();
    let directory = scripts(&[
        ("tool/bin/shell", ""),
        ("tool/lib/part", ""),
        ("bin/run", ""),
    ]);
    let at = |name: &str| directory.path().join(name).display().to_string();
    fs::copy("/bin/dash", at("tool/bin/shell")).unwrap();
    fs::write(
        at("bin/run"),
        format!("#!{}\necho ran\n", at("tool/bin/shell")),
    )
    .unwrap();
    fs::write(at("bin/by-name"), "#!/usr/bin/env shell\necho ran\n").unwrap();
    fs::set_permissions(at("bin/by-name"), fs::Permissions::from_mode(0o755)).unwrap();
    let shown = format!("--read {}", at("tool"));
    for (name, hint) in [
        ("bin/run", format!("hint: `{shown}` shows it")),
        (
            "bin/by-name",
            format!("hint: `{shown} --env PATH={}:", at("tool/bin")),
        ),
    ] {
        let audit = || Audit::of([at(name)]);
        let mut command = audit().command();
        command.env("PATH", format!("{}:/usr/bin:/bin", at("tool/bin")));
        let output = command.output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(127), "{stderr}");
        assert!(stderr.contains(&hint), "{stderr}");
        // The positive twin follows the hint.
        let options = stderr
            .split("hint: `")
            .nth(1)
            .unwrap()
            .split('`')
            .next()
            .unwrap();
        let audit = options.split(' ').fold(audit(), Audit::option);
        audit.run().assert_printed(0, "ran\n");
    }
}

#[test]
fn case_refuses_a_program_that_cannot_start_unless_a_report_is_awaited() {
    needs_sandbox!();
    let run = || Run::case_b().client("/bin/true");
    let output = run().output();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(3), 0));
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(stderr.contains(": its loader /lib"), "{stderr}");
    assert!(stderr.contains("`runner policy init profile NAME --client PROGRAM`"));
    let done = run().json();
    done.assert_verdict(3, "errored");
}

#[test]
fn root_starts_below_the_closed_home_of_another_user() {
    needs_sandbox!();
    if !is_root() {
        return;
    }
    let directory = open_directory("/var/tmp");
    let home = directory.path().join("home");
    let project = home.join("project");
    fs::create_dir_all(&project).unwrap();
    fs::copy("/bin/dash", project.join("shell")).unwrap();
    fs::write(project.join("file"), "text\n").unwrap();
    fs::write(home.join("secret"), "secret\n").unwrap();
    std::os::unix::fs::chown(&home, Some(1000), Some(1000)).unwrap();
    fs::set_permissions(&home, fs::Permissions::from_mode(0o700)).unwrap();
    let audit = |line: &str| {
        let audit = Audit::of(["./shell", "-c", line]).in_directory(&project);
        audit.option("--read=.")
    };
    let line = "cat file; cat ../secret || echo $?; echo >new || echo $?";
    audit(line).run().assert_printed(0, "text\n1\n2\n");
    Audit::of(["./shell", "-c", "echo alone"])
        .in_directory(&project)
        .run()
        .assert_printed(0, "alone\n");
    Run::case_b()
        .client(project.join("shell"))
        .json()
        .assert_verdict(3, "errored");
}
