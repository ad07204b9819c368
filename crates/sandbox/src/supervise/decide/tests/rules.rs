//! Rules of a policy for each kind of attempt.

use std::collections::HashSet;
use std::mem::discriminant;

use model::expected::reason_for_attempt;
use model::profile::ExpectedAttempt;

use super::super::super::system_v::SystemV;
use super::*;
use crate::filter::{ForeignCall, SocketOption};

/// Number of kinds that [`syscalls`] names.
const KINDS: usize = 20;

/// System calls of a kind. A new kind does not compile until it is named here and sampled in [`calls`].
fn syscalls(call: &Call) -> &'static [&'static str] {
    match call {
        Call::Socket(_) => &["socket"],
        Call::Pair(_) => &["socketpair"],
        Call::To(_) => &["connect", "sendto", "sendmsg", "sendmmsg"],
        Call::FastOpen(_) | Call::Urgent(_) | Call::Connected => &["sendto", "sendmsg", "sendmmsg"],
        Call::Bind(_) => &["bind"],
        Call::Listen { .. } => &["listen"],
        Call::IoUring => &["io_uring_setup"],
        Call::SystemV(_) => &["shmget", "semget", "msgget"],
        Call::Pipe => &["pipe", "pipe2", "mknod", "mknodat"],
        Call::MemoryFile => &["memfd_create"],
        Call::SharedMapping { .. } => &["mmap"],
        Call::LandlockRule => &["landlock_add_rule"],
        Call::LandlockDomain => &["landlock_restrict_self"],
        Call::SetOption(_) => &["setsockopt"],
        Call::Execute { .. } => &["execve", "execveat"],
        Call::Dumpable { .. } => &["prctl"],
        Call::Foreign(_) => &["i386", "x32", "arm"],
        Call::Unreadable => &[
            "connect", "sendto", "sendmsg", "sendmmsg", "bind", "execve", "execveat", "unknown",
        ],
    }
}

fn addresses() -> Vec<Address> {
    let inet = |text: &str| Address::Inet(text.parse().unwrap());
    let odd = b"/a//../\xff\n b/".to_vec();
    vec![
        inet("192.0.2.1:443"),
        inet("192.0.2.1:0"),
        inet("127.0.0.1:8080"),
        inet("[2001:db8::1]:53"),
        inet("[::ffff:192.0.2.1]:53"),
        Address::Path(b"/run/helper".to_vec()),
        Address::Path(b"relative".to_vec()),
        Address::Path(odd),
        Address::Path(vec![1; 108]),
        Address::Abstract(b"bus".to_vec()),
        Address::Abstract(Vec::new()),
        Address::Unnamed,
        Address::Netlink { process: 0 },
        Address::Netlink { process: 42 },
        Address::Unspecified,
        Address::Other {
            family: libc::AF_PACKET,
        },
        Address::Other { family: 999 },
    ]
}

fn sockets() -> impl Iterator<Item = Socket> {
    let registers = |family: u64, kind: u64, protocol: u64| [family, kind, protocol, 0, 0, 0];
    let families = [0, 1, 2, 10, 16, 17, 40, 99];
    let kinds = families.map(|family| [1, 2, 3, 11].map(|kind| (family, kind)));
    let all = kinds.into_iter().flatten().flat_map(move |(family, kind)| {
        [0, 262, 0xFFFF_FFFF].map(|protocol| registers(family, kind, protocol))
    });
    all.map(|registers| Socket::from_registers(&registers))
}

fn foreign() -> impl Iterator<Item = Call> {
    let interfaces = [0x4000_0003, 0xC000_003E, 0x4000_0028].into_iter();
    let numbers = interfaces.flat_map(|audit| (0..600).map(move |number| (audit, number)));
    numbers.flat_map(|(audit, number)| {
        [number, number | 0x4000_0000]
            .into_iter()
            .filter_map(move |number| ForeignCall::numbered(audit, number))
            .map(Call::Foreign)
    })
}

/// Calls of every kind.
fn calls() -> Vec<Call> {
    let destinations = || {
        addresses().into_iter().map(|address| {
            vec![Destination {
                address,
                descriptor: 5,
                connects: true,
                payload: Vec::new(),
            }]
        })
    };
    let options = (0..300).flat_map(|level| (0..100).map(move |name| SocketOption { level, name }));
    let mut calls = vec![
        Call::Connected,
        Call::Listen { descriptor: 5 },
        Call::IoUring,
        Call::SystemV(SystemV { bytes: 1 }),
        Call::Pipe,
        Call::MemoryFile,
        Call::SharedMapping { bytes: 1 },
        Call::LandlockRule,
        Call::LandlockDomain,
        Call::Execute {
            at: 0,
            program: b"/bin/true".to_vec(),
            arguments: Vec::new(),
        },
        Call::Dumpable { on: false },
        Call::FastOpen(Vec::new()),
        Call::Urgent(Vec::new()),
        Call::Unreadable,
    ];
    calls.extend(sockets().map(Call::Socket));
    calls.extend(sockets().map(Call::Pair));
    calls.extend(destinations().map(Call::To));
    calls.extend(destinations().map(Call::FastOpen));
    calls.extend(destinations().map(Call::Urgent));
    calls.extend(addresses().into_iter().map(Call::Bind));
    calls.extend(options.map(Call::SetOption));
    calls.extend(foreign());
    calls
}

/// Attempts of every kind of call, in both kinds of isolation.
fn attempts() -> Vec<Attempt> {
    let inherited = Context {
        unix_sockets: false,
        shared_network: true,
        ..context()
    };
    let mut attempts = Vec::new();
    for call in &calls() {
        let both = [context(), inherited].map(|context| decide(call, context).attempts);
        for attempt in both.into_iter().flatten() {
            if attempt.kind != AttemptKind::Attempt {
                continue;
            }
            let named = syscalls(call).iter().map(|syscall| Attempt {
                syscall: (*syscall).into(),
                ..attempt.clone()
            });
            attempts.extend(named);
        }
    }
    attempts
}

fn is_expected(rule: &ExpectedAttempt, attempt: &Attempt) -> bool {
    reason_for_attempt(std::slice::from_ref(rule), attempt).is_some()
}

#[test]
fn every_kind_of_attempt_has_a_rule() {
    let sampled: HashSet<_> = calls().iter().map(discriminant).collect();
    assert_eq!(sampled.len(), KINDS);
    let attempts = attempts();
    for attempt in &attempts {
        let text = attempt.rule();
        let destination = text.parse();
        let destination = destination.unwrap_or_else(|error| panic!("{text}: {error}"));
        let rule = ExpectedAttempt {
            destination,
            reason: "known".to_owned(),
        };
        assert!(is_expected(&rule, attempt), "{text}");
        // A rule accepts what has its spelling, and no other attempt.
        let others = attempts.iter().filter(|other| other.rule() != text);
        let wrong: Vec<_> = others.filter(|other| is_expected(&rule, other)).collect();
        assert_eq!(wrong, Vec::<&Attempt>::new(), "{text}");
    }
    let kinds: HashSet<_> = attempts
        .iter()
        .map(|attempt| attempt.syscall.clone())
        .collect();
    assert_eq!(kinds.len(), 16, "{kinds:?}");
}
