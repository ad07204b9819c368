//! Section on the lock file: drift with the lines that would accept it, or the changes made to the file.

use maud::{Markup, html};
use model::difference::{Accept, Difference};
use model::report::{Baseline, BaselineOutcome, Report};

use super::budget::{Budget, missing};
use super::frame::Section;
use super::text::code;
use crate::html::text::ClientText;
use crate::phrases;

pub(super) fn section(report: &Report) -> Option<Section> {
    let baseline = report.baseline.as_ref()?;
    let differences: Vec<&Difference> = baseline.differences.iter().collect();
    let (shown, cut) = Budget::CLIENT.entries(&differences, |found| article(baseline, found));
    let body = html! {
        p { (code(&baseline.file)) ": " (phrases::lock_file(baseline)) "." }
        (shown)
        (missing(cut, differences.len()))
    };
    let number = differences.len().to_string();
    let title = match baseline.outcome {
        BaselineOutcome::Compared => "Drift from the lock file",
        BaselineOutcome::Updated | BaselineOutcome::Made => "What changed in the lock file",
    };
    Some(Section::new("baseline", title, body).with_note(number))
}

fn article(baseline: &Baseline, found: &Difference) -> Markup {
    html! {
        article.finding.drift {
            h3 { (found.fact.area.word()) " " span.note { (found.change.word()) } }
            dl {
                dt { "Fact" } dd { (code(&found.fact.key)) }
                @for (name, value) in [("Before", found.change.before()), ("Now", found.change.now())] {
                    @if let Some(value) = value { dt { (name) } dd { (code(value)) } }
                }
                @if let Some(Accept { verb, table, line }) = baseline.to_accept(found) {
                    dt { "To accept" } dd { (ClientText(&verb)) " in " (code(&table)) }
                    dt { "Line" } dd { (code(&line)) }
                }
            }
        }
    }
}
