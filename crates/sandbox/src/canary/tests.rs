use model::evidence::{AttemptKind, Outcome};
use probes::canary::{ExpectedRecord, observation};

use super::*;

fn record(
    syscall: &'static str,
    family: Option<&str>,
    address: Option<&str>,
    port: Option<u16>,
    outcome: Outcome,
) -> Attempt {
    Attempt {
        seq: 1,
        at_us: 0,
        kind: AttemptKind::Attempt,
        pid: 3,
        program: String::new(),
        syscall,
        family: family.map(str::to_owned),
        socket_type: None,
        protocol: None,
        address: address.map(str::to_owned),
        port,
        outcome,
        count: 1,
        names: Vec::new(),
    }
}

struct Tried {
    observed: Vec<Observation>,
    recorded: Vec<Attempt>,
}

const STUB_PORT: u16 = 8000;
const KINDS: [Kind; 3] = [Kind::Namespace, Kind::NamespaceWithoutProc, Kind::Inherited];

fn as_expected(kind: Kind) -> Tried {
    let mut observed = vec![observation(STUB, Mode::Continued, Ok(()))];
    let mut recorded = Vec::new();
    let ways = ROUTES.iter().flat_map(|way| {
        Mode::BOTH.map(|mode| (way.name, mode, way.expected(kind, mode, STUB_PORT)))
    });
    let probes = probes(kind).map(|probe| (probe.name, probe.mode(), probe.expected()));
    for (name, mode, expected) in ways.chain(probes) {
        observed.push(observation(name, mode, expected.errno.map_or(Ok(()), Err)));
        if let Some(ExpectedRecord {
            syscall,
            family,
            destination,
            outcome,
        }) = expected.record
        {
            let (address, port) = destination.unzip();
            recorded.push(record(syscall, family, address, port, outcome));
        }
    }
    Tried { observed, recorded }
}

