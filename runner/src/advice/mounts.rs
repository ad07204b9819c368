//! Parser of /proc/PID/mountinfo: the root, /proc, and the mounts over it.

use std::fs::File;
use std::io::Read as _;

/// Mounts of a process.
pub(super) struct Mounts(Vec<Mount>);

struct Mount {
    id: String,
    target: String,
    kind: String,
    options: String,
}

impl Mounts {
    /// Reads the mounts of a process; an empty list if they cannot be read.
    pub(super) fn of(process: &str) -> Self {
        File::open(format!("/proc/{process}/mountinfo")).map_or(Self(Vec::new()), Self::read)
    }

    /// Reads an open file.
    pub(super) fn read(mut file: File) -> Self {
        let mut text = String::new();
        // A read error leaves the mounts before it.
        let _ = file.read_to_string(&mut text);
        // proc_pid_mountinfo(5): optional fields of any number end with a hyphen.
        let parse = |line: &str| {
            let (mount, file_system) = line.split_once(" - ")?;
            let mut words = mount.split(' ');
            let (id, target) = (words.next()?, words.nth(3)?);
            let mut words = file_system.split(' ');
            Some(Mount {
                id: id.to_owned(),
                target: target.to_owned(),
                kind: words.next()?.to_owned(),
                options: words.nth(1)?.to_owned(),
            })
        };
        Self(text.lines().filter_map(parse).collect())
    }

    /// The topmost mount at a path.
    fn at(&self, path: &str) -> Option<&Mount> {
        self.0.iter().rfind(|mount| mount.target == path)
    }

    /// Proves a chroot: the root directory is no mount, or is a mount that process 1 sees below its own root.
    pub(super) fn chroot(&self) -> Option<String> {
        if self.0.is_empty() {
            return None;
        }
        let Some(root) = self.at("/") else {
            return Some("/proc/self/mountinfo has no mount at /".to_owned());
        };
        let seen = Self::of("1");
        let seen = seen.0.iter().find(|mount| mount.id == root.id)?;
        (seen.target != "/").then(|| format!("process 1 sees this root at {}", seen.target))
    }

    /// Id of the mount at the root directory.
    pub(super) fn root_id(&self) -> Option<String> {
        Some(self.at("/")?.id.clone())
    }

    /// File system type of the root.
    pub(super) fn root_kind(&self) -> String {
        self.at("/")
            .map(|root| root.kind.clone())
            .unwrap_or_default()
    }

    /// Targets below a directory, except those that every system has.
    pub(super) fn below(&self, directory: &str) -> Vec<String> {
        let targets = self.0.iter().map(|mount| &mount.target);
        let is_below = |target: &&String| {
            let rest = target.strip_prefix(directory);
            rest.is_some_and(|rest| rest.starts_with('/') && rest != "/sys/fs/binfmt_misc")
        };
        targets.filter(is_below).cloned().collect()
    }

    /// Option of /proc that hides processes.
    pub(super) fn hidepid(&self) -> Option<String> {
        let options = &self.at("/proc")?.options;
        let option = options
            .split(',')
            .find(|option| option.starts_with("hidepid="))?;
        (option != "hidepid=0" && option != "hidepid=off").then(|| option.to_owned())
    }
}
