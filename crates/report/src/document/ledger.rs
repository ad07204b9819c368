//! Sections of the ledger: attempts, limits, names, programs, and failed path lookups.

use std::collections::BTreeSet;
use std::path::Path;

use model::case::{Root, Tier};
use model::evidence::{Advice, AttemptKind, Exit, GapKind, Outcome, Process};
use model::expected::{AttemptGroup, explained_groups, reached_limits};
use model::layout::{HOME, TMP, WORK};
use model::quote::shell_text;
use model::report::{self, Purpose, Report};
use model::text::{count, grouped};

use super::summary::arguments;
use super::{
    Block, Budget, Cell, Section, Table, client, fact, led, mark, number, own, text, word,
};
use crate::phrases::{self, at};
use crate::tone::Tone;

/// Lists the attempts by program, destination and outcome.
pub(super) fn attempts(report: &Report) -> Section {
    let groups = explained_groups(&report.evidence);
    let unlisted = report.evidence.unlisted.attempts();
    let is_whole = report.evidence.gap(&[GapKind::Attempts]).is_none() && unlisted == 0;
    let unexpected = groups.iter().filter(|group| group.reason.is_none());
    let all = unexpected.map(|group| group.count);
    let all = all.fold(unlisted, u64::saturating_add);
    let note = match groups.iter().all(|group| group.reason.is_some()) {
        true if !is_whole => "none in what was recorded".to_owned(),
        true if groups.is_empty() => "none".to_owned(),
        true => "none but what the profile names".to_owned(),
        false => grouped(all),
    };
    let mut blocks = group_table("destination", &groups).blocks();
    let setup = report.evidence.attempts.iter();
    let setup = setup.filter(|attempt| attempt.kind == AttemptKind::Setup);
    let setup = setup
        .map(|attempt| attempt.count)
        .fold(0, u64::saturating_add);
    let what = "of libc's own, on the way to the stub, or without a destination, not judged";
    let setup = (setup > 0).then(|| fact("setup", format!("{} {what}", count(setup, "call"))));
    let further = format!(
        "{} beyond those that are listed",
        count(unlisted, "attempt")
    );
    let further = (unlisted > 0).then(|| fact("further", further));
    let facts: Vec<_> = further.into_iter().chain(setup).collect();
    if !facts.is_empty() {
        blocks.push(Block::Facts(Budget::Ours, facts));
    }
    let title = match report.purpose {
        Purpose::Judge => "Attempts",
        Purpose::Audit => "Attempts of the program",
    };
    Section::new("attempts", title, note, blocks)
}

/// Lists the sensitive places that a program looked for.
pub(super) fn sensitive(report: &Report) -> Option<Section> {
    let found = report::sensitive(&report.evidence);
    let table = Table::of(Budget::Client, found, |place| {
        [
            number("times", place.count),
            word("wanted", place.wanted),
            word("what", place.what.word()),
            text("place", client(shell_text(&place.place))),
        ]
    });
    table.section("sensitive", "Sensitive places that it looked for")
}

/// Lists calls refused at a limit of the sandbox, because the client may have failed for that reason.
pub(super) fn limits(report: &Report) -> Option<Section> {
    let met = reached_limits(&report.evidence);
    let title = "Limits of the sandbox that were met, not judged";
    group_table("limit", &met).section("limits", title)
}

/// Lists groups. The words on the expectation come before client text, which could imitate them.
fn group_table(what: &'static str, groups: &[AttemptGroup]) -> Table {
    Table::of(Budget::Client, groups, |group| {
        let tone = match group.outcome {
            Outcome::Denied(_) => Tone::Bad,
            Outcome::Allowed => Tone::Seen,
        };
        [
            number("times", group.count),
            word("outcome", mark(tone, group.outcome.words())),
            expected(group.reason.as_deref()),
            text(what, client(&group.target)),
            led(" by ", "program", client(&group.program)),
            reason(group.reason.as_deref()),
        ]
    })
}

/// Word for expected evidence.
fn expected(reason: Option<&str>) -> Cell {
    word("expected", reason.map(|_| own("yes")))
}

/// Reason of expected evidence.
pub(super) fn reason(reason: Option<&str>) -> Cell {
    led(": ", "reason", reason.map(client))
}

