//! Files of the host that every audit shows, and those that none does.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use serde_json::json;

use super::{Audit, open_directory};
use crate::{kit, needs_program, needs_sandbox};

#[test]
fn public_names_of_protocols_and_ports_are_found() {
    needs_program!("/etc/services");
    for (database, name, code) in [
        ("protocols", "tcp", 0),
        ("services", "https", 0),
        ("services", "no-such-service", 2),
    ] {
        let audit = || Audit::of(["getent", database, name]);
        for audit in [audit(), audit().as_ordinary_user()] {
            let audited = audit.run();
            audited.assert_code(code);
            assert_eq!(audited.names(), [""; 0]);
        }
    }
}

#[test]
fn file_of_the_caller_below_tmp_is_listed() {
    needs_sandbox!();
    let mut file = tempfile::NamedTempFile::new_in("/tmp").unwrap();
    file.write_all(b"text").unwrap();
    fs::set_permissions(file.path(), fs::Permissions::from_mode(0o644)).unwrap();
    let path = file.path().to_str().unwrap();
    let audit = || Audit::of(["cat", path, "/tmp/no-such-file-of-the-host"]);
    for audit in [audit(), audit().as_ordinary_user()] {
        let audited = audit.run();
        audited.assert_code(1);
        let lookups = &audited.report["evidence"]["lookups"];
        assert_eq!(lookups.as_array().unwrap().len(), 1, "{lookups}");
        assert_eq!(lookups[0]["path"], json!(path));
        assert_eq!(lookups[0]["advice"]["reason"], json!("absent"));
    }
    // The twin: the program's own file of that name is no lookup that failed.
    let line = format!("echo own >{path}; cat {path}");
    let audited = Audit::shell(&line).run();
    audited.assert_printed(0, "own\n");
    assert_eq!(audited.report["evidence"]["lookups"], json!([]));
}

/// A repository of another user, as root sees it.
#[test]
fn foreign_repository_has_a_hint_that_works() {
    needs_program!("/usr/bin/git");
    if !kit::is_root() {
        eprintln!("skipped: only root has a repository of another user");
        return;
    }
    let directory = open_directory("/var/tmp");
    let project = fs::canonicalize(directory.path()).unwrap();
    let made = Command::new("git").arg("init").arg(&project).output();
    assert!(made.unwrap().status.success());
    let owned = Command::new("chown")
        .args(["-R", "1000:1000"])
        .arg(&project)
        .status();
    assert!(owned.unwrap().success());
    let audit = || Audit::of(["git", "-C", project.to_str().unwrap(), "status"]);
    let audit = || audit().option("--read").option(&project);
    let refused = audit().run();
    refused.assert_code(128);
    let hint = "--env GIT_CONFIG_COUNT=1 --env GIT_CONFIG_KEY_0=safe.directory";
    let words = refused
        .stderr
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert!(words.contains(hint), "{}", refused.stderr);
    let trusted = audit()
        .option("--env=GIT_CONFIG_COUNT=1")
        .option("--env=GIT_CONFIG_KEY_0=safe.directory")
        .option("--env=GIT_CONFIG_VALUE_0=*")
        .run();
    trusted.assert_code(0);
    assert!(!trusted.stderr.contains("Hints"), "{}", trusted.stderr);
}

#[test]
fn refused_unix_socket_has_a_hint_that_works() {
    needs_sandbox!();
    let audit = |method: &str| {
        let program = format!(
            "import multiprocessing as m\n\
            if __name__ == '__main__':\n \
            m.set_start_method('{method}')\n \
            child = m.Process(target=print, args=('made',))\n \
            child.start(); child.join()\n"
        );
        let directory = open_directory("/var/tmp");
        let file = directory.path().join("program.py");
        fs::write(&file, program).unwrap();
        Audit::of(["/usr/bin/python3", file.to_str().unwrap()])
            .option("--read")
            .option(directory.path())
            .run()
    };
    let refused = audit("forkserver");
    refused.assert_code(1);
    assert!(
        refused.stderr.contains("refuses unix sockets"),
        "{}",
        refused.stderr
    );
    for method in ["spawn", "fork"] {
        audit(method).assert_printed(0, "made\n");
    }
}
