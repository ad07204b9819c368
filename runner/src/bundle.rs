//! The bundle of evidence of `--out`, and `runner verify`.
//!
//! A bundle is a directory with every report, the client's output, copies of its files, and a manifest. The
//! manifest has the SHA-256 digest of each file and is written last. Owns the form of a bundle. Must not know how
//! a run is made, nor judge it.

mod client_files;
pub(crate) mod manifest;
mod name;
pub(crate) mod output_dir;
pub(crate) mod verify;

use std::io;
use std::path::{Path, PathBuf};

use model::case::Limits;
use model::digest;
use model::escape::visible;
use model::evidence::Evidence;
use model::quote::shown_path;
use model::report::Report;
use model::secret::SecretScanner;
use report::human::Colour;
use report::{self, Format, RenderError};
use sandbox::root::Trees;
use thiserror::Error;

use crate::collect::Capture;
use crate::collect::copy::Bounds;
use crate::collect::files::PATH_BYTES;
use crate::collect::output::Shown;
use client_files::{Copied, copy_tree};
use manifest::{Kind, Listed, Manifest, NotCopied, Run, Source};
use output_dir::{OutputDirectory, OutputDirectoryError};

/// Name of the JSON report, which programs read.
pub(crate) const REPORT: &str = "report.json";

/// A bundle in progress.
#[derive(Debug)]
pub(crate) struct Bundle {
    output: OutputDirectory,
    files: Vec<Listed>,
    not_copied: Vec<NotCopied>,
    /// The client's directories, until they are copied.
    trees: Option<Trees>,
    /// Number of objects that could not be copied.
    left_out: usize,
    /// Number of files that were not copied because of their content.
    withheld: usize,
    /// Files of the report whose copy is missing or different.
    lost: Vec<String>,
    /// First error that makes the bundle incomplete.
    broken: Option<BundleError>,
}

/// A complete bundle.
#[derive(Debug)]
pub(crate) struct Bundled {
    /// Path of the bundle.
    pub(crate) path: PathBuf,
    /// SHA-256 digest of its manifest.
    pub(crate) manifest: String,
    /// Number of objects that could not be copied. Links and other objects that are never copied are not counted,
    /// nor are empty directories.
    pub(crate) left_out: usize,
    /// Number of files that hold the value of a variable that no report shows.
    pub(crate) withheld: usize,
}

/// Error that makes a bundle incomplete, or different from its report.
#[derive(Debug, Error)]
pub(crate) enum BundleError {
    #[error("the evidence in {path} is incomplete: cannot write {name}")]
    Write {
        path: String,
        name: String,
        source: io::Error,
    },
    #[error("the evidence in {path} is incomplete: cannot render the {} report", format.word())]
    Render {
        path: String,
        format: Format,
        source: RenderError,
    },
    #[error("the evidence in {path} is incomplete: cannot encode the manifest as JSON")]
    Manifest {
        path: String,
        source: serde_json::Error,
    },
    #[error(
        "the evidence in {path} is incomplete: expected a manifest of at most {} bytes, found {bytes}",
        manifest::MAX_BYTES
    )]
    Large { path: String, bytes: usize },
    #[error(
        "the evidence in {path} lacks {count} of the files that the report lists, such as {first}"
    )]
    Lacks {
        path: String,
        count: usize,
        first: String,
    },
}

/// Opens the directory of a bundle before the run. `others` are the other paths that the run writes or compares
/// with.
///
/// # Errors
/// Returns the reason why the directory cannot be used.
pub(crate) fn open(
    directory: Option<&Path>,
    others: &[PathBuf],
) -> Result<Option<Bundle>, OutputDirectoryError> {
    let Some(directory) = directory else {
        return Ok(None);
    };
    let output = OutputDirectory::open(directory)?;
    let mut others = others.iter();
    if let Some(other) = others.find(|other| other.starts_with(output.path())) {
        return Err(OutputDirectoryError::HoldsOther {
            path: shown_path(directory),
            other: shown_path(other),
        });
    }
    Ok(Some(Bundle {
        output,
        files: Vec::new(),
        not_copied: Vec::new(),
        trees: None,
        left_out: 0,
        withheld: 0,
        lost: Vec::new(),
        broken: None,
    }))
}

impl Bundle {
    /// Returns the path of the bundle, with links resolved.
    pub(crate) fn path(&self) -> &Path {
        self.output.path()
    }

    /// Takes the output, and handles of the client's directories, before the evidence is built.
    pub(crate) fn take_output(&mut self, capture: &Capture, secrets: &SecretScanner) {
        self.output.touch();
        let (name, stdout) = match &capture.passed {
            Some(passed) => ("stdout.txt", passed.shown(secrets)),
            None => ("stdout.jsonl", capture.output.shown(secrets)),
        };
        self.put_output(name, Source::Stdout, stdout);
        let stderr = capture.errors.shown(secrets);
        self.put_output("stderr.txt", Source::Stderr, stderr);
        match capture.trees.as_ref().map(Trees::try_clone).transpose() {
            Ok(trees) => self.trees = trees,
            Err(source) => self.fail("the client's files", source),
        }
    }

