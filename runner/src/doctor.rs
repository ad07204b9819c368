//! `runner doctor`: which tier a run gets here, and what stands in the way of a better one.
//!
//! Every answer is from trying it: each probe makes the attempt with the functions that a run uses, in a process of its
//! own ([`trial`]), and a real run must agree in the end ([`whole_run`]). No version is compared, and what kind of
//! container this is decides nothing but the wording of a fix.
//!
//! | room | owns |
//! |---|---|
//! | [`probes`] | what is tried, in which order, and which tier needs it |
//! | [`trials`] | the attempts |
//! | [`trial`] | a process for each, its time limit, what it came to |
//! | [`judge`] | the tier that is possible, the verdict |
//! | [`advice`] | cause and fix |
//! | [`context`] | the surroundings, for people |

mod advice;
mod apparmor;
mod context;
mod human;
pub mod json;
mod judge;
mod probes;
#[cfg(test)]
mod tests;
pub(crate) mod trial;
mod trials;
mod whole_run;

use std::io::{self, Write};

use report::RenderError;
use report::human::Colour;
use sys::fds::close_on_exec_from;
use sys::process::reset_child_signal;
use thiserror::Error;

use advice::Advice;
use context::Context;
use judge::{Possible, Tried, Verdict};
use trial::Observation;
use whole_run::WholeRun;

/// What `runner doctor` is to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DoctorAction {
    /// The examination, for people.
    Human,
    /// The examination, as JSON.
    Json,
    /// The AppArmor profile for this executable; nothing is examined.
    AppArmor,
}

/// Why nothing came of it.
#[derive(Debug, Error)]
pub(crate) enum DoctorError {
    /// The examination has no such form.
    #[error("the examination cannot be shown")]
    Render(#[from] RenderError),
    /// The path of this executable cannot stand in a profile.
    #[error("the AppArmor profile cannot be made")]
    Profile(#[source] io::Error),
    /// The output cannot be written.
    #[error("the output cannot be written")]
    Write(#[from] io::Error),
}

/// Everything that was found.
struct Examination {
    context: Context,
    tried: Vec<Tried>,
    possible: Possible,
    run: WholeRun,
    verdict: Verdict,
}

/// Examines this host and writes what was found; the exit code.
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
    // What our caller left open is nothing to a trial. Where this is refused the trials say so themselves.
    let _ = close_on_exec_from(3);
    reset_child_signal();
    let tried = try_all(trial::make);
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

/// Each by `make`, unless something that it builds on does not work.
fn try_all(make: impl Fn(&str) -> Observation) -> Vec<Tried> {
    let mut tried: Vec<Tried> = Vec::new();
    for probe in probes::ALL {
        let unfulfilled = probe.after.iter().find(|id| {
            let mut earlier = tried.iter().filter(|one| one.probe.id == **id);
            !earlier.all(Tried::is_fulfilled)
        });
        let observation = match unfulfilled {
            Some(id) => Observation::Untried(format!("it builds on {id}, which does not work")),
            None => make(probe.id),
        };
        tried.push(Tried { probe, observation });
    }
    tried
}

impl Examination {
    fn advice(&self, one: &Tried) -> Option<Advice> {
        advice::advise(one, &self.tried, &self.context)
    }
}
