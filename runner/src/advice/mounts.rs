//! Parser of /proc/PID/mountinfo: the root, /proc, and the mounts over it.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// Mounts of a process.
pub(super) struct Mounts(Vec<Mount>);

struct Mount {
    id: String,
    target: String,
    /// Options of this mount alone.
    flags: String,
    kind: String,
    /// Options of the file system.
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
            let (id, target, flags) = (words.next()?, words.nth(3)?, words.next()?);
            let mut words = file_system.split(' ');
            Some(Mount {
                id: id.to_owned(),
                target: target.to_owned(),
                flags: flags.to_owned(),
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

    /// Proves that another mount covers the root directory, which has this mount id.
    pub(super) fn cover(&self, root_id: &str) -> Option<String> {
        let top = self.at("/").filter(|top| top.id != root_id)?;
        Some(format!("mount {} covers it, mount {root_id}", top.id))
    }

    /// Target of the mount that holds `path`, if devices do not work there.
    pub(super) fn without_devices(&self, path: &str) -> Option<String> {
        let ancestors = Path::new(path).ancestors();
        let mut mounts = ancestors.filter_map(|one| self.at(one.to_str()?));
        let mount = mounts.next()?;
        let is_nodev = mount.flags.split(',').any(|flag| flag == "nodev");
        is_nodev.then(|| mount.target.clone())
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes mounts of an id, a target and flags.
    fn mounts(of: &[(&str, &str, &str)]) -> Mounts {
        let mount = |(id, target, flags): &(&str, &str, &str)| Mount {
            id: (*id).to_owned(),
            target: (*target).to_owned(),
            flags: (*flags).to_owned(),
            kind: "tmpfs".to_owned(),
            options: "rw".to_owned(),
        };
        Mounts(of.iter().map(mount).collect())
    }

    #[test]
    fn cover_of_the_root_is_found_by_its_id() {
        let both = mounts(&[("7", "/", "rw"), ("9", "/", "rw")]);
        assert_eq!(both.cover("7").unwrap(), "mount 9 covers it, mount 7");
        assert_eq!(both.cover("9"), None);
    }

    #[test]
    fn innermost_mount_decides_about_devices() {
        let null = "/dev/null";
        let all = [
            ("1", "/", "rw,nodev"),
            ("2", "/dev", "rw"),
            ("3", null, "rw,nodev"),
        ];
        assert_eq!(mounts(&all[..1]).without_devices(null).unwrap(), "/");
        assert_eq!(mounts(&all[..2]).without_devices(null), None);
        assert_eq!(mounts(&all).without_devices(null).unwrap(), null);
    }
}
