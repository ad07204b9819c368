//! Init, pid 1 of the client's namespaces: builds the root, launches the client, reaps, and ends all processes.
//! Without namespaces (tier `inherited`), init is the subreaper of all processes that the client starts.
//!
//! The client cannot affect init: init is outside of its Landlock domain and has no capabilities and no signal
//! handlers. Init is not dumpable once the client's process exists. Init polls two sockets. Only the stage holds the
//! other end of the gate, through which it sends the ports of the stub once. Only the runner holds the other end of the
//! channel. If either closes, init ends, and the kernel ends all processes of its pid namespace. A subreaper ends all
//! its descendants before it ends.

use std::ffi::{CString, OsString};
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::time::Duration;

use model::case::Tier;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
use nix::time::ClockId;
use nix::unistd::{Pid, close, dup2_stdin};
use sys::fds::adopt;
use sys::process::{self, Reaped, Side, clone_process};
use sys::processors::{Processors, SELF};

use super::error::{At as _, SetupError, Step};
use super::launch::{self, Program};
use super::message::{self, ClientEnd, ExitStatus, FromInit, Launch, ToInit};
use super::plan::{BASE_URL, ClientPlan, Plan, Ports};
use super::proc::{Proc, ProcView};
use super::reaper::{self, Survivors};
use super::root::{self, Entered};
use super::weaken::Protection;
use super::{counters, identity, privilege};

/// Descriptors that init inherits from the stage.
pub(super) struct Inheritance {
    pub(super) channel: OwnedFd,
    pub(super) gate: OwnedFd,
    /// The client's standard input; `None` selects /dev/null.
    pub(super) stdin: Option<OwnedFd>,
    /// Mounts for paths of the plan that init may not reach.
    pub(super) carried: Vec<OwnedFd>,
    /// Division of the processors, which ends with the client's start.
    pub(super) processors: Option<Processors>,
}

/// Runs init to its end and returns its exit code.
pub(super) fn main(plan: &Plan, mut inheritance: Inheritance) -> i32 {
    let carried = std::mem::take(&mut inheritance.carried);
    let outcome = run(plan, &inheritance, carried);
    let ended = if plan.is_inherited() {
        Proc::open()
            .at_object(Step::Signals, "/proc")
            .and_then(|proc| reaper::end_descendants(&proc))
    } else {
        Ok(())
    };
    match outcome.and(ended) {
        Ok(()) => 0,
        Err(error) => {
            // Sending fails only if the runner has ended.
            let _ = message::send(&inheritance.channel, &FromInit::Failed { error }, &[]);
            1
        }
    }
}

fn run(plan: &Plan, inheritance: &Inheritance, carried: Vec<OwnedFd>) -> Result<(), SetupError> {
    arm_death_signal(plan)?;
    let Entered {
        trees,
        null,
        proc,
        shows_proc,
    } = enter(plan, &carried)?;
    drop(carried);
    // A change of user has cleared the death signal (prctl(2)).
    arm_death_signal(plan)?;
    let watch = trees.watch(plan.tier);
    let mut descriptors = trees.each().map(|(_, tree)| tree.as_raw_fd()).to_vec();
    descriptors.extend(watch.as_ref().map(|watch| watch.as_raw_fd()));
    let counters = match plan.tier {
        Tier::Namespace => counters::open(&proc),
        Tier::Inherited => Vec::new(),
    };
    descriptors.extend(counters.iter().map(|file| file.as_raw_fd()));
    let watched = watch.is_some();
    message::send(
        &inheritance.channel,
        &FromInit::Root { watched },
        &descriptors,
    )
    .at(Step::Channel)?;
    drop((trees, watch, counters));
    dup2_stdin(inheritance.stdin.as_ref().unwrap_or(&null)).at(Step::StandardInput)?;
    drop(null);
    privilege::set_no_new_privileges()?;
    if plan.keeps(Protection::Capabilities) {
        privilege::drop_all(plan.tier)?;
    }
    // The stage opens its sockets meanwhile.
    let Some((ports, _)) = message::receive::<Ports>(&inheritance.gate).at(Step::Channel)? else {
        // The stage has ended, and has sent its error to the runner.
        return Ok(());
    };
    let program = program(&plan.client, ports.stub)?;
    let target = listen_inside(&plan.probe.inside_socket)?;
    let proc_view = ProcView { proc, shows_proc };
    let client = ClientProcess::clone_from(plan, ports, &proc_view, &program)?;
    // Not before the clone: the client's process would inherit the flag, and an ordinary user's runner could not read
    // its memory.
    if plan.keeps(Protection::HiddenInit) {
        prctl::set_dumpable(false).at(Step::HideProcess)?;
    }
    message::send(&client.socket, &Launch::Settled, &[]).at(Step::Channel)?;
    if let Some(processors) = &inheritance.processors {
        // The client's process stays until it is released.
        let _ = processors.free(SELF);
    }
    client.accompany(plan, inheritance, &proc_view.proc, target)
}

