//! Types of the table of attempts: classes, their attempts, and the results that count as blocked.
//!
//! An attempt is blocked only by a result of its list: an errno or a signal, each with the layer that gives it. Any
//! other error is not a pass.

use model::case::Tier;
use nix::errno::Errno;

use super::reply::Reply;

/// Class of escape attempts.
#[derive(Clone, Copy, Debug)]
pub struct Class {
    /// Stable id, as `sockets/vsock`. The part before the slash is the group.
    pub id: &'static str,
    /// Description for the report, a few words.
    pub about: &'static str,
    /// Attempts of the class.
    pub attempts: &'static [Attempt],
}

/// Makes one attempt at the targets that its aims stand for. Returns a detail if the attempt got through, else the
/// errno, or [`NOTHING`] for a search without a result.
pub(super) type Make = fn(&[String]) -> Result<String, Errno>;

/// Result of a search that found nothing. No system call in use gives this errno.
pub(super) const NOTHING: Errno = Errno::ENOANO;

/// Escape attempt: one system call, or a short sequence.
#[derive(Clone, Copy, Debug)]
pub struct Attempt {
    /// Name, unique within the class.
    pub name: &'static str,
    /// Makes the attempt.
    pub make: Make,
    /// Targets inside.
    pub inside: &'static [Aim],
    /// Targets of the twin outside.
    pub outside: &'static [Aim],
    /// Environment of the twin.
    pub twin_env: TwinEnv,
    /// Errnos of the twin that prove that the call reached the kernel's own checks.
    pub arrives: &'static [Errno],
    /// Expectation for tier `namespace`.
    pub namespace: Column,
    /// Expectation for tier `inherited`.
    pub inherited: Column,
}

/// Expectation of an attempt in one tier.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Results that count as blocked; empty if the attempt is not made in this tier.
    pub refusals: &'static [Refusal],
    /// Entry of the ledger that the attempt must leave.
    pub record: LedgerEntry,
}

/// Result that counts as blocked.
#[derive(Clone, Copy, Debug)]
pub struct Refusal {
    /// Result of the attempt.
    pub reply: Reply,
    /// Layer that gives this result.
    pub layer: Layer,
}

/// Entry of the ledger that an attempt must leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LedgerEntry {
    /// No entry is required.
    None,
    /// This system call to the first target.
    To(&'static str),
    /// socket(2) of this family and type, as the ledger names them.
    Socket(&'static str, &'static str),
    /// This system call.
    Call(&'static str),
}

/// Layer of the sandbox that blocks an attempt.
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

/// Environment in which the twin of an attempt succeeds without an effect on other programs.
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

/// Target of an attempt. All but [`Self::Word`] are made by the runner, and get their text then.
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
    /// Pid of a waiting process of the runner's user.
    Victim,
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
    /// `/proc/PID/` of the victim.
    VictimDirectory,
}

impl Class {
    /// Group of the class: `sockets` of `sockets/vsock`.
    pub fn group(&self) -> &'static str {
        self.id.split_once('/').map_or(self.id, |(group, _)| group)
    }
}

impl Attempt {
    /// Attempt without targets, made in neither tier, with its twin on the host.
    pub const fn new(name: &'static str, make: Make) -> Self {
        let column = Column {
            refusals: &[],
            record: LedgerEntry::None,
        };
        Self {
            name,
            make,
            inside: &[],
            outside: &[],
            twin_env: TwinEnv::Host,
            arrives: &[],
            namespace: column,
            inherited: column,
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
    pub(super) const fn twin_at(self, aims: &'static [Aim]) -> Self {
        Self {
            outside: aims,
            ..self
        }
    }

    pub(super) const fn twin_in(self, twin_env: TwinEnv) -> Self {
        Self { twin_env, ..self }
    }

    /// Sets the errnos that prove the twin's arrival.
    pub const fn twin_arrives(self, arrives: &'static [Errno]) -> Self {
        Self { arrives, ..self }
    }

    /// Sets the expectation for both tiers.
    pub const fn blocked(self, refusals: &'static [Refusal], record: LedgerEntry) -> Self {
        let column = Column { refusals, record };
        Self {
            namespace: column,
            inherited: column,
            ..self
        }
    }

    /// Sets the expectation for tier `inherited`.
    pub const fn inherited(self, refusals: &'static [Refusal], record: LedgerEntry) -> Self {
        Self {
            inherited: Column { refusals, record },
            ..self
        }
    }

    /// Expectation for a tier.
    pub fn column(&self, tier: Tier) -> &Column {
        match tier {
            Tier::Namespace => &self.namespace,
            Tier::Inherited => &self.inherited,
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

impl TwinEnv {
    pub(super) const ALL: [Self; 5] = [
        Self::Host,
        Self::OwnNamespaces,
        Self::FakeInternet,
        Self::Daemons,
        Self::CoreFiles,
    ];

    /// Word on the hostile client's command line.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::OwnNamespaces => "own-namespaces",
            Self::FakeInternet => "world",
            Self::Daemons => "daemons",
            Self::CoreFiles => "core-files",
        }
    }
}
