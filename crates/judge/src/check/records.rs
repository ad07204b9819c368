//! Checks of the records on the client's standard output, against the events that the stub sent.

use std::collections::HashSet;

use model::evidence::{Before, Evidence, Line, ProviderEvent, Record, UNFINISHED};
use model::text::count;
use serde_json::Value;

use super::outcome::{
    self, Deviation, JudgedRun, NotPassed, Outcome, Ruled, absent, list, not_asked,
};
use super::{BOTH, ORDER, RECORDS, REQUESTS};

/// Provider events that have a record. The public SDKs omit `ping` and unknown kinds; a client may show them.
const KNOWN_EVENTS: [&str; 6] = [
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
];
/// Type and subtype of a record. They are separate, so that no type text can imitate a pair.
type Step<'a> = (Option<&'a str>, Option<&'a str>);

pub(super) fn json_lines(run: &JudgedRun) -> Outcome {
    run.records()?;
    let records = &run.evidence.records;
    if records.is_empty() {
        return absent("standard output is empty");
    }
    for record in records {
        if let Line::NotJson { reason } = &record.line {
            let deviation = Deviation::new("A line of standard output is not a JSON object.")
                .at(name(record))
                .expected("one JSON object on each line")
                .found(reason);
            // The last line may be incomplete because output was lost, or because the runner ended the client.
            return if *reason == UNFINISHED {
                deviation.leftover().failed_if_complete(RECORDS)
            } else {
                deviation.failed()
            };
        }
    }
    Ok(format!(
        "{}, each one JSON object.",
        count(records.len(), "line")
    ))
}

pub(super) fn sequence(run: &JudgedRun) -> Outcome {
    let is_partial = run.agent_stream()?.partial_messages;
    let expected = expected_sequence(run.evidence, is_partial);
    let found: Vec<&Record> = judged_records(run.evidence, is_partial).collect();
    let positions = expected.len().max(found.len());
    for position in 0..positions {
        let (wanted, got) = (expected.get(position), found.get(position));
        if wanted.copied() == got.map(|record| step(record)) {
            continue;
        }
        let end = || "the end".to_owned();
        return Deviation::new("The records do not follow the sequence of the specification.")
            .at(got.map_or_else(
                || "end of standard output".to_owned(),
                |record| name(record),
            ))
            .expected(wanted.map_or_else(end, spell))
            .found(got.map_or_else(end, |record| record.label()))
            .unfinished_if(got.is_none())
            .failed_if_complete(match (got, position) {
                (None, _) => BOTH,
                // The first two records precede all events.
                (Some(_), 0 | 1) => &[],
                (Some(_), _) => REQUESTS,
            });
    }
    let assistants = run
        .evidence
        .records
        .iter()
        .filter(|record| is_assistant(record))
        .count();
    if assistants != 1 {
        return Deviation::new("The aggregate assistant record is not written once.")
            .expected("1 assistant record")
            .found(count(assistants, "assistant record"))
            .unfinished_if(assistants == 0)
            .failed_if_complete(if assistants == 0 { RECORDS } else { &[] });
    }
    Ok(format!(
        "{} in the order of the specification.",
        count(positions + 1, "record")
    ))
}

pub(super) fn init_before_post(run: &JudgedRun) -> Outcome {
    run.agent_stream()?;
    run.turns()?;
    let status = run
        .evidence
        .records
        .iter()
        .find(|record| record.is("system", "status"));
    let (Some(init), Some(status)) = (run.evidence.init(), status) else {
        return absent("there is no init record, or no status record");
    };
    for record in [init, status] {
        if record.before == Before::None {
            return Deviation::new(
                "A record that comes before the message request was not there yet when it began.",
            )
            .at(name(record))
            .expected(format!(
                "{} on standard output before the first byte of the POST",
                record.label()
            ))
            .found("written later, or not at all at that time")
            .failed_if_complete(ORDER);
        }
    }
    Ok(if run.evidence.startup_before() == Some(Before::Connect) {
        "Proved: init and status were on the pipe before the POST's connection was made.".to_owned()
    } else {
        "Seen: init and status were on the pipe when it was read, within 50 ms of the first byte of the POST.".to_owned()
    })
}

