//! The runner's side of the start: sockets, pipes, and the stage as a fresh exec of this executable.
//!
//! A fork would copy the runner's heap and environment with secrets of the host into the stage.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::prctl;
use nix::sys::socket::{
    AddressFamily, ControlMessage, MsgFlags, SockFlag, SockType, sendmsg, socketpair,
};
use nix::sys::stat::{Mode, fchmod};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::{Gid, Pid, Uid, fchown, pipe2};
use sys::fds::close_on_exec_from;
use sys::process::{OWN_FILE, Pauses, reset_child_signal, wait_within};
use sys::processors::{Processors, SELF};

use super::cgroup::{self, Cgroup};
use super::error::{At as _, SetupError, Step};
use super::message::{self, FromStage};
use super::plan::{Identity, Plan};
use super::weaken::Protection;
use super::{identity, reaper, root};

/// Hidden first argument that starts this executable as the stage.
pub const STAGE_ARGUMENT: &str = "__stage";
/// `argv[0]` of the stage and of init, its fork.
const STAGE_NAME: &str = "runner-stage";

/// Maximum wait for the end of the sandbox's processes, which the kernel ends with the init of their pid namespace.
const LAST_GASP: Duration = Duration::from_secs(2);

/// Time within which the processes of a sandbox usually end once they are told to.
const USUAL_END: Duration = Duration::from_millis(20);

/// The started stage, with its sockets and pipes. Dropping this value ends the stage.
#[must_use = "the stage ends when it is dropped"]
pub struct Stage {
    /// Process of the stage.
    pub process: Child,
    /// Stream socket to the stage.
    pub control: UnixStream,
    /// Seqpacket socket to init.
    pub channel: OwnedFd,
    /// Seqpacket socket from the resolver.
    pub questions: OwnedFd,
    /// Reading end of the client's standard output, until taken.
    pub stdout: Option<OwnedFd>,
    /// Reading end of the client's standard error, until taken.
    pub stderr: Option<OwnedFd>,
    /// Both ends of the client's standard input, if the plan has one, until taken.
    pub stdin: Option<InputPipe>,
    /// Cgroup of all processes of the sandbox, or the reason for its absence.
    pub cgroup: Result<Cgroup, String>,
    /// Division of the processors between this thread and the stage.
    pub processors: Option<Processors>,
    /// The sandbox has a pid namespace, whose processes the kernel ends with init.
    ends_by_itself: bool,
    /// Other children of this process, which must live on: the guard, and children from before the sandbox.
    others: Vec<Pid>,
}

/// Pipe to the client's standard input.
#[derive(Debug)]
pub struct InputPipe {
    /// A copy of the client's end, to count the bytes that the client has not read.
    pub reader: OwnedFd,
    /// The runner's end. Writes do not wait.
    pub writer: OwnedFd,
}

/// Namespaces that the stage makes before it has its plan, named by its argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnNamespaces {
    /// A user and a network namespace.
    UserAndNetwork,
    /// A user namespace. Only the plan of a test build asks for it, and no other plan runs with such a stage.
    User,
    /// No namespace.
    None,
}

impl OwnNamespaces {
    const ALL: [Self; 3] = [Self::UserAndNetwork, Self::User, Self::None];

    fn of(plan: &Plan) -> Self {
        if plan.is_inherited() {
            Self::None
        } else if plan.keeps(Protection::NetworkNamespace) {
            Self::UserAndNetwork
        } else {
            Self::User
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::UserAndNetwork => "user+network",
            Self::User => "user",
            Self::None => "none",
        }
    }

    /// Finds the namespaces with this name.
    pub(super) fn named(word: &OsStr) -> Option<Self> {
        Self::ALL.into_iter().find(|one| word == one.word())
    }
}

/// A started stage that waits for its plan. It makes its namespaces meanwhile, so start it before the plan is made.
/// Dropping this value ends the stage.
pub struct Waiting {
    stage: Stage,
    namespaces: OwnNamespaces,
    /// Ends of the stage and of the client, sent or closed with the plan.
    init_channel: OwnedFd,
    resolver_questions: OwnedFd,
}

