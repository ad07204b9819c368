//! `runner verify`: compares a directory with its digests, and the files with their report.
//!
//! All of it is untrusted. Verification writes no file, extracts nothing, follows no link and opens no FIFO. Memory is
//! bounded by a small multiple of the bytes of the report, of the exceptions and of the names.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt as _;

use model::digest;
use model::evidence::FileKind;
use model::quote::shown_path;
use model::text::{count, printable};
use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat};
use nix::sys::stat::{Mode, fstatat};
use thiserror::Error;

use super::REPORT;
use super::sums::{self, Sums, SumsError, shown};
use crate::collect::copy::directory;
use crate::collect::files::kind;
use crate::request::VerifyRequest;

mod contents;
mod entries;

/// Largest file of a bundle, in bytes: the archive of the largest directories that a case permits.
const MAX_FILE_BYTES: u64 = 512 << 30;
/// Largest number of differences that are printed; further differences are counted.
const MAX_PRINTED: usize = 1_000;

/// Result of a verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verified {
    Good,
    /// At least one difference was printed.
    Bad,
}

/// Error that prevents a verification.
#[derive(Debug, Error)]
pub(crate) enum VerifyError {
    #[error("cannot open the directory {path}")]
    Directory { path: String, source: io::Error },
    #[error("cannot read {} of {path}", sums::NAME)]
    Sums { path: String, source: io::Error },
    #[error("cannot parse {} of {path}", sums::NAME)]
    Form { path: String, source: SumsError },
    #[error("cannot write the answer")]
    Write(#[source] io::Error),
}

impl VerifyError {
    pub(crate) fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Sums { source, .. } if source.kind() == io::ErrorKind::NotFound => Some(
                "SHA256SUMS is written last: the run has not finished it, or `--out` did not make this directory",
            ),
            Self::Directory { .. } => Some("name a directory that `--out` has made"),
            Self::Form { .. } => Some(
                "SHA256SUMS was changed after the run, or made by another version of this program",
            ),
            Self::Sums { .. } | Self::Write(_) => None,
        }
    }
}

/// Verifies a bundle. Writes one line for each difference to `out`, up to a bound, or one line that says there
/// is none.
///
/// # Errors
/// Returns the error that prevents a comparison.
pub(crate) fn verify(
    request: &VerifyRequest,
    out: &mut impl Write,
) -> Result<Verified, VerifyError> {
    let path = shown_path(&request.directory);
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_DIRECTORY)
        .open(&request.directory);
    let bundle = match opened {
        Ok(bundle) => OwnedFd::from(bundle),
        Err(source) => return Err(VerifyError::Directory { path, source }),
    };
    let document = match sums_of(&bundle) {
        Ok(document) => document,
        Err(source) => return Err(VerifyError::Sums { path, source }),
    };
    let sha256 = digest::of_bytes(&document);
    let mut differences = Differences::default();
    let mut verified = String::new();
    if let Some(required) = &request.required
        && *required != sha256
    {
        // What other digests say is not compared.
        let name = sums::NAME;
        differences.add(format!(
            "differs: {name}: its SHA-256 is {sha256}, and {required} is required"
        ));
    } else {
        let sums = sums::parse(&document).map_err(|source| VerifyError::Form { path, source })?;
        let files = files(&bundle, &sums, &mut differences);
        let exceptions = contents::compare(files, &sums, &mut differences);
        let mut parts = vec![count(sums.len(), "file")];
        parts.extend((exceptions > 0).then(|| count(exceptions, "exception")));
        let parts = parts.join(", ");
        verified = format!("verified: {parts}, SHA-256 of {} {sha256}", sums::NAME);
    }
    let (lines, is_good) = match differences.lines() {
        lines if lines.is_empty() => (vec![verified], true),
        lines => (lines, false),
    };
    lines
        .iter()
        .try_for_each(|line| writeln!(out, "{line}"))
        .and_then(|()| out.flush())
        .map_err(VerifyError::Write)?;
    Ok(if is_good {
        Verified::Good
    } else {
        Verified::Bad
    })
}

fn sums_of(bundle: &OwnedFd) -> io::Result<Vec<u8>> {
    let mut document = Vec::new();
    match regular(bundle, sums::NAME.as_bytes())? {
        Found::File(file) => file.take(sums::MAX_BYTES + 1).read_to_end(&mut document)?,
        Found::Other(found) => {
            let found = found.with_article();
            return Err(io::Error::other(format!("expected a file, found {found}")));
        }
    };
    if document.len() as u64 > sums::MAX_BYTES {
        let why = format!("it is larger than {} bytes", sums::MAX_BYTES);
        return Err(io::Error::other(why));
    }
    Ok(document)
}

