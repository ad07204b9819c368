//! An optional cgroup (version 2) of all processes of the sandbox; a run without one continues.
//!
//! Resource limits (setrlimit(2)) bound each process. memory.max and pids.max bound all processes together, with shared
//! memory, memory files and kernel memory. The group is made below the runner's group or one of its ancestors: the
//! first whose children have these limits (cgroups(7), "Delegation").

pub mod surrounding;

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io, thread};

use model::case::Root;
use sys::random;
use sys::read::kernel_text;

use super::plan::Plan;

const MOUNTS: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
const PREFIX: &str = "runner-";
/// Memory for the stub, with the bodies that it stores, and for init, in bytes.
const OWN_MEMORY: u64 = 256 << 20;
/// Processes and threads for stage and init.
const OWN_PROCESSES: u64 = 16;
/// Maximum number of removals of a group: rmdir fails until the kernel has released the last reaped process.
const MAX_REMOVALS: u32 = 50;
const REMOVAL_PAUSE: Duration = Duration::from_millis(2);

/// Limits of a group.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum memory (memory.max), in bytes.
    pub memory_bytes: u64,
    /// Maximum number of processes and threads (pids.max).
    pub processes: u64,
}

impl Limits {
    /// Adds the needs of the sandbox itself to the limits of `plan`. Each writable tree of a new root is a tmpfs, which
    /// counts as memory.
    pub(super) fn of(plan: &Plan) -> Self {
        let trees = plan.root.bytes.saturating_mul(Root::ALL.len() as u64);
        let memory = plan.limits.data_bytes.saturating_add(trees);
        Self {
            memory_bytes: memory.saturating_add(OWN_MEMORY),
            processes: plan.process_limit.saturating_add(OWN_PROCESSES),
        }
    }
}

/// A cgroup with the limits that the kernel accepted. Dropping this value kills its processes and removes the group.
#[derive(Debug)]
pub struct Cgroup {
    directory: PathBuf,
    limits: String,
}

impl Cgroup {
    /// Makes a group with `limits`.
    ///
    /// # Errors
    /// The reason for the absence of a group, for a report.
    pub fn make(limits: Limits) -> Result<Self, String> {
        let own = kernel_text("/proc/self/cgroup").unwrap_or_default();
        let path = own.lines().find_map(|line| line.strip_prefix("0::/"));
        let path = path.ok_or("there is no cgroup of version 2")?;
        if path.split('/').any(|part| part == "..") {
            return Err(
                "the cgroup of this process is outside of the one that is mounted".to_owned(),
            );
        }
        let is_group = |mount: &&&str| Path::new(mount).join("cgroup.procs").exists();
        let mount = MOUNTS.iter().find(is_group);
        let mount = mount.ok_or("no cgroup of version 2 is mounted")?;
        Self::make_above(&Path::new(mount).join(path), Path::new(mount), limits)
    }

    /// Tries `own` and its ancestors, up to the mount.
    fn make_above(own: &Path, mount: &Path, limits: Limits) -> Result<Self, String> {
        let mut reason = String::new();
        for parent in own.ancestors().take_while(|one| one.starts_with(mount)) {
            remove_leftovers(parent);
            match Self::make_in(parent).and_then(|group| group.set_limits(limits)) {
                Ok(group) => return Ok(group),
                Err(why) => reason = why,
            }
        }
        Err(reason)
    }

    /// Makes a group without limits, unless its parent hands on neither controller: making and removing a group costs
    /// more than the look.
    fn make_in(parent: &Path) -> Result<Self, String> {
        let handed_on = kernel_text(parent.join("cgroup.subtree_control"));
        let is_useless = |handed_on: String| {
            let mut words = handed_on.split_whitespace();
            !words.any(|word| word == "memory" || word == "pids")
        };
        if handed_on.is_ok_and(is_useless) {
            return Err(without_controllers(parent));
        }
        let name = format!("{PREFIX}{}-{}", std::process::id(), random::token());
        let directory = parent.join(name);
        fs::create_dir(&directory).map_err(|error| format!("{}: {error}", parent.display()))?;
        Ok(Self {
            directory,
            limits: String::new(),
        })
    }

    fn set_limits(mut self, limits: Limits) -> Result<Self, String> {
        let memory = limits.memory_bytes.to_string();
        let processes = limits.processes.to_string();
        let mut taken = Vec::new();
        for (file, value) in [("memory.max", memory), ("pids.max", processes)] {
            if self.set(file, &value).is_ok() {
                taken.push(format!("{file} {}", self.read(file).trim()));
            }
        }
        if taken.is_empty() {
            let parent = self.directory.parent().unwrap_or(Path::new("/"));
            return Err(without_controllers(parent));
        }
        // A kernel without swap accounting lacks the file.
        if self.set("memory.swap.max", "0").is_ok() {
            taken.push("memory.swap.max 0".to_owned());
        }
        self.limits = taken.join(", ");
        Ok(self)
    }

    /// Moves a process into the group. Its later children start in the group too.
    ///
    /// # Errors
    /// Those of write(2); `EACCES` if another user delegated the group of that process.
    pub(super) fn admit(&self, process: u32) -> io::Result<()> {
        self.set("cgroup.procs", &process.to_string())
    }

