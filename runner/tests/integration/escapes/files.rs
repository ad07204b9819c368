//! Files: visibility of the host's files, writes, creation and execution.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use super::attempt::{inside, inside_one, outside, refused_inside, said, with_client};
use crate::kit::{Run, fixture};
use crate::needs_sandbox;

#[test]
fn nothing_of_the_host_is_there() {
    needs_sandbox!();
    let home = std::env::var("HOME").unwrap_or_default();
    // A caller without a home, or with one that is also a directory of the sandbox.
    let home = match home.as_str() {
        "" | "/" | "/tmp" => "/root".to_owned(),
        _ => home,
    };
    let current = std::env::current_dir().unwrap().display().to_string();
    let attempts = [
        "/root", "/usr", "/var", "/lib", "/opt", "/sys", &home, &current,
    ];
    let attempts = attempts.map(|path| format!("list {path}"));
    for (made, attempt) in inside(&attempts.each_ref().map(String::as_str))
        .iter()
        .zip(&attempts)
    {
        assert_eq!(made.outcome, "ENOENT", "{attempt}");
    }
    for (attempt, names) in [
        ("list /", ".canary client dev etc home proc tmp"),
        ("list /home", "sandbox work"),
        ("list /home/sandbox", ""),
        ("list /home/work", ""),
        ("list /tmp", ""),
        ("list /client", "agent-cli"),
        (
            "list /etc",
            "group hostname hosts nsswitch.conf passwd resolv.conf",
        ),
        (
            "list /dev",
            "fd full null random shm stderr stdin stdout urandom zero",
        ),
    ] {
        assert_eq!(inside_one(attempt).detail, names, "{attempt}");
    }
    // The twin: the host has more entries.
    assert_ne!(outside("list /etc").detail, inside_one("list /etc").detail);
    refused_inside(&[("list /run", "ENOENT"), ("list /var/run", "ENOENT")]);
    let current = format!("list {current}");
    assert_eq!(outside(&current).outcome, "ok");
}

#[test]
fn the_name_service_files_tell_nothing_of_the_host() {
    needs_sandbox!();
    for (path, content) in [
        (
            "/etc/passwd",
            "sandbox:x:1000:1000::/home/sandbox:/bin/sh\n",
        ),
        ("/etc/group", "sandbox:x:1000:\n"),
        ("/etc/hosts", "127.0.0.1 localhost\n127.0.0.1 sandbox\n"),
        ("/etc/hostname", "sandbox\n"),
        (
            "/etc/nsswitch.conf",
            "passwd: files\ngroup: files\nhosts: files dns\n",
        ),
        (
            "/etc/resolv.conf",
            "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n",
        ),
    ] {
        assert_eq!(
            inside_one(&format!("read {path}")).detail,
            content,
            "{path}"
        );
    }
}

#[test]
fn only_home_and_tmp_can_be_written() {
    needs_sandbox!();
    refused_inside(&[
        ("create /proc/new", "ENOENT"),
        ("mkdir /new", "EROFS"),
        ("open-write /etc/passwd", "EROFS"),
        ("chmod /etc/passwd", "EROFS"),
        ("chmod /client/agent-cli", "EROFS"),
        ("hard-link /client/agent-cli /tmp/link", "EXDEV"),
        // The positive twins, also inside.
        ("create /home/sandbox/new", "ok"),
        ("create /tmp/new", "ok"),
        ("mkdir /tmp/directory", "ok"),
        ("create /dev/shm/other", "ok"),
        ("write /dev/null x", "ok"),
    ]);
}

/// The program is a file of the host with write permission for every user. While it runs, the kernel returns ETXTBSY,
/// which precedes the check for a read-only mount.
#[test]
fn the_program_cannot_overwrite_itself() {
    needs_sandbox!();
    let directory = tempfile::tempdir().unwrap();
    let open = |path: &std::path::Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    open(directory.path(), 0o755);
    let program = directory.path().join("client");
    fs::copy(fixture("hostile-client"), &program).unwrap();
    open(&program, 0o777);
    let before = fs::read(&program).unwrap();
    let attempts = [
        "open-write /proc/self/exe",
        "open-write /client/agent-cli",
        "truncate /client/agent-cli",
        "chmod /client/agent-cli",
    ];
    for run in [Run::case_b(), Run::case_b().as_ordinary_user()] {
        let run = with_client(run, &program, &attempts);
        let made = said(&run.json(), &attempts);
        let outcomes: Vec<_> = made.iter().map(|one| one.outcome.as_str()).collect();
        assert_eq!(outcomes, ["ETXTBSY", "ETXTBSY", "EROFS", "EROFS"]);
    }
    assert_eq!(fs::read(&program).unwrap(), before);
    // The twin: the program no longer runs, so the file can be written.
    let twin = format!("open-write {}", program.display());
    assert_eq!(outside(&twin).outcome, "ok");
}

/// Memory is on no mount, so neither `noexec` nor Landlock covers it. A program started from memory stays in the same
/// sandbox as its writer, so this is no way out. The sandbox's "nothing is executed" does not cover it.
#[test]
fn a_program_in_memory_is_executed_in_the_same_sandbox() {
    needs_sandbox!();
    refused_inside(&[("execute-memory", "ok")]);
}

#[test]
fn no_file_would_give_the_rights_of_its_owner() {
    needs_sandbox!();
    assert_eq!(inside_one("set-user-id /").detail, "");
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("program");
    fs::write(&program, "").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).unwrap();
    let twin = outside(&format!("set-user-id {}", directory.path().display()));
    assert_eq!(twin.detail, program.display().to_string());
}
