//! Document of several runs: a table of them.

use model::finding::Verdict;
use model::fleet::{Fleet, FleetRun};
use model::text::{count, grouped};

use super::{
    Block, Budget, Document, Fact, Section, Table, Text, client, digest, fact, led, mark, name,
    own, text, word,
};
use crate::headline::{self, Headline};
use crate::phrases::{duration, in_short, verdict_word};
use crate::tone::Tone;

impl Document {
    /// Builds the document of several runs.
    pub(in super::super) fn of_fleet(fleet: &Fleet) -> Self {
        let verdict = fleet.verdict();
        Self {
            kind: "Sandboxed runs of several cases",
            headline: Headline {
                word: verdict.word().to_ascii_uppercase(),
                tone: tone(Some(verdict)),
                joint: "  ",
                text: summary(fleet),
            },
            identity: identity(fleet),
            sections: vec![cases(fleet)],
        }
    }
}

fn identity(fleet: &Fleet) -> Vec<Fact> {
    let us = u64::try_from(fleet.duration.as_micros()).unwrap_or(u64::MAX);
    let time = format!("{} from {}", duration(us), fleet.started_at());
    let runner = &fleet.runner;
    let (commit, build_id) = (digest(&runner.commit), digest(&runner.build_id));
    let mut facts = vec![
        fact("time", time),
        fact(
            "runner",
            own(&runner.version) + ", commit " + commit + ", build id " + build_id,
        ),
    ];
    let others = fleet.not_cases.iter();
    let others = others
        .enumerate()
        .fold(Text::default(), |all, (index, file)| {
            all + (if index > 0 { ", " } else { "" }) + name(file)
        });
    facts.extend(others.is_some().then(|| fact("not cases", others)));
    facts
}

fn cases(fleet: &Fleet) -> Section {
    // Each text is bounded, and the user chose the number of cases.
    let table = Table::of(Budget::Ours, &fleet.runs, |run: &FleetRun| {
        let time = duration(run.duration_ms.saturating_mul(1_000));
        let finding = run.first_finding.as_ref();
        let remarks = Some(remarks(run)).filter(|remarks| !remarks.is_empty());
        [
            word(
                "verdict",
                mark(tone(run.verdict), verdict_word(run.verdict)),
            ),
            word("time", run.verdict.map(|_| own(time))),
            word("case", name(&run.case)),
            text(
                "first finding",
                finding.map(|found| client(in_short(found))),
            ),
            led("; ", "remarks", remarks.map(own)),
        ]
    });
    let number = grouped(fleet.runs.len() as u64);
    Section::new("cases", "Cases", number, [Block::Table(table)])
}

/// `3 cases: 1 failed, 2 passed`
fn summary(fleet: &Fleet) -> String {
    let ranked = [
        Some(Verdict::Errored),
        None,
        Some(Verdict::Failed),
        Some(Verdict::Passed),
    ];
    let counts = ranked.map(|verdict| (fleet.count(verdict), verdict_word(verdict)));
    let counts = counts.into_iter().filter(|(number, _)| *number > 0);
    let counts = counts.map(|(number, word)| format!("{number} {word}"));
    let counts: Vec<String> = counts.collect();
    format!("{}: {}", count(fleet.runs.len(), "case"), counts.join(", "))
}

/// `not judged: records; 5 rules not reviewed`; empty if all is judged and reviewed.
fn remarks(run: &FleetRun) -> String {
    let judged =
        (!run.not_judged.is_empty()).then(|| format!("not judged: {}", run.not_judged.join(", ")));
    let reviewed =
        (run.not_reviewed > 0).then(|| format!("{} not reviewed", count(run.not_reviewed, "rule")));
    let all: Vec<String> = judged.into_iter().chain(reviewed).collect();
    all.join("; ")
}

/// Tone of a verdict.
fn tone(verdict: Option<Verdict>) -> Tone {
    verdict.map_or(Tone::Doubtful, |verdict| headline::tone(verdict, true))
}
