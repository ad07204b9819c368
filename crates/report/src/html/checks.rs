//! Sections on checks: failed and errored ones in full, then a table of all with expected and found values.
//!
//! The number of checks is fixed, so that no size budget applies.

use maud::{Markup, html};
use model::finding::{AskedBy, Finding, Status};
use model::report::{Purpose, Report};

use super::badge::badge;
use super::budget::{Column, cells, head};
use super::frame::Section;
use super::text::{code, code_if};
use crate::headline::is_shown_as_attempts;
use crate::html::text::ClientText;
use crate::phrases;

const COLUMNS: [Column; 4] = [
    Column::Word("status"),
    Column::Text("check"),
    Column::Text("expected"),
    Column::Text("found"),
];

/// Draws failed, then errored checks. An audit shows the finding on attempts in its own section.
pub(super) fn findings(report: &Report) -> Option<Section> {
    let with = |status| {
        let with = report.checks.iter().filter(move |one| one.status == status);
        with.filter(|one| report.purpose == Purpose::Judge || !is_shown_as_attempts(one))
    };
    let wrong: Vec<&Finding> = with(Status::Failed).chain(with(Status::Errored)).collect();
    if wrong.is_empty() {
        return None;
    }
    let body = html! { @for finding in &wrong { (article(finding)) } };
    Some(Section::new("findings", "Findings", body).with_note(wrong.len().to_string()))
}

fn article(finding: &Finding) -> Markup {
    html! {
        article.finding.(finding.status.word()) {
            h3 { (status(finding.status)) " " a href={ "#check-" (finding.id) } { code { (finding.id) } } }
            p { (ClientText(&finding.message)) }
            dl {
                @for (name, part) in [
                    ("Object", finding.object.as_deref()),
                    ("Expected", finding.expected.as_deref()),
                    ("Found", phrases::found_in_short(finding)),
                    ("Because", finding.because.as_deref()),
                ] {
                    @if let Some(part) = part { dt { (name) } dd { (code(part)) } }
                }
            }
            p.spec { "Asked by: " (phrases::asked_by(&finding.asked_by)) }
        }
    }
}

fn status(status: Status) -> Markup {
    let sign = match status {
        Status::Passed => "✓",
        Status::Failed => "✕",
        Status::Errored => "!",
        Status::Skipped => "–",
    };
    badge(status.word(), sign, status.word())
}

/// Draws all checks in their order, each with an anchor. Skipped checks are folded.
pub(super) fn all(report: &Report) -> Section {
    let (skipped, made): (Vec<&Finding>, Vec<&Finding>) = report
        .checks
        .iter()
        .partition(|finding| finding.status == Status::Skipped);
    let body = html! {
        @if !made.is_empty() { (table(&made)) }
        @if !skipped.is_empty() {
            details {
                summary { (skipped.len()) " skipped" }
                (table(&skipped))
            }
        }
    };
    Section::new("checks", "All checks", body).with_note(report.checks.len().to_string())
}

fn table(findings: &[&Finding]) -> Markup {
    html! {
        table.checks { (head(COLUMNS)) tbody { @for finding in findings { (row(finding)) } } }
    }
}

fn row(finding: &Finding) -> Markup {
    let check = html! {
        a href={ "#check-" (finding.id) } { code { (finding.id) } }
        @if let AskedBy::Specification(section) = &finding.asked_by { " " span.spec { "§ " (section) } }
        p { (ClientText(&finding.message)) }
        @if let Some(object) = &finding.object { p { (code(object)) } }
    };
    let found = html! {
        (code_if(phrases::found_in_short(finding)))
        @if let Some(because) = &finding.because { p.because { (ClientText(because)) } }
    };
    let all = [
        status(finding.status),
        check,
        code_if(finding.expected.as_deref()),
        found,
    ];
    html! { tr id={ "check-" (finding.id) } { (cells(COLUMNS, all)) } }
}
