//! Destination of a ledger entry, as text and as an address, without judgement.

use std::net::{IpAddr, Ipv4Addr};

use super::{Attempt, AttemptKind, Outcome};
use crate::escape::visible;

/// Calls with a destination address. The other calls create a socket or listen on one.
const DIRECTED: [&str; 4] = ["connect", "sendto", "sendmsg", "sendmmsg"];

/// Address of the resolver inside the sandbox: the first name server of its resolv.conf(5).
pub const RESOLVER: (IpAddr, u16) = (IpAddr::V4(Ipv4Addr::LOCALHOST), 53);

/// Stands for the address of a call whose memory could not be read.
pub const UNREADABLE: &str = "unreadable";

/// First words of the name of a limit.
const LIMIT: &str = "limit of ";

impl Attempt {
    /// Returns true if the call names a destination: connect(2), or a send with an address.
    pub fn has_destination(&self) -> bool {
        DIRECTED.contains(&&*self.syscall)
    }

    /// Returns the IP address; an IPv4-mapped IPv6 address gives the IPv4 address.
    pub fn ip(&self) -> Option<IpAddr> {
        if !self.is_internet() {
            return None;
        }
        let address: IpAddr = self.address.as_deref()?.parse().ok()?;
        Some(address.to_canonical())
    }

    /// Returns true if the destination is the resolver of the run.
    pub fn is_to_resolver(&self) -> bool {
        self.ip().zip(self.port) == Some(RESOLVER)
    }

    /// Returns true if the family is `inet` or `inet6`.
    pub fn is_internet(&self) -> bool {
        matches!(self.family.as_deref(), Some("inet" | "inet6"))
    }

    /// Returns the attempt as a rule spells it, with the names asked for there: `inet:192.0.2.53:53 for a.example`.
    /// Hostile.
    pub fn target(&self) -> String {
        match self.names.as_slice() {
            [] => self.rule(),
            names => format!("{} for {}", self.rule(), names.join(", ")),
        }
    }

    /// Returns the attempt as a rule of a policy spells it: its destination, `inet:192.0.2.1:443`, or else the call with
    /// its parameters, `socket packet raw protocol 3`. Paths are escaped as in reports.
    pub fn rule(&self) -> String {
        let place = self.place();
        if let Some(place) = &place
            && self.has_destination()
            && self.family.is_some()
            && self.address.is_some()
        {
            return place.clone();
        }
        let kind = self.socket_type.clone();
        let protocol = self.protocol.map(|number| format!("protocol {number}"));
        let words = [Some(self.syscall.to_string()), place, kind, protocol];
        Vec::from_iter(words.into_iter().flatten()).join(" ")
    }

    fn place(&self) -> Option<String> {
        let (family, address) = match (self.family.as_deref(), &self.address) {
            (Some(family), Some(address)) => (family, address),
            (family, address) => return family.or(address.as_deref()).map(str::to_owned),
        };
        let port = self
            .port
            .map_or_else(String::new, |port| format!(":{port}"));
        Some(match self.ip() {
            // An IPv4-mapped address is an IPv4 address.
            Some(IpAddr::V4(address)) => format!("inet:{address}{port}"),
            Some(IpAddr::V6(address)) => format!("inet6:[{address}]{port}"),
            None => format!("{family}:{}{port}", visible(address)),
        })
    }

    /// Returns true if the memory of the call could not be read.
    pub fn is_unreadable(&self) -> bool {
        self.family.is_none() && self.address.as_deref() == Some(UNREADABLE)
    }

    /// Returns the limit of the sandbox that the call reached, as the supervisor names it.
    pub fn reached_limit(&self) -> Option<&str> {
        let limit = self.address.as_deref()?;
        let is_met = self.kind == AttemptKind::Setup
            && self.family.is_none()
            && matches!(self.outcome, Outcome::Denied(_))
            && limit.starts_with(LIMIT);
        is_met.then_some(limit)
    }

    /// Returns true if the call was let through although it leaves loopback. An unreadable destination counts as
    /// leaving.
    ///
    /// The unspecified address is loopback as a destination (ip_route_output_key_hash in net/ipv4/route.c, and
    /// tcp_v6_connect in net/ipv6/tcp_ipv6.c).
    pub fn leaves_loopback(&self) -> bool {
        let stays = self
            .ip()
            .is_some_and(|ip| ip.is_loopback() || ip.is_unspecified());
        self.outcome == Outcome::Allowed && self.has_destination() && self.is_internet() && !stays
    }
}

impl Outcome {
    /// Returns `denied ENETUNREACH` or `let through`.
    pub fn words(self) -> String {
        match self {
            Self::Allowed => "let through".to_owned(),
            Self::Denied(errno) => format!("denied {errno:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use nix::errno::Errno;

    use super::*;
    use crate::evidence::fixture::{attempt, connect};

    #[test]
    fn a_destination_is_spelt_as_in_a_profile() {
        for (family, address, port, target) in [
            ("inet", "192.0.2.1", Some(443), "inet:192.0.2.1:443"),
            ("inet6", "2001:db8::1", Some(53), "inet6:[2001:db8::1]:53"),
            ("unix", "/run/x", None, "unix:/run/x"),
            ("unix", "@bus", None, "unix:@bus"),
        ] {
            assert_eq!(connect(family, address, port).target(), target);
        }
        assert_eq!(attempt("sendto").target(), "sendto");
        let mut query = connect("inet", "192.0.2.53", Some(53));
        query.names = vec!["a.example".to_owned(), "b.example".to_owned()];
        assert_eq!(
            query.target(),
            "inet:192.0.2.53:53 for a.example, b.example"
        );
        let mut unread = attempt("sendmsg");
        unread.address = Some("unreadable".to_owned());
        assert_eq!(unread.target(), "sendmsg unreadable");
    }

    #[test]
    fn a_call_without_a_destination_is_named_with_what_it_asked_for() {
        let mut socket = attempt("socket");
        socket.family = Some("packet".to_owned());
        socket.socket_type = Some("raw".to_owned());
        socket.protocol = Some(3);
        assert_eq!(socket.target(), "socket packet raw protocol 3");
        let mut bind = connect("inet", "0.0.0.0", Some(8080));
        bind.syscall = "bind".into();
        assert_eq!(bind.target(), "bind inet:0.0.0.0:8080");
        assert_eq!(attempt("io_uring_setup").target(), "io_uring_setup");
    }

    #[test]
    fn a_path_of_the_client_is_no_limit() {
        let denied = |attempt| Attempt {
            kind: AttemptKind::Setup,
            outcome: Outcome::Denied(Errno::ENFILE),
            ..attempt
        };
        let mut pipe = denied(attempt("pipe2"));
        pipe.address = Some("limit of 100000 pipes".to_owned());
        assert_eq!(pipe.reached_limit(), Some("limit of 100000 pipes"));
        let unix = denied(connect("unix", "limit of 1 pipe", None));
        assert_eq!(unix.reached_limit(), None);
        assert_eq!(denied(attempt("pipe2")).reached_limit(), None);
    }

    #[test]
    fn a_mapped_address_is_the_one_that_it_stands_for() {
        let mapped = connect("inet6", "::ffff:192.0.2.1", Some(443));
        assert_eq!(mapped.ip(), "192.0.2.1".parse().ok());
        assert_eq!(mapped.rule(), "inet:192.0.2.1:443");
        assert_eq!(connect("unix", "127.0.0.1", None).ip(), None);
    }
}
