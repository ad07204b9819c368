//! The runner's event loop: everything that arrives from outside the client while it runs, until the end.
//!
//! One loop over the control socket (the stub's journal), the channel (init), the client's output, the
//! signals and one deadline. It decides nothing about the client; it only keeps order: when the first byte of
//! a request is read, what lies in the client's standard output at that instant is read before the answer
//! may go out.

pub(crate) mod files;
pub(crate) mod keep;
pub(crate) mod output;

use std::os::fd::{AsFd as _, OwnedFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::unistd::Pid;
use serde::Deserialize;
use stub::Needle;
use stub::journal::{Control, Entry};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, sleep_until};

use crate::clock::Clock;
use crate::evidence::{Exit, Gap, GapKind, Survivor};
use crate::sandbox::error::{At as _, SetupError, Step};
use crate::sandbox::identity;
use crate::sandbox::message::{self, ClientEnd, ExitStatus, FromInit, FromStage, ToInit, ToStage};
use crate::sandbox::plan::{Identity, Plan};
use crate::sandbox::probe::ProbeReport;
use crate::sandbox::readback::{self, Isolation, Outside};
use crate::sandbox::silence::Network;
use crate::sandbox::spawn::Stage;
use crate::sys::fds::watched;
use crate::sys::net::readable_bytes;

use output::{Errors, Output};

/// From the spawn of the stage to the exec of the client.
const SET_UP: Duration = Duration::from_secs(20);
/// From the order to end the client to the report of its end.
const ENDING: Duration = Duration::from_secs(10);
/// From `finish` to `done`, and to the end of both outputs.
const FINISHING: Duration = Duration::from_secs(2);
/// Read at one time. Small: fresh pages are what starting costs.
const PIECE: usize = 16 * 1024;

/// What the loop needs to know beside the stage itself.
pub(crate) struct Watch<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) clock: Clock,
    pub(crate) timeout: Duration,
    /// More requests than this end the client.
    pub(crate) requests: u64,
    pub(crate) output_bytes: u64,
    pub(crate) needle: &'a Needle,
    /// /proc/self/ns of the runner.
    pub(crate) namespaces: std::collections::BTreeMap<String, String>,
    /// Canaries that are refused to the runner as well.
    pub(crate) refused: Vec<&'static str>,
}

/// Everything that arrived.
#[derive(Debug)]
pub(crate) struct Capture {
    pub(crate) journal: Vec<Entry>,
    /// For each request, how many lines stood on standard output when its first byte was read.
    pub(crate) barriers: Vec<(u64, usize)>,
    pub(crate) output: Output,
    pub(crate) errors: Errors,
    pub(crate) exit: Exit,
    pub(crate) survivors: Vec<Survivor>,
    pub(crate) isolation: Option<Isolation>,
    /// The kernel's; 0 until the client's process has reported it.
    pub(crate) landlock_abi: i32,
    /// Our end of the canary's connection to the stub.
    pub(crate) canary_peer: Option<std::net::SocketAddr>,
    /// Home and temporary directory.
    pub(crate) trees: Option<(OwnedFd, OwnedFd)>,
    pub(crate) gaps: Vec<Gap>,
    /// Why the client was not started.
    pub(crate) failure: Option<Failure>,
}

impl Capture {
    fn nothing(output_bytes: u64, needle: &Needle) -> Self {
        Self {
            journal: Vec::new(),
            barriers: Vec::new(),
            output: Output::new(output_bytes),
            errors: Errors::new(needle),
            exit: Exit::NotStarted,
            survivors: Vec::new(),
            isolation: None,
            landlock_abi: 0,
            canary_peer: None,
            trees: None,
            gaps: Vec::new(),
            failure: None,
        }
    }

    /// What there is where not even the stage could be started.
    pub(crate) fn failed(error: SetupError, output_bytes: u64, needle: &Needle) -> Self {
        let failure = Failure::SetUp(error);
        let gaps = vec![Gap {
            what: GapKind::Isolation,
            detail: failure.to_string(),
        }];
        Self {
            gaps,
            failure: Some(failure),
            ..Self::nothing(output_bytes, needle)
        }
    }
}

