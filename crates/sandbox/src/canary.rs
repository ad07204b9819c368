//! Canaries: attempts that must fail, and two that must succeed, made inside by our own code.
//!
//! They run in a child of the client's process, after its last restriction and before its exec, so that
//! domain, filter and credentials are the client's own. Each names the errno that only the layer it stands
//! for would give. Each network canary is tried twice: *answered*, where the supervisor refuses and records, and
//! *continued*, where the supervisor lets it through and the kernel itself must refuse. What is to be continued is
//! marked: it names its socket's protocol, which nobody has to, and the stub's port.
//! The runner makes some attempts outside as well: what is refused there too supports no claim.

mod attempts;
pub(crate) mod outside;
mod table;

use nix::errno::Errno;
use nix::sys::socket::SockProtocol;
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use super::plan::ProbePlan;
use model::case::Tier;
use model::evidence::{Attempt, Canary, CanaryMode, CanaryStatus, Outcome};
use table::{Expected, Record, WAYS, probes};

/// Destination port of the network canaries that the supervisor answers.
const ANSWERED_PORT: u16 = 443;

/// Where an attempt is made.
#[derive(Clone, Copy)]
pub(super) struct Scene<'a> {
    pub(super) plan: &'a ProbePlan,
    /// The process that the client must not reach.
    pub(super) init: Pid,
    pub(super) stub_port: u16,
}

/// Makes one attempt: what the kernel said.
type Try = fn(&Scene<'_>) -> Result<(), Errno>;

/// What one canary observed inside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Observation {
    pub(crate) name: String,
    pub(crate) mode: Mode,
    /// 0 where the call succeeded.
    pub(crate) errno: i32,
}

/// Who is to refuse: [`CanaryMode`] on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Mode {
    Answered,
    Continued,
}

impl Mode {
    const BOTH: [Self; 2] = [Self::Answered, Self::Continued];

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
pub(super) const STUB: &str = "stub";
/// Depends on Landlock's scopes, which came with ABI 6.
const ABSTRACT_INSIDE: &str = "abstract-socket-inside";

/// What the sandbox is made of, as far as it decides what is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A root of its own, and a fresh /proc in it.
    Namespace,
    /// A root of its own without a /proc.
    NamespaceWithoutProc,
    /// The container's root and network.
    Inherited,
}

impl Kind {
    pub(super) fn of(tier: Tier, shows_proc: bool) -> Self {
        match tier {
            Tier::Namespace if shows_proc => Self::Namespace,
            Tier::Namespace => Self::NamespaceWithoutProc,
            Tier::Inherited => Self::Inherited,
        }
    }
}

/// Makes every attempt inside.
pub(super) fn observe(kind: Kind, scene: &Scene<'_>) -> Vec<Observation> {
    let mut observed = Vec::new();
    for way in WAYS {
        for mode in Mode::BOTH {
            let made = (way.attempt)(mode.port(scene.stub_port), mode.protocol());
            observed.push(observation(way.name, mode, made));
        }
    }
    observed.extend(
        probes(kind).map(|probe| observation(probe.name, probe.mode(), (probe.inside)(scene))),
    );
    observed
}

pub(super) fn observation(name: &str, mode: Mode, result: Result<(), Errno>) -> Observation {
    Observation {
        name: name.to_owned(),
        mode,
        errno: result.map_or_else(|errno| errno as i32, |()| 0),
    }
}

/// What a verdict on the canaries rests on.
pub(super) struct Ground<'a> {
    pub(super) kind: Kind,
    pub(super) stub_port: u16,
    pub(super) observed: &'a [Observation],
    /// What the supervisor recorded while they ran.
    pub(super) recorded: &'a [Attempt],
    pub(super) refused_outside: &'a [&'static str],
    /// Landlock's scopes are enforced.
    pub(super) scopes: bool,
}

impl Ground<'_> {
    /// Puts what was observed beside what was expected. A canary that is missing was not held, and neither was
    /// one that the supervisor should have recorded and did not.
    pub(super) fn judge(&self) -> Vec<Canary> {
        let reached = Expected {
            errno: None,
            instead: None,
            record: None,
        };
        let mut canaries = vec![self.canary(STUB, Mode::Continued, reached)];
        for way in WAYS {
            for mode in Mode::BOTH {
                let expected = way.expected(self.kind, mode, self.stub_port);
                canaries.push(self.canary(way.name, mode, expected));
            }
        }
        let probes = probes(self.kind);
        canaries
            .extend(probes.map(|probe| self.canary(probe.name, probe.mode(), probe.expected())));
        canaries
    }

    fn canary(&self, name: &str, mode: Mode, expected: Expected) -> Canary {
        let found = self
            .observed
            .iter()
            .find(|one| one.name == name && one.mode == mode);
        let errno = found.map(|one| one.errno);
        let instead = expected.instead.map(|errno| errno as i32);
        let wanted = errno
            .filter(|_| errno == instead)
            .unwrap_or_else(|| expected.errno.map_or(0, |errno| errno as i32));
        let as_expected = errno == Some(wanted);
        let recorded = expected
            .record
            .is_none_or(|record| self.recorded.iter().any(|attempt| record.is(attempt)));
        let unscoped = name == ABSTRACT_INSIDE && !self.scopes;
        // What the supervisor has recorded is its own doing, whatever happens outside.
        let is_seen = mode == Mode::Answered && as_expected && recorded;
        let refused_outside = self.refused_outside.contains(&name) && errno != Some(0);
        let without_claim = unscoped || (refused_outside && !is_seen);
        let status = match errno {
            Some(_) if without_claim => CanaryStatus::NotApplicable,
            Some(_) if as_expected && recorded => CanaryStatus::Held,
            Some(_) | None => CanaryStatus::NotHeld,
        };
        // Without a line of its own or of its socket, the call never came to the supervisor.
        let asked = |record: Record| {
            self.recorded
                .iter()
                .any(|attempt| record.is(attempt) || record.is_socket(attempt))
        };
        let unseen = mode == Mode::Answered
            && status == CanaryStatus::NotApplicable
            && expected.record.is_some_and(|record| !asked(record));
        let observed = match errno {
            None => "missing".to_owned(),
            Some(errno) if as_expected && !recorded => format!("{}, not recorded", text(errno)),
            Some(errno) => text(errno),
        };
        Canary {
            name: name.to_owned(),
            mode: match mode {
                Mode::Answered => CanaryMode::Answered,
                Mode::Continued => CanaryMode::Continued,
            },
            expected: text(wanted),
            observed,
            status,
            unseen,
        }
    }
}

fn text(errno: i32) -> String {
    if errno == 0 {
        "ok".to_owned()
    } else {
        format!("{:?}", Errno::from_raw(errno))
    }
}

#[cfg(test)]
mod tests;
