//! Lost evidence, and leftovers of a client that the runner ended, with the deviations that stay certain.

use std::time::Duration;

use model::evidence::fixture::{add_header, case_a, case_b, connect, file, gap, record};
use model::evidence::{Exit, GapKind, Line, RequestClass, Root, Sighting, Survivor, UNFINISHED};
use model::finding::{Status, Verdict};
use model::journal::{End, Head};
use serde_json::json;

use super::requests::set_query;
use super::{Fixture, finding, verdict_of, with_status};

/// Deviations of each kind, with a gap in the evidence of their checks.
#[test]
fn seen_deviation_fails_with_a_gap() {
    type Deviate = fn(&mut Fixture);
    let deviations: [(&str, GapKind, Deviate); 14] = [
        ("requests/first-and-only", GapKind::Requests, |run| {
            let again = run.evidence.requests[0].clone();
            run.evidence.requests.push(again);
        }),
        ("requests/post-count", GapKind::Requests, |run| {
            let again = run.evidence.requests[0].clone();
            run.evidence.requests.push(again);
        }),
        ("requests/connections", GapKind::Requests, |run| {
            run.evidence.connections[0].unaccounted = 3;
        }),
        ("requests/query", GapKind::Requests, |run| {
            set_query(&mut run.evidence.requests[0].head, "x=1");
        }),
        ("headers/authorization-absent", GapKind::Requests, |run| {
            let post = &mut run.evidence.requests[0];
            add_header(post, "authorization", "Bearer x");
        }),
        ("records/json-lines", GapKind::Records, |run| {
            run.evidence.records[0].line = Line::NotJson {
                reason: "JSON, but no object".to_owned(),
            };
        }),
        ("records/sequence", GapKind::Records, |run| {
            run.evidence.records.swap(0, 1);
        }),
        ("records/tools-empty", GapKind::Records, |run| {
            record(&mut run.evidence, "system/init")["tools"] = json!(["Bash"]);
        }),
        ("files/modes", GapKind::Files, |run| {
            run.evidence.files[1].mode = 0o644;
        }),
        ("files/nothing-else", GapKind::Files, |run| {
            run.evidence.files.push(file(Root::Home, "more"));
        }),
        ("secrets/credential-not-written", GapKind::Files, |run| {
            run.evidence.sightings.push(Sighting {
                place: "file more".to_owned(),
                form: "base64".to_owned(),
            });
        }),
        ("outbound/no-attempts", GapKind::Attempts, |run| {
            let attempt = connect("inet", "192.0.2.1", Some(443));
            run.evidence.attempts.push(attempt);
        }),
        ("process/exit-zero", GapKind::Processes, |run| {
            run.evidence.exit = Exit::Code(1);
        }),
        ("process/no-survivors", GapKind::Processes, |run| {
            run.evidence.survivors.push(Survivor {
                pid: 7,
                program: "sleep".to_owned(),
            });
        }),
    ];
    for (id, kind, deviate) in deviations {
        let mut fixture = case_b();
        deviate(&mut fixture);
        fixture.evidence.gaps.push(gap(kind));
        assert_eq!(finding(id, &fixture).status, Status::Failed, "{id}");
        assert_eq!(verdict_of(&fixture), Verdict::Failed, "{id}");
    }
}

#[test]
fn lost_request_head_with_a_gap_is_errored() {
    for mut fixture in [case_a(), case_b()] {
        let requests = &mut fixture.evidence.requests;
        let post = requests.last_mut().expect("a request");
        (post.head, post.body) = (Head::Incomplete, None);
        post.class = RequestClass::Unknown;
        let connections = &mut fixture.evidence.connections;
        connections.last_mut().expect("a connection").end = End::Open;
        fixture.evidence.gaps.push(gap(GapKind::Requests));
        assert_eq!(with_status(Status::Failed, &fixture), [""; 0]);
        assert_eq!(verdict_of(&fixture), Verdict::Errored);
    }
}

