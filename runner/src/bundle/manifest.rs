//! The manifest of a bundle, schema `runner.bundle/1`: which files there are, whence, and what is not among them.
//!
//! The same types are written and read. A manifest that is read is somebody else's: [`Manifest::parse`] refuses
//! whatever no run writes.

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

/// The manifest's own name. It is written last.
pub(crate) const NAME: &str = "manifest.json";

/// No manifest is larger: as many paths as a client of a built-in case may leave need less, each byte an escape.
pub(crate) const MOST_BYTES: u64 = 1024 * 1024 * 1024;
/// No list in it is longer: no entry that a run writes has fewer than 110 bytes, so that no more of them fit.
const MOST_ENTRIES: usize = 10_000_000;
/// Characters that are shown of a path, or of anything else that stands in a manifest.
const MOST_SHOWN: usize = 1_000;
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
    #[serde(deserialize_with = "bounded")]
    pub(crate) files: Vec<Listed>,
    /// What the client left and is not among the files, sorted.
    #[serde(deserialize_with = "bounded")]
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
    #[schemars(with = "finding::Verdict")]
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
    /// Relative to it; bytes that are no UTF-8 are `\xNN`, a backslash `\\`.
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
    /// Relative to the directory, and empty for itself; bytes that are no UTF-8 are `\xNN`, a backslash `\\`.
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
    /// The working directory.
    Work,
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
    /// The word for it.
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
    match truncated(text, MOST_SHOWN) {
        whole if whole == text => visible(text),
        start => format!("{} ({} bytes)", visible(&start), text.len()),
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

    /// The uppermost directory. Of a manifest that was made or read here: its files are sorted.
    pub(crate) fn tree(&self) -> Directory<'_> {
        Directory::uppermost(&self.files)
    }
}

/// A list of no more than [`MOST_ENTRIES`].
fn bounded<'de, D: Deserializer<'de>, T: Deserialize<'de>>(list: D) -> Result<Vec<T>, D::Error> {
    Bounded::of(MOST_ENTRIES).deserialize(list)
}

/// Reads a list up to a bound, and nothing of what is beyond it.
struct Bounded<T> {
    most: usize,
    entries: PhantomData<T>,
}

impl<T> Bounded<T> {
    fn of(most: usize) -> Self {
        Self {
            most,
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
        write!(f, "a list of at most {} entries", self.most)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = list.next_element()? {
            if entries.len() == self.most {
                let why = format!("a list of over {} entries, which no run writes", self.most);
                return Err(A::Error::custom(why));
            }
            entries.push(entry);
        }
        Ok(entries)
    }
}

#[cfg(test)]
mod tests;
