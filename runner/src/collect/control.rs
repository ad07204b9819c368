//! Messages from and to the stage and init: set-up, the barrier, the release of the client.

use std::os::fd::AsFd as _;

use model::evidence::{Exit, GapKind};
use model::journal::{Control, Entry};
use sandbox::counters::Counters;
use sandbox::message::{self, FromStage, ToInit, ToStage};
use sandbox::set_up::{InitStep, Judgement, StageStep};
use serde::Deserialize;
use sys::net::readable_bytes;
use tokio::io::AsyncWriteExt as _;
use tokio::time::timeout;

use super::inode_count::next_number;
use super::pipes::Received;
use super::{FINISHING, Failure, Next, PIECE, Phase, Session, uncounted};

/// One line on the control socket.
#[derive(Deserialize)]
#[serde(untagged)]
enum ControlLine {
    Stage(FromStage),
    Journal(Entry),
}

impl Session<'_> {
    pub(super) async fn control_line(&mut self, line: &[u8]) -> Next {
        match serde_json::from_slice(line) {
            Ok(ControlLine::Stage(report)) => self.stage_report(report).await,
            Ok(ControlLine::Journal(Entry::Began {
                connection,
                request,
                at_us,
            })) => {
                self.barrier(request);
                // Not a gap: the journal has every request of the client up to its end.
                if request > self.settings.requests && self.phase == Phase::Running {
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

    async fn stage_report(&mut self, report: FromStage) -> Next {
        match self.set_up.stage_report(report) {
            StageStep::Continue => Next::Continue,
            StageStep::Tell(told) => self.tell_stage(&told).await,
            StageStep::Serving(stub) => {
                self.capture.stub = Some(stub);
                Next::Continue
            }
            StageStep::Failed(error) => self.failed(Failure::SetUp(error)),
            StageStep::Ended => self.set_up_stalled(),
        }
    }

    async fn tell_stage(&mut self, told: &ToStage) -> Next {
        let mut line = Vec::new();
        // Serialising a value of a closed set into memory cannot fail.
        let _ = message::write_line(&mut line, told);
        match timeout(FINISHING, self.to_stage.write_all(&line)).await {
            Ok(Ok(())) => Next::Continue,
            Ok(Err(_)) | Err(_) => self.control_closed(),
        }
    }

    fn barrier(&mut self, request: u64) {
        let lines = self.lines_now();
        self.capture.barriers.push((request, lines));
    }

    /// Reads the bytes that are in standard output now, and no more, so that a flood cannot delay the caller.
    /// Returns the number of lines so far. Output that is passed on has no lines.
    pub(super) fn lines_now(&mut self) -> usize {
        if let (Some(stdout), None) = (&self.stdout, &self.passthrough) {
            if let Some(lines) = &self.line_reader {
                lines.begin_read();
            }
            let mut left = readable_bytes(stdout.get_ref()).unwrap_or(0);
            let mut piece = vec![0; left.min(PIECE)];
            while left > 0 {
                let room = left.min(piece.len());
                match nix::unistd::read(
                    stdout.get_ref().as_fd(),
                    piece.get_mut(..room).unwrap_or_default(),
                ) {
                    Ok(length) if length > 0 => {
                        let now = self.settings.clock.elapsed_us();
                        self.capture
                            .output
                            .push(piece.get(..length).unwrap_or_default(), now);
                        left -= length.min(left);
                    }
                    _ => break,
                }
            }
            self.publish_lines();
        }
        self.capture.output.lines()
    }

    pub(super) async fn tell_stub(&mut self, told: Control) {
        let mut line = serde_json::to_vec(&told).unwrap_or_default();
        line.push(b'\n');
        // A stage that has ended reads no more, but its last lines may still be unread. The end of the control
        // socket decides whether the stub was lost.
        let _ = timeout(FINISHING, self.to_stage.write_all(&line)).await;
    }

    pub(super) async fn init_message(&mut self, received: Received) -> Next {
        match received {
            Err(errno) => {
                self.gap(
                    GapKind::Processes,
                    format!("cannot receive from init: {errno}"),
                );
                Next::Stop
            }
            Ok(None) => self.init_closed(),
            Ok(Some((report, descriptors))) => {
                let step = self.set_up.init_report(report, descriptors);
                self.init_step(step).await
            }
        }
    }

    async fn init_step(&mut self, step: InitStep) -> Next {
        match step {
            InitStep::Continue => Next::Continue,
            InitStep::Root {
                trees,
                watch,
                counters,
            } => {
                self.capture.trees = trees;
                self.group = watch;
                self.counters = counters;
                Next::Continue
            }
            InitStep::Judged(judgement) => self.release(*judgement),
            InitStep::Started => {
                self.enter(Phase::Running, self.settings.timeout);
                // Until its end is reported, the client counts as interrupted: only an interruption ends the
                // loop early.
                self.capture.exit = Exit::Interrupted;
                Next::Continue
            }
            InitStep::NotStarted(errno) => self.failed(Failure::NotExecuted(errno)),
            InitStep::Failed(error) => self.failed(Failure::SetUp(error)),
            InitStep::Ended(end) => self.ended(end).await,
        }
    }

    /// Releases the client, if the sandbox was judged to hold. No other code releases it.
    fn release(&mut self, judgement: Judgement) -> Next {
        let plan = self.settings.plan;
        self.capture.canary_peer = judgement.canary_peer;
        self.capture.landlock_abi = judgement.landlock_abi;
        self.capture.isolation = Some(judgement.isolation);
        if let Some(what) = judgement.broken {
            return self.failed(Failure::NotSealed(what));
        }
        // From here on, changes in the trees are the client's.
        let counted = self.capture.trees.as_ref();
        let counted = counted.filter(|_| !plan.is_inherited());
        let number = |(_, tree)| next_number(tree, plan.identity);
        let numbers = counted.map(|trees| trees.each().map(number));
        self.capture.first_numbers = numbers.unwrap_or_default();
        if let Some(trees) = &self.capture.trees {
            self.watcher.start(self.group.take(), &trees.each());
        }
        if !plan.is_inherited() {
            let none = || std::io::Error::from(std::io::ErrorKind::NotFound);
            let started = self.counters.as_mut().ok_or_else(none);
            if let Err(error) = started.and_then(Counters::start) {
                self.capture.gaps.push(uncounted(&error));
            }
        }
        self.capture.moments.released_us = Some(self.settings.clock.elapsed_us());
        let next = self.tell_init(ToInit::Go);
        if let (Some(input), Some(pipe)) = (&mut self.settings.input, self.stdin.take()) {
            input.start(pipe);
        }
        self.settings.digest.start();
        next
    }

    pub(super) fn tell_init(&mut self, told: ToInit) -> Next {
        let channel = self
            .channel
            .as_ref()
            .map(|channel| message::send(channel.get_ref(), &told, &[]));
        match channel {
            Some(Ok(())) => Next::Continue,
            Some(Err(_)) | None => self.init_closed(),
        }
    }

    pub(super) fn control_closed(&mut self) -> Next {
        self.control_open = false;
        if self.done {
            // The stage has ended after its last line; only the outputs are left.
            return Next::Continue;
        }
        self.gap(GapKind::Requests, "the stub was lost".to_owned());
        self.lost_one_side()
    }

    pub(super) fn init_closed(&mut self) -> Next {
        self.channel = None;
        if self.phase == Phase::Finishing {
            return Next::Continue;
        }
        self.gap(GapKind::Processes, "init was lost".to_owned());
        self.lost_one_side()
    }

    /// Handles the loss of the stage or init. In set-up both end if one fails, and only one reports the cause: the
    /// loop waits for that report.
    fn lost_one_side(&mut self) -> Next {
        let other_side = self.control_open || self.channel.is_some();
        match self.phase {
            Phase::SettingUp if other_side => {
                self.expect_last_report();
                Next::Continue
            }
            Phase::SettingUp => self.set_up_stalled(),
            Phase::Running | Phase::Ending | Phase::Finishing => Next::Stop,
        }
    }
}
