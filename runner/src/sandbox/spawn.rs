//! The runner's side of the start: sockets, pipes, and the stage as a fresh exec of our own file.
//!
//! Never a fork of this process: the stage would carry its heap and its environment, host secrets included.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::socket::{
    AddressFamily, ControlMessage, MsgFlags, SockFlag, SockType, sendmsg, socketpair,
};
use nix::unistd::{Gid, Uid, fchown, pipe2};

use super::error::{At as _, SetupError, Step};
use super::identity;
use super::plan::Plan;

/// Hidden first argument with which our own file is the stage.
pub(crate) const STAGE_ARGUMENT: &str = "__stage";
/// Our own file, also where it has been replaced since we were started.
pub(crate) const OWN_FILE: &str = "/proc/self/exe";

/// The started stage and everything that leads to it. It ends when this is dropped.
#[must_use = "the stage ends when it is dropped"]
pub(crate) struct Stage {
    pub(crate) process: Child,
    pub(crate) control: UnixStream,
    /// To init; messages keep their borders.
    pub(crate) channel: OwnedFd,
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: OwnedFd,
}

/// Starts the stage and sends it the plan.
///
/// # Errors
/// The step that failed; nothing is left running.
pub(crate) fn spawn(plan: &Plan) -> Result<Stage, SetupError> {
    let (control, stage_control) = UnixStream::pair().at(Step::StartStage)?;
    let (channel, init_channel) = socketpair(
        AddressFamily::Unix,
        SockType::SeqPacket,
        None,
        SockFlag::SOCK_CLOEXEC,
    )
    .at(Step::StartStage)?;
    let (stdout, client_stdout) = client_pipe(plan)?;
    let (stderr, client_stderr) = client_pipe(plan)?;
    let process = Command::new(OWN_FILE)
        .arg0("runner-stage")
        .arg(STAGE_ARGUMENT)
        .env_clear()
        .stdin(Stdio::from(OwnedFd::from(stage_control)))
        .stdout(Stdio::from(client_stdout))
        .stderr(Stdio::from(client_stderr))
        .spawn()
        .at_object(Step::StartStage, OWN_FILE)?;
    let stage = Stage {
        process,
        control,
        channel,
        stdout,
        stderr,
    };
    send_plan(plan, &stage.control, &init_channel)?;
    stage.set_nonblocking()?;
    Ok(stage)
}

impl Stage {
    fn set_nonblocking(&self) -> Result<(), SetupError> {
        self.control.set_nonblocking(true).at(Step::StartStage)?;
        for descriptor in [&self.channel, &self.stdout, &self.stderr] {
            fcntl(descriptor, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).at(Step::StartStage)?;
        }
        Ok(())
    }
}

/// Ends the stage, and with it init and everything that init started.
impl Drop for Stage {
    fn drop(&mut self) {
        // Both fail only for a process that has been reaped already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A pipe whose writing end belongs to the client's user, so that it may open /dev/stdout.
fn client_pipe(plan: &Plan) -> Result<(OwnedFd, OwnedFd), SetupError> {
    let (read, write) = pipe2(OFlag::O_CLOEXEC).at(Step::StartStage)?;
    let (uid, gid) = identity::host_ids(plan.identity);
    fchown(&write, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid))).at(Step::StartStage)?;
    Ok((read, write))
}

/// The plan holds the credential, so it goes through memory, not through arguments or a file.
fn send_plan(plan: &Plan, control: &UnixStream, init_channel: &OwnedFd) -> Result<(), SetupError> {
    let text = serde_json::to_vec(plan)
        .map_err(|_| Errno::EINVAL)
        .at(Step::StartStage)?;
    let memory = memfd_create(c"plan", MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING)
        .at(Step::StartStage)?;
    let mut file = File::from(memory);
    file.write_all(&text).at(Step::StartStage)?;
    let seals = SealFlag::F_SEAL_SEAL
        | SealFlag::F_SEAL_SHRINK
        | SealFlag::F_SEAL_GROW
        | SealFlag::F_SEAL_WRITE;
    fcntl(&file, FcntlArg::F_ADD_SEALS(seals)).at(Step::StartStage)?;
    let descriptors = [file.as_raw_fd(), init_channel.as_raw_fd()];
    let rights = [ControlMessage::ScmRights(&descriptors)];
    let greeting = [std::io::IoSlice::new(b"p")];
    sendmsg::<()>(
        control.as_raw_fd(),
        &greeting,
        &rights,
        MsgFlags::MSG_NOSIGNAL,
        None,
    )
    .map(drop)
    .at(Step::StartStage)
}
