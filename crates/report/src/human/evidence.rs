//! Evidence sections of the terminal report: requests, records, files, standard error, isolation, gaps.

use std::fmt;

use model::evidence::{CanaryStatus, Exit, FileEntry, FileKind, LayerStatus, Record, Request};
use model::report::Report;
use model::text::count;

use super::page::{Align, Page, Row, Tone};
use super::{ledger, lookups, short};
use crate::phrases::{self, grouped};

/// Maximum number of lines shown of standard error, its last ones.
const MAX_STDERR_LINES: usize = 10;

pub(super) fn sections(page: &mut Page<String>, report: &Report) -> fmt::Result {
    requests(page, report)?;
    ledger::attempts(page, report)?;
    ledger::names(page, report)?;
    lookups::lookups(page, report)?;
    records(page, report)?;
    files(page, report)?;
    transient_files(page, report)?;
    ledger::programs(page, report)?;
    stderr(page, report)?;
    survivors(page, report)?;
    isolation(page, report)?;
    gaps(page, report)
}

pub(super) fn requests(page: &mut Page<String>, report: &Report) -> fmt::Result {
    let requests = &report.evidence.requests;
    if requests.is_empty() {
        return page.heading("Requests: none");
    }
    page.heading("Requests")?;
    let columns = [
        Align::Right,
        Align::Right,
        Align::Left,
        Align::Left,
        Align::Right,
    ];
    page.table(columns, &requests.iter().map(request).collect::<Vec<_>>())
}

fn request(request: &Request) -> Row<5> {
    let last = phrases::request_line(request);
    let body = request.body.as_ref().map_or(0, |body| body.bytes);
    let cells = [
        request.seq.to_string(),
        seconds(request.at_us),
        request.class.word().to_owned(),
        request
            .status
            .map_or("no answer".to_owned(), |status| format!("status {status}")),
        format!("{} bytes", grouped(body)),
    ];
    Row { cells, last }
}

fn records(page: &mut Page<String>, report: &Report) -> fmt::Result {
    let records = &report.evidence.records;
    if records.is_empty() {
        return page.heading("Records on standard output: none");
    }
    page.heading("Records on standard output")?;
    let columns = [Align::Right; 3];
    page.table(columns, &runs(records))
}

/// Groups consecutive records of one kind.
fn runs(records: &[Record]) -> Vec<Row<3>> {
    records
        .chunk_by(|one, other| one.label() == other.label())
        .filter_map(|run| {
            let (first, last) = (run.first()?, run.last()?);
            let numbers = match run.len() {
                1 => first.seq.to_string(),
                _ => format!("{}-{}", first.seq, last.seq),
            };
            let bytes = grouped(run.iter().map(|record| record.bytes).sum());
            let cells = [numbers, seconds(first.at_us), format!("{bytes} bytes")];
            Some(Row {
                cells,
                last: first.label(),
            })
        })
        .collect()
}

pub(super) fn files(page: &mut Page<String>, report: &Report) -> fmt::Result {
    let (directories, files): (Vec<_>, Vec<_>) = report
        .evidence
        .files
        .iter()
        .filter(|entry| !entry.transient)
        .partition(|entry| entry.kind == FileKind::Directory);
    let files: Vec<_> = files.into_iter().map(file).collect();
    page.heading(&match (files.len(), directories.len()) {
        (0, 0) => "Files left behind: none".to_owned(),
        (_, 0) => "Files left behind".to_owned(),
        (_, 1) => "Files left behind, in 1 directory".to_owned(),
        (_, directories) => format!("Files left behind, in {directories} directories"),
    })?;
    page.table(
        [
            Align::Left,
            Align::Left,
            Align::Left,
            Align::Right,
            Align::Left,
        ],
        &files,
    )
}

fn file(entry: &FileEntry) -> Row<5> {
    let cells = [
        entry.root.word().to_owned(),
        entry.kind.word().to_owned(),
        format!("{:04o}", entry.mode),
        format!("{} bytes", grouped(entry.bytes)),
        entry.sha256.as_deref().map_or_else(String::new, short),
    ];
    Row {
        cells,
        last: match &entry.target {
            Some(target) => format!("{} -> {target}", entry.path),
            None => entry.path.clone(),
        },
    }
}

/// Shows files that were removed before the end. The list may be incomplete, because the watch is best effort.
pub(super) fn transient_files(page: &mut Page<String>, report: &Report) -> fmt::Result {
    let rows: Vec<_> = report
        .evidence
        .files
        .iter()
        .filter(|entry| entry.transient)
        .map(|entry| {
            let reason = report.known.reason_for_file(entry);
            Row {
                cells: [
                    entry.root.word().to_owned(),
                    entry.kind.word().to_owned(),
                    match (&report.known.files, reason) {
                        (None, _) => "",
                        (Some(_), None) => "not known",
                        (Some(_), Some(_)) => "known",
                    }
                    .to_owned(),
                ],
                last: match reason {
                    Some(reason) => format!("{}: {reason}", entry.path),
                    None => entry.path.clone(),
                },
            }
        })
        .collect();
    let counts: Vec<String> = report
        .evidence
        .made_and_removed
        .iter()
        .filter(|gone| gone.count != Some(0))
        .map(|gone| match gone.count {
            Some(count) => format!("{} in {}", grouped(count), gone.root.word()),
            None => format!("not counted in {}", gone.root.word()),
        })
        .collect();
    let started = report.evidence.exit != Exit::NotStarted;
    if rows.is_empty() && (counts.is_empty() || !started) {
        return Ok(());
    }
    page.heading("Files removed before the end")?;
    if !counts.is_empty() {
        let names = if rows.is_empty() {
            "no name was recorded"
        } else {
            "these names were recorded:"
        };
        let text = format!("{}; {names}", counts.join(", "));
        page.say("removed", Tone::Quiet, &text)?;
    }
    page.table([Align::Left; 3], &rows)
}

