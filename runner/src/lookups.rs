//! Compares the paths that a program looked for with the host, and finds the option that would show each.
//!
//! Each path is resolved twice, name by name and through symbolic links: inside, where only the plan's objects
//! exist, and on the host. Three results are reported:
//!
//! - *hidden*: the path inside reaches a name that is not shown, and the host has the object;
//! - *denied*: the program wanted to write, the object or its directory is shown, and writing is not permitted;
//! - *absent*: a name in the home that the program read and that never existed. The home is empty at the start, so
//!   such a lookup shows what a program would read of its user's home. The same for a name in /tmp that the host has.
//!
//! Paths that the host does not have either are left out, and so are:
//!
//! - every other path below the sandbox's own home and temporary directory, and reads below its /proc;
//! - a directory that was only passed or asked about, if a path below it is listed, which implies it;
//! - a shown directory to be created or changed, because programs create the parents of their files repeatedly.
//!
//! If the program starts in its home because its caller's directory is not shown, lookups in the home that the
//! caller's directory could answer are reported too. The option is then to show that directory.
//!
//! The rest is folded (see [`fold`]) into few lines. The module is pure, except for the given probe of the host
//! and the deadline. A program may name any number of paths of any length; lookups beyond the deadline are only
//! counted. A lookup is a hint for making a program run, not a finding.

mod fold;
pub(crate) mod host;
mod mount_view;

use std::path::{Path, PathBuf};
use std::time::Instant;

use model::evidence::{Advice, Lookup, LookupKind, Reason};
use model::layout::{HOME, TMP, WORK};
use model::secret::SecretScanner;
use model::text::printable;
use policy::may_be_shown;
use sandbox::plan::Bind;
use sandbox::supervise::ledger::lookups::{Lookups, Wanted};

use self::fold::Entry;
use self::mount_view::{Class, Found, MountView, Resolved};
use crate::audit::Caller;

/// An object of the host; a link is not followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HostObject {
    File,
    Directory,
    /// Symbolic link with its target.
    Link(PathBuf),
    /// Object that is never shown: a device, a socket, a FIFO, or a directory whose names lead to other
    /// machines.
    Closed,
}

/// Result of comparing all lookups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Comparison {
    pub(crate) lookups: Vec<Lookup>,
    /// Number of lookups beyond the deadline.
    pub(crate) uncompared: u64,
}

/// Result of looking for a path inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inside {
    /// The path exists inside.
    There,
    /// The path exists on the host only.
    Hidden,
    /// The path does not exist.
    Absent,
}

/// Looks for a path in a root that shows `binds`, as a program there does.
pub(crate) fn look(path: &Path, binds: &[Bind]) -> Inside {
    let view = MountView::new(binds, Caller::default(), &host::probe);
    match view.inside(path) {
        Resolved::There(_) => Inside::There,
        Resolved::Hidden(_) if view.on_host(path).is_some() => Inside::Hidden,
        Resolved::Hidden(_) | Resolved::Missing { .. } | Resolved::Nothing => Inside::Absent,
    }
}

/// Compares the lookups with a root that shows `binds`. Names in the home and the working directory that are not
/// in `present` are absent; `present` has the paths of files as reports print them. `caller` has the home of the
/// runner's user, and the current directory if the program does not start there. `probe` returns the host's object
/// at an absolute path. Returns soon after `until`.
pub(crate) fn compare(
    lookups: &Lookups,
    binds: &[Bind],
    present: &[String],
    caller: Caller<'_>,
    secrets: &SecretScanner,
    probe: impl Fn(&Path) -> Option<HostObject>,
    until: Instant,
) -> Comparison {
    let view = MountView::new(binds, caller, &probe);
    let present = PresentPaths::new(present);
    let is_late = || Instant::now() >= until;
    let mut entries = Vec::new();
    let mut uncompared = 0;
    for (wanted, seen) in lookups.iter() {
        if is_late() {
            uncompared += seen.count;
            continue;
        }
        let missed = missed(&view, lookups, wanted)
            .or_else(|| absent(&view, lookups, wanted, &present, secrets));
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
    let lines = fold::fold(entries, &view, &is_late).into_iter();
    Comparison {
        lookups: lines.map(|entry| lookup_line(entry, secrets)).collect(),
        uncompared,
    }
}

/// Paths inside that existed, sorted so that a path precedes the paths below it.
struct PresentPaths<'a>(Vec<&'a Path>);

impl<'a> PresentPaths<'a> {
    fn new(paths: &'a [String]) -> Self {
        let mut paths: Vec<&'a Path> = paths.iter().map(Path::new).collect();
        paths.sort_unstable();
        Self(paths)
    }

    /// Checks whether `path` or a path below it existed.
    fn has(&self, path: &Path) -> bool {
        // Paths compare name by name, so a path and the paths below it are adjacent.
        let first = self.0.partition_point(|one| *one < path);
        self.0.get(first).is_some_and(|one| one.starts_with(path))
    }
}

/// A missed path, the path to show for it, the option, and true if the latter is a directory.
type Missed = (PathBuf, PathBuf, Class, bool);

