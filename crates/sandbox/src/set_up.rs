//! Set-up of one sandbox as its owner sees it: the reports of stage and init, in either order, up to the release of
//! the client.
//!
//! Holds what the release depends on, and makes that one decision. Reading the sockets and waiting belong to the
//! owner's loop.

use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;

use model::evidence::Layer;
use model::secret::SecretScanner;
use nix::errno::Errno;
use nix::unistd::Pid;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use sys::clock::Clock;
use sys::processors::{Processors, SELF};

use super::canary::{self, Kind, outside};
use super::counters::Counters;
use super::error::{At as _, EXHAUSTED, SetupError, Step};
use super::identity;
use super::lines::LineCount;
use super::message::{ClientEnd, FromInit, FromStage, ToStage};
use super::netns_check::Network;
use super::plan::{Identity, Plan};
use super::reaper::Condition;
use super::root::Trees;
use super::self_check::{CanaryReport, SelfCheck, namespaces};
use super::supervise::{KernelMemory, StubAddresses, Supervisor};
use super::verify::{self, HostView, Isolation, own_filters};
use super::weaken::Protection;

/// Set-up in progress, and the supervisor from its start on.
pub struct SetUp<'p> {
    plan: &'p Plan,
    clock: Clock,
    secrets: &'p SecretScanner,
    stage: Pid,
    /// Division of the processors, which ends with the release.
    processors: Option<Processors>,
    /// Probes that are refused outside too, from the stage's service to the judgement.
    refused_outside: Option<Result<Vec<&'static str>, SetupError>>,
    /// Limits of the sandbox's cgroup, or the reason for having none.
    cgroup: Result<String, String>,
    /// For the supervisor, until it starts.
    lines: Option<LineCount>,
    /// For the supervisor, from the stage's service to its start.
    memory: Option<KernelMemory>,
    last_report: Option<&'static str>,
    network: Option<(StubAddresses, Network)>,
    /// Listener of the client's filter, until the supervisor takes it.
    listener: Option<OwnedFd>,
    supervisor: Option<Supervisor>,
    supervised_us: Option<u64>,
    has_root: bool,
    /// Values of the layers.
    check: Option<SelfCheck>,
    /// Layers, judged once their values and the network are known.
    layers: Option<Vec<Layer>>,
    is_judged: bool,
}

/// Action of the owner after a report of the stage.
#[derive(Debug)]
pub enum StageStep {
    /// Read the next report.
    Continue,
    /// Send this answer, for which the stage waits.
    Tell(ToStage),
    /// The server listens at this address on loopback.
    Serving(SocketAddr),
    /// Set-up has failed.
    Failed(SetupError),
    /// The stage has ended before its id maps were written.
    Ended,
}

/// Action of the owner after a report of init.
#[derive(Debug)]
pub enum InitStep {
    /// Read the next report.
    Continue,
    /// The root is built; each part is absent where the kernel or the isolation has none.
    Root {
        /// Home, temporary and working directory.
        trees: Option<Trees>,
        /// fanotify group over the trees.
        watch: Option<OwnedFd>,
        /// Traffic counters of the client's network namespace.
        counters: Option<Counters>,
    },
    /// The client waits for its release: [`ToInit::Go`](super::message::ToInit::Go), if nothing is broken.
    Judged(Box<Judgement>),
    /// The client runs.
    Started,
    /// execve(2) of the client failed.
    NotStarted(Errno),
    /// Set-up has failed.
    Failed(SetupError),
    /// The client has ended, with all of its processes.
    Ended(ClientEnd),
}

/// Layers and probes as judged just before the client starts.
#[derive(Debug)]
pub struct Judgement {
    /// Every layer, and every probe of the canary.
    pub isolation: Isolation,
    /// Layers and probes that do not hold, for people; `None` if the client may start.
    pub broken: Option<String>,
    /// The client's end of the canary's connection to the server.
    pub canary_peer: Option<SocketAddr>,
    /// ABI of Landlock in the client's kernel.
    pub landlock_abi: i32,
}

impl<'p> SetUp<'p> {
    /// Begins with a stage that has its plan. The supervisor takes the number of lines on the client's standard output
    /// from `lines`.
    pub fn new(
        (plan, secrets): (&'p Plan, &'p SecretScanner),
        (stage, processors): (Pid, Option<Processors>),
        cgroup: Result<String, String>,
        clock: Clock,
        lines: LineCount,
    ) -> Self {
        Self {
            plan,
            clock,
            secrets,
            stage,
            processors,
            refused_outside: None,
            cgroup,
            lines: Some(lines),
            memory: None,
            last_report: None,
            network: None,
            listener: None,
            supervisor: None,
            supervised_us: None,
            has_root: false,
            check: None,
            layers: None,
            is_judged: false,
        }
    }