/// Why there was no run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// A step of set-up failed.
    #[error("cannot set up the sandbox")]
    SetUp(#[source] SetupError),
    /// A layer or a canary did not hold; the client was not started.
    #[error("the sandbox does not hold: {0}; the client was not started")]
    NotSealed(String),
    /// execve(2) of the client failed.
    #[error("cannot execute the client inside the sandbox: {}", .0.desc())]
    NotExecuted(Errno),
}

/// One line on the control socket.
#[derive(Deserialize)]
#[serde(untagged)]
enum ControlLine {
    Stage(FromStage),
    Journal(Entry),
}

/// Where the run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    SettingUp,
    Running,
    Ending,
    Finishing,
}

/// Runs the loop to the end of the run. The stage is ended in every case.
///
/// # Errors
/// The errno of the runtime's own set-up (epoll, signals). Everything else is in the capture.
pub(crate) async fn collect(stage: Stage, watch: Watch<'_>) -> std::io::Result<Capture> {
    let pid = Pid::from_raw(i32::try_from(stage.process.id()).unwrap_or(0));
    let (control, to_stage) =
        tokio::net::UnixStream::from_std(stage.control.try_clone()?)?.into_split();
    let mut session = Session {
        control: BufReader::with_capacity(PIECE, control),
        control_open: true,
        to_stage,
        channel: Some(watched(stage.channel.try_clone()?)?),
        stdout: Some(watched(stage.stdout.try_clone()?)?),
        stderr: Some(watched(stage.stderr.try_clone()?)?),
        interrupt: signal(SignalKind::interrupt())?,
        terminate: signal(SignalKind::terminate())?,
        stage: pid,
        phase: Phase::SettingUp,
        deadline: Instant::now() + SET_UP,
        network: None,
        probe: None,
        done: false,
        capture: Capture::nothing(watch.output_bytes, watch.needle),
        watch,
    };
    session.run().await;
    let Session {
        capture,
        control,
        to_stage,
        channel,
        ..
    } = session;
    drop((control, to_stage, channel, stage));
    Ok(capture)
}

struct Session<'a> {
    watch: Watch<'a>,
    control: BufReader<OwnedReadHalf>,
    control_open: bool,
    to_stage: OwnedWriteHalf,
    /// `None` once init has closed it.
    channel: Option<AsyncFd<OwnedFd>>,
    /// `None` once its end was read.
    stdout: Option<AsyncFd<OwnedFd>>,
    stderr: Option<AsyncFd<OwnedFd>>,
    interrupt: Signal,
    terminate: Signal,
    stage: Pid,
    phase: Phase,
    deadline: Instant,
    /// Told by the stage and by init, in either order; the client waits for both.
    network: Option<Network>,
    probe: Option<ProbeReport>,
    /// The stub has journaled everything.
    done: bool,
    capture: Capture,
}

/// What the loop does next.
enum Next {
    Continue,
    Stop,
}