/// Handles a name in the home, the working or the temporary directory that was read but never existed. Objects that
/// the program created are left out, and so are their parents.
fn absent(
    view: &MountView<'_>,
    lookups: &Lookups,
    wanted: &Wanted,
    present: &PresentPaths<'_>,
    secrets: &SecretScanner,
) -> Option<Missed> {
    let is_in = |tree: &&str| wanted.path.starts_with(tree);
    let tree = [HOME, WORK, TMP].into_iter().find(is_in)?;
    // Programs probe many names of temporary files. Only one that the caller has is of interest.
    if tree == TMP && (view.on_host(&wanted.path).is_none() || view.is_shown(&wanted.path)) {
        return None;
    }
    let shown = secrets.redact(&printable(wanted.path.as_os_str().as_encoded_bytes()));
    let is_own = wanted.path == Path::new(tree)
        || wanted.kind == LookupKind::Write
        || lookups.wrote(&wanted.path)
        || present.has(Path::new(&shown));
    let path = || wanted.path.clone();
    (!is_own).then(|| (path(), path(), Class::Never(Reason::Absent), false))
}

/// Returns the missed path for a lookup, if there is one.
fn missed(view: &MountView, lookups: &Lookups, wanted: &Wanted) -> Option<Missed> {
    // A relative path with an unknown base directory cannot be resolved.
    if !wanted.path.is_absolute() {
        return None;
    }
    let writes = wanted.kind == LookupKind::Write;
    let path = match view.inside(&wanted.path) {
        Resolved::There(Found { writable: true, .. }) => {
            return meant_for_caller(view, lookups, wanted);
        }
        Resolved::Missing { writable: true } => return None,
        Resolved::There(found) if !writes || found.object == HostObject::Directory => return None,
        Resolved::Nothing => return None,
        Resolved::Missing { .. } if !writes => return None,
        // The program itself, or a process: the host has no such path.
        Resolved::There(_) if view.on_host(&wanted.path).is_none() => {
            let path = wanted.path.clone();
            let class = view.class(&path, Class::Write);
            return Some((path.clone(), path, class, false));
        }
        Resolved::There(_) | Resolved::Missing { .. } => wanted.path.clone(),
        Resolved::Hidden(path) => path,
    };
    let option = match (view.on_host(&path), path.parent()) {
        (Some(_), _) if !writes => linked_directory(view, &wanted.path).unwrap_or(path.clone()),
        (Some(_), _) => path.clone(),
        // A new file needs its directory.
        (None, Some(parent)) if writes && view.is_directory_on_host(parent) => parent.to_owned(),
        (None, _) => return None,
    };
    let wanted = if writes { Class::Write } else { Class::Read };
    let class = view.class(&option, wanted);
    let is_directory = view.is_directory_on_host(&option);
    Some((path, option, class, is_directory))
}

/// Returns the directory to which a shown link on the way of `wanted` leads: its other files are probably linked too,
/// such as the settings of a Java of the distribution in /etc. Returns `None` without a link, in a home, and for a
/// directory that would show too much.
fn linked_directory(view: &MountView, wanted: &Path) -> Option<PathBuf> {
    let mut on_the_way: Vec<&Path> = wanted.ancestors().collect();
    on_the_way.reverse();
    let mut hidden = on_the_way.into_iter().map(|path| view.inside(path));
    let target = hidden.find_map(|resolved| match resolved {
        Resolved::Hidden(path) => Some(path),
        Resolved::There(_) | Resolved::Missing { .. } | Resolved::Nothing => None,
    })?;
    if wanted.starts_with(&target) || view.is_in_home(&target) {
        return None;
    }
    let directory = if view.is_directory_on_host(&target) {
        &target
    } else {
        target.parent()?
    };
    let is_deep = directory.components().count() > fold::MIN_DEPTH;
    let may_show = view.class(directory, Class::Read) == Class::Read;
    (is_deep && may_show).then(|| directory.to_owned())
}

/// Returns a lookup in the working directory that was meant for the caller's directory. Left out are lookups of
/// the directory itself, which every shell makes, and of files that the program created there.
fn meant_for_caller(view: &MountView, lookups: &Lookups, wanted: &Wanted) -> Option<Missed> {
    let directory = view.caller_directory()?;
    let name = wanted.path.strip_prefix(WORK).ok()?;
    let path: PathBuf = directory.components().chain(name.components()).collect();
    let is_about_name = !name.as_os_str().is_empty() || wanted.kind == LookupKind::List;
    let is_own = wanted.kind == LookupKind::Write || lookups.wrote(&wanted.path);
    if is_own || !is_about_name {
        return None;
    }
    view.on_host(&path)?;
    Some((path, directory.to_owned(), Class::Read, true))
}

fn lookup_line(entry: Entry, secrets: &SecretScanner) -> Lookup {
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

/// Checks whether a path can be typed on a command line as it is printed.
fn is_printable(path: &Path) -> bool {
    path.to_str()
        .is_some_and(|text| !text.chars().any(char::is_control))
}

/// Returns the reason why `path` is never shown, or `None`. `canonical` is the path on the host without links.
fn never_shown(
    view: &MountView,
    path: &Path,
    canonical: &Path,
    object: &HostObject,
) -> Option<Reason> {
    let is_directory = *object == HostObject::Directory;
    match () {
        () if mount_view::is_system(path) || mount_view::is_system(canonical) => {
            Some(Reason::System)
        }
        () if *object == HostObject::Closed => Some(Reason::Special),
        () if is_directory && (view.is_broad(path) || view.is_broad(canonical)) => {
            Some(Reason::Broad)
        }
        () if view.is_own(path) || !may_be_shown(path) => Some(Reason::Own),
        () if !is_printable(path) => Some(Reason::Unspelt),
        () => None,
    }
}

#[cfg(test)]
mod tests;
