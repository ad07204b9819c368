//! Ends of a bundle: complete, complete with a message, or incomplete.

use std::fs;

use model::evidence::fixture;
use tempfile::TempDir;

use super::verify::{Verified, verify};
use super::*;
use crate::request::VerifyRequest;

/// Returns the report of a run that left no file.
fn report() -> Report {
    let mut report = judge::fixture::report(fixture::case_b());
    report.evidence.files.clear();
    report
}

/// Finishes a bundle after `adapt` has changed it.
fn finished(adapt: impl FnOnce(&mut Bundle)) -> (TempDir, Option<Bundled>, Vec<String>) {
    let directory = tempfile::tempdir().unwrap();
    let mut bundle = open(Some(directory.path()), &[]).unwrap().unwrap();
    bundle.output.touch();
    adapt(&mut bundle);
    let mut lost = Vec::new();
    let bundled = bundle.finish(&report(), &mut lost);
    let lost = lost.iter().map(ToString::to_string).collect();
    (directory, bundled, lost)
}

#[test]
fn a_whole_bundle_has_the_manifest_that_is_told() {
    let (directory, bundled, lost) = finished(|_| {});
    let bundled = bundled.unwrap();
    assert_eq!((bundled.left_out, lost.len()), (0, 0));
    let request = VerifyRequest {
        directory: directory.path().to_owned(),
        required: Some(bundled.manifest),
    };
    let verified = verify(&request, &mut Vec::new()).unwrap();
    assert_eq!(verified, Verified::Good);
}

#[test]
fn files_that_are_not_as_the_report_has_them_are_a_loss_beside_the_manifest() {
    let (directory, bundled, lost) =
        finished(|bundle| bundle.lost = vec!["home/\u{1b}".to_owned(), "home/b".to_owned()]);
    assert!(bundled.is_some() && directory.path().join(manifest::NAME).exists());
    let [told] = lost.try_into().unwrap();
    let expected = r"lacks 2 of the files that the report lists, such as home/\u{1b}";
    assert!(told.ends_with(expected), "{told}");
}

#[test]
fn what_could_not_be_written_is_told_once_and_there_is_no_manifest() {
    let (directory, bundled, lost) = finished(|bundle| {
        for name in ["report.txt", "report.md"] {
            fs::write(bundle.path().join(format!(".{name}.part")), "").unwrap();
        }
    });
    assert!(bundled.is_none() && !directory.path().join(manifest::NAME).exists());
    let [told] = lost.try_into().unwrap();
    assert!(
        told.ends_with(" is incomplete: cannot write report.txt"),
        "{told}"
    );
    // The other files are still written.
    assert!(directory.path().join(REPORT).exists());
}

#[test]
fn without_the_option_there_is_no_bundle() {
    assert!(open(None, &[]).unwrap().is_none());
}
