//! Trials: each probe runs in a process of its own, so that the doctor survives a probe that hangs or is killed.
//!
//! The doctor starts its own executable with a hidden first argument, and reads the results as JSON from its standard
//! output. A trial does not outlive the doctor.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use model::case::Tier;
use nix::sys::prctl;
use nix::sys::signal::Signal;
use sandbox::error::Step;
use sys::process::{OWN_FILE, ignore_file_size_signal, read_to_end_within, wait_within};

use super::client::TRIAL_ARGUMENT;
use super::probe::{Need, Outcome, Probe, Refusal, at_step};
use super::{client, dry_run, features, landlock};

/// Time limit of a trial. The set-up of a sandbox has a shorter limit of its own.
const TIME_LIMIT: Duration = Duration::from_secs(40);
/// Time limit of an attempt, which usually takes some milliseconds.
const ATTEMPT_LIMIT: Duration = Duration::from_secs(5);

/// A trial: the feature, and the function that tests it.
pub(super) struct Trial {
    pub(super) id: &'static str,
    what: &'static str,
    isolation: Option<Tier>,
    need: Need,
    attempt: Attempt,
}

enum Attempt {
    /// Runs of the sandbox, which have a probe for each layer.
    Runs(fn() -> Vec<Probe>),
    One(fn() -> Outcome),
}

const fn one(
    (id, what): (&'static str, &'static str),
    isolation: Option<Tier>,
    need: Need,
    attempt: fn() -> Outcome,
) -> Trial {
    Trial {
        id,
        what,
        isolation,
        need,
        attempt: Attempt::One(attempt),
    }
}

const fn runs(
    (id, what): (&'static str, &'static str),
    isolation: Option<Tier>,
    need: Need,
    attempt: fn() -> Vec<Probe>,
) -> Trial {
    Trial {
        id,
        what,
        isolation,
        need,
        attempt: Attempt::Runs(attempt),
    }
}

/// The run that decides on the verdict: case B with the default isolation.
pub(super) const CASE: Trial = runs(
    ("case", "case-b, as a user starts it"),
    None,
    Need::Required,
    dry_run::case,
);

/// A run with isolation `inherited`, where the default is another one.
pub(super) const INHERITED: Trial = runs(
    ("inherited", "case-b with isolation inherited"),
    Some(Tier::Inherited),
    Need::Required,
    dry_run::inherited,
);

/// An audit with the default isolation.
pub(super) const AUDIT: Trial = runs(
    ("audit", "an audit with shown directories"),
    None,
    Need::Audit,
    dry_run::audit,
);

const ALONE: Option<Tier> = Some(Tier::Inherited);

#[rustfmt::skip]
pub(super) const ATTEMPTS: &[Trial] = &[
    one(("landlock-abi-1", "Landlock ABI 1: files and directories"), None, Need::Required, landlock::files),
    one(("landlock-abi-2", "Landlock ABI 2: across directories"), None, Need::Required, landlock::refer),
    one(("landlock-abi-3", "Landlock ABI 3: truncation"), None, Need::Required, landlock::truncation),
    one(("landlock-abi-4", "Landlock ABI 4: TCP ports"), ALONE, Need::Required, landlock::tcp),
    one(("landlock-abi-5", "Landlock ABI 5: ioctl on devices"), ALONE, Need::Required, landlock::device_ioctl),
    one(("landlock-abi-6", "Landlock ABI 6: abstract sockets, signals"), ALONE, Need::Required, landlock::scopes),
    one(("landlock-abi-7", "Landlock ABI 7: flags of the audit log"), None, Need::Used, landlock::log),
    one(("pidfd", "a descriptor of a process"), None, Need::Used, features::pidfd),
    one(("descriptor-copy", "a copy of a descriptor by pidfd_getfd"), None, Need::Used, features::descriptor),
    one(("process-vm-readv", "memory by process_vm_readv"), None, Need::Used, features::memory),
    one(("inotify", "inotify"), None, Need::Used, features::inotify),
];

impl Trial {
    /// Runs the trial in a process of its own and waits for its end.
    pub(super) fn make(&self) -> Vec<Probe> {
        match self.start().and_then(|process| self.finish(process)) {
            Ok(probes) => probes,
            Err(refusal) => vec![self.probe(Err(refusal))],
        }
    }

    fn probe(&self, outcome: Outcome) -> Probe {
        Probe::new((self.id, self.what), self.isolation, self.need, outcome)
    }

    fn start(&self) -> Result<Child, Refusal> {
        let mut command = Command::new(OWN_FILE);
        command
            .arg0("runner-trial")
            .args([TRIAL_ARGUMENT, self.id])
            // No stream is /dev/null, which may be missing: the trial itself must find that.
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        at_step(command.spawn(), Step::StartStage, OWN_FILE)
    }

    fn finish(&self, mut process: Child) -> Result<Vec<Probe>, Refusal> {
        let output = process.stdout.take().map(OwnedFd::from);
        let limit = match self.attempt {
            Attempt::Runs(_) => TIME_LIMIT,
            Attempt::One(_) => ATTEMPT_LIMIT,
        };
        let read = read_to_end_within([output], limit);
        // Fails for a process that has ended. A killed trial takes its sandbox and its directory with it.
        let _ = read.is_none().then(|| process.kill());
        let ended = wait_within(&mut process, limit);
        let (Some([output]), Ok(Some(status))) = (read, ended) else {
            return Err(Refusal::Hung);
        };
        if let Ok(probes) = serde_json::from_slice(&output) {
            return Ok(probes);
        }
        Err(match status.signal() {
            Some(signal) => Refusal::Killed(signal),
            None => Refusal::Wrong(format!("the trial ended without a result, {status}")),
        })
    }
}

/// Entry point of a trial's process. The argument is the trial's id.
pub(crate) fn main(arguments: &[OsString]) -> ExitCode {
    let id = arguments.first().and_then(|id| id.to_str());
    if id == Some(client::LOOK) {
        client::look();
        return ExitCode::SUCCESS;
    }
    let mut trials = [CASE, INHERITED, AUDIT].into_iter();
    let trial = trials.find(|trial| Some(trial.id) == id);
    let mut attempts = ATTEMPTS.iter();
    let Some(trial) = trial
        .as_ref()
        .or_else(|| attempts.find(|trial| Some(trial.id) == id))
    else {
        return ExitCode::FAILURE;
    };
    // Fails never for a valid signal (prctl(2)).
    let _ = prctl::set_pdeathsig(Signal::SIGKILL);
    ignore_file_size_signal();
    let probes = match trial.attempt {
        Attempt::Runs(make) => make(),
        Attempt::One(attempt) => vec![trial.probe(attempt())],
    };
    match serde_json::to_writer(std::io::stdout(), &probes) {
        Ok(()) => ExitCode::SUCCESS,
        // The doctor has ended.
        Err(_) => ExitCode::FAILURE,
    }
}
