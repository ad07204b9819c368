//! Library search of the loaders: glibc as in ld.so(8), musl as in its manual.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use object::elf::{EM_AARCH64, EM_X86_64, Machine};
use sys::read;

use super::elf::ElfHeaders;

/// Maximum depth of includes in /etc/ld.so.conf; deeper ones are a loop.
const MAX_INCLUDE_DEPTH: usize = 8;

/// Libraries that musl's loader contains, without the prefix `lib`.
const MUSL_CONTAINED: [&str; 7] = ["c.", "pthread.", "rt.", "m.", "dl.", "util.", "xnet."];

/// Library search of one program's loader.
#[derive(Debug)]
pub(super) struct Search {
    machine: Machine,
    program: PathBuf,
    /// File name of the loader.
    loader: Option<OsString>,
    flavour: Flavour,
    /// Default directories of the loader.
    default_dirs: Vec<PathBuf>,
    /// Directories of its configuration, which the sandbox does not have.
    configured: Vec<PathBuf>,
}

/// C library of the loader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flavour {
    Gnu,
    Musl,
}

/// Library that was found.
#[derive(Debug)]
pub(super) struct Found {
    /// Path that the loader opens.
    pub(super) path: PathBuf,
    /// Dependencies of the library.
    pub(super) headers: ElfHeaders,
    /// Directory of the library, if the loader inside does not search there itself.
    pub(super) hidden_in: Option<PathBuf>,
}

impl Search {
    pub(super) fn new(headers: &ElfHeaders, program: &Path) -> Self {
        let name = headers.interpreter.as_deref().and_then(Path::file_name);
        let is_musl = name.is_some_and(|name| name.as_encoded_bytes().starts_with(b"ld-musl"));
        let flavour = if is_musl { Flavour::Musl } else { Flavour::Gnu };
        Self {
            machine: headers.machine,
            program: program.to_owned(),
            loader: name.map(OsStr::to_owned),
            flavour,
            default_dirs: default_directories(flavour, headers.machine),
            configured: match flavour {
                Flavour::Gnu => configured(Path::new("/etc/ld.so.conf"), 0),
                Flavour::Musl => Vec::new(),
            },
        }
    }

    /// Returns true if this library is the loader or is contained in it.
    pub(super) fn is_in_loader(&self, name: &str) -> bool {
        if self.loader.as_deref() == Some(OsStr::new(name)) {
            return true;
        }
        let is_contained = |rest: &str| MUSL_CONTAINED.iter().any(|part| rest.starts_with(part));
        self.flavour == Flavour::Musl && name.strip_prefix("lib").is_some_and(is_contained)
    }

    /// Finds the first file of the name for the same processor. `asking` is the file that needs the library.
    pub(super) fn find(&self, name: &str, asking: &Path, headers: &ElfHeaders) -> Option<Found> {
        if name.contains('/') {
            let path = Path::new(name);
            return path.is_absolute().then(|| self.at(path, None)).flatten();
        }
        let by_run_path = headers.run_path.iter().find_map(|directory| {
            let origin = asking.parent()?.to_str()?;
            // Inside the sandbox, the program has another path, so its `$ORIGIN` differs.
            let is_moved = asking == self.program && directory.contains("ORIGIN");
            let directory = directory
                .replace("${ORIGIN}", origin)
                .replace("$ORIGIN", origin);
            // A path rule must not contain `..`.
            let directory = fs::canonicalize(directory).ok()?;
            self.at(
                &directory.join(name),
                is_moved.then_some(directory.as_path()),
            )
        });
        let by_default = || {
            self.default_dirs
                .iter()
                .find_map(|directory| self.at(&directory.join(name), None))
        };
        let by_configuration = || {
            let mut directories = self.configured.iter();
            directories.find_map(|directory| self.at(&directory.join(name), Some(directory)))
        };
        by_run_path.or_else(by_default).or_else(by_configuration)
    }

    fn at(&self, path: &Path, hidden_in: Option<&Path>) -> Option<Found> {
        let headers = ElfHeaders::read(path).ok()?;
        (headers.machine == self.machine).then(|| Found {
            path: path.to_owned(),
            headers,
            hidden_in: hidden_in.map(Path::to_owned),
        })
    }
}

/// Default directories of the loaders of large distributions. Those of Debian contain the target triple.
fn default_directories(flavour: Flavour, machine: Machine) -> Vec<PathBuf> {
    let names: &[&str] = match (flavour, machine) {
        (Flavour::Musl, _) => &["/lib", "/usr/local/lib", "/usr/lib"],
        (Flavour::Gnu, EM_X86_64) => &[
            "/lib/x86_64-linux-gnu",
            "/usr/lib/x86_64-linux-gnu",
            "/lib64",
            "/usr/lib64",
            "/lib",
            "/usr/lib",
        ],
        (Flavour::Gnu, EM_AARCH64) => &[
            "/lib/aarch64-linux-gnu",
            "/usr/lib/aarch64-linux-gnu",
            "/lib64",
            "/usr/lib64",
            "/lib",
            "/usr/lib",
        ],
        (Flavour::Gnu, _) => &["/lib64", "/usr/lib64", "/lib", "/usr/lib"],
    };
    names.iter().map(PathBuf::from).collect()
}

/// Returns the directories in /etc/ld.so.conf and its included files (ldconfig(8)).
fn configured(file: &Path, depth: usize) -> Vec<PathBuf> {
    let text = read::system_text(file);
    let lines = text
        .lines()
        .map(|line| line.split('#').next().unwrap_or_default().trim());
    let mut directories = Vec::new();
    for line in lines.filter(|line| !line.is_empty()) {
        match line.strip_prefix("include ") {
            Some(pattern) if depth < MAX_INCLUDE_DEPTH => {
                let files = included(pattern.trim());
                directories.extend(files.iter().flat_map(|file| configured(file, depth + 1)));
            }
            Some(_) => {}
            None => directories.extend(fs::canonicalize(line)),
        }
    }
    directories
}

/// Expands an include line: one file, or the files of a directory with one suffix, as in `/etc/ld.so.conf.d/*.conf`.
fn included(pattern: &str) -> Vec<PathBuf> {
    let Some((directory, ending)) = pattern.split_once('*') else {
        return vec![PathBuf::from(pattern)];
    };
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.to_string_lossy().ends_with(ending))
        .collect();
    files.sort();
    files
}
