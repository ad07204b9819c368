//! The end of everything that the client started: who is still there, and that nobody is afterwards.
//!
//! Two ways. Pid 1 of a namespace signals all of it at once. Without a pid namespace init is a subreaper
//! (PR_SET_CHILD_SUBREAPER): whatever loses its parent becomes its child, so it ends its children, generation after
//! generation, until there is none. That ends because nobody forks any more by then: the supervisor refuses it, and
//! where the supervisor is gone the kernel does (seccomp_unotify(2)).

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::error::{At as _, SetupError, Step};
use super::message::MOST_SURVIVORS;
use crate::sys::process::{self, Reaped};

/// How long processes that the client left may take to end by themselves before they are survivors.
const GRACE: Duration = Duration::from_millis(200);

/// Processes by their ids, with their names.
pub(super) type Survivors = Vec<(i32, String)>;

/// Waits until every process of the client has ended, and no longer than [`GRACE`]; `None` where none is left, and
/// else the ones that are, of which some may just be ending. Each of them is a child or will be one, so "no child"
/// means "no process".
pub(super) fn wait_for_all() -> Result<Option<Survivors>, SetupError> {
    let deadline = Instant::now() + GRACE;
    while reap_one(libc::WNOHANG)? {
        if Instant::now() >= deadline {
            return survivors().map(Some);
        }
    }
    Ok(None)
}

/// Ends every process of the pid namespace but its init, which calls this.
pub(super) fn end_namespace() -> Result<(), SetupError> {
    // kill(2) -1: everything in this namespace but init itself.
    match kill(Pid::from_raw(-1), Signal::SIGKILL) {
        Ok(()) | Err(Errno::ESRCH) => {}
        Err(errno) => return Err(errno).at(Step::Signals),
    }
    while reap_one(0)? {}
    Ok(())
}

/// Ends every descendant of the calling process, a subreaper.
pub(super) fn end_descendants() -> Result<(), SetupError> {
    loop {
        kill_children(None)?;
        match process::reap(0) {
            Ok(Reaped::NoChild) => return Ok(()),
            Ok(Reaped::None | Reaped::Exited(..) | Reaped::Killed(..)) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno).at(Step::Signals),
        }
    }
}

/// Sends SIGKILL to every child of the calling process but one. A child that has not been reaped keeps its id, so the
/// signal cannot meet another process.
pub(super) fn kill_children(but: Option<Pid>) -> Result<(), SetupError> {
    let children = Processes::read()?.children();
    for child in children.into_iter().filter(|child| Some(*child) != but) {
        // One that has ended in between waits to be reaped.
        let _ = kill(child, Signal::SIGKILL);
    }
    Ok(())
}

/// Threads of every process below the calling one.
pub(super) fn threads_below_this_process() -> Result<u64, SetupError> {
    let processes = Processes::read()?;
    let below = processes.descendants(own_id());
    let threads = |pid: &i32| processes.0.get(pid).map_or(0, |one| one.threads);
    Ok(below.iter().map(|(pid, _)| threads(pid)).sum())
}

/// Whether the calling process has this child and no other. Where the list cannot be had it has others.
pub(super) fn has_only(child: Pid) -> bool {
    Processes::read().is_ok_and(|processes| processes.children() == [child])
}

/// Reaps one process, or waits a moment where none has ended; whether one may be left.
fn reap_one(flags: libc::c_int) -> Result<bool, SetupError> {
    match process::reap(flags) {
        Ok(Reaped::NoChild) => return Ok(false),
        Ok(Reaped::None) => std::thread::sleep(Duration::from_millis(2)),
        Ok(Reaped::Exited(..) | Reaped::Killed(..)) | Err(Errno::EINTR) => {}
        Err(errno) => return Err(errno).at(Step::Signals),
    }
    Ok(true)
}

/// Descendants of init, which calls this, from /proc. There are some when this is called, so a list that cannot be
/// had is an error and not an empty list.
fn survivors() -> Result<Survivors, SetupError> {
    let processes = Processes::read()?;
    let mut named = processes.descendants(own_id());
    named.truncate(MOST_SURVIVORS);
    Ok(named)
}

