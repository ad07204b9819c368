//! Changes for each kind of finding, and findings without one.

use std::time::Duration;

use model::case::change::Change;
use model::case::expect::{ExpectedExit, FieldRule, Order, RecordRule, RecordRules, ValueRule};
use model::case::{Count, Expectations, Root};
use model::evidence::fixture::{
    Fixture, attempt, case_a, case_b, connect, file, gap, head_request, question,
};
use model::evidence::{Exit, FileKind, GapKind, Sighting, Survivor};
use model::journal::Head;

use super::Judged;

/// Changes for the finding of the check with this id.
fn changes(run: &Fixture, id: &str) -> Vec<Change> {
    let complete = |own: &Expectations| own.of_client(&run.profile);
    let judged = Judged {
        project: None,
        own: &run.case.expect,
        complete: &complete,
        evidence: &run.evidence,
        reason: "seen, not reviewed",
    };
    judged.changes(id)
}

/// Copy of the run with a change of its evidence.
fn changed(mut run: Fixture, change: fn(&mut Fixture)) -> Fixture {
    change(&mut run);
    run
}

fn leave(run: &mut Fixture, path: &str) {
    run.evidence.files.push(file(Root::Tmp, path));
}

#[test]
fn unexpected_files_get_rules() {
    let run = changed(case_b(), |run| {
        leave(run, "a");
        leave(run, "b/0b7f3a52-9d1c-4e7a-8a66-2f0d1c9b7e11");
    });
    let changes = changes(&run, "files/nothing-else");
    let [Change::AddFile(one), Change::AddFile(other)] = changes.as_slice() else {
        panic!("{changes:?}");
    };
    let paths = [one, other].map(|rule| rule.path.to_string());
    assert_eq!(paths, ["a", "b/{uuid}"]);
}

#[test]
fn request_that_comes_too_often_widens_its_rule() {
    let run = changed(case_b(), |run| {
        let again = run.evidence.requests[0].clone();
        run.evidence.requests.push(again);
    });
    for id in ["requests/first-and-only", "requests/post-count"] {
        let changes = changes(&run, id);
        let [Change::ReplaceRequest(1, rule)] = changes.as_slice() else {
            panic!("{changes:?}");
        };
        assert_eq!((rule.count.from, rule.count.to), (1, Some(2)));
        assert_eq!(rule.reason, "seen, not reviewed");
    }
}

#[test]
fn request_before_others_gets_a_rule_before_theirs() {
    let run = changed(case_a(), |run| {
        run.rules().rules.remove(0);
    });
    let changes = changes(&run, "requests/first-and-only");
    let [Change::AddRequests(0, rules)] = changes.as_slice() else {
        panic!("{changes:?}");
    };
    assert_eq!(rules[0].words(), "HEAD /");
    assert_eq!(rules[0].name, "head-1");
}

#[test]
fn requests_on_both_sides_of_another_have_no_place() {
    let run = changed(case_a(), |run| {
        run.rules().rules.remove(0);
        run.evidence.requests.push(head_request());
    });
    assert_eq!(changes(&run, "requests/first-and-only"), []);
    let run = changed(run, |run| run.rules().order = Order::Any);
    let changes = changes(&run, "requests/first-and-only");
    assert!(
        matches!(changes.as_slice(), [Change::AddRequests(1, _)]),
        "{changes:?}"
    );
}

