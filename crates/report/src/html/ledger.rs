//! Sections of the ledger: attempts, names, programs, and failed path lookups.

use std::collections::HashMap;

use maud::{Markup, html};
use model::case::Tier;
use model::evidence::{Advice, AttemptKind, Exit, GapKind, Outcome};
use model::expected::{self, AttemptGroup};
use model::report::{Purpose, Report};

use super::budget::{Budget, Column, cells, head, missing};
use super::frame::Section;
use super::summary::arguments;
use super::text::{at, code, number_of};
use crate::html::text::ClientText;
use crate::phrases;

/// Draws the attempts by program and destination.
pub(super) fn attempts(report: &Report) -> Section {
    let groups = expected::attempt_groups(&report.known.attempts, &report.evidence);
    let unlisted = &report.evidence.unlisted;
    let is_whole = report.evidence.gap(&[GapKind::Attempts]).is_none() && unlisted.attempts() == 0;
    let body = html! {
        @if groups.is_empty() {
            p.none { (if is_whole { "None." } else { "None in what was recorded." }) }
        } @else {
            (by_program("destination", &groups))
        }
        @if unlisted.attempts() > 0 {
            p.cut { (number_of(unlisted.attempts(), "attempt")) " beyond those that are listed." }
        }
        (setup(report))
        (limits(report))
    };
    let title = match report.purpose {
        Purpose::Judge => "Attempts",
        Purpose::Audit => "Attempts of the program",
    };
    let all = groups.iter().map(|group| group.count);
    let all = all.fold(unlisted.attempts(), u64::saturating_add);
    Section::new("attempts", title, body).with_note(phrases::grouped(all))
}

/// Draws a table with a part for each program, in the order of their first attempts.
fn by_program(what: &'static str, groups: &[AttemptGroup]) -> Markup {
    let columns = [
        Column::Text(what),
        Column::Word("outcome"),
        Column::Number("times"),
    ];
    let mut order: HashMap<&str, usize> = HashMap::new();
    for group in groups {
        let next = order.len();
        order.entry(&group.program).or_insert(next);
    }
    let mut sorted: Vec<&AttemptGroup> = groups.iter().collect();
    sorted.sort_by_key(|group| order.get(group.program.as_str()).copied());
    let mut before = None;
    let (rows, cut) = Budget::CLIENT.entries(&sorted, |group| {
        let is_first = before.replace(&group.program) != Some(&group.program);
        html! {
            @if is_first {
                tr.part { th colspan="3" scope="rowgroup" { "by " (code(&group.program)) } }
            }
            tr { (cells(columns, [
                target(group),
                outcome(group),
                html! { (phrases::grouped(group.count)) },
            ])) }
        }
    });
    html! {
        table { (head(columns)) tbody { (rows) } }
        (missing(cut, groups.len()))
    }
}

fn target(group: &AttemptGroup) -> Markup {
    html! {
        (code(&group.target))
        @if let Some(reason) = &group.reason { p.because { "expected: " (ClientText(reason)) } }
    }
}

fn outcome(group: &AttemptGroup) -> Markup {
    let (class, sign) = match group.outcome {
        Outcome::Denied(_) => ("denied", "✕"),
        Outcome::Allowed => ("allowed", "○"),
    };
    html! {
        span.outcome.(class) { span.sign aria-hidden="true" { (sign) } " " (group.outcome_words()) }
    }
}

/// Counts the calls that led or could lead to the stub. The JSON report lists them.
fn setup(report: &Report) -> Markup {
    let setup = report.evidence.attempts.iter();
    let setup = setup.filter(|attempt| attempt.kind == AttemptKind::Setup);
    let calls = setup
        .map(|attempt| attempt.count)
        .fold(0, u64::saturating_add);
    html! {
        @if calls > 0 {
            p.aside {
                (number_of(calls, "call")) " more on the way to the stub or without a destination, not judged."
            }
        }
    }
}

/// Lists calls refused at a limit of the sandbox, because the client may have failed for that reason.
fn limits(report: &Report) -> Markup {
    let met = expected::reached_limits(&report.evidence);
    html! {
        @if !met.is_empty() {
            h3 { "Limits of the sandbox that were met" }
            (by_program("limit", &met))
        }
    }
}

pub(super) fn names(report: &Report) -> Option<Section> {
    let names = &report.evidence.names;
    if names.is_empty() {
        return None;
    }
    let columns = [
        Column::Text("name"),
        Column::Word("type"),
        Column::Number("times"),
    ];
    let body = Budget::CLIENT.table(columns, names, |name| {
        let reason = expected::reason_for_question(&report.known.attempts, name);
        [
            html! {
                (code(&name.name))
                @if let Some(reason) = reason { p.because { "expected: " (ClientText(reason)) } }
            },
            code(&name.kind_and_odd()),
            html! { (phrases::grouped(name.count)) },
        ]
    });
    Some(Section::new("names", "Names asked for", body).with_note(names.len().to_string()))
}

pub(super) fn programs(report: &Report) -> Option<Section> {
    let survivors = &report.evidence.survivors;
    if report.evidence.processes.is_empty() && survivors.is_empty() {
        return None;
    }
    let columns = [
        Column::Word("pid"),
        Column::Word("parent"),
        Column::Text("program"),
        Column::Text("arguments"),
    ];
    let body = html! {
        (Budget::CLIENT.table(columns, &report.evidence.processes, |process| [
            html! { (process.pid) },
            html! { (process.ppid) },
            code(&process.with_name()),
            html! { span.arguments { (arguments(process.args.get(1..).unwrap_or_default())) } },
        ]))
        @if !survivors.is_empty() {
            h3 { "Processes that outlived the client" }
            (Budget::CLIENT.table([Column::Word("pid"), Column::Text("program")], survivors, |process| [
                html! { (process.pid) },
                code(&process.program),
            ]))
        }
    };
    let number = report.evidence.processes.len().to_string();
    Some(Section::new("programs", "Programs started", body).with_note(number))
}

/// Draws failed path lookups, each with the option that would show the path.
pub(super) fn lookups(report: &Report) -> Option<Section> {
    let lookups = &report.evidence.lookups;
    let title = "Paths that it looked for and did not get";
    if report.purpose == Purpose::Audit
        && report.tier == Tier::Inherited
        && report.evidence.exit != Exit::NotStarted
    {
        let body = html! { p.none { "Not recorded with isolation inherited." } };
        return Some(Section::new("lookups", title, body));
    }
    if lookups.is_empty() {
        return None;
    }
    let columns = [
        Column::Text("path"),
        Column::Number("paths"),
        Column::Word("wanted"),
        Column::Number("times"),
        Column::Word("first"),
        Column::Text("what would show it"),
    ];
    let body = Budget::CLIENT.table(columns, lookups, |lookup| {
        let advice = match &lookup.advice {
            Advice::Read(path) => code(&format!("--read {}", phrases::quoted(path))),
            Advice::Write(path) => code(&format!("--write {}", phrases::quoted(path))),
            Advice::Never(reason) => html! { (phrases::reason_in_full(*reason)) },
        };
        [
            code(&phrases::quoted(&lookup.path)),
            html! { (phrases::grouped(lookup.paths)) },
            html! { (lookup.kind.word()) },
            html! { (phrases::grouped(lookup.count)) },
            html! { (at(lookup.at_us)) },
            advice,
        ]
    });
    Some(Section::new("lookups", title, body).with_note(lookups.len().to_string()))
}
