//! Tables of a case: what is not judged without them, and rules that the built-in cases do not have.

use model::case::Count;
use model::case::expect::{Auth, ExpectedExit, Order, ProgramRule, Records};
use model::case::{Expectations, Root};
use model::evidence::fixture::{Fixture, case_b, file, head_request, rule};
use model::evidence::{Exit, Process, RequestClass, Sighting};
use model::finding::{Status, Verdict};
use model::profile::ExpectedFile;

use super::{finding, verdict_of, with_status};

super::deviations! {
    a_required_header_that_is_missing_is_found: case_b, |run| {
        run.message().headers.required = vec!["x-trace".to_owned()];
    } => ["headers/rules"];
    a_forbidden_header_that_is_there_is_found: case_b, |run| {
        run.message().headers.forbidden = vec!["x-api-key".to_owned()];
    } => ["headers/rules"];
    a_file_that_is_there_too_often_is_found: case_b, |run| {
        expect_files(run, Count { from: 0, to: Some(1) }, None);
        leave(run, &["1", "2"]);
    } => ["files/rules"];
    a_file_that_is_not_there_is_found: case_b, |run| {
        expect_files(run, Count::ONCE, None);
    } => ["files/rules"];
    a_file_with_another_mode_than_its_rule_is_found: case_b, |run| {
        expect_files(run, Count::ANY, Some(0o640));
        leave(run, &["1"]);
    } => ["files/rules"];
    a_program_that_no_rule_names_is_found: case_b, |run| {
        run.case.expect.programs = Some(Vec::new());
        start(run, "/usr/bin/git");
    } => ["process/programs"];
    another_exit_code_than_expected_is_found: case_b, |run| {
        run.case.expect.exit = Some(ExpectedExit::Code(1));
    } => ["process/exit-zero"];
    a_signal_is_no_exit_code: case_b, |run| {
        run.case.expect.exit = Some(ExpectedExit::AnyCode);
        run.evidence.exit = Exit::Signal(9);
    } => ["process/exit-zero"];
    credential_in_another_file_than_allowed_is_found: case_b, |run| {
        hold_credential(run, true);
        run.evidence.sightings.push(Sighting::in_file(Root::Home, "session-1", "hex".to_owned()));
    } => ["secrets/credential-not-written"];
    credential_in_a_file_of_a_plain_rule_is_found: case_b, |run| {
        hold_credential(run, false);
    } => ["secrets/credential-not-written"];
    credential_in_the_name_of_an_allowed_file_is_found: case_b, |run| {
        hold_credential(run, true);
        run.evidence.sightings.push(Sighting {
            place: "name of the file session-1".to_owned(),
            form: "hex".to_owned(),
        });
    } => ["secrets/credential-not-written"];
    requests_out_of_order_are_found: case_a, |run| {
        run.rules().rules.reverse();
    } => ["requests/sequence"];
}

/// Expects files `session-N` in the temporary directory.
fn expect_files(run: &mut Fixture, count: Count, mode: Option<u32>) {
    let files = run.case.expect.files.as_mut().unwrap();
    files.expected.push(ExpectedFile {
        root: Root::Tmp,
        path: "session-{digits}".parse().unwrap(),
        mode,
        count,
        may_hold_credential: false,
        reason: "one for each session".to_owned(),
    });
}

fn leave(run: &mut Fixture, numbers: &[&str]) {
    let files = numbers
        .iter()
        .map(|number| file(Root::Tmp, &format!("session-{number}")));
    run.evidence.files.extend(files);
}

/// Leaves a file with the credential in it, in two forms.
fn hold_credential(run: &mut Fixture, is_allowed: bool) {
    expect_files(run, Count::ANY, None);
    leave(run, &["1"]);
    let files = run.case.expect.files.as_mut().unwrap();
    files.expected.last_mut().unwrap().may_hold_credential = is_allowed;
    for form in ["base64", "hex"] {
        let sighting = Sighting::in_file(Root::Tmp, "session-1", form.to_owned());
        run.evidence.sightings.push(sighting);
    }
}

#[test]
fn credential_in_an_allowed_file_is_counted_and_named() {
    let mut run = case_b();
    hold_credential(&mut run, true);
    assert_eq!(with_status(Status::Failed, &run), [""; 0]);
    assert_eq!(
        finding("secrets/credential-not-written", &run).message,
        "The credential is only in its own header and in 1 file that may hold it: tmp: session-1."
    );
}

fn start(run: &mut Fixture, program: &str) {
    let own = run.evidence.processes[0].clone();
    run.evidence.processes.push(Process {
        program: program.to_owned(),
        ..own
    });
}

/// Ids of the checks that are made without any table.
const ALWAYS: [&str; 4] = [
    "secrets/credential-not-written",
    "outbound/denied",
    "outbound/no-attempts",
    "process/no-survivors",
];

#[test]
fn without_tables_only_what_is_judged_of_any_program_is_judged() {
    let mut run = case_b();
    run.case.expect = Expectations::default();
    assert_eq!(with_status(Status::Passed, &run), ALWAYS);
    assert_eq!(with_status(Status::Failed, &run), [""; 0]);
    assert_eq!(with_status(Status::Errored, &run), [""; 0]);
    assert_eq!(verdict_of(&run), Verdict::Passed);
}

