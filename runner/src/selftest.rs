//! `runner selftest`: a hostile client that this executable carries goes through the same run as any client, and
//! each way out that it tries is put beside its twin outside, which nothing blocks.
//!
//! A class is *blocked* where each of its attempts was refused inside by the layer that the table names, with that
//! errno, left its entry in the ledger, and succeeded outside by the same code. What is refused outside as well says
//! nothing about the sandbox: it is *inconclusive*, and never a pass.
//!
//! Must not know: how a run is made. The hostile client is a workload like another, under the built-in case B.

mod judge;
mod show;
mod targets;

use std::ffi::OsString;
use std::io::{self, IsTerminal as _, Write as _};

use model::case::Tier;
use model::evidence::{Evidence, Line};
use model::profile::Settings;
use policy::{self, PolicyError, Reference};
use probes::hostile::reply::Said;
use probes::hostile::{self, table};
use report::human::Colour;
use report::{Form, RenderError};
use sandbox::error::SetupError;
use sandbox::guard::Guarded;
use thiserror::Error;

use crate::cli::{ClientProgram, Isolation, RunRequest};
use crate::collect::Failure;
use crate::run::{self, PassedOver, RunError};
use crate::workload::Workload;
use crate::{describe, output};
use judge::{Input, Outcome, Status, full_name};
use targets::Targets;

pub(crate) use probes::hostile::{HOSTILE_ARGUMENT, main};
pub use show::schema;

/// What `runner selftest` was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SelftestRequest {
    /// Which tier is tested.
    pub isolation: Isolation,
    /// The form of the answer.
    pub form: Form,
    /// Something inconclusive is no success.
    pub strict: bool,
}

/// Why there is no answer.
#[derive(Debug, Error)]
pub(crate) enum SelftestError {
    #[error("the built-in case cannot be read")]
    Policy(#[from] PolicyError),
    #[error("cannot make a directory for the targets that the hostile client aims at")]
    Directory(#[source] SetupError),
    #[error("cannot make the targets that the hostile client aims at")]
    Targets(#[source] io::Error),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error("the hostile client was not started")]
    NotStarted {
        #[source]
        failure: Failure,
        /// The stronger tiers that this host does not have.
        passed_over: Vec<PassedOver>,
    },
    #[error("the answer cannot be made")]
    Render(#[from] RenderError),
    #[error("the answer cannot be written")]
    Write(#[source] io::Error),
}

/// What became of the sandbox: the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    /// Nothing got through.
    All,
    /// Something got through.
    NotAll,
    /// Nothing did, something is not known, and that was asked for.
    Unknown,
}

/// Every class, judged.
#[derive(Debug)]
struct Answer {
    tier: Tier,
    /// Why it is not a stronger one that would have done.
    because: Option<String>,
    classes: Vec<Outcome>,
}

/// Makes the twins, then the attempts, and writes the answer to standard output.
///
/// # Errors
/// What stood in the way of an answer.
pub(crate) fn run(request: SelftestRequest) -> Result<Held, SelftestError> {
    let mut stdout = output::stdout().map_err(SelftestError::Write)?;
    let directory = Guarded::empty("runner-selftest").map_err(SelftestError::Directory)?;
    let targets = Targets::make_in(directory).map_err(SelftestError::Targets)?;
    // Before the run, which closes for every child of ours what our caller left open.
    let outside = twins(&targets);
    let done = run::for_evidence(&run_request(request.isolation, &targets)?)?;
    if let Some(failure) = done.failure {
        return Err(SelftestError::NotStarted {
            failure,
            passed_over: done.passed_over,
        });
    }
    let answer = Answer {
        tier: done.tier,
        because: done.passed_over.first().map(describe::because),
        classes: judge(&targets, done.tier, &outside, &done.evidence),
    };
    let bytes = match request.form {
        Form::Human => answer.human(colour()).into_bytes(),
        Form::Json => answer.json()?,
    };
    let written = stdout.write_all(&bytes).and_then(|()| stdout.flush());
    written.map_err(SelftestError::Write)?;
    Ok(match answer.status() {
        Status::Blocked => Held::All,
        Status::Inconclusive if request.strict => Held::Unknown,
        Status::Inconclusive => Held::All,
        Status::Through => Held::NotAll,
    })
}

fn twins(targets: &Targets) -> Vec<Said> {
    table::classes()
        .flat_map(|class| class.attempts.iter().map(move |attempt| (class, attempt)))
        .map(|(class, attempt)| targets.twin(&full_name(class, attempt), attempt))
        .collect()
}

/// Case B with the hostile client, which is told what to try behind what any client is told.
fn run_request(isolation: Isolation, targets: &Targets) -> Result<RunRequest, SelftestError> {
    let built_in = |name: &str| Reference::BuiltIn(name.into());
    let mut further: Vec<OsString> = Vec::new();
    for class in table::classes() {
        for attempt in class.attempts {
            further.extend([hostile::ATTEMPT.into(), full_name(class, attempt).into()]);
            further.extend(
                targets
                    .words(attempt.inside)
                    .into_iter()
                    .map(OsString::from),
            );
        }
    }
    Ok(RunRequest {
        workload: Workload::Client {
            case: Box::new(policy::case(&built_in("case-b"))?),
            profile: policy::profile(&built_in("reference"))?,
            settings: Settings::OfCase,
            asked_stub: None,
            further,
        },
        client: ClientProgram::Hostile,
        reports: Vec::new(),
        isolation,
        timeout: None,
        out: None,
        baseline: None,
        keep_home: false,
    })
}

fn judge(targets: &Targets, tier: Tier, outside: &[Said], evidence: &Evidence) -> Vec<Outcome> {
    let inside: Vec<Said> = evidence
        .records
        .iter()
        .filter_map(|record| match &record.line {
            Line::Record(value) => serde_json::from_value(value.clone()).ok(),
            Line::NotJson { .. } => None,
        })
        .collect();
    let heard = Input {
        tier,
        inside: &inside,
        outside,
        ledger: &evidence.attempts,
    };
    let words = |attempt: &hostile::class::Attempt| targets.words(attempt.inside);
    table::classes()
        .filter_map(|class| heard.judge(class, &words))
        .collect()
}

/// Colour on a terminal, unless NO_COLOR is there (no-color.org: any value but the empty one).
fn colour() -> Colour {
    let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if io::stdout().is_terminal() && !unwanted {
        Colour::Ansi
    } else {
        Colour::Plain
    }
}
