//! Types of the table of probes: classes, their probes, and the results that count as blocked.
//!
//! A probe is blocked only by a result of its list: an errno or a signal, each with the layer that gives it. Any
//! other error is not a pass.

use std::ffi::OsString;
use std::net::SocketAddr;

use model::case::Tier;
use model::evidence;
use nix::errno::Errno;
use sys::attempt::{Argument, RawCall, call};

use super::reply::Reply;

/// Class of escape attempts.
#[derive(Clone, Copy, Debug)]
pub struct Class {
    /// Stable id, as `sockets/vsock`. The part before the slash is the group.
    pub id: &'static str,
    /// Description for the report, a few words.
    pub about: &'static str,
    /// Probes of the class.
    pub probes: &'static [Probe],
}

/// Call of a probe, at the texts of its targets.
#[derive(Clone, Copy, Debug)]
pub enum Call {
    /// Returns a detail if the probe got through, else the errno, or `ENOANO` for a search without a result.
    Function(fn(&[OsString]) -> Result<String, Errno>),
    /// One system call.
    Raw(RawCall, &'static [Argument]),
}

impl Call {
    /// Makes the call.
    ///
    /// # Errors
    /// The errno of the call; `EDESTADDRREQ` without a target.
    pub fn make(&self, targets: &[OsString]) -> Result<String, Errno> {
        match self {
            Self::Function(make) => make(targets),
            Self::Raw(raw, arguments) => call(*raw, arguments, targets).map(|()| String::new()),
        }
    }
}

/// Text of a target; `EDESTADDRREQ` without one.
pub(super) fn word(targets: &[OsString], index: usize) -> Result<&str, Errno> {
    let target = targets.get(index).and_then(|target| target.to_str());
    target.ok_or(Errno::EDESTADDRREQ)
}

/// Result of a search that found nothing. No system call in use gives this errno.
pub(super) const NOTHING: Errno = Errno::ENOANO;

/// Escape attempt: one system call, or a short sequence.
#[derive(Clone, Copy, Debug)]
pub struct Probe {
    /// Name, unique within the class.
    pub name: &'static str,
    /// Call inside and outside.
    pub call: Call,
    /// Targets inside.
    pub inside: &'static [Aim],
    /// Targets of the twin outside.
    pub outside: &'static [Aim],
    /// Environment of the twin.
    pub twin_env: TwinEnv,
    /// Errnos of the twin that prove that the call reached the kernel's own checks.
    pub arrives: &'static [Errno],
    /// Expectation for each kind of sandbox, in the order of [`Kind`].
    expected: [Expected; 3],
    /// Part in the canary of each run.
    pub canary: Option<Canary>,
}

/// Part of a probe in the canary of each run.
#[derive(Clone, Copy, Debug)]
pub struct Canary {
    /// Name in the report.
    pub name: &'static str,
    /// Kinds of sandbox that make the probe.
    pub kinds: &'static [Kind],
    /// The supervisor can let the call through, so the probe is made in both modes.
    pub is_marked: bool,
    /// Call that the runner makes outside, if harmless.
    pub outside: Option<Call>,
}

/// Kind of sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// New root with a /proc of its own.
    Namespace,
    /// New root without /proc.
    NamespaceWithoutProc,
    /// Root and network of the container.
    Inherited,
}

/// All kinds.
pub(super) const ANY: &[Kind] = &[Kind::Namespace, Kind::NamespaceWithoutProc, Kind::Inherited];
/// Kinds with a new root.
pub(super) const OWN_ROOT: &[Kind] = &[Kind::Namespace, Kind::NamespaceWithoutProc];
/// Kind with the root of the container.
pub(super) const SHARED: &[Kind] = &[Kind::Inherited];

/// Expectation of a probe in one kind of sandbox.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    /// Results that count as blocked; empty if the probe is not made in this kind.
    pub refusals: &'static [Refusal],
    /// Entry of the ledger that the probe must leave.
    pub entry: LedgerEntry,
}

