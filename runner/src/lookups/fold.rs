//! Folds many paths into few lines.
//!
//! The steps, in this order, each among the paths that the same kind of option would show:
//!
//! 1. A directory that was only asked about or entered is left out, if another path below it is missed.
//! 2. A path below a directory that is itself to be shown counts as part of that directory.
//! 3. From the deepest directory upwards: a directory with more than [`MAX_LINES`] lines below it replaces them,
//!    if it may be shown and its path has at least [`MIN_DEPTH`] names. So the smallest sufficient one is named.
//! 4. A path to be read below a directory to be written counts as part of that directory.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use model::evidence::{LookupKind, Reason};
use model::layout::{HOME, WORK};

use super::mount_view::{Class, MountView};

/// Largest number of lines below one directory that are listed one by one.
const MAX_LINES: usize = 3;
/// Smallest number of names in the path of a directory that replaces lines: /usr, /opt or /var would show too
/// much.
pub(super) const MIN_DEPTH: usize = 2;

/// One line while it is folded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// The missed path.
    pub(super) path: PathBuf,
    /// The path to show for it.
    pub(super) option: PathBuf,
    pub(super) class: Class,
    /// True if `option` is a directory.
    pub(super) is_directory: bool,
    pub(super) kind: LookupKind,
    pub(super) paths: u64,
    pub(super) count: u64,
    pub(super) at_us: u64,
}

impl Entry {
    fn absorb(&mut self, other: &Self) {
        self.kind = self.kind.max(other.kind);
        // The same path in another kind of access is not another path.
        if self.path != other.path {
            self.paths += other.paths;
        }
        self.count += other.count;
        self.at_us = self.at_us.min(other.at_us);
    }

    /// Returns true if the path itself is a directory; the option may be the directory of a missed file.
    fn is_the_directory(&self) -> bool {
        self.is_directory && self.path == self.option
    }

    fn covers(&self, other: &Self) -> bool {
        self.option == other.option || (self.is_directory && other.option.starts_with(&self.option))
    }
}

/// Folds the entries; after the deadline, folding stops early. Returns the lines with an option first, each part in
/// path order.
pub(super) fn fold(
    mut entries: Vec<Entry>,
    view: &MountView,
    is_late: &dyn Fn() -> bool,
) -> Vec<Entry> {
    // Equal paths become adjacent, whatever the access.
    entries.sort_by(|one, other| (&one.option, &one.path).cmp(&(&other.option, &other.path)));
    let mut classes: BTreeMap<Class, Vec<Entry>> = BTreeMap::new();
    for entry in without_passages(entries) {
        classes.entry(entry.class).or_default().push(entry);
    }
    let folded = classes
        .into_values()
        .map(|entries| folded_upwards(covered(entries), view, is_late));
    let mut folded = read_with_written(folded.flatten().collect());
    let is_never = |entry: &Entry| matches!(entry.class, Class::Never(_));
    folded.sort_by(|one, other| {
        (is_never(one), &one.option, one.class).cmp(&(is_never(other), &other.option, other.class))
    });
    folded
}

fn without_passages(entries: Vec<Entry>) -> Vec<Entry> {
    let groups: Vec<&[Entry]> = entries
        .chunk_by(|one, other| one.option == other.option)
        .collect();
    let option = |group: &[Entry]| group.first().map(|entry| entry.option.clone());
    let mut kept = Vec::with_capacity(entries.len());
    for (index, group) in groups.iter().enumerate() {
        // Paths below the directory follow it in this order.
        let next = groups.get(index + 1).and_then(|next| option(next));
        let is_passage = |entry: &&Entry| {
            let leads_on = next
                .as_ref()
                .is_some_and(|next| next.starts_with(&entry.option));
            leads_on && entry.is_the_directory() && entry.kind == LookupKind::Read
        };
        kept.extend(group.iter().filter(|entry| !is_passage(entry)).cloned());
    }
    kept
}

/// Merges entries of the same path, then entries below a directory that is itself to be shown.
fn covered(entries: Vec<Entry>) -> Vec<Entry> {
    let same_path = |one: &Entry, other: &Entry| one.path == other.path;
    joined(joined(entries, same_path), Entry::covers)
}

/// Merges adjacent entries.
fn joined(entries: Vec<Entry>, belong: impl Fn(&Entry, &Entry) -> bool) -> Vec<Entry> {
    let mut lines: Vec<Entry> = Vec::new();
    for entry in entries {
        match lines.last_mut() {
            Some(last) if belong(last, &entry) => last.absorb(&entry),
            _ => lines.push(entry),
        }
    }
    lines
}

fn folded_upwards(
    mut lines: Vec<Entry>,
    view: &MountView,
    is_late: &dyn Fn() -> bool,
) -> Vec<Entry> {
    let max_depth = lines
        .iter()
        .map(|line| depth(&line.option))
        .max()
        .unwrap_or(0);
    for depth in (MIN_DEPTH..max_depth).rev() {
        // The list is longer than necessary then, but complete.
        if is_late() {
            break;
        }
        let groups = lines.chunk_by(|one, other| {
            let directory = above(&one.option, depth);
            directory.is_some() && directory == above(&other.option, depth)
        });
        lines = groups
            .flat_map(|group| replaced_by_directory(group, depth, view))
            .collect();
    }
    lines
}

/// Replaces the lines of `group` by the directory above them, if they are many and the directory may be shown.
fn replaced_by_directory(group: &[Entry], depth: usize, view: &MountView) -> Vec<Entry> {
    let Some(first) = group.first().filter(|_| group.len() > MAX_LINES) else {
        return group.to_vec();
    };
    let directory = above(&first.option, depth)
        .unwrap_or(&first.option)
        .to_owned();
    let may_replace = match first.class {
        // For absent names, the single names are of interest, so a whole tree must not replace them.
        Class::Never(Reason::Absent) => ![HOME, WORK].map(Path::new).contains(&directory.as_path()),
        Class::Never(_) => true,
        Class::Read | Class::Write => view.class(&directory, first.class) == first.class,
    };
    if !may_replace {
        return group.to_vec();
    }
    let mut line = first.clone();
    group.iter().skip(1).for_each(|other| line.absorb(other));
    line.path.clone_from(&directory);
    line.option = directory;
    line.is_directory = true;
    vec![line]
}

fn read_with_written(entries: Vec<Entry>) -> Vec<Entry> {
    let (mut written, others): (Vec<Entry>, Vec<Entry>) = entries
        .into_iter()
        .partition(|entry| entry.class == Class::Write);
    let options: HashMap<PathBuf, usize> = written
        .iter()
        .enumerate()
        .map(|(index, line)| (line.option.clone(), index))
        .collect();
    let mut kept = Vec::new();
    for entry in others {
        let over = entry.option.ancestors().find_map(|above| {
            let index = *options.get(above)?;
            written.get(index)?.covers(&entry).then_some(index)
        });
        match over.and_then(|index| written.get_mut(index)) {
            Some(line) if entry.class == Class::Read => line.absorb(&entry),
            _ => kept.push(entry),
        }
    }
    kept.append(&mut written);
    kept
}

/// Returns the number of names in a path.
fn depth(path: &Path) -> usize {
    path.components().count().saturating_sub(1)
}

/// Returns the ancestor of `path` with `names` names.
fn above(path: &Path, names: usize) -> Option<&Path> {
    let up = depth(path).checked_sub(names).filter(|up| *up > 0)?;
    path.ancestors().nth(up)
}
