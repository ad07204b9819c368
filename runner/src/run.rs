//! One run, from its request to its verdict: the pipeline, one line a step.

use std::io;
use std::path::PathBuf;

use judge::{check, gate};
use model::case::Tier;
use model::evidence::{Evidence, Exit, GapKind};
use model::finding::{Finding, Verdict};
use model::report::{Purpose, Report};
use report::human::Colour;
use sandbox::error::SetupError;
use sandbox::guard::TemporaryTrees;
use sandbox::plan::ClientPaths;
use sandbox::spawn::{self, Stage, Waiting};
use sys::clock::Clock;
use sys::process::{absorb_one_signal, block_end_signals};
use thiserror::Error;

use crate::accept;
use crate::baseline::BaselineError;
use crate::build_evidence;
use crate::build_report::{self, PassedOver};
use crate::bundle::output_dir::OutputDirectoryError;
use crate::bundle::{Bundle, Bundled};
use crate::client_input::{ClientInput, InputError};
use crate::collect::home_copy::{Kept, keep};
use crate::collect::{self, Capture, CollectSettings, Failure};
use crate::output::{OutputError, WriteError};
use crate::prepare::{PrepareError, Prepared, prepare};
use crate::request::RunRequest;
use crate::startable::{self, NotStartable};
use crate::workload::Workload;

mod outputs;

use outputs::{Outputs, Written};

pub(crate) use outputs::inputs;

