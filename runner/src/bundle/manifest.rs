//! The manifest of a bundle, schema `runner.bundle/1`: the files, their origins, and the objects that were not
//! copied.
//!
//! The same types are written and read. A manifest may come from anyone, so [`Manifest::parse`] rejects documents
//! that no run writes.

mod paths;

use std::fmt;
use std::marker::PhantomData;

use model::case::{Root, Tier};
use model::escape::visible;
use model::evidence::FileKind;
use model::schema::values::{FileMode, Sha256, Timestamp};
use model::text::truncated;
use model::{finding, schema};
use report::{self, json};
use schemars::{JsonSchema, Schema};
use serde::de::{DeserializeSeed, Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use thiserror::Error;

pub(super) use paths::{Directory, Node};

const SCHEMA: &str = "runner.bundle/1";

/// Name of the manifest, which is written last.
pub(crate) const NAME: &str = "manifest.json";

/// Largest manifest, in bytes. The paths that a client of a built-in case may leave need less, even if every byte
/// is escaped.
pub(crate) const MAX_BYTES: u64 = 1024 * 1024 * 1024;
/// Largest number of entries in a list. A manifest holds no more, since each entry of a run has at least 110
/// bytes.
const MAX_ENTRIES: usize = 10_000_000;
/// Largest number of characters shown of a path or another text of a manifest.
const MAX_SHOWN: usize = 1_000;

/// Content of a bundle of evidence. Readers ignore unknown keys. A bundle with this file is complete.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "Manifest of runner")]
pub(crate) struct Manifest {
    /// Schema of this document.
    pub(crate) schema: String,
    /// The run that left the evidence, in the words of its report.
    pub(crate) run: Run,
    /// Every file except this one, sorted by path.
    #[serde(deserialize_with = "bounded")]
    pub(crate) files: Vec<Listed>,
    /// Objects of the client that are not among the files, sorted.
    #[serde(deserialize_with = "bounded")]
    pub(crate) not_copied: Vec<NotCopied>,
}

/// The run, in the words of its report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Run {
    /// Program that made the run.
    pub(crate) runner: Runner,
    /// Case of the run.
    pub(crate) case: Case,
    /// Program under test.
    pub(crate) client: Client,
    /// Verdict of the whole run.
    #[schemars(with = "finding::Verdict")]
    pub(crate) verdict: String,
    /// Isolation of the network.
    #[schemars(with = "Tier")]
    pub(crate) tier: String,
    /// Start of the run.
    #[schemars(with = "Timestamp")]
    pub(crate) started_at: String,
}

/// Program that made the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Runner {
    /// Version: `0.1.0`.
    pub(crate) version: String,
    /// Digest of its executable.
    #[schemars(with = "Sha256")]
    pub(crate) sha256: String,
}

/// Case of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Case {
    /// Name: `case-b`.
    pub(crate) name: String,
    /// Digest of its file.
    #[schemars(with = "Sha256")]
    pub(crate) sha256: String,
}

/// Program under test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Client {
    /// Digest of the program.
    #[schemars(with = "Sha256")]
    pub(crate) sha256: String,
}

/// File of the bundle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Listed {
    /// Path relative to the bundle. In a name that the client chose, all characters except letters, digits and a
    /// few signs are percent-encoded.
    pub(crate) path: String,
    /// Size in bytes.
    pub(crate) bytes: u64,
    /// Digest of the content.
    #[schemars(with = "Sha256")]
    pub(crate) sha256: String,
    /// Original of a copy; null for a report and for output.
    pub(crate) original: Option<Original>,
}

/// File of the client, as the report lists it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Original {
    /// Directory of the client that held the file.
    #[schemars(with = "Root")]
    pub(crate) root: String,
    /// Path relative to that directory; bytes that are not UTF-8 are `\xNN`, a backslash is `\\`.
    pub(crate) path: String,
    /// Permission bits.
    #[schemars(with = "FileMode")]
    pub(crate) mode: String,
}

/// Object that is not in the bundle.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub(crate) struct NotCopied {
    /// Directory or output that held the object.
    pub(crate) root: Source,
    /// Path relative to that directory, empty for the directory itself; bytes that are not UTF-8 are `\xNN`, a
    /// backslash is `\\`.
    pub(crate) path: String,
    /// Kind of object; null if unknown.
    pub(crate) kind: Option<Kind>,
    /// Target of a link, unresolved.
    pub(crate) target: Option<String>,
    /// Reason for not copying the object.
    pub(crate) reason: String,
}