/// Lists the questions to the resolver, and counts their names.
pub(super) fn names(report: &Report) -> Option<Section> {
    let table = Table::of(Budget::Client, &report.evidence.names, |name| {
        let because = name.expected.as_deref();
        [
            number("times", name.count),
            expected(because),
            text("name", client(&name.name)),
            text("type", client(name.kind_and_odd())),
            reason(because),
        ]
    });
    let mut section = table.section("names", "Names asked for")?;
    let names: BTreeSet<&str> = report
        .evidence
        .names
        .iter()
        .map(|question| question.name.as_str())
        .collect();
    section.note = grouped(names.len() as u64);
    Some(section)
}

pub(super) fn programs(report: &Report) -> Option<Section> {
    let started = report.evidence.processes.iter();
    let started: Vec<&Process> = started.filter(|process| process.is_started()).collect();
    let table = Table::of(Budget::Client, &started, |process| {
        let args = process.args.get(1..).unwrap_or_default();
        [
            word("pid", process.pid.to_string()),
            word("parent", process.ppid.to_string()),
            text("program", client(process.with_name())),
            led(
                " ",
                "arguments",
                arguments(args) + further(process.further_args),
            ),
        ]
    });
    table.section("programs", "Programs started")
}

/// Lists the programs that the sandbox refused to execute, each with the option that would allow it.
pub(super) fn refused(report: &Report) -> Option<Section> {
    let all = report.evidence.processes.iter();
    let all: Vec<_> = all
        .filter_map(|process| Some((process, process.refused.as_deref()?)))
        .collect();
    let table = Table::of(Budget::Client, &all, |(process, errno)| {
        let option = match (tree_of(&process.program), report.tier) {
            (Some(tree), _) => Some(format!("--allow-exec {}", tree.word())),
            (None, Tier::Inherited) => Some("--allow-exec, if it made the file".to_owned()),
            (None, Tier::Namespace) => None,
        };
        [
            word("errno", *errno),
            word("pid", process.pid.to_string()),
            text("program", client(process.with_name())),
            led("   ", "what would allow it", option.map(own)),
        ]
    });
    table.section("refused", "Programs that the sandbox refused to execute")
}

/// Writable tree of a path inside.
fn tree_of(program: &str) -> Option<Root> {
    let trees = [(HOME, Root::Home), (TMP, Root::Tmp), (WORK, Root::Work)];
    let mut holding = trees
        .into_iter()
        .filter(|(tree, _)| Path::new(program).starts_with(tree));
    holding.next().map(|(_, root)| root)
}

fn further(args: u64) -> String {
    match args {
        0 => String::new(),
        args => format!(" … and {} more", count(args, "argument")),
    }
}

pub(super) fn survivors(report: &Report) -> Option<Section> {
    let table = Table::of(Budget::Client, &report.evidence.survivors, |process| {
        let pid = word("pid", process.pid.to_string());
        [pid, text("program", client(&process.program))]
    });
    table.section("survivors", "Processes that outlived the client")
}

/// Lists failed path lookups, each with the option that would show the path.
pub(super) fn lookups(report: &Report) -> Option<Section> {
    let (id, title) = ("lookups", "Paths that it looked for and did not get");
    if report.tier == Tier::Inherited && report.evidence.exit != Exit::NotStarted {
        return Some(Section::new(
            id,
            title,
            "not recorded with isolation inherited",
            [],
        ));
    }
    // The program chose the paths and could imitate an option of the runner.
    let table = Table::of(Budget::Client, &report.evidence.lookups, |lookup| {
        let advice = match (&lookup.advice, report.purpose) {
            (Advice::Read(path), Purpose::Audit) => client(format!("--read {}", shell_text(path))),
            (Advice::Write(path), Purpose::Audit) => {
                client(format!("--write {}", shell_text(path)))
            }
            (Advice::Read(path), Purpose::Judge) => {
                own("a path rule for ") + client(shell_text(path))
            }
            (Advice::Write(_), Purpose::Judge) => own("(a case shows all paths read-only)"),
            (Advice::Never(reason), _) => own(format!("({})", phrases::reason_in_full(*reason))),
        };
        [
            word("wanted", lookup.kind.word()),
            number("times", lookup.count),
            number("paths", lookup.paths),
            word("first", at(lookup.at_us)).wide(),
            text("path", client(shell_text(&lookup.path))),
            led("   ", "what would show it", advice),
        ]
    });
    table.section(id, title)
}
