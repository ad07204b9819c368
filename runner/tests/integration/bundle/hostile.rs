//! A client whose files are dangerous to copy.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use super::{Place, everything};
use crate::abuse::Abuse;
use crate::kit::Run;
use crate::needs_sandbox;
use crate::teardown::watch;

/// A usual container without a network.
const CONTAINER: &str = "network,namespaces";

/// Runs the client, and returns the place and the output.
fn abused(name: &'static str, ordinary: bool, adapt: fn(Run) -> Run) -> (Place, String) {
    let case = watch::Place::new();
    let place = Place::new();
    let mut abuse = Abuse::of(name);
    if ordinary {
        abuse = abuse.by_an_ordinary_user();
    }
    let run = adapt(place.described(abuse.described(&case)));
    let output = case.command(run).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(matches!(output.status.code(), Some(1 | 3)), "{said}");
    case.assert_nothing_left();
    (place, said)
}

fn not_copied<'m>(manifest: &'m Value, path: &str) -> &'m Value {
    let all = manifest["not_copied"].as_array().unwrap();
    let found = all.iter().find(|one| one["path"] == path);
    found.unwrap_or_else(|| panic!("{path} is not among {all:#?}"))
}

#[track_caller]
fn assert_harmless(place: &Place, said: &str) {
    place.assert_nothing_outside();
    place.assert_verifies();
    assert!(!said.contains("error: the evidence"), "{said}");
    for path in everything(&place.evidence()) {
        let status = fs::symlink_metadata(&path).unwrap();
        assert!(status.is_file() || status.is_dir(), "{path:?}");
        assert_eq!(status.permissions().mode() & 0o7000, 0, "{path:?}");
        let name = path.file_name().unwrap().to_str().unwrap();
        let plain = |c: char| c.is_ascii_alphanumeric() || "%._-+=@,~".contains(c);
        assert!(
            name.chars().all(plain) && !name.contains("runner-key"),
            "{name}"
        );
        assert!(path.as_os_str().len() < 2_000, "{path:?}");
    }
}

#[track_caller]
fn assert_copied(place: &Place, is_namespace: bool) {
    let evidence = place.evidence();
    let manifest = place.manifest();
    let read = |path: &str| fs::read(evidence.join("home").join(path)).unwrap();
    assert_eq!(read("new%0Aline"), b"new\nline");
    assert_eq!(read("%2E.%252f..%252fevil"), b"..%2f..%2fevil");
    assert_eq!(read("con%FF%FE"), b"con\xff\xfe");
    assert_eq!(read("manifest.json"), b"manifest.json");
    assert_eq!(
        (read("one"), read("other")),
        (b"linked".to_vec(), b"linked".to_vec())
    );
    assert_eq!(read("closed/unreadable"), b"x");
    assert_eq!(not_copied(&manifest, "sparse")["kind"], "file");
    for (path, kind, target) in [
        ("to-a-file", "symlink", "/etc/passwd"),
        ("to-a-directory", "symlink", "/etc"),
        ("up", "symlink", ".."),
        ("replaced", "symlink", "/etc/passwd"),
        ("to-a-line", "symlink", "new\nline"),
    ] {
        let entry = not_copied(&manifest, path);
        assert_eq!(
            (&entry["kind"], &entry["target"]),
            (&kind.into(), &target.into())
        );
    }
    assert_eq!(not_copied(&manifest, "fifo")["kind"], "fifo");
    assert_eq!(not_copied(&manifest, "empty/empty")["kind"], "directory");
    let files = manifest["files"].as_array().unwrap();
    let original = |path: &str| {
        let is_it = |file: &&Value| file["original"]["path"] == path;
        &files.iter().find(is_it).unwrap()["original"]
    };
    assert_eq!(original("closed/unreadable")["mode"], "0000");
    assert_eq!(original(r"con\xff\xfe")["root"], "home");
    if is_namespace {
        let bottom = files.iter().filter(|file| {
            let path = file["original"]["path"].as_str().unwrap_or_default();
            path.ends_with("/bottom") && file["path"].as_str().unwrap().starts_with("far/")
        });
        assert_eq!(bottom.count(), 1);
    }
}

#[test]
fn no_name_and_no_link_leads_out_of_the_evidence() {
    needs_sandbox!();
    for ordinary in [false, true] {
        let (place, said) = abused("copied", ordinary, |run| run);
        assert_eq!(place.report()["tier"], "namespace");
        assert_harmless(&place, &said);
        assert_copied(&place, true);
    }
}

#[test]
fn in_a_container_no_name_and_no_link_does_either() {
    needs_sandbox!();
    for ordinary in [false, true] {
        let (place, said) = abused("copied", ordinary, |run| run.on_a_host_without(CONTAINER));
        assert_eq!(place.report()["tier"], "inherited");
        assert_harmless(&place, &said);
        assert_copied(&place, false);
    }
}

#[test]
fn an_archive_of_a_hostile_clients_evidence_verifies() {
    needs_sandbox!();
    let (place, _) = abused("copied", false, |run| run);
    place.assert_an_archive_verifies();
}

#[test]
fn what_is_too_much_is_left_out_and_told() {
    needs_sandbox!();
    for (abuse, reason) in [
        ("sparse-files", "bytes, and"),
        ("hard-links", "bytes, and"),
        ("long-paths", "bytes of paths"),
        ("many-links", "only regular files are copied"),
        ("deep-directories", "100 directories deep"),
    ] {
        let (place, said) = abused(abuse, false, |run| run);
        assert_harmless(&place, &said);
        let manifest = place.manifest();
        let left_out = manifest["not_copied"].as_array().unwrap();
        let is_told = |one: &Value| one["reason"].as_str().unwrap().contains(reason);
        assert!(left_out.iter().any(is_told), "{abuse}: {said}");
        let notes = said.contains("note: not in the evidence: ");
        assert_eq!(notes, abuse != "many-links", "{said}");
    }
}

#[test]
fn output_beyond_its_limit_is_cut_and_told() {
    needs_sandbox!();
    let case = watch::Place::new();
    let place = Place::new();
    let abuse = Abuse::of("endless-errors").limit("output_size", "\"1 MiB\"");
    let run = place.described(abuse.described(&case));
    let output = case.command(run).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    case.assert_nothing_left();
    assert_harmless(&place, &said);
    let manifest = place.manifest();
    let left_out = manifest["not_copied"].as_array().unwrap();
    let cut = left_out.iter().find(|one| one["root"] == "stderr").unwrap();
    assert_eq!(
        cut["reason"],
        "the rest of it is beyond the limit on output"
    );
    let kept = fs::metadata(place.evidence().join("stderr.txt"))
        .unwrap()
        .len();
    assert!(kept <= 1 << 20 && kept > 1 << 19, "{kept}");
}
