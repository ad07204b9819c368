//! Check that a program can start inside, before a run: its interpreter or loader, and what that needs.
//!
//! Follows execve(2): the first line of a script names an interpreter, the headers of an ELF file name a loader. Also
//! follows env(1), shims of version managers, and Python to its standard library. Passes each program that it does not
//! understand, because only the kernel decides.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use model::audit::ProgramLocation;
use model::case::Tier;
use model::quote::{quoted, shown_path};
use model::report::Purpose;
use model::text::printable;
use policy::elf_deps;
use report::Format;
use sandbox::plan::Plan;
use thiserror::Error;

use crate::home_dirs::HomeDirs;
use crate::lookups::{self, Inside};
use crate::request::RunRequest;
use crate::shebang::{MAX_SCRIPTS, Shebang, command_of_env, first_line};
use crate::toolchain::{VENV, above_bin, root, too_wide};
use crate::workload::Workload;

const LOADER: &str = "loader";

/// Table of path rules for the client of a profile.
const OF_PROFILE: &str = "[[paths]] of the profile";
/// Table of path rules for a client inside a case.
const OF_CASE: &str = "[[client.paths]] of the case (`--read` of `runner init`)";
/// Key of a case whose client does not follow its toolchain.
const UNFOLLOWED: &str = "toolchain = \"follow\"";

/// A program that cannot start.
#[derive(Debug, PartialEq, Eq, Error)]
#[error("cannot start {program}: {need}")]
pub(crate) struct NotStartable {
    /// Path of the program, escaped.
    program: String,
    /// The missing object.
    pub(crate) need: String,
    /// Advice for the user, in one line.
    pub(crate) hint: String,
}

/// The world of the program.
struct Surroundings<'a> {
    /// Looks for a path inside.
    inside: &'a dyn Fn(&Path) -> Inside,
    /// Environment inside, each entry as `NAME=value`.
    environment: &'a [OsString],
    /// PATH of the caller.
    callers_path: Option<OsString>,
    purpose: Purpose,
    home_dirs: HomeDirs,
    /// Table of path rules, or the key that adds them, for a judged program.
    rules: &'static str,
}

/// Refuses a program that cannot start, with one message in place of a report. A case whose report a program or a
/// person reads later is run, because that report has to exist.
pub(crate) fn check(request: &RunRequest, plan: &Plan, file: &Path) -> Result<(), NotStartable> {
    let is_awaited = request.out.is_some()
        || request.baseline.is_some()
        || request
            .reports
            .iter()
            .any(|report| report.format != Format::Human);
    if request.workload.purpose() == Purpose::Judge && is_awaited {
        return Ok(());
    }
    diagnose(request, plan, file)
}

/// Finds the reason why a program cannot start. Returns success also if no reason is known.
pub(crate) fn diagnose(request: &RunRequest, plan: &Plan, file: &Path) -> Result<(), NotStartable> {
    let purpose = request.workload.purpose();
    let inside = |path: &Path| match plan.tier {
        Tier::Namespace => lookups::look(path, &plan.root.binds),
        // Links are followed there, and Landlock judges the object.
        Tier::Inherited => match fs::canonicalize(path) {
            Ok(real)
                if plan
                    .root
                    .binds
                    .iter()
                    .any(|bind| real.starts_with(&bind.source)) =>
            {
                Inside::There
            }
            Ok(_) => Inside::Hidden,
            Err(_) => Inside::Absent,
        },
    };
    let path = match &request.workload {
        Workload::Program(program) | Workload::Inline { program, .. } => match &program.place {
            ProgramLocation::Own { path } => path,
            ProgramLocation::Alone => file,
        },
        Workload::Client { .. } => file,
    };
    let surroundings = Surroundings {
        inside: &inside,
        environment: &plan.client.environment,
        callers_path: std::env::var_os("PATH"),
        purpose,
        home_dirs: HomeDirs::of_caller(),
        rules: match request.workload {
            Workload::Inline { ref case, .. } => match &case.client {
                Some(client) if client.toolchain.is_none() => UNFOLLOWED,
                Some(_) | None => OF_CASE,
            },
            Workload::Client { .. } | Workload::Program(_) => OF_PROFILE,
        },
    };
    surroundings.check(path)
}

