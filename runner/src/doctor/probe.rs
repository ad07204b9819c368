//! Results of the doctor's probes: what was tried, what was seen, cause and fixes. Both outputs are made of them.

use model::case::Tier;
use nix::errno::Errno;
use nix::sys::signal::Signal;
use sandbox::error::{At as _, SetupError, Step};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::advice::Advice;

model::closed_set! {
    /// Use of the tested feature.
    pub(super) enum Need {
        /// A run is not possible without the feature.
        Required = "required",
        /// `runner audit` needs the feature beyond what a case needs.
        Audit = "audit",
        /// A run uses the feature if it is available.
        Used = "used",
    }

    /// Result of a probe.
    pub(super) enum Status {
        /// The feature does not work: it was refused, had no effect, ended the process, or did not return.
        Refused = "refused",
        /// The feature could not be tested.
        Untried = "untried",
        /// The feature works as a run needs it.
        Works = "works",
    }
}

/// One probe with its result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(super) struct Probe {
    /// Id of the probe: `namespace` and `inherited` for a whole run with that isolation, the name of a layer, or of a
    /// feature.
    pub(super) id: String,
    /// Tested feature, for people.
    pub(super) what: String,
    /// Isolation that needs the feature; null for both.
    pub(super) isolation: Option<Tier>,
    /// Use of the feature by that isolation.
    pub(super) need: Need,
    /// Result of the probe.
    pub(super) status: Status,
    /// Observation, for people.
    pub(super) observed: String,
    /// Step of the set-up that failed, such as `private-mounts`; null for any other result.
    pub(super) step: Option<String>,
    /// Name of the errno with which the kernel refused; null if it did not refuse with an errno.
    pub(super) errno: Option<String>,
    /// Cause, if the feature does not work; null if it works, was not tested, or the observation says the cause.
    pub(super) cause: Option<String>,
    /// Fixes: commands, flags or settings.
    pub(super) fixes: Vec<String>,
}

/// Result of an attempt that does not work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// A step failed with an errno; the table of causes has the advice.
    Step(SetupError),
    /// An operation failed with an errno, for a known cause.
    Operation {
        doing: String,
        errno: Errno,
        advice: Advice,
    },
    /// The kernel accepted the calls, but the effect is wrong.
    Wrong(String),
    /// A signal ended the trial.
    Killed(i32),
    /// The trial did not end within its time limit.
    Hung,
    /// The feature could not be tested, with the reason.
    Untried(String),
    /// A run failed outside of its set-up, or lacks a layer. Without advice, the text is all that is known.
    Run {
        text: String,
        errno: Option<Errno>,
        advice: Option<Advice>,
    },
}

impl Refusal {
    pub(super) fn operation(doing: &str, errno: Errno, cause: &str, fix: &str) -> Self {
        Self::Operation {
            doing: doing.to_owned(),
            errno,
            advice: advice(cause, fix),
        }
    }
}

impl From<SetupError> for Refusal {
    fn from(error: SetupError) -> Self {
        Self::Step(error)
    }
}

/// Details of a feature that works, or the refusal.
pub(super) type Outcome = Result<String, Refusal>;

impl Probe {
    pub(super) fn new(
        (id, what): (&str, &str),
        isolation: Option<Tier>,
        need: Need,
        outcome: Outcome,
    ) -> Self {
        let mut probe = Self {
            id: id.to_owned(),
            what: what.to_owned(),
            isolation,
            need,
            status: Status::Refused,
            observed: String::new(),
            step: None,
            errno: None,
            cause: None,
            fixes: Vec::new(),
        };
        match outcome {
            Ok(observed) => {
                probe.status = Status::Works;
                probe.observed = observed;
            }
            Err(refusal) => probe.refuse(refusal),
        }
        probe
    }

    fn refuse(&mut self, refusal: Refusal) {
        let advice = match refusal {
            Refusal::Step(error) => {
                self.observed = error.to_string();
                self.step = step_word(error.step);
                self.errno = Some(format!("{:?}", Errno::from_raw(error.errno)));
                Advice::of(&error)
            }
            Refusal::Operation {
                doing,
                errno,
                advice,
            } => {
                self.observed = format!("cannot {doing}: {errno:?}, {}", errno.desc());
                self.errno = Some(format!("{errno:?}"));
                advice
            }
            Refusal::Wrong(text) => {
                self.observed = text;
                advice(
                    "the kernel accepted the calls and does not enforce them",
                    "this is a fault of the kernel, of its configuration or of this program: please report it",
                )
            }
            Refusal::Killed(signal) => {
                let name = Signal::try_from(signal).map_or("a signal", Signal::as_str);
                self.observed = format!("ended by {name}");
                killed(signal)
            }
            Refusal::Hung => {
                self.observed = "did not return".to_owned();
                advice(
                    "the process that answers the call, such as a supervisor of a surrounding sandbox, does not answer",
                    "start the runner outside of that sandbox",
                )
            }
            Refusal::Untried(reason) => {
                self.status = Status::Untried;
                self.observed = reason;
                return;
            }
            Refusal::Run {
                text,
                errno,
                advice,
            } => {
                self.observed = text;
                self.errno = errno.map(|errno| format!("{errno:?}"));
                let Some(advice) = advice else { return };
                advice
            }
        };
        self.cause = advice.cause;
        self.fixes = advice.fixes;
    }

    pub(super) fn works(&self) -> bool {
        self.status == Status::Works
    }
}

/// Returns an advice with one fix.
fn advice(cause: &str, fix: &str) -> Advice {
    Advice {
        cause: Some(cause.to_owned()),
        fixes: vec![fix.to_owned()],
    }
}

fn killed(signal: i32) -> Advice {
    if signal == libc::SIGSYS {
        return advice(
            "a system call filter kills the caller of this system call",
            "allow the call where the filter is made: `SystemCallFilter=` of a systemd unit, the engine's seccomp profile",
        );
    }
    if signal == libc::SIGABRT {
        return advice(
            "the memory limit is lower than the runner itself needs",
            "`ulimit -d unlimited; ulimit -v unlimited`",
        );
    }
    if signal == libc::SIGKILL {
        return Advice::of(&SetupError {
            step: Step::CompleteSetUp,
            object: String::new(),
            errno: Errno::ESRCH as i32,
        });
    }
    advice(
        &format!("signal {signal} ended the process that tried it"),
        "look for the sender in the kernel's log (`dmesg`)",
    )
}

/// Word of a step in JSON.
fn step_word(step: Step) -> Option<String> {
    let value = serde_json::to_value(step).ok()?;
    Some(value.as_str()?.to_owned())
}

/// Adds the failed step to an error of the system.
pub(super) fn at_step<T>(
    found: std::io::Result<T>,
    step: Step,
    object: &str,
) -> Result<T, Refusal> {
    Ok(found.at_object(step, object)?)
}
