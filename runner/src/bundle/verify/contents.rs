//! Comparison of a report with the other files of its bundle.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read as _, Seek as _};

use model::case::Root;
use model::evidence::GapKind;
use model::report::document::Document;
use report::Format;

use super::Differences;
use super::entries::Entries;
use crate::bundle::archive;
use crate::bundle::inventory::{EXCEPTIONS, Exception, Inventory};
use crate::bundle::sums::{Sums, shown};
use crate::bundle::{CASE, PROFILE, REPORT, STDERR, STDOUT_RECORDS, STDOUT_TEXT, file_of};
use crate::error_text::chain;

/// Largest report, and largest list of exceptions, in bytes.
const MAX_DOCUMENT_BYTES: u64 = 2 * 1024 * 1024 * 1024;

/// Most values of a report. A file of the client has ten, so that a report of a million files is read.
const MAX_VALUES: usize = 16_000_000;

/// Compares the files of a bundle that match their digests. Returns the number of exceptions.
pub(super) fn compare(
    mut files: BTreeMap<String, File>,
    sums: &Sums,
    differences: &mut Differences,
) -> usize {
    let report = document(REPORT, parse_report, &mut files, sums, differences);
    let exceptions = document(EXCEPTIONS, parse_exceptions, &mut files, sums, differences);
    let (Some(report), Some(exceptions)) = (report, exceptions) else {
        return 0;
    };
    let excepted = exceptions.iter().filter(|one| one.stored_as.is_none());
    let excepted: BTreeSet<&str> = excepted.map(|one| one.path.as_str()).collect();
    names(&report, sums, &excepted, differences);
    policies(&report, sums, differences);
    output(&report, &files, &excepted, differences);
    let Some(file) = files.remove(archive::NAME) else {
        return exceptions.len();
    };
    let mut inventory = Inventory::of(&report.evidence.files);
    let listed = inventory.paths();
    let read = Entries::new(&exceptions, &mut inventory, differences).compare(file);
    let found_as = match read {
        Ok(found_as) => found_as,
        Err(error) => {
            let (name, error) = (archive::NAME, causes(&error));
            differences.add(format!("unreadable: {name}: {error}"));
            return exceptions.len();
        }
    };
    let rest: Vec<String> = inventory.into_rest().map(|(path, _)| path).collect();
    for path in rest.iter().filter(|path| !excepted.contains(path.as_str())) {
        let path = shown(path);
        differences.add(format!("missing: {path}, which {REPORT} lists"));
    }
    let absent: BTreeSet<&str> = rest.iter().map(String::as_str).collect();
    let mut gaps = report.evidence.gaps.iter();
    let is_cut = gaps.any(|gap| gap.what == GapKind::Files);
    let is_expected = |one: &Exception| {
        let path = one.path.as_str();
        let is_absent = absent.contains(path);
        match &one.stored_as {
            None if listed.contains(path) => is_absent,
            None => is_unlisted(&report, sums, path, is_cut),
            // An absent object without an exception was told already.
            Some(_) if is_absent && !excepted.contains(path) => true,
            Some(name) => found_as.get(name.as_str()) == Some(&path),
        }
    };
    for one in exceptions.iter().filter(|one| !is_expected(one)) {
        let path = shown(&one.path);
        differences.add(format!(
            "differs: {EXCEPTIONS}: {path}: no run like this one writes it"
        ));
    }
    exceptions.len()
}

/// Tests for a path that a run excepts although its report does not list it among the files. A walk that was cut
/// short lists some files only.
fn is_unlisted(report: &Document<'_>, sums: &Sums, path: &str, is_cut: bool) -> bool {
    match path {
        CASE => !sums.contains_key(CASE),
        PROFILE => report.client.client.profile.is_some() && !sums.contains_key(PROFILE),
        STDERR => true,
        _ if path == stdout(report) => true,
        _ => {
            let root = path.split_once('/').map(|(root, _)| root);
            is_cut && root.is_some_and(|root| Root::ALL.map(Root::word).contains(&root))
        }
    }
}

