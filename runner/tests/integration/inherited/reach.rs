//! The client's reach without its own namespaces: the errno inside, and the same attempt outside, where it succeeds.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use tempfile::TempDir;

use super::case_b;
use crate::escapes::attempt::{inside_of, outside, refused_inside_of};
use crate::needs_sandbox;

/// Asserts that each attempt is refused inside with its errno and succeeds outside.
#[track_caller]
fn refused(cases: &[(&str, &str)]) {
    refused_inside_of(case_b, cases);
    for (attempt, _) in cases {
        assert_eq!(outside(attempt).outcome, "ok", "twin of {attempt}");
    }
}

/// Creates a directory in which every user may do everything, with a file in it.
fn open_directory() -> (TempDir, String, String) {
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "x").unwrap();
    for path in [directory.path(), &file] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
    }
    let text = |path: &Path| path.display().to_string();
    let (path, file) = (text(directory.path()), text(&file));
    (directory, path, file)
}

#[test]
fn files_of_the_container_are_closed_to_reading_and_writing() {
    needs_sandbox!();
    let (_directory, path, file) = open_directory();
    refused(&[
        (&format!("read {file}"), "EACCES"),
        (&format!("list {path}"), "EACCES"),
        (&format!("open-write {file}"), "EACCES"),
        ("list /", "EACCES"),
        ("list /etc", "EACCES"),
        ("list /tmp", "EACCES"),
    ]);
    refused_inside_of(
        case_b,
        &[
            (&format!("create {path}/new"), "EACCES"),
            (&format!("mkdir {path}/new"), "EACCES"),
            ("read /etc/hosts", "ok"),
            ("read /proc/self/status", "ok"),
        ],
    );
    refused_inside_of(case_b, &[(&format!("truncate {file}"), "EACCES")]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "x");
    assert_eq!(outside(&format!("truncate {file}")).outcome, "ok");
    assert_eq!(fs::read_dir(&path).unwrap().count(), 1);
}

#[test]
fn modes_are_changed_of_what_is_the_clients_own_and_of_nothing_else() {
    needs_sandbox!();
    let (_directory, path, file) = open_directory();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    refused_inside_of(
        case_b,
        &[
            (&format!("chmod {file}"), "EPERM"),
            (&format!("chmod {path}"), "EPERM"),
            ("chmod .", "ok"),
            ("set-times .", "ok"),
            (&format!("set-times {file}"), "EPERM"),
            ("change-owner .", "ok"),
            (&format!("change-owner {file}"), "EPERM"),
        ],
    );
    let mode = |path: &str| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&file), mode(&path)), (0o666, 0o755));
    for attempt in ["chmod", "set-times", "change-owner"] {
        assert_eq!(outside(&format!("{attempt} {file}")).outcome, "ok");
    }
}

/// The attributes of a file, and leases that block other processes from opening it.
#[test]
fn attributes_of_files_are_not_changed_and_nobody_is_kept_waiting() {
    needs_sandbox!();
    let (_directory, _, file) = open_directory();
    // Owners may change attributes, so the outcomes of an ordinary user's twin are ignored.
    refused_inside_of(
        case_b,
        &[
            (&format!("set-file-attributes {file}"), "EPERM"),
            ("set-flags /etc/hosts", "ENOTTY"),
            ("lease /etc/hosts", "EACCES"),
        ],
    );
    for attempt in ["set-file-attributes", "set-flags", "lease"] {
        let made = outside(&format!("{attempt} {file}")).outcome;
        // Older kernels have no file_setattr(2).
        let lacks = attempt == "set-file-attributes" && made == "ENOSYS";
        assert!(made == "ok" || lacks, "twin of {attempt}: {made}");
    }
}

#[test]
fn a_file_of_the_host_is_not_changed_by_a_second_name_in_the_home() {
    needs_sandbox!();
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "x").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let script = format!(
        "ln {0} $HOME/x && ! chmod 600 $HOME/x && touch $HOME/y && chmod 600 $HOME/y",
        file.display()
    );
    let output = crate::kit::Run::case("audit")
        .on_a_host_without("network")
        .argument("--isolation")
        .argument("inherited")
        .argument("--write")
        .argument(directory.path())
        .argument("--")
        .argument("sh")
        .argument("-c")
        .argument(script)
        .output();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let mode = fs::metadata(&file).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o666, "{said}");
}

#[test]
fn no_process_of_the_container_is_reached() {
    needs_sandbox!();
    let own = std::process::id();
    refused(&[
        (&format!("signal {own} 0"), "EPERM"),
        (&format!("signal-by-descriptor {own} 0"), "EPERM"),
        (&format!("read /proc/{own}/environ"), "EACCES"),
        (&format!("read /proc/{own}/fd/0"), "EACCES"),
        (&format!("open-write /proc/{own}/mem"), "EACCES"),
    ]);
    refused_inside_of(
        case_b,
        &[
            ("signal init 9", "EPERM"),
            ("trace init", "EPERM"),
            ("read-memory init", "EPERM"),
            ("limits-of init", "EPERM"),
            ("priority-of init", "EPERM"),
            ("scheduler-of init", "EPERM"),
            ("io-priority-of init", "EPERM"),
            ("signal child 9", "ok"),
        ],
    );
}

#[test]
fn no_socket_but_one_to_the_stub_is_of_use() {
    needs_sandbox!();
    refused_inside_of(
        case_b,
        &[
            ("tcp 127.0.0.1:9", "EACCES"),
            ("tcp [::1]:9", "EACCES"),
            ("tcp 0.0.0.0:9", "EACCES"),
            ("tcp 192.0.2.1:9", "ENETUNREACH"),
            ("own-listener 127.0.0.1:0", "EACCES"),
            ("bind 127.0.0.1:0", "EACCES"),
            ("bind 127.0.0.1:8080", "EACCES"),
            ("stub 127.0.0.1", "ok"),
            ("stub 127.0.0.2", "EACCES"),
        ],
    );
}

/// Each of two connected datagram sockets can send to any other socket by path.
#[test]
fn a_socket_of_the_container_is_not_reached_by_a_pair() {
    needs_sandbox!();
    let (_directory, path, _) = open_directory();
    let name = format!("{path}/socket");
    let daemon = std::os::unix::net::UnixDatagram::bind(&name).unwrap();
    daemon.set_nonblocking(true).unwrap();
    let heard = || daemon.recv(&mut [0; 16]).is_ok();
    fs::set_permissions(&name, fs::Permissions::from_mode(0o777)).unwrap();
    refused(&[
        (&format!("unix-sendto-of-pair {name} dgram"), "EACCES"),
        (&format!("unix-sendto-of-pair {name} raw"), "EACCES"),
    ]);
    assert!(heard() && heard() && !heard(), "the twins and nobody else");
    // Stream and seqpacket sockets ignore the message's address and send to their peer.
    for kind in ["stream", "seqpacket"] {
        outside(&format!("unix-sendto-of-pair {name} {kind}"));
        assert!(!heard(), "{kind}");
    }
}

#[test]
fn nothing_of_the_container_beside_files_is_shared() {
    needs_sandbox!();
    refused(&[
        ("shared-memory", "EPERM"),
        ("semaphore", "EPERM"),
        ("message-queue", "EPERM"),
        ("named-queue", "EPERM"),
    ]);
}

#[test]
fn the_client_is_who_started_the_runner_and_has_no_capability() {
    needs_sandbox!();
    let status = inside_of(case_b, &["read /proc/self/status"])
        .remove(0)
        .detail;
    for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
        assert!(
            status.contains(&format!("{set}:\t0000000000000000")),
            "{status}"
        );
    }
}
