//! Files of home, temporary and working directory: left behind, and transient.

use model::evidence::{Exit, FileEntry, FileKind};
use model::labels;
use model::report::Report;

use super::ledger::expectation;
use super::{
    Block, Budget, Section, Table, Text, client, digest, fact, led, num, number, own, text, word,
};
use crate::phrases::grouped;

pub(super) fn left(report: &Report) -> Section {
    let left = report.evidence.files.iter();
    let left = left.filter(|entry| !entry.transient);
    let (directories, left): (Vec<_>, Vec<_>) =
        left.partition(|entry| entry.kind == FileKind::Directory);
    // Directories displace no file.
    let left = left.into_iter().chain(directories);
    let columns = [
        word("in"),
        word("kind"),
        word("mode"),
        number("bytes"),
        word("sha256"),
        text("path"),
        led("target", " -> "),
    ];
    let table = Table::of(Budget::Client, columns, left, |entry| {
        [
            own(entry.root.word()),
            own(labels::file_kind(entry.kind)),
            own(format!("{:04o}", entry.mode)),
            num(entry.bytes),
            entry.sha256.as_deref().map(digest).into(),
            client(&entry.path),
            entry.target.as_ref().map(client).into(),
        ]
    });
    let title = "Files left behind";
    let none = || Section::new("files", title, "none", []);
    table.section("files", title).unwrap_or_else(none)
}

/// Lists files that were removed before the end. The list may be incomplete, because the watch is best effort.
pub(super) fn transient(report: &Report) -> Option<Section> {
    let gone = report.evidence.files.iter().filter(|entry| entry.transient);
    let columns = [
        word("in"),
        word("kind"),
        word("expected"),
        text("path"),
        led("reason", ": "),
    ];
    let table = Table::of(Budget::Client, columns, gone, |entry| {
        let [is_expected, reason] = expected(report, entry);
        let kind = own(labels::file_kind(entry.kind));
        [
            own(entry.root.word()),
            kind,
            is_expected,
            client(&entry.path),
            reason,
        ]
    });
    let counts = report.evidence.made_and_removed.iter();
    let counts = counts.filter(|(_, count)| *count != Some(0));
    let counts: Vec<String> = counts
        .map(|(root, count)| match count {
            Some(count) => format!("{} in {}", grouped(*count), root.word()),
            None => format!("not counted in {}", root.word()),
        })
        .collect();
    let is_started = report.evidence.exit != Exit::NotStarted;
    if table.all == 0 && (counts.is_empty() || !is_started) {
        return None;
    }
    let names = match table.all {
        0 => "no name was recorded",
        _ => "these names were recorded:",
    };
    let mut blocks = Vec::new();
    if !counts.is_empty() {
        let removed = fact("removed", format!("{}; {names}", counts.join(", ")));
        blocks.push(Block::Facts(Budget::Ours, vec![removed]));
    }
    let number = grouped(table.all as u64);
    blocks.extend(table.blocks());
    Some(Section::new(
        "transient",
        "Files removed before the end",
        number,
        blocks,
    ))
}

/// Word and reason of an expected file; both empty without a profile.
fn expected(report: &Report, entry: &FileEntry) -> [Text; 2] {
    match (&report.known.files, report.known.reason_for_file(entry)) {
        (Some(_), None) => [own("no"), Text::default()],
        (_, reason) => expectation(reason),
    }
}
