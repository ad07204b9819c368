//! The loop of one sealed run: set-up, the program, its outputs and its end.

use std::io::{self, Read as _};
use std::net::Shutdown;
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::{MAX_OUTPUT_BYTES, Ran, SealError};
use crate::dns::Asked;
use crate::message::{self, ExitStatus, FromInit, FromResolver, FromStage, ToInit};
use crate::set_up::{InitStep, SetUp, StageStep};
use crate::spawn::Stage;
use crate::supervise::Supervisor;
use crate::verify::Isolation;

/// From the start of the stage to the exec of the program.
const SET_UP: Duration = Duration::from_secs(20);
/// From the order to end the program to the report of its end.
const ENDING: Duration = Duration::from_secs(10);
/// Bytes of one read.
const PIECE: usize = 16 * 1024;
/// Largest time limit; a longer one is cut.
const MAX_TIMEOUT: Duration = Duration::from_secs(30 * 24 * 3600);

/// A run in progress.
pub(super) struct Drive<'p> {
    // Dropped in this order: first the probes outside, then all other children.
    set_up: SetUp<'p>,
    stage: Stage,
    stdout: Output,
    stderr: Output,
    /// Begun line of the stage.
    line: Vec<u8>,
    isolation: Isolation,
    questions: Vec<(Asked, u64)>,
    /// The resolver has more to report.
    resolver_is_open: bool,
    status: Option<ExitStatus>,
    phase: Phase,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    SettingUp,
    Running,
    Ended,
}

/// One output of the program.
struct Output {
    /// `None` once its end was read.
    pipe: Option<OwnedFd>,
    bytes: Vec<u8>,
}

impl Output {
    fn read(&mut self) -> Result<(), SealError> {
        let Some(pipe) = &self.pipe else {
            return Ok(());
        };
        let mut piece = [0; PIECE];
        match nix::unistd::read(pipe, &mut piece) {
            Ok(0) => self.pipe = None,
            Ok(length) => self.bytes.extend(piece.get(..length).unwrap_or_default()),
            Err(Errno::EAGAIN | Errno::EINTR) => {}
            Err(errno) => return Err(SealError::Wait(errno.into())),
        }
        if self.bytes.len() > MAX_OUTPUT_BYTES {
            return Err(SealError::Output);
        }
        Ok(())
    }
}

impl<'p> Drive<'p> {
    pub(super) fn new(mut stage: Stage, set_up: SetUp<'p>) -> Result<Self, SealError> {
        let output = |pipe| Output {
            pipe,
            bytes: Vec::new(),
        };
        let (stdout, stderr) = (output(stage.stdout.take()), output(stage.stderr.take()));
        Ok(Self {
            set_up,
            stage,
            stdout,
            stderr,
            line: Vec::new(),
            isolation: Isolation::default(),
            questions: Vec::new(),
            resolver_is_open: true,
            status: None,
            phase: Phase::SettingUp,
        })
    }

    /// Drives the run to the end of the program and of its outputs; false: its time limit had passed.
    pub(super) fn drive(&mut self, timeout: Duration) -> Result<bool, SealError> {
        let mut deadline = Instant::now() + SET_UP;
        let mut in_time = true;
        while !self.is_complete() {
            let before = self.phase;
            if !self.wait_until(deadline)? {
                if self.phase != Phase::Running || !in_time {
                    return Err(self.lost());
                }
                in_time = false;
                deadline = Instant::now() + ENDING;
                self.tell_init(ToInit::End)?;
            }
            match (before, self.phase) {
                (Phase::SettingUp, Phase::Running) => {
                    deadline = Instant::now() + timeout.min(MAX_TIMEOUT)
                }
                (Phase::Running, Phase::Ended) => deadline = Instant::now() + ENDING,
                (_, _) => {}
            }
        }
        Ok(in_time)
    }

    fn is_complete(&self) -> bool {
        let is_read = |output: &Output| output.pipe.is_none();
        self.phase == Phase::Ended
            && !self.resolver_is_open
            && is_read(&self.stdout)
            && is_read(&self.stderr)
    }