/// Returns the name of the file with the standard output of the run.
fn stdout(report: &Document<'_>) -> &'static str {
    match report.client.client.profile {
        Some(_) => STDOUT_RECORDS,
        None => STDOUT_TEXT,
    }
}

/// Reads a JSON document. A document that differs from its digest was reported already.
fn document<T>(
    name: &str,
    parse: fn(&[u8]) -> io::Result<T>,
    files: &mut BTreeMap<String, File>,
    sums: &Sums,
    differences: &mut Differences,
) -> Option<T> {
    if !sums.contains_key(name) {
        differences.add(format!("missing: {name}, which every bundle has"));
    }
    let mut file = files.remove(name)?;
    let mut read = || {
        file.rewind()?;
        let mut bytes = Vec::new();
        (&file)
            .take(MAX_DOCUMENT_BYTES + 1)
            .read_to_end(&mut bytes)?;
        if bytes.len() as u64 > MAX_DOCUMENT_BYTES {
            let why = format!("it is larger than {MAX_DOCUMENT_BYTES} bytes");
            return Err(io::Error::other(why));
        }
        parse(&bytes)
    };
    let read = read().map_err(|error| causes(&error));
    read.map_err(|error| differences.add(format!("unreadable: {name}: {error}")))
        .ok()
}

/// Returns the text of an error with its causes.
fn causes(error: &io::Error) -> String {
    let texts: Vec<String> = chain(error).map(ToString::to_string).collect();
    shown(&texts.join(": "))
}

fn parse_report(bytes: &[u8]) -> io::Result<Document<'static>> {
    Document::parse(bytes, MAX_VALUES).map_err(io::Error::other)
}

fn parse_exceptions(bytes: &[u8]) -> io::Result<Vec<Exception>> {
    Ok(serde_json::from_slice(bytes)?)
}

/// Compares the names of the files with those that a run writes.
fn names(
    report: &Document<'_>,
    sums: &Sums,
    excepted: &BTreeSet<&str>,
    differences: &mut Differences,
) {
    let profile = report.client.client.profile.as_ref();
    let mut expected: BTreeSet<&str> = Format::ALL.map(file_of).into();
    expected.extend([stdout(report), STDERR, archive::NAME, EXCEPTIONS, CASE]);
    expected.extend(profile.map(|_| PROFILE));
    for name in sums.keys().filter(|name| !expected.contains(name.as_str())) {
        differences.add(format!("differs: {name}: no run like this one writes it"));
    }
    for name in expected
        .into_iter()
        .filter(|name| !sums.contains_key(*name))
    {
        let is_policy = [CASE, PROFILE].contains(&name);
        if !(is_policy && excepted.contains(name)) {
            differences.add(format!("missing: {name}, which such a run writes"));
        }
    }
}

fn policies(report: &Document<'_>, sums: &Sums, differences: &mut Differences) {
    let profile = report.client.client.profile.as_ref();
    for (name, policy) in [(CASE, Some(&*report.case)), (PROFILE, profile)] {
        if let (Some(found), Some(policy)) = (sums.get(name), policy)
            && *found != policy.origin.sha256
        {
            let found = format!("its SHA-256 is {found}");
            differences.disagree(name, &found, &policy.origin.sha256);
        }
    }
}

/// Compares the sizes of the outputs. A redacted or cut output is an exception.
fn output(
    report: &Document<'_>,
    files: &BTreeMap<String, File>,
    excepted: &BTreeSet<&str>,
    differences: &mut Differences,
) {
    let records = report.evidence.records.iter();
    let lines = records.fold(0, |sum: u64, one| {
        sum.saturating_add(one.bytes).saturating_add(1)
    });
    // The last line may have no line feed.
    let unfinished = lines.saturating_sub(1);
    let stderr = report.evidence.stderr.bytes;
    for (name, sizes) in [
        (STDOUT_RECORDS, [lines, unfinished]),
        (STDERR, [stderr, stderr]),
    ] {
        let found = files.get(name).and_then(|file| file.metadata().ok());
        if let Some(found) = found.map(|found| found.len())
            && !sizes.contains(&found)
            && !excepted.contains(name)
        {
            let [reported, _] = sizes;
            differences.disagree(name, &format!("{found} bytes"), &reported.to_string());
        }
    }
}
