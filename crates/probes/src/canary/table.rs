//! The canaries as data: what is tried, in which tier, and what must come of it.

use model::evidence::{Attempt, Outcome};
use nix::errno::Errno;
use nix::sys::socket::SockProtocol;

use super::{ABSTRACT_INSIDE, Kind, Mode, Try, attempts};

/// A way out of the network.
pub struct Route {
    pub name: &'static str,
    /// Call, family and address by which the supervisor's record is found.
    pub syscall: &'static str,
    pub family: &'static str,
    pub address: &'static str,
    /// Port, and the protocol of its datagram socket.
    pub attempt: fn(u16, Option<SockProtocol>) -> Result<(), Errno>,
    pub outside: Option<Try>,
}

/// One other attempt.
pub struct Probe {
    pub name: &'static str,
    /// Where it means something; nothing: everywhere.
    kinds: &'static [Kind],
    /// `None`: it must succeed.
    pub errno: Option<Errno>,
    /// The call and the family with which the supervisor records its refusal, where it is the one to refuse.
    recorded: Option<(&'static str, Option<&'static str>)>,
    pub inside: Try,
    /// The same attempt made by the runner outside, where that is harmless.
    pub outside: Option<Try>,
}

/// What must come of an attempt.
#[derive(Clone, Copy)]
pub struct Expected {
    /// `None`: it must succeed.
    pub errno: Option<Errno>,
    /// What may come instead.
    pub instead: Option<Errno>,
    /// What the supervisor must have written down.
    pub record: Option<LedgerEntry>,
}

/// An entry of the supervisor's, as far as it is looked for.
#[derive(Clone, Copy)]
pub struct LedgerEntry {
    pub syscall: &'static str,
    pub family: Option<&'static str>,
    pub destination: Option<(&'static str, u16)>,
    pub outcome: Outcome,
}

impl LedgerEntry {
    pub fn is(&self, attempt: &Attempt) -> bool {
        let destination = attempt.address.as_deref().zip(attempt.port);
        attempt.syscall == self.syscall
            && attempt.family.as_deref() == self.family
            && attempt.outcome == self.outcome
            && (self.destination.is_none() || destination == self.destination)
    }

    /// Checks for the entry of the socket on which the recorded call is made.
    pub fn is_socket(&self, attempt: &Attempt) -> bool {
        self.destination.is_some()
            && attempt.syscall == "socket"
            && attempt.family.as_deref() == self.family
    }
}

/// What a network that has loopback only says of each: there is no way to there.
const UNREACHABLE: Errno = Errno::ENETUNREACH;
/// What it says of IPv6 where that is switched off on loopback, as Docker does: there is no address to start from.
const NO_ADDRESS: Errno = Errno::EADDRNOTAVAIL;

#[rustfmt::skip]
pub const ROUTES: &[Route] = &[
    Route { name: "tcp4", syscall: "connect", family: "inet", address: "192.0.2.1", attempt: attempts::tcp4, outside: None },
    Route { name: "tcp6", syscall: "connect", family: "inet6", address: "2001:db8::1", attempt: attempts::tcp6, outside: Some(attempts::any_ipv6) },
    Route { name: "udp4", syscall: "sendto", family: "inet", address: "192.0.2.1", attempt: attempts::udp4, outside: None },
    Route { name: "udp6", syscall: "sendto", family: "inet6", address: "2001:db8::1", attempt: attempts::udp6, outside: Some(attempts::any_ipv6) },
    Route { name: "broadcast", syscall: "sendto", family: "inet", address: "255.255.255.255", attempt: attempts::broadcast, outside: None },
    Route { name: "multicast", syscall: "sendto", family: "inet", address: "224.0.0.251", attempt: attempts::multicast, outside: None },
];

#[rustfmt::skip]
const PROBES: &[Probe] = &[
    succeeds("home", attempts::write_home),
    // The network namespace; where it is shared, Landlock's scope.
    fails("abstract-socket-outside", Errno::ECONNREFUSED, attempts::abstract_outside).outside(attempts::abstract_outside).only(OWN_ROOT),
    fails("abstract-socket-outside", Errno::EPERM, attempts::abstract_outside).outside(attempts::abstract_outside).only(SHARED),
    // The supervisor.
    fails("raw-socket", Errno::EPERM, attempts::raw).outside(attempts::raw).answered("socket", Some("inet")),
    fails("packet-socket", Errno::EAFNOSUPPORT, attempts::packet).outside(attempts::packet_is_possible).answered("socket", Some("packet")),
    fails("vsock", Errno::EAFNOSUPPORT, attempts::vsock).outside(attempts::vsock).answered("socket", Some("vsock")),
    fails("alg-socket", Errno::EAFNOSUPPORT, attempts::alg).outside(attempts::alg_is_asked).answered("socket", Some("alg")),
    fails("bluetooth-socket", Errno::EAFNOSUPPORT, attempts::bluetooth).outside(attempts::bluetooth_is_asked).answered("socket", Some("31")),
    fails("xdp-socket", Errno::EAFNOSUPPORT, attempts::xdp).outside(attempts::xdp_is_asked).answered("socket", Some("44")),
    fails("netlink-socket", Errno::EPROTONOSUPPORT, attempts::netlink).outside(attempts::netlink_is_asked).answered("socket", Some("netlink")),
    fails("mptcp-socket", Errno::EPROTONOSUPPORT, attempts::mptcp).outside(attempts::mptcp_is_asked).answered("socket", Some("inet")),
    fails("io-uring", Errno::ENOSYS, attempts::io_uring).outside(attempts::io_uring).answered("io_uring_setup", None),
    #[cfg(target_arch = "x86_64")]
    fails("i386", Errno::ENOSYS, attempts::i386).outside(attempts::i386).answered("i386", None),
    #[cfg(target_arch = "x86_64")]
    fails("x32", Errno::ENOSYS, attempts::x32).outside(attempts::x32).answered("x32", None),
    fails("unix-socket", Errno::EACCES, attempts::unix).outside(attempts::unix).answered("socket", Some("unix")).only(SHARED),
    fails("fast-open", Errno::EOPNOTSUPP, attempts::fast_open).answered("sendto", Some("inet")).only(SHARED),
    fails("listener", Errno::EACCES, attempts::listener).outside(attempts::listener).answered("listen", None).only(SHARED),
    // The filter.
    fails("ptrace", Errno::EPERM, attempts::trace_init),
    fails("unshare", Errno::EPERM, attempts::new_namespace),
    fails("setns", Errno::EPERM, attempts::join_namespace),
    fails("mount", Errno::EPERM, attempts::mount_something),
    fails("terminal-input", Errno::EPERM, attempts::terminal_input),
    // The new root and its mounts; where there is none, Landlock.
    fails("host-directory", Errno::ENOENT, attempts::outside_directory).outside(attempts::outside_directory).only(OWN_ROOT),
    fails("host-directory", Errno::EACCES, attempts::outside_directory).outside(attempts::outside_directory).only(SHARED),
    fails("write-root", Errno::EROFS, attempts::outside_file).only(OWN_ROOT),
    fails("write-outside", Errno::EACCES, attempts::outside_file).only(SHARED),
    fails("pathname-socket", Errno::ENOENT, attempts::path_socket).outside(attempts::path_socket).only(OWN_ROOT),
    // Landlock.
    fails("landlock-read", Errno::EACCES, attempts::read_unruled),
    fails(ABSTRACT_INSIDE, Errno::EPERM, attempts::abstract_inside),
    fails("neighbour", Errno::EACCES, attempts::neighbour).outside(attempts::neighbour).only(SHARED),
    fails("signal", Errno::EPERM, attempts::signal_init).only(SHARED),
    // Init is out of reach.
    fails("init-memory", Errno::EACCES, attempts::init_memory).only(WITH_PROC),
    fails("init-memory", Errno::ENOENT, attempts::init_memory).only(WITHOUT_PROC),
];

const OWN_ROOT: &[Kind] = &[Kind::Namespace, Kind::NamespaceWithoutProc];
const SHARED: &[Kind] = &[Kind::Inherited];
const WITH_PROC: &[Kind] = &[Kind::Namespace, Kind::Inherited];
const WITHOUT_PROC: &[Kind] = &[Kind::NamespaceWithoutProc];

/// The probes of a kind of sandbox, in the order of the table.
pub fn probes(kind: Kind) -> impl Iterator<Item = &'static Probe> {
    PROBES
        .iter()
        .filter(move |probe| probe.kinds.is_empty() || probe.kinds.contains(&kind))
}

