//! The end of all processes that the client started, and the list of those that had to be killed.
//!
//! - Pid 1 of a pid namespace kills all its processes with one kill(2).
//! - Without a pid namespace init is a subreaper (PR_SET_CHILD_SUBREAPER), and orphans become its children. Init kills
//!   its children, generation after generation. The loop ends, because the supervisor refuses new processes by then.
//!   Without a supervisor the kernel refuses them (seccomp_unotify(2)).

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use model::evidence::GRACE;
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use sys::process::{self, Reaped};

use super::error::{At as _, SetupError, Step};
use super::message::MAX_SURVIVORS;
use super::proc::Proc;

/// Ids and names of processes.
pub(super) type Survivors = Vec<(i32, String)>;

/// Waits until every process of the client has ended, for at most [`GRACE`]. Returns the remaining processes, of which
/// some may be ending, or `None`.
///
/// Each process is a child of the caller or will become one, so "no child" means "no process".
pub(super) fn wait_for_all(proc: &Proc) -> Result<Option<Survivors>, SetupError> {
    let deadline = Instant::now() + GRACE;
    while reap_one(libc::WNOHANG)? {
        if Instant::now() >= deadline {
            return survivors(proc).map(Some);
        }
    }
    Ok(None)
}

/// Kills and reaps every process of the pid namespace but the caller, its init.
pub(super) fn end_namespace() -> Result<(), SetupError> {
    // Pid -1 of kill(2): every process of this namespace but the caller.
    match kill(Pid::from_raw(-1), Signal::SIGKILL) {
        Ok(()) | Err(Errno::ESRCH) => {}
        Err(errno) => return Err(errno).at(Step::Signals),
    }
    while reap_one(0)? {}
    Ok(())
}

/// Kills and reaps every descendant of the calling process, a subreaper.
pub(super) fn end_descendants(proc: &Proc) -> Result<(), SetupError> {
    // /proc lists every process of the host, so it is read only while a child is left.
    let mut flags = libc::WNOHANG;
    loop {
        match process::reap(flags) {
            Ok(Reaped::NoChild) => return Ok(()),
            Ok(Reaped::None) => {
                kill_each(&Processes::read(proc)?.children());
                flags = 0;
            }
            Ok(Reaped::Exited(..) | Reaped::Killed(..)) => flags = libc::WNOHANG,
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno).at(Step::Signals),
        }
    }
}

/// Sends SIGKILL to children of the calling process. An unreaped child keeps its id, so the signal cannot hit another
/// process.
pub(super) fn kill_each(children: &[Pid]) {
    for child in children {
        // kill fails for a child that has ended; a later wait reaps it.
        let _ = kill(*child, Signal::SIGKILL);
    }
}

/// Checks whether a process is a client's: it has more seccomp filters than the caller, and filters are permanent.
pub(super) fn is_filtered(process: Pid) -> bool {
    let filters = |of: &str| {
        let status = Proc::open()
            .and_then(|proc| proc.read(&format!("{of}/status")))
            .ok()?;
        let count = status
            .lines()
            .find_map(|line| line.strip_prefix("Seccomp_filters:"))?;
        count.trim().parse::<u32>().ok()
    };
    filters(&process.to_string())
        .zip(filters("self"))
        .is_some_and(|(its, own)| its > own)
}

/// Checks whether the command line of a process begins with `arguments`.
pub(super) fn is_called(process: Pid, arguments: &[&str]) -> bool {
    let line = Proc::open().and_then(|proc| proc.read_bytes(&format!("{process}/cmdline")));
    let name: String = arguments.iter().flat_map(|word| [*word, "\0"]).collect();
    line.is_ok_and(|line| line.starts_with(name.as_bytes()))
}

/// Counts the threads of all descendants of a process. Returns `None` if /proc does not show it.
pub(super) fn threads_below(process: Pid) -> Option<u64> {
    let mut processes = Processes::read_anew().ok()?;
    processes.own = process.as_raw();
    processes.all.get(&processes.own)?;
    let below = processes.descendants();
    Some(below.map(|(_, process)| process.threads).sum())
}

/// State of a process, from /proc.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Running or sleeping.
    Runs,
    /// Stopped by a signal such as SIGSTOP, or by a debugger.
    Stopped,
    /// Ended, with the status in words: `was ended by SIGKILL`.
    Ended(String),
}

