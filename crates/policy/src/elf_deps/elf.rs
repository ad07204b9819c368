//! Dependencies in the headers of one ELF file (elf(5)).
//!
//! They are read by segments, as the loader does, because a stripped file has no sections.

use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use nix::libc;
use object::Endianness;
use object::elf::{
    DT_NEEDED, DT_RPATH, DT_RUNPATH, DT_STRSZ, DT_STRTAB, DynamicTag, FileHeader64, Machine,
};
use object::read::elf::{Dyn as _, FileHeader as _, ProgramHeader as _};
use object::read::{self, ReadCache, ReadRef, StringTable};

/// Dependencies in the headers of one file.
#[derive(Clone, Debug)]
pub(super) struct ElfHeaders {
    /// Processor of the file.
    pub(super) machine: Machine,
    /// Path of the loader (PT_INTERP).
    pub(super) interpreter: Option<PathBuf>,
    /// Names of libraries (DT_NEEDED), in their order.
    pub(super) needed: Vec<String>,
    /// Directories to search (DT_RUNPATH, or DT_RPATH without one), with `$ORIGIN` not replaced.
    pub(super) run_path: Vec<String>,
}

/// Failure to read a file.
#[derive(Debug)]
pub(super) enum ElfReadError {
    Io(io::Error),
    Script,
    Malformed(String),
}

type Header = FileHeader64<Endianness>;

impl ElfHeaders {
    /// Reads the headers of a file only.
    pub(super) fn read(path: &Path) -> Result<Self, ElfReadError> {
        // Without O_NONBLOCK, opening a FIFO waits for a writer (fifo(7)).
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
            .open(path)
            .map_err(ElfReadError::Io)?;
        if !file.metadata().map_err(ElfReadError::Io)?.is_file() {
            return Err(ElfReadError::Malformed("it is not a regular file".into()));
        }
        let data = ReadCache::new(file);
        if (&data).read_bytes_at(0, 2) == Ok(b"#!") {
            return Err(ElfReadError::Script);
        }
        Self::from_headers(&data).map_err(|error| ElfReadError::Malformed(error.to_string()))
    }

    fn from_headers<'data, R: ReadRef<'data>>(data: R) -> read::Result<Self> {
        let header = Header::parse(data)?;
        let endian = header.endian()?;
        let segments = header.program_headers(endian, data)?;
        let mut headers = Self {
            machine: header.e_machine(endian),
            interpreter: None,
            needed: Vec::new(),
            run_path: Vec::new(),
        };
        for segment in segments {
            if let Some(path) = segment.interpreter(endian, data)? {
                headers.interpreter = Some(OsStr::from_bytes(path).into());
            }
            if let Some(entries) = segment.dynamic(endian, data)? {
                let entries: Vec<(DynamicTag, u64)> = entries
                    .iter()
                    .map(|entry| (entry.tag(endian), entry.val(endian)))
                    .take_while(|(tag, _)| *tag != object::elf::DT_NULL)
                    .collect();
                let at = |address| file_offset(segments, endian, address);
                headers.take_names(&Names::new(&entries, at, data), &entries);
            }
        }
        Ok(headers)
    }

    fn take_names<'data, R: ReadRef<'data>>(
        &mut self,
        names: &Names<'data, R>,
        entries: &[(DynamicTag, u64)],
    ) {
        self.needed = names.of(entries, DT_NEEDED);
        let mut paths = names.of(entries, DT_RUNPATH);
        if paths.is_empty() {
            paths = names.of(entries, DT_RPATH);
        }
        let directories = paths.iter().flat_map(|path| path.split(':'));
        self.run_path = directories
            .filter(|directory| !directory.is_empty())
            .map(str::to_owned)
            .collect();
    }
}

/// String table of the dynamic entries.
struct Names<'data, R: ReadRef<'data>>(StringTable<'data, R>);

impl<'data, R: ReadRef<'data>> Names<'data, R> {
    fn new(entries: &[(DynamicTag, u64)], at: impl Fn(u64) -> Option<u64>, data: R) -> Self {
        let value = |wanted| {
            let entry = entries.iter().find(|(tag, _)| *tag == wanted);
            entry.map(|(_, value)| *value)
        };
        let start = value(DT_STRTAB).and_then(at);
        let table = start
            .zip(value(DT_STRSZ))
            .map(|(start, size)| StringTable::new(data, start, start.saturating_add(size)));
        Self(table.unwrap_or_default())
    }

    /// Returns the names of the entries with a tag. Names that are not UTF-8 are left out, because a policy is UTF-8.
    fn of(&self, entries: &[(DynamicTag, u64)], wanted: DynamicTag) -> Vec<String> {
        let wanted = entries.iter().filter(|(tag, _)| *tag == wanted);
        let names = wanted.filter_map(|(_, offset)| self.0.get(u32::try_from(*offset).ok()?).ok());
        names
            .filter_map(|name| std::str::from_utf8(name).ok())
            .map(str::to_owned)
            .collect()
    }
}

/// Returns the file offset of an address of the loaded program.
fn file_offset(
    segments: &[<Header as read::elf::FileHeader>::ProgramHeader],
    endian: Endianness,
    address: u64,
) -> Option<u64> {
    segments
        .iter()
        .filter(|segment| segment.p_type(endian) == object::elf::PT_LOAD)
        .find_map(|segment| {
            let inside = address.checked_sub(segment.p_vaddr(endian))?;
            let here = inside < segment.p_filesz(endian);
            here.then(|| segment.p_offset(endian).checked_add(inside))?
        })
}
