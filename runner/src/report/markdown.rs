//! The report for the summary page of a CI job, in the Markdown of GitHub and GitLab: where the program went comes
//! first. Shorter than the other reports, and always below [`LIMIT`].
//!
//! Text of the client stands in code spans only, escaped as for people before: there Markdown knows neither links nor
//! mentions, HTML or markers, and no line begins with it.

use std::fmt::{self, Write as _};

use super::claims::{self, Standing};
use super::{Purpose, RenderError, Report, escape, words};
use crate::check::{self, count};
use crate::evidence::{Advice, GapKind};
use crate::verdict::{Finding, Status, Verdict};

/// GitHub drops a summary of more than 1 MiB.
const LIMIT: usize = 900 * 1024;
/// Rows of one table.
const ROWS: usize = 100;
/// Characters of one piece of the client's text.
const CUT: usize = 300;

/// Renders the report as UTF-8 Markdown.
pub fn render(report: &Report) -> Result<Vec<u8>, RenderError> {
    let mut page = Page::default();
    verdict(&mut page, report)?;
    attempts(&mut page, report)?;
    names(&mut page, report)?;
    requests(&mut page, report)?;
    findings(&mut page, report)?;
    lookups(&mut page, report)?;
    files(&mut page, report)?;
    programs(&mut page, report)?;
    claims(&mut page, report)?;
    Ok(page.out.into_bytes())
}

fn verdict(page: &mut Page, report: &Report) -> fmt::Result {
    let word = report.verdict.word().to_uppercase();
    // An audit expects nothing, so nothing fails in it but the audit itself.
    let (word, subject) = match (report.purpose, report.verdict) {
        (Purpose::Judge, _) => (word.as_str(), &report.case.name),
        (Purpose::Audit, Verdict::Errored) => (word.as_str(), &report.client.program),
        (Purpose::Audit, Verdict::Passed | Verdict::Failed) => ("AUDITED", &report.client.program),
    };
    writeln!(page.out, "## {word}: {}", code(subject))?;
    let number = |status| {
        let with = report.checks.iter().filter(|one| one.status == status);
        format!("{} {}", with.count(), status.word())
    };
    let counts = Status::ALL.map(number).join(", ");
    writeln!(
        page.out,
        "\nChecks: {counts}. Client {}, sha256 {}, {}. Tier {}.",
        code(&report.client.program),
        code(report.client.sha256.get(..12).unwrap_or_default()),
        words::exit(report.evidence.exit),
        report.tier.word(),
    )?;
    for reason in check::unsound(&report.evidence).iter().take(ROWS) {
        writeln!(page.out, "- This run says nothing: {}", code(reason))?;
    }
    Ok(())
}

fn attempts(page: &mut Page, report: &Report) -> fmt::Result {
    let groups = check::attempt_groups(&report.known.attempts, &report.evidence);
    let rows = groups.iter().map(|group| {
        let expected = group.reason.as_deref().map_or(String::new(), code);
        [
            code(&group.target),
            group.outcome.words(),
            group.count.to_string(),
            code(&group.program),
            expected,
        ]
    });
    let none = match report.evidence.gap(&[GapKind::Attempts]) {
        None => "None.",
        Some(_) => "None in what was recorded.",
    };
    let head = ["destination", "outcome", "times", "program", "expected"];
    page.table("Attempts", head, rows, Some(none))
}

fn names(page: &mut Page, report: &Report) -> fmt::Result {
    let rows = report
        .evidence
        .names
        .iter()
        .map(|name| [code(&name.name), code(&name.kind), name.count.to_string()]);
    page.table("Names asked for", ["name", "type", "times"], rows, None)
}

