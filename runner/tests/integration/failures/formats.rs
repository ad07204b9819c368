//! Every format in its own file: present before the run, and replaced atomically at its end, for every verdict.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use report::Format;
use serde_json::Value;
use tempfile::TempDir;

use super::client_of;
use crate::kit::{Run, parsed};
use crate::needs_sandbox;

/// Content of each file before the run.
const BEFORE: &[u8] = b"the report of yesterday";

/// A directory with a file for each format.
struct Files {
    directory: TempDir,
}

impl Files {
    fn of(run: Run) -> (Run, Self) {
        let files = Self {
            directory: tempfile::tempdir().unwrap(),
        };
        let with_each = Format::ALL.into_iter().fold(run, |run, format| {
            let path = files.path(format);
            fs::write(&path, BEFORE).unwrap();
            let option = format!("{}={}", format.word(), path.display());
            run.argument("--report").argument(option)
        });
        (with_each, files)
    }

    fn path(&self, format: Format) -> PathBuf {
        self.directory.path().join(format.word())
    }

    #[track_caller]
    fn assert_untouched(&self) {
        for format in Format::ALL {
            assert_eq!(fs::read(self.path(format)).unwrap(), BEFORE, "{format:?}");
        }
    }

    /// Asserts that each report has this verdict and is complete, and that the directory has no other file.
    #[track_caller]
    fn assert_whole(&self, verdict: &str) {
        for format in Format::ALL {
            let report = fs::read(self.path(format)).unwrap();
            let report = String::from_utf8(report).unwrap();
            assert!(report.ends_with('\n'), "{format:?}: {report}");
            assert_tells(format, &report, verdict);
        }
        let number = fs::read_dir(self.directory.path()).unwrap().count();
        assert_eq!(number, Format::ALL.len());
    }
}

#[track_caller]
fn assert_tells(format: Format, report: &str, verdict: &str) {
    let loud = verdict.to_ascii_uppercase();
    match format {
        Format::Human => {
            let last = report.lines().last();
            assert!(report.starts_with(&loud) && report.lines().next() == last);
        }
        Format::Json => assert_eq!(parsed(report.as_bytes(), "")["verdict"], verdict),
        Format::Junit => {
            let document = roxmltree::Document::parse(report).unwrap();
            let mut values = document
                .descendants()
                .filter_map(|node| node.attribute("value"));
            assert_eq!(values.next(), Some(verdict));
        }
        Format::Markdown => assert!(report.starts_with(&format!("## {loud}: ")), "{report}"),
        Format::Html => {
            assert!(report.starts_with("<!DOCTYPE html>"), "{report}");
            assert!(report.contains(&format!("<title>{loud} ")), "{report}");
            assert!(report.trim_end().ends_with("</html>"), "{report}");
        }
        Format::Sarif => {
            let log: Value = serde_json::from_str(report).unwrap();
            assert_eq!(log["runs"][0]["properties"]["verdict"], verdict);
        }
    }
}

#[track_caller]
fn assert_whole_after(signal: Signal) {
    let (run, files) = Files::of(Run::case_b().deviating("stays"));
    let mut run = run
        .command()
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    client_of(&run);
    files.assert_untouched();
    kill(Pid::from_raw(run.id().try_into().unwrap()), signal).unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(3));
    files.assert_whole("errored");
}

#[test]
fn an_interrupt_leaves_every_report_whole() {
    needs_sandbox!();
    assert_whole_after(Signal::SIGINT);
}

#[test]
fn a_termination_leaves_every_report_whole() {
    needs_sandbox!();
    assert_whole_after(Signal::SIGTERM);
}

#[test]
fn a_run_that_never_started_leaves_every_report_whole() {
    needs_sandbox!();
    let (run, files) = Files::of(Run::case_b().client("/bin/true"));
    assert_eq!(run.output().status.code(), Some(3));
    files.assert_whole("errored");
}

#[test]
fn runs_that_fail_and_pass_leave_every_report_whole() {
    needs_sandbox!();
    let (run, files) = Files::of(Run::case_b().deviating("unknown-get"));
    assert_eq!(run.output().status.code(), Some(1));
    files.assert_whole("failed");
    let (run, files) = Files::of(Run::case_a());
    assert_eq!(run.output().status.code(), Some(0));
    files.assert_whole("passed");
}

/// No run starts, and the earlier reports are unchanged.
#[test]
fn one_report_without_a_place_leaves_the_others_untouched() {
    let (run, files) = Files::of(Run::case_b());
    let absent = files.directory.path().join("absent/report");
    let output = run
        .argument("--report")
        .argument(format!("sarif={}", absent.display()))
        .output();
    assert_eq!(output.status.code(), Some(2));
    files.assert_untouched();
    let number = fs::read_dir(files.directory.path()).unwrap().count();
    assert_eq!(number, Format::ALL.len());
}
