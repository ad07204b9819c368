//! Comparison of the archive with the report. Nothing is extracted.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufReader, Read, Seek as _};

use model::case::Root;
use model::digest;
use model::evidence::FileKind;
use model::text::printable;
use tar::{Archive, Entry, EntryType};

use super::{Differences, MAX_FILE_BYTES};
use crate::bundle::REPORT;
use crate::bundle::archive::{NAME, OWNER, RENAMED};
use crate::bundle::inventory::{Exception, Inventory, Object};
use crate::bundle::sums::shown;

/// Largest headers of one entry, in bytes: long names, and the map of a sparse file.
const MAX_HEADER_BYTES: u64 = 16 * 1024 * 1024;
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
pub(super) struct Entries<'a> {
    /// Paths in the report by names in the archive.
    stored_as: BTreeMap<&'a str, &'a str>,
    /// Objects of the report without an entry so far.
    inventory: &'a mut Inventory,
    differences: &'a mut Differences,
    names: BTreeSet<Vec<u8>>,
    directories: BTreeSet<Vec<u8>>,
}

impl<'a> Entries<'a> {
    pub(super) fn new(
        exceptions: &'a [Exception],
        inventory: &'a mut Inventory,
        differences: &'a mut Differences,
    ) -> Self {
        let stored_as = |one: &'a Exception| Some((one.stored_as.as_deref()?, one.path.as_str()));
        Self {
            stored_as: exceptions.iter().filter_map(stored_as).collect(),
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

    /// Compares each entry, and takes its object from the inventory.
    ///
    /// # Errors
    /// Returns the fault after which no further entry can be read.
    pub(super) fn compare(mut self, mut file: File) -> io::Result<()> {
        file.rewind()?;
        let meter = Meter::default();
        let mut archive = Archive::new(Metered {
            source: BufReader::new(file),
            meter: &meter,
        });
        let mut entries = archive.entries()?;
        let mut remaining = MAX_FILE_BYTES;
        let mut end = 0;
        loop {
            // The reader skips data that was not read.
            let position = meter.position.get().max(end);
            meter.limit.set(position.saturating_add(MAX_HEADER_BYTES));
            let Some(entry) = entries.next() else {
                break;
            };
            let mut entry = entry?;
            meter.limit.set(u64::MAX);
            remaining = remaining
                .checked_sub(entry.size())
                .ok_or_else(|| io::Error::other("its files are larger than those of any run"))?;
            end = (entry.raw_file_position()).saturating_add(entry.header().entry_size()?);
            self.entry(&mut entry)?;
        }
        let mut rest = Vec::new();
        let mut source = archive.into_inner().take(2 * END.len() as u64);
        source.read_to_end(&mut rest)?;
        if rest == END {
            Ok(())
        } else {
            Err(io::Error::other(
                "it does not end after two blocks of zeros",
            ))
        }
    }

    fn entry(&mut self, entry: &mut Entry<'_, impl Read>) -> io::Result<()> {
        let header = entry.header();
        let kinds = KINDS.iter().find(|(kind, _)| *kind == header.entry_type());
        let kind = kinds.map(|(_, kind)| *kind);
        let (mode, owner) = (header.mode()?, (header.uid()?, header.gid()?));
        let name = entry.path_bytes().into_owned();
        let path = printable(&name);
        let place = format!("{NAME}: {}", shown(&path));
        // tar(1) reads some pax headers that this reader ignores.
        let is_plain = self.add(name, kind == Some(FileKind::Directory))
            && owner == (OWNER, OWNER)
            && kind.is_some()
            && matches!(entry.pax_extensions(), Ok(None))
            && (kind == Some(FileKind::File) || entry.size() == 0);
        let Some(kind) = kind.filter(|_| is_plain) else {
            let line = format!("differs: {place}: no run writes such an entry");
            self.differences.add(line);
            return Ok(());
        };
        let path = match self.stored_as.get(path.as_str()) {
            Some(path) => (*path).to_owned(),
            None => path,
        };
        let mut found = Object {
            kind,
            bytes: entry.size(),
            content: String::new(),
            mode,
        };
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