    /// Describes the limits in the kernel's spelling, and the directory of the group.
    pub fn describe(&self) -> String {
        format!("{} in {}", self.limits, self.directory.display())
    }

    /// Counts the processes that the kernel killed because of memory.max.
    pub fn oom_kills(&self) -> u64 {
        let events = self.read("memory.events");
        let kills = events
            .lines()
            .find_map(|line| line.strip_prefix("oom_kill "));
        kills.and_then(|kills| kills.parse().ok()).unwrap_or(0)
    }

    /// Writes to an existing file. Making one would hide that the directory is no cgroup.
    fn set(&self, file: &str, value: &str) -> io::Result<()> {
        let path = self.directory.join(file);
        let mut file = fs::OpenOptions::new().write(true).open(path)?;
        io::Write::write_all(&mut file, value.as_bytes())
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.directory.join(file)).unwrap_or_default()
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // cgroup.kill exists since Linux 5.14. On older kernels the end of the stage ends all other processes.
        let _ = self.set("cgroup.kill", "1");
        for _ in 0..MAX_REMOVALS {
            match fs::remove_dir(&self.directory) {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {}
                _ => return,
            }
            thread::sleep(REMOVAL_PAUSE);
        }
    }
}

/// Removes groups of killed runners. The kernel refuses to remove a group with processes.
fn remove_leftovers(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let owner = name
            .to_str()
            .and_then(|name| name.strip_prefix(PREFIX)?.split_once('-'));
        let is_gone = |(owner, _): (&str, &str)| {
            owner.parse::<u32>().is_ok() && !Path::new("/proc").join(owner).exists()
        };
        if owner.is_some_and(is_gone) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

fn without_controllers(parent: &Path) -> String {
    format!(
        "{}: neither memory nor pids is in cgroup.subtree_control",
        parent.display()
    )
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    const LIMITS: Limits = Limits {
        memory_bytes: 1 << 30,
        processes: 50,
    };

    /// Makes a directory with the files of a group.
    fn with_files(names: &[&str]) -> (tempfile::TempDir, Cgroup) {
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("group");
        fs::create_dir(&directory).unwrap();
        for name in names {
            fs::write(directory.join(name), "").unwrap();
        }
        let group = Cgroup {
            directory,
            limits: String::new(),
        };
        (parent, group)
    }

    #[test]
    fn limits_are_set_if_their_files_exist() {
        let all = ["memory.max", "pids.max", "memory.swap.max"];
        let (_parent, group) = with_files(&all);
        let group = group.set_limits(LIMITS).unwrap();
        let described = group.describe();
        let expected = "memory.max 1073741824, pids.max 50, memory.swap.max 0 in ";
        assert!(described.starts_with(expected), "{described}");
        let (_parent, group) = with_files(&["pids.max"]);
        let described = group.set_limits(LIMITS).unwrap().describe();
        assert!(described.starts_with("pids.max 50 in "), "{described}");
    }

    #[test]
    fn group_without_controllers_is_removed() {
        let (parent, group) = with_files(&[]);
        let reason = group.set_limits(LIMITS).unwrap_err();
        assert!(reason.ends_with("is in cgroup.subtree_control"), "{reason}");
        assert!(!parent.path().join("group").exists());
    }

    #[test]
    fn oom_kills_are_counted() {
        let (_parent, group) = with_files(&[]);
        assert_eq!(group.oom_kills(), 0);
        let events = "low 0\nhigh 0\nmax 7\noom 2\noom_kill 3\noom_group_kill 0\n";
        fs::write(group.directory.join("memory.events"), events).unwrap();
        assert_eq!(group.oom_kills(), 3);
    }

    #[test]
    fn only_groups_of_dead_runners_are_removed() {
        let parent = tempfile::tempdir().unwrap();
        let own = format!("runner-{}-a", std::process::id());
        let names = ["runner-4194305-a", &own, "runner-x-a", "other"];
        for name in names {
            fs::create_dir(parent.path().join(name)).unwrap();
        }
        remove_leftovers(parent.path());
        let left = names.map(|name| parent.path().join(name).exists());
        assert_eq!(left, [false, true, true, true]);
    }

    /// Tests a real cgroup if the user of the tests may make one; no controller is needed.
    #[test]
    fn processes_of_a_group_end_with_it() {
        let mounts = MOUNTS.map(Path::new);
        let mount = mounts
            .iter()
            .find(|mount| mount.join("cgroup.procs").exists());
        let Some(group) = mount.and_then(|mount| Cgroup::make_in(mount).ok()) else {
            println!("no cgroup of version 2 can be made here");
            return;
        };
        let directory = group.directory.clone();
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        group.admit(child.id()).unwrap();
        assert_eq!(group.read("cgroup.procs"), format!("{}\n", child.id()));
        let reaper = thread::spawn(move || child.wait().unwrap());
        drop(group);
        assert!(!directory.exists());
        let status = reaper.join().unwrap();
        let signal = std::os::unix::process::ExitStatusExt::signal(&status);
        assert_eq!(signal, Some(nix::libc::SIGKILL));
    }
}
