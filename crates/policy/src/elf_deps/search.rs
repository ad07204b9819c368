//! Where a loader looks for a library: ld.so(8), and the manual of musl for its own.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use object::elf::{EM_AARCH64, EM_X86_64, Machine};
use sys::read;

use super::elf::Asked;

/// Included files of /etc/ld.so.conf beyond this depth are a loop.
const DEEPEST_INCLUDE: usize = 8;

/// Names that musl's loader takes for itself, behind `lib`.
const MUSL_ITSELF: [&str; 7] = ["c.", "pthread.", "rt.", "m.", "dl.", "util.", "xnet."];

/// How one program's loader looks for libraries.
#[derive(Debug)]
pub(super) struct Search {
    machine: Machine,
    program: PathBuf,
    /// File name of the loader.
    loader: Option<OsString>,
    flavour: Flavour,
    /// Known to the loader itself.
    own: Vec<PathBuf>,
    /// Known to it by its configuration, which the sandbox does not have.
    configured: Vec<PathBuf>,
}

/// Whose loader it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flavour {
    Gnu,
    Musl,
}

/// A library that was found.
#[derive(Debug)]
pub(super) struct Found {
    /// As the loader will open it.
    pub(super) path: PathBuf,
    /// What it asks for in turn.
    pub(super) asked: Asked,
    /// Its directory, where the loader inside would not look for it by itself.
    pub(super) hidden_in: Option<PathBuf>,
}

impl Search {
    pub(super) fn new(asked: &Asked, program: &Path) -> Self {
        let name = asked.interpreter.as_deref().and_then(Path::file_name);
        let is_musl = name.is_some_and(|name| name.as_encoded_bytes().starts_with(b"ld-musl"));
        let flavour = if is_musl { Flavour::Musl } else { Flavour::Gnu };
        Self {
            machine: asked.machine,
            program: program.to_owned(),
            loader: name.map(OsStr::to_owned),
            flavour,
            own: own_directories(flavour, asked.machine),
            configured: match flavour {
                Flavour::Gnu => configured(Path::new("/etc/ld.so.conf"), 0),
                Flavour::Musl => Vec::new(),
            },
        }
    }

    /// Whether the loader is this library, or has it in itself.
    pub(super) fn is_loader_itself(&self, name: &str) -> bool {
        if self.loader.as_deref() == Some(OsStr::new(name)) {
            return true;
        }
        let itself = |rest: &str| MUSL_ITSELF.iter().any(|part| rest.starts_with(part));
        self.flavour == Flavour::Musl && name.strip_prefix("lib").is_some_and(itself)
    }

    /// The first file of the name that is for the same processor; `asking` is the file that needs it.
    pub(super) fn find(&self, name: &str, asking: &Path, asked: &Asked) -> Option<Found> {
        if name.contains('/') {
            let path = Path::new(name);
            return path.is_absolute().then(|| self.at(path, None)).flatten();
        }
        let by_run_path = asked.run_path.iter().find_map(|directory| {
            let origin = asking.parent()?.to_str()?;
            let moves = asking == self.program && directory.contains("ORIGIN");
            let directory = directory
                .replace("${ORIGIN}", origin)
                .replace("$ORIGIN", origin);
            // Without `..`, which a path rule must not have.
            let directory = fs::canonicalize(directory).ok()?;
            self.at(&directory.join(name), moves.then_some(directory.as_path()))
        });
        let by_itself = || {
            self.own
                .iter()
                .find_map(|own| self.at(&own.join(name), None))
        };
        let by_configuration = || {
            let mut directories = self.configured.iter();
            directories.find_map(|directory| self.at(&directory.join(name), Some(directory)))
        };
        by_run_path.or_else(by_itself).or_else(by_configuration)
    }

    fn at(&self, path: &Path, hidden_in: Option<&Path>) -> Option<Found> {
        let asked = Asked::read(path).ok()?;
        (asked.machine == self.machine).then(|| Found {
            path: path.to_owned(),
            asked,
            hidden_in: hidden_in.map(Path::to_owned),
        })
    }
}

/// The directories of the large distributions' loaders. Those of Debian have the triple in them.
fn own_directories(flavour: Flavour, machine: Machine) -> Vec<PathBuf> {
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

/// The directories that /etc/ld.so.conf names, and the files that it includes; see ldconfig(8).
fn configured(file: &Path, depth: usize) -> Vec<PathBuf> {
    let text = read::system_text(file);
    let lines = text
        .lines()
        .map(|line| line.split('#').next().unwrap_or_default().trim());
    let mut directories = Vec::new();
    for line in lines.filter(|line| !line.is_empty()) {
        match line.strip_prefix("include ") {
            Some(pattern) if depth < DEEPEST_INCLUDE => {
                let files = included(pattern.trim());
                directories.extend(files.iter().flat_map(|file| configured(file, depth + 1)));
            }
            Some(_) => {}
            None => directories.extend(fs::canonicalize(line)),
        }
    }
    directories
}

/// The files of an include line: one, or those with the same ending in a directory, as in `/etc/ld.so.conf.d/*.conf`.
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