    /// Takes one report of the stage.
    pub fn stage_report(&mut self, report: FromStage) -> StageStep {
        match report {
            FromStage::Unmapped => {
                self.last_report = Some("the namespaces are made");
                self.write_maps()
            }
            FromStage::Serving {
                port,
                elsewhere,
                network,
            } => {
                self.last_report = Some("the stub serves");
                let stub = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
                if let Some(processors) = &self.processors {
                    // The stage is done, and the client's process is on the first one.
                    processors.take_rest();
                }
                self.network = Some((StubAddresses { stub, elsewhere }, network));
                // Not earlier: until now the stage waits for answers of this process.
                self.refused_outside = Some(outside::refused(self.plan.tier, &self.plan.probe));
                // Not later: the client's process waits for the supervisor.
                self.memory = Some(KernelMemory::new(self.plan, self.stage));
                match self.supervise().and_then(|()| self.judge_layers()) {
                    Ok(()) => StageStep::Serving(stub),
                    Err(error) => StageStep::Failed(error),
                }
            }
            FromStage::Failed { error } => StageStep::Failed(error),
        }
    }

    /// Takes one report of init, with the descriptors that came along.
    pub fn init_report(&mut self, report: FromInit, descriptors: Vec<OwnedFd>) -> InitStep {
        match report {
            FromInit::Root { watched } => {
                self.last_report = Some("the root is built");
                let mut descriptors = descriptors.into_iter();
                let trees = Trees::from_each(&mut descriptors);
                self.has_root = trees.is_some();
                InitStep::Root {
                    trees,
                    watch: watched.then(|| descriptors.next()).flatten(),
                    counters: Counters::new(descriptors),
                }
            }
            FromInit::Listening => {
                self.last_report = Some("the client's process has its filter");
                self.listener = descriptors.into_iter().next_back();
                match self.supervise() {
                    Ok(()) => InitStep::Continue,
                    Err(error) => InitStep::Failed(error),
                }
            }
            FromInit::ReadBack { report } => {
                self.last_report = Some("the layers were read back");
                let read = read(&report).and_then(|check| {
                    self.check = Some(check);
                    self.judge_layers()
                });
                match read {
                    Ok(()) => InitStep::Continue,
                    Err(error) => InitStep::Failed(error),
                }
            }
            FromInit::Probed { report } => {
                self.last_report = Some("the canary was made");
                if let Some(error) = self.supervisors_failure() {
                    return InitStep::Failed(error);
                }
                let judged = read(&report).and_then(|report| {
                    let judgement = self.judge(&report)?;
                    match judgement.broken.as_ref().and_then(|_| exhausted(&report)) {
                        Some(error) => Err(error),
                        None => Ok(judgement),
                    }
                });
                match judged {
                    Ok(judgement) => InitStep::Judged(Box::new(judgement)),
                    Err(error) => InitStep::Failed(error),
                }
            }
            FromInit::Started => InitStep::Started,
            FromInit::NotStarted { errno } => InitStep::NotStarted(Errno::from_raw(errno)),
            // Without its supervisor, the client's process fails in a later step.
            FromInit::Failed { error } => {
                let nearer = self.supervisors_failure();
                let nearer = nearer.or_else(|| self.failure_outside(&error));
                InitStep::Failed(nearer.unwrap_or(error))
            }
            FromInit::Ending => {
                self.refuse_new_processes();
                InitStep::Continue
            }
            FromInit::Ended { end } => InitStep::Ended(end),
        }
    }

    fn write_maps(&self) -> StageStep {
        let mapped = match self.plan.identity {
            Identity::Mapped { host_id } => identity::map_other(self.stage, host_id),
            Identity::Own { .. } | Identity::Unmapped { .. } => {
                Err(Errno::EPROTO).at(Step::WriteIdMaps)
            }
        };
        match mapped {
            Ok(()) => StageStep::Tell(ToStage::Mapped),
            // Maps of a process that has ended cannot be written, and that is no fault of this host.
            Err(error) => match Condition::of(self.stage) {
                Some(Condition::Ended(_)) => StageStep::Ended,
                Some(Condition::Runs | Condition::Stopped) | None => StageStep::Failed(error),
            },
        }
    }

