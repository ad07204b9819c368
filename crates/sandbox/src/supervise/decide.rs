//! What becomes of a call: pure, from what the call is about to its entry in the ledger and its answer.
//!
//! Non-loopback is answered at once with the errno that the namespace would give. Loopback and unix addresses go
//! on: what they lead to is inside. An answer that lets a call through rests on the namespace, never on memory
//! that was read.
//!
//! Where the network is the container's, others are on loopback too: only the stub is reached, no datagram or unix
//! socket is made, and nobody listens. What is refused by what memory holds is refused by Landlock as well, or finds
//! no such socket to be called on.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use model::evidence::{AttemptKind, Outcome};
use model::text::printable;
use nix::errno::Errno;
use sys::notify::Answer;

use super::StubAddresses;
use super::call::{Address, Call, Destination};
use super::sockets::{Socket, family_name};

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

impl Decision {
    /// Refuses the call at a limit, which a further line of the ledger names.
    pub(super) fn over(self, errno: Errno, limit: String) -> Self {
        let mut denied = self.denied(errno);
        denied.lines.push(Line {
            address: Some(limit),
            ..setup(Outcome::Denied(errno))
        });
        denied
    }

    /// Refuses the call with this errno.
    pub(super) fn denied(self, errno: Errno) -> Self {
        let lines = self.lines.into_iter().map(|line| Line {
            outcome: Outcome::Denied(errno),
            ..line
        });
        Self {
            lines: lines.collect(),
            answer: Answer::Refuse(errno),
            to_stub: Vec::new(),
        }
    }
}

/// What a decision depends on beside the call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Context {
    pub(super) served: StubAddresses,
    /// The way to the stub is no attempt.
    pub(super) stub_is_known: bool,
    /// It is our canaries that call. What they mark is to be refused by the kernel itself, and goes on.
    pub(super) canaries: bool,
    /// Whether unix sockets may be made. A read-only directory of the host may hold sockets of its daemons, and
    /// neither the mount nor Landlock (before ABI 9) keeps anybody from connecting to them.
    pub(super) unix_sockets: bool,
    /// The network is the container's, and its processes are neighbours.
    pub(super) shared_network: bool,
}

impl Context {
    /// The canaries name the protocol of a socket that is to be made, and the stub's port or a neighbour's.
    fn is_marked(&self, address: SocketAddr) -> bool {
        let neighbour = self.shared_network && address.ip().is_loopback();
        self.canaries && (neighbour || address.port() == self.served.stub.port())
    }
}

/// libc asks the name service cache before anything else; that it is not there is no finding.
const NAME_SERVICE_CACHE: &[u8] = b"/var/run/nscd/socket";

/// Decides.
pub(super) fn decide(call: &Call, ground: Context) -> Decision {
    match call {
        Call::Socket(socket) => judge_socket(*socket, ground),
        Call::Pair(pair) => judge_pair(*pair, ground),
        Call::FastOpen(destinations) if ground.shared_network => {
            refuse_fast_open(destinations, ground)
        }
        Call::Urgent(destinations) => refuse_urgent(destinations, ground),
        Call::To(destinations) | Call::FastOpen(destinations) => {
            judge_destinations(destinations, ground)
        }
        Call::Connected
        | Call::Execute { .. }
        | Call::SystemV(_)
        | Call::Pipe
        | Call::LandlockRule
        | Call::LandlockDomain
        | Call::MemoryFile
        | Call::SharedMapping { .. } => silent(Answer::Continue),
        Call::Bind(address) => judge_bind(address, ground),
        Call::Listen { .. } if ground.shared_network => {
            refuse(attempt(Outcome::Denied(Errno::EACCES)), Errno::EACCES)
        }
        Call::Listen { .. } => one(attempt(Outcome::Allowed), Answer::Continue),
        Call::IoUring => refuse(attempt(Outcome::Denied(Errno::ENOSYS)), Errno::ENOSYS),
        Call::SetOption(option) => {
            let outcome = Outcome::Denied(Errno::ENOPROTOOPT);
            let line = Line {
                address: Some(option.label()),
                ..option
                    .attempt()
                    .map_or_else(|| setup(outcome), |_| attempt(outcome))
            };
            refuse(line, Errno::ENOPROTOOPT)
        }
        Call::Dumpable { on: false } => one(setup(Outcome::Allowed), Answer::ReturnZero),
        Call::Dumpable { on: true } => silent(Answer::Continue),
        Call::Foreign(call) => {
            let line = Line {
                address: Some(call.name.to_owned()),
                ..attempt(Outcome::Denied(Errno::ENOSYS))
            };
            refuse(line, Errno::ENOSYS)
        }
        Call::Unreadable => {
            let line = Line {
                address: Some("unreadable".to_owned()),
                ..attempt(Outcome::Denied(Errno::EACCES))
            };
            refuse(line, Errno::EACCES)
        }
    }
}

fn judge_socket(socket: Socket, ground: Context) -> Decision {
    let is_unix = socket.family == libc::AF_UNIX;
    let shut = if is_unix {
        !ground.unix_sockets
    } else {
        ground.shared_network && socket.is_datagram()
    };
    let marked = ground.canaries && socket.protocol != 0;
    let refusal = if shut && !marked {
        socket.refusal().or(Some(Errno::EACCES))
    } else {
        socket.refusal()
    };
    let base = match refusal {
        // libc asks for the name service cache over such a socket; this one reaches nothing whoever asked.
        Some(errno) if is_unix => setup(Outcome::Denied(errno)),
        Some(errno) => attempt(Outcome::Denied(errno)),
        None => setup(Outcome::Allowed),
    };
    let line = with_socket(base, socket);
    one(line, refusal.map_or(Answer::Continue, Answer::Refuse))
}

