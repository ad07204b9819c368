//! Probes outside of the sandbox, in a separate process, because a seccomp filter around `runner` may kill the caller.

use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use model::case::Tier;
use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::unistd::Pid;
use probes::canary::{CanaryTargets, ProbeEnv};
use probes::probe::{Call, Kind, Probe};
use probes::table;
use sys::process::{OWN_FILE, read_to_end_within, wait_within};

use crate::error::{At as _, SetupError, Step};

/// Hidden first argument that starts this executable as the process of the outside probes.
pub const OUTSIDE_ARGUMENT: &str = "__outside";

/// Maximum time for all probes together.
const LIMIT: Duration = Duration::from_secs(5);

/// Second word of a line before a probe; the first word is the probe's name.
const TRIED: &str = "tried";
/// Second word of a line after a probe that succeeded.
const MADE: &str = "made";
/// Second word of a line after a probe that failed.
const REFUSED: &str = "refused";

/// The process that runs the probes outside. Dropping this value ends the process.
#[derive(Debug)]
pub struct Outside {
    process: Child,
    tier: Tier,
}

impl Outside {
    /// Starts the process.
    ///
    /// # Errors
    /// The errno of starting the process.
    pub fn start(tier: Tier, plan: &CanaryTargets) -> Result<Self, SetupError> {
        let mut process = Command::new(OWN_FILE)
            .arg0("runner-outside")
            .args([OUTSIDE_ARGUMENT, tier.word()])
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .at(Step::TryOutside)?;
        let text = serde_json::to_vec(plan)
            .map_err(|_| Errno::EINVAL)
            .at(Step::TryOutside)?;
        // The plan fits into the pipe's buffer. If the process has ended, `refused` reports that.
        let _ = process.stdin.take().map(|mut pipe| pipe.write_all(&text));
        Ok(Self { process, tier })
    }

    /// Returns the names of the probes that are refused outside too.
    ///
    /// # Errors
    /// The probe that ended the process, or `ETIMEDOUT` at the limit of time.
    pub fn refused(mut self) -> Result<Vec<&'static str>, SetupError> {
        let stdout = self.process.stdout.take().map(OwnedFd::from);
        let output = read_to_end_within([stdout], LIMIT);
        let _ = output.is_none().then(|| self.process.kill());
        let ended = wait_within(&mut self.process, LIMIT).at(Step::TryOutside)?;
        let (Some([output]), Some(status)) = (output, ended) else {
            return Err(Errno::ETIMEDOUT).at(Step::TryOutside);
        };
        let output = String::from_utf8_lossy(&output);
        let lines = || output.lines().filter_map(|line| line.split_once(' '));
        if !status.success() {
            let last = lines().next_back().map_or("none", |(name, _)| name);
            let how = match status.signal().map(Signal::try_from) {
                Some(Ok(signal)) => format!("{last}: its process was ended by {signal}"),
                Some(Err(_)) | None => format!("{last}: its process ended, {status}"),
            };
            return Err(Errno::EPERM).at_object(Step::TryOutside, how);
        }
        let is_refused = |name: &str| lines().any(|line| line == (name, REFUSED));
        let names = attempts(self.tier).map(|(name, ..)| name);
        let missing = |name: &&str| !lines().any(|(known, word)| known == *name && word != TRIED);
        let names: Vec<&'static str> = names.collect();
        if let Some(name) = names.iter().find(|name| missing(name)) {
            // SECCOMP_RET_KILL_THREAD ends a process of one thread with status 0.
            let how = format!("{name}: its process ended during the call");
            return Err(Errno::EPERM).at_object(Step::TryOutside, how);
        }
        Ok(names.into_iter().filter(|name| is_refused(name)).collect())
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        // Both calls do nothing if `refused` has reaped the process.
        let _ = self.process.kill();
        let _ = wait_within(&mut self.process, LIMIT);
    }
}

/// Lists the probes that have an outside variant. They do not use /proc.
fn attempts(tier: Tier) -> impl Iterator<Item = (&'static str, &'static Probe, Call)> {
    table::canary(Kind::of(tier, true))
        .filter_map(|(probe, canary)| Some((canary.name, probe, canary.outside?)))
}

/// Runs the process of the outside probes. The argument is the tier; standard input has the targets as JSON.
pub fn main(arguments: &[OsString]) -> ExitCode {
    // A stopped process cannot notice the end of the runner.
    let _ = prctl::set_pdeathsig(Signal::SIGKILL);
    let tier = Tier::ALL
        .into_iter()
        .find(|tier| arguments.first().is_some_and(|word| word == tier.word()));
    let mut text = Vec::new();
    let read = io::stdin().read_to_end(&mut text);
    let (Some(tier), Ok(_), Ok(plan)) = (tier, read, serde_json::from_slice(&text)) else {
        return ExitCode::FAILURE;
    };
    let env = ProbeEnv {
        plan: &plan,
        init: Pid::this(),
        stub_port: 0,
    };
    let mut out = io::stdout();
    let mut say = |name: &str, what: &str| out.write_all(format!("{name} {what}\n").as_bytes());
    for (name, probe, call) in attempts(tier) {
        let tried = say(name, TRIED);
        let result = if call.make(&env.targets(probe)).is_err() {
            REFUSED
        } else {
            MADE
        };
        if tried.and_then(|()| say(name, result)).is_err() {
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_attempts_are_lines() {
        for tier in Tier::ALL {
            for (name, ..) in attempts(tier) {
                assert!(!name.contains([' ', '\n']), "{name}");
            }
        }
    }
}
