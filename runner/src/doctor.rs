//! `runner doctor`: finds the isolation that a run gets on this machine, and the causes that prevent a better one.
//!
//! The verdict is that of a dry run: case B goes through a run's own steps ([`dry_run`]), so that what works here works
//! in a run. The causes are those of a run's hints ([`crate::advice`]).
//!
//! | module | owns |
//! |---|---|
//! | [`trial`] | the probes in their order, and the process of each |
//! | [`dry_run`] | a case and an audit without a user's client |
//! | [`landlock`], [`features`] | a denial for each ABI of Landlock; features that a run can do without |
//! | [`probe`] | result of a probe, with cause and fixes |

mod apparmor;
pub(crate) mod audited;
mod dry_run;
mod features;
mod human;
pub mod json;
mod landlock;
mod probe;
#[cfg(test)]
mod tests;
pub(crate) mod trial;

use std::io::{self, Write};

use model::case::Tier;
use report::RenderError;
use report::human::Colour;
use sys::fds::close_on_exec_from;
use sys::process::reset_child_signal;
use thiserror::Error;

use crate::advice::Evidence;
use crate::prepare::{MIN_OPEN_FILES, open_enough_files};
use crate::request::DoctorAction;
use probe::{Need, Probe, Status};

/// Errors of `runner doctor`.
#[derive(Debug, Error)]
pub(crate) enum DoctorError {
    /// The result cannot be written as text or JSON.
    #[error("cannot write the result")]
    Render(#[from] RenderError),
    /// The path of this executable is not valid in an AppArmor profile.
    #[error("cannot make the AppArmor profile")]
    Profile(#[source] io::Error),
    /// The result cannot be written to standard output.
    #[error("cannot write the output")]
    Write(#[from] io::Error),
}

/// Results of all probes.
struct Examination {
    evidence: Evidence,
    probes: Vec<Probe>,
    /// Isolation that a run gets; `None` if a run is not possible.
    tier: Option<Tier>,
}

/// Tests this machine and writes the result. Returns the exit code.
pub(crate) fn run(
    action: DoctorAction,
    colour: Colour,
    out: &mut impl Write,
) -> Result<u8, DoctorError> {
    let (code, text) = match action {
        DoctorAction::AppArmor => (0, apparmor::profile().map_err(DoctorError::Profile)?),
        DoctorAction::Human => {
            let examination = Examination::make();
            let text = human::render(&examination, colour).map_err(RenderError::from)?;
            (examination.exit_code(), text)
        }
        DoctorAction::Json => {
            let examination = Examination::make();
            let text = json::render(&examination).map_err(RenderError::from)?;
            (examination.exit_code(), text)
        }
    };
    out.write_all(&text)?;
    out.flush()?;
    Ok(code)
}

impl Examination {
    fn make() -> Self {
        // Trials must not inherit our caller's descriptors. If the kernel refuses, the trials report it.
        let _ = close_on_exec_from(3);
        reset_child_signal();
        // A run raises its soft limit. The trial of a run reports a hard limit that is too low.
        let _ = open_enough_files(MIN_OPEN_FILES, 0);
        let mut of_case = trial::CASE.make();
        let mut probes = of_case.clone();
        if of_case
            .iter()
            .any(|one| one.id == trial::CASE.id && one.step.is_some())
        {
            // No trial can be started here.
            return Self::new(&of_case, probes);
        }
        let at_limit = |one: &Probe| one.errno.as_deref() == Some("EAGAIN");
        if of_case.iter().any(at_limit) {
            // A run needs one process less than a trial, which has returned, so that this run returns too.
            of_case = trial::CASE.make_here();
            probes.clone_from(&of_case);
        }
        let is_inherited = |one: &Probe| one.id == Tier::Inherited.word();
        if of_case.iter().any(is_run) && !of_case.iter().any(is_inherited) {
            probes.extend(trial::INHERITED.make());
        }
        if of_case.iter().any(|one| is_run(one) && one.works()) {
            probes.extend(trial::AUDIT.make());
        }
        probes.extend(trial::ATTEMPTS.iter().flat_map(trial::Trial::make));
        Self::new(&of_case, probes)
    }

    fn new(of_case: &[Probe], probes: Vec<Probe>) -> Self {
        Self {
            evidence: Evidence::read(),
            tier: tier(of_case, &probes),
            probes,
        }
    }

    /// Reason for the verdict, which fits on its line.
    fn reason(&self) -> &'static str {
        let lacks = |id: &str| {
            let mut refused = self.probes.iter();
            refused.any(|one| one.id == id && one.status == Status::Refused)
        };
        match self.tier {
            Some(Tier::Namespace) if lacks("fresh-proc") => {
                "a run has namespaces of its own, without a fresh /proc; case-b was run, and passed"
            }
            Some(Tier::Namespace) => "a run has namespaces of its own; case-b was run, and passed",
            Some(Tier::Inherited) => {
                "a run uses this network namespace, which has loopback only; case-b was run, and passed"
            }
            None => "no run is possible here",
        }
    }

    /// Exit code: 0 for namespace, 1 for inherited only, 3 for none.
    fn exit_code(&self) -> u8 {
        match self.tier {
            Some(Tier::Namespace) => 0,
            Some(Tier::Inherited) => 1,
            None => 3,
        }
    }
}

/// True for the probe of a whole run.
fn is_run(probe: &Probe) -> bool {
    Tier::ALL.iter().any(|tier| probe.id == tier.word())
}

/// Isolation of the run that passed, unless a feature that it requires is refused.
fn tier(of_case: &[Probe], all: &[Probe]) -> Option<Tier> {
    let tier = of_case
        .iter()
        .find(|one| is_run(one) && one.works())?
        .isolation;
    let mut needed = all.iter().filter(|one| {
        one.need == Need::Required && (one.isolation.is_none() || one.isolation == tier)
    });
    let is_lacking = needed.any(|one| one.status == Status::Refused);
    tier.filter(|_| !is_lacking)
}