#[test]
fn open_connection_with_a_gap_is_errored() {
    let mut fixture = case_b();
    fixture.evidence.connections[0].end = End::Open;
    assert_eq!(
        with_status(Status::Failed, &fixture),
        ["requests/connections"]
    );
    fixture.evidence.gaps.push(gap(GapKind::Requests));
    assert_eq!(with_status(Status::Failed, &fixture), [""; 0]);
}

/// Leftovers of a client that the runner ended are no deviations; its actions are.
#[test]
fn remains_of_an_ended_client_are_skipped() {
    let ends = [
        (
            Exit::Timeout(Duration::from_secs(2)),
            "time-out after 2.0 s",
        ),
        (Exit::OutputLimit, "output limit"),
        (Exit::RequestLimit, "request limit"),
        (Exit::Interrupted, "interrupted"),
    ];
    for (exit, why) in ends {
        let mut fixture = case_b();
        let evidence = &mut fixture.evidence;
        evidence.exit = exit;
        evidence.files.push(file(Root::Home, "lock"));
        evidence.survivors.push(Survivor {
            pid: 7,
            program: "child".to_owned(),
        });
        evidence.records[2].line = Line::NotJson {
            reason: UNFINISHED.to_owned(),
        };
        for (id, found) in [
            ("files/nothing-else", "home: lock"),
            ("process/no-survivors", "child (pid 7)"),
            ("records/json-lines", "the last line has no line feed"),
        ] {
            let finding = finding(id, &fixture);
            assert_eq!(finding.status, Status::Skipped, "{id}");
            assert_eq!(finding.found.as_deref(), Some(found));
            let because = format!("ended by the runner ({why})");
            assert_eq!(finding.because, Some(because));
        }
        let is_limit = exit != Exit::Interrupted;
        let verdict = if is_limit {
            Verdict::Failed
        } else {
            Verdict::Errored
        };
        assert_eq!(verdict_of(&fixture), verdict);

        let again = fixture.evidence.requests[0].clone();
        fixture.evidence.requests.push(again);
        let second = finding("requests/post-count", &fixture);
        assert_eq!(second.status, Status::Failed);
        assert_eq!(verdict_of(&fixture), Verdict::Failed);
    }
}

/// Missing evidence of a client that the runner ended fails with that end as its reason; its actions have none.
#[test]
fn missing_evidence_of_an_ended_client_has_its_end() {
    let because = |exit: Exit, id: &str| {
        let mut fixture = case_b();
        let evidence = &mut fixture.evidence;
        evidence.exit = exit;
        evidence.files.clear();
        evidence.requests.clear();
        evidence.connections.clear();
        evidence.records.truncate(1);
        let finding = finding(id, &fixture);
        assert_eq!(finding.status, Status::Failed, "{id}");
        assert_eq!(verdict_of(&fixture), Verdict::Failed);
        finding.because
    };
    let end = "ended by the runner (time-out after 2.0 s)".to_owned();
    for id in [
        "requests/first-and-only",
        "requests/post-count",
        "records/sequence",
        "records/result-success",
        "files/state-file",
        "files/backup",
    ] {
        let timeout = Exit::Timeout(Duration::from_secs(2));
        assert_eq!(because(timeout, id).as_ref(), Some(&end), "{id}");
        assert_eq!(because(Exit::Code(0), id), None, "{id}");
    }
    let timeout = Exit::Timeout(Duration::from_secs(2));
    assert_eq!(because(timeout, "process/exit-zero"), None);

    let mut fixture = case_b();
    fixture.evidence.exit = timeout;
    let again = fixture.evidence.requests[0].clone();
    fixture.evidence.requests.push(again);
    assert_eq!(finding("requests/post-count", &fixture).because, None);
}

#[test]
fn remains_of_an_ended_client_with_a_gap_are_errored() {
    let mut fixture = case_b();
    let evidence = &mut fixture.evidence;
    evidence.exit = Exit::OutputLimit;
    let lock = file(Root::Home, "lock");
    evidence.files.push(lock);
    evidence.gaps.push(gap(GapKind::Files));
    assert_eq!(
        finding("files/nothing-else", &fixture).status,
        Status::Errored
    );
}
