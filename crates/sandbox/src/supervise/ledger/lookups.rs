//! Path lookups of one run: one entry for each path and kind, with a count.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use model::evidence::{LookupKind, MAX_LOOKUP_BYTES, MAX_LOOKUPS};

/// Recorded lookups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lookups {
    seen: HashMap<Wanted, Seen>,
    /// Length of all paths in `seen`.
    bytes: usize,
    /// Lookups beyond [`MAX_LOOKUPS`] and [`MAX_LOOKUP_BYTES`].
    pub further: u64,
    /// Lookups whose path could not be read from the caller's memory. The kernel cannot read most of these either.
    pub unreadable: u64,
}

/// Path and kind of a lookup.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Wanted {
    /// Path without `.` and `..`; absolute, unless its base directory is unknown.
    pub path: PathBuf,
    /// Access that the call asked for.
    pub kind: LookupKind,
}

/// Number of equal lookups, and the time of the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Number of lookups, from 1.
    pub count: u64,
    /// Time of the first lookup, in microseconds since the start of the run.
    pub at_us: u64,
}

impl Lookups {
    /// Adds a lookup, or counts it.
    pub fn add(&mut self, wanted: Wanted, at_us: u64) {
        if let Some(seen) = self.seen.get_mut(&wanted) {
            seen.count += 1;
            return;
        }
        let bytes = self.bytes + wanted.path.as_os_str().len();
        if self.seen.len() >= MAX_LOOKUPS || bytes > MAX_LOOKUP_BYTES {
            self.further += 1;
            return;
        }
        self.bytes = bytes;
        self.seen.insert(wanted, Seen { count: 1, at_us });
    }

    /// Checks for a lookup of `path` for writing.
    pub fn wrote(&self, path: &Path) -> bool {
        self.seen.contains_key(&Wanted {
            path: path.to_owned(),
            kind: LookupKind::Write,
        })
    }

    /// All lookups, in arbitrary order.
    pub fn iter(&self) -> impl Iterator<Item = (&Wanted, Seen)> {
        self.seen.iter().map(|(wanted, seen)| (wanted, *seen))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(path: impl Into<PathBuf>, kind: LookupKind) -> Wanted {
        Wanted {
            path: path.into(),
            kind,
        }
    }

    #[test]
    fn the_same_path_again_is_counted_and_keeps_its_first_time() {
        let mut lookups = Lookups::default();
        for at_us in [5, 6, 7] {
            lookups.add(wanted("/a", LookupKind::Read), at_us);
        }
        lookups.add(wanted("/a", LookupKind::Write), 8);
        let mut all: Vec<_> = lookups.iter().collect();
        all.sort_by_key(|(wanted, _)| (*wanted).clone());
        let seen: Vec<(u64, u64)> = all
            .iter()
            .map(|(_, seen)| (seen.count, seen.at_us))
            .collect();
        assert_eq!(seen, [(3, 5), (1, 8)]);
    }

    #[test]
    fn a_flood_of_paths_is_bounded_and_counted() {
        let mut lookups = Lookups::default();
        for number in 0..MAX_LOOKUPS + 7 {
            lookups.add(wanted(format!("/{number}"), LookupKind::Read), 0);
        }
        lookups.add(wanted("/0", LookupKind::Read), 0);
        assert_eq!((lookups.iter().count(), lookups.further), (MAX_LOOKUPS, 7));
    }

    #[test]
    fn long_paths_are_bounded_by_their_bytes() {
        let mut lookups = Lookups::default();
        let long = "x".repeat(4000);
        for number in 0..2000 {
            lookups.add(wanted(format!("/{number:04}{long}"), LookupKind::Read), 0);
        }
        assert_eq!(lookups.iter().count(), MAX_LOOKUP_BYTES / 4005);
        assert_eq!(lookups.further, 2000 - (MAX_LOOKUP_BYTES / 4005) as u64);
    }
}