/// Compares records and provider events one by one. A client may omit all events of an unknown kind, as the public SDKs
/// do. If one record shows such a kind, each event of that kind needs its record, unchanged and in order.
pub(super) fn events_match_provider(run: &JudgedRun) -> Outcome {
    if !run.agent_stream()?.partial_messages {
        return not_asked("the case does not ask for partial messages");
    }
    let optional = optional_events(run.evidence);
    let shown: Vec<_> = run
        .evidence
        .records
        .iter()
        .filter(|record| is_known_event(record) || is_event_of(record, &optional))
        .collect();
    let kinds: HashSet<&str> = shown.iter().filter_map(|record| record.event()).collect();
    let is_shown = |kind: &str| kinds.contains(kind);
    let sent: Vec<_> = run
        .evidence
        .turn_events()
        .filter(|event| KNOWN_EVENTS.contains(&&*event.event) || is_shown(&event.event))
        .collect();
    if sent.is_empty() && shown.is_empty() {
        return absent("the stub sent no event, and no record shows one");
    }
    for (event, record) in sent.iter().zip(&shown) {
        if record.json().and_then(|json| json.get("event")) != Some(&event.data) {
            return Deviation::new("A stream_event record does not hold the provider's event.")
                .at(name(record))
                .expected(event.data.to_string())
                .found(
                    record
                        .json()
                        .and_then(|json| json.get("event"))
                        .map(Value::to_string)
                        .unwrap_or_default(),
                )
                .failed_if_complete(REQUESTS);
        }
    }
    if sent.len() != shown.len() {
        return Deviation::new("Provider events and stream_event records differ in number.")
            .expected(count(sent.len(), "event"))
            .found(count(shown.len(), "record"))
            .unfinished_if(shown.len() < sent.len())
            .failed_if_complete(if shown.len() > sent.len() {
                REQUESTS
            } else {
                BOTH
            });
    }
    Ok(format!(
        "{}, each as the stub sent it.",
        count(sent.len(), "event")
    ))
}

pub(super) fn assistant_text(run: &JudgedRun) -> Outcome {
    run.agent_stream()?;
    let Some(record) = run
        .evidence
        .records
        .iter()
        .find(|record| is_assistant(record))
    else {
        return absent("there is no assistant record");
    };
    let sent: String = run.evidence.turn_events().filter_map(text_delta).collect();
    if run.evidence.turn_events().next().is_none() {
        return absent("the stub sent no event");
    }
    match assistant_content(record) {
        Some(text) if text == sent => Ok(format!(
            "The aggregate equals the deltas, {} bytes.",
            sent.len()
        )),
        found => Deviation::new("The aggregate assistant message does not equal the deltas.")
            .at(name(record))
            .expected(sent)
            .found(found.unwrap_or_else(|| "no array of text blocks".to_owned()))
            .failed_if_complete(REQUESTS),
    }
}

pub(super) fn assistant_position(run: &JudgedRun) -> Outcome {
    if !run.agent_stream()?.partial_messages {
        return not_asked("the position was observed with partial messages only");
    }
    let records = &run.evidence.records;
    let Some(assistant) = records.iter().position(is_assistant) else {
        return absent("there is no assistant record");
    };
    let delta = records
        .iter()
        .rposition(|record| is_event(record, "content_block_delta"));
    let stop = records
        .iter()
        .position(|record| is_event(record, "content_block_stop"));
    let (Some(delta), Some(stop)) = (delta, stop) else {
        return absent("there is no delta record, or no block-stop record");
    };
    if delta < assistant && assistant < stop {
        return Ok(
            "The aggregate comes after the last delta and before the block's stop.".to_owned(),
        );
    }
    let where_it_is = if assistant < delta {
        "before the last delta"
    } else {
        "after the block's stop"
    };
    Deviation::new("The aggregate assistant record is at the wrong position.")
        .at(format!("record {}", assistant + 1))
        .expected("after the last delta, before the block's stop")
        .found(where_it_is)
        .failed()
}

pub(super) fn result_success(run: &JudgedRun) -> Outcome {
    run.agent_stream()?;
    let Some(last) = run.evidence.records.last() else {
        return absent("standard output is empty");
    };
    let is_error = last.json().and_then(|json| json.get("is_error"));
    if last.is("result", "success") && is_error == Some(&Value::Bool(false)) {
        whole_answer(run, last)?;
        return Ok("The run ends with result/success, after a whole answer.".to_owned());
    }
    let deviation = Deviation::new("The last record is not a successful result.")
        .at(name(last))
        .expected("result/success with is_error false")
        .found(format!(
            "{}, is_error {}",
            last.label(),
            is_error.map_or("absent".to_owned(), Value::to_string)
        ))
        .unfinished_if(last.kind() != Some("result"));
    if run.evidence.is_stub_lost() {
        return deviation.undecided("the stub was lost before it had answered");
    }
    deviation.failed_if_complete(RECORDS)
}

