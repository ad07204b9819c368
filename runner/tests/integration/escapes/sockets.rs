//! Sockets: families, types and protocols that bypass a network namespace or its rules, and named sockets of the host.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixDatagram, UnixListener};

use super::attempt::{inside, outside, refused, refused_inside, said, with_attempts};
use crate::kit::Run;
use crate::needs_sandbox;

const OWN: &str = "--own-namespaces";

#[test]
fn raw_and_packet_sockets_are_refused() {
    needs_sandbox!();
    refused(&[
        ("socket 2 3 1", "EPERM", OWN),   // inet, raw, ICMP
        ("socket 2 3 255", "EPERM", OWN), // inet, raw, raw
        ("socket 10 3 58", "EPERM", OWN), // inet6, raw, ICMPv6
        ("socket 17 3 0", "EAFNOSUPPORT", OWN),
        ("socket 17 2 0", "EAFNOSUPPORT", OWN),
    ]);
}

/// The families are in the order of linux/socket.h. Kernels are built without most of them, so these have no twin; the
/// simulator's test of the filter covers every number.
#[test]
fn families_beside_unix_inet_and_route_are_refused() {
    needs_sandbox!();
    let families = [
        "socket 3 5 0",  // AX.25
        "socket 5 2 0",  // AppleTalk
        "socket 15 3 2", // key
        "socket 21 5 0", // RDS
        "socket 29 3 1", // CAN
        "socket 30 5 0", // TIPC
        "socket 31 3 1", // Bluetooth
        "socket 33 2 0", // RxRPC
        "socket 38 5 0", // ALG
        "socket 40 1 0", // vsock
        "socket 41 2 0", // KCM
        "socket 42 2 0", // Qualcomm IPC router
        "socket 43 1 0", // SMC
        "socket 44 3 0", // XDP
        "socket 45 2 0", // management of components
    ];
    for (made, attempt) in inside(&families).iter().zip(families) {
        assert_eq!(made.outcome, "EAFNOSUPPORT", "{attempt}");
    }
    let open: Vec<_> = families
        .into_iter()
        .filter(|attempt| outside(OWN, attempt).outcome == "ok")
        .collect();
    eprintln!("families that this kernel opens outside: {open:?}");
}

#[test]
fn protocols_that_pass_for_tcp_or_udp_are_refused() {
    needs_sandbox!();
    refused(&[
        ("socket 2 1 262", "EPROTONOSUPPORT", OWN), // MPTCP
        ("socket 10 1 262", "EPROTONOSUPPORT", OWN),
        ("socket 2 2 136", "EPROTONOSUPPORT", OWN), // UDP-Lite
        ("socket 10 2 136", "EPROTONOSUPPORT", OWN),
    ]);
    // SCTP, DCCP and echo requests; a kernel without them gives the same errno.
    refused_inside(&[
        ("socket 2 1 132", "EPROTONOSUPPORT"),
        ("socket 2 5 132", "EPROTONOSUPPORT"),
        ("socket 2 6 33", "EPROTONOSUPPORT"),
        ("socket 2 2 1", "EPROTONOSUPPORT"),
        ("socket 10 2 58", "EPROTONOSUPPORT"),
    ]);
}

#[test]
fn of_netlink_only_route_is_there() {
    needs_sandbox!();
    refused(&[
        ("socket 16 3 2", "EPROTONOSUPPORT", OWN),  // user sockets
        ("socket 16 3 4", "EPROTONOSUPPORT", OWN),  // socket diagnosis
        ("socket 16 3 9", "EPROTONOSUPPORT", OWN),  // audit
        ("socket 16 3 12", "EPROTONOSUPPORT", OWN), // netfilter
        ("socket 16 3 15", "EPROTONOSUPPORT", OWN), // device events
        ("socket 16 3 16", "EPROTONOSUPPORT", OWN), // generic
    ]);
    refused_inside(&[("socket 16 3 0", "ok")]);
}

#[test]
fn an_abstract_socket_of_the_host_is_not_reached() {
    needs_sandbox!();
    use std::os::linux::net::SocketAddrExt as _;
    let name = format!("runner-test-{}", std::process::id());
    let address = std::os::unix::net::SocketAddr::from_abstract_name(&name).unwrap();
    let _listener = UnixListener::bind_addr(&address).unwrap();
    refused(&[(&format!("abstract-connect {name}"), "ECONNREFUSED", "")]);
}

/// The canary inside: an open abstract socket of init, in the same namespaces but in no Landlock domain.
#[test]
fn an_abstract_socket_of_another_domain_is_not_reached() {
    needs_sandbox!();
    let done = crate::kit::Run::case_b().json();
    let canaries = done.report["isolation"]["canaries"].as_array().unwrap();
    let canary = canaries
        .iter()
        .find(|canary| canary["name"] == "abstract-socket-inside")
        .unwrap();
    if canary["status"] == "not-applicable" {
        eprintln!("this kernel's Landlock has no scopes");
        return;
    }
    assert_eq!(canary["status"], "held");
    assert_eq!(canary["observed"], "EPERM");
}

#[test]
fn a_socket_in_a_directory_of_the_host_is_not_there() {
    needs_sandbox!();
    let directory = tempfile::tempdir().unwrap();
    let (stream, datagram) = (directory.path().join("s"), directory.path().join("d"));
    let _stream = UnixListener::bind(&stream).unwrap();
    let _datagram = UnixDatagram::bind(&datagram).unwrap();
    refused(&[
        (&format!("unix-connect {}", stream.display()), "ENOENT", ""),
        (&format!("unix-sendto {}", datagram.display()), "ENOENT", ""),
        (
            &format!("unix-sendmsg {}", datagram.display()),
            "ENOENT",
            "",
        ),
    ]);
}

#[test]
fn no_daemon_of_the_host_resolves_or_works_for_the_client() {
    needs_sandbox!();
    let paths = [
        "/run/nscd/socket",
        "/var/run/nscd/socket",
        "/run/systemd/resolve/io.systemd.Resolve",
        "/run/systemd/userdb/io.systemd.DynamicUser",
        "/run/dbus/system_bus_socket",
        "/var/run/docker.sock",
        "/run/user/1000/bus",
        "/tmp/.X11-unix/X0",
        "/dev/log",
    ];
    let attempts = paths.map(|path| format!("unix-connect {path}"));
    let attempts: Vec<_> = attempts
        .iter()
        .map(|one| (one.as_str(), "ENOENT"))
        .collect();
    refused_inside(&attempts);
}

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
    assert_eq!(outside("", &attempt).outcome, "ok");
    assert!(daemon.recv(&mut [0; 16]).is_ok());
}