fn stderr(page: &mut Page<String>, report: &Report) -> fmt::Result {
    let stderr = &report.evidence.stderr;
    if stderr.bytes == 0 {
        return Ok(());
    }
    page.heading(&format!(
        "Standard error, last part of {} bytes",
        grouped(stderr.bytes)
    ))?;
    let rows: Vec<_> = stderr
        .tail
        .lines()
        .map(|line| Row {
            cells: [],
            last: line.to_owned(),
        })
        .collect();
    page.table(
        [],
        rows.get(rows.len().saturating_sub(MAX_STDERR_LINES)..)
            .unwrap_or_default(),
    )
}

pub(super) fn survivors(page: &mut Page<String>, report: &Report) -> fmt::Result {
    let survivors = &report.evidence.survivors;
    if survivors.is_empty() {
        return Ok(());
    }
    page.heading("Processes that outlived the client")?;
    let rows = survivors.iter().map(|process| Row {
        cells: [format!("pid {}", process.pid)],
        last: process.program.clone(),
    });
    page.table([Align::Right], &rows.collect::<Vec<_>>())
}

pub(super) fn isolation(page: &mut Page<String>, report: &Report) -> fmt::Result {
    page.heading("Isolation")?;
    let layers = &report.evidence.layers;
    let enforced = layers
        .iter()
        .filter(|layer| layer.status == LayerStatus::Enforced);
    let names: Vec<_> = enforced.map(|layer| layer.name.as_str()).collect();
    let names = if names.is_empty() {
        "nothing".to_owned()
    } else {
        names.join(", ")
    };
    page.say("enforced", Tone::Good, &names)?;
    lost_layers(page, report)?;
    canaries(page, report)
}

/// Shows the isolation with a count in place of the names of enforced layers.
pub(super) fn isolation_in_short(page: &mut Page<String>, report: &Report) -> fmt::Result {
    page.heading("Isolation")?;
    let layers = &report.evidence.layers;
    let enforced = layers
        .iter()
        .filter(|layer| layer.status == LayerStatus::Enforced);
    let text = format!("{} of {} layers", enforced.count(), layers.len());
    page.say("enforced", Tone::Good, &text)?;
    lost_layers(page, report)?;
    canaries(page, report)
}

/// Shows the layers that are partial or absent.
fn lost_layers(page: &mut Page<String>, report: &Report) -> fmt::Result {
    for layer in &report.evidence.layers {
        let need = layer.need.word().replace('-', " ");
        let text = format!("{} ({need}): {}", layer.name, layer.detail);
        match layer.status {
            LayerStatus::Enforced => {}
            LayerStatus::Partial => page.say("partial", Tone::Doubtful, &text)?,
            LayerStatus::Absent => page.say("absent", Tone::Bad, &text)?,
        }
    }
    Ok(())
}

fn canaries(page: &mut Page<String>, report: &Report) -> fmt::Result {
    let canaries = &report.evidence.canaries;
    let with = |status: CanaryStatus| {
        canaries
            .iter()
            .filter(move |one| one.status == status)
            .count()
    };
    let held = with(CanaryStatus::Held);
    let others = [
        (with(CanaryStatus::NotHeld), "not held"),
        (with(CanaryStatus::NotApplicable), "not testable here"),
    ];
    let others = others.iter().filter(|(number, _)| *number > 0);
    let counts: String = others
        .map(|(number, what)| format!(", {number} {what}"))
        .collect();
    page.say(
        "canary",
        Tone::Quiet,
        &format!("{} held{counts}", count(held, "probe")),
    )?;
    for probe in canaries {
        let mode = probe.mode.word();
        let text = format!(
            "{} ({mode}): expected {}, observed {}",
            probe.name, probe.expected, probe.observed
        );
        match probe.status {
            CanaryStatus::Held => {}
            CanaryStatus::NotHeld => page.say("not held", Tone::Bad, &text)?,
            CanaryStatus::NotApplicable => {
                page.say(
                    "",
                    Tone::Quiet,
                    &format!(
                        "{} ({mode}): not testable here: the host refuses it too",
                        probe.name
                    ),
                )?;
            }
        }
    }
    Ok(())
}

pub(super) fn gaps(page: &mut Page<String>, report: &Report) -> fmt::Result {
    let gaps = &report.evidence.gaps;
    if gaps.is_empty() {
        return Ok(());
    }
    page.heading("Evidence that is incomplete")?;
    gaps.iter()
        .try_for_each(|gap| page.quote(gap.what.word(), &gap.detail))
}

/// `+0.212 s`
fn seconds(at_us: u64) -> String {
    format!("+{}.{:03} s", at_us / 1_000_000, at_us / 1_000 % 1_000)
}
