//! `runner doctor`: finds the isolation that a run gets on this machine, and the causes that prevent a better one.
//!
//! Each probe makes its attempt with the functions that a run uses, in a process of its own ([`trial`]). At the end a
//! real run must agree ([`whole_run`]). No version is compared. The kind of container changes the wording of a fix,
//! never the verdict.
//!
//! | module | owns |
//! |---|---|
//! | [`probes`] | the attempts in their order, and the isolation that needs each |
//! | [`trials`] | the functions that make the attempts |
//! | [`trial`] | the process of an attempt, its time limit, its result |
//! | [`judge`] | the possible isolation, the verdict |
//! | [`advice`] | cause and fix |
//! | [`context`] | kernel, user, container and security modules, for people |

mod advice;
mod apparmor;
mod context;
mod human;
pub mod json;
mod judge;
mod probes;
#[cfg(test)]
mod tests;
mod trial;
pub(crate) mod trial_process;
mod trials;
mod whole_run;

use std::io::{self, Write};

use report::RenderError;
use report::human::Colour;
use sys::fds::close_on_exec_from;
use sys::process::reset_child_signal;
use thiserror::Error;

use crate::request::DoctorAction;
use advice::Advice;
use context::Context;
use judge::{Possible, ProbeResult, Verdict};
use trial::Observation;
use whole_run::WholeRun;

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

/// Results of all probes and of the real run.
struct Examination {
    context: Context,
    tried: Vec<ProbeResult>,
    possible: Possible,
    run: WholeRun,
    verdict: Verdict,
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
            let examination = examine();
            let text = human::render(&examination, colour).map_err(RenderError::from)?;
            (examination.verdict.exit_code(), text)
        }
        DoctorAction::Json => {
            let examination = examine();
            let text = json::render(&examination).map_err(RenderError::from)?;
            (examination.verdict.exit_code(), text)
        }
    };
    out.write_all(&text)?;
    out.flush()?;
    Ok(code)
}

fn examine() -> Examination {
    // Trials must not inherit our caller's descriptors. If the kernel refuses, the trials report it.
    let _ = close_on_exec_from(3);
    reset_child_signal();
    let tried = try_all(trial_process::make);
    let possible = judge::possible(&tried);
    let run = whole_run::make();
    let verdict = judge::verdict(&tried, possible, &run);
    Examination {
        context: Context::read(),
        tried,
        possible,
        run,
        verdict,
    }
}

/// Makes each probe by `make`. A probe is untried if a probe that it depends on does not work.
fn try_all(make: impl Fn(&str) -> Observation) -> Vec<ProbeResult> {
    let mut tried: Vec<ProbeResult> = Vec::new();
    for probe in probes::ALL {
        let unfulfilled = probe.after.iter().find(|id| {
            let mut earlier = tried.iter().filter(|one| one.probe.id == **id);
            !earlier.all(ProbeResult::is_fulfilled)
        });
        let observation = match unfulfilled {
            Some(id) => Observation::Untried(format!("it depends on {id}, which does not work")),
            None => make(probe.id),
        };
        tried.push(ProbeResult { probe, observation });
    }
    tried
}

impl Examination {
    fn advice(&self, one: &ProbeResult) -> Option<Advice> {
        advice::advise(one, &self.tried, &self.context)
    }
}