#[test]
fn rule_is_widened_to_what_its_requests_have() {
    type Other = (&'static str, fn(&mut Fixture));
    let others: [Other; 5] = [
        ("requests/query", |run| {
            let Head::Request { query, .. } = &mut run.evidence.requests[0].head else {
                panic!("no request");
            };
            *query = Some("debug=1".to_owned());
        }),
        ("headers/user-agent", |run| {
            run.message().user_agent = Some("other/{version}".to_owned());
        }),
        ("headers/rules", |run| {
            run.message().headers.required = vec!["x-trace".to_owned(), "accept".to_owned()];
            run.message().headers.forbidden = vec!["x-api-key".to_owned()];
        }),
        ("headers/nothing-else", |run| {
            run.message().profile = None;
            run.message().headers.allowed = Some(vec!["accept".to_owned()]);
        }),
        ("body/fields", |run| {
            run.message().body.fields.as_mut().unwrap().pop();
        }),
    ];
    for (id, change) in others {
        let changes = changes(&changed(case_b(), change), id);
        assert!(
            matches!(changes.as_slice(), [Change::ReplaceRequest(1, _)]),
            "{id}: {changes:?}"
        );
    }
}

#[test]
fn attempts_and_names_get_rules() {
    let run = changed(case_b(), |run| {
        run.evidence
            .attempts
            .push(connect("inet", "192.0.2.1", Some(443)));
        run.evidence.attempts.push(attempt("listen"));
        run.evidence.names.push(question("telemetry.example.com"));
    });
    let found = changes(&run, "outbound/no-attempts");
    let rules = found.iter().map(|change| {
        let Change::AddAttempt(rule) = change else {
            panic!("{change:?}")
        };
        rule.destination.to_string()
    });
    let expected = ["inet:192.0.2.1:443", "listen", "name:telemetry.example.com"];
    assert_eq!(rules.collect::<Vec<_>>(), expected);
}

#[test]
fn attempt_at_a_sensitive_place_gets_no_rule() {
    let run = changed(case_b(), |run| {
        let metadata = connect("inet", "169.254.169.254", Some(80));
        run.evidence.attempts.push(metadata);
    });
    assert_eq!(changes(&run, "outbound/no-attempts"), []);
}

#[test]
fn program_gets_a_rule() {
    let run = changed(case_b(), |run| {
        run.case.expect.programs = Some(Vec::new());
        let mut git = run.evidence.processes[0].clone();
        git.program = "/usr/bin/git".to_owned();
        run.evidence.processes.push(git);
    });
    let found = changes(&run, "process/programs");
    let [Change::AddProgram(rule)] = found.as_slice() else {
        panic!("{found:?}")
    };
    assert_eq!(rule.program.to_string(), "/usr/bin/git");
}

#[test]
fn exit_code_replaces_the_expected_one() {
    let run = changed(case_b(), |run| {
        run.case.expect.exit = Some(ExpectedExit::Code(4))
    });
    let exit = Change::ReplaceExit(ExpectedExit::Code(0));
    assert_eq!(changes(&run, "process/exit-zero"), [exit]);
}

/// A run of a case with one rule for the result record, which has this field.
fn with_field(pointer: &str, value: ValueRule) -> Fixture {
    let field = |pointer: &str, value| FieldRule {
        pointer: pointer.to_owned(),
        value,
    };
    let result = RecordRule {
        conditions: vec![field("/type", ValueRule::Text("result".parse().unwrap()))],
        count: Count::ONCE,
        fields: vec![field(pointer, value)],
        reason: "the end".to_owned(),
    };
    let mut run = case_b();
    run.case.expect.records.as_mut().unwrap().rules = Some(RecordRules {
        order: Order::Listed,
        rules: vec![result],
    });
    run
}

#[test]
fn records_get_rules_and_wider_fields() {
    let run = with_field("/is_error", ValueRule::Boolean(true));
    let changes = changes(&run, "records/rules");
    let [
        Change::ReplaceRecord(0, result),
        Change::AddRecords(0, others),
    ] = changes.as_slice()
    else {
        panic!("{changes:?}");
    };
    assert_eq!(result.fields[0].value, ValueRule::Boolean(false));
    assert!(others.len() > 5, "{others:?}");
}

#[test]
fn expectation_is_never_removed() {
    let missing = with_field("/ok", ValueRule::Boolean(true));
    assert_eq!(changes(&missing, "records/rules"), []);
    let types = changed(case_b(), |run| {
        run.message().body.fields.as_mut().unwrap().pop();
    });
    let changes = changes(&types, "body/fields");
    let [Change::ReplaceRequest(1, rule)] = changes.as_slice() else {
        panic!("{changes:?}");
    };
    let mut own = types.case.expect.clone();
    let own = own.requests.as_mut().unwrap().rules.remove(1).body.fields;
    let fields = rule.body.fields.as_ref().unwrap();
    assert!(own.unwrap().iter().all(|field| fields.contains(field)));
}

#[test]
fn findings_that_no_rule_may_accept_have_no_change() {
    type Refused = (&'static str, fn(&mut Fixture));
    let refused: [Refused; 9] = [
        ("secrets/credential-not-written", |run| sight(run)),
        ("files/nothing-else", |run| {
            sight(run);
            leave(run, "key");
        }),
        ("process/no-survivors", |run| {
            run.evidence.survivors.push(Survivor {
                pid: 7,
                program: "daemon".to_owned(),
            });
        }),
        ("files/nothing-else", |run| {
            run.evidence.gaps.push(gap(GapKind::Files));
            leave(run, "a");
        }),
        ("files/nothing-else", |run| {
            run.evidence.exit = Exit::Timeout(Duration::from_secs(1));
            leave(run, "a");
        }),
        ("files/nothing-else", |run| {
            leave(run, "a");
            leave(run, "link");
            run.evidence.files.last_mut().unwrap().kind = FileKind::Symlink;
        }),
        ("files/nothing-else", |run| {
            (0..51).for_each(|number| leave(run, &format!("a{number}")));
        }),
        ("process/exit-zero", |run| {
            run.evidence.exit = Exit::Signal(9)
        }),
        ("outbound/no-attempts", |run| {
            run.evidence.unlisted.questions = 1;
            run.evidence.names.push(question("telemetry.example.com"));
        }),
    ];
    for (id, change) in refused {
        assert_eq!(changes(&changed(case_b(), change), id), [], "{id}");
    }
}

fn sight(run: &mut Fixture) {
    run.evidence.sightings.push(Sighting {
        place: "file key".to_owned(),
        form: "as written".to_owned(),
    });
}
