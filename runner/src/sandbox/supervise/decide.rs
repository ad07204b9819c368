//! What becomes of a call: pure, from what the call is about to its entry in the ledger and its answer.
//!
//! Non-loopback is answered at once with the errno that the namespace would give. Loopback and unix addresses go
//! on: what they lead to is inside. An answer that lets a call through rests on the namespace, never on memory
//! that was read.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use nix::errno::Errno;

use super::Served;
use super::call::{Address, Call, Destination};
use super::sockets::{Socket, family_name};
use crate::evidence::{AttemptKind, Outcome};
use crate::sys::notify::Answer;
use crate::text::printable;

/// One line for the ledger.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Line {
    pub(super) kind: AttemptKind,
    pub(super) family: Option<String>,
    pub(super) socket_type: Option<String>,
    pub(super) protocol: Option<u32>,
    pub(super) address: Option<String>,
    pub(super) port: Option<u16>,
    pub(super) outcome: Outcome,
    pub(super) names: Vec<String>,
}

/// What is recorded and answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Decision {
    pub(super) lines: Vec<Line>,
    pub(super) answer: Answer,
    /// Descriptors with which the stub's address is reached, should the call go through.
    pub(super) to_stub: Vec<i32>,
}

/// What a decision depends on beside the call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ground {
    pub(super) served: Served,
    /// The way to the stub is no attempt.
    pub(super) stub_is_known: bool,
    /// The port whose non-loopback destinations the kernel is to refuse itself; canaries only.
    pub(super) continued_port: Option<u16>,
    /// Whether unix sockets may be made. A read-only directory of the host may hold sockets of its daemons, and
    /// neither the mount nor Landlock (before ABI 9) keeps anybody from connecting to them.
    pub(super) unix_sockets: bool,
}

/// libc asks the name service cache before anything else; that it is not there is no finding.
const NAME_SERVICE_CACHE: &[u8] = b"/var/run/nscd/socket";

/// Decides.
pub(super) fn decide(call: &Call, ground: Ground) -> Decision {
    match call {
        Call::Socket(socket) => judge_socket(*socket, ground),
        Call::To(destinations) => judge_destinations(destinations, ground),
        Call::Connected | Call::Execute { .. } => silent(Answer::Continue),
        Call::Bind(address) => judge_bind(address),
        Call::Listen { .. } => one(attempt(Outcome::Allowed), Answer::Continue),
        Call::IoUring => refuse(attempt(Outcome::Denied(Errno::ENOSYS)), Errno::ENOSYS),
        Call::Dumpable { on: false } => one(setup(Outcome::Allowed), Answer::Pretend),
        Call::Dumpable { on: true } => silent(Answer::Continue),
        Call::Unreadable => {
            let line = Line {
                address: Some("unreadable".to_owned()),
                ..attempt(Outcome::Denied(Errno::EACCES))
            };
            refuse(line, Errno::EACCES)
        }
    }
}

fn judge_socket(socket: Socket, ground: Ground) -> Decision {
    let shut = socket.family == libc::AF_UNIX && !ground.unix_sockets;
    let refusal = if shut {
        Some(Errno::EACCES)
    } else {
        socket.refusal()
    };
    let base = match refusal {
        // libc asks for the name service cache over such a socket; this one reaches nothing whoever asked.
        Some(errno) if shut => setup(Outcome::Denied(errno)),
        Some(errno) => attempt(Outcome::Denied(errno)),
        None => setup(Outcome::Allowed),
    };
    let line = Line {
        family: Some(family_name(socket.family)),
        socket_type: Some(socket.kind_name()),
        protocol: Some(socket.protocol as u32),
        ..base
    };
    one(line, refusal.map_or(Answer::Continue, Answer::Refuse))
}

/// A call to several destinations is let through as a whole or not at all.
fn judge_destinations(destinations: &[Destination], ground: Ground) -> Decision {
    let refused = destinations
        .iter()
        .any(|destination| leads_out(&destination.address, ground));
    let lines = destinations
        .iter()
        .map(|destination| judge_destination(destination, ground, refused))
        .collect();
    let to_stub = destinations
        .iter()
        .filter(|destination| destination.connects && reaches(&destination.address, ground.served))
        .map(|destination| destination.descriptor)
        .collect();
    Decision {
        lines,
        answer: if refused {
            Answer::Refuse(Errno::ENETUNREACH)
        } else {
            Answer::Continue
        },
        to_stub: if refused { Vec::new() } else { to_stub },
    }
}