impl Condition {
    /// Reads the condition of a process; `None` for a process that /proc does not show.
    pub fn of(process: Pid) -> Option<Self> {
        let status = Proc::open()
            .and_then(|proc| proc.read(&format!("{process}/stat")))
            .ok()?;
        Self::parse(&status)
    }

    /// Parses the state (third field) and the wait(2) status (last field) of proc_pid_stat(5).
    fn parse(status: &str) -> Option<Self> {
        let (_, fields) = status.rsplit_once(") ")?;
        Some(match fields.chars().next()? {
            'T' | 't' => Self::Stopped,
            'Z' | 'X' => {
                let ended = fields.split_whitespace().next_back();
                Self::Ended(how_ended(ended?.parse().ok()?))
            }
            _ => Self::Runs,
        })
    }
}

fn how_ended(status: libc::c_int) -> String {
    if libc::WIFSIGNALED(status) {
        let number = libc::WTERMSIG(status);
        return match Signal::try_from(number) {
            Ok(signal) => format!("was ended by {signal}"),
            Err(_) => format!("was ended by signal {number}"),
        };
    }
    match libc::WEXITSTATUS(status) {
        // The kernel shows 0 to a reader that may not trace the process (proc(5)).
        0 => "has ended".to_owned(),
        code => format!("has exited with code {code}"),
    }
}

/// Returns the only child of `parent`; `None` for no child or several.
pub fn only_child_of(parent: Pid) -> Option<Pid> {
    let mut processes = Processes::read_anew().ok()?;
    processes.own = parent.as_raw();
    match processes.children()[..] {
        [child] => Some(child),
        _ => None,
    }
}

/// Lists the children of the calling process, sorted by id.
pub(super) fn children() -> Result<Vec<Pid>, SetupError> {
    Processes::read_anew().map(|processes| processes.children())
}

/// Reaps one process, or sleeps 2 ms if none has ended. Returns `false` if there is no child.
fn reap_one(flags: libc::c_int) -> Result<bool, SetupError> {
    match process::reap(flags) {
        Ok(Reaped::NoChild) => return Ok(false),
        Ok(Reaped::None) => std::thread::sleep(Duration::from_millis(2)),
        Ok(Reaped::Exited(..) | Reaped::Killed(..)) | Err(Errno::EINTR) => {}
        Err(errno) => return Err(errno).at(Step::Signals),
    }
    Ok(true)
}

/// Lists the descendants of the caller, init, from /proc. A failed read is an error: an empty list would be wrong,
/// because the caller has children.
fn survivors(proc: &Proc) -> Result<Survivors, SetupError> {
    let processes = Processes::read(proc)?;
    let named = processes.descendants().take(MAX_SURVIVORS);
    Ok(named
        .map(|(pid, process)| (pid_inside(proc, pid), process.name.clone()))
        .collect())
}

/// Returns the process id in the client's pid namespace, which differs from `pid` only in a container's /proc.
fn pid_inside(proc: &Proc, pid: i32) -> i32 {
    let status = proc.read(&format!("{pid}/status")).unwrap_or_default();
    let ids = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    // NSpid has an id for each nested namespace, the innermost last (proc_pid_status(5)).
    let innermost = ids.and_then(|ids| ids.split_whitespace().last());
    innermost.and_then(|id| id.parse().ok()).unwrap_or(pid)
}

/// Processes in /proc by id, and the id of the reader.
struct Processes {
    own: i32,
    all: BTreeMap<i32, Process>,
}

struct Process {
    parent: i32,
    threads: u64,
    name: String,
}

impl Processes {
    /// Reads the /proc that is mounted now.
    fn read_anew() -> Result<Self, SetupError> {
        let proc = Proc::open().at_object(Step::Signals, "/proc")?;
        Self::read(&proc)
    }

    fn read(proc: &Proc) -> Result<Self, SetupError> {
        // A process that has ended since the listing has no status; skip it.
        let read = |pid: i32| {
            let status = proc.read(&format!("{pid}/stat")).ok()?;
            Some((pid, parse(&status)?))
        };
        let own = proc.link("self").at_object(Step::Signals, "/proc/self")?;
        let own = own.to_str().and_then(|own| own.parse().ok());
        let listed = proc.numbers(".").at_object(Step::Signals, "/proc")?;
        Ok(Self {
            own: own.ok_or(Errno::EBADMSG).at(Step::Signals)?,
            all: listed.into_iter().filter_map(read).collect(),
        })
    }