impl Session<'_> {
    async fn run(&mut self) {
        let mut line = Vec::new();
        loop {
            if self.phase == Phase::Finishing
                && self.done
                && self.stdout.is_none()
                && self.stderr.is_none()
            {
                return;
            }
            let next = tokio::select! {
                // In this order: a record that is there is read before the news that make it late.
                biased;
                _ = self.interrupt.recv() => self.interrupted(),
                _ = self.terminate.recv() => self.interrupted(),
                read = readable(self.stdout.as_ref()) => self.read_stdout(read),
                read = readable(self.stderr.as_ref()) => self.read_stderr(read),
                read = self.control.read_until(b'\n', &mut line), if self.control_open => match read {
                    Ok(length) if length > 0 && line.ends_with(b"\n") => {
                        let next = self.control_line(&line).await;
                        line.clear();
                        next
                    }
                    _ => self.control_closed(),
                },
                message = receive(self.channel.as_ref()) => self.init_message(message).await,
                () = sleep_until(self.deadline) => self.deadline_passed(),
            };
            if let Next::Stop = next {
                return;
            }
        }
    }

    async fn control_line(&mut self, line: &[u8]) -> Next {
        match serde_json::from_slice(line) {
            Ok(ControlLine::Stage(FromStage::Unmapped)) => self.write_maps().await,
            Ok(ControlLine::Stage(FromStage::Serving { network, .. })) => {
                self.network = Some(network);
                self.release()
            }
            Ok(ControlLine::Stage(FromStage::Failed { error })) => {
                self.failed(Failure::SetUp(error))
            }
            Ok(ControlLine::Journal(Entry::Began {
                connection,
                request,
                at_us,
            })) => {
                self.barrier(request);
                // No gap: whatever the client asked until its end is in the journal.
                if request > self.watch.requests && self.phase == Phase::Running {
                    self.end_client(Exit::RequestLimit);
                }
                self.capture.journal.push(Entry::Began {
                    connection,
                    request,
                    at_us,
                });
                self.tell_stub(Control::Go { request }).await;
                Next::Continue
            }
            Ok(ControlLine::Journal(entry)) => {
                self.done |= matches!(entry, Entry::Done { .. });
                self.capture.journal.push(entry);
                Next::Continue
            }
            Err(error) => {
                self.gap(
                    GapKind::Requests,
                    format!("a line of the journal cannot be read: {error}"),
                );
                Next::Continue
            }
        }
    }

    async fn write_maps(&mut self) -> Next {
        let mapped = match self.watch.plan.identity {
            Identity::Mapped { host_id } => identity::map_other(self.stage, host_id),
            Identity::Own { .. } => Err(Errno::EPROTO).at(Step::WriteIdMaps),
        };
        if let Err(error) = mapped {
            return self.failed(Failure::SetUp(error));
        }
        let mut told = Vec::new();
        // A line of a closed set to memory cannot fail.
        let _ = message::write_line(&mut told, &ToStage::Mapped);
        match self.to_stage.write_all(&told).await {
            Ok(()) => Next::Continue,
            Err(_) => self.control_closed(),
        }
    }

    /// Reads what lies in standard output at this instant, and no more: a client that floods it cannot hold
    /// the barrier.
    fn barrier(&mut self, request: u64) {
        if let Some(stdout) = &self.stdout {
            let now = self.watch.clock.elapsed_us();
            let mut left = readable_bytes(stdout.get_ref()).unwrap_or(0);
            let mut piece = vec![0; left.min(PIECE)];
            while left > 0 {
                let room = left.min(piece.len());
                match nix::unistd::read(
                    stdout.get_ref().as_fd(),
                    piece.get_mut(..room).unwrap_or_default(),
                ) {
                    Ok(length) if length > 0 => {
                        self.capture
                            .output
                            .push(piece.get(..length).unwrap_or_default(), now);
                        left -= length.min(left);
                    }
                    _ => break,
                }
            }
        }
        self.capture
            .barriers
            .push((request, self.capture.output.lines()));
    }

    async fn tell_stub(&mut self, told: Control) {
        let mut line = serde_json::to_vec(&told).unwrap_or_default();
        line.push(b'\n');
        // A stage that has ended reads no more, and its last lines may still lie unread: it is their end that
        // says whether the stub was lost.
        let _ = self.to_stage.write_all(&line).await;
    }

    async fn init_message(&mut self, received: Received) -> Next {
        match received {
            Err(errno) => {
                self.gap(GapKind::Processes, format!("init cannot be heard: {errno}"));
                Next::Stop
            }
            Ok(None) => self.init_closed(),
            Ok(Some((FromInit::Root, descriptors))) => {
                self.capture.trees = <[OwnedFd; 2]>::try_from(descriptors)
                    .ok()
                    .map(|[home, tmp]| (home, tmp));
                Next::Continue
            }
            Ok(Some((FromInit::Probed { report }, _))) => {
                self.probe = Some(report);
                self.release()
            }
            Ok(Some((FromInit::Started, _))) => {
                self.enter(Phase::Running, self.watch.timeout);
                // Until its end is known it counts as interrupted: nothing else ends the loop early.
                self.capture.exit = Exit::Interrupted;
                Next::Continue
            }
            Ok(Some((FromInit::NotStarted { errno }, _))) => {
                self.failed(Failure::NotExecuted(Errno::from_raw(errno)))
            }
            Ok(Some((FromInit::Failed { error }, _))) => self.failed(Failure::SetUp(error)),
            Ok(Some((FromInit::Ended { end }, _))) => self.ended(end).await,
        }
    }

    /// The one place where the client is let go: every layer read back, every canary held.
    fn release(&mut self) -> Next {
        let (Some(network), Some(report)) = (&self.network, &self.probe) else {
            return Next::Continue;
        };
        let outside = Outside {
            plan: self.watch.plan,
            network,
            namespaces: &self.watch.namespaces,
            refused: &self.watch.refused,
        };
        let isolation = readback::judge(report, &outside);
        let broken = isolation.broken();
        self.capture.canary_peer = report.stub_peer;
        self.capture.landlock_abi = report.landlock.abi;
        self.capture.isolation = Some(isolation);
        match broken {
            None => self.tell_init(ToInit::Go),
            Some(what) => self.failed(Failure::NotSealed(what)),
        }
    }

    fn tell_init(&mut self, told: ToInit) -> Next {
        let channel = self
            .channel
            .as_ref()
            .map(|channel| message::send(channel.get_ref(), &told, &[]));
        match channel {
            Some(Ok(())) => Next::Continue,
            Some(Err(_)) | None => self.init_closed(),
        }
    }

    async fn ended(&mut self, end: ClientEnd) -> Next {
        let status = match end.status {
            ExitStatus::Code(code) => Exit::Code(code),
            ExitStatus::Signal(signal) => Exit::Signal(signal),
        };
        // What the runner ended keeps the reason for which it did.
        if self.phase == Phase::Running {
            self.capture.exit = status;
        }
        let survivors = end
            .survivors
            .into_iter()
            .map(|(pid, program)| Survivor { pid, program });
        self.capture.survivors = survivors.collect();
        self.enter(Phase::Finishing, FINISHING);
        self.tell_stub(Control::Finish).await;
        Next::Continue
    }

    fn end_client(&mut self, exit: Exit) -> Next {
        match self.phase {
            Phase::SettingUp => {
                self.capture.exit = exit;
                Next::Stop
            }
            Phase::Running => {
                self.capture.exit = exit;
                self.enter(Phase::Ending, ENDING);
                self.tell_init(ToInit::End)
            }
            Phase::Ending | Phase::Finishing => Next::Continue,
        }
    }

    /// A first signal ends the client and leaves a report; a second one ends the run.
    fn interrupted(&mut self) -> Next {
        if self.phase == Phase::Ending {
            self.gap(GapKind::Processes, "interrupted twice".to_owned());
            return Next::Stop;
        }
        self.gap(GapKind::Processes, "interrupted by a signal".to_owned());
        self.end_client(Exit::Interrupted)
    }

    fn deadline_passed(&mut self) -> Next {
        match self.phase {
            Phase::SettingUp => {
                let error = SetupError {
                    step: Step::Probe,
                    object: format!("nothing within {} s", SET_UP.as_secs()),
                    errno: Errno::ETIMEDOUT as i32,
                };
                self.failed(Failure::SetUp(error))
            }
            Phase::Running => self.end_client(Exit::Timeout(self.watch.timeout)),
            Phase::Ending => {
                self.gap(
                    GapKind::Processes,
                    "init did not report the client's end".to_owned(),
                );
                Next::Stop
            }
            Phase::Finishing => {
                if !self.done {
                    self.gap(
                        GapKind::Requests,
                        "the stub did not finish its journal".to_owned(),
                    );
                }
                if self.stdout.is_some() {
                    self.gap(GapKind::Records, "standard output did not end".to_owned());
                }
                if self.stderr.is_some() {
                    self.gap(GapKind::Stderr, "standard error did not end".to_owned());
                }
                Next::Stop
            }
        }
    }

    fn control_closed(&mut self) -> Next {
        self.control_open = false;
        if self.done {
            // The stage has ended after its last line. What is left are the outputs.
            return Next::Continue;
        }
        self.gap(GapKind::Requests, "the stub was lost".to_owned());
        Next::Stop
    }

    fn init_closed(&mut self) -> Next {
        self.channel = None;
        if self.phase == Phase::Finishing {
            return Next::Continue;
        }
        self.gap(GapKind::Processes, "init was lost".to_owned());
        Next::Stop
    }

    fn failed(&mut self, failure: Failure) -> Next {
        self.gap(GapKind::Isolation, failure.to_string());
        self.capture.failure.get_or_insert(failure);
        Next::Stop
    }

    fn read_stdout(&mut self, read: Read) -> Next {
        match read {
            Read::End => self.stdout = None,
            Read::Piece(piece) => {
                self.capture
                    .output
                    .push(&piece, self.watch.clock.elapsed_us());
                if self.capture.output.is_over() && self.phase == Phase::Running {
                    self.gap(
                        GapKind::Records,
                        "standard output went over its limit".to_owned(),
                    );
                    return self.end_client(Exit::OutputLimit);
                }
            }
        }
        Next::Continue
    }

    fn read_stderr(&mut self, read: Read) -> Next {
        match read {
            Read::End => self.stderr = None,
            Read::Piece(piece) => {
                self.capture.errors.push(&piece);
                if self.capture.errors.bytes() > self.watch.output_bytes
                    && self.phase == Phase::Running
                {
                    self.gap(
                        GapKind::Stderr,
                        "standard error went over its limit".to_owned(),
                    );
                    return self.end_client(Exit::OutputLimit);
                }
            }
        }
        Next::Continue
    }

    fn enter(&mut self, phase: Phase, within: Duration) {
        self.phase = phase;
        self.deadline = Instant::now() + within;
    }

    fn gap(&mut self, what: GapKind, detail: String) {
        self.capture.gaps.push(Gap { what, detail });
    }
}

