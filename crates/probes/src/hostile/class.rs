//! The table's types: classes of escapes, their attempts, and what counts as blocked. Data; the families fill it.
//!
//! An attempt is blocked by a closed list of errnos, each with the layer that gives it, and never by "an error".

use model::case::Tier;
use nix::errno::Errno;

use super::reply::Reply;

/// One way out.
#[derive(Clone, Copy, Debug)]
pub struct Class {
    /// Stable: `sockets/vsock`. What stands before the slash is its group.
    pub id: &'static str,
    /// What is tried, in a few words.
    pub about: &'static str,
    pub attempts: &'static [Attempt],
}

/// Makes one attempt with the words that its aims stand for. A detail where it got through; the errno where not;
/// [`NOTHING`] where it looked for something and found nothing.
pub(super) type Make = fn(&[String]) -> Result<String, Errno>;

/// Looked, and found nothing. No call gives this errno.
pub(super) const NOTHING: Errno = Errno::ENOANO;

/// One call, or a short sequence.
#[derive(Clone, Copy, Debug)]
pub struct Attempt {
    /// Its own within the class.
    pub name: &'static str,
    pub make: Make,
    /// What it is aimed at inside, and for its twin outside.
    pub inside: &'static [Aim],
    pub outside: &'static [Aim],
    /// Where the twin is made.
    pub surroundings: Surroundings,
    /// Errnos of a twin that show that the call has arrived where the layer stands, though nothing came of it.
    pub arrives: &'static [Errno],
    pub namespace: Column,
    pub inherited: Column,
}

/// What one tier makes of an attempt.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Empty: not attempted in this tier.
    pub refusals: &'static [Refusal],
    pub record: LedgerEntry,
}

/// One way to be blocked.
#[derive(Clone, Copy, Debug)]
pub struct Refusal {
    pub reply: Reply,
    pub layer: Layer,
}

/// The entry of the ledger that the attempt must leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LedgerEntry {
    /// No evidence is claimed of it.
    None,
    /// This call to the first aim.
    To(&'static str),
    /// A socket of this family and type, as the ledger names them.
    Socket(&'static str, &'static str),
    /// This call.
    Call(&'static str),
}

/// What stands in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    NetworkNamespace,
    PidNamespace,
    OwnRoot,
    NoExec,
    Landlock,
    Filter,
    Supervisor,
    Capabilities,
    Descriptors,
    Limits,
    NoNewPrivileges,
    /// The kernel refuses writing to a program that runs.
    Running,
    /// The file belongs to another user.
    FileMode,
    /// Mounts are private.
    PrivateMounts,
}

/// Where the twin of an attempt is made, so that it succeeds and reaches nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Surroundings {
    /// As the runner runs.
    Host,
    /// In user, network and mount namespaces of its own, with all capabilities there.
    OwnNamespaces,
    /// There, with addresses for documentation on loopback and somebody who listens at them.
    World,
    /// There, with a /run in which daemons listen.
    Daemons,
    /// On the host, if a core would be a file in the current directory and start no program.
    CoreFiles,
}

/// What an attempt is aimed at; the words are known once the targets live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aim {
    Word(&'static str),
    /// `@name` of a stream and of a datagram socket of the runner's.
    AbstractStream,
    AbstractDatagram,
    /// Paths of such sockets, in a directory that everybody may enter.
    StreamSocket,
    DatagramSocket,
    /// Addresses on loopback, at which the runner answers.
    TcpListener,
    UdpListener,
    /// A process that waits, of the runner's user.
    Victim,
    /// The runner, whose thread is the supervisor.
    Supervisor,
    /// A directory that everybody may write, a file to read, one to write, and one that could be executed.
    Directory,
    ReadableFile,
    WritableFile,
    ProgramFile,
    /// `/proc/PID/` of the victim.
    VictimDirectory,
}

impl Class {
    /// `sockets` of `sockets/vsock`.
    pub fn group(&self) -> &'static str {
        self.id.split_once('/').map_or(self.id, |(group, _)| group)
    }
}

impl Attempt {
    /// Aimed at nothing, made on the host, blocked by nothing yet.
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
            surroundings: Surroundings::Host,
            arrives: &[],
            namespace: column,
            inherited: column,
        }
    }

    /// Aimed at the same inside and outside.
    pub const fn at(self, aims: &'static [Aim]) -> Self {
        Self {
            inside: aims,
            outside: aims,
            ..self
        }
    }

    /// The twin outside is aimed at something that is there.
    pub(super) const fn twin_at(self, aims: &'static [Aim]) -> Self {
        Self {
            outside: aims,
            ..self
        }
    }

    pub(super) const fn twin_in(self, surroundings: Surroundings) -> Self {
        Self {
            surroundings,
            ..self
        }
    }

    pub const fn twin_arrives(self, arrives: &'static [Errno]) -> Self {
        Self { arrives, ..self }
    }

    /// What blocks it in either tier, with the same entry of the ledger.
    pub const fn blocked(self, refusals: &'static [Refusal], record: LedgerEntry) -> Self {
        let column = Column { refusals, record };
        Self {
            namespace: column,
            inherited: column,
            ..self
        }
    }

    /// What blocks it in tier `inherited`.
    pub const fn inherited(self, refusals: &'static [Refusal], record: LedgerEntry) -> Self {
        Self {
            inherited: Column { refusals, record },
            ..self
        }
    }

    pub fn column(&self, tier: Tier) -> &Column {
        match tier {
            Tier::Namespace => &self.namespace,
            Tier::Inherited => &self.inherited,
        }
    }
}

/// Refused with this errno by this layer.
pub const fn by(layer: Layer, errno: Errno) -> Refusal {
    let reply = if errno as i32 == NOTHING as i32 {
        Reply::Nothing
    } else {
        Reply::Refused(errno as i32)
    };
    Refusal { reply, layer }
}

/// Killed with SIGSYS by the filter: what a foreign architecture asks for, which only x86-64 can be made to try.
#[cfg(any(test, target_arch = "x86_64"))]
pub const KILLED: Refusal = Refusal {
    reply: Reply::Killed(libc::SIGSYS),
    layer: Layer::Filter,
};

impl Layer {
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

impl Surroundings {
    pub(super) const ALL: [Self; 5] = [
        Self::Host,
        Self::OwnNamespaces,
        Self::World,
        Self::Daemons,
        Self::CoreFiles,
    ];

    /// The word for it on the hostile client's command line.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::OwnNamespaces => "own-namespaces",
            Self::World => "world",
            Self::Daemons => "daemons",
            Self::CoreFiles => "core-files",
        }
    }
}
