//! Decisions: from a call to its entries in the ledger and its answer. Pure.
//!
//! Destinations off loopback are refused at once, with the errno that the network namespace would give. Calls to
//! loopback and unix addresses continue, since every listener there is inside. The namespace makes a continued call
//! safe; memory that the supervisor read never does.
//!
//! In a container's network, loopback has foreign listeners too. So only the stub is reached, and datagram sockets,
//! unix sockets and listen(2) are refused. Refusals that depend on the caller's memory have a second line of defence:
//! Landlock refuses the call too, or the client has no such socket.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use model::evidence::{Attempt, AttemptKind, Outcome, UNREADABLE};
use model::text::printable;
use nix::errno::Errno;
use sys::notify::Answer;

use super::StubAddresses;
use super::call::{Address, Call, Destination};
use super::sockets::{Socket, family_name};

/// Entries to record, and the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Decision {
    pub(super) attempts: Vec<Attempt>,
    pub(super) answer: Answer,
    /// The caller's descriptors that a continued call connects to the stub.
    pub(super) stub_descriptors: Vec<i32>,
}

impl Decision {
    /// Returns true for a permitted call without an entry.
    pub(super) fn passes(&self) -> bool {
        self.attempts.is_empty() && self.answer == Answer::Continue
    }

    /// Refuses the call at a limit. A further entry names the limit in place of an address.
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

/// Facts that a decision depends on, the call excepted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Context {
    pub(super) addresses: StubAddresses,
    /// A connection to the stub is setup, not an attempt.
    pub(super) stub_is_known: bool,
    /// The caller is the canary. Its marked calls continue, so that the kernel itself refuses them.
    pub(super) canaries: bool,
    /// Unix sockets are allowed. They are not where the client sees directories of the host: these may hold sockets of
    /// daemons, and neither a read-only mount nor Landlock before ABI 9 forbids connections to them.
    pub(super) unix_sockets: bool,
    /// The network is the container's, so foreign processes listen on loopback.
    pub(super) shared_network: bool,
}

impl Context {
    /// Checks for a marked address of the canary: one with the stub's port, or a neighbour's on loopback. Marked
    /// sockets name their protocol.
    fn is_marked(&self, address: SocketAddr) -> bool {
        let neighbour = self.shared_network && address.ip().is_loopback();
        self.canaries && (neighbour || address.port() == self.addresses.stub.port())
    }
}

/// Socket of nscd(8), which libc tries before every other name service.
const NAME_SERVICE_CACHE: &[u8] = b"/var/run/nscd/socket";

/// Decides on a call.
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
        Call::Dumpable { on: false } => recorded(setup(Outcome::Allowed), Answer::ReturnZero),
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
                address: Some(UNREADABLE.to_owned()),
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
        // libc makes a unix socket for nscd(8). A refused socket cannot reach a listener.
        Some(errno) if is_unix => setup(Outcome::Denied(errno)),
        Some(errno) => judged(Outcome::Denied(errno)),
        None => setup(Outcome::Allowed),
    };
    let attempt = with_socket(base, socket);
    recorded(attempt, refusal.map_or(Answer::Continue, Answer::Refuse))
}

/// Decides on socketpair(2). Refuses families other than unix. Where unix sockets are forbidden, datagram pairs are
/// refused too, since they can send to foreign sockets.
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

/// Refuses a message with MSG_FASTOPEN: Landlock does not check the connection that it opens.
fn refuse_fast_open(destinations: &[Destination], context: Context) -> Decision {
    let mut refused = refuse_message(destinations, context);
    if refused.attempts.is_empty() {
        refused
            .attempts
            .push(judged(Outcome::Denied(NOT_SUPPORTED)));
    }
    refused
}

/// Refuses a message with MSG_OOB: the position of an urgent byte carries information that the journal would lack.
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

/// Decides on a call to one or more destinations. One refused destination refuses the whole call.
fn decide_destinations(destinations: &[Destination], context: Context) -> Decision {
    let refused = destinations.iter().find_map(|destination| {
        refusal(&destination.address, context)
            .or_else(|| refusal_without_address(destination, context))
    });
    let attempts = destinations
        .iter()
        .map(|destination| decide_destination(destination, context, refused))
        .collect();
    let stub_descriptors = destinations
        .iter()
        .filter(|destination| {
            destination.connects && reaches(&destination.address, context.addresses)
        })
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
                && canonical(*address) == context.addresses.stub
        }
        Address::Path(path) => path == NAME_SERVICE_CACHE,
        Address::Netlink { process } => *process == 0,
        Address::Unspecified => true,
        Address::Abstract(_) | Address::Unnamed | Address::Other { .. } => false,
    }
}

/// Errno for a forbidden destination. Off loopback, the errno is that of a network with loopback only.
fn refusal(address: &Address, context: Context) -> Option<Errno> {
    match address {
        Address::Inet(address) if context.is_marked(canonical(*address)) => None,
        Address::Inet(inet) => {
            let inside = canonical(*inet).ip();
            if !inside.is_loopback() && !inside.is_unspecified() {
                Some(Errno::ENETUNREACH)
            } else {
                let foreign = context.shared_network && !reaches(address, context.addresses);
                foreign.then_some(Errno::EACCES)
            }
        }
        Address::Other { .. } => Some(Errno::ENETUNREACH),
        // The client's only unix sockets there are pairs, which are connected to each other already.
        Address::Path(_) | Address::Abstract(_) | Address::Unnamed => {
            (context.shared_network && !context.canaries).then_some(Errno::EACCES)
        }
        Address::Netlink { .. } | Address::Unspecified => None,
    }
}

/// Errno for a connect(2) without an internet address, if the supervisor makes all connections. With AF_UNSPEC,
/// connect(2) would prepare a connected socket for another connection.
fn refusal_without_address(destination: &Destination, context: Context) -> Option<Errno> {
    let connects = context.shared_network && !context.canaries && destination.connects;
    let is_inet = matches!(destination.address, Address::Inet(_));
    (connects && !is_inet).then_some(Errno::EACCES)
}

/// Checks for an address at which the stub listens. The unspecified IPv4 address stands for this host (ip(7)).
fn reaches(address: &Address, addresses: StubAddresses) -> bool {
    let Address::Inet(address) = address else {
        return false;
    };
    let address = canonical(*address);
    let StubAddresses { stub, elsewhere } = addresses;
    address == stub
        || Some(address) == elsewhere
        || (address.ip() == IpAddr::V4(Ipv4Addr::UNSPECIFIED) && address.port() == stub.port())
}

/// Converts IPv4-mapped IPv6 addresses to IPv4.
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

/// Entry without a destination. The ledger fills in number, time, caller and system call.
fn of_kind(kind: AttemptKind, outcome: Outcome) -> Attempt {
    Attempt {
        seq: 0,
        at_us: 0,
        kind,
        pid: 0,
        program: String::new(),
        syscall: "".into(),
        family: None,
        socket_type: None,
        protocol: None,
        address: None,
        port: None,
        outcome,
        count: 1,
        names: Vec::new(),
        expected: None,
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
