//! Messages from and to the stage and init: set-up, the barrier, the release of the client.

use std::os::fd::AsFd as _;

use model::evidence::{Exit, GapKind};
use model::journal::{Control, Entry};
use nix::errno::Errno;
use sandbox::counters::Counters;
use sandbox::error::{At as _, Step};
use sandbox::identity;
use sandbox::message::{self, FromInit, FromStage, ToInit, ToStage};
use sandbox::plan::Identity;
use sandbox::reaper::Condition;
use sandbox::root::Trees;
use sandbox::self_check::SelfCheck;
use sandbox::supervise::{StubAddresses, Supervisor};
use sandbox::verify::{self, Outside};
use sandbox::weaken::Protection;
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
            Ok(ControlLine::Stage(FromStage::Unmapped)) => {
                self.last_report = Some("the namespaces are made");
                self.write_maps().await
            }
            Ok(ControlLine::Stage(FromStage::Serving {
                port,
                elsewhere,
                network,
            })) => {
                self.last_report = Some("the stub serves");
                let stub = (std::net::Ipv4Addr::LOCALHOST, port).into();
                self.capture.stub = Some(stub);
                self.network = Some((StubAddresses { stub, elsewhere }, network));
                self.supervise()
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
                // Not a gap: the journal has every request of the client up to its end.
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
            Identity::Own { .. } | Identity::Unmapped { .. } => {
                Err(Errno::EPROTO).at(Step::WriteIdMaps)
            }
        };
        if let Err(error) = mapped {
            // The maps of a process that has ended cannot be written; the host is not at fault then.
            return match Condition::of(self.stage) {
                Some(Condition::Ended(_)) => self.set_up_stalled(),
                Some(Condition::Runs | Condition::Stopped) | None => {
                    self.failed(Failure::SetUp(error))
                }
            };
        }
        let mut told = Vec::new();
        // Serialising a value of a closed set into memory cannot fail.
        let _ = message::write_line(&mut told, &ToStage::Mapped);
        match timeout(FINISHING, self.to_stage.write_all(&told)).await {
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
        if let (Some(stdout), None) = (&self.stdout, &self.pass) {
            let mut left = readable_bytes(stdout.get_ref()).unwrap_or(0);
            let mut piece = vec![0; left.min(PIECE)];
            while left > 0 {
                let room = left.min(piece.len());
                match nix::unistd::read(
                    stdout.get_ref().as_fd(),
                    piece.get_mut(..room).unwrap_or_default(),
                ) {
                    Ok(length) if length > 0 => {
                        let now = self.watch.clock.elapsed_us();
                        self.capture
                            .output
                            .push(piece.get(..length).unwrap_or_default(), now);
                        left -= length.min(left);
                    }
                    _ => break,
                }
            }
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
                self.gap(GapKind::Processes, format!("init cannot be heard: {errno}"));
                Next::Stop
            }
            Ok(None) => self.init_closed(),
            Ok(Some((FromInit::Root { watched }, descriptors))) => {
                self.last_report = Some("the root is built");
                let mut descriptors = descriptors.into_iter();
                self.capture.trees = Trees::from_each(&mut descriptors);
                self.group = watched.then(|| descriptors.next()).flatten();
                self.counters = Counters::new(descriptors);
                Next::Continue
            }
            Ok(Some((FromInit::Listening, mut descriptors))) => {
                self.last_report = Some("the client's process has its filter");
                self.listener = descriptors.pop();
                self.supervise()
            }
            Ok(Some((FromInit::Probed { report }, _))) => {
                self.last_report = Some("the canaries were tried");
                self.release(&report)
            }
            Ok(Some((FromInit::Started, _))) => {
                self.enter(Phase::Running, self.watch.timeout);
                // Until its end is reported, the client counts as interrupted: only an interruption ends the
                // loop early.
                self.capture.exit = Exit::Interrupted;
                Next::Continue
            }
            Ok(Some((FromInit::NotStarted { errno }, _))) => {
                self.failed(Failure::NotExecuted(Errno::from_raw(errno)))
            }
            Ok(Some((FromInit::Failed { error }, _))) => self.failed(Failure::SetUp(error)),
            Ok(Some((FromInit::Ending, _))) => {
                if let Some(supervisor) = &self.supervisor {
                    supervisor.refuse_new_processes();
                }
                Next::Continue
            }
            Ok(Some((FromInit::Ended { end }, _))) => self.ended(end).await,
        }
    }

    /// Starts the supervisor once the listener and the stub's address are both known.
    fn supervise(&mut self) -> Next {
        let (Some((served, _)), Some(listener)) = (
            &self.network,
            self.listener.take_if(|_| self.network.is_some()),
        ) else {
            return Next::Continue;
        };
        match Supervisor::start(
            listener,
            *served,
            self.watch.clock,
            self.ask.clone(),
            (self.watch.plan, self.stage),
            self.watch.secrets,
        )
        .at(Step::Supervise)
        {
            Ok(supervisor) => {
                self.supervisor = Some(supervisor);
                self.capture.moments.supervised_us = Some(self.watch.clock.elapsed_us());
                Next::Continue
            }
            Err(error) => self.failed(Failure::SetUp(error)),
        }
    }

    /// Releases the client, if every layer was verified and every canary probe held. No other code releases it.
    fn release(&mut self, report: &SelfCheck) -> Next {
        let (Some((served, network)), Some(supervisor)) = (&self.network, &self.supervisor) else {
            // The supervisor answers the probes' own calls, so it cannot have ended before.
            return self.failed(Failure::NotSealed(
                "the canaries were not supervised".to_owned(),
            ));
        };
        let recorded = supervisor.canaries();
        let outside = Outside {
            plan: self.watch.plan,
            network,
            stub_port: served.stub.port(),
            namespaces: &self.watch.namespaces,
            filters: self.watch.filters,
            refused: &self.watch.refused,
            cgroup: &self.cgroup,
            recorded: &recorded,
        };
        let isolation = verify::judge(report, &outside);
        let plan = self.watch.plan;
        let broken = isolation
            .broken()
            .filter(|_| plan.keeps(Protection::Ledger) && plan.keeps(Protection::Judgement));
        if broken.is_none() {
            supervisor.launch();
        }
        self.capture.canary_peer = report.stub_peer;
        self.capture.landlock_abi = report.landlock.abi;
        self.capture.isolation = Some(isolation);
        match broken {
            None => {
                // From here on, changes in the trees are the client's.
                let counted = self
                    .capture
                    .trees
                    .as_ref()
                    .filter(|_| !self.watch.plan.is_inherited());
                let identity = self.watch.plan.identity;
                let numbers =
                    counted.map(|trees| trees.each().map(|(_, tree)| next_number(tree, identity)));
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
                self.capture.moments.released_us = Some(self.watch.clock.elapsed_us());
                self.tell_init(ToInit::Go)
            }
            Some(what) => self.failed(Failure::NotSealed(what)),
        }
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