/// Sets the signal that init gets when the stage ends, because a stopped init polls neither gate nor channel.
fn arm_death_signal(plan: &Plan) -> Result<(), SetupError> {
    let signal = match plan.tier {
        // The kernel ends the pid namespace with its init.
        Tier::Namespace => Signal::SIGKILL,
        // Init has to continue, to end its descendants.
        Tier::Inherited => Signal::SIGCONT,
    };
    prctl::set_pdeathsig(signal).at(Step::ArmDeathSignal)
}

fn enter(plan: &Plan, carried: &[OwnedFd]) -> Result<Entered, SetupError> {
    match plan.tier {
        Tier::Namespace => {
            root::make_private()?;
            let sources = root::take_sources(&plan.root, carried)?;
            identity::become_inside_user(plan.identity)?;
            root::build(plan, sources)
        }
        Tier::Inherited => {
            prctl::set_child_subreaper(true).at(Step::Signals)?;
            root::shared(&plan.root)
        }
    }
}

/// Listens on an abstract socket inside, a probe's target that only Landlock's scope protects.
fn listen_inside(name: &str) -> Result<UnixListener, SetupError> {
    SocketAddr::from_abstract_name(name)
        .and_then(|address| UnixListener::bind_addr(&address))
        .at_object(Step::Probe, name)
}

fn program(plan: &ClientPlan, port: u16) -> Result<Program, SetupError> {
    let base_url = format!("http://127.0.0.1:{port}");
    let filled = |words: &[OsString]| -> Result<Vec<CString>, SetupError> {
        let words = words.iter();
        let filled = words.map(|word| with_base_url(word.as_bytes(), base_url.as_bytes()));
        filled.map(c_string).collect()
    };
    Ok(Program {
        path: c_string(plan.program.as_bytes().to_vec())?,
        arguments: filled(&plan.arguments)?,
        environment: filled(&plan.environment)?,
    })
}

/// Replaces each [`BASE_URL`] in `word` by `base_url`.
fn with_base_url(word: &[u8], base_url: &[u8]) -> Vec<u8> {
    let mut filled = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some(first) = rest.first() {
        match rest.strip_prefix(BASE_URL.as_bytes()) {
            Some(after) => {
                filled.extend_from_slice(base_url);
                rest = after;
            }
            None => {
                filled.push(*first);
                rest = rest.get(1..).unwrap_or_default();
            }
        }
    }
    filled
}

fn c_string(bytes: Vec<u8>) -> Result<CString, SetupError> {
    CString::new(bytes).map_err(|_| Errno::EINVAL).at_object(
        Step::ReceivePlan,
        "an argument or a variable contains a NUL byte",
    )
}

/// The client, from its clone to its end.
struct ClientProcess {
    pid: Pid,
    /// Init's end of the launch socket.
    socket: OwnedFd,
    /// The client's end, as long as both processes share one descriptor table.
    client_end: Option<OwnedFd>,
    /// The runner has sent [`ToInit::Go`]: a closed launch socket now means the exec, before that the client's death.
    released: bool,
    signals: SignalFd,
}