    /// Lists the children of the reader, sorted by id.
    fn children(&self) -> Vec<Pid> {
        let ours = self.all.iter().filter(|(_, one)| one.parent == self.own);
        ours.map(|(pid, _)| Pid::from_raw(*pid)).collect()
    }

    /// Lists the descendants of the reader, sorted by id.
    fn descendants(&self) -> impl Iterator<Item = (i32, &Process)> {
        let parent = |pid: &i32| self.all.get(pid).map(|one| one.parent);
        let is_below = move |pid: &i32| {
            // /proc is read process by process, so the list may hold a circle. No ancestry is longer than the list.
            std::iter::successors(parent(pid), parent)
                .take(self.all.len())
                .any(|parent| parent == self.own)
        };
        let all = self.all.iter().map(|(pid, process)| (*pid, process));
        all.filter(move |(pid, _)| is_below(pid))
    }
}

/// Parses proc_pid_stat(5): `pid (name) state ppid … num_threads …`. The name may contain any character but NUL.
fn parse(status: &str) -> Option<Process> {
    let (front, rest) = status.rsplit_once(") ")?;
    let (_, name) = front.split_once(" (")?;
    let mut fields = rest.split(' ');
    let parent = fields.nth(1)?.parse().ok()?;
    // num_threads is the twentieth field of the line; the iterator is after the fourth.
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

    fn processes(own: i32, all: &[(i32, i32)]) -> Processes {
        let process = |(pid, parent): &(i32, i32)| {
            let one = Process {
                parent: *parent,
                threads: 1,
                name: format!("process {pid}"),
            };
            (*pid, one)
        };
        let all = all.iter().map(process).collect();
        Processes { own, all }
    }

    fn below(processes: &Processes) -> Vec<i32> {
        processes.descendants().map(|(pid, _)| pid).collect()
    }

    #[test]
    fn name_may_contain_parentheses_and_fields() {
        let line = "7 (a) S 1 (b) ) R 5 7 7 0 -1 4 0 0 0 0 0 0 0 0 20 0 3 0 99";
        let process = parse(line).unwrap();
        assert_eq!(
            (process.parent, process.threads, process.name.as_str()),
            (5, 3, "a) S 1 (b) ")
        );
        assert!(parse("7 (a").is_none() && parse("").is_none());
    }

    #[test]
    fn condition_is_parsed_from_proc_pid_stat() {
        let parse = |state, code| {
            let line = format!("7 (a) Z) {state} 5 7 7 0 -1 4 0 0 0 0 0 0 0 0 20 0 3 0 99 {code}");
            Condition::parse(&line).unwrap()
        };
        let ended = |how: &str| Condition::Ended(how.to_owned());
        assert_eq!(parse('S', 0), Condition::Runs);
        assert_eq!(parse('T', 5), Condition::Stopped);
        assert_eq!(parse('Z', 9), ended("was ended by SIGKILL"));
        assert_eq!(parse('Z', 37), ended("was ended by signal 37"));
        assert_eq!(parse('Z', 3 << 8), ended("has exited with code 3"));
        assert_eq!(parse('Z', 0), ended("has ended"));
        assert_eq!(Condition::of(Pid::this()), Some(Condition::Runs));
    }

    #[test]
    fn only_descendants_are_found() {
        let all = [(1, 0), (10, 1), (11, 10), (12, 11), (20, 1), (21, 20)];
        assert_eq!(below(&processes(10, &all)), [11, 12]);
        assert_eq!(below(&processes(20, &all)), [21]);
        assert!(below(&processes(12, &all)).is_empty());
        assert_eq!(processes(1, &all).children(), [10, 20].map(Pid::from_raw));
    }

    #[test]
    fn a_circle_in_the_list_ends() {
        assert!(below(&processes(1, &[(3, 4), (4, 3)])).is_empty());
    }

    #[test]
    fn the_calling_process_is_listed_with_its_threads() {
        let processes = Processes::read_anew().unwrap();
        assert_eq!(processes.own, std::process::id() as i32);
        assert!(processes.all[&processes.own].threads >= 1);
        let parent = nix::unistd::getppid().as_raw();
        assert_eq!(processes.all[&processes.own].parent, parent);
    }
}
