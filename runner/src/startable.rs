//! Check that a program can start inside, before a run: its interpreter or loader, and what that needs.
//!
//! Follows execve(2): the first line of a script names an interpreter, the headers of an ELF file name a loader. Also
//! follows env(1), shims of version managers, and Python to its standard library. Passes each program that it does not
//! understand, because only the kernel decides.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
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

use crate::lookups::{self, Inside};
use crate::request::RunRequest;
use crate::workload::Workload;

/// Length of the first line that the kernel reads (BINPRM_BUF_SIZE).
const FIRST_LINE: u64 = 256;
/// Scripts whose interpreter is a script again, as in the kernel.
const MAX_SCRIPTS: usize = 5;

const LOADER: &str = "loader";

/// Table of path rules for the client of a profile.
const OF_PROFILE: &str = "[[paths]] of the profile";
/// Table of path rules for a client inside a case.
const OF_CASE: &str = "[[client.paths]] of the case (`--read` of `runner init`)";

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
    /// Table of path rules, for a judged program.
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
        rules: match request.workload {
            Workload::Inline { .. } => OF_CASE,
            Workload::Client { .. } | Workload::Program(_) => OF_PROFILE,
        },
    };
    surroundings.check(path)
}

/// First line of a script.
#[derive(Debug, PartialEq, Eq)]
struct Shebang {
    interpreter: PathBuf,
    argument: Vec<u8>,
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
        let environment = above_bin(program).map(|root| root.join("pyvenv.cfg"));
        let library = above_bin(&file).map(|root| root.join("lib").join(&*name).join("os.py"));
        let is_hidden = |path: &PathBuf| path.exists() && (self.inside)(path) != Inside::There;
        let hidden = library.filter(is_hidden).or(environment.filter(is_hidden));
        let Some(hidden) = hidden else {
            return Ok(());
        };
        let directory = hidden.parent().unwrap_or(&hidden);
        Err((
            format!("its library {} is not shown", shown_path(directory)),
            self.show(&self.roots(program), None),
        ))
    }

    /// Returns the hidden roots of the toolchain of a program: that of its real file, and that of a link to it.
    fn roots(&self, program: &Path) -> Vec<PathBuf> {
        let real = fs::canonicalize(program).unwrap_or_else(|_| program.to_owned());
        let mut roots: Vec<PathBuf> = [program, &real].into_iter().map(toolchain).collect();
        roots.dedup();
        let is_hidden = |root: &PathBuf| {
            // A shown `bin` makes the root visible, but not the rest of it.
            let parts = ["pyvenv.cfg", "lib", ""].map(|name| root.join(name));
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
        let roots = roots.iter().map(|root| shown_path(root));
        match self.purpose {
            Purpose::Audit => {
                let options = roots.map(|root| format!("--read {root}"));
                let variable = variable.map(|value| format!("--env {value}"));
                let options: Vec<String> = options.chain(variable).collect();
                format!("`{}` shows it", options.join(" "))
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

/// Returns the directory above the `bin` that holds a file.
fn above_bin(file: &Path) -> Option<&Path> {
    file.parent()
        .filter(|bin| bin.ends_with("bin"))
        .and_then(Path::parent)
}

/// Root of the toolchain that a file is installed in: the directory above its `bin`, otherwise its own directory.
fn toolchain(file: &Path) -> PathBuf {
    let root = above_bin(file).filter(|root| policy::may_be_shown(root));
    root.or(file.parent()).unwrap_or(file).to_owned()
}

/// True for the directories of the system that hold programs.
fn is_system(path: &Path) -> bool {
    ["/usr", "/bin", "/sbin", "/lib", "/lib64"]
        .into_iter()
        .any(|directory| path.starts_with(directory))
}

fn first_line(program: &Path) -> io::Result<Vec<u8>> {
    let mut options = OpenOptions::new();
    let file: File = options
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(program)?;
    let mut start = Vec::new();
    file.take(FIRST_LINE).read_to_end(&mut start)?;
    Ok(start)
}

impl Shebang {
    /// Parses the first line as the kernel does: the interpreter up to a blank, and one argument.
    fn parse(start: &[u8]) -> Option<Self> {
        let line = start.strip_prefix(b"#!")?;
        let line = line.split(|byte| *byte == b'\n').next()?;
        let line = trimmed(line);
        let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
        let end = line.iter().position(is_blank).unwrap_or(line.len());
        let (interpreter, argument) = line.split_at_checked(end)?;
        Some(Self {
            interpreter: OsStr::from_bytes(interpreter).into(),
            argument: trimmed(argument).to_owned(),
        })
    }
}

/// Cuts blanks and tabs off both ends. A carriage return stays, because the kernel keeps it.
fn trimmed(mut text: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = text {
        text = rest;
    }
    text
}

/// Returns the command in the argument of env(1); `None` for options other than `-S`, `-i` and variables.
fn command_of_env(argument: &[u8]) -> Option<&OsStr> {
    let split = [&b"-S"[..], b"--split-string="];
    let rest = split
        .iter()
        .find_map(|option| argument.strip_prefix(*option));
    let Some(rest) = rest else {
        // Without -S, the kernel passes one argument, and env(1) takes the whole of it as the command.
        let is_plain = !argument.is_empty() && !argument.contains(&b' ') && argument[0] != b'-';
        return is_plain.then(|| OsStr::from_bytes(argument));
    };
    let words = rest.split(|byte| matches!(byte, b' ' | b'\t'));
    let mut words = words.filter(|word| !word.is_empty() && !word.contains(&b'='));
    let command = words.find(|word| *word != b"-i")?;
    let is_plain = |byte: &u8| !matches!(byte, b'\'' | b'"' | b'\\' | b'$' | b'-');
    let first = command.first()?;
    (is_plain(first) && command.iter().all(|byte| *byte == b'-' || is_plain(byte)))
        .then(|| OsStr::from_bytes(command))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_line_is_parsed_as_by_the_kernel() {
        for (text, interpreter, argument) in [
            ("#!/bin/sh\necho", "/bin/sh", ""),
            ("#! /bin/sh -e  \n", "/bin/sh", "-e"),
            (
                "#!\t/usr/bin/env\t-S  node --a b\n",
                "/usr/bin/env",
                "-S  node --a b",
            ),
            ("#!/bin/sh\r\n", "/bin/sh\r", ""),
            ("#!/bin/sh", "/bin/sh", ""),
            ("#!", "", ""),
        ] {
            let found = Shebang::parse(text.as_bytes()).unwrap();
            let expected = Shebang {
                interpreter: interpreter.into(),
                argument: argument.into(),
            };
            assert_eq!(found, expected, "{text:?}");
        }
        assert_eq!(Shebang::parse(b"\x7fELF"), None);
    }

    #[test]
    fn command_of_env_is_found_behind_its_usual_options() {
        for (argument, command) in [
            ("node", Some("node")),
            ("-S node --flag", Some("node")),
            ("-S  -i A=b node", Some("node")),
            ("--split-string=deno run", Some("deno")),
            ("node --flag", None),
            ("-u NAME node", None),
            ("-S 'a b'", None),
            ("-S -u NAME node", None),
            ("-S", None),
            ("", None),
        ] {
            let found = command_of_env(argument.as_bytes());
            assert_eq!(found, command.map(OsStr::new), "{argument:?}");
        }
    }

    #[test]
    fn toolchain_is_the_directory_above_bin() {
        for (file, root) in [
            (
                "/home/me/.nvm/versions/node/v20/bin/node",
                "/home/me/.nvm/versions/node/v20",
            ),
            ("/opt/tool/run", "/opt/tool"),
            ("/bin/sh", "/bin"),
        ] {
            assert_eq!(toolchain(Path::new(file)), Path::new(root));
        }
    }
}
