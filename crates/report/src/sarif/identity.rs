//! Identity of a result across runs: location, fingerprints, and the category of the run.
//!
//! Locations are lines of the case file or the lock file, because a repository holds no other file of a run. None of
//! these values contains a path of this machine, a time or a process id, so that they are equal in every run.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use model::digest;
use model::finding::{self, AskedBy, Finding};
use model::report::{LockPlace, Report};

use super::log::{ArtifactLocation, Fingerprints};

/// Name of the repository root in code scanning.
const SOURCE_ROOT: &str = "%SRCROOT%";

/// Returns the file that requires a check, and the lines in it, from 1. Drift may have several.
pub(super) fn locations(report: &Report, finding: &Finding) -> (ArtifactLocation, Vec<usize>) {
    match (&finding.asked_by, &report.lock_place) {
        (AskedBy::LockFile, Some(lock)) => {
            let known = Some(lock.lines.clone()).filter(|lines| !lines.is_empty());
            (lock_location(lock), known.unwrap_or_else(|| vec![1]))
        }
        (AskedBy::LockFile, None)
        | (AskedBy::Specification(_) | AskedBy::Case | AskedBy::CommandLine, _) => {
            let key = finding::meaning(&finding.id).key;
            let line = report.case.origin.outline.line(key);
            (case_file(report), vec![line])
        }
    }
}

/// Location of the case file, the first artifact of the run.
pub(super) fn case_file(report: &Report) -> ArtifactLocation {
    ArtifactLocation {
        uri: uri(report.case.origin.outline.path()),
        uri_base_id: SOURCE_ROOT,
        index: 0,
    }
}

/// Location of the lock file, the second artifact, if the behaviour was compared with one.
pub(super) fn lock_file(report: &Report) -> Option<ArtifactLocation> {
    report.lock_place.as_ref().map(lock_location)
}

fn lock_location(lock: &LockPlace) -> ArtifactLocation {
    ArtifactLocation {
        uri: uri(&lock.path),
        uri_base_id: SOURCE_ROOT,
        index: 1,
    }
}

/// Encodes a relative path as a relative reference (RFC 3986, section 4.2).
fn uri(path: &Path) -> String {
    let names = path
        .components()
        .map(|name| segment(name.as_os_str().as_bytes()));
    names.collect::<Vec<_>>().join("/")
}

/// Encodes one path segment; only unreserved characters stay as they are (RFC 3986, section 2.3).
fn segment(bytes: &[u8]) -> String {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~".contains(byte);
    let encoded = bytes.iter().map(|byte| match is_plain(byte) {
        true => char::from(*byte).to_string(),
        false => format!("%{byte:02X}"),
    });
    encoded.collect()
}

/// Category of the run, which separates its results from other runs: `runner/case-b/reference/client/`.
///
/// GitHub takes the text before the last slash as the category.
pub(super) fn category(report: &Report) -> String {
    let profile = report.client.profile.as_ref();
    let names = [
        Some("runner"),
        Some(report.case.name.as_str()),
        profile.map(|profile| profile.name.as_str()),
        Some(program(report)),
    ];
    let mut id = String::new();
    for name in names.into_iter().flatten() {
        id.push_str(&segment(name.as_bytes()));
        id.push('/');
    }
    id
}

/// Name of the program, without its directory.
fn program(report: &Report) -> &str {
    match report.client.program.as_str() {
        "built in" => "built-in",
        path => path.rsplit('/').next().unwrap_or_default(),
    }
}

/// Identity of the drift, so that a dismissed alert does not hide other drift.
fn drift(report: &Report) -> impl Iterator<Item = &str> {
    let differences = report
        .baseline
        .iter()
        .flat_map(|baseline| &baseline.differences);
    differences.flat_map(|found| [found.fact.area.word(), found.change.word(), &found.fact.key])
}

/// Builds fingerprints from the check, the case, the client and the drift, and from no other value.
///
/// GitHub compares `primaryLocationLineHash`. Without one, its upload action hashes the line at the location of the
/// result. That line is not in the user's repository for a built-in case, and may move in other files.
pub(super) fn fingerprints(report: &Report, finding: &Finding) -> Fingerprints {
    let profile = report.client.profile.as_ref();
    let client = profile.map_or_else(|| program(report), |profile| profile.name.as_str());
    let mut identity = vec![&*finding.id, report.case.name.as_str(), client];
    if finding.asked_by == AskedBy::LockFile {
        identity.extend(drift(report));
    }
    let identity = identity.join("\0");
    let own = digest::of_bytes(identity.as_bytes());
    let start = own.get(..16).unwrap_or_default();
    Fingerprints {
        github: format!("{start}:1"),
        own,
    }
}
