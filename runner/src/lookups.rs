//! Which of the paths that a program looked for are not as they are on the host, and what would show them.
//!
//! Each path is followed twice, name by name and through symbolic links: inside, where only what the plan shows
//! is found, and on the host. It is *hidden* where the way inside comes to a name that is not shown and the host has
//! the object; it is *denied* where it was to be written, is shown or has a directory that is, and cannot be written.
//! A name of the home that it asked for and that was never there is *absent*: the home is empty at the start, so what
//! is looked for in it tells what a program would read of its user's. What the host has not either is nobody's loss
//! and is left out, and so is:
//!
//! - everything else below the sandbox's own home and temporary directory, and what was to be read below its /proc;
//! - a directory that was only passed or asked about, where something below it is listed: it comes with that;
//! - a directory to be made or changed that is shown: programs make the ways to their files over and over.
//!
//! Where the program starts in its home because the directory of its caller is not shown, it also misses what it looks
//! for in the home and that directory has; then the directory is what would have to be shown.
//!
//! The rest is folded (see [`fold`]) into few lines. Pure but for the probe of the host and the deadline that it is
//! given: a program may name any number of paths of any length, and what was not weighed in time is counted. It
//! judges nothing: a lookup is help for whoever wants the program to run, and no finding.

mod fold;
pub(crate) mod host;
mod mount_view;

use std::path::{Path, PathBuf};
use std::time::Instant;

use model::evidence::{Advice, Lookup, LookupKind, Reason};
use model::layout::{HOME, WORK};
use model::secret::SecretScanner;
use model::text::printable;
use policy::may_be_shown;
use sandbox::plan::Bind;
use sandbox::supervise::ledger::lookups::{Lookups, Wanted};

use self::fold::Entry;
use self::mount_view::Class;
use self::mount_view::{Found, MountView, Seen};
use crate::audit::Caller;

/// An object of the host, not followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HostObject {
    File,
    Directory,
    /// A symbolic link and what it says.
    Link(PathBuf),
    /// What is never shown: a device, a socket, a pipe, a directory whose names lead to other machines.
    Closed,
}

/// What came of all lookups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Weighed {
    pub(crate) lookups: Vec<Lookup>,
    /// Lookups that nobody had the time to weigh.
    pub(crate) unweighed: u64,
}

/// What was hidden from the program or denied to it by a root that shows `binds`, and what it asked for in its home
/// beside the files that were `there` (as reports print them), and in its working directory. `caller` names the runner's
/// user's home, and the current directory where the program does not start in it; `probe` says what the host has at
/// an absolute path. Ends soon after `until`.
pub(crate) fn weigh(
    lookups: &Lookups,
    binds: &[Bind],
    there: &[String],
    caller: Caller<'_>,
    secrets: &SecretScanner,
    probe: impl Fn(&Path) -> Option<HostObject>,
    until: Instant,
) -> Weighed {
    let world = MountView::new(binds, caller, &probe);
    let there = There::new(there);
    let is_late = || Instant::now() >= until;
    let mut entries = Vec::new();
    let mut unweighed = 0;
    for (wanted, seen) in lookups.iter() {
        if is_late() {
            unweighed += seen.count;
            continue;
        }
        let missed =
            missed(&world, lookups, wanted).or_else(|| absent(lookups, wanted, &there, secrets));
        entries.extend(missed.map(|(path, option, class, is_directory)| Entry {
            path,
            option,
            class,
            is_directory,
            kind: wanted.kind,
            paths: 1,
            count: seen.count,
            at_us: seen.at_us,
        }));
    }
    let lines = fold::fold(entries, &world, &is_late).into_iter();
    Weighed {
        lookups: lines.map(|entry| told(entry, secrets)).collect(),
        unweighed,
    }
}

/// Paths inside that were there, in an order in which whatever lies below a path follows it.
struct There<'a>(Vec<&'a Path>);

impl<'a> There<'a> {
    fn new(paths: &'a [String]) -> Self {
        let mut paths: Vec<&'a Path> = paths.iter().map(Path::new).collect();
        paths.sort_unstable();
        Self(paths)
    }

    /// Whether `path` or something below it was there.
    fn has(&self, path: &Path) -> bool {
        // Name by name, as paths compare: nothing stands between a path and what lies below it.
        let first = self.0.partition_point(|one| *one < path);
        self.0.get(first).is_some_and(|one| one.starts_with(path))
    }
}

/// A path that is missed, the path to show for it, how, and whether that is a directory.
type Missed = (PathBuf, PathBuf, Class, bool);

