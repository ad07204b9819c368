//! Ledger sections of the terminal report: attempts, names, programs.

use std::fmt;

use model::evidence::{AttemptKind, GapKind, Question};
use model::expected::{self, AttemptGroup};
use model::report::{Process, Report};
use model::text::count;

use super::arguments;
use super::page::{Align, Page, Row, Tone};

/// Maximum length of the arguments shown after a program, in characters.
const MAX_ARGUMENT_CHARS: usize = 120;

pub(super) fn attempts(page: &mut Page<String>, report: &Report) -> fmt::Result {
    let groups = expected::attempt_groups(&report.known.attempts, &report.evidence);
    let (allowed, found): (Vec<_>, Vec<_>) =
        groups.into_iter().partition(|group| group.reason.is_some());
    let is_whole = report.evidence.gap(&[GapKind::Attempts]).is_none()
        && report.evidence.unlisted.attempts() == 0;
    page.heading(match (found.is_empty(), allowed.is_empty()) {
        (true, true) if is_whole => "Attempts: none",
        (true, false) if is_whole => "Attempts: none but what the profile names",
        (true, _) => "Attempts: none in what was recorded",
        (false, _) => "Attempts",
    })?;
    page.table(
        [Align::Right, Align::Left],
        &found.iter().map(attempt).collect::<Vec<_>>(),
    )?;
    for group in &allowed {
        let [times, outcome] = cells(group);
        let text = format!("{} by {}, {outcome}, {times}", group.target, group.program);
        page.quote("allowed", &text)?;
        page.quote("reason", group.reason.as_deref().unwrap_or_default())?;
    }
    setup(page, report)?;
    limits(page, report)
}

fn attempt(group: &AttemptGroup) -> Row<2> {
    Row {
        cells: cells(group),
        last: format!("{} by {}", group.target, group.program),
    }
}

fn cells(group: &AttemptGroup) -> [String; 2] {
    [times(group.count), group.outcome_words()]
}

/// Counts the calls that led or could lead to the stub. The JSON report lists them.
fn setup(page: &mut Page<String>, report: &Report) -> fmt::Result {
    let setup = report
        .evidence
        .attempts
        .iter()
        .filter(|attempt| attempt.kind == AttemptKind::Setup);
    let calls = setup
        .map(|attempt| attempt.count)
        .fold(0, u64::saturating_add);
    if calls == 0 {
        return Ok(());
    }
    let calls = count(usize::try_from(calls).unwrap_or(usize::MAX), "call");
    page.say(
        "setup",
        Tone::Quiet,
        &format!("{calls} on the way to the stub or without a destination, not judged"),
    )
}

/// Lists calls refused at a limit of the sandbox, because the client may have failed for that reason.
fn limits(page: &mut Page<String>, report: &Report) -> fmt::Result {
    let met = expected::reached_limits(&report.evidence);
    if met.is_empty() {
        return Ok(());
    }
    page.say(
        "limits",
        Tone::Doubtful,
        "calls refused at a limit of the sandbox, not judged:",
    )?;
    page.table(
        [Align::Right, Align::Left],
        &met.iter().map(attempt).collect::<Vec<_>>(),
    )
}

pub(super) fn names(page: &mut Page<String>, report: &Report) -> fmt::Result {
    let names = &report.evidence.names;
    if names.is_empty() {
        return Ok(());
    }
    page.heading("Names asked for")?;
    let row = |question: &Question| {
        let reason = expected::reason_for_question(&report.known.attempts, question);
        Row {
            cells: [
                times(question.count),
                reason.map_or("", |_| "allowed").to_owned(),
            ],
            last: format!("{} ({})", question.name, question.kind_and_odd()),
        }
    };
    page.table(
        [Align::Right, Align::Left],
        &names.iter().map(row).collect::<Vec<_>>(),
    )
}

pub(super) fn programs(page: &mut Page<String>, report: &Report) -> fmt::Result {
    if report.evidence.processes.is_empty() {
        return Ok(());
    }
    page.heading("Programs started")?;
    page.table(
        [Align::Right, Align::Right],
        &report
            .evidence
            .processes
            .iter()
            .map(program)
            .collect::<Vec<_>>(),
    )
}

fn program(process: &Process) -> Row<2> {
    let args = arguments(process.args.get(1..).unwrap_or_default());
    let args = match args.char_indices().nth(MAX_ARGUMENT_CHARS) {
        Some((end, _)) => format!("{}…", args.get(..end).unwrap_or_default()),
        None => args,
    };
    Row {
        cells: [
            format!("pid {}", process.pid),
            format!("parent {}", process.ppid),
        ],
        last: format!("{} {args}", process.with_name()),
    }
}

pub(super) fn times(number: u64) -> String {
    count(usize::try_from(number).unwrap_or(usize::MAX), "time")
}
