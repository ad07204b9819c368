//! The manifest of a bundle, schema `runner.bundle/1`: which files there are, whence, and what is not among them.
//!
//! The same types are written and read. A manifest that is read is somebody else's: [`Manifest::parse`] refuses
//! whatever no run writes.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::case::{Root, Tier};
use crate::evidence::FileKind;
use crate::report::{self, json, visible};
use crate::schema::values::{FileMode, Sha256, Timestamp};
use crate::{schema, verdict};

const SCHEMA: &str = "runner.bundle/1";

/// The manifest's own name. It is written last.
pub(crate) const NAME: &str = "manifest.json";

/// No manifest is larger: as many paths as a client of a built-in case may leave need less, each byte an escape.
pub(crate) const MOST_BYTES: u64 = 1024 * 1024 * 1024;
/// Names in one path; a bundle of ours has a few more than the deepest tree that is walked.
const MOST_NAMES: usize = 120;
/// Characters that are shown of a path, or of anything else that stands in a manifest.
const MOST_SHOWN: usize = 1_000;
/// NAME_MAX of linux/limits.h.
const LONGEST_NAME: usize = 255;

/// What a bundle of evidence holds. Readers ignore keys that they do not know. Where this file is there, the bundle
/// is whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "Manifest of runner")]
pub(crate) struct Manifest {
    /// The form of this document.
    pub(crate) schema: String,
    /// The run that left the evidence, in the words of its report.
    pub(crate) run: Run,
    /// Every file but this one, sorted by path.
    pub(crate) files: Vec<Listed>,
    /// What the client left and is not among the files, sorted.
    pub(crate) not_copied: Vec<NotCopied>,
}

/// The run, in the words of its report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Run {
    /// The program that made the run.
    pub(crate) runner: Runner,
    /// What was asked, allowed and expected.
    pub(crate) case: Case,
    /// The program under test.
    pub(crate) client: Client,
    /// The word for the whole run.
    #[schemars(with = "verdict::Verdict")]
    pub(crate) verdict: String,
    /// What sealed the network.
    #[schemars(with = "Tier")]
    pub(crate) tier: String,
    /// When the run began.
    #[schemars(with = "Timestamp")]
    pub(crate) started_at: String,
}

/// The program that made the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Runner {
    /// Its version: `0.1.0`.
    pub(crate) version: String,
    /// Digest of its executable.
    #[schemars(with = "Sha256")]
    pub(crate) sha256: String,
}

/// The case of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Case {
    /// Its name: `case-b`.
    pub(crate) name: String,
    /// Digest of its file.
    #[schemars(with = "Sha256")]
    pub(crate) sha256: String,
}

/// The program under test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Client {
    /// Digest of the program.
    #[schemars(with = "Sha256")]
    pub(crate) sha256: String,
}

/// One file of the bundle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Listed {
    /// Relative to the bundle. Of a name that the client chose, all but letters, digits and a few signs is
    /// percent-encoded.
    pub(crate) path: String,
    /// Its size.
    pub(crate) bytes: u64,
    /// Its digest.
    #[schemars(with = "Sha256")]
    pub(crate) sha256: String,
    /// What it is a copy of; null for a report and for output.
    pub(crate) original: Option<Original>,
}

/// A file of the client, as the report lists it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Original {
    /// In which of its directories.
    #[schemars(with = "Root")]
    pub(crate) root: String,
    /// Relative to it; bytes that are no UTF-8 are `\xNN`.
    pub(crate) path: String,
    /// Its permission bits.
    #[schemars(with = "FileMode")]
    pub(crate) mode: String,
}

/// Something that is not in the bundle.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub(crate) struct NotCopied {
    /// Where it was.
    pub(crate) root: Source,
    /// Relative to the directory, and empty for itself; bytes that are no UTF-8 are `\xNN`.
    pub(crate) path: String,
    /// What it was; null where that is not known.
    pub(crate) kind: Option<Kind>,
    /// Where a link leads, as it stands in the link.
    pub(crate) target: Option<String>,
    /// Why it is not there.
    pub(crate) reason: String,
}

/// Where something was that is not in the bundle.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Source {
    /// The home directory.
    Home,
    /// The temporary directory.
    Tmp,
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// What something was that is not in the bundle.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    /// A regular file.
    File,
    /// A directory of which nothing is in the bundle.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
    /// A character or block device.
    Device,
    /// The rest of an output.
    Output,
}

impl From<Root> for Source {
    fn from(root: Root) -> Self {
        match root {
            Root::Home => Self::Home,
            Root::Tmp => Self::Tmp,
        }
    }
}

impl From<FileKind> for Kind {
    fn from(kind: FileKind) -> Self {
        match kind {
            FileKind::File => Self::File,
            FileKind::Directory => Self::Directory,
            FileKind::Symlink => Self::Symlink,
            FileKind::Fifo => Self::Fifo,
            FileKind::Socket => Self::Socket,
            FileKind::Device => Self::Device,
        }
    }
}

