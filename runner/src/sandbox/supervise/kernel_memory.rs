//! Bounds on kernel memory that belongs to no process, so that no resource limit counts it: buffers of sockets, System V
//! objects, and rulesets of landlock(7).
//!
//! Buffers keep the size that they are made with (the filter answers SO_SNDBUF and SO_RCVBUF as done), so a number of
//! sockets is a number of bytes. The kernel counts those that are alive, in queues and without a descriptor as well.

use std::fs;
use std::path::PathBuf;

use nix::errno::Errno;
use nix::unistd::Pid;

use super::call::{Address, Call, Destination};
use super::decide::Decision;
use super::sockets::Socket;
use crate::sandbox::plan::Plan;
use crate::sys::notify::Answer;

/// Sockets of internet families and netlink that may be alive at one time; a unix socket counts as two, since its
/// queue may hold its buffer and a whole datagram. Some 500 MiB with the kernel's default buffers.
const MOST_SOCKETS: u64 = 2_400;
const UNIX_WEIGHT: u64 = 2;
/// The kernel's default of net.core.wmem_default and rmem_default. Where a host has larger ones, there may be fewer
/// sockets, but not fewer than the second number.
const DEFAULT_BUFFER: u64 = 212_992;
const FEWEST_SOCKETS: u64 = 256;

/// Limit of System V objects, counted as they are made: only the client's namespace knows which are alive.
const SYSTEM_V_BYTES: u64 = 256 << 20;
/// A queue of empty messages: `msgmnb` of them, of 64 bytes and what the allocator adds.
const QUEUE_BYTES: u64 = 5 << 20;
/// struct sem of ipc/sem.c, which has a cache line of its own, and struct sem_array.
const SEMAPHORE_BYTES: u64 = 64;
const SET_BYTES: u64 = 512;

/// Rulesets and their copies, counted as they are made: a descriptor or a process holds each. With a rule for every port
/// one takes 12 MiB.
const MOST_RULESETS: u64 = 32;

/// The most that one call of the System V family makes the kernel hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SystemV {
    pub(super) bytes: u64,
}

impl SystemV {
    /// shmget(2): key, size, flags.
    pub(super) fn segment(&[key, size, flags, ..]: &[u64; 6]) -> Self {
        Self::made(key, flags, size)
    }

    /// semget(2): key, number, flags.
    pub(super) fn semaphores(&[key, number, flags, ..]: &[u64; 6]) -> Self {
        let all = SEMAPHORE_BYTES.saturating_mul(u64::from(number as u32));
        Self::made(key, flags, SET_BYTES + all)
    }

    /// msgget(2): key, flags.
    pub(super) fn queue(&[key, flags, ..]: &[u64; 6]) -> Self {
        Self::made(key, flags, QUEUE_BYTES)
    }

    /// Registers alone say whether an object may be made: key and flags are ints.
    fn made(key: u64, flags: u64, bytes: u64) -> Self {
        let makes = key as i32 == libc::IPC_PRIVATE || flags as i32 & libc::IPC_CREAT != 0;
        let bytes = if makes { bytes } else { 0 };
        Self { bytes }
    }
}

