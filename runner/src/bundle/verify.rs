//! `runner verify`: compares a directory with its manifest.
//!
//! Both are untrusted. Verification writes no file, follows no link, opens no FIFO, and reads no more bytes of a
//! file than the manifest lists. Memory is bounded by a small multiple of the bytes of the manifest, the report
//! and the names in a directory, however deep the paths are.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt as _;

use model::digest;
use model::evidence::FileKind;
use model::quote::shown_path;
use model::text::printable;
use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat};
use nix::sys::stat::{Mode, fstatat};
use serde::Deserialize;
use thiserror::Error;

use super::REPORT;
use super::manifest::{self, Directory, Listed, Manifest, ManifestError, Node, Run, shown};
use crate::collect::copy::directory;
use crate::collect::files::kind;
use crate::request::VerifyRequest;

/// Largest report that is compared, in bytes.
const MAX_REPORT_BYTES: u64 = 2 * 1024 * 1024 * 1024;
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
    #[error("cannot read the manifest of {path}, {}", manifest::NAME)]
    Manifest { path: String, source: io::Error },
    #[error("expected a file as the manifest of {path}, found {found}")]
    NoFile { path: String, found: &'static str },
    #[error("the manifest of {path} is larger than {} bytes", manifest::MAX_BYTES)]
    Large { path: String },
    #[error("the manifest of {path} cannot be relied on")]
    Form { path: String, source: ManifestError },
    #[error("cannot write the answer")]
    Write(#[source] io::Error),
}

impl VerifyError {
    pub(crate) fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Manifest { source, .. } if source.kind() == io::ErrorKind::NotFound => Some(
                "the manifest is written last: the run has not finished it, or `--out` did not make this directory",
            ),
            Self::Directory { .. } => Some("name a directory that `--out` has made"),
            Self::Form { .. } => Some(
                "the manifest was changed after the run, or made by another version of this program",
            ),
            Self::Manifest { .. } | Self::NoFile { .. } | Self::Large { .. } | Self::Write(_) => {
                None
            }
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
    let bundle = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_DIRECTORY)
        .open(&request.directory)
        .map(OwnedFd::from)
        .map_err(|source| VerifyError::Directory {
            path: path.clone(),
            source,
        })?;
    let document = manifest_of(&bundle, &path)?;
    let sha256 = digest::of_bytes(&document);
    let differences = match &request.required {
        Some(required) if *required != sha256 => {
            // The other content of a wrong manifest is not compared.
            vec![format!(
                "differs: {}: its SHA-256 is {sha256}, and {required} is required",
                manifest::NAME
            )]
        }
        Some(_) | None => {
            let manifest =
                Manifest::parse(&document).map_err(|source| VerifyError::Form { path, source })?;
            drop(document);
            let mut comparison = Comparison::default();
            comparison.directory(&bundle, manifest.tree(), &mut Vec::new());
            comparison.report(&manifest);
            if comparison.differences.is_empty() {
                let count = manifest.files.len();
                let line = format!("verified: {count} files, manifest SHA-256 {sha256}");
                write_lines(&[line], out)?;
                return Ok(Verified::Good);
            }
            comparison.lines()
        }
    };
    write_lines(&differences, out)?;
    Ok(Verified::Bad)
}

fn write_lines(lines: &[String], out: &mut impl Write) -> Result<(), VerifyError> {
    lines
        .iter()
        .try_for_each(|line| writeln!(out, "{line}"))
        .and_then(|()| out.flush())
        .map_err(VerifyError::Write)
}

