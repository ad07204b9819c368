//! `runner selftest`: a built-in hostile client goes through a run like any client. Each of its attempts has a twin
//! outside the sandbox, by the same code.
//!
//! A class is *blocked* if each of its attempts was refused inside as expected, has its entry in the ledger, and
//! succeeded outside. As expected means: by the listed layer, with the listed errno. An attempt that is refused outside
//! too is *inconclusive*, never a pass: the machine may have refused it inside.
//!
//! Must not know: how a run is made. The hostile client is a workload of the built-in case B.

mod judge;
mod show;
mod targets;

use std::ffi::OsString;
use std::io::{self, IsTerminal as _, Write as _};

use model::case::Tier;
use model::evidence::{Evidence, Line};
use model::profile::Settings;
use policy::{self, PolicyError, Reference};
use probes::probe::Kind;
use probes::reply::Said;
use probes::{hostile, table};
use report::{Form, RenderError};
use sandbox::error::SetupError;
use sandbox::guard::Guarded;
use sandbox::verify::FRESH_PROC;
use thiserror::Error;

use crate::build_report::{self, PassedOver};
use crate::collect::Failure;
use crate::output;
use crate::request::{ClientProgram, IsolationChoice, RunRequest, SelftestRequest};
use crate::run::{self, RunError};
use crate::workload::Workload;
use judge::{Input, Outcome, Status};
use show::Answer;
use targets::Targets;

pub(crate) use probes::hostile::{HOSTILE_ARGUMENT, main};
pub use show::schema;

/// Errors of `runner selftest`.
#[derive(Debug, Error)]
pub(crate) enum SelftestError {
    #[error("cannot read the built-in case")]
    Policy(#[from] PolicyError),
    #[error("cannot make a directory for the targets of the hostile client")]
    Directory(#[source] SetupError),
    #[error("cannot make the targets of the hostile client")]
    Targets(#[source] io::Error),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error("the hostile client was not started")]
    NotStarted {
        #[source]
        failure: Failure,
        /// Stronger isolation that this machine does not support, with the errors.
        passed_over: Vec<PassedOver>,
    },
    #[error("cannot build the answer")]
    Render(#[from] RenderError),
    #[error("cannot write the answer")]
    Write(#[source] io::Error),
}

/// Result of the selftest, which selects the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SelftestVerdict {
    /// No attempt got through.
    Held,
    /// An attempt got through.
    Broken,
    /// No attempt got through, an attempt is inconclusive, and `--strict` was given.
    Inconclusive,
}

/// Makes the twins, then the attempts, and writes the answer to standard output.
///
/// # Errors
/// The run was not possible, or the answer cannot be written.
pub(crate) fn run(request: SelftestRequest) -> Result<SelftestVerdict, SelftestError> {
    let mut stdout = output::stdout().map_err(SelftestError::Write)?;
    let directory = Guarded::empty("runner-selftest").map_err(SelftestError::Directory)?;
    let targets = Targets::make_in(directory).map_err(SelftestError::Targets)?;
    // The twins come first: the run makes inherited descriptors close-on-exec for all later children.
    let outside = twins(&targets);
    let done = run::for_evidence(&run_request(request.isolation, &targets)?)?;
    if let Some(failure) = done.failure {
        return Err(SelftestError::NotStarted {
            failure,
            passed_over: done.passed_over,
        });
    }
    let because = done.passed_over.first().map(build_report::because);
    let classes = judge(&targets, done.tier, &outside, &done.evidence);
    let answer = Answer::new(done.tier, because, classes);
    let bytes = match request.form {
        Form::Human => answer
            .human(run::colour(io::stdout().is_terminal()))
            .into_bytes(),
        Form::Json => answer.json()?,
    };
    let written = stdout.write_all(&bytes).and_then(|()| stdout.flush());
    written.map_err(SelftestError::Write)?;
    Ok(match answer.status {
        Status::Blocked => SelftestVerdict::Held,
        Status::Inconclusive if request.strict => SelftestVerdict::Inconclusive,
        Status::Inconclusive => SelftestVerdict::Held,
        Status::Through => SelftestVerdict::Broken,
    })
}

fn twins(targets: &Targets) -> Vec<Said> {
    table::classes()
        .flat_map(|class| class.probes.iter().map(move |probe| (class, probe)))
        .map(|(class, probe)| targets.twin(&class.full_name(probe), probe))
        .collect()
}

/// A run of case B with the hostile client. Its attempts follow the arguments of an ordinary client.
fn run_request(isolation: IsolationChoice, targets: &Targets) -> Result<RunRequest, SelftestError> {
    let built_in = |name: &str| Reference::BuiltIn(name.into());
    let mut further: Vec<OsString> = Vec::new();
    for class in table::classes() {
        for probe in class.probes {
            further.extend([hostile::ATTEMPT.into(), class.full_name(probe).into()]);
            further.extend(targets.texts(probe.inside));
        }
    }
    let case = policy::case(&built_in("case-b"))?;
    let profile = policy::profile(&built_in("reference"))?;
    let workload = Workload::Client {
        expect: Box::new(case.expect.of_client(&profile)),
        case: Box::new(case),
        profile,
        settings: Settings::OfCase,
        asked_stub: None,
        further,
    };
    Ok(RunRequest::for_evidence(
        workload,
        ClientProgram::Hostile,
        isolation,
    ))
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
    let shows_proc = evidence.layers.iter().all(|layer| layer.name != FRESH_PROC);
    let input = Input {
        kind: Kind::of(tier, shows_proc),
        inside: &inside,
        outside,
        ledger: &evidence.attempts,
    };
    table::classes()
        .filter_map(|class| input.judge(class, |probe| targets.texts(probe.inside)))
        .collect()
}
