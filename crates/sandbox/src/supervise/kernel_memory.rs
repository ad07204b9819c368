//! Bounds on memory that belongs to no process, so that no resource limit counts it: buffers of sockets, and objects that
//! are counted as they are made ([`counted`]).
//!
//! Buffers keep the size that they are made with (the filter answers SO_SNDBUF and SO_RCVBUF as done), so a number of
//! sockets is a number of bytes. The kernel counts those that are alive, in queues and without a descriptor as well.

mod counted;

use std::fs;
use std::path::PathBuf;

use nix::errno::Errno;
use nix::unistd::Pid;
use sys::notify::Answer;

use self::counted::Counted;
use super::call::{Address, Call, Destination};
use super::decide::Decision;
use super::sockets::Socket;
use crate::plan::Plan;

pub(super) use self::counted::SystemV;

/// Sockets of internet families and netlink that may be alive at one time; a unix socket counts as two, since its
/// queue may hold its buffer and a whole datagram. Some 500 MiB with the kernel's default buffers.
const MOST_SOCKETS: u64 = 2_400;
const UNIX_WEIGHT: u64 = 2;
/// The kernel's default of net.core.wmem_default and rmem_default. Where a host has larger ones, there may be fewer
/// sockets, but not fewer than the second number.
const DEFAULT_BUFFER: u64 = 212_992;
const FEWEST_SOCKETS: u64 = 256;

/// Remainders of the limits.
#[derive(Debug)]
pub(super) struct KernelMemory {
    /// proc_pid_net(5) of the client's network namespace.
    network: PathBuf,
    most: u64,
    /// Sockets that were there before the client.
    others: u64,
    /// Sockets that may be made before the list is read again.
    left: u64,
    counted: Counted,
}

impl KernelMemory {
    /// Counts the sockets that are there before the client makes any. `stage` is in its network namespace.
    pub(super) fn new(plan: &Plan, stage: Pid) -> Self {
        let network = if plan.is_inherited() {
            PathBuf::from("/proc/self/net")
        } else {
            PathBuf::from(format!("/proc/{stage}/net"))
        };
        let most = most_sockets(["wmem_default", "rmem_default"].map(default_buffer));
        let mut memory = Self {
            network,
            most,
            others: 0,
            left: most,
            counted: Counted::new(plan.limits.file_bytes),
        };
        memory.others = memory.alive().unwrap_or(0);
        memory
    }

    /// The decision to let a call go on, which counts then, or its refusal where nothing is left for it.
    pub(super) fn within(&mut self, call: &Call, decision: Decision) -> Decision {
        if decision.answer != Answer::Continue {
            return decision;
        }
        if let Err((errno, limit)) = self.counted.take(call) {
            return decision.refused_at_limit(errno, limit);
        }
        if self.take(sockets_of(call)) {
            return decision;
        }
        let limit = format!(
            "limit of {} sockets, unix ones twice, connections by both ends",
            self.most
        );
        decision.refused_at_limit(Errno::ENFILE, limit)
    }

    /// [`Counted::passes_unlisted`].
    pub(super) fn passes_unlisted(&mut self, call: &Call) -> bool {
        self.counted.passes_unlisted(call)
    }

    fn take(&mut self, sockets: u64) -> bool {
        if self.left < sockets
            && let Some(alive) = self.alive()
        {
            self.left = self.most.saturating_sub(alive.saturating_sub(self.others));
        }
        match self.left.checked_sub(sockets) {
            Some(left) => {
                self.left = left;
                true
            }
            None => false,
        }
    }

    /// `None` where the kernel's counts cannot be read: then the sockets that were made count to the end.
    fn alive(&self) -> Option<u64> {
        let read = |name| fs::read_to_string(self.network.join(name)).ok();
        weighed(&read("sockstat")?, &read("protocols")?)
    }
}

fn default_buffer(name: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/sys/net/core/{name}")).unwrap_or_default();
    text.trim().parse().unwrap_or(DEFAULT_BUFFER)
}

fn most_sockets(buffers: [u64; 2]) -> u64 {
    let [send, receive] = buffers;
    let buffer = send.max(receive).max(DEFAULT_BUFFER);
    (MOST_SOCKETS * DEFAULT_BUFFER / buffer).max(FEWEST_SOCKETS)
}

/// Sockets that a call makes at most, by weight: an accepted connection is a socket of its own.
fn sockets_of(call: &Call) -> u64 {
    let weight = |is_unix| if is_unix { UNIX_WEIGHT } else { 1 };
    let of = |socket: &Socket| weight(socket.family == libc::AF_UNIX);
    let reached = |destination: &Destination| match destination.address {
        Address::Path(_) | Address::Abstract(_) => UNIX_WEIGHT,
        Address::Inet(_) => 1,
        Address::Unnamed
        | Address::Netlink { .. }
        | Address::Unspecified
        | Address::Other { .. } => 0,
    };
    match call {
        Call::Socket(socket) => of(socket),
        Call::Pair(socket) => 2 * of(socket),
        Call::To(all) | Call::FastOpen(all) => all
            .iter()
            .filter(|destination| destination.connects)
            .map(reached)
            .sum(),
        Call::Connected
        | Call::Urgent(_)
        | Call::Bind(_)
        | Call::Listen { .. }
        | Call::IoUring
        | Call::SystemV(_)
        | Call::Pipe
        | Call::LandlockRule
        | Call::LandlockDomain
        | Call::MemoryFile
        | Call::SharedMapping { .. }
        | Call::SetOption(_)
        | Call::Execute { .. }
        | Call::Dumpable { .. }
        | Call::Foreign(_)
        | Call::Unreadable => 0,
    }
}

