//! Sections on checks: failed and errored ones in full, then all of them.

use model::escape;
use model::finding::{AskedBy, Finding, NEVER_STARTED, Status};
use model::report::Report;
use model::text::count;

use super::{
    Block, Budget, Entry, Fact, Fold, PAGE, SHORT, Section, Table, client, fact, mark, name, own,
    text, word,
};
use crate::phrases;
use crate::tone::Tone;

/// Most bytes of TOML that accept a finding.
const MAX_ACCEPT: usize = 8 << 10;
/// Number of checks that a reason names.
const MAX_NAMED: usize = 4;

/// Checks without a result of their own, by reason. A single check is left out if its reason is not the end of the
/// program: it is a finding in full.
fn consequences(report: &Report) -> Vec<(&str, Vec<&Finding>)> {
    let mut reasons: Vec<(&str, Vec<&Finding>)> = Vec::new();
    for finding in &report.checks {
        let Some(because) = phrases::consequence(finding) else {
            continue;
        };
        match reasons.iter_mut().find(|(reason, _)| *reason == because) {
            Some((_, findings)) => findings.push(finding),
            None => reasons.push((because, vec![finding])),
        }
    }
    reasons.retain(|(because, findings)| phrases::is_of_end(because) || findings.len() > 1);
    reasons
}

/// Lists the reasons why checks have no result of their own, each with its number of checks.
pub(super) fn not_judged(report: &Report) -> Option<Section> {
    let reasons = consequences(report).into_iter();
    let facts = reasons.map(|(because, findings)| {
        let ids = findings.iter().map(|finding| &*finding.id);
        let ids: Vec<&str> = ids.take(MAX_NAMED).collect();
        let more = findings.len().saturating_sub(ids.len());
        let more = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        let checks = format!(
            ": {}: {}{more}",
            count(findings.len(), "check"),
            ids.join(", ")
        );
        fact("not judged", own("because ") + client(because) + checks)
    });
    Section::of_facts(
        "consequences",
        "What could not be judged",
        Budget::Ours,
        facts.collect(),
    )
}

/// Sums up the findings of an audit, and lists the failed, then the errored checks, without [`not_judged`].
pub(super) fn findings(report: &Report) -> Option<Section> {
    let consequences = consequences(report);
    let is_own = |finding: &&Finding| {
        !consequences
            .iter()
            .any(|(_, findings)| findings.iter().any(|other| other.id == finding.id))
    };
    let wrong = [Status::Failed, Status::Errored].into_iter();
    let wrong = wrong.flat_map(|status| with_status(report, status));
    let wrong = wrong.filter(is_own);
    let mut accepted = Vec::new();
    let entries = wrong.map(|finding| entry(finding, &mut accepted));
    let entries: Vec<Entry> = entries.collect();
    let audited = report.findings();
    let number = match &audited {
        Some(found) => found.count,
        None => entries.len(),
    };
    let summary = audited.filter(|found| found.count > 0);
    let summary = summary.map(|found| fact("found", found.summary));
    let summary = summary.map(|fact| Block::Facts(Budget::Ours, vec![fact]));
    let entries = (!entries.is_empty()).then_some(Block::Entries(entries));
    let blocks: Vec<Block> = summary.into_iter().chain(entries).collect();
    let is_some = !blocks.is_empty();
    is_some.then(|| Section::new("findings", "Findings", number.to_string(), blocks))
}

/// Builds the entry of a finding. `accepted` has the findings with changes so far: the same changes are shown once.
fn entry<'r>(finding: &'r Finding, accepted: &mut Vec<&'r Finding>) -> Entry {
    let mut earlier = accepted.iter().filter(|one| one.accept == finding.accept);
    let (shown, note) = match (&finding.accept, earlier.next()) {
        (None, _) => (None, None),
        (Some(_), Some(earlier)) => (None, Some(format!("as for {}", earlier.id))),
        (Some(text), None) if text.len() > MAX_ACCEPT => (
            None,
            Some("more rules than are shown here; the JSON report has them".to_owned()),
        ),
        (Some(text), None) => (Some(text), None),
    };
    if finding.accept.is_some() {
        accepted.push(finding);
    }
    let parts = [
        ("object", finding.object.as_deref()),
        ("expected", finding.expected.as_deref()),
        ("found", phrases::found_in_short(finding)),
        ("because", finding.because.as_deref()),
    ];
    let parts = parts.into_iter();
    let facts = parts.filter_map(|(label, part)| Some(fact(label, client(part?))));
    let accept = shown.into_iter().flat_map(|text| text.lines());
    Entry {
        tone: tone(finding.status),
        word: finding.status.word(),
        id: finding.id.to_string(),
        message: own(&finding.message),
        asked_by: phrases::asked_by(&finding.asked_by),
        facts: facts
            .chain(note.map(|note| fact("to accept", note)))
            .collect(),
        accept: accept.map(escape::visible).collect(),
    }
}