/// Result that counts as blocked.
#[derive(Clone, Copy, Debug)]
pub struct Refusal {
    /// Result of the probe.
    pub reply: Reply,
    /// Layer that gives this result.
    pub layer: Layer,
}

/// Entry of the ledger that a probe must leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LedgerEntry {
    /// No entry is required.
    None,
    /// This system call to the first target, or with this text in place of an address.
    To(&'static str),
    /// socket(2) of this family and type, as the ledger names them. A third target is the protocol.
    Socket(&'static str, &'static str),
    /// This system call.
    Call(&'static str),
}

/// Layer of the sandbox that blocks a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// Network namespace without other hosts.
    NetworkNamespace,
    /// Pid namespace without other processes.
    PidNamespace,
    /// New root, which lacks the host's files and is read-only.
    OwnRoot,
    /// Mount option noexec.
    NoExec,
    /// Landlock domain.
    Landlock,
    /// Seccomp filter.
    Filter,
    /// Supervisor, which answers notified calls.
    Supervisor,
    /// Empty capability sets.
    Capabilities,
    /// Closed inherited descriptors.
    Descriptors,
    /// Resource limits.
    Limits,
    /// Attribute no_new_privs (prctl(2)).
    NoNewPrivileges,
    /// The kernel's rule against writing to a running program (`ETXTBSY`).
    Running,
    /// Mode of a file of another user.
    FileMode,
    /// Private mount propagation.
    PrivateMounts,
}

/// Environment in which the twin of a probe succeeds without an effect on other programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TwinEnv {
    /// Environment of the runner.
    Host,
    /// New user, network and mount namespaces, with all capabilities there.
    OwnNamespaces,
    /// New namespaces with documentation addresses on loopback, and listeners at them.
    FakeInternet,
    /// New namespaces with a /run in which daemons listen.
    Daemons,
    /// The host, if its cores are files in the current directory and start no program.
    CoreFiles,
}

/// Target of a probe. All but [`Self::Word`] are made by the runner, and get their text then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aim {
    /// Fixed text.
    Word(&'static str),
    /// `@name` of an abstract stream socket of the runner.
    AbstractStream,
    /// `@name` of an abstract datagram socket of the runner.
    AbstractDatagram,
    /// Path of a stream socket, in a directory that all users may enter.
    StreamSocket,
    /// Path of a datagram socket, in a directory that all users may enter.
    DatagramSocket,
    /// Loopback address of a TCP listener of the runner.
    TcpListener,
    /// Loopback address of a UDP socket of the runner, which answers.
    UdpListener,
    /// Pid of a waiting process of the runner's user; init of the sandbox for the canary.
    Victim,
    /// `/proc/PID/` of the victim.
    VictimDirectory,
    /// Pid of the sandbox's init; 1 for the selftest.
    Init,
    /// `/proc/PID/` of the sandbox's init.
    InitDirectory,
    /// Pid of the runner, whose thread is the supervisor.
    Supervisor,
    /// Path of a directory that all users may write to.
    Directory,
    /// Path of a file that all users may read.
    ReadableFile,
    /// Path of a file that all users may write.
    WritableFile,
    /// Path of an executable file.
    ProgramFile,
    /// `@name` of an abstract socket of init. Only the canary has this target and the following ones.
    InsideSocket,
    /// Directory of the host that must be invisible, or must not be opened.
    ClosedDirectory,
    /// File that is readable by its mode for all users, and that no Landlock rule names.
    UnruledFile,
    /// Path of a file that does not exist and must not be created.
    NewFile,
}

impl Kind {
    /// Kind of a sandbox by its tier; `shows_proc` says that its root has a /proc.
    pub fn of(tier: Tier, shows_proc: bool) -> Self {
        match tier {
            Tier::Namespace if shows_proc => Self::Namespace,
            Tier::Namespace => Self::NamespaceWithoutProc,
            Tier::Inherited => Self::Inherited,
        }
    }
}