/// Origin of an object that is not in the bundle.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Source {
    /// Home directory.
    Home,
    /// Temporary directory.
    Tmp,
    /// Working directory.
    Work,
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Kind of an object that is not in the bundle.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    /// Regular file.
    File,
    /// Directory without files in the bundle.
    Directory,
    /// Symbolic link.
    Symlink,
    /// Named pipe.
    Fifo,
    /// Socket.
    Socket,
    /// Character or block device.
    Device,
    /// Rest of an output beyond the limit.
    Output,
}

impl From<Root> for Source {
    fn from(root: Root) -> Self {
        match root {
            Root::Home => Self::Home,
            Root::Tmp => Self::Tmp,
            Root::Work => Self::Work,
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
    /// Returns the word used in JSON.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Home => "home",
            Self::Tmp => "tmp",
            Self::Work => "work",
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

impl From<&model::report::Report> for Run {
    fn from(report: &model::report::Report) -> Self {
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

/// Returns the JSON Schema of a manifest.
pub(crate) fn schema() -> Schema {
    schema::of_document::<Manifest>(SCHEMA)
}

/// Error of a document that is not a valid manifest.
#[derive(Debug, Error)]
pub(crate) enum ManifestError {
    /// The cause is redacted for the terminal, because the parser's messages quote the document.
    #[error("cannot parse it as JSON of this form: {why}")]
    Json { why: String },
    #[error("expected the schema {SCHEMA}, found {found}")]
    Schema { found: String },
    #[error("it lists the path {path}, which {what}")]
    Path { path: String, what: &'static str },
    #[error("expected 64 lower-case hex digits as the SHA-256 of {path}, found {found}")]
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

/// Returns text of an untrusted document for messages: escaped and of bounded length.
pub(super) fn shown(text: &str) -> String {
    match truncated(text, MAX_SHOWN) {
        whole if whole == text => visible(text),
        start => format!("{} ({} bytes)", visible(&start), text.len()),
    }
}

/// Common part of all versions.
#[derive(Deserialize)]
struct Form {
    schema: String,
}

impl Manifest {
    /// Builds the manifest of these files.
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

    /// Encodes the document.
    ///
    /// # Errors
    /// Returns the error of a value without a JSON form.
    pub(crate) fn document(&self) -> serde_json::Result<Vec<u8>> {
        json::document(self)
    }

    /// Parses an untrusted document.
    ///
    /// # Errors
    /// Returns the first fault that no run writes.
    pub(crate) fn parse(document: &[u8]) -> Result<Self, ManifestError> {
        let form: Form = serde_json::from_slice(document).map_err(ManifestError::json)?;
        if form.schema != SCHEMA {
            return Err(ManifestError::Schema {
                found: shown(&form.schema),
            });
        }
        let manifest: Self = serde_json::from_slice(document).map_err(ManifestError::json)?;
        paths::check(&manifest.files)?;
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

    /// Returns the top directory. The files are sorted, because `new` sorts them and `parse` checks the order.
    pub(crate) fn tree(&self) -> Directory<'_> {
        Directory::top(&self.files)
    }
}

/// Deserializes a list of at most [`MAX_ENTRIES`].
fn bounded<'de, D: Deserializer<'de>, T: Deserialize<'de>>(list: D) -> Result<Vec<T>, D::Error> {
    Bounded::of(MAX_ENTRIES).deserialize(list)
}

/// Deserializer of a list up to a bound. Entries beyond the bound are not read.
struct Bounded<T> {
    limit: usize,
    entries: PhantomData<T>,
}

impl<T> Bounded<T> {
    fn of(limit: usize) -> Self {
        Self {
            limit,
            entries: PhantomData,
        }
    }
}

impl<'de, T: Deserialize<'de>> DeserializeSeed<'de> for Bounded<T> {
    type Value = Vec<T>;

    fn deserialize<D: Deserializer<'de>>(self, list: D) -> Result<Vec<T>, D::Error> {
        list.deserialize_seq(self)
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for Bounded<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of at most {} entries", self.limit)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = list.next_element()? {
            if entries.len() == self.limit {
                let why = format!("a list of over {} entries, which no run writes", self.limit);
                return Err(A::Error::custom(why));
            }
            entries.push(entry);
        }
        Ok(entries)
    }
}

#[cfg(test)]
mod tests;
