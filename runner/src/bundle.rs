//! The bundle of evidence of `--out`, and `runner verify`.
//!
//! A bundle is a directory with every report, the client's output, an archive of its files, the policies that judged
//! it, a list of exceptions, and the SHA-256 digest of each of these files, which is written last. Owns the form of a
//! bundle. Must not know how a run is made, nor judge it.

mod archive;
mod inventory;
pub(crate) mod output_dir;
pub(crate) mod sums;
pub(crate) mod verify;

use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use model::case::{Limits, Origin};
use model::digest;
use model::escape::visible;
use model::evidence::Evidence;
use model::quote::shown_path;
use model::report::Report;
use model::secret::SecretScanner;
use report::human::Colour;
use report::json;
use report::{self, Format};
use sandbox::root::Trees;
use thiserror::Error;

use crate::collect::Capture;
use crate::collect::output::{Fidelity, Shown};
use crate::workload::Workload;
use archive::Copied;
use inventory::{EXCEPTIONS, Exception};
use output_dir::{OutputDirectory, OutputDirectoryError};
use sums::Sums;

/// Name of the JSON report, which programs read.
pub(crate) const REPORT: &str = "report.json";
/// Standard output of a client.
const STDOUT_RECORDS: &str = "stdout.jsonl";
/// Standard output of an audited program.
const STDOUT_TEXT: &str = "stdout.txt";
const STDERR: &str = "stderr.txt";
const CASE: &str = "case.toml";
const PROFILE: &str = "profile.toml";

/// A bundle in progress.
#[derive(Debug)]
pub(crate) struct Bundle {
    output: OutputDirectory,
    sums: Sums,
    /// The client's directories, until they are copied.
    trees: Option<Trees>,
    copied: Copied,
    /// First error that makes the bundle incomplete.
    broken: Option<BundleError>,
}

/// A complete bundle.
#[derive(Debug)]
pub(crate) struct Bundled {
    /// Path of the bundle.
    pub(crate) path: PathBuf,
    /// SHA-256 digest of `SHA256SUMS`.
    pub(crate) sha256: String,
    /// Number of objects that could not be copied, without sockets and devices.
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
        sums: Sums::new(),
        trees: None,
        copied: Copied::default(),
        broken: None,
    }))
}

impl Bundle {
    /// Returns the path of the bundle, with links resolved.
    pub(crate) fn path(&self) -> &Path {
        self.output.path()
    }

    /// Creates the files for the copies of standard output and standard error.
    ///
    /// # Errors
    /// Returns the error of the system.
    pub(crate) fn spools(&self) -> Result<[File; 2], OutputDirectoryError> {
        let spool = || {
            self.output
                .unnamed()
                .map_err(|source| OutputDirectoryError::Spool {
                    path: self.shown_path(),
                    source,
                })
        };
        Ok([spool()?, spool()?])
    }

    /// Takes the policies, the output, and handles of the client's directories, before the evidence is built.
    pub(crate) fn take_output(
        &mut self,
        workload: &Workload,
        capture: &mut Capture,
        secrets: &SecretScanner,
    ) {
        self.output.touch();
        self.put_policy(CASE, workload.origin(), secrets);
        if let Workload::Client { profile, .. } = workload {
            self.put_policy(PROFILE, &profile.origin, secrets);
        }
        match &mut capture.passed {
            Some(passed) => self.put_output(STDOUT_TEXT, passed.copied()),
            None => self.put_output(STDOUT_RECORDS, capture.output.copied()),
        }
        self.put_output(STDERR, capture.errors.copied());
        match capture.trees.as_ref().map(Trees::try_clone).transpose() {
            Ok(trees) => self.trees = trees,
            Err(source) => self.fail("the client's files", source),
        }
    }

    fn put_policy(&mut self, name: &str, origin: &Origin, secrets: &SecretScanner) {
        match secrets.find_hidden(origin.text.as_bytes()) {
            Some(variable) => {
                self.copied.withheld += 1;
                let reason = format!("the value of {variable} is in it, which no report shows");
                self.except(name, reason);
            }
            None => self.put(name, origin.text.as_bytes()),
        }
    }

