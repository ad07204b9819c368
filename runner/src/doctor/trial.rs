//! Trials: each probe runs in a process of its own, so that the doctor survives a probe that hangs or is killed.
//!
//! The doctor starts its own executable with a hidden first argument, and reads the results as JSON from its standard
//! output. A trial does not outlive the doctor.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use model::case::Tier;
use nix::sys::prctl;
use nix::sys::signal::{Signal, killpg};
use nix::sys::stat::{Mode, umask};
use nix::unistd::Pid;
use sandbox::error::Step;
use sys::process::{OWN_FILE, ignore_file_size_signal, read_to_end_within, wait_within};

use super::audited::TRIAL_ARGUMENT;
use super::probe::{Need, Outcome, Probe, Refusal, at_step};
use super::{audited, dry_run, features, landlock};

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

#[derive(Clone, Copy)]
enum Attempt {
    /// Runs of the sandbox, which have a probe for each layer.
    Runs(fn() -> Vec<Probe>),
    One(fn() -> Outcome),
}

use Attempt::{One, Runs};

const fn trial(
    id: &'static str,
    what: &'static str,
    isolation: Option<Tier>,
    need: Need,
    attempt: Attempt,
) -> Trial {
    Trial {
        id,
        what,
        isolation,
        need,
        attempt,
    }
}

const ALONE: Option<Tier> = Some(Tier::Inherited);

/// The run that decides on the verdict: case B with the default isolation.
#[rustfmt::skip]
pub(super) const CASE: Trial =
    trial("case", "case-b, as a user starts it", None, Need::Required, Runs(dry_run::case));

/// A run with isolation `inherited`, where the default is another one.
#[rustfmt::skip]
pub(super) const INHERITED: Trial =
    trial("inherited", "case-b with isolation inherited", ALONE, Need::Required, Runs(dry_run::inherited));

/// An audit with the default isolation.
#[rustfmt::skip]
pub(super) const AUDIT: Trial =
    trial("audit", "an audit with shown directories", None, Need::Audit, Runs(dry_run::audit));

/// Attempts without a run.
#[rustfmt::skip]
pub(super) const ATTEMPTS: &[Trial] = &[
    trial("landlock-abi-1", "Landlock ABI 1: files and directories", None, Need::Required, One(landlock::files)),
    trial("landlock-abi-2", "Landlock ABI 2: across directories", None, Need::Required, One(landlock::refer)),
    trial("landlock-abi-3", "Landlock ABI 3: truncation", None, Need::Required, One(landlock::truncation)),
    trial("landlock-abi-4", "Landlock ABI 4: TCP ports", ALONE, Need::Required, One(landlock::tcp)),
    trial("landlock-abi-5", "Landlock ABI 5: ioctl on devices", ALONE, Need::Required, One(landlock::device_ioctl)),
    trial("landlock-abi-6", "Landlock ABI 6: abstract sockets, signals", ALONE, Need::Required, One(landlock::scopes)),
    trial("landlock-abi-7", "Landlock ABI 7: flags of the audit log", None, Need::Used, One(landlock::log)),
    trial("pidfd", "a descriptor of a process", None, Need::Used, One(features::pidfd)),
    trial("descriptor-copy", "a copy of a descriptor by pidfd_getfd", None, Need::Used, One(features::descriptor)),
    trial("process-vm-readv", "memory by process_vm_readv", None, Need::Used, One(features::memory)),
    trial("inotify", "inotify", None, Need::Used, One(features::inotify)),
];

impl Trial {
    /// Runs the trial in a process of its own and waits for its end.
    pub(super) fn make(&self) -> Vec<Probe> {
        match self.start().and_then(|process| self.finish(process)) {
            Ok(probes) => probes,
            Err(refusal) => vec![self.probe(Err(refusal))],
        }
    }

    /// Makes the attempt in this process, which may neither hang nor be killed.
    pub(super) fn make_here(&self) -> Vec<Probe> {
        // With another umask an attempt could not enter its own directory.
        umask(Mode::from_bits_truncate(0o077));
        match self.attempt {
            Runs(make) => make(),
            One(attempt) => vec![self.probe(attempt())],
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
            Runs(_) => TIME_LIMIT,
            One(_) => ATTEMPT_LIMIT,
        };
        let read = read_to_end_within([output], limit);
        if read.is_none() {
            self.end(&mut process);
        }
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

impl Trial {
    /// Ends a trial that takes too long. The sandbox of a run ends with the run, and removes its directory before. An
    /// attempt may have a child, which is in its process group.
    fn end(&self, process: &mut Child) {
        // Both fail for a process that has ended.
        let _ = match self.attempt {
            Runs(_) => process.kill(),
            One(_) => killpg(Pid::from_raw(process.id().cast_signed()), Signal::SIGKILL)
                .map_err(io::Error::from),
        };
    }
}

/// Entry point of a trial's process. The argument is the trial's id.
pub(crate) fn main(arguments: &[OsString]) -> ExitCode {
    let id = arguments.first().and_then(|id| id.to_str());
    if id == Some(audited::LOOK) {
        audited::look();
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
    // prctl(2) accepts every valid signal.
    let _ = prctl::set_pdeathsig(Signal::SIGKILL);
    ignore_file_size_signal();
    match serde_json::to_writer(std::io::stdout(), &trial.make_here()) {
        Ok(()) => ExitCode::SUCCESS,
        // The doctor has ended.
        Err(_) => ExitCode::FAILURE,
    }
}
