//! Limits of the cgroups around the runner, of version 1 or 2, which someone else set.

use std::fmt;
use std::path::{Path, PathBuf};

use sys::read::kernel_text;

use super::MOUNTS;

/// Resource that a controller limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// Processes and threads.
    Processes,
    /// Memory, in bytes.
    Memory,
}

/// The limit that leaves the least, of the runner's cgroup and its ancestors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OuterLimit {
    /// File with the limit.
    pub file: PathBuf,
    /// Value of the limit.
    pub limit: u64,
    /// Use at the time of reading.
    pub used: u64,
    /// Processes that the kernel has killed because of the limit on memory.
    pub kills: u64,
}

impl fmt::Display for OuterLimit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            file, limit, used, ..
        } = self;
        write!(formatter, "{} is {limit}, {used} in use", file.display())
    }
}

/// Files of a controller: limit, use, and the count of killed processes.
struct Files([&'static str; 3]);

/// Values of memory.limit_in_bytes that stand for no limit: PAGE_COUNTER_MAX, in bytes.
const UNLIMITED: u64 = 1 << 60;

impl Resource {
    fn controller(self) -> &'static str {
        match self {
            Self::Processes => "pids",
            Self::Memory => "memory",
        }
    }

    fn files(self) -> [Files; 2] {
        match self {
            Self::Processes => [
                Files(["pids.max", "pids.current", ""]),
                Files(["pids.max", "pids.current", ""]),
            ],
            Self::Memory => [
                Files(["memory.max", "memory.current", "memory.events"]),
                Files([
                    "memory.limit_in_bytes",
                    "memory.usage_in_bytes",
                    "memory.oom_control",
                ]),
            ],
        }
    }

    /// Reads the limits on this resource; `None` without any.
    pub fn outer_limit(self) -> Option<OuterLimit> {
        let own = kernel_text("/proc/self/cgroup").ok()?;
        let [second, first] = self.files();
        let found = own.lines().flat_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
                return Vec::new();
            };
            if controllers.is_empty() {
                let mounts = MOUNTS.iter();
                let limits = mounts.flat_map(|mount| second.limits(Path::new(mount), path));
                return limits.collect();
            }
            if !controllers.split(',').any(|one| one == self.controller()) {
                return Vec::new();
            }
            // Distributions link each controller to the directory that it shares with others.
            first.limits(&Path::new(MOUNTS[0]).join(self.controller()), path)
        });
        found.min_by_key(|one| one.limit.saturating_sub(one.used))
    }
}

impl Files {
    /// Reads the limits of the group at `path` and its ancestors. A container may see its own group as the root.
    fn limits(&self, mount: &Path, path: &str) -> Vec<OuterLimit> {
        let own = mount.join(path.trim_start_matches('/'));
        let groups = own.ancestors().take_while(|one| one.starts_with(mount));
        groups.filter_map(|group| self.limit(group)).collect()
    }

    fn limit(&self, group: &Path) -> Option<OuterLimit> {
        let Self([limit, used, kills]) = self;
        let number =
            |file: &str| -> Option<u64> { kernel_text(group.join(file)).ok()?.trim().parse().ok() };
        // A group without a limit has the word max.
        let value = number(limit).filter(|value| *value < UNLIMITED)?;
        let events = kernel_text(group.join(kills)).unwrap_or_default();
        let kills = events
            .lines()
            .find_map(|line| line.strip_prefix("oom_kill "));
        Some(OuterLimit {
            file: group.join(limit),
            limit: value,
            used: number(used).unwrap_or(0),
            kills: kills.and_then(|kills| kills.parse().ok()).unwrap_or(0),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Makes a group with these files, and an outer one without any.
    fn with_files(files: &[(&str, &str)]) -> (tempfile::TempDir, PathBuf) {
        let mount = tempfile::tempdir().unwrap();
        let group = mount.path().join("outer/inner");
        fs::create_dir_all(&group).unwrap();
        for (name, text) in files {
            fs::write(mount.path().join("outer").join(name), text).unwrap();
        }
        (mount, group)
    }

    #[test]
    fn limit_of_an_ancestor_is_read() {
        let [second, first] = Resource::Memory.files();
        let (mount, _group) = with_files(&[
            ("memory.max", "3145728\n"),
            ("memory.current", "4096\n"),
            ("memory.events", "oom 3\noom_kill 2\n"),
        ]);
        let expected = OuterLimit {
            file: mount.path().join("outer/memory.max"),
            limit: 3 << 20,
            used: 4096,
            kills: 2,
        };
        assert_eq!(second.limits(mount.path(), "/outer/inner"), [expected]);
        assert_eq!(first.limits(mount.path(), "/outer/inner"), []);
    }

    #[test]
    fn group_without_a_limit_has_none() {
        let [second, first] = Resource::Memory.files();
        let all = [
            ("memory.max", "max\n"),
            ("memory.limit_in_bytes", "9223372036854771712\n"),
        ];
        let (mount, _group) = with_files(&all);
        for files in [second, first] {
            assert_eq!(files.limits(mount.path(), "/outer/inner"), []);
        }
    }

    /// Without a cgroup namespace, /proc/self/cgroup names a path above the container's mount.
    #[test]
    fn group_that_is_seen_as_the_root_is_read() {
        let [second, _] = Resource::Processes.files();
        let (mount, _group) = with_files(&[]);
        fs::write(mount.path().join("pids.max"), "7\n").unwrap();
        let found = second.limits(mount.path(), "/docker/0123");
        let values: Vec<_> = found.iter().map(|one| (one.limit, one.used)).collect();
        assert_eq!(values, [(7, 0)]);
    }
}