    /// Puts a stream; empty if there was no client.
    fn put_output(&mut self, name: &str, output: Option<io::Result<Shown>>) {
        let Shown { file, fidelity } = match output {
            Some(Ok(shown)) => shown,
            Some(Err(source)) => return self.fail(name, source),
            None => return self.put(name, &[]),
        };
        match fidelity {
            Fidelity::Exact => {}
            Fidelity::Redacted => {
                self.except(name, "the credential or a hidden value is replaced in it");
            }
            Fidelity::Cut => {
                self.copied.left_out += 1;
                self.except(name, "the rest of it is beyond the limit on output");
            }
        }
        self.put_written(name, |mut named| {
            io::copy(&mut &file, &mut named)?;
            digest_of(named)
        });
    }

    fn except(&mut self, path: &str, reason: impl Into<String>) {
        self.copied.exceptions.push(Exception::new(path, reason));
    }

    /// Copies the client's files. The evidence must have been built before, because copying changes modes to
    /// open files.
    pub(crate) fn take_files(
        &mut self,
        evidence: &Evidence,
        limits: &Limits,
        secrets: &SecretScanner,
    ) {
        let trees = self.trees.take();
        let copied = &mut self.copied;
        let written = self.output.put(archive::NAME, |file| {
            match &trees {
                Some(trees) => {
                    archive::write(file, trees, &evidence.files, limits, secrets, copied)?;
                }
                None => archive::finish(file, 0)?,
            }
            digest_of(file)
        });
        match written {
            Ok(sha256) => drop(self.sums.insert(archive::NAME.to_owned(), sha256)),
            Err(error) => self.fail("the client's files", error),
        }
    }

    /// Writes every report and the digests. An incomplete bundle gets no digests. Errors are added to `lost`.
    pub(crate) fn finish(
        mut self,
        report: &Report,
        lost: &mut Vec<BundleError>,
    ) -> Option<Bundled> {
        for format in Format::ALL {
            let rendered = report::render(report, format, Colour::Plain);
            self.put_rendered(file_of(format), rendered.map_err(io::Error::other));
        }
        self.copied.exceptions.sort();
        let exceptions = json::document(&self.copied.exceptions);
        self.put_rendered(EXCEPTIONS, exceptions.map_err(io::Error::from));
        let path = self.shown_path();
        if let Some(first) = self.copied.lost.first() {
            lost.push(BundleError::Lacks {
                path: path.clone(),
                count: self.copied.lost.len(),
                first: visible(first),
            });
        }
        if let Some(broken) = self.broken {
            lost.push(broken);
            return None;
        }
        let bundle = self.path().to_owned();
        let document = sums::document(&self.sums);
        match self.output.finish(document.as_bytes()) {
            Ok(()) => Some(Bundled {
                path: bundle,
                sha256: digest::of_bytes(document.as_bytes()),
                left_out: self.copied.left_out,
                withheld: self.copied.withheld,
            }),
            Err(source) => {
                let name = sums::NAME.to_owned();
                lost.push(BundleError::Write { path, name, source });
                None
            }
        }
    }

    fn put_rendered(&mut self, name: &str, rendered: io::Result<Vec<u8>>) {
        match rendered {
            Ok(content) => self.put(name, &content),
            Err(error) => self.fail(name, error),
        }
    }

    fn put(&mut self, name: &str, content: &[u8]) {
        self.put_written(name, |mut file| {
            file.write_all(content)?;
            Ok(digest::of_bytes(content))
        });
    }

    /// Puts a file that `write` writes; `write` returns its digest.
    fn put_written(&mut self, name: &str, write: impl FnOnce(&File) -> io::Result<String>) {
        match self.output.put(name, write) {
            Ok(sha256) => drop(self.sums.insert(name.to_owned(), sha256)),
            Err(source) => self.fail(name, source),
        }
    }

    /// Records an error, after which no digests are written; the first error is reported.
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

fn digest_of(mut file: &File) -> io::Result<String> {
    file.rewind()?;
    digest::of_reader(file)
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
