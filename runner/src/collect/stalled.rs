//! Set-up without progress: reports the sandbox process that ended or was stopped, and the missing reports.

use std::future::pending;
use std::time::Duration;

use model::evidence::GapKind;
use nix::errno::Errno;
use nix::unistd::Pid;
use sandbox::error::{SetupError, Step};
use sandbox::reaper::{Condition, only_child_of};
use tokio::time::{Instant, sleep_until};

use super::{Failure, Next, Phase, SET_UP, Session};

/// Interval between looks at the processes during set-up; most set-ups need a tenth of it.
pub(super) const BETWEEN_LOOKS: Duration = Duration::from_millis(200);
/// Limit from the end of one process to the report of the other, which may have the cause.
const LAST_REPORT: Duration = Duration::from_secs(1);

/// Waits for the next look at the processes of the sandbox. The future is never ready after set-up.
pub(super) async fn next_look(phase: Phase, at: Instant) {
    match phase {
        Phase::SettingUp => sleep_until(at).await,
        Phase::Running | Phase::Ending | Phase::Finishing => pending().await,
    }
}

impl Session<'_> {
    /// Checks for a process that has ended. Its control socket may close late, because init inherits the
    /// stage's.
    pub(super) fn look_at_processes(&mut self) -> Next {
        self.next_look = Instant::now() + BETWEEN_LOOKS;
        if self.conditions().iter().any(Observed::has_ended) {
            self.expect_last_report();
        }
        Next::Continue
    }

    /// Waits for the last report of set-up, for [`LAST_REPORT`] at most.
    pub(super) fn expect_last_report(&mut self) {
        self.deadline = self.deadline.min(Instant::now() + LAST_REPORT);
    }

    /// Ends a set-up without progress.
    pub(super) fn set_up_stalled(&mut self) -> Next {
        let conditions = self.conditions();
        let errno = if conditions.iter().any(Observed::has_ended) {
            Errno::ESRCH
        } else {
            Errno::ETIMEDOUT
        };
        let mut causes: Vec<String> = conditions.iter().filter_map(Observed::message).collect();
        if errno == Errno::ETIMEDOUT {
            causes.push(format!("limit {} s", SET_UP.as_secs()));
        }
        let object = format!(
            "{}; last report: {}; missing: {}",
            causes.join(", "),
            self.set_up.last_report().unwrap_or("none"),
            self.set_up.missing(),
        );
        self.failed(Failure::SetUp(SetupError {
            step: Step::CompleteSetUp,
            object,
            errno: errno as i32,
        }))
    }

    /// Records a missed limit, and the processes of the sandbox that are stopped.
    pub(super) fn late(&mut self, what: GapKind, event: &str, limit: Duration) {
        let conditions = self.conditions();
        let is_stopped = |one: &&Observed| one.condition == Condition::Stopped;
        let stopped = conditions.iter().filter(is_stopped);
        let mut detail = format!("{event} within {} s", limit.as_secs());
        for cause in stopped.filter_map(Observed::message) {
            detail.push_str(&format!("; {cause}"));
        }
        self.gap(what, detail);
    }

    /// Returns the conditions of the stage and init that /proc shows.
    fn conditions(&self) -> Vec<Observed> {
        let processes = [
            ("the stage", Some(self.stage)),
            ("init", only_child_of(self.stage)),
        ];
        let observed = |(name, process): (&'static str, Option<Pid>)| {
            let process = process?;
            Some(Observed {
                name,
                process,
                condition: Condition::of(process)?,
            })
        };
        processes.into_iter().filter_map(observed).collect()
    }
}

/// Process of the sandbox and its condition.
struct Observed {
    name: &'static str,
    process: Pid,
    condition: Condition,
}

impl Observed {
    fn has_ended(&self) -> bool {
        matches!(self.condition, Condition::Ended(_))
    }

    /// Returns a message about a process without progress; `None` for a process that runs.
    fn message(&self) -> Option<String> {
        let what = match &self.condition {
            Condition::Runs => return None,
            Condition::Stopped => "is stopped",
            Condition::Ended(how) => how,
        };
        Some(format!("{} (process {}) {what}", self.name, self.process))
    }
}
