//! Dependencies of an ELF program: its loader, and the libraries that the loader opens.
//!
//! Files are read and never executed, unlike with ldd(1), which may execute the program. The search follows ld.so(8),
//! with one difference: the sandbox has no /etc/ld.so.cache. LD_LIBRARY_PATH therefore names the directories that the
//! host's loader finds by its configuration, or next to the program. Libraries opened later by dlopen(3) are in no
//! header, so that they are not found here.

mod elf;
mod search;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::path::{Path, PathBuf};

use model::quote::shown_path;
use thiserror::Error;

use elf::{ElfHeaders, ElfReadError};
use search::{Found, Search};

/// Maximum number of libraries of a program; more are a loop or a defect.
const MAX_LIBRARIES: usize = 1_000;

/// Loader and libraries of a program.
#[derive(Debug, Default)]
pub struct ElfDeps {
    /// Path of the program, as given.
    program: PathBuf,
    /// Loader that the program names; `None` for a static program.
    pub(crate) loader: Option<PathBuf>,
    /// Libraries found, in the order of the search.
    pub(crate) libraries: Vec<Library>,
    /// Libraries not found.
    pub(crate) missing: Vec<Missing>,
    /// Directories for LD_LIBRARY_PATH: the loader inside does not search them itself.
    pub(crate) directories: Vec<PathBuf>,
}

/// Library that was found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Library {
    /// Path that the loader opens.
    pub(crate) path: PathBuf,
    /// Name of the file that needs the library, escaped.
    pub(crate) needed_by: String,
}

/// Library that was not found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Missing {
    /// Name in the header, escaped.
    pub(crate) name: String,
    /// Name of the file that needs the library, escaped.
    pub(crate) needed_by: String,
}

/// Failure to read the dependencies of a program.
#[derive(Debug, Error)]
pub enum ElfError {
    /// open(2) or read(2) failed.
    #[error("cannot read the program {program}")]
    Read {
        /// Path of the program, escaped.
        program: String,
        /// Error of the system call.
        source: io::Error,
    },
    /// The program is a script.
    #[error("the program {program} is a script")]
    Script {
        /// Path of the program, escaped.
        program: String,
    },
    /// The program is not a 64-bit ELF file.
    #[error("the program {program} is not a 64-bit ELF file: {reason}")]
    NotElf {
        /// Path of the program, escaped.
        program: String,
        /// Reason, from the ELF parser.
        reason: String,
    },
}

impl ElfError {
    /// Returns a remedy, in one line.
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

/// Returns the loader that an ELF program names (PT_INTERP); `None` for any other program.
pub fn loader(program: &Path) -> Option<PathBuf> {
    ElfHeaders::read(program).ok()?.interpreter
}

impl ElfDeps {
    /// Reads the dependencies of a program, and those of its libraries in turn.
    ///
    /// # Errors
    /// The program is not a readable ELF file. A library that cannot be read counts as missing instead.
    pub fn of(program: &Path) -> Result<Self, ElfError> {
        let headers = ElfHeaders::read(program).map_err(|error| error.with_program(program))?;
        let search = Search::new(&headers, program);
        let mut deps = Self {
            program: program.to_owned(),
            loader: headers.interpreter.clone(),
            ..Self::default()
        };
        let mut seen = BTreeSet::new();
        let mut waiting = VecDeque::from([(program.to_owned(), headers)]);
        while let Some((path, headers)) = waiting.pop_front() {
            for name in &headers.needed {
                if search.is_in_loader(name)
                    || seen.len() >= MAX_LIBRARIES
                    || !seen.insert(name.clone())
                {
                    continue;
                }
                if let Some(found) = deps.add(name, &path, search.find(name, &path, &headers)) {
                    waiting.push_back(found);
                }
            }
        }
        Ok(deps)
    }

    /// Returns the file name of the program.
    pub(crate) fn name(&self) -> Option<&str> {
        self.program.file_name()?.to_str()
    }

    /// Records a library, and returns its headers, which are read next.
    fn add(
        &mut self,
        name: &str,
        asking: &Path,
        found: Option<Found>,
    ) -> Option<(PathBuf, ElfHeaders)> {
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
        Some((path, found.headers))
    }
}

impl ElfReadError {
    fn with_program(self, program: &Path) -> ElfError {
        let program = shown_path(program);
        match self {
            Self::Io(source) => ElfError::Read { program, source },
            Self::Script => ElfError::Script { program },
            Self::Malformed(reason) => ElfError::NotElf { program, reason },
        }
    }
}
