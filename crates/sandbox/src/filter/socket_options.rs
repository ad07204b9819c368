//! Socket options as data: those that the client may set, and the names of those that are attempts.
//!
//! A socket option can delay bytes beyond the client's end, replace the protocol, or send datagrams. So a list of level
//! and name, both registers of setsockopt(2), allows common options. The supervisor refuses and records all others.

use super::system_call::SystemCall::*;
use super::table::{allow_if, is, notify, skip_if};
use super::{Rule, Test};

// Options that libc lacks, from linux/tcp.h, linux/udp.h, linux/in.h, linux/in6.h and asm-generic/socket.h.
const TCP_REPAIR_WINDOW: i32 = 29;
const TCP_TX_DELAY: i32 = 37;
const TCP_AO_ADD_KEY: i32 = 38;
const TCP_AO_DEL_KEY: i32 = 39;
const TCP_AO_INFO: i32 = 40;
const TCP_AO_REPAIR: i32 = 42;
const TCP_MD5SIG_EXT: i32 = 32;
const IP_MSFILTER: i32 = 41;
const IP_LOCAL_PORT_RANGE: i32 = 51;
const IPV6_2292PKTOPTIONS: i32 = 6;
const IPV6_ADDR_PREFERENCES: i32 = 72;
const IPV6_AUTOFLOWLABEL: i32 = 70;
const MCAST_JOIN_GROUP: i32 = 42;
const MCAST_BLOCK_SOURCE: i32 = 43;
const MCAST_UNBLOCK_SOURCE: i32 = 44;
const MCAST_JOIN_SOURCE_GROUP: i32 = 46;
const MCAST_MSFILTER: i32 = 48;
const SOL_MPTCP: i32 = 284;

/// Allowed options of SOL_SOCKET. SO_LINGER with time 0 resets the connection, which is a separate finding.
const SOCKET: &[i32] = &[
    libc::SO_DEBUG,
    libc::SO_REUSEADDR,
    libc::SO_DONTROUTE,
    libc::SO_BROADCAST,
    libc::SO_KEEPALIVE,
    libc::SO_OOBINLINE,
    libc::SO_PRIORITY,
    libc::SO_LINGER,
    libc::SO_REUSEPORT,
    libc::SO_PASSCRED,
    libc::SO_RCVLOWAT,
    libc::SO_SNDLOWAT,
    libc::SO_RCVTIMEO,
    libc::SO_SNDTIMEO,
    libc::SO_TIMESTAMP,
    libc::SO_PASSSEC,
    libc::SO_TIMESTAMPNS,
    libc::SO_TIMESTAMPING,
    libc::SO_RXQ_OVFL,
    libc::SO_PEEK_OFF,
    libc::SO_BUSY_POLL,
    libc::SO_INCOMING_CPU,
];

/// Allowed options of IPPROTO_TCP. The kernel sends corked bytes (TCP_CORK) when the socket is closed (tcp(7)).
const TCP: &[i32] = &[
    libc::TCP_NODELAY,
    libc::TCP_MAXSEG,
    libc::TCP_CORK,
    libc::TCP_KEEPIDLE,
    libc::TCP_KEEPINTVL,
    libc::TCP_KEEPCNT,
    libc::TCP_SYNCNT,
    libc::TCP_LINGER2,
    libc::TCP_WINDOW_CLAMP,
    libc::TCP_QUICKACK,
    libc::TCP_THIN_LINEAR_TIMEOUTS,
    libc::TCP_THIN_DUPACK,
    libc::TCP_USER_TIMEOUT,
    libc::TCP_NOTSENT_LOWAT,
    libc::TCP_INQ,
];

/// Allowed options of IPPROTO_IP.
const IP: &[i32] = &[
    libc::IP_TOS,
    libc::IP_TTL,
    libc::IP_PKTINFO,
    libc::IP_MTU_DISCOVER,
    libc::IP_RECVERR,
    libc::IP_RECVTTL,
    libc::IP_RECVTOS,
    libc::IP_FREEBIND,
    libc::IP_RECVORIGDSTADDR,
    libc::IP_BIND_ADDRESS_NO_PORT,
    libc::IP_MULTICAST_IF,
    libc::IP_MULTICAST_TTL,
    libc::IP_MULTICAST_LOOP,
    libc::IP_MULTICAST_ALL,
    libc::IP_DROP_MEMBERSHIP,
    IP_LOCAL_PORT_RANGE,
];