/// Remainders of both limits.
#[derive(Debug)]
pub(super) struct KernelMemory {
    /// proc_pid_net(5) of the client's network namespace.
    network: PathBuf,
    most: u64,
    /// Sockets that were there before the client.
    others: u64,
    /// Sockets that may be made before the list is read again.
    left: u64,
    system_v: u64,
    rulesets: u64,
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
            system_v: SYSTEM_V_BYTES,
            rulesets: MOST_RULESETS,
        };
        memory.others = memory.alive().unwrap_or(0);
        memory
    }

    /// The decision to let a call go on, which counts then, or its refusal where nothing is left for it.
    pub(super) fn within(&mut self, call: &Call, decision: Decision) -> Decision {
        if decision.answer != Answer::Continue {
            return decision;
        }
        if let Call::SystemV(SystemV { bytes }) = call {
            if let Some(left) = self.system_v.checked_sub(*bytes) {
                self.system_v = left;
                return decision;
            }
            let limit = format!("limit of {} MiB", SYSTEM_V_BYTES >> 20);
            return decision.over(Errno::ENOSPC, limit);
        }
        if let Call::Ruleset = call {
            if let Some(left) = self.rulesets.checked_sub(1) {
                self.rulesets = left;
                return decision;
            }
            let limit = format!("limit of {MOST_RULESETS} Landlock rulesets");
            return decision.over(Errno::ENOMEM, limit);
        }
        if self.take(sockets_of(call)) {
            return decision;
        }
        let limit = format!("limit of {} sockets, unix ones twice", self.most);
        decision.over(Errno::ENFILE, limit)
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
        | Call::Bind(_)
        | Call::Listen { .. }
        | Call::IoUring
        | Call::SystemV(_)
        | Call::Ruleset
        | Call::SetOption(_)
        | Call::Execute { .. }
        | Call::Dumpable { .. }
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
    use super::*;
    use crate::evidence::Outcome;
    use crate::sandbox::supervise::Served;
    use crate::sandbox::supervise::decide::{Ground, Line, decide};

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
            system_v: SYSTEM_V_BYTES,
            rulesets: MOST_RULESETS,
        }
    }

    /// The errno of a call that may go on but for a limit, and the limit's name.
    fn refusal(memory: &mut KernelMemory, call: &Call) -> Option<(Errno, String)> {
        let ground = Ground {
            served: Served {
                stub: "127.0.0.1:1".parse().unwrap(),
                elsewhere: None,
            },
            stub_is_known: true,
            canaries: false,
            unix_sockets: true,
            shared_network: false,
        };
        let before = decide(call, ground);
        assert_eq!(before.answer, Answer::Continue);
        let after = memory.within(call, before.clone());
        let Answer::Refuse(errno) = after.answer else {
            assert_eq!(after, before);
            return None;
        };
        assert_eq!(after.lines.len(), before.lines.len() + 1);
        let denied = |line: &Line| line.outcome == Outcome::Denied(errno);
        assert!(after.lines.iter().all(denied) && after.to_stub.is_empty());
        Some((errno, after.lines.last()?.address.clone()?))
    }

    #[test]
    fn sockets_beyond_the_limit_are_refused() {
        let mut memory = with(8, "/nowhere");
        assert_eq!(refusal(&mut memory, &PAIR), None);
        assert_eq!(refusal(&mut memory, &PAIR), None);
        let limit = "limit of 8 sockets, unix ones twice".to_owned();
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

    #[test]
    fn rulesets_beyond_the_limit_are_refused() {
        let mut memory = with(0, "/nowhere");
        for _ in 0..MOST_RULESETS {
            assert_eq!(refusal(&mut memory, &Call::Ruleset), None);
        }
        let over = refusal(&mut memory, &Call::Ruleset);
        let limit = "limit of 32 Landlock rulesets".to_owned();
        assert_eq!(over, Some((Errno::ENOMEM, limit)));
    }

    #[test]
    fn system_v_objects_are_bounded_together() {
        let mut memory = with(0, "/nowhere");
        let segment = |size| Call::SystemV(SystemV::segment(&[0, size, 0, 0, 0, 0]));
        assert_eq!(
            refusal(&mut memory, &segment(SYSTEM_V_BYTES - QUEUE_BYTES)),
            None
        );
        let queue = |key, flags| Call::SystemV(SystemV::queue(&[key, flags, 0, 0, 0, 0]));
        assert_eq!(refusal(&mut memory, &queue(7, 0)), None, "it is there");
        let made = queue(7, libc::IPC_CREAT as u64);
        assert_eq!(refusal(&mut memory, &made), None);
        for call in [
            queue(0, 0),
            segment(1),
            segment(u64::MAX),
            Call::SystemV(SystemV::semaphores(&[0, 1, 0, 0, 0, 0])),
        ] {
            let limit = "limit of 256 MiB".to_owned();
            assert_eq!(refusal(&mut memory, &call), Some((Errno::ENOSPC, limit)));
        }
    }
}
