//! Entries and answer for each kind of call.

use super::*;

mod rules;

const STUB: &str = "127.0.0.1:8000";
const ELSEWHERE: &str = "127.0.0.2:9000";

fn context() -> Context {
    Context {
        addresses: StubAddresses {
            stub: STUB.parse().unwrap(),
            elsewhere: Some(ELSEWHERE.parse().unwrap()),
        },
        stub_is_known: true,
        canaries: false,
        unix_sockets: true,
        shared_network: false,
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
    decide(&to(Address::Inet(address.parse().unwrap())), context())
}

fn only(decision: &Decision) -> (AttemptKind, Outcome, Answer) {
    assert_eq!(decision.attempts.len(), 1);
    (
        decision.attempts[0].kind,
        decision.attempts[0].outcome,
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
        assert_eq!(decision.stub_descriptors, [5]);
    }
}

#[test]
fn the_second_host_is_an_attempt_that_arrives_at_the_stub() {
    let decision = connect(ELSEWHERE);
    assert_eq!(
        only(&decision),
        (AttemptKind::Attempt, Outcome::Allowed, Answer::Continue)
    );
    assert_eq!(decision.stub_descriptors, [5]);
    assert!(connect("127.0.0.2:8000").stub_descriptors.is_empty());
}

#[test]
fn a_stub_that_the_client_was_not_told_of_is_reached_as_an_attempt() {
    let unknown = Context {
        stub_is_known: false,
        ..context()
    };
    let decision = decide(&to(Address::Inet(STUB.parse().unwrap())), unknown);
    assert_eq!(only(&decision).0, AttemptKind::Attempt);
    assert_eq!(decision.stub_descriptors, [5]);
}

#[test]
fn the_unspecified_address_leads_to_the_stub_and_is_an_attempt() {
    let decision = connect("0.0.0.0:8000");
    assert_eq!(
        only(&decision),
        (AttemptKind::Attempt, Outcome::Allowed, Answer::Continue)
    );
    assert_eq!(decision.stub_descriptors, [5]);
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
        assert!(decision.stub_descriptors.is_empty());
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
    let decision = decide(
        &Call::To(vec![there(STUB), there("192.0.2.1:9")]),
        context(),
    );
    assert_eq!(decision.answer, Answer::Refuse(Errno::ENETUNREACH));
    assert!(
        decision
            .attempts
            .iter()
            .all(|attempt| attempt.outcome == UNREACHABLE)
    );
    assert!(decision.stub_descriptors.is_empty());
}

#[test]
fn the_kernel_is_asked_for_what_our_canaries_mark_and_for_nothing_else() {
    let there = |port: u16| {
        to(Address::Inet(SocketAddr::new(
            "192.0.2.1".parse().unwrap(),
            port,
        )))
    };
    let refused = Answer::Refuse(Errno::ENETUNREACH);
    let canaries = Context {
        canaries: true,
        ..context()
    };
    assert_eq!(decide(&there(8000), canaries).answer, Answer::Continue);
    assert_eq!(decide(&there(443), canaries).answer, refused);
    assert_eq!(decide(&there(8000), context()).answer, refused);
}

/// Context of a container's network.
fn shared() -> Context {
    Context {
        unix_sockets: false,
        shared_network: true,
        ..context()
    }
}

fn socket(family: i32, kind: i32, protocol: i32) -> Call {
    Call::Socket(Socket {
        family,
        kind,
        protocol,
    })
}

const NO_RIGHT: Errno = Errno::EACCES;

#[test]
fn in_a_shared_network_only_the_stub_is_reached() {
    let to = |address: &str| decide(&to(Address::Inet(address.parse().unwrap())), shared());
    assert_eq!(to(STUB).answer, Answer::Continue);
    assert_eq!(to(ELSEWHERE).answer, Answer::Continue);
    for neighbour in [
        "127.0.0.1:8001",
        "[::1]:8000",
        "127.0.0.2:8000",
        "0.0.0.0:1",
    ] {
        let decision = to(neighbour);
        assert_eq!(
            only(&decision),
            (
                AttemptKind::Attempt,
                Outcome::Denied(NO_RIGHT),
                Answer::Refuse(NO_RIGHT)
            ),
            "{neighbour}"
        );
        assert!(decision.stub_descriptors.is_empty());
    }
    assert_eq!(
        to("192.0.2.1:8000").answer,
        Answer::Refuse(Errno::ENETUNREACH)
    );
}

#[test]
fn in_a_shared_network_no_connection_is_dissolved() {
    let refused = Answer::Refuse(NO_RIGHT);
    for address in [Address::Unspecified, Address::Netlink { process: 0 }] {
        let decision = decide(&to(address.clone()), shared());
        let denied = Outcome::Denied(NO_RIGHT);
        assert_eq!(only(&decision), (AttemptKind::Setup, denied, refused));
        assert_eq!(decide(&to(address), context()).answer, Answer::Continue);
    }
}

#[test]
fn in_a_shared_network_no_datagram_or_unix_socket_is_made() {
    let refused = Answer::Refuse(NO_RIGHT);
    for family in [libc::AF_INET, libc::AF_INET6] {
        for protocol in [0, libc::IPPROTO_UDP] {
            let decision = decide(&socket(family, libc::SOCK_DGRAM, protocol), shared());
            assert_eq!(decision.answer, refused);
            assert_eq!(decision.attempts[0].kind, AttemptKind::Attempt);
        }
        let stream = decide(&socket(family, libc::SOCK_STREAM, 0), shared());
        assert_eq!(stream.answer, Answer::Continue);
    }
    for protocol in [0, 1] {
        let unix = socket(libc::AF_UNIX, libc::SOCK_STREAM, protocol);
        assert_eq!(decide(&unix, shared()).answer, refused);
    }
}

#[test]
fn in_a_shared_network_nobody_listens_or_takes_an_address() {
    let listen = decide(&Call::Listen { descriptor: 3 }, shared());
    assert_eq!(
        only(&listen),
        (
            AttemptKind::Attempt,
            Outcome::Denied(NO_RIGHT),
            Answer::Refuse(NO_RIGHT)
        )
    );
    for (address, kind) in [
        ("127.0.0.1:8080", AttemptKind::Attempt),
        ("127.0.0.1:0", AttemptKind::Setup),
    ] {
        let bind = Call::Bind(Address::Inet(address.parse().unwrap()));
        let decision = decide(&bind, shared());
        assert_eq!(
            only(&decision),
            (kind, Outcome::Denied(NO_RIGHT), Answer::Refuse(NO_RIGHT))
        );
    }
    let netlink = Call::Bind(Address::Netlink { process: 0 });
    assert_eq!(decide(&netlink, shared()).answer, Answer::Continue);
}

#[test]
fn in_a_shared_network_our_canaries_ask_the_kernel_by_naming_a_protocol_or_a_neighbour() {
    let canaries = Context {
        canaries: true,
        ..shared()
    };
    let answer = |call: &Call| decide(call, canaries).answer;
    let udp = |protocol| socket(libc::AF_INET, libc::SOCK_DGRAM, protocol);
    let unix = |protocol| socket(libc::AF_UNIX, libc::SOCK_STREAM, protocol);
    assert_eq!(answer(&udp(libc::IPPROTO_UDP)), Answer::Continue);
    assert_eq!(answer(&unix(1)), Answer::Continue);
    assert_eq!(answer(&udp(0)), Answer::Refuse(NO_RIGHT));
    assert_eq!(answer(&unix(0)), Answer::Refuse(NO_RIGHT));
    let neighbour = to(Address::Inet("127.0.0.1:9".parse().unwrap()));
    assert_eq!(answer(&neighbour), Answer::Continue);
}

#[test]
fn unix_names_go_on_as_attempts_and_only_the_name_service_cache_is_expected() {
    let unix = |path: &[u8]| decide(&to(Address::Path(path.to_vec())), context());
    assert_eq!(only(&unix(b"/run/docker.sock")).0, AttemptKind::Attempt);
    assert_eq!(only(&unix(b"/var/run/nscd/socket")).0, AttemptKind::Setup);
    let decision = decide(&to(Address::Abstract(b"x".to_vec())), context());
    assert_eq!(decision.attempts[0].address.as_deref(), Some("@x"));
    assert_eq!(
        only(&decision),
        (AttemptKind::Attempt, Outcome::Allowed, Answer::Continue)
    );
}

#[test]
fn where_host_directories_are_shown_no_unix_socket_is_made() {
    let shut = Context {
        unix_sockets: false,
        ..context()
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
        decide(&socket(libc::AF_UNIX), context()).answer,
        Answer::Continue
    );
}

#[test]
fn a_pair_that_reaches_others_is_refused() {
    let pair = |kind, unix_sockets| {
        let socket = Socket::from_registers(&[libc::AF_UNIX as u64, kind as u64, 0, 0, 0, 0]);
        let context = Context {
            unix_sockets,
            ..context()
        };
        decide(&Call::Pair(socket), context).answer
    };
    let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    for kind in [libc::SOCK_DGRAM, libc::SOCK_RAW | flags] {
        assert_eq!(pair(kind, false), Answer::Refuse(Errno::EACCES));
        assert_eq!(pair(kind, true), Answer::Continue);
    }
    for kind in [libc::SOCK_STREAM, libc::SOCK_SEQPACKET | flags] {
        assert_eq!(pair(kind, false), Answer::Continue);
    }
}

#[test]
fn binding_is_an_attempt_only_with_a_port_of_ones_own() {
    let bind = |address| only(&decide(&Call::Bind(address), context())).0;
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
    let decision = decide(&Call::Unreadable, context());
    let denied = Outcome::Denied(Errno::EACCES);
    assert_eq!(
        only(&decision),
        (AttemptKind::Attempt, denied, Answer::Refuse(Errno::EACCES))
    );
}

#[test]
fn a_ring_is_refused_and_an_undumpable_process_is_only_told_so() {
    assert_eq!(
        decide(&Call::IoUring, context()).answer,
        Answer::Refuse(Errno::ENOSYS)
    );
    assert_eq!(
        decide(&Call::Dumpable { on: false }, context()).answer,
        Answer::ReturnZero
    );
    assert_eq!(
        decide(&Call::Dumpable { on: true }, context()).answer,
        Answer::Continue
    );
}

#[test]
fn fast_open_is_refused_and_recorded_in_a_shared_network() {
    let shared = Context {
        shared_network: true,
        ..context()
    };
    let refused = Outcome::Denied(Errno::EOPNOTSUPP);
    let answer = Answer::Refuse(Errno::EOPNOTSUPP);
    let destination = |address: &str| Destination {
        address: Address::Inet(address.parse().unwrap()),
        descriptor: 5,
        connects: true,
        payload: Vec::new(),
    };
    let send = |to: &[&str], context| {
        let to = to.iter().map(|address| destination(address)).collect();
        decide(&Call::FastOpen(to), context)
    };
    let far = only(&send(&["192.0.2.1:443"], shared));
    assert_eq!(far, (AttemptKind::Attempt, refused, answer));
    assert_eq!(
        only(&send(&[], shared)),
        (AttemptKind::Attempt, refused, answer)
    );
    let both = send(&[STUB, "192.0.2.1:443"], shared);
    assert_eq!((both.attempts.len(), both.answer), (2, answer));
    assert!(both.stub_descriptors.is_empty());
    // In its own network namespace, the message is decided as any other connection.
    assert_eq!(only(&send(&["192.0.2.1:443"], context())).1, UNREACHABLE);
    assert_eq!(send(&[STUB], context()).stub_descriptors, [5]);
    assert!(send(&[], context()).attempts.is_empty());
}

#[test]
fn urgent_data_is_refused_and_an_attempt() {
    let errno = Errno::EOPNOTSUPP;
    let refused = (
        AttemptKind::Attempt,
        Outcome::Denied(errno),
        Answer::Refuse(errno),
    );
    let shared = Context {
        shared_network: true,
        ..context()
    };
    for context in [context(), shared] {
        let decision = decide(&Call::Urgent(Vec::new()), context);
        assert_eq!(only(&decision), refused);
        assert_eq!(decision.attempts[0].address.as_deref(), Some("MSG_OOB"));
        // A message to the stub is refused too, and its destination is a second entry.
        let Call::To(destinations) = to(Address::Inet(STUB.parse().unwrap())) else {
            unreachable!()
        };
        let decision = decide(&Call::Urgent(destinations), context);
        let kinds = decision
            .attempts
            .iter()
            .map(|attempt| (attempt.kind, attempt.outcome));
        let denied = |kind| (kind, Outcome::Denied(errno));
        let expected = [AttemptKind::Setup, AttemptKind::Attempt].map(denied);
        assert_eq!(kinds.collect::<Vec<_>>(), expected);
        assert_eq!(decision.answer, Answer::Refuse(errno));
        assert!(decision.stub_descriptors.is_empty());
    }
}

#[test]
fn a_refused_pair_is_recorded() {
    let pair = |family: i32| {
        let arguments = [family as u64, libc::SOCK_DGRAM as u64, 0, 0, 0, 0];
        only(&decide(
            &Call::Pair(Socket::from_registers(&arguments)),
            Context {
                unix_sockets: false,
                ..context()
            },
        ))
    };
    let denied = |kind, errno| (kind, Outcome::Denied(errno), Answer::Refuse(errno));
    assert_eq!(
        pair(libc::AF_UNIX),
        denied(AttemptKind::Setup, Errno::EACCES)
    );
    for family in [libc::AF_INET, libc::AF_TIPC] {
        assert_eq!(
            pair(family),
            denied(AttemptKind::Attempt, Errno::EAFNOSUPPORT)
        );
    }
}
