//! Toolchains: follows a program to the directories that its start needs, anew on each machine.
//!
//! Follows links name by name, first lines of scripts, env(1), `pyvenv.cfg`, launchers in `node_modules/.bin`, and shims
//! of version managers. Reads files only, and starts no program. Shows the root of each toolchain by one rule, unless
//! the root is wider than a toolchain.

mod shims;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};

use model::case::{Access, PathRule, Presence};
use model::evidence::Sensitive;
use model::quote::shown_path;
use policy::may_be_shown;
use thiserror::Error;

use crate::audit::inside;
use crate::home_dirs::{HomeDirs, spellings};
use crate::shebang::{MAX_SCRIPTS, Shebang, command_of_env, first_line, small_text};

/// Largest number of links that are followed from one file (MAXSYMLINKS of linux/namei.h).
const MAX_LINKS: usize = 40;
/// Configuration of a virtual environment of Python, in its root.
pub(crate) const VENV: &str = "pyvenv.cfg";
/// Directory of the packages of Node.
const PACKAGES: &str = "node_modules";

/// A directory that is too wide, or too private, to be shown for a program in it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "{} is not shown for a program in it, because it is {why}",
    shown_path(directory)
)]
pub(crate) struct TooWide {
    pub(crate) directory: PathBuf,
    pub(crate) why: &'static str,
}

/// Facts of the machine that decide where a name leads.
pub(crate) struct Machine<'a> {
    /// PATH of the program, or of the caller.
    pub(crate) search_path: Option<&'a OsStr>,
    /// Directory whose files select a version: `.python-version`, `package.json`.
    pub(crate) directory: &'a Path,
    pub(crate) home_dirs: HomeDirs,
    /// Reads a variable of the caller.
    pub(crate) variable: &'a dyn Fn(&str) -> Option<OsString>,
}

/// Parts of the machine that the start of a program needs.
#[derive(Debug, Default)]
pub(crate) struct Toolchain {
    /// Roots to show, beside those that the given rules show.
    pub(crate) rules: Vec<PathRule>,
    /// Directories for PATH, in which env(1) finds the interpreters.
    pub(crate) search: Vec<PathBuf>,
    /// Interpreters that env(1) starts, by their paths inside.
    pub(crate) interpreters: Vec<PathBuf>,
    /// Roots that are not shown.
    pub(crate) refused: Vec<TooWide>,
}

/// Follows the program at `path`, of which `rules` show some parts already.
pub(crate) fn follow(path: &Path, rules: &[PathRule], machine: &Machine<'_>) -> Toolchain {
    let mut walk = Walk {
        machine,
        known: rules,
        program: shown_path(Path::new(path.file_name().unwrap_or_default())),
        followed: Vec::new(),
        found: Toolchain::default(),
    };
    walk.file(path, Part::Program, MAX_SCRIPTS);
    walk.found
}

/// Returns the file that a name or a shim leads to: the program of the selected version.
pub(crate) fn behind_shim(file: &Path, machine: &Machine<'_>) -> PathBuf {
    shims::behind(file, machine).unwrap_or_else(|| file.to_owned())
}

/// Root of the toolchain that an interpreter is installed in: the packages that hold a file, else the directory above
/// its `bin`, else its own directory.
pub(crate) fn root(file: &Path, home_dirs: &HomeDirs) -> Result<PathBuf, TooWide> {
    let own = file.parent().unwrap_or(file);
    let mut candidates = [packages(file), above_bin(file), Some(own)].into_iter();
    let mut first = None;
    let found = candidates.by_ref().flatten().find(|root| {
        let refused = too_wide(root, home_dirs).or_else(|| open_to_others(root));
        let is_open = refused.is_none();
        first = first.take().or(refused);
        is_open
    });
    match (found, first) {
        (Some(root), _) => Ok(root.to_owned()),
        (None, Some(refused)) => Err(refused),
        (None, None) => Ok(own.to_owned()),
    }
}

/// Refuses a root that every user can write to: others could put programs there.
fn open_to_others(directory: &Path) -> Option<TooWide> {
    let status = fs::metadata(directory).ok()?;
    (status.permissions().mode() & libc::S_IWOTH != 0).then(|| TooWide {
        directory: directory.to_owned(),
        why: "a directory that every user can write to",
    })
}

