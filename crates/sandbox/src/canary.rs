//! Judgement of the canary: results inside, ledger entries, and results outside of the same probes.

pub mod outside;
pub mod targets;

use model::evidence::{Attempt, Canary, CanaryMode as Mode, CanaryStatus, Outcome};
use nix::errno::Errno;
use nix::unistd::Pid;
use probes::canary::{
    ABSTRACT_INSIDE, CanaryTargets, HOME, Member, Observation, ProbeEnv, STUB, members,
};

pub use probes::probe::Kind;

/// Evidence about the canary of one run.
pub(super) struct Context<'a> {
    pub(super) kind: Kind,
    pub(super) targets: &'a CanaryTargets,
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
    /// Probes of this run. No ledger entry of the canary depends on the pid of init.
    fn members(&self) -> Vec<Member> {
        let env = ProbeEnv {
            plan: self.targets,
            init: Pid::from_raw(1),
            stub_port: self.stub_port,
        };
        members(self.kind, &env)
    }

    /// Compares each probe's result with the expected one. A probe without a result, or without its expected ledger
    /// entry, is not held.
    pub(super) fn judge(&self) -> Vec<Canary> {
        let positive = [STUB, HOME].map(|name| self.canary(name, Mode::Continued, None));
        let mut canaries = Vec::from(positive);
        for member in self.members() {
            canaries.push(self.canary(member.name, member.mode, Some(&member)));
        }
        canaries
    }

    /// Judges a probe; without `member` the probe must succeed.
    fn canary(&self, name: &str, mode: Mode, member: Option<&Member>) -> Canary {
        let found = self
            .observed
            .iter()
            .find(|one| one.name == name && one.mode == mode);
        let errno = found.map(|one| one.errno);
        let refusals = member.iter().flat_map(|member| member.expected.refusals);
        let mut expected = refusals.filter_map(|refusal| Some(refusal.reply.errno()? as i32));
        let first = expected.next().unwrap_or(0);
        let wanted = expected
            .find(|other| errno == Some(*other))
            .unwrap_or(first);
        let as_expected = errno == Some(wanted);
        let outcome = match mode {
            Mode::Answered => Outcome::Denied(Errno::from_raw(wanted)),
            Mode::Continued => Outcome::Allowed,
        };
        let is_entry = |attempt: &Attempt| {
            member.is_none_or(|member| member.is_recorded_by(attempt)) && attempt.outcome == outcome
        };
        let recorded =
            !member.is_some_and(Member::must_be_recorded) || self.recorded.iter().any(is_entry);
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
        let is_notified = |member: &Member| {
            self.recorded
                .iter()
                .any(|attempt| is_entry(attempt) || member.is_socket_recorded_by(attempt))
        };
        let unseen = mode == Mode::Answered
            && status == CanaryStatus::NotApplicable
            && member.is_some_and(|member| !is_notified(member));
        let observed = match errno {
            None => "missing".to_owned(),
            Some(errno) if as_expected && !recorded => format!("{}, not recorded", text(errno)),
            Some(errno) => text(errno),
        };
        Canary {
            name: name.to_owned(),
            mode,
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
