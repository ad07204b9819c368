//! Judges the canaries: what was observed inside, what the supervisor recorded, what is refused outside as well.

pub mod outside;

use model::evidence::{Attempt, Canary, CanaryMode, CanaryStatus};
use nix::errno::Errno;

pub use probes::canary::{
    ABSTRACT_INSIDE, Expected, ExpectedRecord, Kind, Mode, Observation, ROUTES, STUB, probes,
};

/// What a verdict on the canaries rests on.
pub(super) struct Context<'a> {
    pub(super) kind: Kind,
    pub(super) stub_port: u16,
    pub(super) observed: &'a [Observation],
    /// What the supervisor recorded while they ran.
    pub(super) recorded: &'a [Attempt],
    pub(super) refused_outside: &'a [&'static str],
    /// Landlock's scopes are enforced.
    pub(super) scopes: bool,
}

impl Context<'_> {
    /// Puts what was observed beside what was expected. A canary that is missing was not held, and neither was
    /// one that the supervisor should have recorded and did not.
    pub(super) fn judge(&self) -> Vec<Canary> {
        let reached = Expected {
            errno: None,
            instead: None,
            record: None,
        };
        let mut canaries = vec![self.canary(STUB, Mode::Continued, reached)];
        for way in ROUTES {
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
        let asked = |record: ExpectedRecord| {
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
