use std::net::SocketAddr;

use model::evidence::AttemptKind;
use probes::canary::observation;
use probes::probe::LedgerEntry;

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
        syscall: syscall.into(),
        expected: None,
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

struct Results {
    observed: Vec<Observation>,
    recorded: Vec<Attempt>,
}

const KINDS: [Kind; 3] = [Kind::Namespace, Kind::NamespaceWithoutProc, Kind::Inherited];

fn targets() -> CanaryTargets {
    CanaryTargets {
        home: "/home".into(),
        unruled_file: "/.canary".into(),
        inside_socket: "inside".to_owned(),
        outside_socket: "outside".to_owned(),
        outside_directory: "/usr".into(),
        outside_file: "/canary".into(),
        neighbour: Some(([127, 0, 0, 1], 9).into()),
    }
}

fn context<'a>(kind: Kind, results: &'a Results, targets: &'a CanaryTargets) -> Context<'a> {
    Context {
        kind,
        targets,
        stub_port: 8000,
        observed: &results.observed,
        recorded: &results.recorded,
        refused_outside: &[],
        scopes: true,
    }
}

fn as_expected(kind: Kind) -> Results {
    let empty = Results {
        observed: Vec::new(),
        recorded: Vec::new(),
    };
    let positive = [STUB, HOME].map(|name| observation(name, Mode::Continued, Ok(())));
    let mut observed = Vec::from(positive);
    let mut recorded = Vec::new();
    for member in context(kind, &empty, &targets()).members() {
        let refusal = member.expected.refusals.first().unwrap();
        let errno = refusal.reply.errno().unwrap();
        observed.push(observation(member.name, member.mode, Err(errno)));
        let outcome = match member.mode {
            Mode::Answered => Outcome::Denied(errno),
            Mode::Continued => Outcome::Allowed,
        };
        let number = |index: usize| member.targets.get(index)?.to_str()?.parse().ok();
        match member.expected.entry {
            LedgerEntry::None => {}
            LedgerEntry::Call(call) => recorded.push(record(call, None, None, None, outcome)),
            LedgerEntry::To(call) => {
                let target = member.targets[0].to_str().unwrap();
                let to = target.parse::<SocketAddr>().ok();
                let family = to.map(|to| if to.is_ipv4() { "inet" } else { "inet6" });
                let address = to.map_or(target.to_owned(), |to| to.ip().to_string());
                let port = to.map(|to| to.port());
                recorded.push(record(call, family, Some(&address), port, outcome));
            }
            LedgerEntry::Socket(family, kind) => recorded.push(Attempt {
                socket_type: Some(kind.to_owned()),
                protocol: number(2),
                ..record("socket", Some(family), None, None, outcome)
            }),
        }
    }
    Results { observed, recorded }
}

