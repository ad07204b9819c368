//! A client whose files are dangerous to copy.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use nix::unistd::geteuid;
use serde_json::Value;

use super::{Place, names};
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

#[track_caller]
fn assert_harmless(place: &Place, said: &str) {
    place.assert_nothing_outside();
    place.assert_verifies();
    assert!(!said.contains("error: the evidence"), "{said}");
    for name in names(place.evidence()) {
        let status = fs::symlink_metadata(place.evidence().join(&name)).unwrap();
        assert_eq!(status.permissions().mode(), 0o100_644, "{name}");
    }
}

/// Asserts that tar(1) gives each object, and extracts all of them as user 1000 below one directory.
#[track_caller]
fn assert_copied(place: &Place, is_namespace: bool) {
    for (name, content) in [
        (&b"new\nline"[..], &b"new\nline"[..]),
        (b"..%2f..%2fevil", b"..%2f..%2fevil"),
        (b"con\xff\xfe", b"con\xff\xfe"),
        (b"SHA256SUMS", b"SHA256SUMS"),
        (b"one", b"linked"),
        (b"other", b"linked"),
        (b"closed/unreadable", b"x"),
        (b"-rf", b"-rf"),
    ] {
        let name = [b"home/", name].concat();
        assert_eq!(place.file(OsStr::from_bytes(&name)), content);
    }
    let listed = place.listed();
    for (begin, end) in [
        ("lrwxrwxrwx 65534/65534", " home/to-a-file -> /etc/passwd"),
        ("lrwxrwxrwx", " home/far-up -> ../../../../../../tmp"),
        ("lrwxrwxrwx", r" home/to-a-line -> new\nline"),
        ("lrwxrwxrwx", " home/replaced -> /etc/passwd"),
        ("prwx", " home/fifo"),
        ("drwx", " home/empty/empty"),
        ("d---------", " home/closed"),
        ("----------", " home/closed/unreadable"),
    ] {
        let is_it = |line: &&String| line.starts_with(begin) && line.ends_with(end);
        assert_eq!(listed.iter().filter(is_it).count(), 1, "{end}: {listed:#?}");
    }
    // The isolation `inherited` permits no set-user-ID.
    let set_id = listed.iter().filter(|line| line.starts_with("-rwsr-sr-x"));
    assert_eq!(set_id.count(), usize::from(is_namespace));
    let sparse = place.reason("home/sparse");
    assert!(sparse.contains("bytes, and "), "{sparse}");
    if is_namespace {
        let exceptions = place.exceptions();
        let bottom = exceptions.iter().find(|one| {
            let path = one["path"].as_str().unwrap();
            path.starts_with("tmp/") && path.ends_with("/bottom")
        });
        let bottom = bottom.unwrap()["stored_as"].as_str().unwrap();
        assert_eq!(place.file(bottom), b"x");
    }
}

/// Extracts the archive as user 1000, in a directory of its own.
#[track_caller]
fn assert_extracts_as_a_user(place: &Place) {
    let into = place.at("into");
    fs::create_dir(&into).unwrap();
    let mut tar = Command::new("tar");
    if geteuid().is_root() {
        chown(&into, Some(1000), Some(1000)).unwrap();
        tar.uid(1000).gid(1000);
    }
    let archive = File::open(place.evidence().join("files.tar")).unwrap();
    let tar = tar.args(["-xf", "-", "-C"]).arg(&into).stdin(archive);
    let output = tar.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), said.as_str()), (Some(0), ""));
    let mode = |name: &str| fs::symlink_metadata(into.join(name)).unwrap().mode();
    // tar(1) drops set-user-ID for an ordinary user.
    assert_eq!(mode("home/set-id"), 0o100_755);
    assert_eq!(mode("home/closed"), 0o040_000);
    assert_eq!(
        fs::read_link(into.join("home/up")).unwrap(),
        Path::new("..")
    );
    assert_eq!(fs::read(into.join("home/new\nline")).unwrap(), b"new\nline");
    assert_eq!(names(&into), ["home", "renamed", "tmp"]);
    // The directories of mode 0 do not open for their removal.
    fs::set_permissions(into.join("home/closed"), fs::Permissions::from_mode(0o700)).unwrap();
    fs::remove_dir_all(into).unwrap();
}

#[test]
fn hostile_names_and_links_stay_inside() {
    needs_sandbox!();
    for ordinary in [false, true] {
        let (place, said) = abused("copied", ordinary, |run| run);
        assert_eq!(place.report()["tier"], "namespace");
        assert_harmless(&place, &said);
        assert_copied(&place, true);
        assert_extracts_as_a_user(&place);
    }
}

#[test]
fn hostile_names_in_a_container_stay_inside() {
    needs_sandbox!();
    for ordinary in [false, true] {
        let (place, said) = abused("copied", ordinary, |run| run.on_a_host_without(CONTAINER));
        assert_eq!(place.report()["tier"], "inherited");
        assert_harmless(&place, &said);
        assert_copied(&place, false);
    }
}

#[test]
fn excess_is_left_out_and_told() {
    needs_sandbox!();
    for (abuse, reason) in [
        ("sparse-files", "bytes, and"),
        ("hard-links", "bytes, and"),
        ("long-paths", "bytes of paths"),
        ("deep-directories", "100 directories deep"),
    ] {
        let (place, said) = abused(abuse, false, |run| run);
        assert_harmless(&place, &said);
        let is_told = |one: &Value| one["reason"].as_str().unwrap().contains(reason);
        assert!(place.exceptions().iter().any(is_told), "{abuse}: {said}");
        assert!(said.contains("note: not in the evidence: "), "{said}");
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
    let reason = place.reason("stderr.txt");
    assert_eq!(reason, "the rest of it is beyond the limit on output");
    let kept = place.read("stderr.txt").len();
    assert!(kept <= 1 << 20 && kept > 1 << 19, "{kept}");
}