fn manifest_of(bundle: &OwnedFd, path: &str) -> Result<Vec<u8>, VerifyError> {
    let failed = |source| VerifyError::Manifest {
        path: path.to_owned(),
        source,
    };
    let file = match regular(bundle, manifest::NAME.as_bytes()) {
        Ok(Found::File(file)) => file,
        Ok(Found::Other(found)) => {
            return Err(VerifyError::NoFile {
                path: path.to_owned(),
                found: described(found),
            });
        }
        Err(error) => return Err(failed(error)),
    };
    let mut document = Vec::new();
    file.take(manifest::MAX_BYTES + 1)
        .read_to_end(&mut document)
        .map_err(failed)?;
    if document.len() as u64 > manifest::MAX_BYTES {
        return Err(VerifyError::Large {
            path: path.to_owned(),
        });
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

fn described(kind: FileKind) -> &'static str {
    match kind {
        FileKind::File => "a file",
        FileKind::Directory => "a directory",
        FileKind::Symlink => "a link",
        FileKind::Fifo => "a FIFO",
        FileKind::Socket => "a socket",
        FileKind::Device => "a device",
    }
}

/// Comparison of a bundle with its manifest.
#[derive(Default)]
struct Comparison {
    differences: Vec<String>,
    /// Number of differences beyond [`MAX_PRINTED`].
    further: u64,
    /// Content of the report, if it matches the manifest.
    report: Option<Vec<u8>>,
}

impl Comparison {
    fn add(&mut self, difference: String) {
        if self.differences.len() < MAX_PRINTED {
            self.differences.push(difference);
        } else {
            self.further += 1;
        }
    }

    /// Returns one line for each difference; none if the bundle matches.
    fn lines(self) -> Vec<String> {
        let further = (self.further > 0).then(|| format!("and {} more", self.further));
        self.differences.into_iter().chain(further).collect()
    }

    /// Compares a directory; `names` is its path.
    fn directory(&mut self, held: &OwnedFd, listed: Directory<'_>, names: &mut Vec<Vec<u8>>) {
        let listing = directory(held, c".").and_then(|held| {
            let mut listing = Dir::from_fd(held)?;
            let names = listing
                .iter()
                .map(|entry| entry.map(|entry| entry.file_name().to_bytes().to_vec()));
            names.collect::<Result<Vec<_>, _>>()
        });
        let mut found = match listing {
            Ok(found) => found,
            Err(errno) => {
                let path = shown_below(names, b".");
                return self.add(format!("unreadable: {path}: {}", errno.desc()));
            }
        };
        found.sort();
        found.retain(|name| name != b"." && name != b"..");
        if names.is_empty() {
            found.retain(|name| name != manifest::NAME.as_bytes());
        }
        for name in &found {
            let node = std::str::from_utf8(name).ok();
            match node.and_then(|name| listed.get(name)) {
                Some(Node::File(listed)) => self.file(held, name, listed),
                Some(Node::Directory(below)) => self.below(held, name, below, names),
                None => self.unlisted(held, name, names),
            }
        }
        for (name, node) in listed.nodes() {
            let is_there = found.binary_search_by(|one| one.as_slice().cmp(name.as_bytes()));
            if is_there.is_err() {
                self.missing(node);
            }
        }
    }

    fn below(
        &mut self,
        held: &OwnedFd,
        name: &[u8],
        below: Directory<'_>,
        names: &mut Vec<Vec<u8>>,
    ) {
        let opened = std::ffi::CString::new(name)
            .map_err(io::Error::from)
            .and_then(|name| Ok(directory(held, &name)?));
        match opened {
            Ok(opened) => {
                names.push(name.to_vec());
                self.directory(&opened, below, names);
                names.pop();
            }
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOTDIR | libc::ELOOP)) => {
                let found = fstatat(held, name, AtFlags::AT_SYMLINK_NOFOLLOW);
                let found = found.map_or("something else", |found| described(kind(&found)));
                let path = shown_below(names, name);
                self.add(format!(
                    "differs: {path}: {found}, and a directory is listed"
                ));
            }
            Err(error) => {
                let path = shown_below(names, name);
                self.add(format!("unreadable: {path}: {error}"));
            }
        }
    }

    fn unlisted(&mut self, held: &OwnedFd, name: &[u8], names: &[Vec<u8>]) {
        let found = fstatat(held, name, AtFlags::AT_SYMLINK_NOFOLLOW);
        let found = found.map_or("something", |found| described(kind(&found)));
        let path = shown_below(names, name);
        self.add(format!("not listed: {path}: {found}"));
    }

    fn missing(&mut self, node: Node<'_>) {
        let files = match node {
            Node::File(listed) => std::slice::from_ref(listed),
            Node::Directory(below) => below.files(),
        };
        for file in files {
            self.add(format!("missing: {}", shown(&file.path)));
        }
    }

    fn file(&mut self, held: &OwnedFd, name: &[u8], listed: &Listed) {
        let path = shown(&listed.path);
        match regular(held, name) {
            Ok(Found::File(file)) => match self.content(file, listed) {
                Ok(None) => {}
                Ok(Some(what)) => self.add(format!("differs: {path}: {what}")),
                Err(error) => self.add(format!("unreadable: {path}: {error}")),
            },
            Ok(Found::Other(found)) => {
                let found = described(found);
                self.add(format!("differs: {path}: {found}, and a file is listed"));
            }
            Err(error) => self.add(format!("unreadable: {path}: {error}")),
        }
    }

    /// Compares the content of a file. Returns the difference, if there is one.
    fn content(&mut self, file: File, listed: &Listed) -> io::Result<Option<String>> {
        let bytes = file.metadata()?.len();
        if bytes != listed.bytes {
            let difference = format!("{bytes} bytes, and {} are listed", listed.bytes);
            return Ok(Some(difference));
        }
        let mut limited = file.take(listed.bytes);
        let found = if listed.path == REPORT && listed.bytes <= MAX_REPORT_BYTES {
            let mut content = Vec::new();
            limited.read_to_end(&mut content)?;
            let found = digest::of_bytes(&content);
            self.report = (found == listed.sha256).then_some(content);
            found
        } else {
            digest::of_reader(limited)?
        };
        Ok((found != listed.sha256)
            .then(|| format!("its SHA-256 is {found}, and {} is listed", listed.sha256)))
    }

    /// Checks that the report is about the same run and the same files.
    fn report(&mut self, manifest: &Manifest) {
        if !manifest.files.iter().any(|file| file.path == REPORT) {
            return self.add(format!(
                "not listed: {REPORT}: there is no bundle without it"
            ));
        }
        let Some(report) = self.report.take() else {
            // The difference was reported already, or the report is too large.
            if self.differences.is_empty() {
                self.add(format!(
                    "unreadable: {REPORT}: over {MAX_REPORT_BYTES} bytes"
                ));
            }
            return;
        };
        let read = serde_json::from_slice::<Run>(&report)
            .and_then(|run| Ok((run, serde_json::from_slice::<Report>(&report)?)));
        match read {
            Ok((run, report)) => {
                self.run(&manifest.run, &run);
                self.files(manifest, &report.evidence.files);
            }
            Err(error) => {
                let error = shown(&error.to_string());
                self.add(format!("unreadable: {REPORT}: {error}"));
            }
        }
    }

    fn run(&mut self, listed: &Run, reported: &Run) {
        let pairs = |run: &Run| {
            [
                ("runner.version", run.runner.version.clone()),
                ("runner.sha256", run.runner.sha256.clone()),
                ("case.name", run.case.name.clone()),
                ("case.sha256", run.case.sha256.clone()),
                ("client.sha256", run.client.sha256.clone()),
                ("verdict", run.verdict.clone()),
                ("tier", run.tier.clone()),
                ("started_at", run.started_at.clone()),
            ]
        };
        for ((key, listed), (_, reported)) in pairs(listed).into_iter().zip(pairs(reported)) {
            if listed != reported {
                let (reported, listed) = (shown(&reported), shown(&listed));
                self.add(format!(
                    "differs: {REPORT}: {key} is {reported}, and the manifest says {listed}"
                ));
            }
        }
    }

    /// Checks that the report lists the original of each copy, and that each listed file is copied or said to
    /// be missing.
    fn files(&mut self, manifest: &Manifest, reported: &[Reported]) {
        // Many entries may have the same path, so lookups by path and digest must not scan them.
        let mut known: BTreeMap<(&str, &str, &str), usize> = BTreeMap::new();
        let mut unread: BTreeSet<(&str, &str)> = BTreeSet::new();
        for file in reported {
            let named = (file.root.as_str(), file.path.as_str());
            match &file.sha256 {
                Some(_) if file.transient => {}
                Some(sha256) => *known.entry((named.0, named.1, sha256)).or_default() += 1,
                None => drop(unread.insert(named)),
            }
        }
        for file in &manifest.files {
            let Some(original) = &file.original else {
                continue;
            };
            let named = (original.root.as_str(), original.path.as_str());
            let left = known.get_mut(&(named.0, named.1, file.sha256.as_str()));
            // A file that was too large to be read for the report may still have been copied.
            match left.filter(|left| **left > 0) {
                Some(left) => *left -= 1,
                None if unread.contains(&named) => {}
                None => self.add(format!(
                    "differs: {REPORT}: it lists no {}/{} like {}",
                    shown(&original.root),
                    shown(&original.path),
                    shown(&file.path)
                )),
            }
        }
        let not_copied = manifest.not_copied.iter();
        let not_copied: BTreeSet<_> = not_copied
            .map(|one| (one.root.word(), one.path.as_str()))
            .collect();
        let left = known
            .into_iter()
            .filter(|((root, path, _), _)| !not_copied.contains(&(*root, *path)));
        for ((root, path, _), count) in left {
            for _ in 0..count {
                let (root, path) = (shown(root), shown(path));
                self.add(format!("missing: {root}/{path}, which {REPORT} lists"));
            }
        }
    }
}

/// Returns the path of `name` below `names`, for messages.
fn shown_below(names: &[Vec<u8>], name: &[u8]) -> String {
    let names = names.iter().map(Vec::as_slice).chain([name]);
    shown(&printable(&names.collect::<Vec<_>>().join(&b'/')))
}

/// The part of a report that is compared, in addition to [`Run`].
#[derive(Deserialize)]
struct Report {
    evidence: Evidence,
}

#[derive(Deserialize)]
struct Evidence {
    files: Vec<Reported>,
}

#[derive(Deserialize)]
struct Reported {
    root: String,
    path: String,
    sha256: Option<String>,
    transient: bool,
}

#[cfg(test)]
mod tests;
