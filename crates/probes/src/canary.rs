//! The canary: probes that must fail, and two that must succeed, made inside by our own code.
//!
//! The probes run in a child of the client's process, before its exec, with the client's Landlock domain, filter and
//! credentials. With isolation `inherited`, one restriction follows: Landlock without TCP, since a probe connects. Each
//! probe names the errno that only its layer gives.
//!
//! Each network probe is made twice. *Answered*: the supervisor refuses and records the call. *Continued*: the
//! supervisor lets the call through, and the kernel itself must refuse it. A probe asks to be continued by the protocol
//! of its socket, which other programs leave 0, and by the stub's port.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;

use model::evidence::{Attempt, CanaryMode as Mode};
use model::wire;
use nix::errno::Errno;
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use sys::errno_of;

use crate::probe::{Aim, Canary, Expected, Kind, Layer, LedgerEntry, Probe, by};
use crate::table;
use crate::table::network::MARK;

pub use crate::table::ABSTRACT_INSIDE;

/// Name of the probe that reaches the stub.
pub const STUB: &str = "stub";
/// Name of the probe that writes a file in the home.
pub const HOME: &str = "home";

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

/// Expectation of a marked probe that the supervisor lets through. Loopback of a new network namespace has IPv6; a
/// container's network may lack it, as Docker's do.
const CONTINUED: Expected = Expected {
    refusals: &[by(Layer::NetworkNamespace, Errno::ENETUNREACH)],
    entry: LedgerEntry::None,
};
const CONTINUED_IPV6: Expected = Expected {
    refusals: &[
        by(Layer::NetworkNamespace, Errno::ENETUNREACH),
        by(Layer::NetworkNamespace, Errno::EADDRNOTAVAIL),
    ],
    ..CONTINUED
};

/// One probe of the canary in one mode.
#[derive(Debug)]
pub struct Member {
    /// Probe in the table.
    pub probe: &'static Probe,
    /// Name in the report.
    pub name: &'static str,
    /// Part that must refuse the probe.
    pub mode: Mode,
    /// Expected result.
    pub expected: Expected,
    /// Texts of the targets.
    pub targets: Vec<OsString>,
}

impl Member {
    /// True if the probe must have a ledger entry.
    pub fn must_be_recorded(&self) -> bool {
        self.expected.entry != LedgerEntry::None
    }

    /// Checks that `attempt` is the ledger entry of the probe. The outcome is not compared.
    pub fn is_recorded_by(&self, attempt: &Attempt) -> bool {
        self.expected.entry.is(attempt, &self.targets)
    }

    /// Checks that `attempt` is the socket(2) before the recorded call.
    pub fn is_socket_recorded_by(&self, attempt: &Attempt) -> bool {
        self.expected.entry.is_socket_of(attempt, &self.targets)
    }
}

/// Lists the probes of a kind of sandbox, in the order of the report.
pub fn members(kind: Kind, env: &ProbeEnv<'_>) -> Vec<Member> {
    let member = |probe: &'static Probe, canary: &Canary, mode| {
        let mut targets = env.targets(probe);
        let mut expected = *probe.expected(kind);
        if let (true, Mode::Continued, Some(first)) = (canary.is_marked, mode, targets.first_mut())
        {
            let address = first.to_str().map(str::parse::<SocketAddr>);
            if let Some(Ok(mut address)) = address {
                address.set_port(env.stub_port);
                *first = address.to_string().into();
                let may_lack_address = address.is_ipv6() && kind == Kind::Inherited;
                // In a container's network, the entry of an answered datagram is that of its socket.
                expected = Expected {
                    entry: probe.expected(Kind::Namespace).entry,
                    ..if may_lack_address {
                        CONTINUED_IPV6
                    } else {
                        CONTINUED
                    }
                };
            }
            targets.push(MARK.into());
        }
        Member {
            probe,
            name: canary.name,
            mode,
            expected,
            targets,
        }
    };
    let mut members = Vec::new();
    for (probe, canary) in table::canary(kind) {
        let refusal = probe.expected(kind).refusals.first();
        let is_answered = refusal.is_some_and(|refusal| refusal.layer == Layer::Supervisor);
        if is_answered {
            members.push(member(probe, canary, Mode::Answered));
        }
        if canary.is_marked || !is_answered {
            members.push(member(probe, canary, Mode::Continued));
        }
    }
    members
}

/// Makes all probes inside.
pub fn observe(kind: Kind, env: &ProbeEnv<'_>) -> Vec<Observation> {
    let mut observed = vec![observation(
        HOME,
        Mode::Continued,
        write_home(&env.plan.home),
    )];
    for member in members(kind, env) {
        let made = member.probe.call.make(&member.targets).map(drop);
        observed.push(observation(member.name, member.mode, made));
    }
    observed
}

fn write_home(home: &OsStr) -> Result<(), Errno> {
    let path = Path::new(home).join(".canary");
    let written = File::create_new(&path).and_then(|mut file| file.write_all(b"canary"));
    fs::remove_file(&path).and(written).map_err(errno_of)
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
    #[serde(with = "wire::string")]
    pub home: OsString,
    /// File that is readable by its mode for all users, and that no Landlock rule names.
    #[serde(with = "wire::string")]
    pub unruled_file: OsString,
    /// Abstract socket name at which init listens while the probes run, inside.
    pub inside_socket: String,
    /// Abstract socket name at which the runner listens in its own network namespace.
    pub outside_socket: String,
    /// Directory of the host that must be invisible, or must not be opened.
    #[serde(with = "wire::string")]
    pub outside_directory: OsString,
    /// Path of a file that does not exist and must not be created.
    #[serde(with = "wire::string")]
    pub outside_file: OsString,
    /// Address at which the runner listens on loopback, in a container's network; else `None`.
    pub neighbour: Option<SocketAddr>,
}

impl ProbeEnv<'_> {
    /// Texts of the targets of a probe.
    pub fn targets(&self, probe: &Probe) -> Vec<OsString> {
        probe.inside.iter().map(|aim| self.text(*aim)).collect()
    }

    /// Text of a target; empty for a target that the canary does not have.
    fn text(&self, aim: Aim) -> OsString {
        let plan = self.plan;
        match aim {
            Aim::Word(word) => word.into(),
            Aim::AbstractStream => format!("@{}", plan.outside_socket).into(),
            Aim::InsideSocket => format!("@{}", plan.inside_socket).into(),
            Aim::ClosedDirectory => plan.outside_directory.clone(),
            Aim::UnruledFile => plan.unruled_file.clone(),
            Aim::NewFile => plan.outside_file.clone(),
            Aim::TcpListener => plan
                .neighbour
                .map_or_else(OsString::new, |to| to.to_string().into()),
            Aim::Victim | Aim::Init => self.init.to_string().into(),
            Aim::VictimDirectory | Aim::InitDirectory => format!("/proc/{}/", self.init).into(),
            Aim::AbstractDatagram
            | Aim::StreamSocket
            | Aim::DatagramSocket
            | Aim::UdpListener
            | Aim::Supervisor
            | Aim::Directory
            | Aim::ReadableFile
            | Aim::WritableFile
            | Aim::ProgramFile => OsString::new(),
        }
    }
}
