//! Trials: each probe runs in a process of its own, so that the doctor survives a probe that hangs or is killed.
//!
//! The doctor starts its own executable with a hidden first argument, and waits with a time limit. If the id maps need
//! a writer outside, the doctor writes them. The trial makes the attempt and sends the result.

use std::ffi::OsString;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use sandbox::{identity, message};
use sys::process::{OWN_FILE, wait_within};
use sys::random;

use super::probes;
use super::trial::{Doctor, Doing as _, FromTrial, Mapped, Observation, message_pair};
use super::trials::directory;

/// Hidden first argument that makes this executable run one trial.
pub(crate) const TRIAL_ARGUMENT: &str = "__trial";

/// Time limit of a trial, which usually takes some milliseconds.
const TIME_LIMIT: Duration = Duration::from_secs(5);
/// Interval in milliseconds at which the end of a trial without a result is detected.
const POLL_MS: u16 = 50;

/// Runs one trial and waits for its end. Afterwards its processes and files are removed.
pub(super) fn make(id: &str) -> Observation {
    let directory = format!("runner-doctor-{}", random::token());
    match start(id, &directory) {
        Ok((mut process, socket)) => {
            let observation = wait_for_result(&mut process, &socket);
            end(process);
            // A killed trial cannot remove its directory.
            directory::remove_left(&directory);
            observation
        }
        Err(observation) => observation,
    }
}

fn start(id: &str, directory: &str) -> Result<(Child, OwnedFd), Observation> {
    let (socket, peer) = message_pair().doing("make a pair of sockets")?;
    let mut command = Command::new(OWN_FILE);
    command
        .arg0("runner-trial")
        .args([TRIAL_ARGUMENT, id, directory])
        .env_clear()
        .stdin(Stdio::from(peer))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0);
    if let Some(directory) = std::env::var_os("TMPDIR") {
        command.env("TMPDIR", directory);
    }
    let process = command.spawn().doing("start /proc/self/exe")?;
    Ok((process, socket))
}

fn wait_for_result(process: &mut Child, socket: &OwnedFd) -> Observation {
    let deadline = Instant::now() + TIME_LIMIT;
    loop {
        // Children of the trial hold the socket open, so the end of the trial does not close it.
        let ended = process.try_wait().ok().flatten();
        match next_message(socket) {
            Ok(Some(FromTrial::Done { observation })) => return observation,
            Ok(Some(FromTrial::Unmapped { host_id })) => {
                let process = Pid::from_raw(process.id() as i32);
                let failed = identity::map_other(process, host_id).err();
                // If the trial has ended, the next round of the loop detects it.
                let _ = message::send(socket, &Mapped { failed }, &[]);
            }
            Ok(None) | Err(_) => {
                if let Some(status) = ended {
                    return ended_without_result(status);
                }
                if Instant::now() >= deadline {
                    return Observation::Hung;
                }
            }
        }
    }
}

/// The next message; `None` if none arrives within the interval.
fn next_message(socket: &OwnedFd) -> Result<Option<FromTrial>, Errno> {
    let mut polled = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
    if poll(&mut polled, PollTimeout::from(POLL_MS))? == 0 {
        return Ok(None);
    }
    Ok(message::receive(socket)?.map(|(message, _)| message))
}

fn ended_without_result(status: ExitStatus) -> Observation {
    match status.signal() {
        Some(signal) => Observation::Killed(signal),
        None => Observation::Wrong(format!("the trial ended without a result, {status}")),
    }
}

fn end(mut process: Child) {
    // Fails only if all processes of the group have ended.
    let _ = killpg(Pid::from_raw(process.id() as i32), Signal::SIGKILL);
    let _ = wait_within(&mut process, TIME_LIMIT);
}

/// Entry point of a trial's process. The arguments are the probe's id and the name of the directory that the trial may
/// make.
pub(crate) fn main(arguments: &[OsString]) -> ExitCode {
    let socket = std::io::stdin().as_fd().try_clone_to_owned();
    let ([id, directory], Ok(socket)) = (arguments, socket) else {
        return ExitCode::FAILURE;
    };
    let probe = id.to_str().and_then(probes::named);
    let (Some(probe), Some(directory)) = (probe, directory.to_str()) else {
        return ExitCode::FAILURE;
    };
    let doctor = Doctor::new(socket, directory);
    let observation = (probe.trial)(&doctor).map_or_else(|other| other, Observation::Works);
    match doctor.report(observation) {
        Ok(()) => ExitCode::SUCCESS,
        // The doctor has ended.
        Err(_) => ExitCode::FAILURE,
    }
}