#[test]
fn each_table_that_is_absent_is_named_by_its_checks() {
    type Absent = (fn(&mut Expectations), &'static [&'static str], &'static str);
    let absent: [Absent; 4] = [
        (
            |expect| expect.requests = None,
            &["requests/", "headers/", "body/"],
            "the case has no [expect.requests]",
        ),
        (
            |expect| expect.records = None,
            &["records/"],
            "the case has no [expect.records]",
        ),
        (
            |expect| expect.files = None,
            &["files/"],
            "the case has no [expect.files]",
        ),
        (
            |expect| expect.exit = None,
            &["process/exit-zero"],
            "the case has no [expect.exit]",
        ),
    ];
    for (remove, kinds, because) in absent {
        let mut run = case_b();
        remove(&mut run.case.expect);
        let ids = model::finding::ids();
        for id in ids.filter(|id| kinds.iter().any(|kind| id.starts_with(kind))) {
            let finding = finding(id, &run);
            assert_eq!(finding.status, Status::Skipped, "{id}");
            assert_eq!(finding.because.as_deref(), Some(because), "{id}");
        }
        assert_eq!(verdict_of(&run), Verdict::Passed);
    }
}

#[test]
fn rules_that_hold_pass() {
    let mut run = case_b();
    run.message().headers.required = vec!["x-api-key".to_owned()];
    run.message().headers.forbidden = vec!["x-trace".to_owned()];
    let count = Count {
        from: 1,
        to: Some(2),
    };
    expect_files(&mut run, count, Some(0o600));
    leave(&mut run, &["1", "2"]);
    run.case.expect.programs = Some(vec![ProgramRule {
        program: "/usr/bin/python3.{digits}".parse().unwrap(),
        reason: "runs a tool".to_owned(),
    }]);
    start(&mut run, "/usr/bin/python3.11");
    assert_eq!(
        with_status(Status::Skipped, &run),
        [
            "requests/sequence",
            "headers/preflight-unauthenticated",
            "records/rules"
        ]
    );
    assert_eq!(verdict_of(&run), Verdict::Passed);
}

#[test]
fn json_lines_are_judged_line_by_line_alone() {
    let mut run = case_b();
    run.case.expect.records = Some(Records::default());
    run.evidence.records.remove(0);
    let records: Vec<_> = with_status(Status::Passed, &run)
        .into_iter()
        .filter(|id| id.starts_with("records/"))
        .collect();
    assert_eq!(records, ["records/json-lines"]);
    assert_eq!(verdict_of(&run), Verdict::Passed);
}

/// Rules of another client: any order, several requests, the credential in another header.
#[test]
fn requests_of_any_order_and_number_are_judged_by_their_rules() {
    let mut run = case_b();
    let mut preflight = rule("probe", "HEAD", "/");
    (preflight.protocol, preflight.count) = (None, Count::ANY);
    let mut turn = rule("turn", "POST", "/v1/messages");
    turn.auth = Auth::Header("x-api-key".to_owned());
    let rules = run.rules();
    (rules.order, rules.rules) = (Order::Any, vec![preflight, turn]);
    for _ in 0..3 {
        run.evidence.requests.push(head_request());
    }
    assert_eq!(with_status(Status::Failed, &run), [""; 0]);
    run.rules().rules[0].count.to = Some(2);
    assert_eq!(with_status(Status::Failed, &run), ["requests/sequence"]);
    run.rules().rules.remove(0);
    assert_eq!(
        with_status(Status::Failed, &run),
        ["requests/first-and-only"]
    );
}

#[test]
fn repetitions_within_the_count_of_their_rule_pass() {
    let mut run = case_b();
    let mut again = run.evidence.requests[0].clone();
    again.class = RequestClass::Retry;
    run.evidence.requests.push(again);
    let mut turn = rule("turn", "POST", "/v1/messages");
    (turn.count.to, turn.auth) = (Some(2), Auth::Header("x-api-key".to_owned()));
    run.rules().rules = vec![turn];
    assert_eq!(with_status(Status::Failed, &run), [""; 0]);
    run.rules().rules[0].count.to = Some(1);
    assert_eq!(
        with_status(Status::Failed, &run),
        ["requests/first-and-only", "requests/post-count"]
    );
}

/// A provider whose protocol the stub does not speak: the path is that of the fixture, the rule has no protocol.
#[test]
fn rules_without_a_protocol_judge_header_and_body_too() {
    let mut run = case_b();
    let mut turn = rule("turn", "POST", "/v1/messages");
    turn.protocol = None;
    turn.auth = Auth::Header("x-api-key".to_owned());
    turn.user_agent = Some("agent-cli/{version} (external, sdk-cli)".to_owned());
    turn.body.fields.clone_from(&run.message().body.fields);
    run.rules().rules = vec![turn];
    for id in [
        "headers/api-key-present",
        "headers/user-agent",
        "body/fields",
    ] {
        assert_eq!(finding(id, &run).status, Status::Passed, "{id}");
    }
    let turn = &mut run.rules().rules[0];
    turn.auth = Auth::Header("x-other-key".to_owned());
    turn.user_agent = Some("other/{version}".to_owned());
    turn.body.fields = Some(Vec::new());
    assert_eq!(
        with_status(Status::Failed, &run),
        [
            "headers/api-key-present",
            "headers/user-agent",
            "body/fields"
        ]
    );
}
