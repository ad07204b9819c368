//! Markdown report for the summary page of a CI job on GitHub or GitLab: attempts first.
//!
//! The report is shorter than the others and always below 1 MiB. Each part of the evidence has its own size budget, and
//! the report counts the rows that it cuts.
//!
//! Text of the client is escaped for people. It appears in code spans only, because they cannot contain links,
//! mentions, HTML or markers. No line begins with it.

use std::fmt;

use model::difference::{Accept, Difference};
use model::evidence::{Advice, GapKind};
use model::finding::{Finding, Status};
use model::report::{BaselineOutcome, Purpose, Report};
use model::{digest, expected};

use super::claims::{self, Strength};
use super::headline::{Headline, headline, is_shown_as_attempts};
use super::{RenderError, phrases};

mod page;

use page::{Length, Page, code};

/// Renders the report as UTF-8 Markdown.
pub fn render(report: &Report) -> Result<Vec<u8>, RenderError> {
    let mut page = Page::default();
    match report.purpose {
        Purpose::Judge => judged(&mut page, report)?,
        Purpose::Audit => audited(&mut page, report)?,
    }
    Ok(page.finish().into_bytes())
}

fn judged(page: &mut Page, report: &Report) -> fmt::Result {
    verdict(page, report)?;
    unsound(page, report)?;
    attempts(page, report, "Attempts")?;
    names(page, report)?;
    requests(page, report, Some("None."))?;
    findings(page, report, |_| true)?;
    baseline(page, report)?;
    claims(page, report)?;
    lookups(page, report)?;
    files(page, report)?;
    programs(page, report)?;
    wider_rules(page, report, "Rules that are wider than the built-in case")?;
    gaps(page, report)?;
    not_proved(page, report)
}

/// Sections of an audit: attempts first, then the options that would show the program more.
fn audited(page: &mut Page, report: &Report) -> fmt::Result {
    verdict(page, report)?;
    unsound(page, report)?;
    attempts(page, report, "Attempts of the program")?;
    names(page, report)?;
    requests(page, report, None)?;
    lookups(page, report)?;
    findings(page, report, |finding| !is_shown_as_attempts(finding))?;
    files(page, report)?;
    programs(page, report)?;
    wider_rules(page, report, "Rules added by the command line")?;
    claims(page, report)?;
    gaps(page, report)?;
    not_proved(page, report)
}

/// Writes the headline, the program and the isolation.
fn verdict(page: &mut Page, report: &Report) -> fmt::Result {
    let Headline { word, text } = headline(report);
    page.title(word, &text)?;
    let client = &report.client;
    let label = match report.purpose {
        Purpose::Judge => "Client",
        Purpose::Audit => "Program",
    };
    page.paragraph(&format!(
        "{label} {}, sha256 {}, {}. Isolation {}. Runner {}.",
        code(&client.program),
        code(&digest::short(&client.sha256)),
        phrases::exit(&report.evidence),
        report.tier.word(),
        code(&report.runner.version),
    ))
}

fn unsound(page: &mut Page, report: &Report) -> fmt::Result {
    let reasons = &report.unsound;
    if reasons.is_empty() {
        return Ok(());
    }
    page.heading(phrases::unsound(report.verdict))?;
    let reasons: Vec<_> = reasons.iter().map(|reason| code(reason)).collect();
    page.list(Length::Theirs, &reasons)
}

fn attempts(page: &mut Page, report: &Report, title: &str) -> fmt::Result {
    let groups = expected::attempt_groups(&report.known.attempts, &report.evidence);
    let rows = groups.iter().map(|group| {
        let expected = group.reason.as_deref().map_or(String::new(), code);
        [
            code(&group.target),
            group.outcome_words(),
            group.count.to_string(),
            code(&group.program),
            expected,
        ]
    });
    let is_cut = report.evidence.unlisted.attempts() > 0;
    let none = match report.evidence.gap(&[GapKind::Attempts]) {
        None if is_cut => "None in what was recorded.",
        None => "None.",
        Some(_) => "None in what was recorded.",
    };
    let head = ["destination", "outcome", "times", "program", "expected"];
    page.table(Length::Theirs, title, head, rows, Some(none))?;
    let met = expected::reached_limits(&report.evidence);
    let rows = met.iter().map(|group| {
        [
            code(&group.target),
            group.outcome_words(),
            group.count.to_string(),
            code(&group.program),
        ]
    });
    let title = "Limits of the sandbox that were met";
    let head = ["limit", "outcome", "times", "program"];
    page.table(Length::Theirs, title, head, rows, None)
}

fn names(page: &mut Page, report: &Report) -> fmt::Result {
    let rows = report.evidence.names.iter().map(|name| {
        let reason = expected::reason_for_question(&report.known.attempts, name);
        [
            code(&name.name),
            code(&name.kind_and_odd()),
            name.count.to_string(),
            reason.map_or(String::new(), code),
        ]
    });
    let head = ["name", "type", "times", "expected"];
    page.table(Length::Theirs, "Names asked for", head, rows, None)
}

fn requests(page: &mut Page, report: &Report, none: Option<&str>) -> fmt::Result {
    let rows = report.evidence.requests.iter().map(|request| {
        [
            request.seq.to_string(),
            request.class.word().to_owned(),
            code(&phrases::request_line(request)),
            request
                .status
                .map_or("none".to_owned(), |status| status.to_string()),
            request
                .body
                .as_ref()
                .map_or(0, |body| body.bytes)
                .to_string(),
        ]
    });
    let head = ["request", "class", "line", "status", "bytes"];
    page.table(Length::Theirs, "Requests", head, rows, none)
}