/// Allowed options of IPPROTO_IPV6.
const IPV6: &[i32] = &[
    libc::IPV6_UNICAST_HOPS,
    libc::IPV6_MULTICAST_IF,
    libc::IPV6_MULTICAST_HOPS,
    libc::IPV6_MULTICAST_LOOP,
    libc::IPV6_DROP_MEMBERSHIP,
    libc::IPV6_MTU_DISCOVER,
    libc::IPV6_MTU,
    libc::IPV6_RECVERR,
    libc::IPV6_V6ONLY,
    libc::IPV6_MULTICAST_ALL,
    libc::IPV6_RECVPKTINFO,
    libc::IPV6_RECVHOPLIMIT,
    libc::IPV6_RECVTCLASS,
    libc::IPV6_TCLASS,
    libc::IPV6_DONTFRAG,
    IPV6_AUTOFLOWLABEL,
    IPV6_ADDR_PREFERENCES,
    libc::IPV6_FREEBIND,
];

/// Allowed options of IPPROTO_UDP: segmentation offload. The receiver counts each datagram.
const UDP: &[i32] = &[libc::UDP_SEGMENT, libc::UDP_GRO];

/// Rules of setsockopt(2).
pub(super) const RULES: &[Rule] = &[
    // The supervisor bounds the number of sockets, so buffers keep their initial size. The call returns success,
    // because the kernel itself silently grants less than requested (socket(7)).
    skip_if(
        SYS_setsockopt,
        &[level(libc::SOL_SOCKET), is(2, libc::SO_SNDBUF)],
    ),
    skip_if(
        SYS_setsockopt,
        &[level(libc::SOL_SOCKET), is(2, libc::SO_RCVBUF)],
    ),
    allow_if(SYS_setsockopt, &[level(libc::SOL_SOCKET), among(0, SOCKET)]),
    allow_if(
        SYS_setsockopt,
        &[level(libc::SOL_SOCKET), among(32, SOCKET)],
    ),
    allow_if(
        SYS_setsockopt,
        &[level(libc::SOL_SOCKET), among(64, SOCKET)],
    ),
    allow_if(SYS_setsockopt, &[level(libc::IPPROTO_TCP), among(0, TCP)]),
    allow_if(SYS_setsockopt, &[level(libc::IPPROTO_TCP), among(32, TCP)]),
    allow_if(SYS_setsockopt, &[level(libc::IPPROTO_IP), among(0, IP)]),
    allow_if(SYS_setsockopt, &[level(libc::IPPROTO_IP), among(32, IP)]),
    allow_if(SYS_setsockopt, &[level(libc::IPPROTO_IPV6), among(0, IPV6)]),
    allow_if(
        SYS_setsockopt,
        &[level(libc::IPPROTO_IPV6), among(32, IPV6)],
    ),
    allow_if(
        SYS_setsockopt,
        &[level(libc::IPPROTO_IPV6), among(64, IPV6)],
    ),
    allow_if(SYS_setsockopt, &[level(libc::IPPROTO_UDP), among(96, UDP)]),
    // Options of netlink sockets affect only the answers.
    allow_if(SYS_setsockopt, &[level(libc::SOL_NETLINK)]),
    notify(SYS_setsockopt),
];

const fn level(level: i32) -> Test {
    is(1, level)
}

/// Tests for those of `options` that are `from` to `from + 31`.
const fn among(from: u32, options: &[i32]) -> Test {
    let (mut bits, mut index) = (0, 0);
    while index < options.len() {
        let distance = (options[index] as u32).wrapping_sub(from);
        if distance < u32::BITS {
            bits |= 1 << distance;
        }
        index += 1;
    }
    Test::Among {
        argument: 2,
        from,
        bits,
    }
}

