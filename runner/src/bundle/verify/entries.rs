//! Comparison of the archive with the report. Nothing is extracted.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufReader, Read, Seek as _};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

use model::case::Root;
use model::digest;
use model::evidence::FileKind;
use model::text::printable;
use tar::{Archive, Entry, EntryType, GnuExtSparseHeader, GnuSparseHeader};

use super::{Differences, MAX_FILE_BYTES};
use crate::bundle::REPORT;
use crate::bundle::archive::{BLOCK, Headers, NAME, RENAMED};
use crate::bundle::inventory::{Exception, Inventory, Object};
use crate::bundle::sums::shown;

/// Largest headers of one entry, in bytes: long names, and the map of a sparse file.
const MAX_HEADER_BYTES: u64 = 16 * 1024 * 1024;
/// Largest file in bytes, the largest `file_size` of a case.
const MAX_ENTRY_BYTES: u64 = 64 << 30;
/// Rest of an archive after the block of zeros that ends its entries.
const END: [u8; 512] = [0; 512];
const PIECE: usize = 256 * 1024;
/// Types of the entries that a run writes.
const KINDS: [(EntryType, FileKind); 5] = [
    (EntryType::Regular, FileKind::File),
    (EntryType::GNUSparse, FileKind::File),
    (EntryType::Directory, FileKind::Directory),
    (EntryType::Symlink, FileKind::Symlink),
    (EntryType::Fifo, FileKind::Fifo),
];

/// Comparison of the entries of an archive.
pub(super) struct Entries<'a, 'e> {
    /// Paths in the report by names in the archive.
    stored_as: BTreeMap<&'e str, &'e str>,
    /// Those of them that the archive has.
    found_as: BTreeMap<&'e str, &'e str>,
    /// Objects of the report without an entry so far.
    inventory: &'a mut Inventory,
    differences: &'a mut Differences,
    names: BTreeSet<Vec<u8>>,
    directories: BTreeSet<Vec<u8>>,
}

impl<'a, 'e> Entries<'a, 'e> {
    pub(super) fn new(
        exceptions: &'e [Exception],
        inventory: &'a mut Inventory,
        differences: &'a mut Differences,
    ) -> Self {
        let stored_as = |one: &'e Exception| Some((one.stored_as.as_deref()?, one.path.as_str()));
        let is_renamed =
            |name: &str| (name.strip_prefix(RENAMED)).is_some_and(|rest| rest.starts_with('/'));
        let renamed = exceptions.iter().filter_map(stored_as);
        Self {
            stored_as: renamed.filter(|(name, _)| is_renamed(name)).collect(),
            found_as: BTreeMap::new(),
            inventory,
            differences,
            names: BTreeSet::new(),
            directories: Root::ALL
                .map(Root::word)
                .into_iter()
                .chain([RENAMED])
                .map(|root| root.as_bytes().to_vec())
                .collect(),
        }
    }

    /// Compares each entry, and takes its object from the inventory. Returns the paths in the report of the renamed
    /// objects by names in the archive.
    ///
    /// # Errors
    /// Returns the fault after which no further entry can be read.
    pub(super) fn compare(mut self, mut file: File) -> io::Result<BTreeMap<&'e str, &'e str>> {
        file.rewind()?;
        let meter = Meter::default();
        let mut archive = Archive::new(Metered {
            source: BufReader::new(&file),
            meter: &meter,
        });
        let mut entries = archive.entries()?;
        let mut remaining = MAX_FILE_BYTES;
        let mut end: u64 = 0;
        loop {
            meter.limit.set(end.saturating_add(MAX_HEADER_BYTES));
            let Some(entry) = entries.next() else {
                break;
            };
            let mut entry = entry?;
            meter.limit.set(u64::MAX);
            remaining = remaining
                .checked_sub(entry.size())
                .ok_or_else(|| io::Error::other("its files are larger than those of any run"))?;
            let head = Head::read(&file, end, &entry)?;
            self.entry(&mut entry, &head)?;
            end = head.end;
        }
        let mut rest = Vec::new();
        let mut source = archive.into_inner().take(2 * END.len() as u64);
        source.read_to_end(&mut rest)?;
        if rest == END {
            Ok(self.found_as)
        } else {
            Err(io::Error::other(
                "it does not end after two blocks of zeros",
            ))
        }
    }

    fn entry(&mut self, entry: &mut Entry<'_, impl Read>, head: &Head) -> io::Result<()> {
        let header = entry.header();
        let kinds = KINDS.iter().find(|(kind, _)| *kind == header.entry_type());
        let kind = kinds.map(|(_, kind)| *kind);
        let mode = header.mode()?;
        let name = entry.path_bytes().into_owned();
        let path = printable(&name);
        let place = format!("{NAME}: {}", shown(&path));
        let is_as_written = kind.is_some() && head.is_as_written(entry)?;
        let is_plain =
            self.add(name, kind == Some(FileKind::Directory)) && entry.size() <= MAX_ENTRY_BYTES;
        let Some(kind) = kind.filter(|_| is_plain) else {
            let line = format!("differs: {place}: no run writes such an entry");
            self.differences.add(line);
            return Ok(());
        };
        let path = match self.stored_as.get_key_value(path.as_str()) {
            Some((name, path)) => {
                self.found_as.insert(name, path);
                (*path).to_owned()
            }
            None => path,
        };
        let mut found = Object {
            kind,
            bytes: entry.size(),
            content: String::new(),
            mode,
        };
        if !is_as_written {
            let line = format!("differs: {place}: no run writes such a header");
            self.differences.add(line);
            self.inventory.take(&path, &found);
            return Ok(());
        }
        if kind == FileKind::Symlink {
            let target = entry.link_name_bytes().unwrap_or_default();
            found.content = printable(&target);
        }
        // A file of another size is not read.
        if kind == FileKind::File && self.inventory.has_file(&path, Some(found.bytes)) {
            let mut bytes = 0;
            found.content = digest::of_pieces(entry, &mut vec![0; PIECE], |piece| {
                bytes += piece.len() as u64;
                Ok(())
            })?;
            found.bytes = bytes;
        }
        match self.inventory.take(&path, &found) {
            Some(listed) => self.object(&place, &found, &listed),
            None => {
                let kind = found.kind.word();
                let line = format!("differs: {place}: {REPORT} lists no such {kind}");
                self.differences.add(line);
            }
        }
        Ok(())
    }

