use model::evidence::AttemptKind;
use nix::errno::Errno;
use probes::probe::{Aim, KILLED, Layer, by};

use super::*;

const KINDS: [Kind; 3] = [Kind::Namespace, Kind::NamespaceWithoutProc, Kind::Inherited];

const NAME: &str = "sockets/example/stream";

const REFUSALS: &[Refusal] = &[
    by(Layer::Supervisor, Errno::ENETUNREACH),
    by(Layer::OwnRoot, Errno::ENOENT),
];

const fn example(record: LedgerEntry) -> Probe {
    named("stream", record)
}

const fn named(name: &'static str, record: LedgerEntry) -> Probe {
    Probe::new(name, |_| Ok(String::new()))
        .at(&[Aim::Word("192.0.2.1:443")])
        .blocked(REFUSALS, record)
        .twin_arrives(&[Errno::ENOTTY])
}

static PLAIN: Class = Class {
    id: "sockets/example",
    about: "",
    probes: &[example(LedgerEntry::None)],
};
static EVIDENCE: Class = Class {
    probes: &[example(LedgerEntry::To("connect"))],
    ..PLAIN
};

fn said(reply: Reply) -> Vec<Said> {
    vec![Said {
        attempt: NAME.to_owned(),
        reply,
        detail: String::new(),
    }]
}

fn entry(address: &str, port: u16, outcome: evidence::Outcome) -> evidence::Attempt {
    evidence::Attempt {
        expected: None,
        seq: 1,
        at_us: 0,
        kind: AttemptKind::Attempt,
        pid: 2,
        program: String::new(),
        syscall: "connect".into(),
        family: Some("inet".to_owned()),
        socket_type: None,
        protocol: None,
        address: Some(address.to_owned()),
        port: Some(port),
        outcome,
        count: 1,
        names: Vec::new(),
    }
}

fn judged(
    class: &'static Class,
    inside: &[Said],
    outside: &[Said],
    ledger: &[evidence::Attempt],
) -> (Status, String) {
    let input = Input {
        kind: Kind::Namespace,
        inside,
        outside,
        ledger,
    };
    let texts = |probe: &Probe| {
        let text = |aim: &Aim| {
            let Aim::Word(word) = aim else {
                panic!("{aim:?}")
            };
            word.into()
        };
        probe.inside.iter().map(text).collect()
    };
    let mut outcome = input.judge(class, texts).unwrap();
    let attempt = outcome.attempts.remove(0);
    assert_eq!(outcome.status, attempt.status);
    (attempt.status, attempt.reason.unwrap_or_default())
}

fn refused(errno: Errno) -> Vec<Said> {
    said(Reply::Refused(errno as i32))
}

fn plain(inside: &[Said], outside: &[Said]) -> (Status, String) {
    judged(&PLAIN, inside, outside, &[])
}

#[test]
fn refused_as_listed_and_through_outside_is_blocked() {
    for errno in [Errno::ENETUNREACH, Errno::ENOENT] {
        let (status, reason) = plain(&refused(errno), &said(Reply::Through));
        assert_eq!((status, reason.as_str()), (Status::Blocked, ""));
    }
}

#[test]
fn what_is_refused_outside_as_well_is_never_a_pass() {
    let (status, reason) = plain(&refused(Errno::ENOENT), &refused(Errno::EPERM));
    assert_eq!(status, Status::Inconclusive);
    assert_eq!(reason, "refused outside too (EPERM)");
    let (status, reason) = plain(&refused(Errno::ENOENT), &said(Reply::Nothing));
    assert_eq!(status, Status::Inconclusive);
    assert_eq!(reason, "nothing was found outside either");
    let killed = said(Reply::Killed(libc::SIGSYS));
    assert_eq!(
        plain(&refused(Errno::ENOENT), &killed).0,
        Status::Inconclusive
    );
}