    /// Waits for the next event and takes it; false once the deadline has passed.
    fn wait_until(&mut self, deadline: Instant) -> Result<bool, SealError> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(false);
        }
        let mut watched = Vec::new();
        // Stage and init end with the program. The outputs and the last reports of the resolver are still to be read.
        if self.phase != Phase::Ended {
            watched.push((Source::Stage, self.stage.control.as_fd()));
            watched.push((Source::Init, self.stage.channel.as_fd()));
        }
        if self.resolver_is_open {
            watched.push((Source::Resolver, self.stage.questions.as_fd()));
        }
        let outputs = [
            (Source::Stdout, &self.stdout),
            (Source::Stderr, &self.stderr),
        ];
        for (source, output) in outputs {
            watched.extend(output.pipe.as_ref().map(|pipe| (source, pipe.as_fd())));
        }
        let mut polled: Vec<PollFd<'_>> = watched
            .iter()
            .map(|(_, descriptor)| PollFd::new(*descriptor, PollFlags::POLLIN))
            .collect();
        let limit = PollTimeout::try_from(left.min(SET_UP)).unwrap_or(PollTimeout::MAX);
        match poll(&mut polled, limit) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(SealError::Wait(errno.into())),
        }
        let sources = watched.iter().map(|(source, _)| *source);
        let is_ready = |polled: &PollFd<'_>| polled.any().unwrap_or(false);
        let ready = sources.zip(polled.iter().map(is_ready));
        let ready: Vec<Source> = ready
            .filter_map(|(source, is_ready)| is_ready.then_some(source))
            .collect();
        for source in ready {
            match source {
                Source::Stage => self.read_stage()?,
                Source::Init => self.read_init()?,
                Source::Resolver => self.read_resolver()?,
                Source::Stdout => self.stdout.read()?,
                Source::Stderr => self.stderr.read()?,
            }
        }
        Ok(true)
    }

    fn read_stage(&mut self) -> Result<(), SealError> {
        let mut piece = [0; PIECE];
        let length = match (&self.stage.control).read(&mut piece) {
            Ok(0) => return Err(self.lost()),
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(SealError::Wait(error)),
        };
        self.line.extend(piece.get(..length).unwrap_or_default());
        while let Some(end) = self.line.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.line.drain(..=end).collect();
            // A server may write lines of its own, which this owner does not read.
            if let Ok(report) = serde_json::from_slice::<FromStage>(&line) {
                self.stage_report(report)?;
            }
        }
        Ok(())
    }

    fn stage_report(&mut self, report: FromStage) -> Result<(), SealError> {
        match self.set_up.stage_report(report) {
            StageStep::Continue | StageStep::Serving(_) => Ok(()),
            StageStep::Tell(told) => message::write_line(&self.stage.control, &told)
                .map_err(|errno| SealError::Wait(errno.into())),
            StageStep::Failed(error) => Err(error.into()),
            StageStep::Ended => Err(self.lost()),
        }
    }

    fn read_init(&mut self) -> Result<(), SealError> {
        let received = match message::receive::<FromInit>(&self.stage.channel) {
            Ok(Some(received)) => received,
            Err(Errno::EAGAIN | Errno::EINTR) => return Ok(()),
            Ok(None) => return Err(self.lost()),
            Err(errno) => return Err(SealError::Wait(errno.into())),
        };
        let (report, descriptors) = received;
        match self.set_up.init_report(report, descriptors) {
            InitStep::Continue | InitStep::Root { .. } => Ok(()),
            InitStep::Judged(judgement) => {
                self.isolation = judgement.isolation;
                match judgement.broken {
                    Some(what) => Err(SealError::NotSealed(what)),
                    None => self.tell_init(ToInit::Go),
                }
            }
            InitStep::Started => {
                self.phase = Phase::Running;
                Ok(())
            }
            InitStep::NotStarted(errno) => Err(SealError::NotExecuted(errno)),
            InitStep::Failed(error) => Err(error.into()),
            InitStep::Ended(end) => {
                self.status = Some(end.status);
                self.phase = Phase::Ended;
                // The server ends, and then the resolver reports its last questions.
                let shut = self.stage.control.shutdown(Shutdown::Write);
                shut.map_err(SealError::Wait)
            }
        }
    }

    fn read_resolver(&mut self) -> Result<(), SealError> {
        match message::receive(&self.stage.questions) {
            Ok(Some((FromResolver::Asked { asked, count }, _))) => {
                let mut known = self.questions.iter_mut();
                match known.find(|(question, _)| *question == asked) {
                    Some((_, number)) => *number += count,
                    None => self.questions.push((asked, count)),
                }
            }
            Ok(Some((FromResolver::Ended { .. }, _)) | None) => self.resolver_is_open = false,
            Err(Errno::EAGAIN | Errno::EINTR) => {}
            Err(errno) => return Err(SealError::Wait(errno.into())),
        }
        Ok(())
    }

    fn tell_init(&self, told: ToInit) -> Result<(), SealError> {
        message::send(&self.stage.channel, &told, &[])
            .map_err(|errno| SealError::Wait(errno.into()))
    }

    fn lost(&self) -> SealError {
        SealError::Lost {
            last: self.set_up.last_report().unwrap_or("none"),
            missing: self.set_up.missing(),
        }
    }

    /// Ends every process of the sandbox, then takes the ledger.
    pub(super) fn finish(self, in_time: bool) -> Result<Ran, SealError> {
        self.set_up.refuse_new_processes();
        drop(self.stage);
        let supervisor = self.set_up.into_supervisor();
        let ledger = supervisor.and_then(Supervisor::finish);
        Ok(Ran {
            status: self.status.filter(|_| in_time),
            stdout: self.stdout.bytes,
            stderr: self.stderr.bytes,
            isolation: self.isolation,
            ledger: ledger.ok_or(SealError::NoLedger)?,
            questions: self.questions,
        })
    }
}

/// Descriptor that an event came from.
#[derive(Clone, Copy)]
enum Source {
    Stage,
    Init,
    Resolver,
    Stdout,
    Stderr,
}