fn judge_destination(destination: &Destination, ground: Ground, refused: bool) -> Line {
    let outcome = if refused {
        Outcome::Denied(Errno::ENETUNREACH)
    } else {
        Outcome::Allowed
    };
    let base = if is_setup(destination, ground) {
        setup(outcome)
    } else {
        attempt(outcome)
    };
    let line = with_address(base, &destination.address);
    let names = match line.port {
        Some(53) => crate::dns::names(&destination.payload),
        _ => Vec::new(),
    };
    Line { names, ..line }
}

fn is_setup(destination: &Destination, ground: Ground) -> bool {
    match &destination.address {
        Address::Inet(address) => {
            ground.stub_is_known
                && destination.connects
                && canonical(*address) == ground.served.stub
        }
        Address::Path(path) => path == NAME_SERVICE_CACHE,
        Address::Netlink { process } => *process == 0,
        Address::Unspecified => true,
        Address::Abstract(_) | Address::Unnamed | Address::Other { .. } => false,
    }
}

/// Whether the network namespace would refuse it, so that it is answered here, unless the kernel is to be asked.
fn leads_out(address: &Address, ground: Ground) -> bool {
    match address {
        Address::Inet(address) => {
            let inside = canonical(*address).ip();
            let outside = !inside.is_loopback() && !inside.is_unspecified();
            outside && ground.continued_port != Some(address.port())
        }
        Address::Other { .. } => true,
        Address::Path(_)
        | Address::Abstract(_)
        | Address::Unnamed
        | Address::Netlink { .. }
        | Address::Unspecified => false,
    }
}

/// Whether a connection there arrives at the stub: the unspecified IPv4 address is this host (ip(7)), and leads to
/// 127.0.0.1.
fn reaches(address: &Address, served: Served) -> bool {
    let Address::Inet(address) = address else {
        return false;
    };
    let address = canonical(*address);
    let Served { stub, elsewhere } = served;
    address == stub
        || Some(address) == elsewhere
        || (address.ip() == IpAddr::V4(Ipv4Addr::UNSPECIFIED) && address.port() == stub.port())
}

/// IPv4-mapped addresses as the IPv4 addresses that they are.
fn canonical(address: SocketAddr) -> SocketAddr {
    (address.ip().to_canonical(), address.port()).into()
}

fn judge_bind(address: &Address) -> Decision {
    let fixed = matches!(address, Address::Inet(address) if address.port() != 0);
    let base = if fixed {
        attempt(Outcome::Allowed)
    } else {
        setup(Outcome::Allowed)
    };
    one(with_address(base, address), Answer::Continue)
}

fn with_address(line: Line, address: &Address) -> Line {
    let (family, text, port) = match address {
        Address::Inet(inet) => {
            let family = if inet.is_ipv4() { "inet" } else { "inet6" };
            (
                family.to_owned(),
                Some(inet.ip().to_string()),
                Some(inet.port()),
            )
        }
        Address::Path(path) => ("unix".to_owned(), Some(printable(path)), None),
        Address::Abstract(name) => (
            "unix".to_owned(),
            Some(format!("@{}", printable(name))),
            None,
        ),
        Address::Unnamed => ("unix".to_owned(), None, None),
        Address::Netlink { process } => ("netlink".to_owned(), Some(process.to_string()), None),
        Address::Unspecified => ("unspec".to_owned(), None, None),
        Address::Other { family } => (family_name(*family), None, None),
    };
    Line {
        family: Some(family),
        address: text,
        port,
        ..line
    }
}

fn attempt(outcome: Outcome) -> Line {
    blank(AttemptKind::Attempt, outcome)
}

fn setup(outcome: Outcome) -> Line {
    blank(AttemptKind::Setup, outcome)
}

