//! The network: only loopback, and on loopback only the sandbox's own addresses.

use std::net::TcpStream;

use super::attempt::{hostile, refused_inside, said};
use crate::needs_sandbox;
use crate::teardown::watch::{Started, until};

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
    ]);
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
