//! Sections of the ledger: attempts, limits, names, programs, and failed path lookups.

use model::case::Tier;
use model::evidence::{Advice, AttemptKind, Exit, GapKind, Outcome};
use model::expected::{self, AttemptGroup};
use model::labels;
use model::report::{Purpose, Report};

use super::summary::arguments;
use super::{
    Block, Budget, Section, Table, Text, Tone, client, fact, led, mark, num, number, own, text,
    word,
};
use crate::phrases::{self, at, grouped, number_of, quoted};

/// Lists the attempts by program, destination and outcome.
pub(super) fn attempts(report: &Report) -> Section {
    let groups = expected::attempt_groups(&report.known.attempts, &report.evidence);
    let unlisted = report.evidence.unlisted.attempts();
    let is_whole = report.evidence.gap(&[GapKind::Attempts]).is_none() && unlisted == 0;
    let all = groups.iter().map(|group| group.count);
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
    let what = "on the way to the stub or without a destination, not judged";
    let setup = (setup > 0).then(|| fact("setup", format!("{} {what}", number_of(setup, "call"))));
    let further = format!(
        "{} beyond those that are listed",
        number_of(unlisted, "attempt")
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

/// Lists calls refused at a limit of the sandbox, because the client may have failed for that reason.
pub(super) fn limits(report: &Report) -> Option<Section> {
    let met = expected::reached_limits(&report.evidence);
    let title = "Limits of the sandbox that were met, not judged";
    group_table("limit", &met).section("limits", title)
}

/// Lists groups. The words on the expectation come before client text, which could imitate them.
fn group_table(what: &'static str, groups: &[AttemptGroup]) -> Table {
    let columns = [
        number("times"),
        word("outcome"),
        word("expected"),
        text(what),
        led("program", " by "),
        led("reason", ": "),
    ];
    Table::of(Budget::Client, columns, groups, |group| {
        let tone = match group.outcome {
            Outcome::Denied(_) => Tone::Bad,
            Outcome::Allowed => Tone::Seen,
        };
        let [is_expected, reason] = expectation(group.reason.as_deref());
        [
            num(group.count),
            mark(tone, group.outcome_words()),
            is_expected,
            client(&group.target),
            client(&group.program),
            reason,
        ]
    })
}

/// Word and reason of expected evidence.
pub(super) fn expectation(reason: Option<&str>) -> [Text; 2] {
    [reason.map(|_| own("yes")).into(), reason.map(client).into()]
}

pub(super) fn names(report: &Report) -> Option<Section> {
    let columns = [
        number("times"),
        word("expected"),
        text("name"),
        led("type", ", "),
        led("reason", ": "),
    ];
    let table = Table::of(Budget::Client, columns, &report.evidence.names, |name| {
        let reason = expected::reason_for_question(&report.known.attempts, name);
        let [is_expected, reason] = expectation(reason);
        let kind = client(name.kind_and_odd());
        [
            num(name.count),
            is_expected,
            client(&name.name),
            kind,
            reason,
        ]
    });
    table.section("names", "Names asked for")
}

pub(super) fn programs(report: &Report) -> Option<Section> {
    let columns = [
        number("pid"),
        number("parent"),
        text("program"),
        led("arguments", " "),
    ];
    let table = Table::of(Budget::Client, columns, &report.processes, |process| {
        let args = arguments(process.args.get(1..).unwrap_or_default());
        let [pid, parent] = [process.pid, process.ppid].map(|pid| own(pid.to_string()));
        [pid, parent, client(process.with_name()), args]
    });
    table.section("programs", "Programs started")
}

pub(super) fn survivors(report: &Report) -> Option<Section> {
    let columns = [number("pid"), text("program")];
    let table = Table::of(
        Budget::Client,
        columns,
        &report.evidence.survivors,
        |process| [own(process.pid.to_string()), client(&process.program)],
    );
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
    let columns = [
        word("wanted"),
        number("times"),
        number("paths"),
        word("first").wide(),
        text("path"),
        led("what would show it", "   "),
    ];
    let table = Table::of(
        Budget::Client,
        columns,
        &report.evidence.lookups,
        |lookup| {
            let advice = match &lookup.advice {
                Advice::Read(path) => client(format!("--read {}", quoted(path))),
                Advice::Write(path) => client(format!("--write {}", quoted(path))),
                Advice::Never(reason) => own(format!("({})", phrases::reason_in_full(*reason))),
            };
            [
                own(labels::lookup_kind(lookup.kind)),
                num(lookup.count),
                num(lookup.paths),
                own(at(lookup.at_us)),
                client(quoted(&lookup.path)),
                advice,
            ]
        },
    );
    table.section(id, title)
}