/// Error that prevents a report, or the delivery of one.
#[derive(Debug, Error)]
pub(crate) enum RunError {
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error(transparent)]
    Bundle(#[from] OutputDirectoryError),
    #[error(transparent)]
    Baseline(#[from] BaselineError),
    #[error(transparent)]
    NotStartable(#[from] NotStartable),
    #[error(transparent)]
    Prepare(#[from] PrepareError),
    #[error(transparent)]
    Input(#[from] InputError),
    #[error("cannot set up the event loop and its threads")]
    EventLoop(#[source] io::Error),
    #[error("the case accepts no isolation")]
    NoTier,
    #[error("cannot hash the program")]
    Digest(#[source] io::Error),
    #[error("cannot make a directory for the copy of the home")]
    Keep(#[source] io::Error),
}

/// Result of a run.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) verdict: Verdict,
    /// End of the client.
    pub(crate) exit: Exit,
    /// Reason for not starting the client.
    pub(crate) failure: Option<Failure>,
    /// Stronger isolation levels that this host does not support.
    pub(crate) passed_over: Vec<PassedOver>,
    /// Copy of the client's home.
    pub(crate) kept: Option<Kept>,
    /// The requested bundle of evidence, if it is complete.
    pub(crate) bundled: Option<Bundled>,
    /// Reports and output that could not be delivered.
    pub(crate) lost: Vec<WriteError>,
    /// Error that cut the program's standard input short.
    pub(crate) input_error: Option<io::Error>,
    /// Bytes to write before other text on standard error, which follows a program's output; empty after a
    /// report.
    pub(crate) before: Vec<u8>,
}

/// Makes one run and writes its reports. `waiting` is a stage that was started before the request was known.
///
/// # Errors
/// Returns the error that prevents a report. A run that could not be made is not an error here: its report says
/// so.
pub(crate) fn run(request: &RunRequest, waiting: Option<Waiting>) -> Result<Done, RunError> {
    make(request, waiting, absorb_one_signal).map(|(done, _)| done)
}

/// Makes one of several runs. Ending signals are blocked afterwards, so that they end the next run.
///
/// # Errors
/// The same errors as [`run`].
pub(crate) fn one_of_several(
    request: &RunRequest,
    waiting: Option<Waiting>,
) -> Result<(Done, Report), RunError> {
    make(request, waiting, block_end_signals)
}

/// Makes one run. `settle_signals` is called when the client has ended, before the reports are written.
fn make(
    request: &RunRequest,
    mut waiting: Option<Waiting>,
    settle_signals: fn(),
) -> Result<(Done, Report), RunError> {
    let clock = Clock::start();
    let mut input = ClientInput::open(&request.stdin)?;
    let mut outputs = Outputs::open(request)?;
    let Launched {
        mut prepared,
        trees,
        mut capture,
        _stage,
        passed_over,
    } = {
        let files = outputs.files();
        let bundle = outputs.bundle().map(|bundle| &*bundle);
        launch_in_strongest_tier(request, (&files, bundle), (&mut waiting, &mut input), clock)?
    };
    settle_signals();
    let (failure, landlock_abi) = (capture.failure.take(), capture.landlock_abi);
    let exit = capture.exit;
    let unwritten = std::mem::take(&mut capture.unwritten);
    let input_error = input.and_then(|mut input| input.finish());
    let mut before = std::mem::take(&mut capture.before_report);
    let kept = request
        .keep_home
        .then(|| kept_home(&capture, request.workload.sandbox().limits.home_bytes));
    let (kept, unkept) = match kept.transpose() {
        Ok(kept) => (kept.flatten(), None),
        Err(error) => (None, Some(WriteError::Keep(error))),
    };
    let evidence = evidence_of(request, &prepared, capture, trees, clock, outputs.bundle());
    let mut checks = checks(&request.workload, &prepared, &evidence);
    let uid = prepared.plan.client_uid();
    accept::propose(&request.workload, uid, &evidence, &mut checks);
    let verdict = match request.workload.purpose() {
        Purpose::Judge => check::verdict(&checks, &evidence),
        Purpose::Audit => gate::verdict(&checks, &evidence),
    };
    let content = prepared.digest.wait().map_err(RunError::Digest)?;
    // The kernel starts no file that is open for writing (execve(2), ETXTBSY). Without a start, a mapping could still
    // change the file and leave its times as they are.
    if failure.is_none() {
        prepared.digest.remember(&content);
    }
    let mut report = build_report::build(
        request,
        &prepared,
        content,
        (landlock_abi, passed_over.first()),
        checks,
        verdict,
        evidence,
    );
    if !request.fail_on.is_empty() {
        let check = gate::fail_on(&request.fail_on, &report);
        report.checks.push(check);
        report.verdict = gate::verdict(&report.checks, &report.evidence);
    }
    let Written { mut lost, bundled } = outputs.write(&mut report, &mut before);
    let passing = |(stream, source)| WriteError::Passing { stream, source };
    lost.extend(unwritten.into_iter().map(passing).chain(unkept));
    let done = Done {
        verdict: report.verdict,
        exit,
        failure,
        passed_over,
        kept,
        bundled,
        lost,
        input_error,
        before,
    };
    Ok((done, report))
}

/// Evidence and verdict of a run without a report, for selftest and doctor.
pub(crate) struct Collected {
    pub(crate) tier: Tier,
    /// User id of the client on the host.
    pub(crate) client_uid: u32,
    pub(crate) evidence: Evidence,
    pub(crate) verdict: Verdict,
    /// Reason for not starting the client.
    pub(crate) failure: Option<Failure>,
    /// Stronger isolation levels that this host does not support.
    pub(crate) passed_over: Vec<PassedOver>,
}

/// Makes one run up to its evidence, without a report.
///
/// # Errors
/// The same errors as [`run`].
pub(crate) fn for_evidence(request: &RunRequest) -> Result<Collected, RunError> {
    let clock = Clock::start();
    let Launched {
        prepared,
        trees,
        mut capture,
        _stage,
        passed_over,
        ..
    } = launch_in_strongest_tier(request, (&[], None), (&mut None, &mut None), clock)?;
    let failure = capture.failure.take();
    let evidence = evidence_of(request, &prepared, capture, trees, clock, None);
    let checks = checks(&request.workload, &prepared, &evidence);
    Ok(Collected {
        tier: prepared.plan.tier,
        client_uid: prepared.plan.client_uid(),
        verdict: check::verdict(&checks, &evidence),
        evidence,
        failure,
        passed_over,
    })
}

fn checks(workload: &Workload, prepared: &Prepared, evidence: &Evidence) -> Vec<Finding> {
    match workload {
        Workload::Client { expect, .. } | Workload::Inline { expect, .. } => {
            let expect = expect.with_uid(prepared.plan.client_uid());
            check::check(&expect, evidence)
        }
        Workload::Program(audit) => check::audit(&audit.attempts, evidence),
    }
}

/// Builds the evidence of a run and gives output and files to the bundle. Afterwards the client's directories are
/// removed, because everything in them has been read.
fn evidence_of(
    request: &RunRequest,
    prepared: &Prepared,
    mut capture: Capture,
    trees: Option<TemporaryTrees>,
    clock: Clock,
    mut bundle: Option<&mut Bundle>,
) -> Evidence {
    let limits = &request.workload.sandbox().limits;
    if let Some(bundle) = &mut bundle {
        bundle.take_output(&request.workload, &mut capture, &prepared.secrets);
    }
    let evidence = build_evidence::build(
        capture,
        (limits, request.timeout.unwrap_or(limits.timeout)),
        prepared,
        clock,
        &request.workload,
    );
    if let Some(bundle) = bundle {
        bundle.take_files(&evidence, limits, &prepared.secrets);
    }
    drop(trees);
    evidence
}

/// A run whose client has ended, or was not started.
struct Launched {
    prepared: Prepared,
    /// The client's directories, if they are on disk; they are removed with this value.
    trees: Option<TemporaryTrees>,
    capture: Capture,
    /// Processes that are ending. They are reaped with this value, after the report is written.
    _stage: Option<Stage>,
    passed_over: Vec<PassedOver>,
}

/// Makes the run with the strongest accepted isolation that this host supports. Each level is tried by using it,
/// because a prediction would be less reliable. The client has not been started if another level is tried.
fn launch_in_strongest_tier(
    request: &RunRequest,
    (files, bundle): (&[PathBuf], Option<&Bundle>),
    (waiting, input): (&mut Option<Waiting>, &mut Option<ClientInput>),
    clock: Clock,
) -> Result<Launched, RunError> {
    let mut passed_over = Vec::new();
    let mut tiers = request.tiers().into_iter().peekable();
    while let Some(tier) = tiers.next() {
        let made = match tier {
            Tier::Namespace => Ok(None),
            Tier::Inherited => {
                // Ended before the guard of the trees starts, which is no child of the sandbox.
                *waiting = None;
                TemporaryTrees::make().map(Some)
            }
        };
        let places = match &made {
            Ok(Some(trees)) => trees.client_paths(),
            Ok(None) | Err(_) => ClientPaths::in_own_root(),
        };
        let mut prepared = prepare(request, files, tier, &places)?;
        if let Some(program) = &prepared.program_path {
            startable::check(request, &prepared.plan, program)?;
        }
        let ((mut capture, stage), trees) = match made {
            Ok(trees) => {
                let mut ran =
                    launch_and_collect(request, bundle, &mut prepared, (waiting, input), clock)?;
                name_missing(request, &prepared, &mut ran.0);
                (ran, trees)
            }
            Err(error) => (failed(&prepared, error), None),
        };
        let refused = capture.failure.take_if(|failure| {
            tiers.peek().is_some()
                && matches!(failure, Failure::SetUp(error) if error.rules_out_namespaces())
        });
        if let Some(Failure::SetUp(error)) = refused {
            passed_over.push(PassedOver { tier, error });
            continue;
        }
        return Ok(Launched {
            prepared,
            trees,
            capture,
            _stage: stage,
            passed_over,
        });
    }
    // A case accepts at least one isolation level.
    Err(RunError::NoTier)
}

/// Adds the missing object to the reason why the client was not executed.
fn name_missing(request: &RunRequest, prepared: &Prepared, capture: &mut Capture) {
    let (Some(Failure::NotExecuted(_)), Some(program)) = (&capture.failure, &prepared.program_path)
    else {
        return;
    };
    let gap = (capture.gaps.iter_mut()).find(|gap| gap.what == GapKind::Processes);
    if let (Some(gap), Err(error)) = (gap, startable::diagnose(request, &prepared.plan, program)) {
        gap.detail = format!("{}; {}: {}", gap.detail, error.need, error.hint);
    }
}

fn failed(prepared: &Prepared, error: SetupError) -> (Capture, Option<Stage>) {
    (Capture::failed(error, &prepared.secrets), None)
}

/// Creates the sandbox's processes and collects their evidence. The program is hashed beside the client.
fn launch_and_collect(
    request: &RunRequest,
    bundle: Option<&Bundle>,
    prepared: &mut Prepared,
    (waiting, input): (&mut Option<Waiting>, &mut Option<ClientInput>),
    clock: Clock,
) -> Result<(Capture, Option<Stage>), RunError> {
    let limits = &request.workload.sandbox().limits;
    let plan = &prepared.plan;
    // A stage that does not suit is ended.
    let spawned = match waiting.take().filter(|waiting| waiting.suits(plan)) {
        Some(waiting) => waiting.give(plan),
        None => spawn::spawn(plan),
    };
    let stage = match spawned {
        Ok(stage) => stage,
        Err(error) => return Ok(failed(prepared, error)),
    };
    let settings = CollectSettings {
        plan: &prepared.plan,
        clock,
        timeout: request.timeout.unwrap_or(limits.timeout),
        requests: limits.requests,
        output_bytes: limits.output_bytes,
        output_lines: limits.output_lines,
        passes_output: request.workload.purpose() == Purpose::Audit,
        secrets: &prepared.secrets,
        digest: &mut prepared.digest,
        input: input.as_mut(),
        spools: bundle.map(Bundle::spools).transpose()?,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(RunError::EventLoop)?;
    runtime
        .block_on(collect::collect(stage, settings))
        .map_err(RunError::EventLoop)
}

/// Returns ANSI colour for a terminal, unless NO_COLOR has a non-empty value (no-color.org).
pub(crate) fn colour(is_terminal: bool) -> Colour {
    let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if is_terminal && !unwanted {
        Colour::Ansi
    } else {
        Colour::Plain
    }
}

/// Makes the copy for `--keep-home`; returns `None` if there was no home.
fn kept_home(capture: &Capture, home_bytes: u64) -> io::Result<Option<Kept>> {
    let trees = capture.trees.as_ref();
    let kept = trees.map(|trees| keep(&trees.home, 2 * home_bytes));
    kept.transpose()
}
