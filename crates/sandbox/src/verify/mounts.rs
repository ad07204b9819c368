//! Comparison of the mounts inside with the plan: every mount is planned, and every planned one is present.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use model::case::Access;
use model::evidence::Layer;
use model::layout::{HOME, TMP, WORK};
use model::quote::shown_path;
use nix::errno::Errno;

use super::super::plan::{Bind, Plan};
use super::super::self_check::{SeenBind, SelfCheck};

/// The judged fields of a line of /proc/self/mountinfo.
#[derive(Debug)]
pub(super) struct Mount {
    id: u64,
    pub(super) target: PathBuf,
    options: Vec<String>,
    pub(super) kind: String,
    pub(super) super_options: String,
}

impl Mount {
    pub(super) fn has_all(&self, wanted: &[&str]) -> bool {
        let mut wanted = wanted.iter();
        wanted.all(|option| self.options.iter().any(|one| one == option))
    }

    /// Checks that the mount permits no more than `access`.
    fn permits_at_most(&self, access: Access) -> bool {
        match access {
            Access::Read => self.has_all(&["ro", "nosuid", "nodev", "noexec"]),
            Access::ReadExecute => self.has_all(&["ro", "nosuid", "nodev"]),
            // `rw` is not required: the host's file system may be read-only.
            Access::Write => self.has_all(&["nosuid", "nodev", "noexec"]),
        }
    }
}

/// Parses mountinfo (proc_pid_mountinfo(5)). Skips malformed lines.
pub(super) fn parse_mounts(text: &[u8]) -> Vec<Mount> {
    text.split(|byte| *byte == b'\n')
        .filter_map(parse)
        .collect()
}

fn parse(line: &[u8]) -> Option<Mount> {
    let words: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
    // A field `-` ends the optional fields, whose number varies.
    let hyphen = words.iter().skip(6).position(|word| *word == b"-")? + 6;
    let text = |index: usize| Some(String::from_utf8_lossy(words.get(index)?).into_owned());
    Some(Mount {
        id: text(0)?.parse().ok()?,
        target: PathBuf::from(OsString::from_vec(unescaped(words.get(4)?))),
        options: text(5)?.split(',').map(str::to_owned).collect(),
        kind: text(hyphen + 1)?,
        super_options: text(hyphen + 3)?,
    })
}

/// Decodes space, tab, newline and backslash from a backslash with three octal digits (mangle_path in fs/seq_file.c).
fn unescaped(mut word: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(word.len());
    while let Some((first, rest)) = word.split_first() {
        let digits = rest.get(..3).filter(|_| *first == b'\\');
        let byte = digits
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match byte {
            Some(byte) => {
                plain.push(byte);
                word = rest.get(3..).unwrap_or_default();
            }
            None => {
                plain.push(*first);
                word = rest;
            }
        }
    }
    plain
}

/// Judges the mounts other than root, home, tmp and work.
///
/// Each mount must be planned and permit no more than planned. Each planned object must be found at its target.
pub(super) fn layer(report: &SelfCheck, mounts: &[Mount], plan: &Plan) -> Layer {
    let seen = &report.surroundings;
    let found = all_parsed(&seen.mounts, mounts)
        .and_then(|()| check(mounts, report.shows_proc, &seen.binds, &plan.root.binds));
    match found {
        Err(what) => super::layer("mounts", false, what),
        Ok(count) => {
            let proc = if report.shows_proc {
                ", or a fresh /proc"
            } else {
                ""
            };
            let binds = plan.root.binds.iter();
            let except = match binds.filter(|bind| bind.access == Access::Write).count() {
                0 => String::new(),
                number => format!(", except {number} that the command line makes writable"),
            };
            let detail =
                format!("{count} in addition to root, home, tmp and work: read-only{proc}{except}");
            super::layer("mounts", true, detail)
        }
    }
}

/// Checks that each line of mountinfo was parsed.
fn all_parsed(text: &[u8], mounts: &[Mount]) -> Result<(), String> {
    let lines = text.split(|byte| *byte == b'\n');
    if lines.filter(|line| !line.is_empty()).count() != mounts.len() {
        return Err("cannot parse a line of mountinfo".to_owned());
    }
    Ok(())
}

