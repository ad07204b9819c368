//! Tests of the socket options that need no supervisor.

use super::*;

fn option(level: i32, name: i32) -> Outcome {
    let filter = Additions::default().client_filter();
    everywhere(&filter, SYS_setsockopt, &[3, level as u64, name as u64])
}

#[test]
fn listed_options_are_allowed() {
    for (level, name) in [
        (libc::SOL_SOCKET, libc::SO_REUSEADDR),
        (libc::IPPROTO_TCP, libc::TCP_NODELAY),
        (libc::IPPROTO_TCP, libc::TCP_INQ),
        (libc::IPPROTO_IP, libc::IP_MULTICAST_ALL),
        (libc::IPPROTO_IPV6, libc::IPV6_TCLASS),
        (libc::IPPROTO_UDP, libc::UDP_GRO),
        (libc::SOL_NETLINK, 12),
    ] {
        assert_eq!(option(level, name), Outcome::Allowed, "{level} {name}");
    }
}

#[test]
fn buffer_sizes_are_answered_and_not_set() {
    for name in [libc::SO_SNDBUF, libc::SO_RCVBUF] {
        assert_eq!(option(libc::SOL_SOCKET, name), Outcome::Skipped);
    }
    for name in [libc::SO_SNDBUFFORCE, libc::SO_RCVBUFFORCE] {
        assert_eq!(option(libc::SOL_SOCKET, name), Outcome::Notified);
    }
}

#[test]
fn other_options_are_notified() {
    for (level, name) in [
        (libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE),
        (libc::SOL_SOCKET, libc::SO_ZEROCOPY),
        (libc::SOL_SOCKET, 96),
        (libc::SOL_SOCKET, -1),
        (libc::IPPROTO_TCP, 0),
        (libc::IPPROTO_TCP, libc::TCP_MD5SIG),
        (libc::IPPROTO_TCP, libc::TCP_FASTOPEN_CONNECT),
        (libc::IPPROTO_TCP, 64),
        (libc::IPPROTO_IP, libc::IP_OPTIONS),
        (libc::IPPROTO_IPV6, libc::IPV6_RTHDR),
        (libc::SOL_TLS, 1),
        (-1, libc::TCP_NODELAY),
    ] {
        assert_eq!(option(level, name), Outcome::Notified, "{level} {name}");
    }
    let filter = Additions::default().client_filter();
    let high = 1 << 32;
    let pacing = [
        3,
        libc::SOL_SOCKET as u64 | high,
        libc::SO_MAX_PACING_RATE as u64 | high,
    ];
    assert_eq!(
        everywhere(&filter, SYS_setsockopt, &pacing),
        Outcome::Notified
    );
}

#[test]
fn attempts_are_named_and_not_allowed() {
    for (level, name, label) in crate::filter::socket_options::ATTEMPTS {
        let (level, name) = (*level, *name);
        assert_eq!(option(level, name), Outcome::Notified, "{label}");
        let option = SocketOption { level, name };
        assert_eq!(option.label(), *label);
    }
}
