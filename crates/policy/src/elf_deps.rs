//! What a program asks of the host: its loader, and the libraries that the loader will look for.
//!
//! Files are read and never run: ldd(1) may run what it is asked about. The search follows ld.so(8), with one
//! difference. The sandbox has no /etc/ld.so.cache, so what the host's loader finds by its configuration, or beside
//! the program, is found inside by LD_LIBRARY_PATH. What a program opens later by dlopen(3) stands in no header.

mod elf;
mod search;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::path::{Path, PathBuf};

use model::quote::shown_path;
use thiserror::Error;

use elf::{Asked, Unread};
use search::{Found, Search};

/// Libraries beyond this many are a loop or a slip.
const MOST_LIBRARIES: usize = 1_000;

/// What a program asks of the host.
#[derive(Debug, Default)]
pub struct ElfDeps {
    /// The program, as it was named.
    program: PathBuf,
    /// Its loader, as the program names it; a static program has none.
    pub(crate) loader: Option<PathBuf>,
    /// What was found, in the order in which the loader will look.
    pub(crate) libraries: Vec<Library>,
    /// What was not found.
    pub(crate) missing: Vec<Missing>,
    /// Where the loader inside must look beside its own directories.
    pub(crate) directories: Vec<PathBuf>,
}

/// A library that was found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Library {
    /// As the loader will open it.
    pub(crate) path: PathBuf,
    /// Name of the file that needs it.
    pub(crate) needed_by: String,
}

/// A library that was not found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Missing {
    /// As it is asked for.
    pub(crate) name: String,
    /// Name of the file that needs it.
    pub(crate) needed_by: String,
}

/// Why it cannot be said what a program needs.
#[derive(Debug, Error)]
pub enum ElfError {
    /// open(2) or read(2) failed.
    #[error("cannot read the program {program}")]
    Read {
        /// Escaped.
        program: String,
        /// From the system.
        source: io::Error,
    },
    /// A script.
    #[error("the program {program} is a script")]
    Script {
        /// Escaped.
        program: String,
    },
    /// Anything else than a 64-bit ELF file.
    #[error("the program {program} is no 64-bit ELF file: {reason}")]
    NotElf {
        /// Escaped.
        program: String,
        /// From the reader of such files.
        reason: String,
    },
}

impl ElfError {
    /// What the user can do about it, in one line.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Read { .. } => None,
            Self::Script { .. } => Some(
                "name the interpreter with --client, and add the script itself to [[paths]] afterwards",
            ),
            Self::NotElf { .. } => Some("leave --client out and fill in [[paths]] by hand"),
        }
    }
}

impl ElfDeps {
    /// Reads a program and whatever it needs, and what that needs in turn.
    ///
    /// # Errors
    /// The program itself is no ELF file that can be read. A library that cannot be had is only missing.
    pub fn of(program: &Path) -> Result<Self, ElfError> {
        let asked = Asked::read(program).map_err(|unread| unread.told(program))?;
        let search = Search::new(&asked, program);
        let mut needs = Self {
            program: program.to_owned(),
            loader: asked.interpreter.clone(),
            ..Self::default()
        };
        let mut seen = BTreeSet::new();
        let mut waiting = VecDeque::from([(program.to_owned(), asked)]);
        while let Some((path, asked)) = waiting.pop_front() {
            for name in &asked.needed {
                if search.is_loader_itself(name)
                    || seen.len() >= MOST_LIBRARIES
                    || !seen.insert(name.clone())
                {
                    continue;
                }
                if let Some(found) = needs.add(name, &path, search.find(name, &path, &asked)) {
                    waiting.push_back(found);
                }
            }
        }
        Ok(needs)
    }

    /// The program's own name.
    pub(crate) fn name(&self) -> Option<&str> {
        self.program.file_name()?.to_str()
    }

    /// Notes where a library is; gives what is to be read next.
    fn add(&mut self, name: &str, asking: &Path, found: Option<Found>) -> Option<(PathBuf, Asked)> {
        let needed_by = shown_path(Path::new(asking.file_name().unwrap_or_default()));
        let Some(found) = found else {
            let name = shown_path(Path::new(name));
            self.missing.push(Missing { name, needed_by });
            return None;
        };
        let path = found.path;
        self.libraries.push(Library {
            path: path.clone(),
            needed_by,
        });
        if let Some(directory) = found.hidden_in
            && !self.directories.contains(&directory)
        {
            self.directories.push(directory);
        }
        Some((path, found.asked))
    }
}

impl Unread {
    fn told(self, program: &Path) -> ElfError {
        let program = shown_path(program);
        match self {
            Self::Io(source) => ElfError::Read { program, source },
            Self::Script => ElfError::Script { program },
            Self::Malformed(reason) => ElfError::NotElf { program, reason },
        }
    }
}
