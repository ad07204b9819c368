//! The ledger: what the client tried, whom it asked for names, what it started.
//!
//! Types only. The supervisor fills them ([`sandbox`]), the checks judge them.

/// One kind of call to one destination, as the supervisor saw it before it was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// From 1, in the order of the first time.
    pub seq: u64,
    /// The first time.
    pub at_us: u64,
    /// Whether it is judged.
    pub kind: AttemptKind,
    /// As seen inside.
    pub pid: i32,
    /// Path of the calling program, as seen inside; hostile.
    pub program: String,
    /// `connect`, `sendto`, …
    pub syscall: &'static str,
    /// `inet`, `inet6`, `unix`, `netlink`, or the family's number.
    pub family: Option<String>,
    /// `stream`, `dgram`, `raw`, …, or the type's number; where the call names it.
    pub socket_type: Option<String>,
    /// Number of the protocol; where the call names it.
    pub protocol: Option<u32>,
    /// Address or path; an abstract name begins with `@`. Hostile.
    pub address: Option<String>,
    /// Port, for the two internet families.
    pub port: Option<u16>,
    /// What became of it.
    pub outcome: Outcome,
    /// How often.
    pub count: u64,
    /// Names asked for in what it sent, where that was a DNS query.
    pub names: Vec<String>,
}

/// Calls and questions beyond what is kept, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unlisted {
    /// Calls of [`AttemptKind::Attempt`] that were answered by the supervisor.
    pub denied: u64,
    /// Others of that kind.
    pub let_through: u64,
    /// Calls of [`AttemptKind::Setup`].
    pub setup: u64,
    /// Of `let_through` and `setup`, those that [`Attempt::leaves_loopback`].
    pub away: u64,
    /// Questions for names.
    pub questions: u64,
}

impl Unlisted {
    /// Counts one call.
    pub fn count(&mut self, attempt: &Attempt) {
        let counter = match (attempt.kind, attempt.outcome) {
            (AttemptKind::Setup, _) => &mut self.setup,
            (AttemptKind::Attempt, Outcome::Denied(_)) => &mut self.denied,
            (AttemptKind::Attempt, Outcome::Allowed) => &mut self.let_through,
        };
        *counter = counter.saturating_add(attempt.count);
        if attempt.leaves_loopback() {
            self.away = self.away.saturating_add(attempt.count);
        }
    }

    /// Calls that are judged.
    pub fn attempts(&self) -> u64 {
        self.denied.saturating_add(self.let_through)
    }
}

/// Whether an entry of the ledger is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AttemptKind {
    /// Somewhere else than the stub, or a call that could lead there.
    Attempt,
    /// Part of reaching the stub, or of finding out how: listed, and not judged.
    Setup,
}

/// What became of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Let through to the kernel, where the network namespace decides.
    Allowed,
    /// Answered by the supervisor with this errno; the call was not made.
    Denied(nix::errno::Errno),
}

/// By the errno's number, since `Errno` has no hash of its own.
impl std::hash::Hash for Outcome {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        match self {
            Self::Allowed => state.write_i32(0),
            Self::Denied(errno) => state.write_i32(*errno as i32),
        }
    }
}

/// A name that the resolver inside was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// In small letters and without the final dot, `.` for the root; bytes that are no visible ASCII are `\DDD`.
    /// Hostile.
    pub name: String,
    /// `A`, `AAAA`, …, or `TYPE65`; `malformed`, with an empty name, for datagrams that are no query.
    pub kind: String,
    /// Difference of the datagram from an ordinary query: `1300 bytes after the question, 1327 bytes`.
    /// `None` for an ordinary one.
    pub odd: Option<String>,
    /// How often.
    pub count: u64,
}

impl Question {
    /// The type, and how the datagram was odd: `A`, `A, class 3, 33 bytes`.
    pub fn kind_and_odd(&self) -> String {
        match &self.odd {
            Some(odd) => format!("{}, {odd}", self.kind),
            None => self.kind.clone(),
        }
    }
}

/// One program that the client started, itself included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// As seen inside.
    pub pid: i32,
    /// Its parent, as seen inside.
    pub ppid: i32,
    /// Path given to execve(2); hostile.
    pub program: String,
    /// Arguments from 0 on, at most [`MOST_ARGUMENTS`] of them and each cut at [`ARGUMENT_BYTES`]; hostile.
    pub args: Vec<String>,
}

/// Arguments of one process that are kept.
pub const MOST_ARGUMENTS: usize = 64;
/// Bytes of one argument that are kept.
pub const ARGUMENT_BYTES: usize = 256;
/// Entries of the ledger that are kept; beyond them a gap says so.
pub const MOST_ATTEMPTS: usize = 1000;
/// Names that are kept; beyond them a gap says so.
pub const MOST_QUESTIONS: usize = 1000;
/// Processes that are kept; beyond them a gap says so.
pub const MOST_PROCESSES: usize = 1000;
