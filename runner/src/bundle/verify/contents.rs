//! Comparison of a report with the other files of its bundle.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read as _, Seek as _};

use model::report::document::Document;
use report::Format;

use super::Differences;
use super::entries::Entries;
use crate::bundle::archive;
use crate::bundle::inventory::{EXCEPTIONS, Exception, Inventory};
use crate::bundle::sums::{Sums, shown};
use crate::bundle::{CASE, PROFILE, REPORT, STDERR, STDOUT_RECORDS, STDOUT_TEXT, file_of};

/// Largest report, and largest list of exceptions, in bytes.
const MAX_DOCUMENT_BYTES: u64 = 2 * 1024 * 1024 * 1024;

/// Most values of a report. A file of the client has ten, so that a report of a million files is read.
const MAX_VALUES: usize = 16_000_000;

/// Compares the files of a bundle that match their digests.
pub(super) fn compare(
    mut files: BTreeMap<String, File>,
    sums: &Sums,
    differences: &mut Differences,
) {
    let report = document(REPORT, parse_report, &mut files, sums, differences);
    let exceptions = document(EXCEPTIONS, parse_exceptions, &mut files, sums, differences);
    let (Some(report), Some(exceptions)) = (report, exceptions) else {
        return;
    };
    let excepted = exceptions.iter().filter(|one| one.stored_as.is_none());
    let excepted = excepted.map(|one| one.path.as_str()).collect();
    names(&report, sums, &excepted, differences);
    policies(&report, sums, differences);
    output(&report, &files, &excepted, differences);
    let Some(file) = files.remove(archive::NAME) else {
        return;
    };
    let mut inventory = Inventory::of(&report.evidence.files);
    let read = Entries::new(&exceptions, &mut inventory, differences).compare(file);
    if let Err(error) = read {
        let (name, error) = (archive::NAME, shown(&error.to_string()));
        return differences.add(format!("unreadable: {name}: {error}"));
    }
    let rest = inventory.into_rest();
    for (path, _) in rest.filter(|(path, _)| !excepted.contains(path.as_str())) {
        let path = shown(&path);
        differences.add(format!("missing: {path}, which {REPORT} lists"));
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
    let read = read().map_err(|error| shown(&error.to_string()));
    read.map_err(|error| differences.add(format!("unreadable: {name}: {error}")))
        .ok()
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
    let stdout = profile.map_or(STDOUT_TEXT, |_| STDOUT_RECORDS);
    let mut expected: BTreeSet<&str> = Format::ALL.map(file_of).into();
    expected.extend([stdout, STDERR, archive::NAME, EXCEPTIONS, CASE]);
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
