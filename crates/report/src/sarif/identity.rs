//! By what a result is known again: its place, its fingerprints and the category of its run.
//!
//! Places are lines of the case file or the lock file, as nothing else of a run lies in a repository. All of this is
//! the same in every run: no path of this machine, no time, no number of a process.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use model::digest;
use model::finding::{self, AskedBy, Finding};
use model::report::{LockPlace, Report};

use super::log::{ArtifactLocation, Fingerprints};

/// The root of the repository, by the name that code scanning has for it.
const SOURCE_ROOT: &str = "%SRCROOT%";

/// The file that asks for a check, and the lines in it, from 1: more than one where each is to be changed.
pub(super) fn places(report: &Report, finding: &Finding) -> (ArtifactLocation, Vec<usize>) {
    match (finding.asked_by, &report.lock_place) {
        (AskedBy::LockFile, Some(lock)) => {
            let known = Some(lock.lines.clone()).filter(|lines| !lines.is_empty());
            (locked_by(lock), known.unwrap_or_else(|| vec![1]))
        }
        (AskedBy::LockFile, None) | (AskedBy::Specification(_), _) => {
            let key = finding::meaning(finding.id).key;
            let line = report.case.origin.outline.line(key);
            (case_file(report), vec![line])
        }
    }
}

/// The first of the run's artifacts.
pub(super) fn case_file(report: &Report) -> ArtifactLocation {
    ArtifactLocation {
        uri: uri(report.case.origin.outline.path()),
        uri_base_id: SOURCE_ROOT,
        index: 0,
    }
}

/// The second, where the behaviour was compared with one.
pub(super) fn lock_file(report: &Report) -> Option<ArtifactLocation> {
    report.lock_place.as_ref().map(locked_by)
}

fn locked_by(lock: &LockPlace) -> ArtifactLocation {
    ArtifactLocation {
        uri: uri(&lock.path),
        uri_base_id: SOURCE_ROOT,
        index: 1,
    }
}

/// A relative path as a relative reference (RFC 3986, section 4.2).
fn uri(path: &Path) -> String {
    let names = path
        .components()
        .map(|name| segment(name.as_os_str().as_bytes()));
    names.collect::<Vec<_>>().join("/")
}

/// As one segment of a path: everything but what RFC 3986, section 2.3, reserves for nothing is encoded.
fn segment(bytes: &[u8]) -> String {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~".contains(byte);
    let encoded = bytes.iter().map(|byte| match is_plain(byte) {
        true => char::from(*byte).to_string(),
        false => format!("%{byte:02X}"),
    });
    encoded.collect()
}

/// What tells this kind of run from others whose results are kept side by side: `runner/case-b/reference/client/`.
/// GitHub takes all before the last slash for the category.
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

/// The program's name, without the directory that it lies in.
fn program(report: &Report) -> &str {
    match report.client.program.as_str() {
        "built in" => "built-in",
        path => path.rsplit('/').next().unwrap_or_default(),
    }
}

/// What differs from the lock file. Whoever dismisses one drift has not dismissed the next.
fn drift(report: &Report) -> impl Iterator<Item = &str> {
    let differences = report
        .baseline
        .iter()
        .flat_map(|baseline| &baseline.differences);
    differences.flat_map(|found| [found.fact.area.word(), found.change.word(), &found.fact.key])
}

/// Of what is the same whenever this check of this case and this client has the same result, and of nothing else.
///
/// Code scanning of GitHub compares `primaryLocationLineHash`. Its upload makes that of the line at the place of the
/// result, where there is none: but a built-in case does not lie in the repository of whoever runs it, and the line of
/// another may move. One that is there it keeps.
pub(super) fn fingerprints(report: &Report, finding: &Finding) -> Fingerprints {
    let profile = report.client.profile.as_ref();
    let client = profile.map_or_else(|| program(report), |profile| profile.name.as_str());
    let mut identity = vec![finding.id, report.case.name.as_str(), client];
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
