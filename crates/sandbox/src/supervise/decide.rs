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

use model::evidence::{Attempt, AttemptKind, Outcome};
use model::text::printable;
use nix::errno::Errno;
use sys::notify::Answer;

use super::StubAddresses;
use super::call::{Address, Call, Destination};
use super::sockets::{Socket, family_name};

/// What is recorded and answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Decision {
    pub(super) attempts: Vec<Attempt>,
    pub(super) answer: Answer,
    /// Descriptors with which the stub's address is reached, should the call go through.
    pub(super) stub_descriptors: Vec<i32>,
}

impl Decision {
    /// Refuses the call at a limit, which a further line of the ledger names.
    pub(super) fn refused_at_limit(self, errno: Errno, limit: String) -> Self {
        let mut denied = self.denied(errno);
        denied.attempts.push(Attempt {
            address: Some(limit),
            ..setup(Outcome::Denied(errno))
        });
        denied
    }

    /// Refuses the call with this errno.
    pub(super) fn denied(self, errno: Errno) -> Self {
        let attempts = self.attempts.into_iter().map(|attempt| Attempt {
            outcome: Outcome::Denied(errno),
            ..attempt
        });
        Self {
            attempts: attempts.collect(),
            answer: Answer::Refuse(errno),
            stub_descriptors: Vec::new(),
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
pub(super) fn decide(call: &Call, context: Context) -> Decision {
    match call {
        Call::Socket(socket) => decide_socket(*socket, context),
        Call::Pair(pair) => decide_pair(*pair, context),
        Call::FastOpen(destinations) if context.shared_network => {
            refuse_fast_open(destinations, context)
        }
        Call::Urgent(destinations) => refuse_urgent(destinations, context),
        Call::To(destinations) | Call::FastOpen(destinations) => {
            decide_destinations(destinations, context)
        }
        Call::Connected
        | Call::Execute { .. }
        | Call::SystemV(_)
        | Call::Pipe
        | Call::LandlockRule
        | Call::LandlockDomain
        | Call::MemoryFile
        | Call::SharedMapping { .. } => unrecorded(Answer::Continue),
        Call::Bind(address) => decide_bind(address, context),
        Call::Listen { .. } if context.shared_network => {
            refuse(judged(Outcome::Denied(Errno::EACCES)), Errno::EACCES)
        }
        Call::Listen { .. } => recorded(judged(Outcome::Allowed), Answer::Continue),
        Call::IoUring => refuse(judged(Outcome::Denied(Errno::ENOSYS)), Errno::ENOSYS),
        Call::SetOption(option) => {
            let outcome = Outcome::Denied(Errno::ENOPROTOOPT);
            let attempt = Attempt {
                address: Some(option.label()),
                ..option
                    .attempt()
                    .map_or_else(|| setup(outcome), |_| judged(outcome))
            };
            refuse(attempt, Errno::ENOPROTOOPT)
        }
        Call::Dumpable { on: false } => recorded(setup(Outcome::Allowed), Answer::Pretend),
        Call::Dumpable { on: true } => unrecorded(Answer::Continue),
        Call::Foreign(call) => {
            let attempt = Attempt {
                address: Some(call.name.to_owned()),
                ..judged(Outcome::Denied(Errno::ENOSYS))
            };
            refuse(attempt, Errno::ENOSYS)
        }
        Call::Unreadable => {
            let attempt = Attempt {
                address: Some("unreadable".to_owned()),
                ..judged(Outcome::Denied(Errno::EACCES))
            };
            refuse(attempt, Errno::EACCES)
        }
    }
}

fn decide_socket(socket: Socket, context: Context) -> Decision {
    let is_unix = socket.family == libc::AF_UNIX;
    let shut = if is_unix {
        !context.unix_sockets
    } else {
        context.shared_network && socket.is_datagram()
    };
    let marked = context.canaries && socket.protocol != 0;
    let refusal = if shut && !marked {
        socket.refusal().or(Some(Errno::EACCES))
    } else {
        socket.refusal()
    };
    let base = match refusal {
        // libc asks for the name service cache over such a socket; this one reaches nothing whoever asked.
        Some(errno) if is_unix => setup(Outcome::Denied(errno)),
        Some(errno) => judged(Outcome::Denied(errno)),
        None => setup(Outcome::Allowed),
    };
    let attempt = with_socket(base, socket);
    recorded(attempt, refusal.map_or(Answer::Continue, Answer::Refuse))
}

/// A pair of another family than unix is refused, and one of unix datagram sockets where those of others could be
/// reached.
fn decide_pair(pair: Socket, context: Context) -> Decision {
    let is_unix = pair.family == libc::AF_UNIX;
    if is_unix && (context.unix_sockets || pair.stays_connected()) {
        return unrecorded(Answer::Continue);
    }
    let (base, errno) = if is_unix {
        (setup(Outcome::Denied(Errno::EACCES)), Errno::EACCES)
    } else {
        (
            judged(Outcome::Denied(Errno::EAFNOSUPPORT)),
            Errno::EAFNOSUPPORT,
        )
    };
    refuse(with_socket(base, pair), errno)
}

fn with_socket(attempt: Attempt, socket: Socket) -> Attempt {
    Attempt {
        family: Some(family_name(socket.family)),
        socket_type: Some(socket.kind_name()),
        protocol: Some(socket.protocol as u32),
        ..attempt
    }
}

/// Landlock does not see the connection that such a message opens.
fn refuse_fast_open(destinations: &[Destination], context: Context) -> Decision {
    let mut refused = refuse_message(destinations, context);
    if refused.attempts.is_empty() {
        refused
            .attempts
            .push(judged(Outcome::Denied(NOT_SUPPORTED)));
    }
    refused
}

/// The place of an urgent byte says something that no byte of the stream does, so the journal would lack it.
fn refuse_urgent(destinations: &[Destination], context: Context) -> Decision {
    let mut refused = refuse_message(destinations, context);
    refused.attempts.push(Attempt {
        address: Some("MSG_OOB".to_owned()),
        ..judged(Outcome::Denied(NOT_SUPPORTED))
    });
    refused
}

/// Errno of a flag that a socket does not have (send(2)).
const NOT_SUPPORTED: Errno = Errno::EOPNOTSUPP;

fn refuse_message(destinations: &[Destination], context: Context) -> Decision {
    let attempts = destinations
        .iter()
        .map(|destination| decide_destination(destination, context, Some(NOT_SUPPORTED)));
    Decision {
        attempts: attempts.collect(),
        ..unrecorded(Answer::Refuse(NOT_SUPPORTED))
    }
}

/// A call to several destinations is let through as a whole or not at all.
fn decide_destinations(destinations: &[Destination], context: Context) -> Decision {
    let refused = destinations.iter().find_map(|destination| {
        refusal(&destination.address, context).or_else(|| refusal_of_state(destination, context))
    });
    let attempts = destinations
        .iter()
        .map(|destination| decide_destination(destination, context, refused))
        .collect();
    let stub_descriptors = destinations
        .iter()
        .filter(|destination| destination.connects && reaches(&destination.address, context.served))
        .map(|destination| destination.descriptor)
        .collect();
    Decision {
        attempts,
        answer: refused.map_or(Answer::Continue, Answer::Refuse),
        stub_descriptors: if refused.is_none() {
            stub_descriptors
        } else {
            Vec::new()
        },
    }
}

fn decide_destination(
    destination: &Destination,
    context: Context,
    refused: Option<Errno>,
) -> Attempt {
    let outcome = refused.map_or(Outcome::Allowed, Outcome::Denied);
    let base = if is_setup(destination, context) {
        setup(outcome)
    } else {
        judged(outcome)
    };
    let attempt = with_address(base, &destination.address);
    let names = match attempt.port {
        Some(53) => crate::dns::names(&destination.payload),
        _ => Vec::new(),
    };
    Attempt { names, ..attempt }
}

fn is_setup(destination: &Destination, context: Context) -> bool {
    match &destination.address {
        Address::Inet(address) => {
            context.stub_is_known
                && destination.connects
                && canonical(*address) == context.served.stub
        }
        Address::Path(path) => path == NAME_SERVICE_CACHE,
        Address::Netlink { process } => *process == 0,
        Address::Unspecified => true,
        Address::Abstract(_) | Address::Unnamed | Address::Other { .. } => false,
    }
}

/// The errno with which a destination is answered here, unless the kernel is to be asked: where it is not on this
/// host, what a network that has loopback only would say.
fn refusal(address: &Address, context: Context) -> Option<Errno> {
    match address {
        Address::Inet(address) if context.is_marked(canonical(*address)) => None,
        Address::Inet(inet) => {
            let inside = canonical(*inet).ip();
            if !inside.is_loopback() && !inside.is_unspecified() {
                Some(Errno::ENETUNREACH)
            } else {
                let foreign = context.shared_network && !reaches(address, context.served);
                foreign.then_some(Errno::EACCES)
            }
        }
        Address::Other { .. } => Some(Errno::ENETUNREACH),
        // Only a pair can be asked to, and that is connected to itself.
        Address::Path(_) | Address::Abstract(_) | Address::Unnamed => {
            (context.shared_network && !context.canaries).then_some(Errno::EACCES)
        }
        Address::Netlink { .. } | Address::Unspecified => None,
    }
}

/// Errno for a connect(2) that changes a socket and leads nowhere, where the supervisor makes all connections:
/// AF_UNSPEC would make a connected socket ready for another connection.
fn refusal_of_state(destination: &Destination, context: Context) -> Option<Errno> {
    let connects = context.shared_network && !context.canaries && destination.connects;
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

fn decide_bind(address: &Address, context: Context) -> Decision {
    let refusal =
        (context.shared_network && matches!(address, Address::Inet(_))).then_some(Errno::EACCES);
    let outcome = refusal.map_or(Outcome::Allowed, Outcome::Denied);
    let fixed = matches!(address, Address::Inet(address) if address.port() != 0);
    let base = if fixed {
        judged(outcome)
    } else {
        setup(outcome)
    };
    let answer = refusal.map_or(Answer::Continue, Answer::Refuse);
    recorded(with_address(base, address), answer)
}

fn with_address(attempt: Attempt, address: &Address) -> Attempt {
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
    Attempt {
        family: Some(family),
        address: text,
        port,
        ..attempt
    }
}

fn judged(outcome: Outcome) -> Attempt {
    of_kind(AttemptKind::Attempt, outcome)
}

fn setup(outcome: Outcome) -> Attempt {
    of_kind(AttemptKind::Setup, outcome)
}

/// Attempt without destination. The ledger fills in the fields of the call: number, time, caller and system call.
fn of_kind(kind: AttemptKind, outcome: Outcome) -> Attempt {
    Attempt {
        seq: 0,
        at_us: 0,
        kind,
        pid: 0,
        program: String::new(),
        syscall: "",
        family: None,
        socket_type: None,
        protocol: None,
        address: None,
        port: None,
        outcome,
        count: 1,
        names: Vec::new(),
    }
}

fn recorded(attempt: Attempt, answer: Answer) -> Decision {
    Decision {
        attempts: vec![attempt],
        answer,
        stub_descriptors: Vec::new(),
    }
}

fn refuse(attempt: Attempt, errno: Errno) -> Decision {
    recorded(attempt, Answer::Refuse(errno))
}

fn unrecorded(answer: Answer) -> Decision {
    Decision {
        attempts: Vec::new(),
        answer,
        stub_descriptors: Vec::new(),
    }
}

#[cfg(test)]
mod tests;
