//! Who made a call: process and program, as seen inside.

use std::fs;
use std::path::{Component, Path, PathBuf};

use nix::unistd::Pid;

use crate::text::printable;

/// The calling process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    /// In the runner's pid namespace.
    pub(super) process: Pid,
    /// In the client's.
    pub(super) pid: i32,
    /// In the client's; 0 where it is not known.
    pub(super) parent: i32,
    /// Path of its program inside.
    pub(super) program: String,
}

impl Target {
    /// Reads /proc of `thread`. A thread that is gone leaves zeroes; its call is gone as well.
    pub(super) fn read(thread: i32) -> Self {
        let status = fs::read_to_string(format!("/proc/{thread}/status")).unwrap_or_default();
        let process = first(&status, "Tgid:").unwrap_or(thread);
        let parent = first(&status, "PPid:").unwrap_or(0);
        let program = fs::read_link(format!("/proc/{process}/exe"));
        Self {
            process: Pid::from_raw(process),
            pid: last(&status, "NStgid:").unwrap_or(0),
            parent: pid_inside(parent),
            program: program
                .map(|path| printable(path.as_os_str().as_encoded_bytes()))
                .unwrap_or_default(),
        }
    }

    /// Whether `program`, given to execve(2) by this process, is there: execvp(3) tries a path after another.
    pub(super) fn sees(&self, program: &str) -> bool {
        let path = Path::new(program);
        let base = if path.is_absolute() { "root" } else { "cwd" };
        // Each component by name only: `..` and a link of the client's lead where it stands, not where we do.
        let inside: PathBuf = path
            .components()
            .filter(|one| matches!(one, Component::Normal(_)))
            .collect();
        fs::symlink_metadata(PathBuf::from(format!("/proc/{}/{base}", self.process)).join(inside))
            .is_ok()
    }
}

fn pid_inside(process: i32) -> i32 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    last(&status, "NStgid:").unwrap_or(0)
}

fn values<'a>(status: &'a str, key: &str) -> Option<impl Iterator<Item = &'a str>> {
    status
        .lines()
        .find_map(|line| line.strip_prefix(key))
        .map(str::split_whitespace)
}

fn first(status: &str, key: &str) -> Option<i32> {
    values(status, key)?.next()?.parse().ok()
}

/// NStgid lists a pid for each nested namespace, the innermost last.
fn last(status: &str, key: &str) -> Option<i32> {
    values(status, key)?.last()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calling_process_is_named_by_its_own_pid_and_program() {
        let own = Target::read(std::process::id() as i32);
        assert_eq!(own.process, Pid::this());
        assert_eq!(Path::new(&own.program), std::env::current_exe().unwrap());
        assert!(own.sees("/proc/self/status") && !own.sees("/no/such/file"));
    }

    #[test]
    fn the_innermost_pid_is_the_one_inside() {
        assert_eq!(last("Tgid:\t77\nNStgid:\t77\t5\n", "NStgid:"), Some(5));
        assert_eq!(last("Tgid:\t77\n", "NStgid:"), None);
    }
}
