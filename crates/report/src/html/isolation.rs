//! The sandbox: its layers as the kernel reports them, what was tried in the client's place, and what is missing from
//! the evidence.

use maud::{Markup, html};
use model::evidence::{CanaryMode, CanaryStatus, LayerNeed, LayerStatus};
use model::labels;
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
        Column::Text("read back from the kernel"),
    ];
    let body = html! {
        @if layers.is_empty() {
            p.none { "No layer was read back." }
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
    badge(class, sign, labels::layer_status(status))
}

pub(super) fn canaries(report: &Report) -> Option<Section> {
    let canaries = &report.evidence.canaries;
    if canaries.is_empty() {
        return None;
    }
    let columns = [
        Column::Word("status"),
        Column::Text("canary"),
        Column::Text("who was to refuse it"),
        Column::Text("expected"),
        Column::Text("observed"),
    ];
    let body = html! {
        p.aside {
            "Tried in the client's place by a child of its process, behind the same filter and rules, before it started."
        }
        (Budget::OURS.table(columns, canaries, |canary| [
            canary_status(canary.status),
            code(&canary.name),
            html! { (who(canary.mode, &canary.expected)) },
            code(&canary.expected),
            code(&canary.observed),
        ]))
    };
    let number = |status| canaries.iter().filter(|one| one.status == status).count();
    let told = [
        (CanaryStatus::Held, "held"),
        (CanaryStatus::NotHeld, "not held"),
        (CanaryStatus::NotApplicable, "refused outside as well"),
    ];
    let told = told.map(|(status, word)| (number(status), word));
    let told = told.iter().filter(|(number, _)| *number > 0);
    let told: Vec<String> = told
        .map(|(number, word)| format!("{number} {word}"))
        .collect();
    let note = told.join(", ");
    Some(Section::new("canaries", "Canaries", body).with_note(note))
}

fn who(mode: CanaryMode, expected: &str) -> &'static str {
    match (mode, expected) {
        (_, "ok") => "nobody: it must succeed",
        (CanaryMode::Answered, _) => "the supervisor",
        (CanaryMode::Continued, _) => "the kernel",
    }
}

fn canary_status(status: CanaryStatus) -> Markup {
    match status {
        CanaryStatus::Held => badge("passed", "✓", "held"),
        CanaryStatus::NotHeld => badge("failed", "✕", "not held"),
        CanaryStatus::NotApplicable => badge("skipped", "–", "refused outside as well"),
    }
}

/// What cannot be looked into may be of the client's making, and many.
pub(super) fn gaps(report: &Report) -> Option<Section> {
    let gaps = &report.evidence.gaps;
    if gaps.is_empty() {
        return None;
    }
    let columns = [Column::Word("part"), Column::Text("why")];
    let body = Budget::CLIENT.table(columns, gaps, |gap| {
        [html! { (labels::gap(gap.what)) }, code(&gap.detail)]
    });
    Some(
        Section::new("gaps", "Evidence that is incomplete", body).with_note(gaps.len().to_string()),
    )
}
