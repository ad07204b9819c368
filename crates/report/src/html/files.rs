//! Files of home, temporary and working directory: left behind, and transient.

use maud::{Markup, html};
use model::evidence::{Exit, FileEntry};
use model::report::Report;

use super::budget::{Budget, Column};
use super::frame::Section;
use super::text::{code, digest};
use crate::html::text::ClientText;
use crate::phrases;

pub(super) fn files(report: &Report) -> Section {
    let files = &report.evidence.files;
    let left: Vec<&FileEntry> = files.iter().filter(|entry| !entry.transient).collect();
    let columns = [
        Column::Word("in"),
        Column::Text("path"),
        Column::Word("kind"),
        Column::Word("mode"),
        Column::Number("bytes"),
        Column::Word("sha256"),
    ];
    let body = html! {
        @if left.is_empty() {
            p.none { "None." }
        } @else {
            (Budget::CLIENT.table(columns, &left, |entry| [
                html! { (entry.root.word()) },
                html! {
                    (code(&entry.path))
                    @if let Some(target) = &entry.target { " → " (code(target)) }
                },
                html! { (entry.kind.word()) },
                html! { code { (format!("{:04o}", entry.mode)) } },
                html! { (phrases::grouped(entry.bytes)) },
                html! { @if let Some(sha256) = &entry.sha256 { (digest(sha256)) } },
            ]))
        }
    };
    Section::new("files", "Files left behind", body).with_note(left.len().to_string())
}

/// Draws files that were removed before the end. The list may be incomplete, because the watch is best effort.
pub(super) fn transient(report: &Report) -> Option<Section> {
    let files = &report.evidence.files;
    let gone: Vec<&FileEntry> = files.iter().filter(|entry| entry.transient).collect();
    let counts = removed(report);
    if gone.is_empty() && (counts.is_empty() || report.evidence.exit == Exit::NotStarted) {
        return None;
    }
    let columns = [
        Column::Word("in"),
        Column::Text("path"),
        Column::Word("kind"),
        Column::Text("known to the profile"),
    ];
    let body = html! {
        @if !counts.is_empty() { p.aside { "Removed before the end: " (counts.join(", ")) "." } }
        @if gone.is_empty() {
            p.none { "No name was recorded." }
        } @else {
            (Budget::CLIENT.table(columns, &gone, |entry| [
                html! { (entry.root.word()) },
                code(&entry.path),
                html! { (entry.kind.word()) },
                known(report, entry),
            ]))
        }
    };
    let title = "Files removed before the end";
    Some(Section::new("transient", title, body).with_note(gone.len().to_string()))
}

fn known(report: &Report, entry: &FileEntry) -> Markup {
    html! {
        @match (&report.known.files, report.known.reason_for_file(entry)) {
            (None, _) => {},
            (Some(_), None) => "no",
            (Some(_), Some(reason)) => (ClientText(reason)),
        }
    }
}

/// Counts of removed objects: `2 in home`.
fn removed(report: &Report) -> Vec<String> {
    let counts = report.evidence.made_and_removed.iter();
    let counts = counts.filter(|gone| gone.count != Some(0));
    let counts = counts.map(|gone| match gone.count {
        Some(count) => format!("{} in {}", phrases::grouped(count), gone.root.word()),
        None => format!("not counted in {}", gone.root.word()),
    });
    counts.collect()
}
