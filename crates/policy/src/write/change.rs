//! Changes of a case as text, each below a comment on its place.

use model::case::change::Change;
use model::case::expect::{Order, RecordRules};
use model::case::{Case, Expectations, Source};
use model::profile::ExpectedFile;

use super::{Text, attempt, conditions, exit, file, program, quoted, record, request};
use crate::document::Document;

/// Start of a case that a change is read with.
const CASE: &str =
    "schema = \"runner.case/1\"\nname = \"changed\"\n\n[client]\nprogram = \"/bin/true\"\n";

/// Returns the changes of these expectations as TOML. Returns `None` if the text does not parse to the same rules.
pub fn changes(own: &Expectations, changes: &[Change]) -> Option<String> {
    let mut text = Text::default();
    let mut place = String::new();
    for change in changes {
        let next = self::place(own, change);
        if !place.is_empty() {
            text.blank();
        }
        if next != place {
            text.comment(&next);
            place = next;
        }
        let mut tables = Text::default();
        rules(&mut tables, change);
        text.0.push_str(tables.0.trim_start());
    }
    is_read_back(changes, &text.0).then_some(text.0)
}

/// Describes the place of the rules.
fn place(own: &Expectations, change: &Change) -> String {
    let request = |place: &usize| own.requests.as_ref()?.rules.get(*place);
    let record = |place: &usize| own.records.as_ref()?.rules.as_ref()?.rules.get(*place);
    let file = |place: &usize| own.files.as_ref()?.expected.get(*place);
    let (verb, rule) = match change {
        Change::AddRequests(place, _) => {
            ("Put before", request(place).map(|rule| quoted(&rule.name)))
        }
        Change::ReplaceRequest(place, _) => (
            "Put in place of",
            request(place).map(|rule| quoted(&rule.name)),
        ),
        Change::AddRecords(place, _) => ("Put before", record(place).map(of_records)),
        Change::ReplaceRecord(place, _) => ("Put in place of", record(place).map(of_records)),
        Change::ReplaceFile(place, _) => ("Put in place of", file(place).map(of_files)),
        Change::ReplaceExit(_) => return "Put in place of the table [expect.exit]:".to_owned(),
        Change::AddFile(_) | Change::AddProgram(_) | Change::AddAttempt(_) => ("", None),
    };
    match rule {
        Some(rule) => format!("{verb} the rule {rule}:"),
        None => "Add at the end of the case:".to_owned(),
    }
}

fn of_records(rule: &model::case::expect::RecordRule) -> String {
    conditions(rule).map_or_else(
        || "without `where`".to_owned(),
        |text| format!("with {text}"),
    )
}

fn of_files(rule: &ExpectedFile) -> String {
    format!(
        "for {} in {}",
        quoted(&rule.path.to_string()),
        rule.root.word()
    )
}

fn rules(text: &mut Text, change: &Change) {
    match change {
        Change::AddRequests(_, rules) => rules.iter().for_each(|rule| request(text, rule)),
        Change::ReplaceRequest(_, rule) => request(text, rule),
        Change::AddRecords(_, rules) => rules.iter().for_each(|rule| record(text, rule)),
        Change::ReplaceRecord(_, rule) => record(text, rule),
        Change::AddFile(rule) | Change::ReplaceFile(_, rule) => file(text, rule),
        Change::AddProgram(rule) => program(text, rule),
        Change::AddAttempt(rule) => attempt(text, rule),
        Change::ReplaceExit(code) => exit(text, *code),
    }
}

/// Checks that the text parses to the rules: a name of the client can be one that no rule can have.
fn is_read_back(changes: &[Change], text: &str) -> bool {
    let is_of_records =
        |change: &Change| matches!(change, Change::AddRecords(..) | Change::ReplaceRecord(..));
    let mut head = CASE.to_owned();
    for table in [
        "[expect.requests]\norder = \"any\"",
        "[expect.files]",
        "[expect.programs]",
    ] {
        head.push_str(&format!("\n{table}\n"));
    }
    head.push_str("\n[expect.records]\nformat = \"json-lines\"\n");
    let Some(mut expected) = read(&head).map(|case| case.expect) else {
        return false;
    };
    if changes.iter().any(is_of_records) {
        head.push_str("order = \"any\"\n");
        if let Some(records) = &mut expected.records {
            records.rules = Some(RecordRules {
                order: Order::Any,
                rules: Vec::new(),
            });
        }
    }
    for change in changes {
        change.addition().apply(&mut expected);
    }
    read(&format!("{head}\n{text}")).is_some_and(|case| case.expect == expected)
}

fn read(text: &str) -> Option<Case> {
    let bytes = text.as_bytes().to_vec();
    let document = Document::from_bytes("change".to_owned(), Source::BuiltIn, bytes);
    document.ok()?.case().ok()
}
