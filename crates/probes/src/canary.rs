//! The canary: probes that must fail, and two that must succeed, made inside by our own code.
//!
//! The probes run in a child of the client's process, before its exec, with the client's Landlock domain, filter and
//! credentials. With isolation `inherited`, one restriction follows: Landlock without TCP, since a probe connects. Each
//! probe names the errno that only its layer gives.
//!
//! Each network probe is made twice. *Answered*: the supervisor refuses and records the call. *Continued*: the
//! supervisor lets the call through, and the kernel itself must refuse it. A probe asks to be continued by the protocol
//! of its socket, which other programs leave 0, and by the stub's port.

mod attempts;
mod table;

use std::ffi::OsString;
use std::net::SocketAddr;

use model::case::Tier;
use nix::errno::Errno;
use nix::sys::socket::SockProtocol;
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

pub use table::{Expected, ExpectedRecord, Probe, ROUTES, Route, probes};

/// Destination port of network probes that the supervisor answers.
const ANSWERED_PORT: u16 = 443;

/// Targets of the probes in one process.
#[derive(Clone, Copy)]
pub struct ProbeEnv<'a> {
    /// Targets that the runner prepared.
    pub plan: &'a CanaryTargets,
    /// Process that the client must not reach.
    pub init: Pid,
    /// Port of the stub on loopback.
    pub stub_port: u16,
}

/// Makes one probe and returns the kernel's result.
pub type ProbeFn = fn(&ProbeEnv<'_>) -> Result<(), Errno>;

/// Result of one probe inside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observation {
    /// Name of the probe.
    pub name: String,
    /// Mode in which the probe was made.
    pub mode: Mode,
    /// Errno of the call; 0 for success.
    pub errno: i32,
}

/// Part that must refuse a probe: `CanaryMode` of the model, on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// The supervisor refuses the call.
    Answered,
    /// The supervisor lets the call through, and the kernel refuses it.
    Continued,
}

impl Mode {
    /// Both modes, in the order of the report.
    pub const BOTH: [Self; 2] = [Self::Answered, Self::Continued];

    /// Destination port of a network probe in this mode.
    fn port(self, stub_port: u16) -> u16 {
        match self {
            Self::Answered => ANSWERED_PORT,
            Self::Continued => stub_port,
        }
    }

    /// Protocol that a datagram socket names in this mode.
    fn protocol(self) -> Option<SockProtocol> {
        (self == Self::Continued).then_some(SockProtocol::Udp)
    }
}

/// Name of the probe that reaches the stub.
pub const STUB: &str = "stub";
/// Name of the probe that depends on Landlock's scopes, which ABI 6 added.
pub const ABSTRACT_INSIDE: &str = "abstract-socket-inside";

/// Kind of sandbox, which selects the probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// New root with a /proc of its own.
    Namespace,
    /// New root without /proc.
    NamespaceWithoutProc,
    /// Root and network of the container.
    Inherited,
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

/// Makes all probes inside.
pub fn observe(kind: Kind, env: &ProbeEnv<'_>) -> Vec<Observation> {
    let mut observed = Vec::new();
    for route in ROUTES {
        for mode in Mode::BOTH {
            let made = (route.attempt)(mode.port(env.stub_port), mode.protocol());
            observed.push(observation(route.name, mode, made));
        }
    }
    observed.extend(
        probes(kind).map(|probe| observation(probe.name, probe.mode(), (probe.inside)(env))),
    );
    observed
}

/// Observation of a probe with this result.
pub fn observation(name: &str, mode: Mode, result: Result<(), Errno>) -> Observation {
    Observation {
        name: name.to_owned(),
        mode,
        errno: result.map_or_else(|errno| errno as i32, |()| 0),
    }
}

/// Targets of the probes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CanaryTargets {
    /// Home of the client, by its path inside.
    pub home: OsString,
    /// File that is readable by its mode for all users, and that no Landlock rule names.
    pub unruled_file: OsString,
    /// Abstract socket name at which init listens while the probes run, inside.
    pub inside_socket: String,
    /// Abstract socket name at which the runner listens in its own network namespace.
    pub outside_socket: String,
    /// Directory of the host that must be invisible, or must not be opened.
    pub outside_directory: OsString,
    /// Path of a file that does not exist and must not be created.
    pub outside_file: OsString,
    /// Address at which the runner listens on loopback, in a container's network; else `None`.
    pub neighbour: Option<SocketAddr>,
}
