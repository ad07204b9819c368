//! A reachable outside world: two network namespaces joined by a cable, with the runner in the near one and a count of
//! all arrivals in the far one.
//!
//! The fixture `outgoing-client` makes each class of attempt twice. Without the sandbox the attempt arrives and is
//! counted, which proves that the world is reachable and that the client's classes work. Inside the sandbox no packet
//! arrives, the client gets exactly the expected errno, and the ledger has exactly the expected entries.

mod alone;
mod classes;
mod ledger;
mod races;
pub(crate) mod world;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::kit::Done;

/// Checks that fail for every client that does not speak the protocol.
const SILENT: [&str; 5] = [
    "requests/first-and-only",
    "requests/post-count",
    "records/sequence",
    "files/state-file",
    "files/backup",
];
const NO_ATTEMPTS: &str = "outbound/no-attempts";

/// Returns from a test if this machine has no sandbox or no outside world, and counts it.
macro_rules! needs_outside {
    () => {
        $crate::needs_sandbox!();
        if let Some(reason) = $crate::outside::world::is_missing() {
            $crate::kit::skip(reason);
            return;
        }
    };
}
use needs_outside;

/// An entry of the ledger, without process and time: call, family, type, protocol, address, port, outcome, layer,
/// errno, count.
type Entry = Value;

fn denied_socket(family: &str, kind: &str, protocol: u32, errno: &str) -> Entry {
    json!([
        "socket",
        family,
        kind,
        protocol,
        null,
        null,
        "denied",
        "supervisor",
        errno,
        1
    ])
}

fn denied(syscall: &str, family: &str, address: &str, port: u16) -> Entry {
    json!([
        syscall,
        family,
        null,
        null,
        address,
        port,
        "denied",
        "supervisor",
        "ENETUNREACH",
        1
    ])
}

fn allowed(syscall: &str, family: &str, address: &str, port: Option<u16>) -> Entry {
    json!([
        syscall, family, null, null, address, port, "allowed", null, null, 1
    ])
}

/// Returns the entry of an allowed call without address or socket.
fn plain(syscall: &str) -> Entry {
    json!([
        syscall, null, null, null, null, null, "allowed", null, null, 1
    ])
}

/// Sets the count of an entry.
fn times(count: u64, mut entry: Entry) -> Entry {
    entry[9] = count.into();
    entry
}

/// Returns the entries of this kind, in the ledger's order.
fn entries(done: &Done, kind: &str) -> Vec<Entry> {
    const KEYS: [&str; 10] = [
        "syscall", "family", "type", "protocol", "address", "port", "outcome", "layer", "errno",
        "count",
    ];
    listed(done, "attempts")
        .iter()
        .filter(|attempt| attempt["kind"] == kind)
        .map(|attempt| KEYS.iter().map(|key| attempt[key].clone()).collect())
        .collect()
}

/// Returns how often the call to this address and port was made, over all kinds and outcomes.
fn made(done: &Done, syscall: &str, address: &str) -> u64 {
    listed(done, "attempts")
        .iter()
        .filter(|attempt| attempt["syscall"] == syscall && attempt["address"] == address)
        .map(|attempt| attempt["count"].as_u64().unwrap())
        .sum()
}

fn listed<'a>(done: &'a Done, what: &str) -> &'a [Value] {
    done.report["evidence"][what].as_array().unwrap()
}

/// Returns the client's results for its class, each with its count.
#[track_caller]
fn said(stderr: &str, class: &str) -> BTreeMap<String, u64> {
    let line = stderr
        .lines()
        .find_map(|line| line.strip_prefix(class)?.strip_prefix(": "));
    let line = line.unwrap_or_else(|| panic!("nothing is said of {class}: {stderr}"));
    line.split(", ")
        .map(|result| match result.split_once(' ') {
            Some((word, count)) => (word.to_owned(), count.parse().unwrap()),
            None => (result.to_owned(), 1),
        })
        .collect()
}

/// Returns the results of a client in the sandbox.
#[track_caller]
fn said_inside(done: &Done, class: &str) -> BTreeMap<String, u64> {
    let tail = done.report["evidence"]["stderr"]["tail"].as_str().unwrap();
    said(tail, class)
}

fn one(word: &str) -> BTreeMap<String, u64> {
    several(word, 1)
}

fn several(word: &str, count: u64) -> BTreeMap<String, u64> {
    BTreeMap::from([(word.to_owned(), count)])
}

/// Asserts that the client ended by itself and was judged on complete evidence. `attempts`: true if the client made
/// any.
#[track_caller]
fn assert_judged(done: &Done, attempts: bool) {
    assert_eq!(done.report["client"]["exit"], json!({"code": 0}));
    assert_eq!(listed(done, "gaps"), [Value::Null; 0]);
    let mut failed = SILENT.to_vec();
    if listed(done, "connections").len() == 1 {
        failed.insert(2, "requests/connections");
    }
    failed.extend(attempts.then_some(NO_ATTEMPTS));
    done.assert_fails(&failed);
}
