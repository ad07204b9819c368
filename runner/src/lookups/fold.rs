//! Many paths into few lines.
//!
//! In this order, each step for the paths that the same kind of option would show:
//!
//! 1. A directory that was only asked about or entered, and below which another path is missed, is left out.
//! 2. A path below a directory that is to be shown itself is counted there.
//! 3. From the deepest directory upwards: where more than [`FEW`] lines lie below one, it takes their place, if it
//!    may be shown and is not one of the [`SHALLOWEST`]. So the smallest directory is named that makes the list short.
//! 4. What is to be read below a directory that is to be written is counted there.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use model::evidence::{LookupKind, Reason};
use model::layout::{HOME, WORK};

use super::mount_view::{Class, MountView};

/// Lines below one directory that are shown one by one.
const FEW: usize = 3;
/// Directories with fewer names in their path than this take nobody's place: /usr, /opt, /var are too much.
const SHALLOWEST: usize = 2;

/// One line, as it grows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// The path that is missed.
    pub(super) path: PathBuf,
    /// The path that is to be shown for it.
    pub(super) option: PathBuf,
    pub(super) class: Class,
    /// `option` is a directory.
    pub(super) is_directory: bool,
    pub(super) kind: LookupKind,
    pub(super) paths: u64,
    pub(super) count: u64,
    pub(super) at_us: u64,
}

impl Entry {
    fn absorb(&mut self, other: &Self) {
        self.kind = self.kind.max(other.kind);
        // The same path, wanted in another way, is no other path.
        if self.path != other.path {
            self.paths += other.paths;
        }
        self.count += other.count;
        self.at_us = self.at_us.min(other.at_us);
    }

    fn covers(&self, other: &Self) -> bool {
        self.option == other.option || (self.is_directory && other.option.starts_with(&self.option))
    }
}

/// Folds, less where it is late; options come before what no option shows, each in the order of their paths.
pub(super) fn fold(
    mut entries: Vec<Entry>,
    world: &MountView,
    is_late: &dyn Fn() -> bool,
) -> Vec<Entry> {
    // Equal paths side by side, whatever was wanted of them.
    entries.sort_by(|one, other| (&one.option, &one.path).cmp(&(&other.option, &other.path)));
    let mut classes: BTreeMap<Class, Vec<Entry>> = BTreeMap::new();
    for entry in without_passages(entries) {
        classes.entry(entry.class).or_default().push(entry);
    }
    let folded = classes
        .into_values()
        .map(|entries| gathered(covered(entries), world, is_late));
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
        // Whatever lies below it comes next in this order.
        let next = groups.get(index + 1).and_then(|next| option(next));
        let is_passage = |entry: &&Entry| {
            let leads_on = next
                .as_ref()
                .is_some_and(|next| next.starts_with(&entry.option));
            leads_on && entry.is_directory && entry.kind == LookupKind::Read
        };
        kept.extend(group.iter().filter(|entry| !is_passage(entry)).cloned());
    }
    kept
}

/// One line for each path, then one for each directory that is to be shown itself.
fn covered(entries: Vec<Entry>) -> Vec<Entry> {
    let same_path = |one: &Entry, other: &Entry| one.path == other.path;
    joined(joined(entries, same_path), Entry::covers)
}

/// Neighbours made one.
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

fn gathered(mut lines: Vec<Entry>, world: &MountView, is_late: &dyn Fn() -> bool) -> Vec<Entry> {
    let deepest = lines
        .iter()
        .map(|line| depth(&line.option))
        .max()
        .unwrap_or(0);
    for depth in (SHALLOWEST..deepest).rev() {
        // More lines than needed, and none is lost.
        if is_late() {
            break;
        }
        let groups = lines.chunk_by(|one, other| {
            let directory = above(&one.option, depth);
            directory.is_some() && directory == above(&other.option, depth)
        });
        lines = groups
            .flat_map(|group| one_line(group, depth, world))
            .collect();
    }
    lines
}

/// The directory that all of `group` lie below, in their place, where there are many and it may be shown.
fn one_line(group: &[Entry], depth: usize, world: &MountView) -> Vec<Entry> {
    let Some(first) = group.first().filter(|_| group.len() > FEW) else {
        return group.to_vec();
    };
    let directory = above(&first.option, depth)
        .unwrap_or(&first.option)
        .to_owned();
    let may_stand = match first.class {
        // Which of them it was is all that is of interest.
        Class::Never(Reason::Absent) => ![HOME, WORK].map(Path::new).contains(&directory.as_path()),
        Class::Never(_) => true,
        Class::Read | Class::Write => world.class(&directory, first.class) == first.class,
    };
    if !may_stand {
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

/// How many names a path has.
fn depth(path: &Path) -> usize {
    path.components().count().saturating_sub(1)
}

/// The directory of `names` names that a path lies below.
fn above(path: &Path, names: usize) -> Option<&Path> {
    let up = depth(path).checked_sub(names).filter(|up| *up > 0)?;
    path.ancestors().nth(up)
}
