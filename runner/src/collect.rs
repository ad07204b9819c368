//! Event loop of the runner: collects all evidence from outside the client while it runs, up to its end.
//!
//! One loop over the control socket (the stub's journal), the channel to init, the client's output, the resolver's
//! questions, the watch on the client's trees, the signals and one deadline. The loop judges nothing and only
//! keeps order. At the first byte of a request, it reads the client's pending standard output before the answer
//! may leave.

mod capture;
mod control;
pub(crate) mod copy;
pub(crate) mod files;
pub(crate) mod home_copy;
pub(crate) mod inode_count;
pub(crate) mod limit;
pub(crate) mod mount_points;
pub(crate) mod output;
mod passthrough;
mod pipes;
pub(crate) mod questions;
mod signals;
mod stalled;
mod streams;
mod terminal_state;
pub(crate) mod watcher;

use std::fs::File;
use std::os::fd::OwnedFd;
use std::time::Duration;

use model::evidence::{Exit, FileWatch, Gap, GapKind, Survivor};
use model::journal::Control;
use model::secret::SecretScanner;
use nix::unistd::Pid;
use sandbox::cgroup::Cgroup;
use sandbox::counters::Counters;
use sandbox::lines::{self, LineCount, LineReader, LinesWanted};
use sandbox::message::{ClientEnd, ExitStatus, FromResolver, ToInit};
use sandbox::netns_check::Network;
use sandbox::plan::Plan;
use sandbox::set_up::SetUp;
use sandbox::spawn::{InputPipe, Stage};
use sys::clock::Clock;
use sys::fds::watched;
use sys::processors::Processors;
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::{Instant, sleep_until};

use passthrough::Passthrough;
use pipes::{readable, receive};
use signals::Signals;
use watcher::Watcher;

use crate::client_input::ClientInput;
use crate::error_text::one_line;
use crate::program_digest::PendingDigest;

pub(crate) use capture::{Capture, Failure};

/// Limit from the spawn of the stage to the exec of the client.
const SET_UP: Duration = Duration::from_secs(20);
/// Limit from the order to end the client to the report of its end.
const ENDING: Duration = Duration::from_secs(10);
/// Limit from `finish` to `done`, and to the end of both outputs.
const FINISHING: Duration = Duration::from_secs(2);
/// Buffer size of one read, in bytes. Small, because fresh pages dominate the cost of starting.
const PIECE: usize = 16 * 1024;

/// Inputs of the loop other than the stage.
pub(crate) struct CollectSettings<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) clock: Clock,
    pub(crate) timeout: Duration,
    /// Limit on requests; one more ends the client.
    pub(crate) requests: u64,
    pub(crate) output_bytes: u64,
    pub(crate) output_lines: u64,
    /// The client's output is passed to the runner's own streams and makes no records.
    pub(crate) passes_output: bool,
    pub(crate) secrets: &'a SecretScanner,
    /// Begun a moment after the client's start.
    pub(crate) digest: &'a mut PendingDigest,
    /// Copied to the client's standard input once it is started.
    pub(crate) input: Option<&'a mut ClientInput>,
    /// Files for copies of standard output and standard error, for a bundle.
    pub(crate) spools: Option<[File; 2]>,
}

/// Phase of the run; each has its own deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    SettingUp,
    Running,
    Ending,
    Finishing,
}

