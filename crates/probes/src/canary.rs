//! Canaries: attempts that must fail, and two that must succeed, made inside by our own code.
//!
//! They run in a child of the client's process, after its last restriction and before its exec, so that
//! domain, filter and credentials are the client's own. Each names the errno that only the layer it stands
//! for would give. Each network canary is tried twice: *answered*, where the supervisor refuses and records, and
//! *continued*, where the supervisor lets it through and the kernel itself must refuse. What is to be continued is
//! marked: it names its socket's protocol, which nobody has to, and the stub's port.

mod attempts;
mod table;

use std::ffi::OsString;
use std::net::SocketAddr;

use model::case::Tier;
use nix::errno::Errno;
use nix::sys::socket::SockProtocol;
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

pub use table::{Expected, LedgerEntry, Probe, ROUTES, Route, probes};

/// Destination port of the network canaries that the supervisor answers.
const ANSWERED_PORT: u16 = 443;

/// Where an attempt is made.
#[derive(Clone, Copy)]
pub struct ProbeEnv<'a> {
    pub plan: &'a CanaryTargets,
    /// The process that the client must not reach.
    pub init: Pid,
    pub stub_port: u16,
}

/// Makes one attempt: what the kernel said.
pub type Try = fn(&ProbeEnv<'_>) -> Result<(), Errno>;

/// What one canary observed inside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observation {
    pub name: String,
    pub mode: Mode,
    /// 0 where the call succeeded.
    pub errno: i32,
}

/// Who is to refuse: [`CanaryMode`] on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    Answered,
    Continued,
}

impl Mode {
    pub const BOTH: [Self; 2] = [Self::Answered, Self::Continued];

    /// Destination of a network canary in this mode.
    fn port(self, stub_port: u16) -> u16 {
        match self {
            Self::Answered => ANSWERED_PORT,
            Self::Continued => stub_port,
        }
    }

    /// What its datagram socket asks for.
    fn protocol(self) -> Option<SockProtocol> {
        (self == Self::Continued).then_some(SockProtocol::Udp)
    }
}

/// The canary that reaches the stub.
pub const STUB: &str = "stub";
/// Depends on Landlock's scopes, which came with ABI 6.
pub const ABSTRACT_INSIDE: &str = "abstract-socket-inside";

/// What the sandbox is made of, as far as it decides what is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A root of its own, and a fresh /proc in it.
    Namespace,
    /// A root of its own without a /proc.
    NamespaceWithoutProc,
    /// The container's root and network.
    Inherited,
}

impl Kind {
    pub fn of(tier: Tier, shows_proc: bool) -> Self {
        match tier {
            Tier::Namespace if shows_proc => Self::Namespace,
            Tier::Namespace => Self::NamespaceWithoutProc,
            Tier::Inherited => Self::Inherited,
        }
    }
}

/// Makes every attempt inside.
pub fn observe(kind: Kind, env: &ProbeEnv<'_>) -> Vec<Observation> {
    let mut observed = Vec::new();
    for way in ROUTES {
        for mode in Mode::BOTH {
            let made = (way.attempt)(mode.port(env.stub_port), mode.protocol());
            observed.push(observation(way.name, mode, made));
        }
    }
    observed.extend(
        probes(kind).map(|probe| observation(probe.name, probe.mode(), (probe.inside)(env))),
    );
    observed
}

pub fn observation(name: &str, mode: Mode, result: Result<(), Errno>) -> Observation {
    Observation {
        name: name.to_owned(),
        mode,
        errno: result.map_or_else(|errno| errno as i32, |()| 0),
    }
}

/// Targets of the canaries.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CanaryTargets {
    /// Home of the client, as it names it.
    pub home: OsString,
    /// A file that everybody may read by its mode, and that no Landlock rule names.
    pub unruled_file: OsString,
    /// Abstract name on which init listens while the canaries run: a live target beside the client.
    pub inside_socket: String,
    /// Abstract name on which the runner listens in its own network namespace.
    pub outside_socket: String,
    /// A directory of the host that must not be visible, or not be opened.
    pub outside_directory: OsString,
    /// A file that is not there, and that must not be made.
    pub outside_file: OsString,
    /// Where the runner listens on loopback, where the client has no network of its own: a neighbour.
    pub neighbour: Option<SocketAddr>,
}