fn tone(status: Status) -> Tone {
    match status {
        Status::Passed => Tone::Good,
        Status::Failed => Tone::Bad,
        Status::Errored => Tone::Doubtful,
        Status::Skipped => Tone::Quiet,
    }
}

/// Lists all checks: for a page with expected and found values, skipped ones folded; otherwise by name.
pub(super) fn all(report: &Report) -> [Option<Section>; 3] {
    let (skipped, made): (Vec<&Finding>, Vec<&Finding>) = report
        .checks
        .iter()
        .partition(|finding| finding.status == Status::Skipped);
    let mut blocks = table(&made).blocks();
    if !skipped.is_empty() {
        let summary = own(format!("{} skipped", skipped.len()));
        let fold = Fold {
            summary,
            is_open: false,
            blocks: table(&skipped).blocks(),
        };
        blocks.push(Block::Folds(Budget::Ours, vec![fold]));
    }
    let number = report.checks.len().to_string();
    let full = Section::new("checks", "All checks", number, blocks).only(PAGE);
    let in_short = |id, title, facts: Vec<Fact>| {
        let section = Section::of_facts(id, title, Budget::Ours, facts);
        section.map(|section| section.only(SHORT))
    };
    [
        in_short("passed", "Checks passed", passed(report)),
        in_short("not-made", "Checks skipped", skipped_in_short(report)),
        Some(full),
    ]
}

fn table(findings: &[&Finding]) -> Table {
    let part = |heading, part: Option<&str>| text(heading, part.map(client));
    let table = Table::of(Budget::Ours, findings, |finding| {
        let section = match &finding.asked_by {
            AskedBy::Specification(section) => format!(" (§ {section})"),
            AskedBy::Case | AskedBy::LockFile | AskedBy::CommandLine => String::new(),
        };
        let check = name(&*finding.id) + section + ": " + &*finding.message;
        let status = mark(tone(finding.status), finding.status.word());
        [
            word("status", status),
            text("check", check),
            part("object", finding.object.as_deref()),
            part("expected", finding.expected.as_deref()),
            part("found", phrases::found_in_short(finding)),
            part("because", finding.because.as_deref()),
        ]
    });
    table.with_ids(
        findings
            .iter()
            .map(|finding| format!("check-{}", finding.id)),
    )
}

/// Names the passed checks by area.
fn passed(report: &Report) -> Vec<Fact> {
    let passed: Vec<_> = with_status(report, Status::Passed)
        .map(area_and_name)
        .collect();
    let areas = passed.chunk_by(|(one, _), (other, _)| one == other);
    areas
        .map(|area| {
            let names: Vec<_> = area.iter().map(|(_, name)| *name).collect();
            fact(area.first().map_or("", |(area, _)| area), names.join(", "))
        })
        .collect()
}

/// Lists the skipped checks: first those of a client that the runner ended, then one fact for each reason.
fn skipped_in_short(report: &Report) -> Vec<Fact> {
    let mut reasons: Vec<(&str, Vec<&Finding>)> = Vec::new();
    let mut facts = Vec::new();
    let skipped = report
        .checks
        .iter()
        .filter(|finding| finding.status == Status::Skipped);
    for finding in skipped {
        let because = finding.because.as_deref().unwrap_or_default();
        let (area, name) = area_and_name(finding);
        if because == NEVER_STARTED {
            continue;
        }
        if phrases::is_leftover(finding) {
            facts.push(fact(area, format!("{name}: {because}")));
            let parts = [("left", &finding.found), ("expected", &finding.expected)];
            let parts = parts.into_iter();
            facts.extend(
                parts.filter_map(|(label, part)| Some(fact(label, client(part.as_ref()?)))),
            );
            continue;
        }
        match reasons.iter_mut().find(|(reason, _)| *reason == because) {
            Some((_, findings)) => findings.push(finding),
            None => reasons.push((because, vec![finding])),
        }
    }
    facts.extend(
        reasons
            .iter()
            .map(|(reason, findings)| match findings.as_slice() {
                [only] => {
                    let (area, name) = area_and_name(only);
                    fact(area, format!("{name}: {reason}"))
                }
                several => fact(format!("{} checks", several.len()), *reason),
            }),
    );
    facts
}

fn area_and_name(finding: &Finding) -> (&str, &str) {
    finding.id.split_once('/').unwrap_or((&finding.id, ""))
}

fn with_status(report: &Report, status: Status) -> impl Iterator<Item = &Finding> {
    report
        .checks
        .iter()
        .filter(move |finding| finding.status == status)
}