    fn object(&mut self, place: &str, found: &Object, listed: &Object) {
        if found.bytes != listed.bytes {
            let bytes = format!("{} bytes", found.bytes);
            (self.differences).disagree(place, &bytes, &listed.bytes.to_string());
        } else if !found.has_content_of(listed) {
            let what = if found.is_file() { "SHA-256" } else { "target" };
            let content = format!("its {what} is {}", shown(&found.content));
            (self.differences).disagree(place, &content, &listed.content);
        } else if found.mode != listed.mode {
            let mode = format!("its mode is {:04o}", found.mode);
            (self.differences).disagree(place, &mode, &format!("{:04o}", listed.mode));
        }
    }

    /// Adds a name. Returns false for a name that is there already, or is not in a directory of the archive: tar(1)
    /// could follow a link or leave its directory.
    fn add(&mut self, name: Vec<u8>, is_directory: bool) -> bool {
        let mut parts = name.rsplitn(2, |byte| *byte == b'/');
        let (last, parent) = (parts.next().unwrap_or_default(), parts.next());
        let is_plain = !matches!(last, b"" | b"." | b"..")
            && parent.is_some_and(|parent| self.directories.contains(parent));
        if is_plain && is_directory {
            self.directories.insert(name.clone());
        }
        self.names.insert(name) && is_plain
    }
}

/// Headers of one entry, as they are in the archive.
struct Head {
    blocks: Vec<u8>,
    /// Ranges of a sparse file.
    ranges: Vec<Range<u64>>,
    /// End of the entry.
    end: u64,
}

impl Head {
    /// Reads the headers between `start`, the end of the entry before, and the data.
    fn read(file: &File, start: u64, entry: &Entry<'_, impl Read>) -> io::Result<Self> {
        let mut data_at = entry.raw_file_position();
        let is_sparse = entry.header().entry_type() == EntryType::GNUSparse;
        let sparse = entry.header().as_gnu().filter(|_| is_sparse);
        let mut found: Vec<_> = sparse
            .iter()
            .flat_map(|main| ranges(&main.sparse))
            .collect();
        let mut is_extended = sparse.is_some_and(|main| main.is_extended());
        while is_extended {
            let mut further = GnuExtSparseHeader::new();
            file.read_exact_at(further.as_mut_bytes(), data_at)?;
            found.extend(ranges(further.sparse()));
            is_extended = further.is_extended();
            data_at += BLOCK;
        }
        // The last range has no data and marks the end of the file.
        found.pop();
        let size = data_at.saturating_sub(start);
        let mut blocks = vec![0; usize::try_from(size).map_err(io::Error::other)?];
        file.read_exact_at(&mut blocks, start)?;
        let stored = entry.header().entry_size()?.checked_next_multiple_of(BLOCK);
        Ok(Self {
            blocks,
            ranges: found,
            end: data_at.saturating_add(stored.unwrap_or(u64::MAX)),
        })
    }

    /// Compares the headers with those that a run writes for such an entry.
    fn is_as_written(&self, entry: &Entry<'_, impl Read>) -> io::Result<bool> {
        let (header, size) = (entry.header(), entry.size());
        let name = entry.path_bytes();
        let target = entry.link_name_bytes().unwrap_or_default();
        let whole = [Range {
            start: 0,
            end: size,
        }];
        let kind = header.entry_type();
        let (kind, size, ranges) = if kind == EntryType::GNUSparse {
            (EntryType::Regular, size, &*self.ranges)
        } else if kind == EntryType::Regular {
            (kind, size, &whole[..])
        } else {
            (kind, 0, &[][..])
        };
        let headers = Headers {
            kind,
            name: &name,
            target: &target,
            mode: header.mode()?,
            mtime: header.mtime()?,
            size,
            ranges,
        };
        let is_text = !name.contains(&0) && !target.contains(&0);
        let has_data = !ranges.iter().any(Range::is_empty) || size == 0;
        Ok(is_text && has_data && headers.blocks() == self.blocks)
    }
}

/// Lists the ranges of a map that the archive's reader has checked.
fn ranges(slots: &[GnuSparseHeader]) -> impl Iterator<Item = Range<u64>> {
    let slots = slots.iter().filter(|slot| !slot.is_empty());
    slots.map(|slot| {
        let start = slot.offset().unwrap_or(0);
        Range {
            start,
            end: start.saturating_add(slot.length().unwrap_or(0)),
        }
    })
}

/// Position of a reader, and the position after which it fails.
#[derive(Default)]
struct Meter {
    position: Cell<u64>,
    limit: Cell<u64>,
}

/// Reader with a limit, because the archive's reader holds the headers of an entry in memory.
struct Metered<'m, R> {
    source: R,
    meter: &'m Meter,
}

impl<R: Read> Read for Metered<'_, R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(into)?;
        let position = self.meter.position.get() + read as u64;
        self.meter.position.set(position);
        if position > self.meter.limit.get() {
            return Err(io::Error::other("the headers of one entry are too large"));
        }
        Ok(read)
    }
}