/// Runs the loop to the end of the run. Returns the stage if only its own processes are left, which have been told to
/// end; in every other case they have ended.
///
/// # Errors
/// Returns the errno of the runtime's own set-up (epoll, signals). Every other error is in the capture.
pub(crate) async fn collect(
    mut stage: Stage,
    mut settings: CollectSettings<'_>,
) -> std::io::Result<(Capture, Option<Stage>)> {
    let pid = stage.pid();
    let (control, to_stage) =
        tokio::net::UnixStream::from_std(stage.control.try_clone()?)?.into_split();
    let (line_reader, asked, lines) = match &stage.stdout {
        Some(stdout) if !settings.passes_output => {
            let (reader, asked, lines) = lines::line_counter(stdout.try_clone()?);
            (Some(reader), Some(asked), lines)
        }
        // Output that is passed on has no lines.
        Some(_) | None => (None, None, LineCount::none()),
    };
    let limits = (settings.output_bytes, settings.output_lines);
    let spools = settings.spools.take();
    let cgroup = stage.cgroup.as_ref();
    let cgroup = cgroup.map(Cgroup::describe).map_err(String::clone);
    let set_up = SetUp::new(
        (settings.plan, settings.secrets),
        (pid, stage.processors),
        cgroup,
        settings.clock,
        lines,
    );
    let mut session = Session {
        control: BufReader::with_capacity(PIECE, control),
        control_open: true,
        to_stage,
        channel: Some(watched(stage.channel.try_clone()?)?),
        stdout: stage.stdout.take().map(watched).transpose()?,
        stderr: stage.stderr.take().map(watched).transpose()?,
        passthrough: settings
            .passes_output
            .then(|| std::io::Result::Ok((Passthrough::to_stdout()?, Passthrough::to_stderr()?)))
            .transpose()?,
        stdin: stage.stdin.take(),
        questions: Some(watched(stage.questions.try_clone()?)?),
        watcher: Watcher::default(),
        group: None,
        signals: Signals::listen()?,
        stage: pid,
        processors: stage.processors,
        phase: Phase::SettingUp,
        deadline: Instant::now() + SET_UP,
        next_look: Instant::now() + stalled::BETWEEN_LOOKS,
        set_up,
        counters: None,
        line_reader,
        asked,
        impatient: false,
        done: false,
        capture: Capture::nothing(limits, settings.secrets),
        settings,
    };
    session.copy_to(spools);
    session.run().await;
    session.finish_passing().await;
    let Session {
        mut capture,
        set_up,
        counters,
        watcher,
        control,
        to_stage,
        channel,
        settings,
        ..
    } = session;
    capture.moments.supervised_us = set_up.supervised_us();
    capture.gone = watcher.finish();
    if let FileWatch::Cut(reason) = capture.gone.watch {
        capture.gaps.push(Gap {
            what: GapKind::Files,
            detail: reason.words(),
        });
    }
    capture.oom_kills = stage.cgroup.as_ref().map_or(0, Cgroup::oom_kills);
    // The output may also pass its limit after the order to end the client, or with its last bytes.
    if let Some(over) = capture.output.over() {
        let limit = limit::output(over, settings.output_bytes, settings.output_lines);
        let detail = format!("standard output went over its limit, {limit}");
        capture.gaps.push(Gap {
            what: GapKind::Records,
            detail,
        });
    }
    // If init was lost, each process that the client started is ended one by one.
    set_up.refuse_new_processes();
    // Before its sockets close: a stage that ends by itself is no longer init's parent.
    stage.kill();
    // Waits for every process, unless init has reported the end of all that the client started.
    let stage = capture.moments.ended_us.map(|_| stage);
    drop((control, to_stage, channel));
    if capture.isolation.is_some() && capture.failure.is_none() {
        capture.gaps.extend(network_since(settings.plan));
    }
    // All processes that could send have ended, so the counters are final.
    match counters.map(|counters| counters.growth()).transpose() {
        Ok(counts) => capture.counts = counts,
        Err(error) => capture.gaps.push(uncounted(&error)),
    }
    capture.take_ledger(set_up.into_supervisor());
    Ok((capture, stage))
}

/// Gap for missing traffic counters: calls that the supervisor does not judge could have gone anywhere.
fn uncounted(error: &std::io::Error) -> Gap {
    Gap {
        what: GapKind::Attempts,
        detail: format!(
            "cannot read the traffic counters of the client's network namespace: {error}"
        ),
    }
}

/// Gap for an inherited network that has gained interfaces since the start; its other processes may change it.
fn network_since(plan: &Plan) -> Option<Gap> {
    if !plan.is_inherited() {
        return None;
    }
    let detail = match Network::read() {
        Ok(network) => network.more_than_loopback().map(|what| {
            format!("the container's network has more than loopback after the run: {what}")
        }),
        Err(errno) => Some(format!(
            "the container's network cannot be listed after the run: {errno}"
        )),
    };
    detail.map(|detail| Gap {
        what: GapKind::Isolation,
        detail,
    })
}

struct Session<'a> {
    settings: CollectSettings<'a>,
    control: BufReader<OwnedReadHalf>,
    control_open: bool,
    to_stage: OwnedWriteHalf,
    /// `None` after init closed the channel.
    channel: Option<AsyncFd<OwnedFd>>,
    /// `None` after its end was read.
    stdout: Option<AsyncFd<OwnedFd>>,
    stderr: Option<AsyncFd<OwnedFd>>,
    /// Pipe to the client's standard input, until the client is released.
    stdin: Option<InputPipe>,
    questions: Option<AsyncFd<OwnedFd>>,
    /// Targets of an audited program's standard output and standard error.
    passthrough: Option<(Passthrough, Passthrough)>,
    watcher: Watcher,
    /// Fanotify group of the trees, until the watcher takes it.
    group: Option<OwnedFd>,
    signals: Signals,
    stage: Pid,
    processors: Option<Processors>,
    phase: Phase,
    deadline: Instant,
    /// Time of the next look at the sandbox's processes during set-up.
    next_look: Instant,
    /// Up to the release of the client; then the supervisor.
    set_up: SetUp<'a>,
    /// Traffic counters of the client's own network namespace, counted from the client's release.
    counters: Option<Counters>,
    /// Tells the supervisor the lines of standard output; `None` if the output is passed on.
    line_reader: Option<LineReader>,
    /// Questions of the supervisor for those lines.
    asked: Option<LinesWanted>,
    /// A signal has ended the wait for the rest of the output.
    impatient: bool,
    /// The stub has written its last journal entry.
    done: bool,
    capture: Capture,
}