    /// Starts the supervisor once there are a listener and a server whose address it knows.
    fn supervise(&mut self) -> Result<(), SetupError> {
        let (Some((addresses, _)), Some(listener)) = (
            &self.network,
            self.listener.take_if(|_| self.network.is_some()),
        ) else {
            return Ok(());
        };
        let counts = self.lines.take().zip(self.memory.take());
        let supervisor = Supervisor::start(
            listener,
            *addresses,
            self.clock,
            counts.ok_or(Errno::EALREADY).at(Step::Supervise)?,
            (self.plan, self.stage, self.processors),
            self.secrets,
        )?;

        self.supervisor = Some(supervisor);
        self.supervised_us = Some(self.clock.elapsed_us());
        Ok(())
    }

    /// Failure of the probes outside, which explains that of the probes inside: a filter around the runner ends both.
    fn failure_outside(&mut self, inside: &SetupError) -> Option<SetupError> {
        let refused = self.refused_outside.take_if(|_| inside.step == Step::Probe);
        refused.and_then(Result::err)
    }

    fn supervisors_failure(&self) -> Option<SetupError> {
        self.supervisor.as_ref().and_then(Supervisor::failure)
    }

    /// Judges the layers as soon as all that they depend on is known.
    fn judge_layers(&mut self) -> Result<(), SetupError> {
        if let (Some(check), Some((_, network)), None) = (&self.check, &self.network, &self.layers)
        {
            let outside = HostView {
                plan: self.plan,
                network,
                namespaces: &namespaces()?,
                filters: own_filters(),
                cgroup: &self.cgroup,
            };
            self.layers = Some(verify::layers(check, &outside));
        }
        Ok(())
    }

    /// Decides on the release: every required layer read back, every probe held. After a good judgement, calls count as
    /// the client's.
    fn judge(&mut self, report: &CanaryReport) -> Result<Judgement, SetupError> {
        self.is_judged = true;
        let refused = self.refused_outside.take().transpose()?.unwrap_or_default();
        let layers = self.layers.take();
        let (Some(layers), Some(check), Some((addresses, _)), Some(supervisor)) =
            (layers, &self.check, &self.network, &self.supervisor)
        else {
            // The layers come before the canary, whose own calls are answered by the supervisor.
            return Err(Errno::EPROTO).at(Step::Probe);
        };
        let plan = self.plan;
        let canary = canary::Context {
            kind: Kind::of(plan.tier, check.shows_proc),
            targets: &plan.probe,
            stub_port: addresses.stub.port(),
            observed: &report.observations,
            recorded: &supervisor.canaries(),
            refused_outside: &refused,
            scopes: check.landlock.scopes,
        };
        let isolation = Isolation {
            layers,
            canaries: canary.judge(),
        };
        let broken = isolation
            .broken()
            .filter(|_| plan.keeps(Protection::Ledger) && plan.keeps(Protection::Judgement));
        if broken.is_none() {
            supervisor.launch();
            if let Some(processors) = self.processors.take() {
                let _ = processors.free(SELF);
            }
        }
        Ok(Judgement {
            isolation,
            broken,
            canary_peer: report.stub_peer,
            landlock_abi: check.landlock.abi,
        })
    }

    /// Keeps the client from starting processes: the final kill cannot race with fork(2).
    pub fn refuse_new_processes(&self) {
        if let Some(supervisor) = &self.supervisor {
            supervisor.refuse_new_processes();
        }
    }

    /// The last report that came, for messages.
    pub fn last_report(&self) -> Option<&'static str> {
        self.last_report
    }

    /// Reports that are still to come, for messages.
    pub fn missing(&self) -> String {
        let of_stage = self.network.is_none().then_some("the stub serves");
        let of_init = if !self.has_root {
            "the root is built"
        } else if self.supervisor.is_none() && self.listener.is_none() {
            "the client's process has its filter"
        } else if !self.is_judged {
            "the canary was made"
        } else {
            "the client was executed"
        };
        let all: Vec<&str> = of_stage.into_iter().chain([of_init]).collect();
        all.join(", ")
    }

    /// Start of the supervisor on the run's clock, in microseconds.
    pub fn supervised_us(&self) -> Option<u64> {
        self.supervised_us
    }

    /// The supervisor, where it was started.
    pub fn into_supervisor(self) -> Option<Supervisor> {
        self.supervisor
    }
}

fn read<T: DeserializeOwned>(report: &RawValue) -> Result<T, SetupError> {
    serde_json::from_str(report.get())
        .map_err(|_| Errno::EBADMSG)
        .at(Step::Probe)
}

/// Finds the first probe that failed for want of a resource, so that it shows nothing about the sandbox.
fn exhausted(report: &CanaryReport) -> Option<SetupError> {
    let mut probes = report.observations.iter();
    let probe = probes.find(|probe| EXHAUSTED.contains(&Errno::from_raw(probe.errno)))?;
    Some(SetupError {
        step: Step::Probe,
        object: probe.name.clone(),
        errno: probe.errno,
    })
}