/// Fails if every answer for the turn was cut, refused or an error. Without a request, requests/post-count fails.
fn whole_answer(run: &JudgedRun, result: &Record) -> Result<(), NotPassed> {
    let Ok(turns) = run.turns() else {
        return Ok(());
    };
    let answers = run.evidence.answers();
    let cut = |(_, turn): &Ruled| Some(format!("{}: {}", outcome::name(turn), answers.cut(turn)?));
    let cuts: Vec<String> = turns.iter().filter_map(cut).collect();
    if cuts.len() < turns.len() {
        return Ok(());
    }
    Deviation::new("The client reports success without a whole answer.")
        .at(name(result))
        .expected("an answer that ends with message_stop, or a result that is an error")
        .found(list(cuts))
        .failed_if_complete(REQUESTS)
}

/// Sequence of section 6.2 with the sent events, without the aggregate, whose position another check judges.
fn expected_sequence(evidence: &Evidence, is_partial: bool) -> Vec<Step<'_>> {
    let mut steps = vec![
        (Some("system"), Some("init")),
        (Some("system"), Some("status")),
    ];
    if is_partial {
        steps.extend(
            known_events(evidence).map(|event| (Some("stream_event"), Some(event.event.as_str()))),
        );
    }
    steps.push((Some("result"), None));
    steps
}

fn spell((kind, detail): &Step) -> String {
    [*kind, *detail]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join("/")
}

/// Type and subtype of a record. A result has no subtype here, since another check judges its success.
fn step(record: &Record) -> Step<'_> {
    let kind = record.kind();
    (kind, record.detail().filter(|_| kind != Some("result")))
}

/// Records that the sequence covers. Other checks judge lines that are no record, the aggregate, and, with partial
/// messages, sent events of unknown kinds.
fn judged_records(evidence: &Evidence, is_partial: bool) -> impl Iterator<Item = &Record> {
    let optional = optional_events(evidence);
    evidence.records.iter().filter(move |record| {
        let is_optional = is_partial && is_event_of(record, &optional);
        record.json().is_some() && !is_assistant(record) && !is_optional
    })
}

/// Kinds of the events that the stub sent and that clients may leave out.
fn optional_events(evidence: &Evidence) -> HashSet<&str> {
    let kinds = evidence.turn_events().map(|event| event.event.as_str());
    kinds.filter(|kind| !KNOWN_EVENTS.contains(kind)).collect()
}

fn is_event_of(record: &Record, kinds: &HashSet<&str>) -> bool {
    let is_one = |kind| kinds.contains(kind);
    record.kind() == Some("stream_event") && record.event().is_some_and(is_one)
}

fn known_events(evidence: &Evidence) -> impl Iterator<Item = &ProviderEvent> {
    evidence
        .turn_events()
        .filter(|event| KNOWN_EVENTS.contains(&event.event.as_str()))
}

fn is_known_event(record: &Record) -> bool {
    KNOWN_EVENTS.iter().any(|kind| is_event(record, kind))
}

fn is_event(record: &Record, kind: &str) -> bool {
    record.kind() == Some("stream_event") && record.event() == Some(kind)
}

fn is_assistant(record: &Record) -> bool {
    record.kind() == Some("assistant")
}

fn text_delta(event: &ProviderEvent) -> Option<&str> {
    let delta = event
        .data
        .get("delta")
        .filter(|_| event.event == "content_block_delta")?;
    delta
        .get("text")
        .filter(|_| delta.get("type").and_then(Value::as_str) == Some("text_delta"))?
        .as_str()
}

/// Joined text of the aggregate's blocks. Returns `None` if a block is not text.
fn assistant_content(record: &Record) -> Option<String> {
    let blocks = record.json()?.get("message")?.get("content")?.as_array()?;
    blocks
        .iter()
        .map(|block| {
            block
                .get("text")
                .filter(|_| block.get("type").and_then(Value::as_str) == Some("text"))?
                .as_str()
        })
        .collect()
}

pub(super) fn name(record: &Record) -> String {
    format!("record {}", record.seq)
}