const fn succeeds(name: &'static str, inside: Try) -> Probe {
    Probe {
        name,
        kinds: &[],
        errno: None,
        recorded: None,
        inside,
        outside: None,
    }
}

const fn fails(name: &'static str, errno: Errno, inside: Try) -> Probe {
    Probe {
        errno: Some(errno),
        ..succeeds(name, inside)
    }
}

impl Probe {
    const fn outside(self, attempt: Try) -> Self {
        Self {
            outside: Some(attempt),
            ..self
        }
    }

    const fn answered(self, syscall: &'static str, family: Option<&'static str>) -> Self {
        Self {
            recorded: Some((syscall, family)),
            ..self
        }
    }

    const fn only(self, kinds: &'static [Kind]) -> Self {
        Self { kinds, ..self }
    }

    pub fn mode(&self) -> Mode {
        if self.recorded.is_some() {
            Mode::Answered
        } else {
            Mode::Continued
        }
    }

    pub fn expected(&self) -> Expected {
        let record = self.recorded.zip(self.errno);
        Expected {
            errno: self.errno,
            instead: None,
            record: record.map(|((syscall, family), errno)| LedgerEntry {
                syscall,
                family,
                destination: None,
                outcome: Outcome::Denied(errno),
            }),
        }
    }
}

impl Route {
    /// In a network that is shared there are no datagram sockets: a canary that is answered gets none.
    pub fn expected(&self, kind: Kind, mode: Mode, stub_port: u16) -> Expected {
        let datagram = self.syscall == "sendto";
        let (errno, record) = match mode {
            Mode::Answered if datagram && kind == Kind::Inherited => (
                Errno::EACCES,
                LedgerEntry {
                    syscall: "socket",
                    destination: None,
                    ..self.record(mode, stub_port, Outcome::Denied(Errno::EACCES))
                },
            ),
            Mode::Answered => (
                UNREACHABLE,
                self.record(mode, stub_port, Outcome::Denied(UNREACHABLE)),
            ),
            Mode::Continued => (UNREACHABLE, self.record(mode, stub_port, Outcome::Allowed)),
        };
        // The namespace's own loopback has IPv6; how a shared network was set up is not ours to say.
        let may_lack_address =
            kind == Kind::Inherited && mode == Mode::Continued && self.family == "inet6";
        Expected {
            errno: Some(errno),
            instead: may_lack_address.then_some(NO_ADDRESS),
            record: Some(record),
        }
    }

    fn record(&self, mode: Mode, stub_port: u16, outcome: Outcome) -> LedgerEntry {
        LedgerEntry {
            syscall: self.syscall,
            family: Some(self.family),
            destination: Some((self.address, mode.port(stub_port))),
            outcome,
        }
    }
}
