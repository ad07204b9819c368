//! Differences between runs, on the evidence of the common fixture.

use model::difference::summary;
use model::evidence::fixture::{
    Fixture, add_header, attempt, case_a, case_b, connect, digest, file, head_request,
    insert_record, question, record, set_header, shape,
};
use model::evidence::{
    Arg, Attempt, AttemptKind, Exit, FileKind, LookupKind, Outcome, Process, Request, RequestClass,
    Root, Sensitive, SensitivePath, Sighting,
};
use model::journal::Head;
use report::json;
use serde_json::json;

use super::*;
use crate::fixture::report;

mod bodies;
mod ledger;
mod requests;
mod texts;

/// Facts of a run, by its JSON report.
fn behaviour(run: Fixture) -> RunFacts {
    let rendered = json::render(&report(run)).unwrap();
    RunFacts::of(&Report::parse(&rendered).unwrap())
}

/// Differences of case B after a change, a line each.
fn changed(change: impl FnOnce(&mut Fixture)) -> Vec<String> {
    between(|_| (), change)
}

/// Differences between case B with one change and with another.
fn between(before: impl FnOnce(&mut Fixture), now: impl FnOnce(&mut Fixture)) -> Vec<String> {
    let (mut old, mut new) = (case_b(), case_b());
    before(&mut old);
    now(&mut new);
    let (old, new) = (behaviour(old), behaviour(new));
    let line = |found: Difference| {
        let Difference { fact, change } = found;
        let (old, new) = (change.before().unwrap_or("-"), change.now().unwrap_or("-"));
        format!("{} {}: {old} => {new}", fact.area.word(), fact.key)
    };
    let differences = compare(old.facts(), new.facts());
    differences.into_iter().map(line).collect()
}

fn assert_unchanged(change: impl FnOnce(&mut Fixture)) {
    assert_eq!(changed(change), Vec::<String>::new());
}

#[test]
fn what_varies_by_its_nature_is_no_difference() {
    let varying = |run: &mut Fixture, port: &str, id: &str, millis: u64| {
        let evidence = &mut run.evidence;
        let post = &mut evidence.requests[0];
        post.at_us += millis;
        set_header(post, "host", &format!("127.0.0.1:{port}"));
        set_header(post, "content-length", port);
        add_header(post, "x-session", id);
        add_header(post, "x-at", "2026-11-28T12:41:43.250Z");
        let body = post.body.as_mut().unwrap();
        (body.bytes, body.sha256) = (millis, digest(millis));
        for record in &mut evidence.records {
            (record.at_us, record.bytes) = (record.at_us + millis, millis);
        }
        evidence.files[1].sha256 = Some(digest(millis));
        evidence.files[3].path = format!(".agent/backups/.agent.json.backup.1780000{millis}");
        evidence.files.push(file(Root::Home, &format!("log.{id}")));
        evidence.processes[0].pid += 7;
        evidence.attempts.reverse();
        evidence.duration *= 2;
    };
    let id = "ef58ac57-72c4-499b-a5ea-c80665eac254";
    let other = "11480662-eaea-4963-8a91-5fb79ad8ae14";
    let found = between(
        |run| varying(run, "41187", id, 120_000),
        |run| varying(run, "40147", other, 654_321),
    );
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn a_header_put_in_is_one_difference_and_so_is_one_taken_out_or_changed() {
    let added = changed(|run| add_header(&mut run.evidence.requests[0], "X-New", "1"));
    assert_eq!(added, ["headers POST /v1/messages X-New: - => 1"]);
    let removed = between(
        |run| add_header(&mut run.evidence.requests[0], "X-New", "1"),
        |_| (),
    );
    assert_eq!(removed, ["headers POST /v1/messages X-New: 1 => -"]);
    let agent = "agent-cli/2.1.178 (external, sdk-cli)";
    let other = changed(|run| set_header(&mut run.evidence.requests[0], "user-agent", agent));
    assert_eq!(
        other,
        [format!(
            "headers POST /v1/messages user-agent: agent-cli/2.1.177 (external, sdk-cli) => {agent}"
        )]
    );
}

#[test]
fn a_header_named_twice_is_two_facts_and_the_order_of_headers_is_none() {
    let twice = changed(|run| add_header(&mut run.evidence.requests[0], "content-type", "x"));
    assert_eq!(twice, ["headers POST /v1/messages content-type #2: - => x"]);
    assert_unchanged(|run| match &mut run.evidence.requests[0].head {
        Head::Request { headers, .. } => headers.reverse(),
        Head::Malformed { .. } | Head::Incomplete => unreachable!(),
    });
}

#[test]
fn a_record_put_in_is_told_with_its_place_and_its_fields() {
    let found = changed(|run| {
        let json = json!({"type": "system", "subtype": "hook", "uuid": "u"});
        insert_record(&mut run.evidence, 1, json);
    });
    assert_eq!(
        found,
        [
            "records system/hook: - => after system/init",
            "records system/hook field subtype: - => in each",
            "records system/hook field type: - => in each",
            "records system/hook field uuid: - => in each",
            "records system/status: after system/init => after system/hook",
        ]
    );
}

#[test]
fn a_field_of_a_record_is_one_difference_and_its_value_is_none() {
    let added = changed(|run| {
        record(&mut run.evidence, "result/success")["ttft_ms"] = json!(7);
    });
    assert_eq!(
        added,
        ["records result/success field ttft_ms: - => in each"]
    );
    assert_unchanged(|run| record(&mut run.evidence, "system/init")["uuid"] = json!("other"));
    let once = changed(|run| {
        record(&mut run.evidence, "stream_event/content_block_delta")["at"] = json!(7);
    });
    assert_eq!(
        once,
        ["records stream_event/content_block_delta field at: - => in some"]
    );
}

#[test]
fn one_more_of_the_same_records_is_one_difference() {
    let found = changed(|run| {
        let again = run.evidence.records[5].clone();
        run.evidence.records.insert(5, again);
    });
    assert_eq!(
        found,
        [
            "records stream_event/content_block_delta: × 3, after stream_event/content_block_start => × 4, after stream_event/content_block_start"
        ]
    );
}

#[test]
fn the_content_of_a_file_counts_where_the_file_is_neither_known_nor_state() {
    let with = |path: &'static str, seed: u64| {
        move |run: &mut Fixture| {
            let mut found = file(Root::Home, path);
            found.sha256 = Some(digest(seed));
            run.evidence.files.push(found);
        }
    };
    for stable in ["notes.txt", "bin/tool", "a.jsonc", "log"] {
        assert_eq!(
            between(with(stable, 1), with(stable, 2)).len(),
            1,
            "{stable}"
        );
    }
    for state in ["other.json", "run.log", "x.lock", "deadbeef0badcafe.txt"] {
        let found = between(with(state, 1), with(state, 2));
        assert_eq!(found, Vec::<String>::new(), "{state}");
    }
    assert_unchanged(|run| run.evidence.files[1].sha256 = Some(digest(99)));
}

