//! Description of the limit that ended a client, in the notation of its case file.

use std::time::Duration;

use model::case::Limits;
use model::evidence::Exit;
use nix::libc;
use policy::quantity::{show_duration, show_size};
use sandbox::plan::ResourceLimits;

use super::output::Over;

/// Use of what a limit bounds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Used {
    /// Exceeded limit of standard output.
    pub(crate) over: Option<Over>,
    /// Number of processes killed because the cgroup reached its memory limit.
    pub(crate) oom_kills: u64,
    /// Processor time of the client's own process.
    pub(crate) cpu: Duration,
}

/// Returns the limit that `exit` reached, with its value; `None` for a client that ended by itself. `set` has the
/// resource limits that were set on this machine, `timeout` is the time limit of the run.
pub(crate) fn reached(
    exit: Exit,
    used: Used,
    timeout: Duration,
    limits: &Limits,
    set: &ResourceLimits,
) -> Option<String> {
    match exit {
        Exit::Timeout(_) if timeout == limits.timeout => {
            Some(quoted("timeout", &show_duration(timeout)))
        }
        Exit::Timeout(_) => Some(format!("--timeout {}", show_duration(timeout))),
        Exit::OutputLimit => Some(used.over.map_or_else(
            || quoted("output_size", &show_size(limits.output_bytes)),
            |over| output(over, limits.output_bytes, limits.output_lines),
        )),
        Exit::RequestLimit => Some(format!("requests = {}", limits.requests)),
        Exit::Signal(libc::SIGXCPU) => Some(cpu_time(limits, set)),
        Exit::Signal(libc::SIGXFSZ) => {
            let of_case = set.file_bytes >= limits.file_bytes;
            let bytes = show_size(set.file_bytes);
            Some(resource("file_size", "RLIMIT_FSIZE", &bytes, of_case))
        }
        // A process that ignores SIGXCPU ends by SIGKILL at the hard limit (setrlimit(2)).
        Exit::Signal(libc::SIGKILL) if used.cpu.as_secs() >= set.cpu_seconds => {
            Some(cpu_time(limits, set))
        }
        Exit::Signal(libc::SIGKILL) if used.oom_kills > 0 => {
            let memory = quoted("memory", &show_size(limits.memory_bytes));
            Some(format!("{memory}, of all processes together"))
        }
        Exit::Code(_) | Exit::Signal(_) | Exit::Interrupted | Exit::NotStarted => None,
    }
}

fn cpu_time(limits: &Limits, set: &ResourceLimits) -> String {
    let cpu = show_duration(Duration::from_secs(set.cpu_seconds));
    let of_case = set.cpu_seconds >= limits.cpu.as_secs();
    resource("cpu_time", "RLIMIT_CPU", &cpu, of_case)
}

/// Returns the limit of standard output that was reached.
pub(crate) fn output(over: Over, bytes: u64, lines: u64) -> String {
    match over {
        Over::Bytes => quoted("output_size", &show_size(bytes)),
        Over::Lines => format!("output_lines = {lines}"),
    }
}

/// Returns a resource limit. The hard limit of the user who started the runner may be lower than the case's
/// limit.
fn resource(key: &str, name: &str, value: &str, of_case: bool) -> String {
    if of_case {
        quoted(key, value)
    } else {
        format!("the hard limit {name} of {value} on this machine, below {key}")
    }
}

fn quoted(key: &str, value: &str) -> String {
    format!("{key} = \"{value}\"")
}

#[cfg(test)]
mod tests {
    use model::evidence::fixture::limits;

    use super::*;

    fn set() -> ResourceLimits {
        let limits = limits();
        ResourceLimits {
            core_bytes: 1,
            data_bytes: limits.memory_bytes,
            processes: limits.processes,
            cpu_seconds: limits.cpu.as_secs(),
            cpu_hard_seconds: limits.cpu.as_secs() + 1,
            open_files: limits.open_files,
            file_bytes: limits.file_bytes,
            queue_bytes: 0,
        }
    }

    fn named(exit: Exit, over: Option<Over>) -> Option<String> {
        let used = Used {
            over,
            ..Used::default()
        };
        reached(exit, used, limits().timeout, &limits(), &set())
    }

    #[test]
    fn each_end_names_its_limit_and_value() {
        let minute = Duration::from_secs(60);
        for (exit, over, expected) in [
            (Exit::Timeout(minute), None, "timeout = \"1min\""),
            (Exit::OutputLimit, None, "output_size = \"16 MiB\""),
            (
                Exit::OutputLimit,
                Some(Over::Bytes),
                "output_size = \"16 MiB\"",
            ),
            (Exit::OutputLimit, Some(Over::Lines), "output_lines = 65536"),
            (Exit::RequestLimit, None, "requests = 100"),
            (Exit::Signal(libc::SIGXCPU), None, "cpu_time = \"1min\""),
            (Exit::Signal(libc::SIGXFSZ), None, "file_size = \"256 MiB\""),
        ] {
            assert_eq!(named(exit, over).as_deref(), Some(expected));
        }
        for exit in [
            Exit::Code(1),
            Exit::Signal(libc::SIGKILL),
            Exit::Interrupted,
        ] {
            assert_eq!(named(exit, Some(Over::Bytes)), None);
        }
    }

    #[test]
    fn a_limit_of_the_command_line_or_the_machine_is_named_as_such() {
        let second = Duration::from_secs(1);
        let shorter = reached(
            Exit::Timeout(second),
            Used::default(),
            second,
            &limits(),
            &set(),
        );
        assert_eq!(shorter.as_deref(), Some("--timeout 1s"));
        let lower = ResourceLimits {
            cpu_seconds: 5,
            ..set()
        };
        let exit = Exit::Signal(libc::SIGXCPU);
        let named = reached(exit, Used::default(), second, &limits(), &lower);
        assert_eq!(
            named.as_deref(),
            Some("the hard limit RLIMIT_CPU of 5s on this machine, below cpu_time")
        );
    }

    #[test]
    fn kill_at_the_hard_processor_limit_is_named() {
        let named = |exit, seconds| {
            let used = Used {
                cpu: Duration::from_secs(seconds),
                ..Used::default()
            };
            reached(exit, used, limits().timeout, &limits(), &set())
        };
        let kill = Exit::Signal(libc::SIGKILL);
        assert_eq!(named(kill, 61).as_deref(), Some("cpu_time = \"1min\""));
        assert_eq!(named(kill, 59), None);
        assert_eq!(named(Exit::Code(1), 61), None);
    }

    #[test]
    fn a_kill_for_want_of_memory_is_named() {
        let second = Duration::from_secs(1);
        let named = |exit, oom_kills| {
            let used = Used {
                oom_kills,
                ..Used::default()
            };
            reached(exit, used, second, &limits(), &set())
        };
        assert_eq!(
            named(Exit::Signal(libc::SIGKILL), 1).as_deref(),
            Some("memory = \"4 GiB\", of all processes together")
        );
        assert_eq!(named(Exit::Signal(libc::SIGKILL), 0), None);
        assert_eq!(named(Exit::Code(1), 1), None, "a child was killed");
    }
}
