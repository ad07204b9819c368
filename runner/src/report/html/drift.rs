//! What the lock file has otherwise, each with the line that would accept it.

use maud::html;

use crate::baseline::lock::Accept;
use crate::behaviour::Difference;
use crate::report::{BaselineOutcome, Report, words};

use super::frame::Section;
use super::room::{Column, Room};
use super::text::{Client, code, code_if};

pub(super) fn section(report: &Report, room: &Room) -> Option<Section> {
    let baseline = report.baseline.as_ref()?;
    let differences: Vec<&Difference> = baseline.differences.iter().collect();
    let columns = [
        Column::Word("area"),
        Column::Text("fact"),
        Column::Text("before"),
        Column::Text("now"),
        Column::Text(match baseline.outcome {
            BaselineOutcome::Compared => "what would accept it",
            BaselineOutcome::Updated | BaselineOutcome::Made => "line",
        }),
    ];
    let body = html! {
        p { (code(&baseline.file)) ": " (words::lock_file(baseline)) "." }
        @if !differences.is_empty() {
            (room.table(columns, &differences, |found| {
                let Accept { verb, table, line } = Accept::of(found);
                [
                    html! { (found.fact.area.word()) },
                    code(&found.fact.key),
                    code_if(found.change.before()),
                    code_if(found.change.now()),
                    html! { (Client(verb)) " in " (code(&table)) " " (code(&line)) },
                ]
            }))
        }
    };
    let number = differences.len().to_string();
    Some(Section::new("baseline", "Drift from the lock file", body).with_note(number))
}
