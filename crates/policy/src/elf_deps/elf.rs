//! What the headers of one ELF file ask for. They are read as the loader reads them, by segments: a stripped file
//! has them too. See elf(5).

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

/// What one file asks for.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    /// The processor that it is for.
    pub(super) machine: Machine,
    /// Its loader.
    pub(super) interpreter: Option<PathBuf>,
    /// Names of libraries, in their order.
    pub(super) needed: Vec<String>,
    /// Directories to look in, with `$ORIGIN` as it stands; DT_RUNPATH, or DT_RPATH where there is none.
    pub(super) run_path: Vec<String>,
}

/// Why a file cannot be read.
#[derive(Debug)]
pub(super) enum Unread {
    Io(io::Error),
    Script,
    Malformed(String),
}

type Header = FileHeader64<Endianness>;

impl Asked {
    /// Reads the headers of a file, and no more of it.
    pub(super) fn read(path: &Path) -> Result<Self, Unread> {
        // A FIFO is not waited for.
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
            .open(path)
            .map_err(Unread::Io)?;
        if !file.metadata().map_err(Unread::Io)?.is_file() {
            return Err(Unread::Malformed("it is no regular file".into()));
        }
        let data = ReadCache::new(file);
        if (&data).read_bytes_at(0, 2) == Ok(b"#!") {
            return Err(Unread::Script);
        }
        Self::from_headers(&data).map_err(|error| Unread::Malformed(error.to_string()))
    }

    fn from_headers<'data, R: ReadRef<'data>>(data: R) -> read::Result<Self> {
        let header = Header::parse(data)?;
        let endian = header.endian()?;
        let segments = header.program_headers(endian, data)?;
        let mut asked = Self {
            machine: header.e_machine(endian),
            interpreter: None,
            needed: Vec::new(),
            run_path: Vec::new(),
        };
        for segment in segments {
            if let Some(path) = segment.interpreter(endian, data)? {
                asked.interpreter = Some(OsStr::from_bytes(path).into());
            }
            if let Some(entries) = segment.dynamic(endian, data)? {
                let entries: Vec<(DynamicTag, u64)> = entries
                    .iter()
                    .map(|entry| (entry.tag(endian), entry.val(endian)))
                    .take_while(|(tag, _)| *tag != object::elf::DT_NULL)
                    .collect();
                let at = |address| file_offset(segments, endian, address);
                asked.take_names(&Names::new(&entries, at, data), &entries);
            }
        }
        Ok(asked)
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

/// The names that the dynamic entries point to.
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

    /// Names that are no UTF-8 cannot be written into a policy, and are left out.
    fn of(&self, entries: &[(DynamicTag, u64)], wanted: DynamicTag) -> Vec<String> {
        let wanted = entries.iter().filter(|(tag, _)| *tag == wanted);
        let names = wanted.filter_map(|(_, offset)| self.0.get(u32::try_from(*offset).ok()?).ok());
        names
            .filter_map(|name| std::str::from_utf8(name).ok())
            .map(str::to_owned)
            .collect()
    }
}

/// Where in the file an address of the loaded program stands.
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
