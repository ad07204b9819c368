//! Sockets that the client may make, by family, type and protocol. All three are registers of socket(2).

use nix::errno::Errno;

/// Bits of the socket type; the other bits are SOCK_NONBLOCK and SOCK_CLOEXEC (socket(2)).
const TYPE_MASK: u64 = 0xF;

/// Arguments of socket(2). All are ints: the kernel ignores the high half of each register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Socket {
    pub(super) family: i32,
    pub(super) kind: i32,
    pub(super) protocol: i32,
}

impl Socket {
    pub(super) fn from_registers(arguments: &[u64; 6]) -> Self {
        let [family, kind, protocol, ..] = *arguments;
        Self {
            family: family as i32,
            kind: (kind & TYPE_MASK) as i32,
            protocol: protocol as i32,
        }
    }

    /// Errno of a refused socket; `None` if the socket is allowed.
    ///
    /// Rules for TCP do not cover MPTCP and SCTP. Network namespaces do not confine vsock. Raw and packet sockets read
    /// and forge foreign packets. NETLINK_ROUTE is allowed, since getaddrinfo(3) lists addresses with it; changes
    /// need capabilities.
    pub(super) fn refusal(self) -> Option<Errno> {
        match (self.family, self.kind, self.protocol) {
            (libc::AF_UNIX, _, _) => None,
            (libc::AF_INET | libc::AF_INET6, libc::SOCK_STREAM, 0 | libc::IPPROTO_TCP) => None,
            (libc::AF_INET | libc::AF_INET6, libc::SOCK_DGRAM, 0 | libc::IPPROTO_UDP) => None,
            (libc::AF_INET | libc::AF_INET6, libc::SOCK_RAW, _) => Some(Errno::EPERM),
            (libc::AF_INET | libc::AF_INET6, _, _) => Some(Errno::EPROTONOSUPPORT),
            (libc::AF_NETLINK, _, libc::NETLINK_ROUTE) => None,
            (libc::AF_NETLINK, _, _) => Some(Errno::EPROTONOSUPPORT),
            _ => Some(Errno::EAFNOSUPPORT),
        }
    }

    /// Checks for an internet socket that sends messages without a connection.
    pub(super) fn is_datagram(self) -> bool {
        matches!(self.family, libc::AF_INET | libc::AF_INET6) && self.kind == libc::SOCK_DGRAM
    }

    /// Checks for a unix socket that sends only to its peer. A raw unix socket is a datagram socket (unix_create in
    /// net/unix/af_unix.c).
    pub(super) fn stays_connected(self) -> bool {
        !matches!(self.kind, libc::SOCK_DGRAM | libc::SOCK_RAW)
    }

    /// Name of the type: `stream`, `dgram`, …, or its number.
    pub(super) fn kind_name(self) -> String {
        match self.kind {
            libc::SOCK_STREAM => "stream".to_owned(),
            libc::SOCK_DGRAM => "dgram".to_owned(),
            libc::SOCK_RAW => "raw".to_owned(),
            libc::SOCK_SEQPACKET => "seqpacket".to_owned(),
            other => other.to_string(),
        }
    }
}

/// Name of an address family: `inet`, `unix`, …, or its number.
pub(super) fn family_name(family: i32) -> String {
    match family {
        libc::AF_UNSPEC => "unspec".to_owned(),
        libc::AF_UNIX => "unix".to_owned(),
        libc::AF_INET => "inet".to_owned(),
        libc::AF_INET6 => "inet6".to_owned(),
        libc::AF_NETLINK => "netlink".to_owned(),
        libc::AF_PACKET => "packet".to_owned(),
        libc::AF_VSOCK => "vsock".to_owned(),
        libc::AF_ALG => "alg".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(family: i32, kind: i32, protocol: i32) -> Option<Errno> {
        Socket::from_registers(&[family as u64, kind as u64, protocol as u64, 0, 0, 0]).refusal()
    }

    #[test]
    fn tcp_and_udp_are_allowed_whatever_the_flags() {
        let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        for family in [libc::AF_INET, libc::AF_INET6] {
            for (kind, protocol) in [(libc::SOCK_STREAM, 6), (libc::SOCK_DGRAM, 17)] {
                assert_eq!(refusal(family, kind, 0), None);
                assert_eq!(refusal(family, kind | flags, protocol), None);
            }
        }
    }

    #[test]
    fn other_protocols_over_internet_sockets_are_refused() {
        for family in [libc::AF_INET, libc::AF_INET6] {
            for protocol in [
                libc::IPPROTO_SCTP,
                libc::IPPROTO_MPTCP,
                libc::IPPROTO_DCCP,
                libc::IPPROTO_UDP,
            ] {
                assert_eq!(
                    refusal(family, libc::SOCK_STREAM, protocol),
                    Some(Errno::EPROTONOSUPPORT)
                );
            }
            for protocol in [
                libc::IPPROTO_ICMP,
                libc::IPPROTO_ICMPV6,
                libc::IPPROTO_UDPLITE,
                libc::IPPROTO_TCP,
            ] {
                assert_eq!(
                    refusal(family, libc::SOCK_DGRAM, protocol),
                    Some(Errno::EPROTONOSUPPORT)
                );
            }
            for protocol in [0, 1, 255] {
                assert_eq!(
                    refusal(family, libc::SOCK_RAW, protocol),
                    Some(Errno::EPERM)
                );
                assert_eq!(
                    refusal(family, libc::SOCK_RAW | libc::SOCK_CLOEXEC, protocol),
                    Some(Errno::EPERM)
                );
            }
            assert_eq!(
                refusal(family, libc::SOCK_SEQPACKET, libc::IPPROTO_SCTP),
                Some(Errno::EPROTONOSUPPORT)
            );
        }
    }

    #[test]
    fn netlink_is_for_routes_only() {
        assert_eq!(
            refusal(
                libc::AF_NETLINK,
                libc::SOCK_RAW | libc::SOCK_CLOEXEC,
                libc::NETLINK_ROUTE
            ),
            None
        );
        for protocol in 1..32 {
            assert_eq!(
                refusal(libc::AF_NETLINK, libc::SOCK_RAW, protocol),
                Some(Errno::EPROTONOSUPPORT)
            );
        }
    }

    #[test]
    fn every_other_family_is_refused() {
        let allowed = [
            libc::AF_UNIX,
            libc::AF_INET,
            libc::AF_INET6,
            libc::AF_NETLINK,
        ];
        for family in (0..64).filter(|family| !allowed.contains(family)) {
            for kind in [libc::SOCK_STREAM, libc::SOCK_DGRAM, libc::SOCK_RAW] {
                assert_eq!(
                    refusal(family, kind, 0),
                    Some(Errno::EAFNOSUPPORT),
                    "family {family}"
                );
            }
        }
    }

    #[test]
    fn the_high_half_of_a_register_changes_nothing() {
        let high = 1_u64 << 32;
        let socket = Socket::from_registers(&[libc::AF_PACKET as u64 | high, 3, 0, 0, 0, 0]);
        assert_eq!(socket.refusal(), Some(Errno::EAFNOSUPPORT));
        let socket =
            Socket::from_registers(&[libc::AF_INET as u64 | high, 1 | high, high, 0, 0, 0]);
        assert_eq!(socket.refusal(), None);
    }
}