impl Waiting {
    /// Starts a stage.
    ///
    /// # Errors
    /// The failed step. No process is left then.
    pub fn start(namespaces: OwnNamespaces) -> Result<Self, SetupError> {
        // The stage becomes the stub and the parent of init, so it must not inherit descriptors of the caller.
        close_on_exec_from(3).at(Step::StartStage)?;
        let others = other_children()?;
        let (control, stage_control) = UnixStream::pair().at(Step::StartStage)?;
        let (channel, init_channel) = message_pair()?;
        let (questions, resolver_questions) = message_pair()?;
        let (stdout, client_stdout) = pipe2(OFlag::O_CLOEXEC).at(Step::StartStage)?;
        let (stderr, client_stderr) = pipe2(OFlag::O_CLOEXEC).at(Step::StartStage)?;
        reset_child_signal();
        prctl::set_child_subreaper(true).at(Step::StartStage)?;
        let process = Command::new(OWN_FILE)
            .arg0(STAGE_NAME)
            .args([STAGE_ARGUMENT, namespaces.word()])
            .env_clear()
            .stdin(Stdio::from(OwnedFd::from(stage_control)))
            .stdout(Stdio::from(client_stdout))
            .stderr(Stdio::from(client_stderr))
            .spawn()
            .at_object(Step::StartStage, OWN_FILE)?;
        let mut stage = Stage {
            processors: None,
            process,
            control,
            channel,
            questions,
            stdout: Some(stdout),
            stderr: Some(stderr),
            stdin: None,
            cgroup: Err("the stage has no plan yet".to_owned()),
            ends_by_itself: namespaces != OwnNamespaces::None,
            others,
        };
        stage.processors = Processors::divide(stage.pid());
        Ok(Self {
            stage,
            namespaces,
            init_channel,
            resolver_questions,
        })
    }

    /// Checks whether the stage has made the namespaces that `plan` asks for.
    pub fn suits(&self, plan: &Plan) -> bool {
        self.namespaces == OwnNamespaces::of(plan)
    }

    /// Sends the plan. The stage starts no process before it has the plan, so all later ones are in the cgroup.
    ///
    /// # Errors
    /// The failed step, of the stage as well. No process is left then.
    pub fn give(self, plan: &Plan) -> Result<Stage, SetupError> {
        let Self {
            mut stage,
            init_channel,
            resolver_questions,
            ..
        } = self;
        give_to_client(stage.stdout.iter().chain(&stage.stderr), plan)?;
        let process = stage.process.id();
        stage.cgroup = Cgroup::make(cgroup::Limits::of(plan)).and_then(|group| {
            let admitted = group.admit(process);
            admitted.map(|()| group).map_err(|error| error.to_string())
        });
        if plan.client.reads_input {
            stage.stdin = Some(input_pipe()?);
        }
        let mut ends = vec![init_channel.as_raw_fd(), resolver_questions.as_raw_fd()];
        ends.extend(stage.stdin.iter().map(|pipe| pipe.reader.as_raw_fd()));
        let carried = match plan.identity {
            Identity::Mapped { .. } => root::carry(&plan.root),
            Identity::Own { .. } | Identity::Unmapped { .. } => Vec::new(),
        };
        ends.extend(carried.iter().map(AsRawFd::as_raw_fd));
        if let Err(error) = send_plan(plan, &stage.control, &ends) {
            return Err(stage.early_end(error));
        }
        drop((init_channel, resolver_questions));
        stage.set_nonblocking()?;
        Ok(stage)
    }
}

/// Starts the stage and sends it the plan.
///
/// # Errors
/// The failed step. No process is left then.
pub fn spawn(plan: &Plan) -> Result<Stage, SetupError> {
    Waiting::start(OwnNamespaces::of(plan))?.give(plan)
}

impl Stage {
    /// Process id of the stage.
    pub fn pid(&self) -> Pid {
        // Each process id fits (proc_sys_kernel(5), pid_max).
        Pid::from_raw(self.process.id().cast_signed())
    }

    /// Replaces an `EPIPE`, which a closed socket gives, by the step that the stage reports as failed. Without a
    /// report, adds the exit status of the stage.
    fn early_end(&mut self, mut error: SetupError) -> SetupError {
        if error.errno != Errno::EPIPE as i32 {
            return error;
        }
        if let Ok(FromStage::Failed { error }) = message::read_line(&self.control) {
            return error;
        }
        if let Ok(Some(status)) = wait_within(&mut self.process, LAST_GASP) {
            error.object = format!("its process {} has ended, {status}", self.process.id());
        }
        error
    }

    /// Kills the stage; the kernel or init itself then ends init. Dropping this value waits for both.
    pub fn kill(&mut self) {
        // kill fails only for a process that has been reaped already.
        let _ = self.process.kill();
    }

    fn set_nonblocking(&self) -> Result<(), SetupError> {
        self.control.set_nonblocking(true).at(Step::StartStage)?;
        let outputs = self.stdout.iter().chain(&self.stderr);
        for descriptor in [&self.channel, &self.questions].into_iter().chain(outputs) {
            fcntl(descriptor, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).at(Step::StartStage)?;
        }
        Ok(())
    }
}