fn judge(
    kind: Kind,
    results: &Results,
    refused_outside: &[&'static str],
    scopes: bool,
) -> Vec<Canary> {
    let targets = targets();
    Context {
        refused_outside,
        scopes,
        ..context(kind, results, &targets)
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
fn probes_with_expected_errno_and_entry_are_held() {
    for kind in KINDS {
        let canaries = judge(kind, &as_expected(kind), &[], true);
        assert!(
            canaries
                .iter()
                .all(|canary| canary.status == CanaryStatus::Held),
            "{canaries:?}"
        );
        assert_eq!(canaries.len(), as_expected(kind).observed.len());
    }
}

#[test]
fn probe_with_another_errno_is_not_held() {
    for kind in KINDS {
        for index in 0..as_expected(kind).observed.len() {
            let mut results = as_expected(kind);
            results.observed[index].errno = Errno::EXDEV as i32;
            assert_eq!(
                not_held(&judge(kind, &results, &[], true)),
                [results.observed[index].name.as_str()]
            );
        }
    }
}

#[test]
fn missing_probe_is_not_held() {
    for kind in KINDS {
        for index in 0..as_expected(kind).observed.len() {
            let mut results = as_expected(kind);
            let missing = results.observed.remove(index);
            assert_eq!(
                not_held(&judge(kind, &results, &[], true)),
                [missing.name.as_str()]
            );
        }
    }
}

/// Several datagram probes make the same kind of socket, for which the ledger has one line.
#[test]
fn probe_without_ledger_entry_is_not_held() {
    for kind in KINDS {
        for gone in &as_expected(kind).recorded {
            let mut results = as_expected(kind);
            results.recorded.retain(|attempt| attempt != gone);
            let lost = not_held(&judge(kind, &results, &[], true)).len();
            let same = as_expected(kind).recorded;
            assert_eq!(lost, same.iter().filter(|other| *other == gone).count());
        }
    }
}

#[test]
fn inherited_datagram_probes_are_refused_at_socket() {
    let results = as_expected(Kind::Inherited);
    let sockets = results
        .recorded
        .iter()
        .filter(|one| one.syscall == "socket");
    let denied = Outcome::Denied(Errno::EACCES);
    assert_eq!(sockets.filter(|one| one.outcome == denied).count(), 5);
}

/// Docker disables IPv6 on the loopback of a container without a network.
#[test]
fn inherited_network_may_lack_ipv6_addresses() {
    for kind in KINDS {
        for mode in [Mode::Answered, Mode::Continued] {
            let mut results = as_expected(kind);
            for one in &mut results.observed {
                if one.mode == mode && ["tcp4", "tcp6", "udp6"].contains(&one.name.as_str()) {
                    one.errno = Errno::EADDRNOTAVAIL as i32;
                }
            }
            let expected: &[_] = match (kind, mode) {
                (Kind::Inherited, Mode::Continued) => &["tcp4"],
                _ => &["tcp4", "tcp6", "udp6"],
            };
            assert_eq!(not_held(&judge(kind, &results, &[], true)), expected);
        }
    }
}

#[test]
fn probe_refused_outside_must_still_fail_inside() {
    let kind = Kind::Namespace;
    let mut results = as_expected(kind);
    let judged = |results: &Results| status(&judge(kind, results, &["vsock"], true), "vsock");
    assert_eq!(judged(&results), CanaryStatus::Held, "it was recorded");
    results
        .recorded
        .retain(|attempt| attempt.family.as_deref() != Some("vsock"));
    assert_eq!(judged(&results), CanaryStatus::NotApplicable);
    results
        .observed
        .iter_mut()
        .find(|one| one.name == "vsock")
        .unwrap()
        .errno = 0;
    assert_eq!(judged(&results), CanaryStatus::NotHeld);
}

/// Names the unseen probes, if `name` is refused outside too and the entries of `forget` are missing.
fn unseen(kind: Kind, name: &'static str, forget: fn(&Attempt) -> bool) -> Vec<String> {
    let mut results = as_expected(kind);
    results.recorded.retain(|attempt| !forget(attempt));
    let canaries = judge(kind, &results, &[name], true);
    let unseen = canaries.into_iter().filter(|canary| canary.unseen);
    unseen.map(|canary| canary.name).collect()
}

#[test]
fn probe_refused_outside_without_entry_is_unseen() {
    for kind in KINDS {
        let ring = |attempt: &Attempt| attempt.syscall == "io_uring_setup";
        assert_eq!(unseen(kind, "io-uring", ring), ["io-uring"]);
        assert!(unseen(kind, "io-uring", |_| false).is_empty());
        let other = judge(kind, &as_expected(kind), &[], true);
        assert!(other.iter().all(|canary| !canary.unseen));
    }
}

#[test]
fn kernel_without_ipv6_leaves_no_probe_unseen() {
    let kind = Kind::Namespace;
    let mut results = as_expected(kind);
    results
        .recorded
        .retain(|attempt| attempt.family.as_deref() != Some("inet6"));
    let hidden = judge(kind, &results, &["tcp6", "udp6"], true);
    assert_eq!(hidden.iter().filter(|canary| canary.unseen).count(), 2);
    results.recorded.push(record(
        "socket",
        Some("inet6"),
        None,
        None,
        Outcome::Allowed,
    ));
    let asked = judge(kind, &results, &["tcp6", "udp6"], true);
    assert!(asked.iter().all(|canary| !canary.unseen));
}

#[test]
fn abstract_socket_needs_scopes_for_a_claim() {
    let kind = Kind::Namespace;
    let mut results = as_expected(kind);
    results
        .observed
        .iter_mut()
        .find(|one| one.name == ABSTRACT_INSIDE)
        .unwrap()
        .errno = 0;
    assert_eq!(
        status(&judge(kind, &results, &[], false), ABSTRACT_INSIDE),
        CanaryStatus::NotApplicable
    );
    assert_eq!(
        status(&judge(kind, &results, &[], true), ABSTRACT_INSIDE),
        CanaryStatus::NotHeld
    );
}
