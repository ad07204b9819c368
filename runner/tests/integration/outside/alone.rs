//! Unreadable addresses, a socket file of the host, and a run that does not start.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::process::Command;

use serde_json::json;

use super::world::{going, sandboxed};
use super::{allowed, assert_judged, entries, needs_outside, one, said, said_inside};
use crate::kit::{Run, fixture, runner};
use crate::needs_sandbox;

#[test]
fn an_address_that_cannot_be_read_is_refused_and_recorded_as_that() {
    needs_outside!();
    let unreadable = json!([
        "connect",
        null,
        null,
        null,
        "unreadable",
        null,
        "denied",
        "supervisor",
        "EACCES",
        1
    ]);
    for class in ["address-over-page-end", "address-nowhere"] {
        for run in [Run::case_b(), Run::case_b().as_ordinary_user()] {
            let (done, arrived) = sandboxed(run, class);
            assert!(arrived.is_empty(), "{arrived:?}");
            assert_eq!(said_inside(&done, class), one("EACCES"));
            assert_eq!(entries(&done, "attempt"), std::slice::from_ref(&unreadable));
            assert_judged(&done, true);
        }
    }
}

/// The kernel would reject the length; the ledger lists the destination all the same.
#[test]
fn an_address_that_is_cut_short_is_refused_by_what_there_is_of_it() {
    needs_outside!();
    let (done, arrived) = sandboxed(Run::case_b(), "address-short");
    assert!(arrived.is_empty(), "{arrived:?}");
    assert_eq!(said_inside(&done, "address-short"), one("ENETUNREACH"));
    let entry = super::denied("connect", "inet", "192.0.2.2", 7000);
    assert_eq!(entries(&done, "attempt"), [entry]);
    assert_judged(&done, true);
}

#[test]
fn a_socket_file_of_the_host_is_not_there() {
    needs_sandbox!();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    listener.set_nonblocking(true).unwrap();

    let mut client = Command::new(fixture("outgoing-client"));
    client.args(["--go", "unix-path", "--to"]).arg(&path);
    let output = client.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said(&stderr, "unix-path"), one("ok"));
    assert!(listener.accept().is_ok());

    let run = going(Run::case_b(), "unix-path").client_argument("--to");
    let done = run.client_argument(&path).json();
    assert_eq!(said_inside(&done, "unix-path"), one("ENOENT"));
    let entry = allowed("connect", "unix", path.to_str().unwrap(), None);
    assert_eq!(entries(&done, "attempt"), [entry]);
    assert_judged(&done, true);
    assert!(listener.accept().is_err(), "nothing came of it");
}

/// A read-only directory of the host may hold the socket of a daemon; neither the mount nor Landlock prevents a
/// connection to it. The twin: the client connects without the sandbox.
#[test]
fn a_socket_in_a_directory_that_is_shown_is_not_reached() {
    needs_sandbox!();
    // Paths below /tmp may not be mounted.
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let path = directory.path().join("s");
    let listener = UnixListener::bind(&path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
    listener.set_nonblocking(true).unwrap();
    let mut client = Command::new(fixture("outgoing-client"));
    client.args(["--go", "unix-path", "--to"]).arg(&path);
    let output = client.output().unwrap();
    assert_eq!(
        said(&String::from_utf8_lossy(&output.stderr), "unix-path"),
        one("ok")
    );
    assert!(listener.accept().is_ok());

    let reference = Command::new(runner())
        .args(["policy", "show", "reference"])
        .output()
        .unwrap();
    let mut profile = String::from_utf8(reference.stdout).unwrap();
    let shown = directory.path().display();
    profile.push_str(&format!(
        "\n[[paths]]\npath = \"{shown}\"\naccess = \"read\"\nreason = \"a test\"\n"
    ));
    let file = directory.path().join("profile.toml");
    fs::write(&file, profile).unwrap();
    let run = going(
        Run::case_b().argument("--profile").argument(&file),
        "unix-path",
    );
    let done = run.client_argument("--to").client_argument(&path).json();
    assert_eq!(said_inside(&done, "unix-path"), one("EACCES"));
    assert!(listener.accept().is_err(), "nothing came of it");
    // The ledger lists the supervisor's refusal; the purpose of the socket is unknown.
    let setup = done.report["evidence"]["attempts"].to_string();
    assert!(setup.contains("EACCES"), "{setup}");
}