/// Ends and reaps the stage, init and all processes that init started.
///
/// Init becomes a child of the runner when the stage ends, because the runner is a subreaper. A process that the
/// kernel cannot end within [`LAST_GASP`] is left.
impl Drop for Stage {
    fn drop(&mut self) {
        if let Some(processors) = &self.processors {
            let _ = processors.free(SELF);
        }
        self.kill();
        let _ = wait_within(&mut self.process, LAST_GASP);
        if self.is_alone_within(LAST_GASP) {
            return;
        }
        // Init was stopped before it had a death signal, or was killed, and cannot end its processes.
        let deadline = Instant::now() + LAST_GASP;
        while !self.is_alone_within(Duration::from_millis(2)) && Instant::now() < deadline {
            reaper::kill_each(&self.remaining());
        }
    }
}

impl Stage {
    /// Reaps until no process of the sandbox is left, or until `time` is over.
    fn is_alone_within(&self, time: Duration) -> bool {
        let start = Instant::now();
        let deadline = start + time;
        let mut pauses = Pauses::default();
        loop {
            match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Err(Errno::ECHILD) => return true,
                Ok(WaitStatus::StillAlive) => {
                    // Reading /proc is slower than waiting, so skip it at first in the usual case without other
                    // children. An orphan of the caller may become one at any time.
                    let is_one_left = self.ends_by_itself
                        && self.others.is_empty()
                        && start.elapsed() < USUAL_END;
                    if !is_one_left && self.remaining().is_empty() {
                        return true;
                    }
                    if Instant::now() >= deadline {
                        return false;
                    }
                    pauses.pause();
                }
                // Reaped one. A signal without a name in nix is an error here, and the process is reaped as well.
                _ if Instant::now() >= deadline => return false,
                _ => {}
            }
        }
    }

    /// Lists the children of this process that belong to the sandbox. Any orphan below this subreaper may become its
    /// child, such as one of a program that executed the runner.
    fn remaining(&self) -> Vec<Pid> {
        let mut children = reaper::children().unwrap_or_default();
        children.retain(|child| {
            let is_in_sandbox = reaper::is_called(*child, &[STAGE_NAME, STAGE_ARGUMENT])
                || reaper::is_filtered(*child);
            !self.others.contains(child) && is_in_sandbox
        });
        children
    }
}

/// Lists the children of this process from before the sandbox. A cheap waitid(2) finds the usual case of no child.
fn other_children() -> Result<Vec<Pid>, SetupError> {
    let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    match waitid(Id::All, flags) {
        Err(Errno::ECHILD) => Ok(Vec::new()),
        _ => reaper::children(),
    }
}

/// Makes a pair of seqpacket sockets.
fn message_pair() -> Result<(OwnedFd, OwnedFd), SetupError> {
    socketpair(
        AddressFamily::Unix,
        SockType::SeqPacket,
        None,
        SockFlag::SOCK_CLOEXEC,
    )
    .at(Step::StartStage)
}

/// Gives pipes to the client's user, so that the client may open /dev/stdout. Both ends of a pipe are one inode.
fn give_to_client<'a>(
    pipes: impl Iterator<Item = &'a OwnedFd>,
    plan: &Plan,
) -> Result<(), SetupError> {
    if plan.is_inherited() {
        return Ok(());
    }
    if matches!(plan.identity, Identity::Mapped { .. }) && identity::free_ids().is_none() {
        return Err(Errno::EINVAL).at_object(Step::HandOverPipes, identity::NO_FREE_ID);
    }
    let (uid, gid) = identity::host_ids(plan.identity);
    let (uid, gid) = (Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)));
    for pipe in pipes {
        fchown(pipe, uid, gid).at(Step::HandOverPipes)?;
    }
    Ok(())
}

/// Makes the pipe to the client's standard input. Its mode lets the client open /dev/stdin for reading only, by
/// /proc/self/fd/0 as well, because Landlock has no rule for pipes.
fn input_pipe() -> Result<InputPipe, SetupError> {
    let (reader, writer) = pipe2(OFlag::O_CLOEXEC).at(Step::HandOverPipes)?;
    fchmod(&reader, Mode::S_IRUSR | Mode::S_IRGRP | Mode::S_IROTH).at(Step::HandOverPipes)?;
    fcntl(&writer, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).at(Step::HandOverPipes)?;
    Ok(InputPipe { reader, writer })
}

/// Sends the plan and the stage's ends of the sockets and pipes. The plan holds the credential, so it travels in a
/// sealed memory file, not in arguments or on disk.
fn send_plan(plan: &Plan, control: &UnixStream, ends: &[RawFd]) -> Result<(), SetupError> {
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
    let descriptors = [&[file.as_raw_fd()], ends].concat();
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