#[test]
fn without_a_twin_nothing_is_known() {
    assert_eq!(plain(&refused(Errno::ENOENT), &[]).0, Status::Inconclusive);
    let (status, reason) = plain(&refused(Errno::ENOENT), &said(Reply::Unmade));
    assert_eq!(status, Status::Inconclusive);
    assert!(reason.starts_with("its twin was not made"), "{reason}");
}

#[test]
fn another_errno_than_the_listed_ones_is_no_block() {
    let (status, reason) = plain(&refused(Errno::EPERM), &said(Reply::Through));
    assert_eq!(status, Status::Inconclusive);
    assert_eq!(reason, "EPERM inside, not ENETUNREACH or ENOENT");
    for inside in [Reply::Nothing, Reply::Killed(9), Reply::Unmade] {
        assert_eq!(
            plain(&said(inside), &said(Reply::Through)).0,
            Status::Inconclusive
        );
    }
}

#[test]
fn what_got_through_inside_did_so_whatever_its_twin_says() {
    for twin in [said(Reply::Through), refused(Errno::EPERM), Vec::new()] {
        assert_eq!(plain(&said(Reply::Through), &twin).0, Status::Through);
    }
}

#[test]
fn an_errno_from_behind_the_layer_is_an_arrival() {
    let arrived = refused(Errno::ENOTTY);
    assert_eq!(plain(&refused(Errno::ENOENT), &arrived).0, Status::Blocked);
    let (status, reason) = plain(&arrived, &arrived);
    assert_eq!(status, Status::Through);
    assert_eq!(reason, "it arrived (ENOTTY)");
}

#[test]
fn an_attempt_that_was_never_made_is_inconclusive() {
    let (status, reason) = plain(&[], &said(Reply::Through));
    assert_eq!(status, Status::Inconclusive);
    assert_eq!(reason, "the client did not make it");
}

#[test]
fn evidence_that_is_not_in_the_ledger_counts_as_through() {
    let (inside, outside) = (refused(Errno::ENETUNREACH), said(Reply::Through));
    let denied = evidence::Outcome::Denied(Errno::ENETUNREACH);
    let good = entry("192.0.2.1", 443, denied);
    assert_eq!(
        judged(&EVIDENCE, &inside, &outside, &[good]).0,
        Status::Blocked
    );
    let others = [
        entry("192.0.2.2", 443, denied),
        entry("192.0.2.1", 444, denied),
        // The outcome is that the call continued, so the supervisor did not refuse it.
        entry("192.0.2.1", 443, evidence::Outcome::Allowed),
        evidence::Attempt {
            expected: None,
            syscall: "sendto".into(),
            ..entry("192.0.2.1", 443, denied)
        },
    ];
    let (status, reason) = judged(&EVIDENCE, &inside, &outside, &others);
    assert_eq!(status, Status::Through);
    assert_eq!(reason, "ENETUNREACH, but not in the ledger");
}

/// A filter around the sandbox refuses the call first, so the ledger has no entry.
#[test]
fn unrecorded_attempt_is_inconclusive_when_refused_outside() {
    let inside = refused(Errno::ENETUNREACH);
    let (status, reason) = judged(&EVIDENCE, &inside, &refused(Errno::EPERM), &[]);
    assert_eq!(status, Status::Inconclusive);
    assert_eq!(reason, "refused outside too (EPERM)");
    for twin in [
        said(Reply::Through),
        refused(Errno::ENOTTY),
        said(Reply::Unmade),
        Vec::new(),
    ] {
        assert_eq!(judged(&EVIDENCE, &inside, &twin, &[]).0, Status::Through);
    }
}

#[test]
fn sockets_in_the_ledger_are_told_apart_by_their_protocol() {
    let refusal = by(Layer::Supervisor, Errno::EPROTONOSUPPORT);
    let record = LedgerEntry::Socket("inet", "stream");
    let words = ["2", "1", "262"].map(OsString::from);
    let of = |protocol| evidence::Attempt {
        syscall: "socket".into(),
        socket_type: Some("stream".to_owned()),
        protocol: Some(protocol),
        ..entry("", 0, evidence::Outcome::Denied(Errno::EPROTONOSUPPORT))
    };
    assert!(is_recorded(record, Some(&refusal), &of(262), &words));
    assert!(!is_recorded(record, Some(&refusal), &of(132), &words));
}