/// Decision of one step of the loop.
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
                && self.questions.is_none()
            {
                return;
            }
            let next = tokio::select! {
                // In this order, so that a record is read before an event that would make it late.
                biased;
                () = self.signals.recv() => self.interrupted(),
                read = readable(self.stdout.as_ref(), self.passthrough.as_ref().map(|(out, _)| out), self.line_reader.as_ref()) => self.read_stdout(read),
                read = self.control.read_until(b'\n', &mut line), if self.control_open => match read {
                    Ok(length) if length > 0 && line.ends_with(b"\n") => {
                        let next = self.control_line(&line).await;
                        line.clear();
                        next
                    }
                    _ => self.control_closed(),
                },
                message = receive(self.channel.as_ref()) => self.init_message(message).await,
                Some(reply) = async { self.asked.as_mut()?.recv().await } => {
                    // The supervisor waits for the answer, up to its own time limit.
                    let _ = reply.try_send(self.lines_now());
                    Next::Continue
                }
                // After the journal, so that a flood of standard error delays no barrier.
                read = readable(self.stderr.as_ref(), self.passthrough.as_ref().map(|(_, err)| err), None) => self.read_stderr(read),
                () = sleep_until(self.deadline) => self.deadline_passed(),
                () = stalled::next_look(self.phase, self.next_look) => self.look_at_processes(),
                // After the deadline, so that a flood of questions or file events delays no other branch.
                told = questions::next(self.questions.as_ref()) => self.question(told),
                () = self.watcher.follow() => Next::Continue,
                () = self.settings.digest.due() => {
                    self.settings.digest.begin();
                    Next::Continue
                }
            };
            if let Next::Stop = next {
                return;
            }
            if let Next::Stop = self.hold_output_to_its_limit() {
                return;
            }
            self.capture.output.parse_waiting();
        }
    }

    async fn ended(&mut self, end: ClientEnd) -> Next {
        self.capture.moments.ended_us = Some(self.settings.clock.elapsed_us());
        let status = match end.status {
            ExitStatus::Code(code) => Exit::Code(code),
            ExitStatus::Signal(signal) => Exit::Signal(signal),
        };
        // If the runner ended the client, the reason stays.
        if self.phase == Phase::Running {
            self.capture.exit = status;
        }
        self.capture.cpu = end.cpu;
        let survivors = end
            .survivors
            .into_iter()
            .map(|(pid, program)| Survivor { pid, program });
        self.capture.survivors = survivors.collect();
        self.enter(Phase::Finishing, FINISHING);
        if let Some(processors) = &self.processors {
            // Two processes of the sandbox end beside the work on the report.
            processors.give_first(self.stage);
            processors.take_rest();
        }
        self.tell_stub(Control::Finish).await;
        // The report waits for it, and tells the cause of a failure.
        let _ = self.settings.digest.hasten();
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

    /// Handles a signal: the first ends the client and leaves a report, the second ends the run.
    fn interrupted(&mut self) -> Next {
        if self.phase == Phase::Ending {
            self.gap(GapKind::Processes, "interrupted twice".to_owned());
            return Next::Stop;
        }
        if self.phase == Phase::Finishing && self.passthrough.is_some() {
            self.impatient = true;
            self.gap(
                GapKind::Records,
                "interrupted before all output was read".to_owned(),
            );
            return Next::Stop;
        }
        self.gap(GapKind::Processes, "interrupted by a signal".to_owned());
        self.end_client(Exit::Interrupted)
    }

    fn deadline_passed(&mut self) -> Next {
        match self.phase {
            Phase::SettingUp => self.set_up_stalled(),
            Phase::Running => self.end_client(Exit::Timeout(self.settings.timeout)),
            Phase::Ending => {
                self.late(
                    GapKind::Processes,
                    "init did not report the client's end",
                    ENDING,
                );
                Next::Stop
            }
            // The client has ended, so the rest of its output waits only for its reader, as in any pipe.
            Phase::Finishing if self.done && self.passthrough.is_some() => {
                self.enter(Phase::Finishing, FINISHING);
                Next::Continue
            }
            Phase::Finishing => {
                if !self.done {
                    self.late(
                        GapKind::Requests,
                        "the stub did not finish its journal",
                        FINISHING,
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

    fn failed(&mut self, failure: Failure) -> Next {
        let what = match failure {
            Failure::SetUp(_) | Failure::NotSealed(_) => GapKind::Isolation,
            // The sandbox held, but it contains no client.
            Failure::NotExecuted(_) => GapKind::Processes,
        };
        self.gap(what, one_line(&failure));
        self.capture.failure.get_or_insert(failure);
        Next::Stop
    }

    fn question(&mut self, told: Option<FromResolver>) -> Next {
        match told {
            Some(told) => self.capture.questions.push(told),
            None => self.questions = None,
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
