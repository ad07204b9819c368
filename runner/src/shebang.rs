//! First line of a script, and the command of env(1) in it.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Length of the first line that the kernel reads (BINPRM_BUF_SIZE).
const FIRST_LINE: u64 = 256;
/// Scripts whose interpreter is a script again, as in the kernel.
pub(crate) const MAX_SCRIPTS: usize = 5;

/// Largest configuration file of a toolchain that is read.
const MAX_CONFIGURATION: u64 = 1 << 20;

/// First line of a script.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Shebang {
    pub(crate) interpreter: PathBuf,
    pub(crate) argument: Vec<u8>,
}

/// Reads the part of a file that the kernel looks at.
pub(crate) fn first_line(program: &Path) -> io::Result<Vec<u8>> {
    let mut start = Vec::new();
    open_for_reading(program)?
        .take(FIRST_LINE)
        .read_to_end(&mut start)?;
    Ok(start)
}

/// Reads a small text file. Refuses other objects: a FIFO would block, and a device has no end.
pub(crate) fn small_text(path: &Path) -> io::Result<String> {
    let file = open_for_reading(path)?;
    let status = file.metadata()?;
    if !status.is_file() || status.len() > MAX_CONFIGURATION {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut text = String::new();
    file.take(MAX_CONFIGURATION).read_to_string(&mut text)?;
    Ok(text)
}

fn open_for_reading(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let options = options
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
    options.open(path)
}

impl Shebang {
    /// Parses the first line as the kernel does: the interpreter up to a blank, and one argument.
    pub(crate) fn parse(start: &[u8]) -> Option<Self> {
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
pub(crate) fn command_of_env(argument: &[u8]) -> Option<&OsStr> {
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
    use nix::sys::stat::Mode;
    use nix::unistd::mkfifo;

    use super::*;

    #[test]
    fn configuration_that_is_no_small_file_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        std::fs::write(at("small"), "home = /usr").unwrap();
        std::fs::write(at("large"), vec![b'x'; MAX_CONFIGURATION as usize + 1]).unwrap();
        mkfifo(&at("fifo"), Mode::S_IRUSR).unwrap();
        assert_eq!(small_text(&at("small")).unwrap(), "home = /usr");
        for path in [at("large"), at("fifo"), "/dev/zero".into()] {
            let error = small_text(&path).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        }
    }

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
}