/// What /proc lists, by process id.
struct Processes(BTreeMap<i32, Process>);

struct Process {
    parent: i32,
    threads: u64,
    name: String,
}

impl Processes {
    /// Reads /proc.
    fn read() -> Result<Self, SetupError> {
        let listed = fs::read_dir("/proc").at_object(Step::Signals, "/proc")?;
        let pids = listed.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        // One that has ended in between has no status to be read.
        let read = |pid: i32| {
            let status = fs::read(format!("/proc/{pid}/stat")).ok()?;
            Some((pid, parse(&String::from_utf8_lossy(&status))?))
        };
        Ok(Self(pids.filter_map(read).collect()))
    }

    /// Of the calling process, in the order of their ids.
    fn children(&self) -> Vec<Pid> {
        let own = own_id();
        let ours = self.0.iter().filter(|(_, one)| one.parent == own);
        ours.map(|(pid, _)| Pid::from_raw(*pid)).collect()
    }

    /// Everything below `ancestor`, by process id.
    fn descendants(&self, ancestor: i32) -> Survivors {
        let is_below = |pid: &i32| {
            let parent = |pid: &i32| self.0.get(pid).map(|one| one.parent);
            // The list is no snapshot, so it might hold a circle; no line of descent is longer than the list.
            std::iter::successors(parent(pid), parent)
                .take(self.0.len())
                .any(|parent| parent == ancestor)
        };
        let below = self.0.iter().filter(|(pid, _)| is_below(pid));
        below.map(|(pid, one)| (*pid, one.name.clone())).collect()
    }
}

fn own_id() -> i32 {
    std::process::id() as i32
}

/// proc_pid_stat(5): `pid (name) state ppid … num_threads …`; the name may hold anything, parentheses too.
fn parse(status: &str) -> Option<Process> {
    let (front, rest) = status.rsplit_once(") ")?;
    let (_, name) = front.split_once(" (")?;
    let mut fields = rest.split(' ');
    let parent = fields.nth(1)?.parse().ok()?;
    // The twentieth of all, of which the fourth was the last one taken.
    let threads = fields.nth(15)?.parse().ok()?;
    Some(Process {
        parent,
        threads,
        name: name.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn processes(all: &[(i32, i32)]) -> Processes {
        let process = |(pid, parent): &(i32, i32)| {
            let name = format!("process {pid}");
            (
                *pid,
                Process {
                    parent: *parent,
                    threads: 1,
                    name,
                },
            )
        };
        Processes(all.iter().map(process).collect())
    }

    #[test]
    fn a_name_may_look_like_the_rest_of_the_line() {
        let process = parse("7 (a) S 1 (b) ) R 5 7 7 0 -1 4 0 0 0 0 0 0 0 0 20 0 3 0 99").unwrap();
        assert_eq!((process.parent, process.name.as_str()), (5, "a) S 1 (b) "));
        assert!(parse("7 (a").is_none() && parse("").is_none());
    }

    #[test]
    fn descendants_are_found_over_generations_and_nobody_else_is() {
        let all = processes(&[(1, 0), (10, 1), (11, 10), (12, 11), (20, 1), (21, 20)]);
        let pids =
            |ancestor| Vec::from_iter(all.descendants(ancestor).into_iter().map(|one| one.0));
        assert_eq!(pids(10), [11, 12]);
        assert_eq!(pids(20), [21]);
        assert!(pids(12).is_empty());
    }

    #[test]
    fn a_circle_in_the_list_ends() {
        assert!(processes(&[(3, 4), (4, 3)]).descendants(1).is_empty());
    }

    #[test]
    fn the_calling_process_is_listed_below_its_parent_with_its_threads() {
        let all = Processes::read().unwrap();
        let own = std::process::id() as i32;
        let parent = nix::unistd::getppid().as_raw();
        assert!(all.descendants(parent).iter().any(|(pid, _)| *pid == own));
        assert!(all.0[&own].threads >= 1);
    }
}