impl Class {
    /// Name of a probe with its class.
    pub fn full_name(&self, probe: &Probe) -> String {
        format!("{}/{}", self.id, probe.name)
    }
}

/// Class with this id, description and probes.
pub(super) const fn class(
    id: &'static str,
    about: &'static str,
    probes: &'static [Probe],
) -> Class {
    Class { id, about, probes }
}

impl Probe {
    /// Probe without targets, made in no kind of sandbox, with its twin on the host.
    pub const fn new(name: &'static str, make: fn(&[OsString]) -> Result<String, Errno>) -> Self {
        Self::by_call(name, Call::Function(make))
    }

    /// Probe by one system call.
    pub(super) const fn raw(
        name: &'static str,
        call: RawCall,
        arguments: &'static [Argument],
    ) -> Self {
        Self::by_call(name, Call::Raw(call, arguments))
    }

    const fn by_call(name: &'static str, call: Call) -> Self {
        let unmade = Expected {
            refusals: &[],
            entry: LedgerEntry::None,
        };
        Self {
            name,
            call,
            inside: &[],
            outside: &[],
            twin_env: TwinEnv::Host,
            arrives: &[],
            expected: [unmade; 3],
            canary: None,
        }
    }

    /// Sets the targets inside and outside.
    pub const fn at(self, aims: &'static [Aim]) -> Self {
        Self {
            inside: aims,
            outside: aims,
            ..self
        }
    }

    /// Sets other targets for the twin outside.
    pub(super) const fn twin_at(self, outside: &'static [Aim]) -> Self {
        Self { outside, ..self }
    }

    /// Sets other targets inside.
    pub(super) const fn aim_inside(self, inside: &'static [Aim]) -> Self {
        Self { inside, ..self }
    }

    pub(super) const fn twin_in(self, twin_env: TwinEnv) -> Self {
        Self { twin_env, ..self }
    }

    /// Sets the errnos that prove the twin's arrival.
    pub const fn twin_arrives(self, arrives: &'static [Errno]) -> Self {
        Self { arrives, ..self }
    }

    /// Sets the expectation for all kinds.
    pub const fn blocked(self, refusals: &'static [Refusal], entry: LedgerEntry) -> Self {
        Self {
            expected: [Expected { refusals, entry }; 3],
            ..self
        }
    }

    /// Sets the expectation for a new root without /proc.
    pub(super) const fn without_proc(self, refusals: &'static [Refusal]) -> Self {
        let [first, second, third] = self.expected;
        Self {
            expected: [first, Expected { refusals, ..second }, third],
            ..self
        }
    }

    /// Sets the expectation for tier `inherited`; without refusals the probe is not made there.
    pub const fn inherited(self, refusals: &'static [Refusal], entry: LedgerEntry) -> Self {
        let [first, second, _] = self.expected;
        Self {
            expected: [first, second, Expected { refusals, entry }],
            ..self
        }
    }

    /// Makes the probe part of the canary in these kinds.
    pub(super) const fn canary(self, name: &'static str, kinds: &'static [Kind]) -> Self {
        let canary = Canary {
            name,
            kinds,
            is_marked: false,
            outside: None,
        };
        Self {
            canary: Some(canary),
            ..self
        }
    }

    /// Makes the probe part of the canary in both modes.
    pub(super) const fn canary_in_both_modes(self, name: &'static str) -> Self {
        let canary = Canary {
            name,
            kinds: ANY,
            is_marked: true,
            outside: None,
        };
        Self {
            canary: Some(canary),
            ..self
        }
    }

    /// Makes the same call outside, at each run.
    pub(super) const fn same_outside(self) -> Self {
        let call = self.call;
        self.outside_by(call)
    }