/// All sockets by the head of `sockstat`, and those of unix again, of which `protocols` has the count as the third word
/// of a line. It has no internet socket before that is bound or connected.
fn weighed(sockstat: &str, protocols: &str) -> Option<u64> {
    let used = sockstat.strip_prefix("sockets: used ")?;
    let mut all = used.split_whitespace().next()?.parse().ok()?;
    for line in protocols.lines().filter(|line| line.starts_with("UNIX")) {
        let unix: u64 = line.split_whitespace().nth(2)?.parse().ok()?;
        all += (UNIX_WEIGHT - 1) * unix;
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use model::evidence::{Attempt, Outcome};

    use super::*;
    use crate::supervise::StubAddresses;
    use crate::supervise::decide::{Context, decide};

    const PAIR: Call = Call::Pair(Socket {
        family: libc::AF_UNIX,
        kind: libc::SOCK_STREAM,
        protocol: 0,
    });

    fn to(address: Address) -> Call {
        Call::To(vec![Destination {
            address,
            descriptor: 3,
            connects: true,
            payload: Vec::new(),
        }])
    }

    fn with(left: u64, network: &str) -> KernelMemory {
        KernelMemory {
            network: network.into(),
            most: 8,
            others: 0,
            left,
            counted: Counted::new(0),
        }
    }

    /// The errno of a call that may go on but for a limit, and the limit's name.
    fn refusal(memory: &mut KernelMemory, call: &Call) -> Option<(Errno, String)> {
        let context = Context {
            served: StubAddresses {
                stub: "127.0.0.1:1".parse().unwrap(),
                elsewhere: None,
            },
            stub_is_known: true,
            canaries: false,
            unix_sockets: true,
            shared_network: false,
        };
        let before = decide(call, context);
        assert_eq!(before.answer, Answer::Continue);
        let after = memory.within(call, before.clone());
        let Answer::Refuse(errno) = after.answer else {
            assert_eq!(after, before);
            return None;
        };
        assert_eq!(after.attempts.len(), before.attempts.len() + 1);
        let denied = |attempt: &Attempt| attempt.outcome == Outcome::Denied(errno);
        assert!(after.attempts.iter().all(denied) && after.stub_descriptors.is_empty());
        Some((errno, after.attempts.last()?.address.clone()?))
    }

    #[test]
    fn sockets_beyond_the_limit_are_refused() {
        let mut memory = with(8, "/nowhere");
        assert_eq!(refusal(&mut memory, &PAIR), None);
        assert_eq!(refusal(&mut memory, &PAIR), None);
        let limit = "limit of 8 sockets, unix ones twice, connections by both ends".to_owned();
        let over = Some((Errno::ENFILE, limit));
        assert_eq!(refusal(&mut memory, &PAIR), over);
        let stub = to(Address::Inet("127.0.0.1:1".parse().unwrap()));
        assert_eq!(refusal(&mut memory, &stub), over);
        assert_eq!(refusal(&mut memory, &Call::Connected), None);
    }

    #[test]
    fn sockets_alive_are_counted_anew() {
        let mut memory = with(0, "/proc/self/net");
        memory.others = memory.alive().unwrap();
        memory.most = 1_000_000;
        assert_eq!(refusal(&mut memory, &PAIR), None);
        (memory.most, memory.left) = (0, 0);
        assert!(refusal(&mut memory, &PAIR).is_some());
    }

    #[test]
    fn unix_sockets_weigh_double() {
        let protocols =
            "protocol size sockets memory\nUNIX 1 3 -1\nUNIX-STREAM 1 1 -1\nTCP 1 2 4\n";
        let sockstat = "sockets: used 7\nTCP: inuse 2 orphan 0 tw 0 alloc 3 mem 4\n";
        assert_eq!(weighed(sockstat, protocols), Some(11));
        assert_eq!(weighed(sockstat, "UNIX 1 many -1\n"), None);
        assert_eq!(weighed("", protocols), None);
    }

    #[test]
    fn larger_buffers_make_fewer_sockets() {
        assert_eq!(most_sockets([DEFAULT_BUFFER, 1]), MOST_SOCKETS);
        assert_eq!(most_sockets([4 * DEFAULT_BUFFER, 1]), MOST_SOCKETS / 4);
        assert_eq!(most_sockets([1, u64::MAX]), FEWEST_SOCKETS);
    }

    #[test]
    fn a_connection_counts_the_socket_that_is_accepted() {
        let inet = Address::Inet("127.0.0.1:1".parse().unwrap());
        assert_eq!(sockets_of(&to(inet)), 1);
        assert_eq!(sockets_of(&to(Address::Path(b"/a".to_vec()))), 2);
        assert_eq!(sockets_of(&to(Address::Unspecified)), 0);
        assert_eq!(sockets_of(&PAIR), 4);
    }
}
