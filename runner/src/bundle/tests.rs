//! Ends of a bundle: complete, complete with a message, or incomplete.

use std::fs;

use model::evidence::fixture;
use tempfile::TempDir;

use super::*;

/// Finishes a bundle after `adapt` has changed it.
fn finished(adapt: impl FnOnce(&mut Bundle)) -> (TempDir, Option<Bundled>, Vec<String>) {
    let directory = tempfile::tempdir().unwrap();
    let mut bundle = open(Some(directory.path()), &[]).unwrap().unwrap();
    bundle.output.touch();
    adapt(&mut bundle);
    let mut lost = Vec::new();
    let report = judge::fixture::report(fixture::case_b());
    let bundled = bundle.finish(&report, &mut lost);
    let lost = lost.iter().map(ToString::to_string).collect();
    (directory, bundled, lost)
}

#[test]
fn complete_bundle_returns_digest_of_sums() {
    let (directory, bundled, lost) = finished(|_| {});
    let sums = fs::read(directory.path().join(sums::NAME)).unwrap();
    assert_eq!(bundled.unwrap().sha256, digest::of_bytes(&sums));
    assert_eq!(sums::parse(&sums).unwrap().len(), 7);
    assert_eq!(lost, [""; 0]);
}

#[test]
fn lost_files_are_an_error_besides_the_sums() {
    let (directory, bundled, lost) =
        finished(|bundle| bundle.copied.lost = vec!["home/\u{1b}".to_owned(), "home/b".to_owned()]);
    assert!(bundled.is_some() && directory.path().join(sums::NAME).exists());
    let [told] = lost.try_into().unwrap();
    let expected = r"lacks 2 of the files that the report lists, such as home/\u{1b}";
    assert!(told.ends_with(expected), "{told}");
}

#[test]
fn failed_write_is_told_once_and_leaves_no_sums() {
    let (directory, bundled, lost) = finished(|bundle| {
        for name in ["report.txt", "report.md"] {
            fs::write(bundle.path().join(format!(".{name}.part")), "").unwrap();
        }
    });
    assert!(bundled.is_none() && !directory.path().join(sums::NAME).exists());
    let [told] = lost.try_into().unwrap();
    let expected = " is incomplete: cannot write report.txt";
    assert!(told.ends_with(expected), "{told}");
    // The other files are still written.
    assert!(directory.path().join(REPORT).exists());
}

#[test]
fn run_without_the_option_has_no_bundle() {
    assert!(open(None, &[]).unwrap().is_none());
}
