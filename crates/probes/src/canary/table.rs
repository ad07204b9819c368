//! Probes of the canary as data: each with the tiers that it applies to, and its expected result.

use model::evidence::{Attempt, Outcome};
use nix::errno::Errno;
use nix::sys::socket::SockProtocol;

use super::{ABSTRACT_INSIDE, Kind, Mode, ProbeFn, attempts};

/// Network probe: a call that would send a packet out.
pub struct Route {
    /// Name in the report.
    pub name: &'static str,
    /// System call of the supervisor's record.
    pub syscall: &'static str,
    /// Address family of the record.
    pub family: &'static str,
    /// Destination address of the record.
    pub address: &'static str,
    /// Makes the call, with this destination port and the protocol of its datagram socket.
    pub attempt: fn(u16, Option<SockProtocol>) -> Result<(), Errno>,
    /// Probe that the runner makes outside, to show that the host itself allows the call.
    pub outside: Option<ProbeFn>,
}

/// Any other probe.
pub struct Probe {
    /// Name in the report.
    pub name: &'static str,
    /// Kinds of sandbox that the probe applies to; empty for all.
    kinds: &'static [Kind],
    /// Expected errno; `None` for a probe that must succeed.
    pub errno: Option<Errno>,
    /// System call and family of the supervisor's record, if the supervisor refuses the probe.
    recorded: Option<(&'static str, Option<&'static str>)>,
    /// Probe inside.
    pub inside: ProbeFn,
    /// Probe that the runner makes outside, if harmless.
    pub outside: Option<ProbeFn>,
}

/// Expected result of a probe.
#[derive(Clone, Copy)]
pub struct Expected {
    /// Expected errno; `None` for a probe that must succeed.
    pub errno: Option<Errno>,
    /// Second permitted errno.
    pub instead: Option<Errno>,
    /// Record that the supervisor must have made.
    pub record: Option<ExpectedRecord>,
}

/// Fields that identify an expected record of the supervisor.
#[derive(Clone, Copy)]
pub struct ExpectedRecord {
    /// Name of the system call.
    pub syscall: &'static str,
    /// Address family, as the ledger names it.
    pub family: Option<&'static str>,
    /// Destination address and port; `None` for any.
    pub destination: Option<(&'static str, u16)>,
    /// Answer of the supervisor.
    pub outcome: Outcome,
}

impl ExpectedRecord {
    /// Checks that `attempt` is this record.
    pub fn is(&self, attempt: &Attempt) -> bool {
        let destination = attempt.address.as_deref().zip(attempt.port);
        attempt.syscall == self.syscall
            && attempt.family.as_deref() == self.family
            && attempt.outcome == self.outcome
            && (self.destination.is_none() || destination == self.destination)
    }

    /// Checks that `attempt` is the socket(2) before the recorded call.
    pub fn is_socket(&self, attempt: &Attempt) -> bool {
        self.destination.is_some()
            && attempt.syscall == "socket"
            && attempt.family.as_deref() == self.family
    }
}

/// Errno of a network with loopback only.
const UNREACHABLE: Errno = Errno::ENETUNREACH;
/// Errno of IPv6 without an address on loopback, as in Docker's networks.
const NO_ADDRESS: Errno = Errno::EADDRNOTAVAIL;

/// Network probes, in the order of the report.
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
    // The network namespace, or Landlock's scope in a container's network.
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
    // The new root and its mounts, or Landlock in a container's root.
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
    // Protection of init.
    fails("init-memory", Errno::EACCES, attempts::init_memory).only(WITH_PROC),
    fails("init-memory", Errno::ENOENT, attempts::init_memory).only(WITHOUT_PROC),
];

const OWN_ROOT: &[Kind] = &[Kind::Namespace, Kind::NamespaceWithoutProc];
const SHARED: &[Kind] = &[Kind::Inherited];
const WITH_PROC: &[Kind] = &[Kind::Namespace, Kind::Inherited];
const WITHOUT_PROC: &[Kind] = &[Kind::NamespaceWithoutProc];

/// Probes of a kind of sandbox, in the order of the table.
pub fn probes(kind: Kind) -> impl Iterator<Item = &'static Probe> {
    PROBES
        .iter()
        .filter(move |probe| probe.kinds.is_empty() || probe.kinds.contains(&kind))
}

const fn succeeds(name: &'static str, inside: ProbeFn) -> Probe {
    Probe {
        name,
        kinds: &[],
        errno: None,
        recorded: None,
        inside,
        outside: None,
    }
}

const fn fails(name: &'static str, errno: Errno, inside: ProbeFn) -> Probe {
    Probe {
        errno: Some(errno),
        ..succeeds(name, inside)
    }
}

impl Probe {
    const fn outside(self, attempt: ProbeFn) -> Self {
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

    /// Part that must refuse the probe.
    pub fn mode(&self) -> Mode {
        if self.recorded.is_some() {
            Mode::Answered
        } else {
            Mode::Continued
        }
    }

    /// Expected result.
    pub fn expected(&self) -> Expected {
        let record = self.recorded.zip(self.errno);
        Expected {
            errno: self.errno,
            instead: None,
            record: record.map(|((syscall, family), errno)| ExpectedRecord {
                syscall,
                family,
                destination: None,
                outcome: Outcome::Denied(errno),
            }),
        }
    }
}

impl Route {
    /// Expected result in this mode. In a container's network, an answered datagram probe is refused its socket.
    pub fn expected(&self, kind: Kind, mode: Mode, stub_port: u16) -> Expected {
        let datagram = self.syscall == "sendto";
        let (errno, record) = match mode {
            Mode::Answered if datagram && kind == Kind::Inherited => (
                Errno::EACCES,
                ExpectedRecord {
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
        // Loopback of a new network namespace has IPv6; a container's network may lack it.
        let may_lack_address =
            kind == Kind::Inherited && mode == Mode::Continued && self.family == "inet6";
        Expected {
            errno: Some(errno),
            instead: may_lack_address.then_some(NO_ADDRESS),
            record: Some(record),
        }
    }

    fn record(&self, mode: Mode, stub_port: u16, outcome: Outcome) -> ExpectedRecord {
        ExpectedRecord {
            syscall: self.syscall,
            family: Some(self.family),
            destination: Some((self.address, mode.port(stub_port))),
            outcome,
        }
    }
}
