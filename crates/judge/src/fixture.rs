//! Reports of fixed runs, for tests of the crates that compare or render reports.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "compiled for tests only"
)]

use std::path::PathBuf;
use std::time::Duration;

use model::case::Count;
use model::case::{Source, Tier};
use model::difference::{Area, Change, Difference, Fact};
use model::evidence::fixture::{
    Fixture, add_header, attempt, case_b, connect, digest, file, gap, head_request, insert_record,
    question, record,
};
use model::evidence::{
    Advice, Arg, Attempt, AttemptKind, CanaryStatus, Connection, Evidence, Exit, FileKind, GapKind,
    LayerStatus, Lookup, LookupKind, Outcome, Reason, RequestClass, Root, Sighting, Survivor,
};
use model::expected::Rules;
use model::finding::{AskedBy, BASELINE, Finding, Status, Verdict};
use model::journal::{End, Head};
use model::profile::{Destination, ExpectedAttempt, ExpectedFile};
use model::report::{
    Baseline, BaselineOutcome, Client, Content, Host, LockPlace, Policy, Purpose, Report, Runner,
    Setting, Stdin, WiderRule,
};
use serde_json::json;

use crate::check::{check, kernel_refuses, unsound, verdict};
use crate::lock::drift;

mod tried;

use tried::tries_everything;

pub use tried::{missed, started};

/// Hostile client text: terminal escapes, bidirectional controls, CI commands.
pub const HOSTILE: &str = "\u{1b}[2J\u{202e}evil\u{200b}\r\n::error::owned\n##vso[task.complete result=Succeeded;]\u{9b}1m";

/// Report of a judged run.
pub fn report(mut run: Fixture) -> Report {
    let checks = check(&run.expect(), &run.evidence);
    let verdict = verdict(&checks, &run.evidence);
    let expect = run.expect();
    let rules = Rules {
        attempts: &expect.attempts,
        files: expect.files.as_ref(),
        side_requests: &expect.side_requests,
    };
    rules.explain(&mut run.evidence);
    let not_judged = expect.not_judged().into_iter().map(str::to_owned).collect();
    let not_reviewed = expect.not_reviewed() as u64;
    let word = |word: &str| Arg::Word(word.to_owned());
    Report {
        runner: Runner {
            version: "0.1.0".to_owned(),
            commit: digest(10).chars().take(40).collect(),
            build_id: digest(11).chars().take(40).collect(),
        },
        host: Host {
            kernel: "6.18.5".to_owned(),
            arch: "x86_64".to_owned(),
            landlock_abi: 7,
        },
        purpose: Purpose::Judge,
        case: Policy {
            name: run.case.name.clone(),
            origin: run.case.origin.clone(),
        },
        client: Client {
            program: "built in".to_owned(),
            content: Content::BuiltIn,
            profile: Some(Policy {
                name: run.profile.name.clone(),
                origin: run.profile.origin.clone(),
            }),
            args: vec![
                word("--print"),
                word("--tools"),
                word(""),
                word("--system-prompt"),
                Arg::Prompt {
                    bytes: 18,
                    sha256: digest(13),
                },
                Arg::Prompt {
                    bytes: 14,
                    sha256: digest(14),
                },
            ],
            stdin: Stdin::None,
            hidden_directory: None,
            settings: run.profile.environment.iter().map(Setting::from).collect(),
            left_out: Vec::new(),
        },
        tier: Tier::Namespace,
        tier_because: None,
        verdict,
        checks,
        not_judged,
        not_reviewed,
        unsound: unsound(&run.evidence),
        kernel_refuses: kernel_refuses(&run.evidence),
        evidence: run.evidence,
        not_proved: Vec::new(),
        wider_rules: Vec::new(),
        baseline: None,
        lock_place: None,
    }
}

/// Report of a run that differs from its lock file by this text.
pub fn drifted(text: &str) -> Report {
    let mut report = report(case_b());
    let (old, new) = (text.to_owned(), text.to_owned());
    let changes = [
        Change::Added(new.clone()),
        Change::Removed(old.clone()),
        Change::Changed { old, new },
    ];
    let differences = changes.map(|change| Difference {
        fact: Fact {
            area: Area::Headers,
            key: text.to_owned(),
        },
        change,
    });
    let found = drift::found(&differences);
    report.baseline = Some(Baseline {
        file: "locks/agent.lock".to_owned(),
        outcome: BaselineOutcome::Compared,
        tier_before: None,
        differences: differences.into(),
    });
    report.lock_place = Some(LockPlace {
        path: PathBuf::from("locks/agent.lock"),
        lines: vec![12, 30],
    });
    report.checks.push(Finding {
        id: BASELINE.into(),
        status: Status::Failed,
        message: "The behaviour differs from the lock file in 3 places.".to_owned(),
        object: Some("locks/agent.lock".to_owned()),
        expected: Some("the behaviour in the lock file".to_owned()),
        found: Some(found),
        because: None,
        accept: None,
        asked_by: AskedBy::LockFile,
    });
    report.verdict = Verdict::Failed;
    report
}