/// Counts the planned mounts, or describes the first deviation.
fn check(
    mounts: &[Mount],
    shows_proc: bool,
    seen: &[SeenBind],
    binds: &[Bind],
) -> Result<usize, String> {
    if seen.len() != binds.len() {
        let (found, wanted) = (seen.len(), binds.len());
        return Err(format!("expected {wanted} checked paths, found {found}"));
    }
    let mut planned = Vec::new();
    for (bind, seen) in binds.iter().zip(seen) {
        planned.push((mount_target(bind, *seen, mounts)?, bind.access));
    }
    let mut count = 0;
    let own = ["/", HOME, TMP, WORK].map(Path::new);
    for mount in mounts
        .iter()
        .filter(|mount| !own.contains(&mount.target.as_path()))
    {
        let target = mount.target.as_path();
        let is_in = |tree: &str| target.starts_with(tree) && target != Path::new(tree);
        let expected = if !shows_proc && is_in("/proc") {
            // Without a fresh procfs, files of the container's /proc are attached.
            mount.has_all(&["ro", "nosuid", "nodev", "noexec"])
        } else if target == Path::new("/proc") {
            mount.kind == "proc" && mount.has_all(&["nosuid", "nodev", "noexec"])
        } else if target == Path::new("/dev/pts") {
            let is_bounded = mount.super_options.contains("max=");
            mount.kind == "devpts" && mount.has_all(&["nosuid", "noexec"]) && is_bounded
        } else if is_in(TMP) && mount.kind == "tmpfs" && leads_to_bind(target, binds) {
            // Holds mount points only.
            mount.has_all(&["ro", "nosuid", "nodev", "noexec"])
        } else if is_in("/dev") {
            mount.has_all(&["ro", "nosuid", "noexec"])
        } else {
            planned_access(&planned, target).is_some_and(|access| mount.permits_at_most(access))
        };
        if !expected {
            let (target, kind) = (shown_path(target), &mount.kind);
            return Err(format!("{target} ({kind}) is not as planned"));
        }
        count += 1;
    }
    Ok(count)
}

/// Checks for a directory that is shown itself in no part, and lies above a shown path.
fn leads_to_bind(directory: &Path, binds: &[Bind]) -> bool {
    let mut targets = binds.iter().map(|bind| Path::new(&bind.target));
    targets.clone().any(|target| target.starts_with(directory))
        && !targets.any(|target| directory.starts_with(target))
}

/// Returns the mount point of a bind after resolving links. The planned object must be found at the bind's target, on a
/// mount that permits no more than the rule.
fn mount_target<'m>(bind: &Bind, seen: SeenBind, mounts: &'m [Mount]) -> Result<&'m Path, String> {
    let name = || shown_path(Path::new(&bind.target));
    let (object, id) = match seen {
        SeenBind::There {
            device,
            inode,
            mount,
        } => ((device, inode), mount),
        SeenBind::Unreached { errno } => {
            let errno = Errno::from_raw(errno);
            return Err(format!("cannot open {}: {errno:?}", name()));
        }
    };
    if object != (bind.device, bind.inode) {
        return Err(format!("{} is another object than planned", name()));
    }
    let mount = mounts.iter().find(|mount| mount.id == id);
    match mount {
        Some(mount) if mount.permits_at_most(bind.access) => Ok(&mount.target),
        Some(mount) => {
            let (options, wanted) = (mount.options.join(","), bind.access.word());
            Err(format!("{} is mounted {options}, not as {wanted}", name()))
        }
        None => Err(format!("{} is on a mount that is not listed", name())),
    }
}

/// Returns the planned access for the mount at `target`: from its own rule, or from the nearest one above.
fn planned_access(planned: &[(&Path, Access)], target: &Path) -> Option<Access> {
    let above = planned.iter().filter(|(path, _)| target.starts_with(path));
    let nearest = above.max_by_key(|(path, _)| path.as_os_str().len());
    nearest.map(|(_, access)| *access)
}

#[cfg(test)]
mod tests;