    /// Makes a cheaper call outside, at each run.
    pub(super) const fn outside_by(self, call: Call) -> Self {
        let canary = match self.canary {
            Some(canary) => Some(Canary {
                outside: Some(call),
                ..canary
            }),
            None => None,
        };
        Self { canary, ..self }
    }

    /// Expectation for a kind of sandbox.
    pub fn expected(&self, kind: Kind) -> &Expected {
        let [namespace, without_proc, inherited] = &self.expected;
        match kind {
            Kind::Namespace => namespace,
            Kind::NamespaceWithoutProc => without_proc,
            Kind::Inherited => inherited,
        }
    }
}

/// Refusal by a layer with this errno.
pub const fn by(layer: Layer, errno: Errno) -> Refusal {
    let reply = if errno as i32 == NOTHING as i32 {
        Reply::Nothing
    } else {
        Reply::Refused(errno as i32)
    };
    Refusal { reply, layer }
}

/// SIGSYS from the filter, for calls of a foreign architecture. Only x86-64 can make such calls.
pub const KILLED: Refusal = Refusal {
    reply: Reply::Killed(libc::SIGSYS),
    layer: Layer::Filter,
};

impl LedgerEntry {
    /// Checks that `attempt` is this entry of a probe with these targets. The outcome is not compared.
    pub fn is(self, attempt: &evidence::Attempt, targets: &[OsString]) -> bool {
        let first = word(targets, 0).unwrap_or_default();
        match self {
            Self::None => true,
            Self::Call(call) => attempt.syscall == call,
            Self::To(call) => attempt.syscall == call && is_address(attempt, first),
            Self::Socket(family, kind) => {
                let protocol = word(targets, 2)
                    .ok()
                    .and_then(|word| word.parse::<u32>().ok());
                attempt.syscall == "socket"
                    && attempt.family.as_deref() == Some(family)
                    && attempt.socket_type.as_deref() == Some(kind)
                    && (protocol.is_none() || attempt.protocol == protocol)
            }
        }
    }

    /// Checks that `attempt` is the socket(2) before the call of this entry.
    pub fn is_socket_of(self, attempt: &evidence::Attempt, targets: &[OsString]) -> bool {
        let to = word(targets, 0).ok().and_then(|word| word.parse().ok());
        let family = match to {
            Some(SocketAddr::V4(_)) => "inet",
            Some(SocketAddr::V6(_)) => "inet6",
            None => return false,
        };
        matches!(self, Self::To(_))
            && attempt.syscall == "socket"
            && attempt.family.as_deref() == Some(family)
    }
}

/// True if the entry has this address: an IP address with a port, a path, or an abstract name after `@`.
fn is_address(attempt: &evidence::Attempt, word: &str) -> bool {
    match word.parse::<SocketAddr>() {
        Ok(address) => {
            attempt.address.as_deref() == Some(address.ip().to_string().as_str())
                && attempt.port == Some(address.port())
        }
        Err(_) => attempt.address.as_deref() == Some(word),
    }
}

impl Refusal {
    /// Outcome of the ledger entry if the supervisor refused.
    pub fn outcome(&self) -> Option<evidence::Outcome> {
        let errno = self.reply.errno()?;
        (self.layer == Layer::Supervisor).then_some(evidence::Outcome::Denied(errno))
    }
}

impl Layer {
    /// Name in the report.
    pub const fn words(self) -> &'static str {
        match self {
            Self::NetworkNamespace => "network namespace",
            Self::PidNamespace => "pid namespace",
            Self::OwnRoot => "own root",
            Self::NoExec => "noexec",
            Self::Landlock => "Landlock",
            Self::Filter => "filter",
            Self::Supervisor => "supervisor",
            Self::Capabilities => "no capabilities",
            Self::Descriptors => "closed descriptors",
            Self::Limits => "limits",
            Self::NoNewPrivileges => "no_new_privs",
            Self::Running => "running program",
            Self::FileMode => "file mode",
            Self::PrivateMounts => "private mounts",
        }
    }
}