/// Object under a name.
enum Found {
    File(File),
    Other(FileKind),
}

/// Opens a regular file; reports other kinds without opening them.
fn regular(at: impl AsFd, name: &[u8]) -> io::Result<Found> {
    let status = fstatat(&at, name, AtFlags::AT_SYMLINK_NOFOLLOW)?;
    if kind(&status) != FileKind::File {
        return Ok(Found::Other(kind(&status)));
    }
    // The object may have been replaced since fstatat.
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let file = File::from(openat(&at, name, flags, Mode::empty())?);
    if file.metadata()?.is_file() {
        Ok(Found::File(file))
    } else {
        Err(Errno::ESTALE.into())
    }
}

/// Differences found so far.
#[derive(Default)]
struct Differences {
    lines: Vec<String>,
    /// Number of differences beyond [`MAX_PRINTED`].
    further: u64,
}

impl Differences {
    fn add(&mut self, line: String) {
        if self.lines.len() < MAX_PRINTED {
            self.lines.push(line);
        } else {
            self.further += 1;
        }
    }

    /// Adds a difference from the report.
    fn disagree(&mut self, name: &str, found: &str, reported: &str) {
        let reported = shown(reported);
        self.add(format!(
            "differs: {name}: {found}, and {REPORT} says {reported}"
        ));
    }

    /// Returns one line for each difference.
    fn lines(self) -> Vec<String> {
        let further = (self.further > 0).then(|| format!("and {} more", self.further));
        self.lines.into_iter().chain(further).collect()
    }
}

/// Compares the directory with the digests. Returns the files that match, by name.
fn files(bundle: &OwnedFd, sums: &Sums, differences: &mut Differences) -> BTreeMap<String, File> {
    let mut files = BTreeMap::new();
    let listing = directory(bundle, c".").and_then(|held| {
        let mut listing = Dir::from_fd(held)?;
        let names = listing
            .iter()
            .map(|entry| entry.map(|entry| entry.file_name().to_bytes().to_vec()));
        names.collect::<Result<Vec<_>, _>>()
    });
    let mut names = match listing {
        Ok(names) => names,
        Err(errno) => {
            differences.add(format!("unreadable: .: {}", errno.desc()));
            return files;
        }
    };
    names.sort();
    let own: [&[u8]; 3] = [b".", b"..", sums::NAME.as_bytes()];
    names.retain(|name| !own.contains(&name.as_slice()));
    for name in names.iter().map(Vec::as_slice) {
        if !std::str::from_utf8(name).is_ok_and(|name| sums.contains_key(name)) {
            let found = fstatat(bundle, name, AtFlags::AT_SYMLINK_NOFOLLOW);
            let found = found.map_or("something", |found| kind(&found).with_article());
            differences.add(format!("not listed: {}: {found}", shown(&printable(name))));
        }
    }
    for (name, sha256) in sums {
        let read = match regular(bundle, name.as_bytes()) {
            Ok(Found::File(file)) => matching(file, sha256),
            Ok(Found::Other(found)) => Ok(Err(format!(
                "{}, and a file is listed",
                found.with_article()
            ))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                differences.add(format!("missing: {name}"));
                continue;
            }
            Err(error) => Err(error),
        };
        match read {
            Ok(Ok(file)) => drop(files.insert(name.clone(), file)),
            Ok(Err(difference)) => differences.add(format!("differs: {name}: {difference}")),
            Err(error) => differences.add(format!("unreadable: {name}: {error}")),
        }
    }
    files
}

/// Returns the file, or its difference from the digest.
fn matching(file: File, listed: &str) -> io::Result<Result<File, String>> {
    if file.metadata()?.len() > MAX_FILE_BYTES {
        return Ok(Err(format!("it is larger than {MAX_FILE_BYTES} bytes")));
    }
    let found = digest::of_reader((&file).take(MAX_FILE_BYTES))?;
    Ok(if found == listed {
        Ok(file)
    } else {
        Err(format!("its SHA-256 is {found}, and {listed} is listed"))
    })
}

#[cfg(test)]
mod tests;