/// A name of the home or the working directory that was read and never there. Whatever the program made itself is known, and so is the way to it.
fn absent(
    lookups: &Lookups,
    wanted: &Wanted,
    there: &There<'_>,
    secrets: &SecretScanner,
) -> Option<Missed> {
    let is_in = |tree: &&str| wanted.path.starts_with(tree);
    let tree = [HOME, WORK].into_iter().find(is_in)?;
    let shown = secrets.redact(&printable(wanted.path.as_os_str().as_encoded_bytes()));
    let is_own = wanted.path == Path::new(tree)
        || wanted.kind == LookupKind::Write
        || lookups.wrote(&wanted.path)
        || there.has(Path::new(&shown));
    let path = || wanted.path.clone();
    (!is_own).then(|| (path(), path(), Class::Never(Reason::Absent), false))
}

/// What is missed where `wanted` was looked for, if anything is.
fn missed(world: &MountView, lookups: &Lookups, wanted: &Wanted) -> Option<Missed> {
    // One that begins nobody knows where cannot be followed.
    if !wanted.path.is_absolute() {
        return None;
    }
    let writes = wanted.kind == LookupKind::Write;
    let path = match world.inside(&wanted.path) {
        Seen::There(Found { writable: true, .. }) => return left_behind(world, lookups, wanted),
        Seen::Missing { writable: true } => return None,
        Seen::There(found) if !writes || found.object == HostObject::Directory => return None,
        Seen::Nothing => return None,
        Seen::Missing { .. } if !writes => return None,
        // The program itself, or a process: not at this path of the host.
        Seen::There(_) if world.on_host(&wanted.path).is_none() => {
            let path = wanted.path.clone();
            let class = world.class(&path, Class::Write);
            return Some((path.clone(), path, class, false));
        }
        Seen::There(_) | Seen::Missing { .. } => wanted.path.clone(),
        Seen::Hidden(path) => path,
    };
    let option = match (world.on_host(&path), path.parent()) {
        (Some(_), _) => path.clone(),
        // What is not there yet is made in its directory.
        (None, Some(parent)) if writes && world.is_directory_on_host(parent) => parent.to_owned(),
        (None, _) => return None,
    };
    let wanted = if writes { Class::Write } else { Class::Read };
    let class = world.class(&option, wanted);
    let is_directory = world.is_directory_on_host(&option);
    Some((path, option, class, is_directory))
}

/// Returns a lookup in the working directory that meant the caller's. Lookups of the directory itself, which every
/// shell makes, and of what the program made there are left out.
fn left_behind(world: &MountView, lookups: &Lookups, wanted: &Wanted) -> Option<Missed> {
    let directory = world.left_behind()?;
    let name = wanted.path.strip_prefix(WORK).ok()?;
    let path: PathBuf = directory.components().chain(name.components()).collect();
    let is_about_name = !name.as_os_str().is_empty() || wanted.kind == LookupKind::List;
    let is_own = wanted.kind == LookupKind::Write || lookups.wrote(&wanted.path);
    if is_own || !is_about_name {
        return None;
    }
    world.on_host(&path)?;
    Some((path, directory.to_owned(), Class::Read, true))
}

fn told(entry: Entry, secrets: &SecretScanner) -> Lookup {
    let shown = |path: &Path| secrets.redact(&printable(path.as_os_str().as_encoded_bytes()));
    let path = if entry.paths == 1 {
        &entry.path
    } else {
        &entry.option
    };
    Lookup {
        path: shown(path),
        paths: entry.paths,
        kind: entry.kind,
        count: entry.count,
        at_us: entry.at_us,
        advice: match entry.class {
            Class::Read => Advice::Read(shown(&entry.option)),
            Class::Write => Advice::Write(shown(&entry.option)),
            Class::Never(reason) => Advice::Never(reason),
        },
    }
}

/// Whether a name can be given on a command line as it is printed.
fn is_spelt(path: &Path) -> bool {
    path.to_str()
        .is_some_and(|text| !text.chars().any(char::is_control))
}

/// Why `path`, which is `canonical` on the host, is never shown; `None` where it may be.
fn never(world: &MountView, path: &Path, canonical: &Path, object: &HostObject) -> Option<Reason> {
    let is_directory = *object == HostObject::Directory;
    match () {
        () if mount_view::is_system(path) || mount_view::is_system(canonical) => {
            Some(Reason::System)
        }
        () if *object == HostObject::Closed => Some(Reason::Special),
        () if is_directory && (world.is_broad(path) || world.is_broad(canonical)) => {
            Some(Reason::Broad)
        }
        () if world.is_own(path) || !may_be_shown(path) => Some(Reason::Own),
        () if !is_spelt(path) => Some(Reason::Unspelt),
        () => None,
    }
}

#[cfg(test)]
mod tests;