/// Returns the directory above the `bin` that holds a file.
pub(crate) fn above_bin(file: &Path) -> Option<&Path> {
    file.parent()
        .filter(|bin| bin.ends_with("bin"))
        .and_then(Path::parent)
}

/// Refuses a directory that holds more than one toolchain, or files that no program shall see unasked.
pub(crate) fn too_wide(directory: &Path, home_dirs: &HomeDirs) -> Option<TooWide> {
    let exists = |path: &Path| fs::symlink_metadata(path).is_ok();
    // Links in its name may lead to another kind of directory.
    let names = spellings(directory);
    let any = |is_of: &dyn Fn(&Path) -> bool| names.iter().any(|name| is_of(name));
    let why = match () {
        () if any(&|name| name.components().count() <= 2) => {
            "a directory of the system, or the root"
        }
        () if any(&|name| !may_be_shown(name)) => "never shown",
        () if home_dirs.are_in(directory) => "a whole home, or holds one",
        () if any(&|name| Sensitive::of_tree(name, exists).is_some()) => {
            "a place of keys or personal data, or holds one"
        }
        () => return None,
    };
    Some(TooWide {
        directory: directory.to_owned(),
        why,
    })
}

/// Part of a program's start.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// The program itself, whose own directory is shown anyway.
    Program,
    Interpreter,
}

struct Walk<'a> {
    machine: &'a Machine<'a>,
    known: &'a [PathRule],
    /// Name of the program, escaped.
    program: String,
    /// Files that were followed, as part of the start.
    followed: Vec<(PathBuf, Part)>,
    found: Toolchain,
}

impl Walk<'_> {
    fn file(&mut self, file: &Path, part: Part, depth: usize) {
        let Some(depth) = depth.checked_sub(1) else {
            return;
        };
        // Environments that lead to each other would be followed along every way.
        let place = (file.to_owned(), part);
        if self.followed.contains(&place) {
            return;
        }
        self.followed.push(place);
        let shebang = first_line(file).ok().and_then(|line| Shebang::parse(&line));
        let is_script = shebang.is_some();
        let names = names(file);
        for name in &names {
            if part == Part::Interpreter || is_installed(name, is_script) {
                self.show(name);
            }
        }
        for name in &names {
            self.virtual_environment(name, depth);
        }
        if let Some(shebang) = shebang {
            self.interpreter(&shebang, depth);
        }
        let is_launcher = |name: &PathBuf| {
            let directory = name.parent();
            directory.is_some_and(|bin| bin.ends_with(Path::new(PACKAGES).join(".bin")))
        };
        // pnpm writes a shell script there, which starts `node`.
        if is_script && names.iter().any(is_launcher) {
            self.command(OsStr::new("node"), depth);
        }
    }

    fn interpreter(&mut self, shebang: &Shebang, depth: usize) {
        let interpreter = &shebang.interpreter;
        if !interpreter.is_absolute() {
            return;
        }
        if interpreter.file_name() != Some(OsStr::new("env")) {
            return self.file(interpreter, Part::Interpreter, depth);
        }
        match command_of_env(&shebang.argument) {
            Some(command) if Path::new(command).is_absolute() => {
                let command = Path::new(command);
                self.found.interpreters.push(command.to_owned());
                self.file(command, Part::Interpreter, depth);
            }
            Some(command) => self.command(command, depth),
            None => {}
        }
    }

    /// Follows a command that is looked up in PATH.
    fn command(&mut self, command: &OsStr, depth: usize) {
        let Some(found) = in_path(command, self.machine.search_path) else {
            return;
        };
        let file = behind_shim(&found, self.machine);
        self.file(&file, Part::Interpreter, depth);
        let rules = self.rules();
        let real = fs::canonicalize(&file).unwrap_or_else(|_| file.clone());
        let path = inside(&file, &rules).or_else(|| inside(&real, &rules));
        let Some(path) = path else { return };
        if self.found.interpreters.contains(&path) {
            return;
        }
        let directory = path.parent().map(Path::to_owned);
        self.found.search.extend(directory);
        self.found.interpreters.push(path);
    }

    /// Follows `home` of `pyvenv.cfg`, the directory of the Python that an environment was made from.
    fn virtual_environment(&mut self, file: &Path, depth: usize) {
        let Some(root) = above_bin(file) else { return };
        let Ok(text) = small_text(&root.join(VENV)) else {
            return;
        };
        let keys = text.lines().filter_map(|line| line.split_once('='));
        let mut homes = keys.filter(|(key, _)| key.trim() == "home");
        let home = homes.next().map(|(_, home)| Path::new(home.trim()));
        let Some(home) = home.filter(|home| home.is_absolute()) else {
            return;
        };
        let of_base = ["python3", "python"].map(|name| home.join(name));
        // The file is the project's, so without a Python it names any directory.
        if let Some(python) = of_base.iter().find(|python| is_executable(python)) {
            self.file(python, Part::Interpreter, depth);
        }
        // A relocatable script starts the Python beside it.
        let own = root.join("bin/python");
        if own != file {
            self.file(&own, Part::Interpreter, depth);
        }
    }

    fn show(&mut self, file: &Path) {
        // By this very name: each link on the way must exist inside.
        let mut rules = self.known.iter().chain(&self.found.rules);
        if rules.any(|rule| file.starts_with(&rule.path)) {
            return;
        }
        match root(file, &self.machine.home_dirs) {
            Ok(path) => self.found.rules.push(PathRule {
                path,
                access: Access::ReadExecute,
                presence: Presence::Required,
                reason: format!("toolchain that {} leads to", self.program),
            }),
            Err(refused) if self.found.refused.contains(&refused) => {}
            Err(refused) => self.found.refused.push(refused),
        }
    }

    fn rules(&self) -> Vec<PathRule> {
        [self.known, &self.found.rules].concat()
    }
}

