//! `runner verify`: whether a directory holds what its manifest says, and nothing else.
//!
//! Both may be somebody else's work. Nothing is written, no link followed, no FIFO opened, and of a file no more is
//! read than the manifest lists. The memory is a few times the bytes of the manifest, of the report and of the names in
//! a directory, however deep the paths are.

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

/// A larger report is not compared.
const MOST_REPORT_BYTES: u64 = 2 * 1024 * 1024 * 1024;
/// Differences that are told; the others are counted.
const MOST_TOLD: usize = 1_000;

/// What a verification came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verified {
    Good,
    /// Something differs, as was written out.
    Bad,
}

/// Why nothing can be said of a directory.
#[derive(Debug, Error)]
pub(crate) enum VerifyError {
    #[error("cannot open the directory {path}")]
    Directory { path: String, source: io::Error },
    #[error("cannot read the manifest of {path}, {}", manifest::NAME)]
    Manifest { path: String, source: io::Error },
    #[error("the manifest of {path} is {found}, and a file is expected")]
    NoFile { path: String, found: &'static str },
    #[error("the manifest of {path} is larger than {} bytes", manifest::MOST_BYTES)]
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
                "it is written last: the run that made the directory has not finished it, or it is no directory of `--out`",
            ),
            Self::Directory { .. } => Some("name a directory that `--out` has made"),
            Self::Form { .. } => {
                Some("it was changed since the run, or made by another version of this program")
            }
            Self::Manifest { .. } | Self::NoFile { .. } | Self::Large { .. } | Self::Write(_) => {
                None
            }
        }
    }
}

/// Compares, and writes to `out` one line for each difference, at most a bounded number of them, or one that says that
/// there is none.
///
/// # Errors
/// What stood in the way of a comparison.
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
            // Whatever else it says is not to be relied on.
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
                let told = format!("verified: {count} files, manifest SHA-256 {sha256}");
                write_lines(&[told], out)?;
                return Ok(Verified::Good);
            }
            comparison.told()
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
    file.take(manifest::MOST_BYTES + 1)
        .read_to_end(&mut document)
        .map_err(failed)?;
    if document.len() as u64 > manifest::MOST_BYTES {
        return Err(VerifyError::Large {
            path: path.to_owned(),
        });
    }
    Ok(document)
}

/// What is found under a name.
enum Found {
    File(File),
    Other(FileKind),
}