/// Report of a client with nearly all deviations, and with hostile text in all its values.
pub fn hostile() -> Report {
    let mut run = case_b();
    let evidence = &mut run.evidence;

    add_header(&mut evidence.requests[0], "x-note", HOSTILE);
    let mut other = head_request();
    (other.seq, other.class, other.status) = (2, RequestClass::Unknown, Some(404));
    if let Head::Request {
        method,
        path,
        query,
        ..
    } = &mut other.head
    {
        *method = "GET".to_owned();
        *path = format!("/{HOSTILE}");
        *query = Some("a=".repeat(120));
    }
    evidence.requests.push(other);
    let idle = Connection {
        seq: 2,
        bytes: 0,
        requests: 0,
        end: End::Reset,
        ..evidence.connections[0].clone()
    };
    evidence.connections.push(idle);

    record(evidence, "system/init")["skills"] = json!(HOSTILE);
    insert_record(
        evidence,
        2,
        json!({"type": HOSTILE, "subtype": "::warning::x"}),
    );
    evidence
        .files
        .push(file(Root::Home, &format!(".agent/{HOSTILE}")));
    let mut link = file(Root::Tmp, "::notice::link");
    (link.kind, link.mode, link.sha256) = (FileKind::Symlink, 0o777, None);
    link.target = Some(HOSTILE.to_owned());
    evidence.files.push(link);
    evidence.stderr.bytes = 90_000;
    evidence.stderr.tail = format!("first\n{HOSTILE}\n::set-output name=a::b\n");
    evidence.sightings.push(Sighting {
        place: format!("file {HOSTILE}"),
        form: "base64".to_owned(),
    });
    evidence.survivors.push(Survivor {
        pid: 7,
        program: HOSTILE.to_owned(),
    });
    tries_everything(evidence);
    run.profile.attempts.push(ExpectedAttempt {
        destination: Destination::Unix("/run/helper".to_owned()),
        reason: "the client asks its helper".to_owned(),
    });
    asks_beside_the_turn(&mut run);
    let evidence = &mut run.evidence;
    evidence.exit = Exit::Timeout(Duration::from_secs(60));
    evidence.gaps.push(gap(GapKind::Stderr));
    evidence.gaps.push(gap(GapKind::Order));

    let mut report = report(run);
    report.case.origin.source = Source::File(PathBuf::from("cases/wide.toml"));
    report.wider_rules.push(WiderRule {
        rule: "reads /opt/runtime".to_owned(),
        reason: "the client's runtime lies there".to_owned(),
    });
    report.client.left_out = report.client.settings.split_off(2);
    report
        .not_proved
        .push("Names are resolved by the container's own resolver.".to_owned());
    report
}

/// Adds a side request and a transient file, both expected by the profile.
fn asks_beside_the_turn(run: &mut Fixture) {
    let mut side = run.evidence.requests[0].clone();
    (side.seq, side.class) = (3, RequestClass::Side);
    side.side = Some("session title".to_owned());
    run.evidence.requests.push(side);
    run.profile.files.transient.push(ExpectedFile {
        root: Root::Home,
        path: ".agent/lock.{pid}".parse().expect("a path"),
        mode: None,
        count: Count::ANY,
        may_hold_credential: false,
        reason: "held while the state is written".to_owned(),
    });
    let mut lock = file(Root::Home, ".agent/lock.2");
    (lock.transient, lock.sha256) = (true, None);
    run.evidence.files.push(lock);
}

/// Report of a run whose client was never started, since a layer and a probe did not hold.
pub fn broken() -> Report {
    let mut run = case_b();
    run.evidence.layers[1].status = LayerStatus::Absent;
    run.evidence.canaries[0].status = CanaryStatus::NotHeld;
    run.evidence.canaries[0].observed = "ok".to_owned();
    run.evidence.exit = Exit::NotStarted;
    run.evidence.moments.released_us = None;
    run.evidence.moments.ended_us = None;
    run.evidence.attempts.clear();
    run.evidence.processes.clear();
    run.evidence.requests.clear();
    run.evidence.connections.clear();
    run.evidence.records.clear();
    run.evidence.files.clear();
    report(run)
}