impl ClientProcess {
    fn clone_from(
        plan: &Plan,
        ports: Ports,
        proc_view: &ProcView,
        program: &Program,
    ) -> Result<Self, SetupError> {
        let mut watched = SigSet::empty();
        watched.add(Signal::SIGCHLD);
        watched.thread_block().at(Step::Signals)?;
        let signals =
            SignalFd::with_flags(&watched, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
                .at(Step::Signals)?;
        let (socket, client_end) = socketpair(
            AddressFamily::Unix,
            SockType::SeqPacket,
            None,
            SockFlag::SOCK_CLOEXEC,
        )
        .at(Step::Channel)?;
        match clone_process(libc::CLONE_FILES).at(Step::CloneClient)? {
            // exit() drops no descriptor: init uses the same table.
            Side::Child => {
                sys::process::exit_now(launch::run(plan, ports, proc_view, program, &client_end))
            }
            Side::Parent(pid) => Ok(Self {
                pid,
                socket,
                client_end: Some(client_end),
                released: false,
                signals,
            }),
        }
    }

    /// Passes messages between runner and client until the client has ended, then ends all other processes.
    fn accompany(
        mut self,
        plan: &Plan,
        inheritance: &Inheritance,
        proc: &Proc,
        target: UnixListener,
    ) -> Result<(), SetupError> {
        let mut target = Some(target);
        let mut launching = true;
        let mut cpu = Duration::ZERO;
        let status = loop {
            let ready = self.wait(inheritance, launching)?;
            if ready.gate {
                return Ok(());
            }
            if ready.channel {
                match message::receive::<ToInit>(&inheritance.channel).at(Step::Channel)? {
                    None => return Ok(()),
                    Some((ToInit::Go, _)) => {
                        target = None;
                        self.released = true;
                        if let Some(processors) = &inheritance.processors {
                            let freed = processors.free(self.pid);
                            freed.at_object(Step::CloneClient, "its processors")?;
                        }
                        message::send(&self.socket, &Launch::Go, &[]).at(Step::Channel)?;
                    }
                    Some((ToInit::End, _)) => {
                        kill(self.pid, Signal::SIGKILL).at(Step::CloneClient)?;
                    }
                }
            }
            if ready.launch {
                launching = self.forward(inheritance)?;
            }
            if ready.signal {
                // An ended process has a clock until it is reaped.
                cpu = cpu.max(self.cpu_time());
            }
            if ready.signal
                && let Some(status) = self.reap()?
            {
                break status;
            }
        };
        // The client may exec and end before one poll(2) returns: the closed socket is still unread then.
        self.client_end = None;
        if launching {
            self.forward(inheritance)?;
        }
        drop(target);
        let end = ClientEnd {
            status,
            cpu,
            survivors: end_everything(plan, inheritance, proc)?,
        };
        message::send(&inheritance.channel, &FromInit::Ended { end }, &[]).at(Step::Channel)?;
        // The runner waits for the end of both pipes, and an ending process frees its mount namespace before its files.
        for output in [1, 2] {
            let _ = close(output);
        }
        Ok(())
    }

    fn wait(&self, inheritance: &Inheritance, launching: bool) -> Result<Ready, SetupError> {
        let mut polled = vec![
            PollFd::new(inheritance.gate.as_fd(), PollFlags::POLLIN),
            PollFd::new(inheritance.channel.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.signals.as_fd(), PollFlags::POLLIN),
        ];
        if launching {
            polled.push(PollFd::new(self.socket.as_fd(), PollFlags::POLLIN));
        }
        match poll(&mut polled, PollTimeout::NONE) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno).at(Step::Signals),
        }
        let is_ready = |index: usize| {
            polled
                .get(index)
                .is_some_and(|one: &PollFd<'_>| one.any() == Some(true))
        };
        Ok(Ready {
            gate: is_ready(0),
            channel: is_ready(1),
            signal: is_ready(2),
            launch: is_ready(3),
        })
    }

