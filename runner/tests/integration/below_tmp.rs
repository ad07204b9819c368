//! Directories below /tmp: shown if the caller owns them, and not confused with the client's own files there.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};

use serde_json::json;
use tempfile::TempDir;

use crate::kit::{Run, is_root};
use crate::needs_sandbox;

/// A directory below /tmp of the user who runs a test: of root, or of an ordinary user.
fn owned_by(user: u32) -> TempDir {
    let directory = tempfile::tempdir_in("/tmp").unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::create_dir_all(at("deep/project")).unwrap();
    fs::write(at("deep/project/file"), "text\n").unwrap();
    for name in ["", "deep", "deep/project"] {
        fs::set_permissions(at(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    if is_root() {
        for name in ["", "deep", "deep/project", "deep/project/file"] {
            chown(at(name), Some(user), Some(user)).unwrap();
        }
    }
    directory
}

/// An audit of a shell line that shows a directory.
fn audit(shown: &Path, option: &str, line: &str) -> Run {
    let run = Run::case("audit").argument(option).argument(shown);
    ["sh", "-c", line]
        .into_iter()
        .fold(run, Run::client_argument)
}

/// Runs an audit, and returns its exit code, standard output, standard error and report.
fn audited(run: Run) -> (Option<i32>, String, String, serde_json::Value) {
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let report: PathBuf = directory.path().join("report.json");
    let option = format!("json={}", report.display());
    let output = run.argument("--report").argument(option).output();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let report =
        fs::read(report).map_or(json!(null), |bytes| serde_json::from_slice(&bytes).unwrap());
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
        report,
    )
}

#[test]
fn own_directory_below_tmp_is_read_only_and_in_place() {
    needs_sandbox!();
    for user in [0, 1000] {
        let directory = owned_by(user);
        let project = directory.path().join("deep/project");
        let top = directory.path().display();
        let line = format!(
            "cat {project}/file; cat {project}/no-such-file 2>/dev/null
            echo x 2>/dev/null >{project}/new || echo $?
            mv {top} /tmp/moved 2>/dev/null || echo kept
            mv {top}/deep {top}/moved 2>/dev/null || echo kept
            echo x 2>/dev/null >{top}/new || echo $?
            rm -rf {top} 2>/dev/null; cat {project}/file
            echo own >/tmp/own; cat /tmp/own",
            project = project.display()
        );
        let run = |line: &str| {
            let run = audit(&project, "--read", line);
            if user == 0 {
                run
            } else {
                run.as_ordinary_user()
            }
        };
        let (code, stdout, stderr, report) = audited(run(&line));
        assert_eq!(stdout, "text\n2\nkept\nkept\n2\ntext\nown\n", "{stderr}");
        assert_eq!(code, Some(0));
        // The client's own file is the only evidence of the temporary directory.
        let files = report["evidence"]["files"].as_array().unwrap();
        let paths: Vec<_> = files
            .iter()
            .map(|file| (&file["root"], &file["path"]))
            .collect();
        assert_eq!(paths, [(&json!("tmp"), &json!("own"))]);
        assert_eq!(report["evidence"]["gaps"], json!([]));
        assert_eq!(report["evidence"]["lookups"], json!([]), "{stderr}");
        assert_eq!(fs::read_to_string(project.join("file")).unwrap(), "text\n");
        // The twin: what is beside the shown directory is not there.
        let line = format!("ls -A /tmp; ls -A {top}/deep");
        let (_, stdout, ..) = audited(run(&line));
        let name = directory.path().file_name().unwrap().to_str().unwrap();
        assert_eq!(stdout, format!("{name}\nproject\n"));
        if !is_root() {
            break;
        }
    }
}

#[test]
fn writable_directory_below_tmp_is_written_and_no_evidence() {
    needs_sandbox!();
    let directory = owned_by(1000);
    let line = format!("echo new >{}/new; cat {0}/new", directory.path().display());
    let run = audit(directory.path(), "--write", &line).as_ordinary_user();
    let (code, stdout, stderr, report) = audited(run);
    assert_eq!((code, stdout.as_str()), (Some(0), "new\n"), "{stderr}");
    assert_eq!(report["evidence"]["files"], json!([]));
    assert_eq!(
        fs::read_to_string(directory.path().join("new")).unwrap(),
        "new\n"
    );
}

#[test]
fn directory_of_another_user_below_tmp_is_refused() {
    needs_sandbox!();
    if !is_root() {
        eprintln!("skipped: only root can give files away");
        return;
    }
    let (roots, users) = (owned_by(0), owned_by(1000));
    let link = users.path().join("link");
    symlink(roots.path(), &link).unwrap();
    for (shown, is_user) in [(users.path(), false), (roots.path(), true), (&link, true)] {
        let run = audit(shown, "--read", "true");
        let run = if is_user { run.as_ordinary_user() } else { run };
        let output = run.output();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(125), "{said}");
        assert!(said.contains("below /tmp, user "), "{said}");
        assert!(
            said.contains("hint: start the runner as the owner"),
            "{said}"
        );
    }
    // The twin with the owner.
    let run = audit(users.path(), "--read", "true").as_ordinary_user();
    assert_eq!(run.output().status.code(), Some(0));
}

#[test]
fn tmp_itself_is_never_shown() {
    needs_sandbox!();
    for path in ["/tmp", "/tmp/", "/tmp/."] {
        let output = audit(Path::new(path), "--read", "true").output();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(125), "{said}");
        assert!(said.contains("/tmp is never shown"), "{said}");
    }
}

#[test]
fn case_of_init_below_tmp_passes() {
    needs_sandbox!();
    let directory = owned_by(0);
    let program = directory.path().join("agent");
    fs::write(
        &program,
        "#!/bin/sh\ncat file-beside\necho kept >/tmp/kept\n",
    )
    .unwrap();
    fs::write(directory.path().join("file-beside"), "beside\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let file = directory.path().join("made.toml");
    let run = Run::case("init").argument(&file).client_argument("./agent");
    let output = run
        .command()
        .current_dir(directory.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    let case = fs::read_to_string(&file).unwrap();
    assert!(case.contains("path = \"kept\""), "{case}");
    assert!(!case.contains(directory.path().to_str().unwrap()), "{case}");
    Run::case("run").argument(&file).json().assert_passed();
}