/// Opens what is a regular file, and nothing else.
fn regular(at: impl AsFd, name: &[u8]) -> io::Result<Found> {
    let status = fstatat(&at, name, AtFlags::AT_SYMLINK_NOFOLLOW)?;
    if kind(&status) != FileKind::File {
        return Ok(Found::Other(kind(&status)));
    }
    // It may have become something else since.
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

/// A bundle, being compared with its manifest.
#[derive(Default)]
struct Comparison {
    differences: Vec<String>,
    /// Those beyond [`MOST_TOLD`].
    further: u64,
    /// The report, where it is what the manifest says.
    report: Option<Vec<u8>>,
}

impl Comparison {
    fn differs(&mut self, difference: String) {
        if self.differences.len() < MOST_TOLD {
            self.differences.push(difference);
        } else {
            self.further += 1;
        }
    }

    /// The lines that say what differs; none where all is as it should be.
    fn told(self) -> Vec<String> {
        let further = (self.further > 0).then(|| format!("and {} more", self.further));
        self.differences.into_iter().chain(further).collect()
    }

    /// Compares a directory; `names` lead to it.
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
                return self.differs(format!("unreadable: {path}: {}", errno.desc()));
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
                self.differs(format!(
                    "differs: {path}: {found}, and a directory is listed"
                ));
            }
            Err(error) => {
                let path = shown_below(names, name);
                self.differs(format!("unreadable: {path}: {error}"));
            }
        }
    }

    fn unlisted(&mut self, held: &OwnedFd, name: &[u8], names: &[Vec<u8>]) {
        let found = fstatat(held, name, AtFlags::AT_SYMLINK_NOFOLLOW);
        let found = found.map_or("something", |found| described(kind(&found)));
        let path = shown_below(names, name);
        self.differs(format!("not listed: {path}: {found}"));
    }

    fn missing(&mut self, node: Node<'_>) {
        let files = match node {
            Node::File(listed) => std::slice::from_ref(listed),
            Node::Directory(below) => below.files(),
        };
        for file in files {
            self.differs(format!("missing: {}", shown(&file.path)));
        }
    }

    fn file(&mut self, held: &OwnedFd, name: &[u8], listed: &Listed) {
        let path = shown(&listed.path);
        match regular(held, name) {
            Ok(Found::File(file)) => match self.content(file, listed) {
                Ok(None) => {}
                Ok(Some(what)) => self.differs(format!("differs: {path}: {what}")),
                Err(error) => self.differs(format!("unreadable: {path}: {error}")),
            },
            Ok(Found::Other(found)) => {
                let found = described(found);
                self.differs(format!("differs: {path}: {found}, and a file is listed"));
            }
            Err(error) => self.differs(format!("unreadable: {path}: {error}")),
        }
    }

    /// What is different about the content, if anything is.
    fn content(&mut self, file: File, listed: &Listed) -> io::Result<Option<String>> {
        let bytes = file.metadata()?.len();
        if bytes != listed.bytes {
            let told = format!("{bytes} bytes, and {} are listed", listed.bytes);
            return Ok(Some(told));
        }
        let mut limited = file.take(listed.bytes);
        let found = if listed.path == REPORT && listed.bytes <= MOST_REPORT_BYTES {
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

    /// Whether the report speaks of the same run and the same files.
    fn report(&mut self, manifest: &Manifest) {
        if !manifest.files.iter().any(|file| file.path == REPORT) {
            return self.differs(format!(
                "not listed: {REPORT}: there is no bundle without it"
            ));
        }
        let Some(report) = self.report.take() else {
            // Said already, or too large.
            if self.differences.is_empty() {
                self.differs(format!(
                    "unreadable: {REPORT}: over {MOST_REPORT_BYTES} bytes"
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
                self.differs(format!("unreadable: {REPORT}: {error}"));
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
                self.differs(format!(
                    "differs: {REPORT}: {key} is {reported}, and the manifest says {listed}"
                ));
            }
        }
    }

    /// Each copy is one of a file that the report lists, and each such file is here, or said to be missing.
    fn files(&mut self, manifest: &Manifest, reported: &[Reported]) {
        // Any number of entries may have one path: nothing is looked for among them one by one.
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
            // What was too much to be read for the report may have been copied all the same.
            match left.filter(|left| **left > 0) {
                Some(left) => *left -= 1,
                None if unread.contains(&named) => {}
                None => self.differs(format!(
                    "differs: {REPORT}: it lists no {}/{} like {}",
                    shown(&original.root),
                    shown(&original.path),
                    shown(&file.path)
                )),
            }
        }
        let not_copied = manifest.not_copied.iter();
        let told: BTreeSet<_> = not_copied
            .map(|one| (one.root.word(), one.path.as_str()))
            .collect();
        let left = known
            .into_iter()
            .filter(|((root, path, _), _)| !told.contains(&(*root, *path)));
        for ((root, path, _), count) in left {
            for _ in 0..count {
                let (root, path) = (shown(root), shown(path));
                self.differs(format!("missing: {root}/{path}, which {REPORT} lists"));
            }
        }
    }
}

/// A name below `names`, for people.
fn shown_below(names: &[Vec<u8>], name: &[u8]) -> String {
    let names = names.iter().map(Vec::as_slice).chain([name]);
    shown(&printable(&names.collect::<Vec<_>>().join(&b'/')))
}

/// What is read of a report beside its [`Run`].
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