fn blank(kind: AttemptKind, outcome: Outcome) -> Line {
    Line {
        kind,
        family: None,
        socket_type: None,
        protocol: None,
        address: None,
        port: None,
        outcome,
        names: Vec::new(),
    }
}

fn one(line: Line, answer: Answer) -> Decision {
    Decision {
        lines: vec![line],
        answer,
        to_stub: Vec::new(),
    }
}

fn refuse(line: Line, errno: Errno) -> Decision {
    one(line, Answer::Refuse(errno))
}

fn silent(answer: Answer) -> Decision {
    Decision {
        lines: Vec::new(),
        answer,
        to_stub: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STUB: &str = "127.0.0.1:8000";
    const ELSEWHERE: &str = "127.0.0.2:9000";

    fn ground() -> Ground {
        Ground {
            served: Served {
                stub: STUB.parse().unwrap(),
                elsewhere: Some(ELSEWHERE.parse().unwrap()),
            },
            stub_is_known: true,
            continued_port: None,
            unix_sockets: true,
        }
    }

    fn to(address: Address) -> Call {
        Call::To(vec![Destination {
            address,
            descriptor: 5,
            connects: true,
            payload: Vec::new(),
        }])
    }

    fn connect(address: &str) -> Decision {
        decide(&to(Address::Inet(address.parse().unwrap())), ground())
    }

    fn only(decision: &Decision) -> (AttemptKind, Outcome, Answer) {
        assert_eq!(decision.lines.len(), 1);
        (
            decision.lines[0].kind,
            decision.lines[0].outcome,
            decision.answer,
        )
    }

    const UNREACHABLE: Outcome = Outcome::Denied(Errno::ENETUNREACH);

    #[test]
    fn the_stub_is_reached_and_judged_by_nobody() {
        for address in [STUB, "[::ffff:127.0.0.1]:8000"] {
            let decision = connect(address);
            assert_eq!(
                only(&decision),
                (AttemptKind::Setup, Outcome::Allowed, Answer::Continue)
            );
            assert_eq!(decision.to_stub, [5]);
        }
    }

    #[test]
    fn the_second_host_is_an_attempt_that_arrives_at_the_stub() {
        let decision = connect(ELSEWHERE);
        assert_eq!(
            only(&decision),
            (AttemptKind::Attempt, Outcome::Allowed, Answer::Continue)
        );
        assert_eq!(decision.to_stub, [5]);
        assert!(connect("127.0.0.2:8000").to_stub.is_empty());
    }

    #[test]
    fn a_stub_that_the_client_was_not_told_of_is_reached_as_an_attempt() {
        let unknown = Ground {
            stub_is_known: false,
            ..ground()
        };
        let decision = decide(&to(Address::Inet(STUB.parse().unwrap())), unknown);
        assert_eq!(only(&decision).0, AttemptKind::Attempt);
        assert_eq!(decision.to_stub, [5]);
    }

    #[test]
    fn the_unspecified_address_leads_to_the_stub_and_is_an_attempt() {
        let decision = connect("0.0.0.0:8000");
        assert_eq!(
            only(&decision),
            (AttemptKind::Attempt, Outcome::Allowed, Answer::Continue)
        );
        assert_eq!(decision.to_stub, [5]);
    }

    #[test]
    fn other_loopback_addresses_go_on_as_attempts() {
        for address in [
            "127.0.0.1:8001",
            "127.0.0.2:8000",
            "[::1]:8000",
            "[::ffff:127.0.0.1]:53",
            "[::]:8000",
        ] {
            let decision = connect(address);
            assert_eq!(
                only(&decision),
                (AttemptKind::Attempt, Outcome::Allowed, Answer::Continue),
                "{address}"
            );
            assert!(decision.to_stub.is_empty());
        }
    }

    #[test]
    fn whatever_leads_out_is_answered_at_once() {
        for address in [
            "192.0.2.1:443",
            "255.255.255.255:67",
            "224.0.0.251:5353",
            "169.254.169.254:80",
            "[2001:db8::1]:443",
            "[ff02::fb]:5353",
            "[::ffff:192.0.2.1]:8000",
        ] {
            let answer = Answer::Refuse(Errno::ENETUNREACH);
            assert_eq!(
                only(&connect(address)),
                (AttemptKind::Attempt, UNREACHABLE, answer),
                "{address}"
            );
        }
    }

    #[test]
    fn one_destination_that_leads_out_refuses_the_whole_call() {
        let there = |address: &str| Destination {
            address: Address::Inet(address.parse().unwrap()),
            descriptor: 5,
            connects: false,
            payload: Vec::new(),
        };
        let decision = decide(&Call::To(vec![there(STUB), there("192.0.2.1:9")]), ground());
        assert_eq!(decision.answer, Answer::Refuse(Errno::ENETUNREACH));
        assert!(
            decision
                .lines
                .iter()
                .all(|line| line.outcome == UNREACHABLE)
        );
        assert!(decision.to_stub.is_empty());
    }

    #[test]
    fn the_kernel_is_asked_for_the_continued_port_only() {
        let ground = Ground {
            continued_port: Some(444),
            ..ground()
        };
        let there = |port: u16| {
            to(Address::Inet(SocketAddr::new(
                "192.0.2.1".parse().unwrap(),
                port,
            )))
        };
        assert_eq!(decide(&there(444), ground).answer, Answer::Continue);
        assert_eq!(
            decide(&there(443), ground).answer,
            Answer::Refuse(Errno::ENETUNREACH)
        );
    }

    #[test]
    fn unix_names_go_on_as_attempts_and_only_the_name_service_cache_is_expected() {
        let unix = |path: &[u8]| decide(&to(Address::Path(path.to_vec())), ground());
        assert_eq!(only(&unix(b"/run/docker.sock")).0, AttemptKind::Attempt);
        assert_eq!(only(&unix(b"/var/run/nscd/socket")).0, AttemptKind::Setup);
        let decision = decide(&to(Address::Abstract(b"x".to_vec())), ground());
        assert_eq!(decision.lines[0].address.as_deref(), Some("@x"));
        assert_eq!(
            only(&decision),
            (AttemptKind::Attempt, Outcome::Allowed, Answer::Continue)
        );
    }

    #[test]
    fn where_host_directories_are_shown_no_unix_socket_is_made() {
        let shut = Ground {
            unix_sockets: false,
            ..ground()
        };
        let socket = |family| {
            Call::Socket(Socket {
                family,
                kind: libc::SOCK_STREAM,
                protocol: 0,
            })
        };
        let denied = Outcome::Denied(Errno::EACCES);
        assert_eq!(
            only(&decide(&socket(libc::AF_UNIX), shut)),
            (AttemptKind::Setup, denied, Answer::Refuse(Errno::EACCES))
        );
        assert_eq!(
            decide(&socket(libc::AF_INET), shut).answer,
            Answer::Continue
        );
        assert_eq!(
            decide(&socket(libc::AF_UNIX), ground()).answer,
            Answer::Continue
        );
    }

    #[test]
    fn binding_is_an_attempt_only_with_a_port_of_ones_own() {
        let bind = |address| only(&decide(&Call::Bind(address), ground())).0;
        assert_eq!(
            bind(Address::Inet("127.0.0.1:0".parse().unwrap())),
            AttemptKind::Setup
        );
        assert_eq!(
            bind(Address::Inet("127.0.0.1:80".parse().unwrap())),
            AttemptKind::Attempt
        );
        assert_eq!(bind(Address::Netlink { process: 0 }), AttemptKind::Setup);
    }

    #[test]
    fn what_cannot_be_read_is_denied_and_recorded() {
        let decision = decide(&Call::Unreadable, ground());
        let denied = Outcome::Denied(Errno::EACCES);
        assert_eq!(
            only(&decision),
            (AttemptKind::Attempt, denied, Answer::Refuse(Errno::EACCES))
        );
    }

    #[test]
    fn a_ring_is_refused_and_an_undumpable_process_is_only_told_so() {
        assert_eq!(
            decide(&Call::IoUring, ground()).answer,
            Answer::Refuse(Errno::ENOSYS)
        );
        assert_eq!(
            decide(&Call::Dumpable { on: false }, ground()).answer,
            Answer::Pretend
        );
        assert_eq!(
            decide(&Call::Dumpable { on: true }, ground()).answer,
            Answer::Continue
        );
    }
}