impl Surroundings<'_> {
    /// Checks the program at `path`, as the user knows it.
    fn check(&self, path: &Path) -> Result<(), NotStartable> {
        let refused = |(need, hint)| NotStartable {
            program: shown_path(path),
            need,
            hint,
        };
        let mut program = path.to_owned();
        for _ in 0..MAX_SCRIPTS {
            let Ok(line) = first_line(&program) else {
                return Ok(());
            };
            let Some(shebang) = Shebang::parse(&line) else {
                self.loader(&program).map_err(refused)?;
                return self.standard_library(&program).map_err(refused);
            };
            self.shim(&program).map_err(refused)?;
            match self.interpreter(&program, &shebang).map_err(refused)? {
                Some(next) => program = next,
                None => return Ok(()),
            }
        }
        Ok(())
    }

    /// Finds the interpreter of a script; `None` if only the kernel knows.
    fn interpreter(
        &self,
        script: &Path,
        shebang: &Shebang,
    ) -> Result<Option<PathBuf>, (String, String)> {
        let Shebang {
            interpreter,
            argument,
        } = shebang;
        let named = [interpreter.as_os_str().as_bytes(), argument];
        if named.iter().any(|text| text.ends_with(b"\r")) {
            let line = [named[0], b" ", named[1]].concat();
            return Err((
                format!(
                    "its first line ends with a carriage return, so its interpreter is {}",
                    quoted(printable(&line).trim_end_matches(' '))
                ),
                format!("`sed -i 's/\\r$//' {}`", shown_path(script)),
            ));
        }
        if !interpreter.is_absolute() {
            return Ok(None);
        }
        self.require("interpreter", interpreter)?;
        if interpreter.file_name() != Some(OsStr::new("env")) {
            return Ok(Some(interpreter.clone()));
        }
        match command_of_env(argument) {
            Some(command) if command.as_bytes().contains(&b'/') => {
                let command = PathBuf::from(command);
                self.require("interpreter", &command)?;
                Ok(Some(command))
            }
            Some(command) => self.in_path(command).map(Some),
            None => Ok(None),
        }
    }

    /// Finds a command in PATH, as env(1) does.
    fn in_path(&self, command: &OsStr) -> Result<PathBuf, (String, String)> {
        let path = self.variable("PATH").unwrap_or_default();
        let mut inside = std::env::split_paths(path).map(|directory| directory.join(command));
        if let Some(found) = inside.find(|file| (self.inside)(file) == Inside::There) {
            return Ok(found);
        }
        let callers = self.callers_path.iter().flat_map(std::env::split_paths);
        let on_host = callers
            .map(|directory| directory.join(command))
            .find(|file| file.is_file());
        let need = format!(
            "its interpreter {} is not in the PATH of the sandbox, {}",
            quoted(&printable(command.as_bytes())),
            quoted(&printable(path.as_bytes())),
        );
        let hint = match on_host {
            None => {
                "install the interpreter below /usr, or name its directory with --read and in PATH"
                    .to_owned()
            }
            Some(file) => {
                let directory = shown_path(file.parent().unwrap_or(&file));
                let value = format!("PATH={directory}:{}", printable(path.as_bytes()));
                self.show(&self.roots(&file), Some(&value))
            }
        };
        Err((need, hint))
    }

    fn loader(&self, program: &Path) -> Result<(), (String, String)> {
        match elf_deps::loader(program) {
            Some(loader) => self.require(LOADER, &loader),
            None => Ok(()),
        }
    }

    /// Requires a path inside.
    fn require(&self, what: &str, path: &Path) -> Result<(), (String, String)> {
        let found = (self.inside)(path);
        let name = shown_path(path);
        match found {
            Inside::There => Ok(()),
            Inside::Absent => Err((
                format!("its {what} {name} does not exist"),
                format!("install {name}, or correct the program"),
            )),
            Inside::Hidden => {
                let hint = match self.purpose {
                    Purpose::Judge if self.rules == OF_PROFILE && what == LOADER => {
                        "`runner policy init profile NAME --client PROGRAM` prints the rules that show it and its libraries".to_owned()
                    }
                    Purpose::Judge if self.rules == OF_PROFILE && is_system(path) => {
                        "add /usr, /bin, /lib and /lib64 to [[paths]] of the profile; `runner policy show audit` has them".to_owned()
                    }
                    Purpose::Judge | Purpose::Audit => self.show(&self.roots(path), None),
                };
                Err((format!("its {what} {name} is not shown"), hint))
            }
        }
    }

    /// Requires the whole installation of a version manager for its shim, such as `.pyenv/shims/python3`.
    fn shim(&self, script: &Path) -> Result<(), (String, String)> {
        let directory = script
            .parent()
            .filter(|directory| directory.ends_with("shims"));
        let Some(root) = directory.and_then(Path::parent) else {
            return Ok(());
        };
        let versions = root.join("versions");
        if !versions.is_dir() || (self.inside)(&versions) == Inside::There {
            return Ok(());
        }
        let tool = root.file_name().unwrap_or_default().to_string_lossy();
        let tool = tool.trim_start_matches('.');
        let name = script.file_name().unwrap_or_default().to_string_lossy();
        Err((
            format!(
                "it is a shim of {tool}, whose directory {} is not shown",
                shown_path(root)
            ),
            format!(
                "name the program that `{tool} which {name}` prints, or {}",
                self.show(&[root.to_owned()], None)
            ),
        ))
    }

    /// Requires the standard library of a Python, which is beside its real file, and its virtual environment.
    fn standard_library(&self, program: &Path) -> Result<(), (String, String)> {
        let Ok(file) = fs::canonicalize(program) else {
            return Ok(());
        };
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let version = name.strip_prefix("python");
        if !version.is_some_and(|version| version.contains('.'))
            || self.variable("PYTHONHOME").is_some()
        {
            return Ok(());
        }
        let environment = above_bin(program).map(|root| root.join(VENV));
        let library = above_bin(&file).map(|root| root.join("lib").join(&*name).join("os.py"));
        let is_hidden = |path: &PathBuf| path.exists() && (self.inside)(path) != Inside::There;
        let hidden = library.filter(is_hidden).or(environment.filter(is_hidden));
        let Some(hidden) = hidden else {
            return Ok(());
        };
        let directory = hidden.parent().unwrap_or(&hidden);
        let refused = above_bin(&file).and_then(|root| too_wide(root, &self.home_dirs));
        let hint = match refused {
            Some(refused) => format!("{refused}: install Python in a directory of its own"),
            None => self.show(&self.roots(program), None),
        };
        Err((
            format!("its library {} is not shown", shown_path(directory)),
            hint,
        ))
    }

    /// Returns the hidden roots of the toolchain of a program: that of its real file, and that of a link to it.
    fn roots(&self, program: &Path) -> Vec<PathBuf> {
        let real = fs::canonicalize(program).unwrap_or_else(|_| program.to_owned());
        let found = [program, &real].into_iter();
        let mut roots: Vec<PathBuf> = found
            .filter_map(|file| root(file, &self.home_dirs).ok())
            .collect();
        roots.dedup();
        let is_hidden = |root: &PathBuf| {
            // A shown `bin` makes the root visible, but not the rest of it.
            let parts = [VENV, "lib", ""].map(|name| root.join(name));
            let part = parts.into_iter().find(|part| part.exists());
            part.is_none_or(|part| (self.inside)(&part) != Inside::There)
        };
        match roots.iter().any(is_hidden) {
            true => roots.retain(is_hidden),
            false => roots.truncate(1),
        }
        roots
    }

    /// Advice that shows directories, and sets a variable.
    fn show(&self, roots: &[PathBuf], variable: Option<&str>) -> String {
        if roots.is_empty() {
            return "install it in a directory of its own: the directory that holds it is never shown"
                .to_owned();
        }
        let roots = roots.iter().map(|root| shown_path(root));
        match self.purpose {
            Purpose::Audit => {
                let options = roots.map(|root| format!("--read {root}"));
                let variable = variable.map(|value| format!("--env {value}"));
                let options: Vec<String> = options.chain(variable).collect();
                format!("`{}` shows it", options.join(" "))
            }
            Purpose::Judge if self.rules == UNFOLLOWED => {
                let roots: Vec<String> = roots.collect();
                format!(
                    "write {UNFOLLOWED} into [client] of the case; it shows {}",
                    roots.join(" and ")
                )
            }
            Purpose::Judge => {
                let roots: Vec<String> = roots.collect();
                let variable = variable.map(|value| format!(", and set {value}"));
                format!(
                    "add {} to {}, with access = \"read-execute\"{}",
                    roots.join(" and "),
                    self.rules,
                    variable.unwrap_or_default()
                )
            }
        }
    }

    fn variable(&self, name: &str) -> Option<&OsStr> {
        self.environment.iter().find_map(|entry| {
            let value = entry.as_bytes().strip_prefix(name.as_bytes())?;
            value.strip_prefix(b"=").map(OsStr::from_bytes)
        })
    }
}

/// True for the directories of the system that hold programs.
pub(crate) fn is_system(path: &Path) -> bool {
    ["/usr", "/bin", "/sbin", "/lib", "/lib64"]
        .into_iter()
        .any(|directory| path.starts_with(directory))
}
