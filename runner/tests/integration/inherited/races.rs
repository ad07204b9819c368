//! Clients that change a call's address or descriptor while the supervisor reads it. A neighbour listens at the stub's
//! own port.

use super::CONTAINER_WITH_NEIGHBOUR;
use crate::kit::{Done, Run, fixture};
use crate::needs_sandbox;

/// Total seconds of all races, unless the environment variable [`SECONDS`] sets more.
const SECONDS: &str = "RUNNER_RACE_SECONDS";

fn racing() -> Run {
    let seconds = std::env::var(SECONDS).unwrap_or_else(|_| "3".to_owned());
    going("races")
        .argument("--timeout")
        .argument("600s")
        .client_argument("--seconds")
        .client_argument(&seconds)
}

fn going(class: &str) -> Run {
    Run::changed_case("case-b", "connections = 1000 ", "connections = 1000000 ")
        .on_a_host_without(CONTAINER_WITH_NEIGHBOUR)
        .client(fixture("outgoing-client"))
        .client_argument("--go")
        .client_argument(class)
}

fn tail(done: &Done) -> &str {
    done.report["evidence"]["stderr"]["tail"].as_str().unwrap()
}

#[track_caller]
fn assert_not_reached(done: &Done) {
    let said = &done.stderr;
    assert_eq!(done.report["tier"], "inherited", "{said}");
    assert!(said.contains("neighbour: listening"), "{said}");
    let reached = said.matches("neighbour: reached").count();
    assert_eq!(reached, 0, "{}", tail(done));
    // The fixture's errno for a peer that is the neighbour.
    assert!(!tail(done).contains("EUCLEAN"), "{}", tail(done));
}

/// The supervisor makes each connection to the stub, so the numbers agree.
#[test]
fn no_race_of_memory_or_descriptors_reaches_a_neighbour() {
    needs_sandbox!();
    let done = racing().json();
    assert_not_reached(&done);
    assert!(tail(&done).contains("ok "), "{}", tail(&done));
    assert_eq!(done.report["evidence"]["gaps"], serde_json::json!([]));
    done.assert_verdict(1, "failed");
}

/// Calls to connect(2) in the ledger: kind, family and errno.
fn connects(done: &Done) -> Vec<String> {
    let attempts = done.report["evidence"]["attempts"].as_array().unwrap();
    let connects = attempts.iter().filter(|one| one["syscall"] == "connect");
    let line = |one: &serde_json::Value| {
        let words = ["kind", "family", "errno"].map(|key| one[key].as_str());
        words.map(|word| word.unwrap_or("none")).join(" ")
    };
    connects.map(line).collect()
}

#[test]
fn a_socket_is_connected_once() {
    needs_sandbox!();
    let done = going("connect-again").json();
    assert!(
        tail(&done).contains("EACCES 1, EISCONN 2, ok 1"),
        "{}",
        tail(&done)
    );
    let expected = [
        "setup inet none",
        "setup inet EISCONN",
        "setup unspec EACCES",
    ];
    assert_eq!(connects(&done), expected);
}

#[test]
fn the_oldest_of_many_unconnected_sockets_is_refused() {
    needs_sandbox!();
    let done = going("hoard").json();
    assert!(tail(&done).contains("EACCES 1, ok 1"), "{}", tail(&done));
}

/// Connections as ordinary programs make them: blocking, and non-blocking with epoll.
#[test]
fn ordinary_programs_reach_the_stub() {
    needs_sandbox!();
    let python = "import sys, urllib.request as u\nprint(u.urlopen(u.Request(sys.argv[1], method='HEAD')).status)";
    let registered = "import select, socket, sys\nfrom urllib.parse import urlsplit\nu = urlsplit(sys.argv[1])\ns = socket.socket()\ns.setblocking(False)\ne = select.epoll()\ne.register(s, select.EPOLLOUT | select.EPOLLET)\ne.poll(0)\ntry: s.connect((u.hostname, u.port))\nexcept BlockingIOError: pass\nassert e.poll(5)\nassert s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0\ns.sendall(b'HEAD / HTTP/1.1\\r\\nhost: %s\\r\\nconnection: close\\r\\n\\r\\n' % u.netloc.encode())\ns.setblocking(True)\nprint(s.recv(99)[9:12].decode())";
    let node =
        "fetch(process.argv[1], {method: 'HEAD'}).then(answer => console.log(answer.status))";
    let programs: [&[&str]; 4] = [
        &[
            "/usr/bin/curl",
            "-sS",
            "-o",
            "/dev/null",
            "-w",
            "%{http_code}\n",
            "-I",
        ],
        &["/usr/bin/python3", "-c", python],
        &["/usr/bin/python3", "-c", registered],
        &["/usr/bin/node", "-e", node],
    ];
    for words in programs {
        if !std::fs::exists(words[0]).unwrap() {
            continue;
        }
        let report = tempfile::NamedTempFile::new().unwrap();
        let mut run = Run::case("audit")
            .on_a_host_without(super::CONTAINER)
            .argument(format!("--report=json={}", report.path().display()))
            .argument("--");
        for word in words {
            run = run.argument(word);
        }
        let output = run.argument("{base_url}/").output();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.stdout, b"200\n", "{words:?}: {said}");
        let report: serde_json::Value =
            serde_json::from_slice(&std::fs::read(report.path()).unwrap()).unwrap();
        assert_eq!(report["tier"], "inherited");
        assert_eq!(report["findings"]["count"], 0, "{words:?}: {said}");
    }
}