/// Outermost `node_modules` that holds a file, or the prefix of the Node that it belongs to.
fn packages(file: &Path) -> Option<&Path> {
    let above = file.ancestors().skip(1);
    let packages = above
        .filter(|directory| directory.ends_with(PACKAGES))
        .last()?;
    let prefix = packages.parent().filter(|lib| lib.ends_with("lib"));
    let prefix = prefix.and_then(Path::parent);
    Some(
        prefix
            .filter(|prefix| prefix.join("bin/node").exists())
            .unwrap_or(packages),
    )
}

/// True for a program that needs more of its toolchain than its own directory.
fn is_installed(file: &Path, is_script: bool) -> bool {
    let has = |name: &str| above_bin(file).is_some_and(|root| root.join(name).exists());
    packages(file).is_some() || has(VENV) || has("bin/node") || (!is_script && has("lib"))
}

/// Returns a file's path, that of each link from there to the real file, and the path without any link.
fn names(file: &Path) -> Vec<PathBuf> {
    let mut all = vec![file.to_owned()];
    let mut last = file.to_owned();
    for _ in 0..MAX_LINKS {
        let Ok(target) = fs::read_link(&last) else {
            break;
        };
        let directory = last.parent().unwrap_or(Path::new("/"));
        last = plain(&directory.join(target));
        all.push(last.clone());
    }
    all.extend(fs::canonicalize(file));
    let mut seen = Vec::new();
    all.retain(|name| {
        !seen.contains(name) && {
            seen.push(name.clone());
            true
        }
    });
    all
}

/// Resolves `..`, which after a link leaves the link's target. Other links stay.
fn plain(path: &Path) -> PathBuf {
    if !path.components().any(|part| part == Component::ParentDir) {
        return path.components().collect();
    }
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
        return path.to_owned();
    };
    fs::canonicalize(directory).map_or(path.to_owned(), |directory| directory.join(name))
}

/// Finds an executable file in PATH, as execvp(3) does.
pub(crate) fn in_path(command: &OsStr, search_path: Option<&OsStr>) -> Option<PathBuf> {
    let directories = search_path.into_iter().flat_map(std::env::split_paths);
    let mut files = directories
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join(command));
    files.find(|file| is_executable(file))
}

fn is_executable(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests;
