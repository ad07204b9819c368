//! Limits on kernel memory that no resource limit covers: socket buffers, and the objects of [`counted`].
//!
//! Socket buffers keep their initial size, since the filter only pretends to set SO_SNDBUF and SO_RCVBUF. So the number
//! of sockets limits their bytes. /proc counts all open sockets, also those in queues and without a descriptor.

mod counted;

use std::path::PathBuf;

use nix::errno::Errno;
use nix::unistd::Pid;
use sys::notify::Answer;
use sys::read::kernel_text;

use self::counted::Counted;
use super::call::{Address, Call, Destination};
use super::decide::Decision;
use super::sockets::Socket;
use crate::plan::Plan;

/// Most open sockets of the internet families and netlink: about 500 MiB with the kernel's default buffers. A unix
/// socket counts as two, since its queue may hold its buffer and one more datagram.
const MAX_SOCKETS: u64 = 2_400;
const UNIX_WEIGHT: u64 = 2;
/// The kernel's default of net.core.wmem_default and rmem_default. Larger buffers lower the limit, down to
/// [`MIN_SOCKETS`].
const DEFAULT_BUFFER: u64 = 212_992;
const MIN_SOCKETS: u64 = 256;

/// Remaining number of each limit.
#[derive(Debug)]
pub(crate) struct KernelMemory {
    /// Directory /proc/PID/net of the client's network namespace (proc_pid_net(5)).
    network: PathBuf,
    limit: u64,
    /// Open sockets before the client started.
    before: u64,
    /// Sockets that may be made before the next count in /proc.
    remaining: u64,
    counted: Counted,
}

impl KernelMemory {
    /// Counts the open sockets before the client makes any. `stage` is in the client's network namespace.
    pub(crate) fn new(plan: &Plan, stage: Pid) -> Self {
        let network = if plan.is_inherited() {
            PathBuf::from("/proc/self/net")
        } else {
            PathBuf::from(format!("/proc/{stage}/net"))
        };
        let limit = socket_limit(["wmem_default", "rmem_default"].map(default_buffer));
        let mut memory = Self {
            network,
            limit,
            before: 0,
            remaining: limit,
            counted: Counted::new(plan.limits.file_bytes),
        };
        memory.before = memory.alive().unwrap_or(0);
        memory
    }

    /// Counts a continued call, or replaces the decision by a refusal at the limit.
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
            self.limit
        );
        decision.refused_at_limit(Errno::ENFILE, limit)
    }

    /// Checks for a frequent call below its limit, which leaves no entry if it is allowed.
    pub(super) fn passes_unlisted(&mut self, call: &Call) -> bool {
        matches!(call, Call::Socket(_)) && self.remaining >= sockets_of(call)
            || self.counted.passes_unlisted(call)
    }

    fn take(&mut self, sockets: u64) -> bool {
        if self.remaining < sockets
            && let Some(alive) = self.alive()
        {
            self.remaining = self.limit.saturating_sub(alive.saturating_sub(self.before));
        }
        match self.remaining.checked_sub(sockets) {
            Some(remaining) => {
                self.remaining = remaining;
                true
            }
            None => false,
        }
    }

    /// Weighted number of open sockets; `None` if /proc cannot be read. Then closed sockets keep counting.
    fn alive(&self) -> Option<u64> {
        let read = |name| kernel_text(self.network.join(name)).ok();
        weighed(&read("sockstat")?, &read("protocols")?)
    }
}

fn default_buffer(name: &str) -> u64 {
    let text = kernel_text(format!("/proc/sys/net/core/{name}")).unwrap_or_default();
    text.trim().parse().unwrap_or(DEFAULT_BUFFER)
}

fn socket_limit(buffers: [u64; 2]) -> u64 {
    let [send, receive] = buffers;
    let buffer = send.max(receive).max(DEFAULT_BUFFER);
    (MAX_SOCKETS * DEFAULT_BUFFER / buffer).max(MIN_SOCKETS)
}

/// Weighted number of sockets that a call makes at most. An accepted connection is one more socket.
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

/// Weighted number of sockets. The first line of `sockstat` counts all sockets. The third word of the unix lines of
/// `protocols` counts unix sockets; that file misses internet sockets before they are bound or connected.
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

    fn with(remaining: u64, network: &str) -> KernelMemory {
        KernelMemory {
            network: network.into(),
            limit: 8,
            before: 0,
            remaining,
            counted: Counted::new(0),
        }
    }

    #[test]
    fn socket_passes_unlisted_below_the_limit_only() {
        let call = Call::Socket(Socket {
            family: libc::AF_INET,
            kind: libc::SOCK_STREAM,
            protocol: 0,
        });
        let mut memory = with(1, "/nonexistent");
        assert!(memory.passes_unlisted(&call));
        assert!(!memory.passes_unlisted(&PAIR));
        assert_eq!(refusal(&mut memory, &call), None);
        assert!(!memory.passes_unlisted(&call));
        assert!(refusal(&mut memory, &call).is_some());
    }

    /// Errno and limit's name of an allowed call that the limit refuses.
    fn refusal(memory: &mut KernelMemory, call: &Call) -> Option<(Errno, String)> {
        let context = Context {
            addresses: StubAddresses {
                stub: "127.0.0.1:1".parse().unwrap(),
                elsewhere: None,
            },
            stub_is_known: true,
            canaries: false,
            unix_sockets: true,
            shared_network: false,
        };
        let allowed = decide(call, context);
        assert_eq!(allowed.answer, Answer::Continue);
        let after = memory.within(call, allowed.clone());
        let Answer::Refuse(errno) = after.answer else {
            assert_eq!(after, allowed);
            return None;
        };
        assert_eq!(after.attempts.len(), allowed.attempts.len() + 1);
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
        memory.before = memory.alive().unwrap();
        memory.limit = 1_000_000;
        assert_eq!(refusal(&mut memory, &PAIR), None);
        (memory.limit, memory.remaining) = (0, 0);
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
        assert_eq!(socket_limit([DEFAULT_BUFFER, 1]), MAX_SOCKETS);
        assert_eq!(socket_limit([4 * DEFAULT_BUFFER, 1]), MAX_SOCKETS / 4);
        assert_eq!(socket_limit([1, u64::MAX]), MIN_SOCKETS);
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