    fn put_output(&mut self, name: &str, root: Source, output: Shown) {
        if output.is_cut {
            self.left_out += 1;
            self.not_copied.push(NotCopied {
                root,
                path: String::new(),
                kind: Some(Kind::Output),
                target: None,
                reason: "the rest of it is beyond the limit on output".to_owned(),
            });
        }
        self.put(name, &output.bytes);
    }

    /// Copies the client's files. The evidence must have been built before, because copying changes modes to
    /// open files.
    pub(crate) fn take_files(
        &mut self,
        evidence: &Evidence,
        limits: &Limits,
        secrets: &SecretScanner,
    ) {
        let Some(trees) = self.trees.take() else {
            return;
        };
        let mut copied = Copied::default();
        for (root, tree) in trees.each() {
            // The same bounds as for the evidence.
            let entries = copied.files.len() + copied.not_copied.len();
            let bounds = Bounds {
                bytes: 2 * limits.home_bytes,
                entries: limits.home_files.saturating_sub(entries as u64),
                paths: limits.home_files.saturating_mul(PATH_BYTES),
            };
            let bundle = self.output.held();
            let of = (root, tree);
            copy_tree(of, bundle, &evidence.files, secrets, bounds, &mut copied);
            if copied.broken.is_some() {
                break;
            }
        }
        self.files.append(&mut copied.files);
        self.not_copied.append(&mut copied.not_copied);
        self.left_out += copied.left_out;
        self.withheld = copied.withheld;
        self.lost = copied.lost;
        if let Some(error) = copied.broken {
            self.fail("the client's files", error);
        }
    }

    /// Writes every report and the manifest. An incomplete bundle gets no manifest. Errors are added to `lost`.
    pub(crate) fn finish(
        mut self,
        report: &Report,
        lost: &mut Vec<BundleError>,
    ) -> Option<Bundled> {
        for format in Format::ALL {
            match report::render(report, format, Colour::Plain) {
                Ok(rendered) => self.put(file_of(format), &rendered),
                Err(source) => {
                    let path = self.shown_path();
                    self.broken.get_or_insert(BundleError::Render {
                        path,
                        format,
                        source,
                    });
                }
            }
        }
        let (path, shown) = (self.path().to_owned(), self.shown_path());
        if let Some(first) = self.lost.first() {
            let lacks = BundleError::Lacks {
                path: shown,
                count: self.lost.len(),
                first: visible(first),
            };
            lost.push(lacks);
        }
        let (left_out, withheld) = (self.left_out, self.withheld);
        match self.write_manifest(report) {
            Ok(manifest) => Some(Bundled {
                path,
                manifest,
                left_out,
                withheld,
            }),
            Err(error) => {
                lost.push(error);
                None
            }
        }
    }

    /// Writes the manifest. Returns its digest.
    fn write_manifest(mut self, report: &Report) -> Result<String, BundleError> {
        let path = self.shown_path();
        if let Some(broken) = self.broken.take() {
            return Err(broken);
        }
        let manifest = Manifest::new(Run::from(report), self.files, self.not_copied);
        let document = match manifest.document() {
            Ok(document) => document,
            Err(source) => return Err(BundleError::Manifest { path, source }),
        };
        if document.len() as u64 > manifest::MAX_BYTES {
            let bytes = document.len();
            return Err(BundleError::Large { path, bytes });
        }
        match self.output.finish(&document) {
            Ok(()) => Ok(digest::of_bytes(&document)),
            Err(source) => Err(BundleError::Write {
                path,
                name: manifest::NAME.to_owned(),
                source,
            }),
        }
    }

    fn put(&mut self, name: &str, content: &[u8]) {
        match self.output.put(name, content) {
            Ok(()) => self.files.push(Listed {
                path: name.to_owned(),
                bytes: content.len() as u64,
                sha256: digest::of_bytes(content),
                original: None,
            }),
            Err(source) => self.fail(name, source),
        }
    }

    /// Records an error, after which no manifest is written; the first error is reported.
    fn fail(&mut self, name: &str, source: io::Error) {
        let path = self.shown_path();
        self.broken.get_or_insert(BundleError::Write {
            path,
            name: name.to_owned(),
            source,
        });
    }

    fn shown_path(&self) -> String {
        shown_path(self.output.path())
    }
}

/// Returns the file name of a report in a bundle.
fn file_of(format: Format) -> &'static str {
    match format {
        Format::Human => "report.txt",
        Format::Json => REPORT,
        Format::Junit => "report.xml",
        Format::Markdown => "report.md",
        Format::Html => "report.html",
        Format::Sarif => "report.sarif",
    }
}

#[cfg(test)]
mod tests;
