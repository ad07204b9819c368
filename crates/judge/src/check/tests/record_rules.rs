//! Rules of the records: beside the records of a turn, and for records of any other form.

use model::case::Count;
use model::case::expect::{
    FieldRule, JsonKind, Order, RecordRule, RecordRules, Records, ValueRule,
};
use model::evidence::fixture::{Fixture, case_b, gap};
use model::evidence::{GapKind, Line};
use model::finding::{Status, Verdict};
use serde_json::json;

use super::{finding, verdict_of, with_status};

super::deviations! {
    record_that_no_rule_selects_is_found: case_b, |run| {
        rules(run).retain(|rule| !rule.words().contains("status"));
    } => ["records/rules"];
    records_out_of_order_are_found: case_b, |run| {
        expect(run).order = Order::Listed;
        rules(run).reverse();
    } => ["records/rules"];
    record_that_is_there_too_often_is_found: case_b, |run| {
        rule(run, "stream_event").count = Count::ONCE;
    } => ["records/rules"];
    record_that_is_missing_is_found: case_b, |run| {
        let further = of_type("warning", Count::ONCE);
        rules(run).push(further);
    } => ["records/rules"];
    missing_record_is_undecided_without_all_records: case_b, |run| {
        let further = of_type("warning", Count::ONCE);
        rules(run).push(further);
        run.case.expect.records.as_mut().unwrap().stream = None;
        run.evidence.gaps.push(gap(GapKind::Records));
        run.case.expect.requests = None;
    } => errored ["records/json-lines", "records/rules", "secrets/credential-not-written"];
    field_with_another_value_is_found: case_b, |run| {
        let fields = &mut rule(run, "result").fields;
        fields.push(field("/is_error", ValueRule::Boolean(true)));
    } => ["records/rules"];
    field_of_another_type_is_found: case_b, |run| {
        let fields = &mut rule(run, "result").fields;
        fields.push(field("/is_error", ValueRule::Kinds(vec![JsonKind::String])));
    } => ["records/rules"];
    field_that_is_not_there_is_found: case_b, |run| {
        let fields = &mut rule(run, "result").fields;
        fields.push(field("/usage/cost", ValueRule::Kinds(vec![JsonKind::Number])));
    } => ["records/rules"];
    field_that_is_not_of_its_pattern_is_found: case_b, |run| {
        let fields = &mut rule(run, "result").fields;
        fields.push(field("/subtype", text("{digits}")));
    } => ["records/rules"];
    any_record_is_one_too_many_for_an_empty_list: case_b, |run| {
        expect(run).rules.clear();
    } => ["records/rules"];
}

fn text(pattern: &str) -> ValueRule {
    ValueRule::Text(pattern.parse().unwrap())
}

fn field(pointer: &str, value: ValueRule) -> FieldRule {
    FieldRule {
        pointer: pointer.to_owned(),
        value,
    }
}

fn of_type(kind: &str, count: Count) -> RecordRule {
    RecordRule {
        conditions: vec![field("/type", text(kind))],
        count,
        fields: Vec::new(),
        reason: "a part of the output".to_owned(),
    }
}

/// Rules that the records of the fixture meet.
fn expect(run: &mut Fixture) -> &mut RecordRules {
    let records = run.case.expect.records.as_mut().unwrap();
    records.rules.get_or_insert_with(|| {
        let mut status = of_type("system", Count::ONCE);
        status.conditions.push(field("/subtype", text("status")));
        let mut result = of_type("result", Count::ONCE);
        result.fields = vec![
            field("/subtype", text("success")),
            field("/is_error", ValueRule::Boolean(false)),
        ];
        RecordRules {
            order: Order::Any,
            rules: vec![
                status,
                of_type("system", Count::ONCE),
                of_type("stream_event", Count::ANY),
                of_type("assistant", Count::ONCE),
                result,
            ],
        }
    })
}

fn rules(run: &mut Fixture) -> &mut Vec<RecordRule> {
    // Rules without the second condition take the status record too.
    &mut expect(run).rules
}

fn rule<'r>(run: &'r mut Fixture, kind: &str) -> &'r mut RecordRule {
    let mut rules = rules(run).iter_mut();
    rules.find(|rule| rule.words().contains(kind)).unwrap()
}

#[test]
fn records_that_meet_their_rules_pass_beside_a_turn() {
    let mut run = case_b();
    expect(&mut run);
    assert_eq!(
        finding("records/rules", &run).message,
        "5 rules: each record is of one, as often as expected, with its fields."
    );
    assert_eq!(verdict_of(&run), Verdict::Passed);
}

#[test]
fn record_of_any_form_is_judged_by_its_first_rule() {
    let mut run = case_b();
    let rules = RecordRules {
        order: Order::Listed,
        rules: vec![
            RecordRule {
                fields: vec![field("/level", text("info"))],
                conditions: Vec::new(),
                ..of_type("", Count { from: 2, to: None })
            },
            of_type(
                "never",
                Count {
                    from: 0,
                    to: Some(0),
                },
            ),
        ],
    };
    run.case.expect.records = Some(Records {
        stream: None,
        rules: Some(rules),
    });
    run.evidence.records.truncate(2);
    for record in &mut run.evidence.records {
        record.line = Line::Record(json!({"level": "info", "type": "never"}));
    }
    assert_eq!(with_status(Status::Failed, &run), [""; 0]);
    run.evidence.records[1].line = Line::Record(json!({"level": "warn"}));
    let finding = finding("records/rules", &run);
    assert_eq!(finding.object.as_deref(), Some("record 2, /level"));
    assert_eq!(finding.expected.as_deref(), Some("\"info\""));
    assert_eq!(finding.found.as_deref(), Some("\"warn\""));
}

/// A record may hold the prompt.
#[test]
fn unexpected_text_is_shown_by_its_length_only() {
    let mut run = case_b();
    expect(&mut run).rules.clear();
    let found = finding("records/rules", &run).found.unwrap();
    assert!(!found.contains('{'), "{found}");
    let mut run = case_b();
    let number = ValueRule::Kinds(vec![JsonKind::Number]);
    rule(&mut run, "result")
        .fields
        .push(field("/subtype", number));
    let found = finding("records/rules", &run).found.unwrap();
    assert_eq!(found, "a string of 7 bytes");
}
