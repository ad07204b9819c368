//! Headers of one entry. `runner verify` makes them again and accepts no other bytes, because readers differ in what
//! they make of those.

use std::ops::Range;

use tar::{EntryType, GnuExtSparseHeader, Header};

use super::{BLOCK, OWNER};

/// Number of ranges in the main header.
const FIRST_RANGES: usize = 4;
/// Number of ranges in each further header.
const FURTHER_RANGES: usize = 21;

/// Properties of an entry that decide its headers.
pub(in crate::bundle) struct Headers<'h> {
    /// Any type but [`EntryType::GNUSparse`], which follows from the ranges.
    pub(in crate::bundle) kind: EntryType,
    pub(in crate::bundle) name: &'h [u8],
    /// Target of a link, else empty.
    pub(in crate::bundle) target: &'h [u8],
    pub(in crate::bundle) mode: u32,
    /// Seconds since the epoch.
    pub(in crate::bundle) mtime: u64,
    /// Size of a regular file, else 0.
    pub(in crate::bundle) size: u64,
    /// Ranges of a regular file that have data.
    pub(in crate::bundle) ranges: &'h [Range<u64>],
}

impl Headers<'_> {
    /// Encodes the main header with those before and after it.
    pub(in crate::bundle) fn blocks(&self) -> Vec<u8> {
        let mut header = Header::new_gnu();
        header.set_entry_type(self.kind);
        header.set_uid(OWNER);
        header.set_gid(OWNER);
        header.set_mtime(self.mtime);
        let further = with_ranges(&mut header, self.ranges, self.size);
        let mut blocks = with_names(&mut header, self.name, self.target);
        blocks.extend(sealed(&mut header, self.mode));
        blocks.extend(further);
        blocks
    }
}

/// Completes a header.
fn sealed(header: &mut Header, mode: u32) -> [u8; BLOCK as usize] {
    header.set_mode(mode);
    header.set_cksum();
    *header.as_bytes()
}

/// Sets the name and the target of a link. Returns the blocks before the header for those that do not fit into it.
fn with_names(header: &mut Header, name: &[u8], target: &[u8]) -> Vec<u8> {
    let mut blocks = Vec::new();
    let fields = header.as_old_mut();
    for (kind, field, text) in [
        (EntryType::GNULongName, &mut fields.name, name),
        (EntryType::GNULongLink, &mut fields.linkname, target),
    ] {
        for (field, byte) in field.iter_mut().zip(text) {
            *field = *byte;
        }
        if text.len() > field.len() {
            let mut long = Header::new_gnu();
            long.set_entry_type(kind);
            for (field, byte) in long.as_old_mut().name.iter_mut().zip(b"././@LongLink") {
                *field = *byte;
            }
            for set in [Header::set_uid, Header::set_gid, Header::set_mtime] {
                set(&mut long, 0);
            }
            long.set_size(text.len() as u64 + 1);
            blocks.extend(sealed(&mut long, 0o644));
            blocks.extend(text);
            blocks.resize((blocks.len() + 1).next_multiple_of(BLOCK as usize), 0);
        }
    }
    blocks
}

/// Sets the sizes of a file with data in these ranges. Returns the headers after the main one.
fn with_ranges(header: &mut Header, ranges: &[Range<u64>], size: u64) -> Vec<u8> {
    let mut ranges: Vec<_> = ranges
        .iter()
        .map(|one| (one.start, one.end - one.start))
        .collect();
    let stored = ranges.iter().map(|(_, length)| length).sum();
    header.set_size(stored);
    if stored == size {
        return Vec::new();
    }
    header.set_entry_type(EntryType::GNUSparse);
    // A range without data marks the end of the file.
    ranges.push((size, 0));
    let (first, further) = ranges.split_at(FIRST_RANGES.min(ranges.len()));
    if let Some(header) = header.as_gnu_mut() {
        header.set_real_size(size);
        header.set_is_extended(!further.is_empty());
        for (slot, (offset, length)) in header.sparse.iter_mut().zip(first) {
            slot.set_offset(*offset);
            slot.set_length(*length);
        }
    }
    let mut blocks = Vec::new();
    let mut further = further.chunks(FURTHER_RANGES).peekable();
    while let Some(ranges) = further.next() {
        let mut header = GnuExtSparseHeader::new();
        header.set_is_extended(further.peek().is_some());
        for (slot, (offset, length)) in header.sparse_mut().iter_mut().zip(ranges) {
            slot.set_offset(*offset);
            slot.set_length(*length);
        }
        blocks.extend(header.as_bytes());
    }
    blocks
}
