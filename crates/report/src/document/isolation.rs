//! Sections on the sandbox: layers as verified from the kernel, the canary, and missing evidence.

use model::evidence::{Canary, CanaryMode, CanaryStatus, LayerNeed, LayerStatus};
use model::report::Report;
use model::text::count;

use super::{
    Block, Budget, Fact, PAGE, SHORT, Section, Table, client, fact, mark, name, text, toned, word,
};
use crate::tone::Tone;

/// Returns the isolation, in short or as two tables, and the gaps in the evidence.
pub(super) fn sections(report: &Report) -> [Option<Section>; 4] {
    let facts = layers_in_short(report)
        .into_iter()
        .chain(canary_in_short(report));
    let block = Block::Facts(Budget::Ours, facts.collect());
    let in_short = Section::new("isolation", "Isolation", "", [block]).only(SHORT);
    [
        Some(in_short),
        Some(layers(report)),
        canary(report),
        gaps(report),
    ]
}

fn layers(report: &Report) -> Section {
    let layers = &report.evidence.layers;
    let table = Table::of(Budget::Ours, layers, |layer| {
        [
            word("status", mark(tone(layer.status), layer.status.word())),
            word("need", need(layer.need)),
            text("layer", &*layer.name),
            text("state in the kernel", &*layer.detail),
        ]
    });
    let is_enforced = |status| status == LayerStatus::Enforced;
    let enforced = layers.iter().filter(|layer| is_enforced(layer.status));
    let note = format!("{} of {} enforced", enforced.count(), layers.len());
    Section::new("layers", "Layers of the sandbox", note, table.blocks()).only(PAGE)
}

fn tone(status: LayerStatus) -> Tone {
    match status {
        LayerStatus::Enforced => Tone::Good,
        LayerStatus::Partial => Tone::Doubtful,
        LayerStatus::Absent => Tone::Bad,
    }
}

fn need(need: LayerNeed) -> &'static str {
    match need {
        LayerNeed::Required => "required",
        LayerNeed::IfOffered => "if offered",
    }
}

/// Names the enforced layers, and describes the others.
fn layers_in_short(report: &Report) -> Vec<Fact> {
    let layers = &report.evidence.layers;
    let with = |status| layers.iter().filter(move |layer| layer.status == status);
    let enforced: Vec<_> = with(LayerStatus::Enforced)
        .map(|layer| &*layer.name)
        .collect();
    let enforced = match enforced.as_slice() {
        [] => "nothing".to_owned(),
        names => names.join(", "),
    };
    let lost = layers
        .iter()
        .filter(|layer| layer.status != LayerStatus::Enforced);
    let lost = lost.map(|layer| {
        let text = format!("{} ({}): {}", layer.name, need(layer.need), layer.detail);
        toned(layer.status.word(), tone(layer.status), text)
    });
    let enforced = toned("enforced", tone(LayerStatus::Enforced), enforced);
    [enforced].into_iter().chain(lost).collect()
}

/// Lists the probes of the canary.
fn canary(report: &Report) -> Option<Section> {
    let probes = &report.evidence.canaries;
    let table = Table::of(Budget::Ours, probes, |probe| {
        let tone = match probe.status {
            CanaryStatus::Held => Tone::Good,
            CanaryStatus::NotHeld => Tone::Bad,
            CanaryStatus::NotApplicable => Tone::Quiet,
        };
        let refused_by = match (probe.mode, probe.expected.as_str()) {
            (_, "ok") => "must succeed",
            (CanaryMode::Answered, _) => "the supervisor",
            (CanaryMode::Continued, _) => "the kernel",
        };
        [
            word("status", mark(tone, status(probe.status))),
            text("probe", name(&probe.name)),
            text("refused by", refused_by),
            text("expected", name(&probe.expected)),
            text("observed", name(&probe.observed)),
        ]
    });
    let about = "Forbidden calls by a child of the client's process before its start, behind the same filter and rules.";
    let about = Block::Facts(Budget::Ours, vec![fact("probes", about)]);
    let section = table.section("canaries", "Canary")?;
    let blocks = [about].into_iter().chain(section.blocks).collect();
    let note = counts(probes).join(", ");
    Some(
        Section {
            note,
            blocks,
            ..section
        }
        .only(PAGE),
    )
}

fn status(status: CanaryStatus) -> &'static str {
    match status {
        CanaryStatus::Held => "held",
        CanaryStatus::NotHeld => "not held",
        CanaryStatus::NotApplicable => "not testable here",
    }
}

/// Counts the probes of each status that occurs.
fn counts(probes: &[Canary]) -> Vec<String> {
    let all = [
        CanaryStatus::Held,
        CanaryStatus::NotHeld,
        CanaryStatus::NotApplicable,
    ];
    let number = |status| probes.iter().filter(|one| one.status == status).count();
    let counts = all.map(|status| (number(status), status)).into_iter();
    let counts = counts.filter(|(number, _)| *number > 0);
    counts
        .map(|(number, with)| format!("{number} {}", status(with)))
        .collect()
}

/// Counts the probes, and describes those that did not hold.
fn canary_in_short(report: &Report) -> Vec<Fact> {
    let probes = &report.evidence.canaries;
    let number = count(probes.len(), "probe");
    let counts = match counts(probes).as_slice() {
        [] => number,
        counts => format!("{number}: {}", counts.join(", ")),
    };
    let wrong = probes.iter().filter_map(|probe| {
        let probe_name = format!("{} ({})", probe.name, probe.mode.word());
        let observed = format!("expected {}, observed {}", probe.expected, probe.observed);
        match probe.status {
            CanaryStatus::Held => None,
            CanaryStatus::NotHeld => Some(toned(
                "not held",
                Tone::Bad,
                format!("{probe_name}: {observed}"),
            )),
            CanaryStatus::NotApplicable => {
                let text = format!("{probe_name}: not testable here: the host refuses it too");
                Some(fact("", text))
            }
        }
    });
    [fact("canary", counts)].into_iter().chain(wrong).collect()
}

/// Lists the gaps in the evidence. A client can cause many.
fn gaps(report: &Report) -> Option<Section> {
    let gaps = report.evidence.gaps.iter();
    let facts: Vec<_> = gaps
        .map(|gap| fact(gap.what.word(), client(&gap.detail)))
        .collect();
    let title = "Evidence that is incomplete";
    Section::of_facts("gaps", title, Budget::Client, facts)
}