/// A pair of another family than unix is refused, and one of unix datagram sockets where those of others could be
/// reached.
fn judge_pair(pair: Socket, ground: Context) -> Decision {
    let is_unix = pair.family == libc::AF_UNIX;
    if is_unix && (ground.unix_sockets || pair.stays_connected()) {
        return silent(Answer::Continue);
    }
    let (base, errno) = if is_unix {
        (setup(Outcome::Denied(Errno::EACCES)), Errno::EACCES)
    } else {
        (
            attempt(Outcome::Denied(Errno::EAFNOSUPPORT)),
            Errno::EAFNOSUPPORT,
        )
    };
    refuse(with_socket(base, pair), errno)
}

fn with_socket(line: Line, socket: Socket) -> Line {
    Line {
        family: Some(family_name(socket.family)),
        socket_type: Some(socket.kind_name()),
        protocol: Some(socket.protocol as u32),
        ..line
    }
}

/// Landlock does not see the connection that such a message opens.
fn refuse_fast_open(destinations: &[Destination], ground: Context) -> Decision {
    let mut refused = refuse_message(destinations, ground);
    if refused.lines.is_empty() {
        refused.lines.push(attempt(Outcome::Denied(NOT_SUPPORTED)));
    }
    refused
}

/// The place of an urgent byte says something that no byte of the stream does, so the journal would lack it.
fn refuse_urgent(destinations: &[Destination], ground: Context) -> Decision {
    let mut refused = refuse_message(destinations, ground);
    refused.lines.push(Line {
        address: Some("MSG_OOB".to_owned()),
        ..attempt(Outcome::Denied(NOT_SUPPORTED))
    });
    refused
}

/// Errno of a flag that a socket does not have (send(2)).
const NOT_SUPPORTED: Errno = Errno::EOPNOTSUPP;

fn refuse_message(destinations: &[Destination], ground: Context) -> Decision {
    let lines = destinations
        .iter()
        .map(|destination| judge_destination(destination, ground, Some(NOT_SUPPORTED)));
    Decision {
        lines: lines.collect(),
        ..silent(Answer::Refuse(NOT_SUPPORTED))
    }
}

/// A call to several destinations is let through as a whole or not at all.
fn judge_destinations(destinations: &[Destination], ground: Context) -> Decision {
    let refused = destinations.iter().find_map(|destination| {
        refusal(&destination.address, ground).or_else(|| refusal_of_state(destination, ground))
    });
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
        answer: refused.map_or(Answer::Continue, Answer::Refuse),
        to_stub: if refused.is_none() {
            to_stub
        } else {
            Vec::new()
        },
    }
}

fn judge_destination(destination: &Destination, ground: Context, refused: Option<Errno>) -> Line {
    let outcome = refused.map_or(Outcome::Allowed, Outcome::Denied);
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

fn is_setup(destination: &Destination, ground: Context) -> bool {
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

/// The errno with which a destination is answered here, unless the kernel is to be asked: where it is not on this
/// host, what a network that has loopback only would say.
fn refusal(address: &Address, ground: Context) -> Option<Errno> {
    match address {
        Address::Inet(address) if ground.is_marked(canonical(*address)) => None,
        Address::Inet(inet) => {
            let inside = canonical(*inet).ip();
            if !inside.is_loopback() && !inside.is_unspecified() {
                Some(Errno::ENETUNREACH)
            } else {
                let foreign = ground.shared_network && !reaches(address, ground.served);
                foreign.then_some(Errno::EACCES)
            }
        }
        Address::Other { .. } => Some(Errno::ENETUNREACH),
        // Only a pair can be asked to, and that is connected to itself.
        Address::Path(_) | Address::Abstract(_) | Address::Unnamed => {
            (ground.shared_network && !ground.canaries).then_some(Errno::EACCES)
        }
        Address::Netlink { .. } | Address::Unspecified => None,
    }
}

/// Errno for a connect(2) that changes a socket and leads nowhere, where the supervisor makes all connections:
/// AF_UNSPEC would make a connected socket ready for another connection.
fn refusal_of_state(destination: &Destination, ground: Context) -> Option<Errno> {
    let connects = ground.shared_network && !ground.canaries && destination.connects;
    let leads_nowhere = !matches!(destination.address, Address::Inet(_));
    (connects && leads_nowhere).then_some(Errno::EACCES)
}

/// Whether a connection there arrives at the stub: the unspecified IPv4 address is this host (ip(7)), and leads to
/// 127.0.0.1.
fn reaches(address: &Address, served: StubAddresses) -> bool {
    let Address::Inet(address) = address else {
        return false;
    };
    let address = canonical(*address);
    let StubAddresses { stub, elsewhere } = served;
    address == stub
        || Some(address) == elsewhere
        || (address.ip() == IpAddr::V4(Ipv4Addr::UNSPECIFIED) && address.port() == stub.port())
}

/// IPv4-mapped addresses as the IPv4 addresses that they are.
fn canonical(address: SocketAddr) -> SocketAddr {
    (address.ip().to_canonical(), address.port()).into()
}

fn judge_bind(address: &Address, ground: Context) -> Decision {
    let refusal =
        (ground.shared_network && matches!(address, Address::Inet(_))).then_some(Errno::EACCES);
    let outcome = refusal.map_or(Outcome::Allowed, Outcome::Denied);
    let fixed = matches!(address, Address::Inet(address) if address.port() != 0);
    let base = if fixed {
        attempt(outcome)
    } else {
        setup(outcome)
    };
    let answer = refusal.map_or(Answer::Continue, Answer::Refuse);
    one(with_address(base, address), answer)
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
mod tests;
