//! Judgement of the canary: results inside, ledger entries, and results outside of the same probes.

pub mod outside;
pub mod targets;

use model::evidence::{Attempt, Canary, CanaryMode, CanaryStatus};
use nix::errno::Errno;

pub use probes::canary::{
    ABSTRACT_INSIDE, Expected, ExpectedRecord, Kind, Mode, Observation, ROUTES, STUB, probes,
};

/// Evidence about the canary of one run.
pub(super) struct Context<'a> {
    pub(super) kind: Kind,
    pub(super) stub_port: u16,
    pub(super) observed: &'a [Observation],
    /// Ledger entries from the time of the canary.
    pub(super) recorded: &'a [Attempt],
    /// Names of the probes that are refused outside too.
    pub(super) refused_outside: &'a [&'static str],
    /// Landlock's scopes are enforced.
    pub(super) scopes: bool,
}

impl Context<'_> {
    /// Compares each probe's result with the expected one. A probe without a result, or without its expected ledger
    /// entry, is not held.
    pub(super) fn judge(&self) -> Vec<Canary> {
        let reached = Expected {
            errno: None,
            instead: None,
            record: None,
        };
        let mut canaries = vec![self.canary(STUB, Mode::Continued, reached)];
        for route in ROUTES {
            for mode in Mode::BOTH {
                let expected = route.expected(self.kind, mode, self.stub_port);
                canaries.push(self.canary(route.name, mode, expected));
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
        // A ledger entry proves that the supervisor itself refused, even if the host refuses too.
        let is_seen = mode == Mode::Answered && as_expected && recorded;
        let refused_outside = self.refused_outside.contains(&name) && errno != Some(0);
        let without_claim = unscoped || (refused_outside && !is_seen);
        let status = match errno {
            Some(_) if without_claim => CanaryStatus::NotApplicable,
            Some(_) if as_expected && recorded => CanaryStatus::Held,
            Some(_) | None => CanaryStatus::NotHeld,
        };
        // Without a ledger entry for the call or its socket, the call did not reach the supervisor.
        let is_notified = |record: ExpectedRecord| {
            self.recorded
                .iter()
                .any(|attempt| record.is(attempt) || record.is_socket(attempt))
        };
        let unseen = mode == Mode::Answered
            && status == CanaryStatus::NotApplicable
            && expected.record.is_some_and(|record| !is_notified(record));
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