fn requests(page: &mut Page, report: &Report) -> fmt::Result {
    let rows = report.evidence.requests.iter().map(|request| {
        [
            request.seq.to_string(),
            words::class(request.class).to_owned(),
            code(&words::request_line(request)),
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
    page.table("Requests", head, rows, Some("None."))
}

fn findings(page: &mut Page, report: &Report) -> fmt::Result {
    let wrong = |finding: &&Finding| matches!(finding.status, Status::Failed | Status::Errored);
    let part = |part: &Option<String>| part.as_deref().map_or(String::new(), code);
    let rows = report.checks.iter().filter(wrong).map(|finding| {
        [
            code(finding.id),
            finding.status.word().to_owned(),
            part(&finding.object),
            part(&finding.expected),
            part(&finding.found),
            part(&finding.because),
        ]
    });
    let head = ["check", "status", "object", "expected", "found", "because"];
    page.table("Findings", head, rows, None)
}

fn lookups(page: &mut Page, report: &Report) -> fmt::Result {
    let rows = report.evidence.lookups.iter().map(|lookup| {
        let advice = match &lookup.advice {
            Advice::Read(path) => code(&format!("--read {path}")),
            Advice::Write(path) => code(&format!("--write {path}")),
            Advice::Never(reason) => words::reason_in_full(*reason).to_owned(),
        };
        [
            code(&lookup.path),
            words::lookup_kind(lookup.kind).to_owned(),
            lookup.count.to_string(),
            advice,
        ]
    });
    let head = ["path", "wanted", "times", "what would show it"];
    page.table("Paths that it looked for and did not get", head, rows, None)
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
            words::file_kind(entry.kind).to_owned(),
            format!("{:04o}", entry.mode),
            entry.bytes.to_string(),
        ]
    });
    let head = ["in", "path", "kind", "mode", "bytes"];
    page.table("Files left behind", head, rows, None)
}

fn programs(page: &mut Page, report: &Report) -> fmt::Result {
    let rows = report
        .processes
        .iter()
        .map(|process| [process.pid.to_string(), code(&process.program)]);
    page.table("Programs started", ["pid", "program"], rows, None)
}

fn claims(page: &mut Page, report: &Report) -> fmt::Result {
    page.out
        .push_str("\n### What this run shows, and what it does not\n\n");
    for claim in claims::claims(report) {
        let word = match claim.standing {
            Standing::Proved => "proved",
            Standing::Seen => "seen",
            Standing::Refuted => "not so",
            Standing::NotProved => "not proved",
        };
        writeln!(page.out, "- {word}: {}", claim.text)?;
    }
    claims::further_not_proved(report)
        .try_for_each(|text| writeln!(page.out, "- not proved: {text}"))
}

/// The text so far.
#[derive(Default)]
struct Page {
    out: String,
}

impl Page {
    /// A table below a heading; without rows `none`, or nothing at all.
    fn table<const N: usize>(
        &mut self,
        title: &str,
        head: [&str; N],
        rows: impl Iterator<Item = [String; N]>,
        none: Option<&str>,
    ) -> fmt::Result {
        let rows: Vec<_> = rows.collect();
        if rows.is_empty() {
            return match none {
                Some(none) => writeln!(self.out, "\n### {title}\n\n{none}"),
                None => Ok(()),
            };
        }
        writeln!(self.out, "\n### {title}\n\n| {} |", head.join(" | "))?;
        writeln!(self.out, "|{}", "---|".repeat(N))?;
        let mut shown = 0;
        for row in rows.iter().take(ROWS) {
            let line = format!("| {} |\n", row.join(" | "));
            if self.out.len() + line.len() > LIMIT {
                break;
            }
            self.out.push_str(&line);
            shown += 1;
        }
        match rows.len() - shown {
            0 => Ok(()),
            more => writeln!(self.out, "\nAnd {}.", count(more, "more row")),
        }
    }
}

/// A code span that holds the text whatever stands in it (CommonMark, section 6.1), in a cell of a table as well,
/// where a pipe would end it (GitHub Flavored Markdown, section 4.10).
fn code(text: &str) -> String {
    let visible = escape::visible(text);
    let text = match visible.char_indices().nth(CUT) {
        Some((end, _)) => format!("{}… (cut)", visible.get(..end).unwrap_or_default()),
        None => visible,
    };
    if text.is_empty() {
        return String::new();
    }
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    // A backslash before a pipe would be read as its escape, and a blank at both ends is taken away.
    format!("{fence} {} {fence}", text.replace('|', "\\|"))
}