/// Writes failed and errored findings, and those skipped because the runner ended the client, if `wanted` accepts them.
fn findings(page: &mut Page, report: &Report, wanted: impl Fn(&Finding) -> bool) -> fmt::Result {
    let wrong = |finding: &&Finding| {
        let is_wrong = matches!(finding.status, Status::Failed | Status::Errored);
        (is_wrong || phrases::is_leftover(finding)) && wanted(finding)
    };
    let part = |part: Option<&str>| part.map_or(String::new(), code);
    let rows = report.checks.iter().filter(wrong).map(|finding| {
        [
            code(&finding.id),
            finding.status.word().to_owned(),
            part(finding.object.as_deref()),
            part(finding.expected.as_deref()),
            part(phrases::found_in_short(finding)),
            part(finding.because.as_deref()),
        ]
    });
    let head = ["check", "status", "object", "expected", "found", "because"];
    page.table(Length::Ours, "Findings", head, rows, None)
}

/// Writes the drift from the lock file with the lines that would accept it, or the changes made to the file.
fn baseline(page: &mut Page, report: &Report) -> fmt::Result {
    let Some(baseline) = &report.baseline else {
        return Ok(());
    };
    let differences = baseline.differences.iter();
    match baseline.outcome {
        BaselineOutcome::Compared => {
            let rows = differences.map(|found| {
                let [area, fact, before, now] = difference(found);
                let accept = baseline.to_accept(found).map_or(String::new(), accept);
                [area, fact, before, now, accept]
            });
            let head = ["area", "fact", "before", "now", "what would accept it"];
            page.table(Length::Theirs, "Drift from the lock file", head, rows, None)
        }
        BaselineOutcome::Updated | BaselineOutcome::Made => {
            let head = ["area", "fact", "before", "now"];
            let rows = differences.map(difference);
            page.table(
                Length::Theirs,
                "What changed in the lock file",
                head,
                rows,
                None,
            )
        }
    }
}

fn difference(found: &Difference) -> [String; 4] {
    let part = |part: Option<&str>| part.map_or(String::new(), code);
    [
        found.fact.area.word().to_owned(),
        code(&found.fact.key),
        part(found.change.before()),
        part(found.change.now()),
    ]
}

fn accept(Accept { verb, table, line }: Accept) -> String {
    format!("{verb} in {}: {}", code(&table), code(&line))
}

fn lookups(page: &mut Page, report: &Report) -> fmt::Result {
    let rows = report.evidence.lookups.iter().map(|lookup| {
        let advice = match &lookup.advice {
            Advice::Read(path) => code(&format!("--read {}", phrases::quoted(path))),
            Advice::Write(path) => code(&format!("--write {}", phrases::quoted(path))),
            Advice::Never(reason) => phrases::reason_in_full(*reason).to_owned(),
        };
        [
            code(&phrases::quoted(&lookup.path)),
            lookup.paths.to_string(),
            lookup.kind.word().to_owned(),
            lookup.count.to_string(),
            advice,
        ]
    });
    let head = ["path", "paths", "wanted", "times", "what would show it"];
    page.table(
        Length::Theirs,
        "Paths that it looked for and did not get",
        head,
        rows,
        None,
    )
}

fn files(page: &mut Page, report: &Report) -> fmt::Result {
    let left = report
        .evidence
        .files
        .iter()
        .filter(|entry| !entry.transient);
    let rows = left.map(|entry| {
        [
            entry.root.word().to_owned(),
            code(&entry.path),
            entry.kind.word().to_owned(),
            format!("{:04o}", entry.mode),
            entry.bytes.to_string(),
        ]
    });
    let head = ["in", "path", "kind", "mode", "bytes"];
    page.table(Length::Theirs, "Files left behind", head, rows, None)
}

fn programs(page: &mut Page, report: &Report) -> fmt::Result {
    let rows = report
        .evidence
        .processes
        .iter()
        .map(|process| [process.pid.to_string(), code(&process.with_name())]);
    page.table(
        Length::Theirs,
        "Programs started",
        ["pid", "program"],
        rows,
        None,
    )
}

fn wider_rules(page: &mut Page, report: &Report, title: &str) -> fmt::Result {
    let rows = report
        .wider_rules
        .iter()
        .map(|wider| [code(&wider.rule), code(&wider.reason)]);
    page.table(Length::Theirs, title, ["allowed", "reason"], rows, None)
}

fn gaps(page: &mut Page, report: &Report) -> fmt::Result {
    let gaps = report.evidence.gaps.iter();
    let rows = gaps.map(|gap| [gap.what.word().to_owned(), code(&gap.detail)]);
    page.table(
        Length::Theirs,
        "Evidence that is incomplete",
        ["part", "why"],
        rows,
        None,
    )
}

/// Writes the claims that are not open.
fn claims(page: &mut Page, report: &Report) -> fmt::Result {
    let line = |claim: claims::Claim| {
        let word = match claim.strength {
            Strength::Proved => "proved",
            Strength::Seen => "seen",
            Strength::Refuted => "not so",
            Strength::NotProved => return None,
        };
        Some(format!("{word}: {}", claim.text))
    };
    let lines: Vec<_> = claims::claims(report)
        .into_iter()
        .filter_map(line)
        .collect();
    if lines.is_empty() {
        return Ok(());
    }
    page.heading("What this run shows")?;
    page.list(Length::Ours, &lines)
}

fn not_proved(page: &mut Page, report: &Report) -> fmt::Result {
    page.heading("What was not proved")?;
    page.list(Length::Ours, &claims::not_proved(report))
}