/// Options that are attempts, with level, number and name. They delay bytes, replace the protocol, route around the
/// recorded address, or join a group, which sends a datagram.
pub(super) const ATTEMPTS: &[(i32, i32, &str)] = &[
    (libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, "SO_ATTACH_FILTER"),
    (libc::SOL_SOCKET, libc::SO_ATTACH_BPF, "SO_ATTACH_BPF"),
    (
        libc::SOL_SOCKET,
        libc::SO_MAX_PACING_RATE,
        "SO_MAX_PACING_RATE",
    ),
    (libc::SOL_SOCKET, libc::SO_TXTIME, "SO_TXTIME"),
    (libc::IPPROTO_TCP, libc::TCP_CONGESTION, "TCP_CONGESTION"),
    (libc::IPPROTO_TCP, libc::TCP_MD5SIG, "TCP_MD5SIG"),
    (libc::IPPROTO_TCP, TCP_MD5SIG_EXT, "TCP_MD5SIG_EXT"),
    (libc::IPPROTO_TCP, libc::TCP_REPAIR, "TCP_REPAIR"),
    (
        libc::IPPROTO_TCP,
        libc::TCP_REPAIR_QUEUE,
        "TCP_REPAIR_QUEUE",
    ),
    (libc::IPPROTO_TCP, libc::TCP_QUEUE_SEQ, "TCP_QUEUE_SEQ"),
    (
        libc::IPPROTO_TCP,
        libc::TCP_REPAIR_OPTIONS,
        "TCP_REPAIR_OPTIONS",
    ),
    (libc::IPPROTO_TCP, TCP_REPAIR_WINDOW, "TCP_REPAIR_WINDOW"),
    (libc::IPPROTO_TCP, libc::TCP_ULP, "TCP_ULP"),
    (libc::IPPROTO_TCP, TCP_TX_DELAY, "TCP_TX_DELAY"),
    (libc::IPPROTO_TCP, TCP_AO_ADD_KEY, "TCP_AO_ADD_KEY"),
    (libc::IPPROTO_TCP, TCP_AO_DEL_KEY, "TCP_AO_DEL_KEY"),
    (libc::IPPROTO_TCP, TCP_AO_INFO, "TCP_AO_INFO"),
    (libc::IPPROTO_TCP, TCP_AO_REPAIR, "TCP_AO_REPAIR"),
    (libc::IPPROTO_IP, libc::IP_OPTIONS, "IP_OPTIONS"),
    (
        libc::IPPROTO_IP,
        libc::IP_ADD_MEMBERSHIP,
        "IP_ADD_MEMBERSHIP",
    ),
    (
        libc::IPPROTO_IP,
        libc::IP_UNBLOCK_SOURCE,
        "IP_UNBLOCK_SOURCE",
    ),
    (libc::IPPROTO_IP, libc::IP_BLOCK_SOURCE, "IP_BLOCK_SOURCE"),
    (
        libc::IPPROTO_IP,
        libc::IP_ADD_SOURCE_MEMBERSHIP,
        "IP_ADD_SOURCE_MEMBERSHIP",
    ),
    (libc::IPPROTO_IP, IP_MSFILTER, "IP_MSFILTER"),
    (libc::IPPROTO_IP, MCAST_JOIN_GROUP, "MCAST_JOIN_GROUP"),
    (libc::IPPROTO_IP, MCAST_BLOCK_SOURCE, "MCAST_BLOCK_SOURCE"),
    (
        libc::IPPROTO_IP,
        MCAST_UNBLOCK_SOURCE,
        "MCAST_UNBLOCK_SOURCE",
    ),
    (
        libc::IPPROTO_IP,
        MCAST_JOIN_SOURCE_GROUP,
        "MCAST_JOIN_SOURCE_GROUP",
    ),
    (libc::IPPROTO_IP, MCAST_MSFILTER, "MCAST_MSFILTER"),
    (
        libc::IPPROTO_IPV6,
        libc::IPV6_ADD_MEMBERSHIP,
        "IPV6_ADD_MEMBERSHIP",
    ),
    (
        libc::IPPROTO_IPV6,
        libc::IPV6_JOIN_ANYCAST,
        "IPV6_JOIN_ANYCAST",
    ),
    (libc::IPPROTO_IPV6, MCAST_JOIN_GROUP, "MCAST_JOIN_GROUP"),
    (libc::IPPROTO_IPV6, MCAST_BLOCK_SOURCE, "MCAST_BLOCK_SOURCE"),
    (
        libc::IPPROTO_IPV6,
        MCAST_UNBLOCK_SOURCE,
        "MCAST_UNBLOCK_SOURCE",
    ),
    (
        libc::IPPROTO_IPV6,
        MCAST_JOIN_SOURCE_GROUP,
        "MCAST_JOIN_SOURCE_GROUP",
    ),
    (libc::IPPROTO_IPV6, MCAST_MSFILTER, "MCAST_MSFILTER"),
    (libc::IPPROTO_IPV6, libc::IPV6_RTHDR, "IPV6_RTHDR"),
    (libc::IPPROTO_IPV6, libc::IPV6_HOPOPTS, "IPV6_HOPOPTS"),
    (libc::IPPROTO_IPV6, libc::IPV6_DSTOPTS, "IPV6_DSTOPTS"),
    (
        libc::IPPROTO_IPV6,
        libc::IPV6_RTHDRDSTOPTS,
        "IPV6_RTHDRDSTOPTS",
    ),
    (
        libc::IPPROTO_IPV6,
        IPV6_2292PKTOPTIONS,
        "IPV6_2292PKTOPTIONS",
    ),
];

/// A socket option that the filter notifies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SocketOption {
    pub(crate) level: i32,
    pub(crate) name: i32,
}

impl SocketOption {
    /// Returns the option's name if setting it is an attempt.
    pub(crate) fn attempt(self) -> Option<&'static str> {
        if self.level == SOL_MPTCP {
            return Some("MPTCP");
        }
        let mut attempts = ATTEMPTS.iter();
        attempts
            .find(|(level, name, _)| (*level, *name) == (self.level, self.name))
            .map(|(_, _, label)| *label)
    }

    /// Returns the text for the ledger: the option's name, or its number and level.
    pub(crate) fn label(self) -> String {
        self.attempt().map_or_else(
            || format!("option {} of level {}", self.name, self.level),
            str::to_owned,
        )
    }
}