#[test]
fn path_kind_and_mode_of_every_file_count() {
    assert_eq!(
        changed(|run| run.evidence.files[1].mode = 0o644),
        ["files home .agent/.agent.json: file 0600 => file 0644"]
    );
    let moved = changed(|run| run.evidence.files[1].root = Root::Tmp);
    assert_eq!(moved.len(), 2, "{moved:?}");
    let new = changed(|run| run.evidence.files.push(file(Root::Home, "x.log")));
    assert_eq!(new, ["files home x.log: - => file 0600"]);
}

#[test]
fn a_transient_file_is_left_out_and_the_same_left_behind_is_not() {
    let gone = |transient| {
        move |run: &mut Fixture| {
            let mut found = file(Root::Home, "state.lock");
            found.transient = transient;
            run.evidence.files.push(found);
        }
    };
    assert_unchanged(gone(true));
    assert_eq!(changed(gone(false)).len(), 1);
}

#[test]
fn no_client_can_write_the_value_that_accepts_anything() {
    let found = changed(|run| add_header(&mut run.evidence.requests[0], "x", "*"));
    assert_eq!(found, ["headers POST /v1/messages x: - => {*"]);
}

#[test]
fn what_a_client_writes_like_a_placeholder_or_a_star_is_told_apart_from_them() {
    let with = |value: &'static str| {
        move |run: &mut Fixture| add_header(&mut run.evidence.requests[0], "x", value)
    };
    let id = "ef58ac57-72c4-499b-a5ea-c80665eac254";
    let values = ["*", "{*", "{{*"];
    let written = [id, "{uuid}", "{{uuid}", "{{{uuid}"];
    let sized = ["0123456789abcdef", "{hex:16}", "{the text hex:16}", "{hex}"];
    for values in [values.as_slice(), &written, &sized] {
        for (index, old) in values.iter().enumerate() {
            for new in values.iter().skip(index + 1) {
                assert_eq!(between(with(old), with(new)).len(), 1, "{old} {new}");
            }
        }
    }
}

#[test]
fn id_of_another_length_is_a_difference() {
    let with = |value: String| {
        move |run: &mut Fixture| add_header(&mut run.evidence.requests[0], "x", &value)
    };
    let hex = |digits: usize| "0123456789abcdef".repeat(digits / 16);
    assert_eq!(
        between(with(hex(16)), with(hex(16).replace('0', "9"))),
        [""; 0]
    );
    let found = between(with(hex(16)), with(hex(64)));
    assert_eq!(found, ["headers POST /v1/messages x: {hex:16} => {hex:64}"]);
}

#[test]
fn a_key_that_comes_very_often_is_numbered_without_ado() {
    let found = changed(|run| {
        let post = &mut run.evidence.requests[0];
        add_header(post, "x #3", "literally");
        (0..30_000).for_each(|_| add_header(post, "x", ""));
    });
    assert_eq!(found.len(), 30_001);
    let literal = "headers POST /v1/messages \"x #3\": - => literally".to_owned();
    assert!(found.contains(&literal));
}

#[test]
fn a_long_value_is_shortened_and_still_compared_to_its_end() {
    let long = |end: &str| format!("{}{end}", "x".repeat(5_000));
    let with = |value: String| {
        move |run: &mut Fixture| {
            add_header(&mut run.evidence.requests[0], "x", &value);
        }
    };
    let found = between(with(long("a")), with(long("b")));
    assert_eq!(found.len(), 1);
    assert!(found[0].chars().count() < 1_000);
}

#[test]
fn the_cases_differ_by_what_they_ask_for() {
    let found = compare(behaviour(case_b()).facts(), behaviour(case_a()).facts());
    let summary = summary(&found);
    assert_eq!(summary, "7 differences: 1 request, 2 headers, 4 body");
}
