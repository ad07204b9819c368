//! The network: only loopback, and on loopback only the sandbox's own addresses.

use std::net::{TcpListener, TcpStream, UdpSocket};

use super::attempt::{hostile, inside, outside, refused, refused_inside, said};
use crate::needs_sandbox;
use crate::teardown::watch::{Started, until};

/// The documentation addresses on loopback, and a listener there.
const WORLD: &str = "--world --listen tcp:192.0.2.1:443 --listen tcp:[2001:db8::1]:443";

#[test]
fn no_connection_leaves_the_network_namespace() {
    needs_sandbox!();
    refused(&[
        ("tcp 192.0.2.1:443", "ENETUNREACH", WORLD),
        ("tcp [2001:db8::1]:443", "ENETUNREACH", WORLD),
        ("tcp [::ffff:192.0.2.1]:443", "ENETUNREACH", WORLD),
    ]);
    // Without a link the kernel returns EINVAL; the supervisor answers first.
    refused_inside(&[
        ("tcp [fe80::1]:443", "ENETUNREACH"),
        ("tcp [fe80::1%1]:443", "ENETUNREACH"),
        ("tcp 169.254.169.254:80", "ENETUNREACH"),
    ]);
}

#[test]
fn no_datagram_leaves_the_network_namespace() {
    needs_sandbox!();
    refused(&[
        ("udp 192.0.2.1:443", "ENETUNREACH", WORLD),
        ("udp [2001:db8::1]:443", "ENETUNREACH", WORLD),
        ("udp [::ffff:192.0.2.1]:443", "ENETUNREACH", WORLD),
        ("udp 255.255.255.255:443", "ENETUNREACH", WORLD),
        ("udp 224.0.0.251:5353", "ENETUNREACH", WORLD),
        ("udp [ff02::fb]:5353", "ENETUNREACH", WORLD),
        ("udp [ff02::fb%1]:5353", "ENETUNREACH", WORLD),
        ("udp 169.254.169.254:80", "ENETUNREACH", WORLD),
    ]);
}

#[test]
fn no_urgent_byte_is_sent() {
    needs_sandbox!();
    refused(&[
        ("urgent-byte tcp", "EOPNOTSUPP", ""),
        ("urgent-byte unix", "EOPNOTSUPP", ""),
    ]);
}

/// A datagram that names the link `lo` may have any destination: the kernel treats every address as local to that link,
/// and drops the datagram. The supervisor answers first.
#[test]
fn a_datagram_forced_onto_loopback_is_not_sent() {
    needs_sandbox!();
    let to = "192.0.2.1:443";
    refused(&[
        (
            &format!("udp-through-lo {to}"),
            "ENETUNREACH",
            "--own-namespaces",
        ),
        (
            &format!("udp-bound-to-lo {to}"),
            "ENOPROTOOPT",
            "--own-namespaces",
        ),
    ]);
}

#[test]
fn listeners_on_the_loopback_of_the_host_are_not_reached() {
    needs_sandbox!();
    // Below the ephemeral ports: the stub inside could have the same number.
    let mut ports = 20_000..32_768;
    let tcp = ports.find_map(|port| TcpListener::bind(("127.0.0.1", port)).ok());
    let tcp = tcp.unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    udp.set_nonblocking(true).unwrap();
    let (port, datagram) = (
        tcp.local_addr().unwrap().port(),
        udp.local_addr().unwrap().port(),
    );
    let attempts = [
        format!("tcp 127.0.0.1:{port}"),
        format!("tcp 0.0.0.0:{port}"),
        format!("tcp [::ffff:127.0.0.1]:{port}"),
        format!("tcp-from 127.0.0.2:0 127.0.0.1:{port}"),
    ];
    let cases: Vec<_> = attempts
        .iter()
        .map(|attempt| (attempt.as_str(), "ECONNREFUSED", ""))
        .collect();
    refused(&cases);
    let send = format!("udp 127.0.0.1:{datagram}");
    assert_eq!(
        inside(&[&send])[0].outcome,
        "ok",
        "a datagram has no answer"
    );
    assert_eq!(
        udp.recv(&mut [0; 16]).map_err(|error| error.kind()),
        Err(std::io::ErrorKind::WouldBlock)
    );
    assert_eq!(outside("", &send).outcome, "ok");
    assert_eq!(udp.recv(&mut [0; 16]).unwrap(), "attempt".len());
}

#[test]
fn the_client_cannot_be_a_resolver() {
    needs_sandbox!();
    let answered = "--own-namespaces --listen udp:127.0.0.1:53 --listen tcp:127.0.0.1:53";
    refused(&[
        ("tcp 127.0.0.1:53", "ECONNREFUSED", answered),
        // The client cannot serve names to its own children either.
        ("bind 127.0.0.1:53", "EACCES", "--own-namespaces"),
    ]);
}

#[test]
fn the_stub_listens_on_one_address() {
    needs_sandbox!();
    refused_inside(&[
        ("stub 127.0.0.1", "ok"),
        ("stub 0.0.0.0", "ok"),
        ("stub [::ffff:127.0.0.1]", "ok"),
        ("stub 127.0.0.2", "ECONNREFUSED"),
        ("stub [::1]", "ECONNREFUSED"),
    ]);
}

#[test]
fn a_listener_of_the_client_serves_the_client() {
    needs_sandbox!();
    refused_inside(&[
        ("own-listener 127.0.0.1:0", "ok"),
        ("own-listener 127.0.0.2:0", "ok"),
        ("own-listener [::1]:0", "ok"),
        ("bind 192.0.2.1:0", "EADDRNOTAVAIL"),
    ]);
    assert_eq!(outside(WORLD, "bind 192.0.2.1:0").outcome, "ok");
}

#[test]
fn the_port_of_the_stub_is_not_reached_from_the_host() {
    needs_sandbox!();
    let mut started = Started::new(hostile(&["sleep"]));
    let client = started.client();
    let table = std::fs::read_to_string(format!("/proc/{client}/net/tcp")).unwrap();
    // proc_pid_net(5): local address and state in columns 1 and 3; 0A is LISTEN.
    let listens = table.lines().skip(1).find_map(|line| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let (address, port) = columns.get(1)?.split_once(':')?;
        (columns.get(3) == Some(&"0A") && address == "0100007F")
            .then(|| u16::from_str_radix(port, 16).unwrap())
    });
    let port = listens.expect("the stub listens");
    let refused = until("a port that the host does not serve by chance", || {
        TcpStream::connect(("127.0.0.1", port)).err()
    });
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    // The twin: the same port answers inside.
    let here = said(&hostile(&["stub 127.0.0.1"]).json(), &["stub 127.0.0.1"]);
    assert_eq!(here[0].outcome, "ok");
    started.interrupt();
}

#[test]
fn links_and_addresses_cannot_be_changed() {
    needs_sandbox!();
    refused(&[
        ("set-address", "EPERM", "--own-namespaces"),
        ("loopback-down", "EPERM", "--own-namespaces"),
    ]);
    refused_inside(&[("open-write /dev/net/tun", "ENOENT")]);
}