    /// Forwards a message of the client's process to the runner. Returns `true` if more messages may follow.
    fn forward(&mut self, inheritance: &Inheritance) -> Result<bool, SetupError> {
        let received = match message::receive::<Launch>(&self.socket) {
            Err(Errno::ECONNRESET) => None,
            received => received.at(Step::Channel)?,
        };
        let (message, more) = match received {
            Some((Launch::Listening { descriptor }, _)) => {
                return self.detach(inheritance, descriptor).map(|()| true);
            }
            Some((Launch::ReadBack { report }, _)) => (FromInit::ReadBack { report }, true),
            Some((Launch::Probed { report }, _)) => {
                // The client's process has its own descriptor table now. After this, only its exec closes the socket.
                self.client_end = None;
                (FromInit::Probed { report }, true)
            }
            Some((Launch::NotStarted { errno }, _)) => (FromInit::NotStarted { errno }, false),
            Some((Launch::Failed { error }, _)) => (FromInit::Failed { error }, false),
            Some((Launch::Settled | Launch::Detached | Launch::Go, _)) => {
                return Err(Errno::EPROTO).at(Step::Channel);
            }
            None if self.released => (FromInit::Started, false),
            None => return Err(Errno::ECHILD).at(Step::Probe),
        };
        message::send(&inheritance.channel, &message, &[]).at(Step::Channel)?;
        Ok(more)
    }

    /// Sends the listener to the runner and closes it here, so that only the runner can answer notifications. Init and
    /// the client's process share one descriptor table, so no copy is left in either.
    fn detach(&self, inheritance: &Inheritance, descriptor: i32) -> Result<(), SetupError> {
        let listener = adopt(descriptor);
        message::send(
            &inheritance.channel,
            &FromInit::Listening,
            &[listener.as_raw_fd()],
        )
        .at(Step::Channel)?;
        drop(listener);
        message::send(&self.socket, &Launch::Detached, &[]).at(Step::Channel)
    }

    /// Reads the processor time of the client's process; 0 once the client is reaped.
    fn cpu_time(&self) -> Duration {
        let clock = ClockId::pid_cpu_clock_id(self.pid);
        clock
            .and_then(ClockId::now)
            .map_or(Duration::ZERO, Duration::from)
    }

    /// Reaps all ended children. Returns the client's exit status if the client is among them.
    fn reap(&self) -> Result<Option<ExitStatus>, SetupError> {
        while self.signals.read_signal().at(Step::Signals)?.is_some() {}
        let mut status = None;
        loop {
            match process::reap(libc::WNOHANG) {
                Ok(Reaped::Exited(pid, code)) if pid == self.pid => {
                    status = Some(ExitStatus::Code(code));
                }
                Ok(Reaped::Killed(pid, signal)) if pid == self.pid => {
                    status = Some(ExitStatus::Signal(signal));
                }
                Ok(Reaped::None | Reaped::NoChild) => return Ok(status),
                Ok(Reaped::Exited(..) | Reaped::Killed(..)) | Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno).at(Step::Signals),
            }
        }
    }
}

/// Waits for all processes but init, then kills the remaining ones. Returns the killed processes.
fn end_everything(
    plan: &Plan,
    inheritance: &Inheritance,
    proc: &Proc,
) -> Result<Survivors, SetupError> {
    let Some(survivors) = reaper::wait_for_all(proc)? else {
        return Ok(Survivors::new());
    };
    match plan.tier {
        Tier::Namespace => reaper::end_namespace()?,
        Tier::Inherited => {
            message::send(&inheritance.channel, &FromInit::Ending, &[]).at(Step::Channel)?;
            reaper::end_descendants(proc)?;
        }
    }
    Ok(survivors)
}

/// Readiness of the polled descriptors.
struct Ready {
    gate: bool,
    channel: bool,
    signal: bool,
    launch: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_url_replaces_the_placeholder() {
        let filled = with_base_url(b"A={base_url}/x,{base_url}", b"http://127.0.0.1:9");
        assert_eq!(filled, b"A=http://127.0.0.1:9/x,http://127.0.0.1:9");
        assert_eq!(with_base_url(b"A=b{base_ur", b"u"), b"A=b{base_ur");
    }
}