#[test]
fn a_class_is_as_its_worst_attempt() {
    static TWO: Class = Class {
        probes: &[
            example(LedgerEntry::None),
            named("other", LedgerEntry::None),
        ],
        ..PLAIN
    };
    let mut inside = refused(Errno::ENOENT);
    inside.push(Said {
        attempt: "sockets/example/other".to_owned(),
        ..said(Reply::Through).remove(0)
    });
    let mut outside = inside.clone();
    for twin in &mut outside {
        twin.reply = Reply::Through;
    }
    let input = Input {
        kind: Kind::Namespace,
        inside: &inside,
        outside: &outside,
        ledger: &[],
    };
    let outcome = input.judge(&TWO, |_| Vec::new()).unwrap();
    assert_eq!(outcome.status, Status::Through);
    assert_eq!(outcome.because, "other: it got through");
}

#[test]
fn attempts_of_one_reason_stand_together() {
    static THREE: Class = Class {
        probes: &[
            example(LedgerEntry::None),
            named("other", LedgerEntry::None),
            named("third", LedgerEntry::None),
        ],
        ..PLAIN
    };
    let named = |name: &str, reply| Said {
        attempt: format!("sockets/example/{name}"),
        ..said(reply).remove(0)
    };
    let refused = |errno: Errno| Reply::Refused(errno as i32);
    let input = Input {
        kind: Kind::Namespace,
        inside: &[
            named("stream", refused(Errno::EPERM)),
            named("third", refused(Errno::EPERM)),
        ],
        outside: &[],
        ledger: &[],
    };
    let outcome = input.judge(&THREE, |_| Vec::new()).unwrap();
    assert_eq!(
        outcome.because,
        "stream, third: EPERM inside, not ENETUNREACH or ENOENT; other: the client did not make it"
    );
}

#[test]
fn a_class_that_a_tier_has_nothing_of_is_left_out() {
    static ELSEWHERE: Class = Class {
        probes: &[example(LedgerEntry::None).inherited(&[], LedgerEntry::None)],
        ..PLAIN
    };
    let input = Input {
        kind: Kind::Inherited,
        inside: &[],
        outside: &[],
        ledger: &[],
    };
    assert!(input.judge(&ELSEWHERE, |_| Vec::new()).is_none());
}

#[test]
fn a_killed_child_is_blocked_only_by_the_signal_of_the_filter() {
    static KILLS: Class = Class {
        probes: &[Probe::new("stream", |_| Ok(String::new())).blocked(&[KILLED], LedgerEntry::None)],
        ..PLAIN
    };
    let outside = said(Reply::Through);
    let with = |signal| judged(&KILLS, &said(Reply::Killed(signal)), &outside, &[]).0;
    assert_eq!(with(libc::SIGSYS), Status::Blocked);
    assert_eq!(with(libc::SIGSEGV), Status::Inconclusive);
}

#[test]
fn every_probe_has_a_name_and_a_refusal() {
    let mut names: Vec<String> = Vec::new();
    for class in probes::table::classes() {
        assert_eq!(class.id.split('/').count(), 2, "{}", class.id);
        for probe in class.probes {
            let mut refusals = KINDS.map(|kind| probe.expected(kind).refusals).into_iter();
            assert!(refusals.any(|list| !list.is_empty()), "{}", class.id);
            assert_eq!(probe.inside.len(), probe.outside.len(), "{}", class.id);
            names.push(class.full_name(probe));
        }
    }
    let all = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), all);
}

/// No errno is both a refusal and an arrival.
#[test]
fn no_refusal_is_an_arrival() {
    for class in probes::table::classes() {
        for probe in class.probes {
            for refusal in KINDS.iter().flat_map(|kind| probe.expected(*kind).refusals) {
                assert!(!arrived(refusal.reply, probe), "{}", class.id);
            }
        }
    }
}