/// What one read of a pipe gave.
enum Read {
    Piece(Vec<u8>),
    End,
}

/// One piece from a pipe; never ready for a pipe whose end was read.
async fn readable(pipe: Option<&AsyncFd<OwnedFd>>) -> Read {
    let Some(pipe) = pipe else {
        return std::future::pending().await;
    };
    let mut piece = vec![0; PIECE];
    loop {
        let Ok(mut guard) = pipe.readable().await else {
            return Read::End;
        };
        match nix::unistd::read(pipe.get_ref(), &mut piece) {
            Err(Errno::EAGAIN) => guard.clear_ready(),
            Err(Errno::EINTR) => {}
            Ok(length) if length > 0 => {
                piece.truncate(length);
                return Read::Piece(piece);
            }
            Ok(_) | Err(_) => return Read::End,
        }
    }
}

type Received = Result<Option<(FromInit, Vec<OwnedFd>)>, Errno>;

/// One message of init; never ready once init has closed the channel.
async fn receive(channel: Option<&AsyncFd<OwnedFd>>) -> Received {
    let Some(channel) = channel else {
        return std::future::pending().await;
    };
    loop {
        let Ok(mut guard) = channel.readable().await else {
            return Err(Errno::EIO);
        };
        match message::receive(channel.get_ref()) {
            Err(Errno::EAGAIN) => guard.clear_ready(),
            Err(Errno::EINTR) => {}
            received => return received,
        }
    }
}