fn judge(kind: Kind, tried: &Tried, refused_outside: &[&'static str], scopes: bool) -> Vec<Canary> {
    let Tried { observed, recorded } = tried;
    Context {
        kind,
        stub_port: STUB_PORT,
        observed,
        recorded,
        refused_outside,
        scopes,
    }
    .judge()
}

fn not_held(canaries: &[Canary]) -> Vec<&str> {
    let broken = canaries
        .iter()
        .filter(|canary| canary.status == CanaryStatus::NotHeld);
    broken.map(|canary| canary.name.as_str()).collect()
}

fn status(canaries: &[Canary], name: &str) -> CanaryStatus {
    canaries
        .iter()
        .find(|canary| canary.name == name)
        .unwrap()
        .status
}

#[test]
fn every_canary_is_held_when_errno_and_record_are_the_expected_ones() {
    for kind in KINDS {
        let canaries = judge(kind, &as_expected(kind), &[], true);
        assert!(
            canaries
                .iter()
                .all(|canary| canary.status == CanaryStatus::Held),
            "{canaries:?}"
        );
        assert_eq!(canaries.len(), 1 + 2 * ROUTES.len() + probes(kind).count());
    }
}

#[test]
fn another_errno_is_not_good_enough() {
    for kind in KINDS {
        for index in 0..as_expected(kind).observed.len() {
            let mut tried = as_expected(kind);
            tried.observed[index].errno = Errno::EXDEV as i32;
            assert_eq!(
                not_held(&judge(kind, &tried, &[], true)),
                [tried.observed[index].name.as_str()]
            );
        }
    }
}

#[test]
fn a_missing_canary_is_not_held() {
    for kind in KINDS {
        for index in 0..as_expected(kind).observed.len() {
            let mut tried = as_expected(kind);
            let missing = tried.observed.remove(index);
            assert_eq!(
                not_held(&judge(kind, &tried, &[], true)),
                [missing.name.as_str()]
            );
        }
    }
}

/// Several datagram canaries ask for the same socket, of which the ledger has one line.
#[test]
fn what_the_supervisor_did_not_record_is_not_held() {
    for kind in KINDS {
        for gone in &as_expected(kind).recorded {
            let mut tried = as_expected(kind);
            tried.recorded.retain(|attempt| attempt != gone);
            let lost = not_held(&judge(kind, &tried, &[], true)).len();
            let same = as_expected(kind).recorded;
            assert_eq!(lost, same.iter().filter(|other| *other == gone).count());
        }
    }
}

#[test]
fn in_a_shared_network_a_datagram_canary_is_answered_where_its_socket_is_made() {
    let tried = as_expected(Kind::Inherited);
    let sockets = tried.recorded.iter().filter(|one| one.syscall == "socket");
    let denied = Outcome::Denied(Errno::EACCES);
    assert_eq!(sockets.filter(|one| one.outcome == denied).count(), 5);
}

/// Docker switches IPv6 off on the loopback of a container without a network.
#[test]
fn in_a_shared_network_the_kernel_may_refuse_ipv6_for_want_of_an_address() {
    for kind in KINDS {
        for mode in Mode::BOTH {
            let mut tried = as_expected(kind);
            for one in &mut tried.observed {
                if one.mode == mode && ["tcp4", "tcp6", "udp6"].contains(&one.name.as_str()) {
                    one.errno = Errno::EADDRNOTAVAIL as i32;
                }
            }
            let expected: &[_] = match (kind, mode) {
                (Kind::Inherited, Mode::Continued) => &["tcp4"],
                _ => &["tcp4", "tcp6", "udp6"],
            };
            assert_eq!(not_held(&judge(kind, &tried, &[], true)), expected);
        }
    }
}

#[test]
fn what_is_refused_outside_as_well_supports_no_claim_but_may_not_succeed_inside() {
    let kind = Kind::Namespace;
    let mut tried = as_expected(kind);
    let judged = |tried: &Tried| status(&judge(kind, tried, &["vsock"], true), "vsock");
    assert_eq!(judged(&tried), CanaryStatus::Held, "it was recorded");
    tried
        .recorded
        .retain(|attempt| attempt.family.as_deref() != Some("vsock"));
    assert_eq!(judged(&tried), CanaryStatus::NotApplicable);
    tried
        .observed
        .iter_mut()
        .find(|one| one.name == "vsock")
        .unwrap()
        .errno = 0;
    assert_eq!(judged(&tried), CanaryStatus::NotHeld);
}

/// The classes that are named as unseen where these canaries are refused outside as well, and have no entry.
fn unseen(kind: Kind, name: &'static str, forget: fn(&Attempt) -> bool) -> Vec<String> {
    let mut tried = as_expected(kind);
    tried.recorded.retain(|attempt| !forget(attempt));
    let canaries = judge(kind, &tried, &[name], true);
    let unseen = canaries.into_iter().filter(|canary| canary.unseen);
    unseen.map(|canary| canary.name).collect()
}

#[test]
fn a_class_without_an_entry_is_unseen_where_the_host_refuses_it() {
    for kind in KINDS {
        let ring = |attempt: &Attempt| attempt.syscall == "io_uring_setup";
        assert_eq!(unseen(kind, "io-uring", ring), ["io-uring"]);
        assert!(unseen(kind, "io-uring", |_| false).is_empty());
        let other = judge(kind, &as_expected(kind), &[], true);
        assert!(other.iter().all(|canary| !canary.unseen));
    }
}

#[test]
fn a_kernel_without_ipv6_hides_nothing() {
    let kind = Kind::Namespace;
    let mut tried = as_expected(kind);
    tried
        .recorded
        .retain(|attempt| attempt.family.as_deref() != Some("inet6"));
    let hidden = judge(kind, &tried, &["tcp6", "udp6"], true);
    assert_eq!(hidden.iter().filter(|canary| canary.unseen).count(), 2);
    tried.recorded.push(record(
        "socket",
        Some("inet6"),
        None,
        None,
        Outcome::Allowed,
    ));
    let asked = judge(kind, &tried, &["tcp6", "udp6"], true);
    assert!(asked.iter().all(|canary| !canary.unseen));
}

#[test]
fn without_scopes_the_inner_abstract_socket_supports_no_claim() {
    let kind = Kind::Namespace;
    let mut tried = as_expected(kind);
    tried
        .observed
        .iter_mut()
        .find(|one| one.name == ABSTRACT_INSIDE)
        .unwrap()
        .errno = 0;
    assert_eq!(
        status(&judge(kind, &tried, &[], false), ABSTRACT_INSIDE),
        CanaryStatus::NotApplicable
    );
    assert_eq!(
        status(&judge(kind, &tried, &[], true), ABSTRACT_INSIDE),
        CanaryStatus::NotHeld
    );
}
