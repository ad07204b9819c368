//! The mounts: every one that is there was planned, and every one that was planned is there.

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

/// One line of /proc/self/mountinfo, as far as it is judged.
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

    /// Whether it lets no more than a rule of this access does.
    fn keeps(&self, access: Access) -> bool {
        match access {
            Access::Read => self.has_all(&["ro", "nosuid", "nodev", "noexec"]),
            Access::ReadExecute => self.has_all(&["ro", "nosuid", "nodev"]),
            // Whether it is `rw` is for the host to say: it may be read-only there.
            Access::Write => self.has_all(&["nosuid", "nodev", "noexec"]),
        }
    }
}

/// proc_pid_mountinfo(5). A line that cannot be read is left out.
pub(super) fn parse_mounts(text: &[u8]) -> Vec<Mount> {
    text.split(|byte| *byte == b'\n')
        .filter_map(parse)
        .collect()
}

fn parse(line: &[u8]) -> Option<Mount> {
    let words: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
    // Fields without a number stand before a lone hyphen.
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

/// Space, tab, newline and backslash stand as a backslash and three octal digits (mangle_path in fs/seq_file.c).
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

/// Whatever is mounted beside the root, home and tmp was planned and is no more open than planned, and whatever was
/// planned is found by its name.
pub(super) fn layer(report: &SelfCheck, plan: &Plan) -> Layer {
    let found = judged_text(
        &report.mounts,
        report.shows_proc,
        &report.binds,
        &plan.root.binds,
    );
    match found {
        Err(what) => super::layer("mounts", false, what),
        Ok(count) => {
            let proc = if report.shows_proc {
                ", or a fresh /proc"
            } else {
                ""
            };
            let binds = plan.root.binds.iter();
            let but = match binds.filter(|bind| bind.access == Access::Write).count() {
                0 => String::new(),
                number => format!(", but {number} that the command line makes writable"),
            };
            let detail = format!("{count} beside the root, home and tmp: read-only{proc}{but}");
            super::layer("mounts", true, detail)
        }
    }
}

/// How many there are, or the first that is not as it should be.
fn judged_text(
    text: &[u8],
    shows_proc: bool,
    seen: &[SeenBind],
    binds: &[Bind],
) -> Result<usize, String> {
    let mounts = parse_mounts(text);
    let lines = text.split(|byte| *byte == b'\n');
    if lines.filter(|line| !line.is_empty()).count() != mounts.len() {
        return Err("a line of mountinfo cannot be read".to_owned());
    }
    judged(&mounts, shows_proc, seen, binds)
}

fn judged(
    mounts: &[Mount],
    shows_proc: bool,
    seen: &[SeenBind],
    binds: &[Bind],
) -> Result<usize, String> {
    if seen.len() != binds.len() {
        let (found, wanted) = (seen.len(), binds.len());
        return Err(format!("{found} of {wanted} planned paths were looked for"));
    }
    let mut planned = Vec::new();
    for (bind, seen) in binds.iter().zip(seen) {
        planned.push((placed(bind, *seen, mounts)?, bind.access));
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
            // Files of the container's, where there is no fresh one.
            mount.has_all(&["ro", "nosuid", "nodev", "noexec"])
        } else if target == Path::new("/proc") {
            mount.kind == "proc" && mount.has_all(&["nosuid", "nodev", "noexec"])
        } else if is_in("/dev") {
            mount.has_all(&["ro", "nosuid", "noexec"])
        } else {
            governing(&planned, target).is_some_and(|access| mount.keeps(access))
        };
        if !expected {
            let (target, kind) = (shown_path(target), &mount.kind);
            return Err(format!("{target} ({kind}) is not as planned"));
        }
        count += 1;
    }
    Ok(count)
}

/// Where a bind is mounted, links followed: by its name the planned object must be found, on a mount that
/// lets no more than the rule.
fn placed<'m>(bind: &Bind, seen: SeenBind, mounts: &'m [Mount]) -> Result<&'m Path, String> {
    let name = || shown_path(Path::new(&bind.target));
    let (object, id) = match seen {
        SeenBind::There {
            device,
            inode,
            mount,
        } => ((device, inode), mount),
        SeenBind::Unreached { errno } => {
            let errno = Errno::from_raw(errno);
            return Err(format!("{} is not there ({errno:?})", name()));
        }
    };
    if object != (bind.device, bind.inode) {
        return Err(format!("{} is not what was to be shown there", name()));
    }
    let mount = mounts.iter().find(|mount| mount.id == id);
    match mount {
        Some(mount) if mount.keeps(bind.access) => Ok(&mount.target),
        Some(mount) => {
            let (options, wanted) = (mount.options.join(","), bind.access.word());
            Err(format!("{} is mounted {options}, not as {wanted}", name()))
        }
        None => Err(format!("{} is on no mount that is listed", name())),
    }
}

/// What the plan says of the mount at `target`: its own rule, or the nearest above it.
fn governing(planned: &[(&Path, Access)], target: &Path) -> Option<Access> {
    let above = planned.iter().filter(|(path, _)| target.starts_with(path));
    let nearest = above.max_by_key(|(path, _)| path.as_os_str().len());
    nearest.map(|(_, access)| *access)
}

#[cfg(test)]
mod tests;
