//! Sockets of the host in a directory that the client sees.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixDatagram;

use super::attempt::{outside, said, with_attempts};
use crate::kit::Run;
use crate::needs_sandbox;

/// Each of two connected datagram sockets can send to any other socket by path, and socketpair(2) creates them without
/// socket(2).
#[test]
fn a_daemon_in_a_directory_that_is_shown_is_not_reached_by_a_pair() {
    needs_sandbox!();
    // Paths below /tmp may not be mounted.
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    let name = directory.path().join("socket");
    let daemon = UnixDatagram::bind(&name).unwrap();
    daemon.set_nonblocking(true).unwrap();
    for path in [directory.path(), &name] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
    }
    let shown = directory.path().display();
    let run = Run::case_b().knowing(&format!(
        "[[paths]]\npath = \"{shown}\"\naccess = \"read\"\nreason = \"a test\"\n"
    ));
    let attempt = format!("unix-sendto-of-pair {}", name.display());
    let done = with_attempts(run, &[&attempt]).json();
    assert_eq!(said(&done, &[&attempt])[0].outcome, "EACCES");
    assert!(daemon.recv(&mut [0; 16]).is_err());
    assert_eq!(outside(&attempt).outcome, "ok");
    assert!(daemon.recv(&mut [0; 16]).is_ok());
}
