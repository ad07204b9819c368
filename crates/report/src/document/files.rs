//! Files of home, temporary and working directory: left behind, and transient.

use model::evidence::{Exit, FileKind};
use model::report::{Purpose, Report};
use model::text::grouped;

use super::ledger::reason;
use super::{Block, Budget, Section, Table, client, digest, fact, led, number, text, word};

pub(super) fn left(report: &Report) -> Section {
    let left = report.evidence.files.iter();
    let left = left.filter(|entry| !entry.transient);
    let (directories, left): (Vec<_>, Vec<_>) =
        left.partition(|entry| entry.kind == FileKind::Directory);
    // Directories displace no file.
    let left = left.into_iter().chain(directories);
    let table = Table::of(Budget::Client, left, |entry| {
        [
            word("in", entry.root.word()),
            word("kind", entry.kind.word()),
            word("mode", format!("{:04o}", entry.mode)),
            number("bytes", entry.bytes),
            word("sha256", entry.sha256.as_deref().map(digest)),
            text("path", client(&entry.path)),
            led(" -> ", "target", entry.target.as_ref().map(client)),
        ]
    });
    table.section_or_none("files", "Files left behind")
}

/// Lists files that were removed before the end. The list may be incomplete, because the watch is best effort.
pub(super) fn transient(report: &Report) -> Option<Section> {
    let gone = report.evidence.files.iter().filter(|entry| entry.transient);
    let table = Table::of(Budget::Client, gone, |entry| {
        let because = entry.expected.as_deref();
        let is_expected = match (report.purpose, because) {
            (Purpose::Audit, _) => "",
            (Purpose::Judge, None) => "no",
            (Purpose::Judge, Some(_)) => "yes",
        };
        [
            word("in", entry.root.word()),
            word("kind", entry.kind.word()),
            word("expected", is_expected),
            text("path", client(&entry.path)),
            reason(because),
        ]
    });
    let counts = report.evidence.made_and_removed.iter();
    let counts = counts.filter(|gone| gone.count != Some(0));
    let counts: Vec<String> = counts
        .map(|gone| match gone.count {
            Some(count) => format!("{} in {}", grouped(count), gone.root.word()),
            None => format!("not counted in {}", gone.root.word()),
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
