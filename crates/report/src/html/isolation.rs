//! Sections on the sandbox: layers as verified from the kernel, the canary, and missing evidence.

use maud::{Markup, html};
use model::evidence::{CanaryMode, CanaryStatus, LayerNeed, LayerStatus};
use model::report::Report;

use super::badge::badge;
use super::budget::{Budget, Column};
use super::frame::Section;
use super::text::code;
use crate::html::text::ClientText;

pub(super) fn layers(report: &Report) -> Section {
    let layers = &report.evidence.layers;
    let columns = [
        Column::Word("status"),
        Column::Text("layer"),
        Column::Word("need"),
        Column::Text("state in the kernel"),
    ];
    let body = html! {
        @if layers.is_empty() {
            p.none { "No layer was verified." }
        } @else {
            (Budget::OURS.table(columns, layers, |layer| [
                layer_status(layer.status),
                html! { (ClientText(&layer.name)) },
                html! { (need(layer.need)) },
                html! { (ClientText(&layer.detail)) },
            ]))
        }
    };
    let enforced = layers
        .iter()
        .filter(|layer| layer.status == LayerStatus::Enforced);
    let note = format!("{} of {} enforced", enforced.count(), layers.len());
    Section::new("layers", "Layers of the sandbox", body).with_note(note)
}

fn need(need: LayerNeed) -> &'static str {
    match need {
        LayerNeed::Required => "required",
        LayerNeed::IfOffered => "if offered",
    }
}

fn layer_status(status: LayerStatus) -> Markup {
    let (class, sign) = match status {
        LayerStatus::Enforced => ("passed", "✓"),
        LayerStatus::Partial => ("errored", "!"),
        LayerStatus::Absent => ("failed", "✕"),
    };
    badge(class, sign, status.word())
}

/// Draws the probes of the canary.
pub(super) fn canary(report: &Report) -> Option<Section> {
    let probes = &report.evidence.canaries;
    if probes.is_empty() {
        return None;
    }
    let columns = [
        Column::Word("status"),
        Column::Text("probe"),
        Column::Text("refused by"),
        Column::Text("expected"),
        Column::Text("observed"),
    ];
    let body = html! {
        p.aside {
            "Forbidden calls by a child of the client's process before its start, behind the same filter and rules."
        }
        (Budget::OURS.table(columns, probes, |probe| [
            probe_status(probe.status),
            code(&probe.name),
            html! { (refused_by(probe.mode, &probe.expected)) },
            code(&probe.expected),
            code(&probe.observed),
        ]))
    };
    let number = |status| probes.iter().filter(|one| one.status == status).count();
    let counts = [
        (CanaryStatus::Held, "held"),
        (CanaryStatus::NotHeld, "not held"),
        (CanaryStatus::NotApplicable, "not testable here"),
    ];
    let counts = counts.map(|(status, word)| (number(status), word));
    let counts = counts.iter().filter(|(number, _)| *number > 0);
    let counts: Vec<String> = counts
        .map(|(number, word)| format!("{number} {word}"))
        .collect();
    let note = counts.join(", ");
    Some(Section::new("canaries", "Canary", body).with_note(note))
}

fn refused_by(mode: CanaryMode, expected: &str) -> &'static str {
    match (mode, expected) {
        (_, "ok") => "must succeed",
        (CanaryMode::Answered, _) => "the supervisor",
        (CanaryMode::Continued, _) => "the kernel",
    }
}

fn probe_status(status: CanaryStatus) -> Markup {
    match status {
        CanaryStatus::Held => badge("passed", "✓", "held"),
        CanaryStatus::NotHeld => badge("failed", "✕", "not held"),
        CanaryStatus::NotApplicable => badge("skipped", "–", "not testable here"),
    }
}

/// Draws the gaps in the evidence, with a size budget, because a client can cause many.
pub(super) fn gaps(report: &Report) -> Option<Section> {
    let gaps = &report.evidence.gaps;
    if gaps.is_empty() {
        return None;
    }
    let columns = [Column::Word("part"), Column::Text("why")];
    let body = Budget::CLIENT.table(columns, gaps, |gap| {
        [html! { (gap.what.word()) }, code(&gap.detail)]
    });
    Some(
        Section::new("gaps", "Evidence that is incomplete", body).with_note(gaps.len().to_string()),
    )
}