impl Source {
    /// The word for it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Home => "home",
            Self::Tmp => "tmp",
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

impl From<&report::Report> for Run {
    fn from(report: &report::Report) -> Self {
        Self {
            runner: Runner {
                version: report.runner.version.clone(),
                sha256: report.runner.sha256.clone(),
            },
            case: Case {
                name: report.case.name.clone(),
                sha256: report.case.origin.sha256.clone(),
            },
            client: Client {
                sha256: report.client.sha256.clone(),
            },
            verdict: report.verdict.word().to_owned(),
            tier: report.tier.word().to_owned(),
            started_at: report.started_at(),
        }
    }
}

/// The schema of a manifest.
pub(crate) fn schema() -> Schema {
    schema::of_document::<Manifest>(SCHEMA)
}

/// Why a document is no manifest that can be relied on.
#[derive(Debug, Error)]
pub(crate) enum ManifestError {
    /// In words of ours: those of the parser repeat what stands in the document.
    #[error("it is no JSON of this form: {why}")]
    Json { why: String },
    #[error("its schema is {found}, and {SCHEMA} is expected")]
    Schema { found: String },
    #[error("it lists the path {path}, which {what}")]
    Path { path: String, what: &'static str },
    #[error("it lists {path} with the SHA-256 {found}, and 64 lower-case hex digits are expected")]
    Digest { path: String, found: String },
}

impl ManifestError {
    #[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
    fn json(error: serde_json::Error) -> Self {
        Self::Json {
            why: shown(&error.to_string()),
        }
    }
}

/// Text of a document that may be anybody's, for people: harmless, and of a bounded length.
pub(super) fn shown(text: &str) -> String {
    let end = text.char_indices().nth(MOST_SHOWN).map(|(end, _)| end);
    match end.and_then(|end| text.get(..end)) {
        None => visible(text),
        Some(start) => format!("{}… ({} bytes)", visible(start), text.len()),
    }
}

/// Of any version.
#[derive(Deserialize)]
struct Form {
    schema: String,
}

impl Manifest {
    /// The manifest of these files.
    pub(crate) fn new(run: Run, mut files: Vec<Listed>, mut not_copied: Vec<NotCopied>) -> Self {
        files.sort_by(|one, other| one.path.cmp(&other.path));
        not_copied.sort();
        Self {
            schema: SCHEMA.to_owned(),
            run,
            files,
            not_copied,
        }
    }

    /// The document.
    ///
    /// # Errors
    /// A value without a JSON form.
    pub(crate) fn document(&self) -> serde_json::Result<Vec<u8>> {
        json::document(self)
    }

    /// Reads a document that may be anybody's.
    ///
    /// # Errors
    /// The first thing that no run writes.
    pub(crate) fn parse(document: &[u8]) -> Result<Self, ManifestError> {
        let form: Form = serde_json::from_slice(document).map_err(ManifestError::json)?;
        if form.schema != SCHEMA {
            return Err(ManifestError::Schema {
                found: shown(&form.schema),
            });
        }
        let manifest: Self = serde_json::from_slice(document).map_err(ManifestError::json)?;
        manifest.tree()?;
        for file in &manifest.files {
            let is_digest = file.sha256.len() == 64
                && (file.sha256.bytes()).all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
            if !is_digest {
                return Err(ManifestError::Digest {
                    path: shown(&file.path),
                    found: shown(&file.sha256),
                });
            }
        }
        Ok(manifest)
    }

    /// The files in their directories.
    ///
    /// # Errors
    /// The first path that leads out of the bundle, or nowhere.
    pub(crate) fn tree(&self) -> Result<Tree<'_>, ManifestError> {
        let mut tree = Tree::default();
        for file in &self.files {
            tree.add(file).map_err(|what| ManifestError::Path {
                path: shown(&file.path),
                what,
            })?;
        }
        Ok(tree)
    }
}

/// A directory of a bundle, as the manifest has it.
#[derive(Debug, Default)]
pub(crate) struct Tree<'m>(pub(crate) BTreeMap<&'m str, Node<'m>>);

/// What a name in a directory is to be.
#[derive(Debug)]
pub(crate) enum Node<'m> {
    File(&'m Listed),
    Directory(Tree<'m>),
}

impl<'m> Tree<'m> {
    /// Puts a file in its place; otherwise what is wrong with its path.
    fn add(&mut self, file: &'m Listed) -> Result<(), &'static str> {
        let path = file.path.as_str();
        let mut names: Vec<&str> = path.split('/').collect();
        for name in &names {
            match *name {
                "" if path.starts_with('/') => return Err("is absolute"),
                "" => return Err("has an empty name in it"),
                "." | ".." => return Err("has a `.` or `..` in it"),
                _ if name.contains('\0') => return Err("has a NUL in it"),
                _ if name.len() > LONGEST_NAME => return Err("has a name of over 255 bytes"),
                _ => {}
            }
        }
        if names.len() > MOST_NAMES {
            return Err("is too deep");
        }
        if path == NAME {
            return Err("is the manifest itself");
        }
        let last = names.pop().unwrap_or_default();
        let mut tree = self;
        for name in names {
            let node = tree
                .0
                .entry(name)
                .or_insert(Node::Directory(Self::default()));
            match node {
                Node::Directory(below) => tree = below,
                Node::File(_) => return Err("leads through a file"),
            }
        }
        match tree.0.insert(last, Node::File(file)) {
            None => Ok(()),
            Some(_) => Err("stands there twice"),
        }
    }
}

#[cfg(test)]
mod tests;
