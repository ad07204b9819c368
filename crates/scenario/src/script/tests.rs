use proptest::prelude::*;

use super::*;
use crate::Scenario;

fn script(scenario: &Scenario, streams: bool) -> Script {
    let context = Context {
        request_id: "req_1",
        message_id: "msg_1",
        model: "m",
        streams,
        elsewhere: "http://127.0.0.2:9",
    };
    Script::new(scenario.answer(0), context)
}

fn parse(toml: &str) -> Scenario {
    toml::from_str(toml).unwrap_or_else(|error| panic!("{toml}: {error}"))
}

fn stream(toml: &str) -> Script {
    script(&parse(toml), true)
}

fn whole(script: &Script) -> Vec<u8> {
    let pieces = script.pieces.iter();
    pieces.flat_map(|piece| piece.bytes.to_vec()).collect()
}

fn body(toml: &str) -> String {
    String::from_utf8(whole(&stream(toml))).unwrap()
}

/// Lists the names on the `event:` lines.
fn names(toml: &str) -> Vec<String> {
    let body = String::from_utf8_lossy(&whole(&stream(toml))).into_owned();
    let names = body.lines().filter_map(|line| line.strip_prefix("event: "));
    names.map(str::to_owned).collect()
}

const SIX: [&str; 6] = [
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
];

#[test]
fn without_pieces_each_event_is_handed_over_by_itself() {
    let script = stream("event_delay_ms = 5");
    assert_eq!(script.pieces.len(), 6);
    assert!(!script.separate_writes);
    assert_eq!(script.pieces[0].wait, Duration::ZERO);
    let mut rest = script.pieces.iter().skip(1);
    assert!(rest.all(|piece| piece.wait == Duration::from_millis(5)));
    assert_eq!(
        script.pieces[5].bytes,
        "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
    );
}

#[test]
fn pieces_have_the_size_that_was_asked_for_wherever_it_cuts() {
    let plain = body("text = \"añb€c\"");
    for size in [1, 2, 7, 1000, 100_000] {
        let script = stream(&format!(
            "text = \"añb€c\"\nchunk_bytes = {size}\nchunk_delay_ms = 3"
        ));
        assert_eq!(whole(&script), plain.as_bytes());
        let last = script.pieces.len() - 1;
        let mut sized = script.pieces.iter().take(last);
        assert!(sized.all(|piece| piece.bytes.len() == size));
        let mut rest = script.pieces.iter().skip(1);
        assert!(rest.all(|piece| piece.wait == Duration::from_millis(3)));
        assert!(script.separate_writes);
    }
}

#[test]
fn a_wait_between_events_starts_a_new_piece() {
    let script = stream("chunk_bytes = 1000\nevent_delay_ms = 9\nchunk_delay_ms = 3");
    assert_eq!(script.pieces.len(), 6);
    let mut rest = script.pieces.iter().skip(1);
    assert!(rest.all(|piece| piece.wait == Duration::from_millis(9)));
}

#[test]
fn numbered_cuts_may_be_in_any_order() {
    let script = stream("chunk_cuts = [40, 7, 7, 1000000]");
    let sizes: Vec<_> = script
        .pieces
        .iter()
        .map(|piece| piece.bytes.len())
        .collect();
    assert_eq!(sizes, [7, 33, body("").len() - 40]);
}

#[test]
fn named_cuts_are_inside_their_construct() {
    let borders = |toml: &str| {
        let script = stream(toml);
        let pieces: Vec<_> = script
            .pieces
            .iter()
            .map(|piece| piece.bytes.clone())
            .collect();
        let pairs = pieces.windows(2);
        pairs
            .map(|pair| (*pair[0].last().unwrap(), pair[1][0]))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        borders("text = 'é€'\nchunk_cuts = ['mid-utf8']"),
        [(0xc3, 0xa9), (0xe2, 0x82)]
    );
    let line_ends = borders("framing = { line_end = 'crlf' }\nchunk_cuts = ['mid-crlf']");
    assert_eq!(line_ends, [(b'\r', b'\n'); 18]);
    assert_eq!(borders("chunk_cuts = ['event-data']"), [(b'\n', b'd'); 6]);
}

#[test]
fn a_number_gives_the_same_pieces_each_time_and_another_number_gives_others() {
    let sizes = |seed: u64| {
        let script = stream(&format!("chunk_seed = {seed}"));
        let sizes = script.pieces.iter().map(|piece| piece.bytes.len());
        sizes.collect::<Vec<_>>()
    };
    // Fixed sizes, so that a case gives equal runs with every release.
    assert_eq!(sizes(1)[..6], SEED_1);
    assert_eq!(sizes(1), sizes(1));
    assert_ne!(sizes(1), sizes(2));
    assert!(sizes(3).iter().all(|size| (1..=64).contains(size)));
}

const SEED_1: [usize; 6] = [2, 40, 31, 12, 58, 1];

#[test]
fn each_fault_changes_its_event_and_nothing_else() {
    let with = |fault: &str| body(&format!("deltas = ['one', 'two']\nfaults = [{fault}]"));
    let plain = body("deltas = ['one', 'two']");
    let delta = |text: &str| {
        format!(
            "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"text_delta\",\"text\":\"{text}\"}}}}\n\n"
        )
    };
    let (one, two) = (delta("one"), delta("two"));
    let both = format!("{one}{two}");
    assert!(plain.contains(&both));
    for (fault, becomes) in [
        ("'duplicate'", format!("{one}{two}{two}")),
        ("'missing'", one.clone()),
        ("'early'", format!("{two}{one}")),
        (
            "'malformed-json'",
            format!(
                "{one}event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":0,\"\n\n"
            ),
        ),
        (
            "'no-type'",
            format!(
                "{one}{}",
                two.replace("\"type\":\"content_block_delta\",", "")
            ),
        ),
        (
            "'no-event-line'",
            format!("{one}{}", two.replace("event: content_block_delta\n", "")),
        ),
        (
            "'wrong-index', index = 7",
            format!("{one}{}", two.replace("\"index\":0", "\"index\":7")),
        ),
    ] {
        let found = with(&format!(
            "{{ event = 'content_block_delta', nth = 2, fault = {fault} }}"
        ));
        assert_eq!(found, plain.replace(&both, &becomes), "{fault}");
    }
    let no_usage = with("{ fault = 'no-usage', event = 'message_delta' }");
    assert_eq!(
        no_usage,
        plain.replace(",\"usage\":{\"output_tokens\":1}}\n", "}\n")
    );
    let no_type = with("{ fault = 'no-type', event = 'message_stop' }");
    assert!(no_type.ends_with("event: message_stop\ndata: {}\n\n"));
}

#[test]
fn an_invalid_byte_is_at_the_end_of_the_text() {
    let bytes = whole(&stream(
        "deltas = ['one']\nfaults = [{ fault = 'invalid-utf8', event = 'content_block_delta' }]",
    ));
    let at = bytes.windows(6).position(|part| part == b"one\xff\"}");
    assert!(at.is_some());
}

#[test]
fn an_error_event_ends_the_stream() {
    assert_eq!(names("error_event = {}"), ["error"]);
    assert_eq!(
        body("error_event = {}"),
        "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n"
    );
    assert_eq!(
        names("error_event = { after = 'content_block_start', type = 'api_error' }"),
        [SIX[0], SIX[1], "error"]
    );
}

#[test]
fn framing_changes_lines_but_no_data() {
    let plain = body("");
    let spelt = |framing: &str| body(&format!("framing = {{ {framing} }}"));
    assert_eq!(spelt("line_end = 'crlf'"), plain.replace('\n', "\r\n"));
    assert_eq!(spelt("line_end = 'cr'"), plain.replace('\n', "\r"));
    assert_eq!(spelt("bom = true"), format!("\u{feff}{plain}"));
    assert_eq!(
        spelt("comments = true"),
        plain.replace("event: ", ": the stub is here\nevent: ")
    );
    assert_eq!(
        spelt("data_space = false"),
        plain.replace("data: ", "data:")
    );
    assert_eq!(
        spelt("last_blank_line = false"),
        plain.strip_suffix('\n').unwrap()
    );
}

#[test]
fn a_stream_ends_where_the_scenario_says_and_how() {
    let plain = body("deltas = 3");
    let ends = |ending: &str| {
        let script = stream(&format!("deltas = 3\n{ending}"));
        (whole(&script), script.head.is_some(), script.end)
    };
    let after = |mark: &str, nth: usize| {
        let (at, mark) = plain.match_indices(mark).nth(nth).unwrap();
        let rest = &plain[at + mark.len()..];
        plain.len() - rest.len() + rest.find("\n\n").unwrap() + 2
    };
    let second = after("event: content_block_delta", 1);
    for (ending, length, has_head, end) in [
        (
            "cut = { at = 'before-head' }",
            0,
            false,
            End::Hangup(Hangup::Fin),
        ),
        (
            "cut = { at = 'after-head', by = 'reset' }",
            0,
            true,
            End::Hangup(Hangup::Reset),
        ),
        ("cut = { byte = 17 }", 17, true, End::Hangup(Hangup::Fin)),
        (
            "cut = { byte = 1000000 }",
            plain.len(),
            true,
            End::Hangup(Hangup::Fin),
        ),
        (
            "cut = { after = 'message_stop' }",
            plain.len(),
            true,
            End::Hangup(Hangup::Fin),
        ),
        (
            "cut = { after = 'content_block_delta', nth = 2 }",
            second,
            true,
            End::Hangup(Hangup::Fin),
        ),
        (
            "cut = { after = 'content_block_delta', nth = 2, by = 'end' }",
            second,
            true,
            End::Whole,
        ),
        ("stall = { at = 'before-head' }", 0, false, End::Stall),
        (
            "stall = { after = 'content_block_delta', nth = 2 }",
            second,
            true,
            End::Stall,
        ),
    ] {
        let expected = (plain.as_bytes()[..length].to_vec(), has_head, end);
        assert_eq!(ends(ending), expected, "{ending}");
    }
    let (inside, ..) = ends("cut = { inside = 'content_block_delta', nth = 2 }");
    let first = after("event: content_block_delta", 0);
    assert!(first + "event: content_block_delta\ndata: ".len() < inside.len());
    assert!(inside.len() < second - 2);
}

#[test]
fn one_message_ends_early_by_bytes_and_never_by_events() {
    let single = |toml: &str| {
        let script = script(&parse(toml), false);
        let length = script.head.as_ref().and_then(|head| head.length);
        (whole(&script).len(), length, script.end)
    };
    let (length, stated, _) = single("");
    assert_eq!(stated, Some(length));
    let fin = End::Hangup(Hangup::Fin);
    assert_eq!(single("cut = { byte = 9 }"), (9, Some(length), fin));
    assert_eq!(
        single("cut = { byte = 9, by = 'end' }"),
        (9, Some(9), End::Whole)
    );
    assert_eq!(
        single("cut = { byte = 1000000 }"),
        (length - 1, Some(length), fin)
    );
    assert_eq!(
        single("cut = { after = 'message_start' }"),
        (length, Some(length), End::Whole)
    );
}

#[test]
fn an_error_carries_what_its_table_says() {
    let script = stream("error = { status = 429, retry_after_s = 7 }");
    let head = script.head.as_ref().unwrap();
    let header = |name: &str| {
        let found = head.headers.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| value.as_str())
    };
    assert_eq!(head.status, 429);
    assert_eq!(header("retry-after"), Some("7"));
    assert_eq!(header("x-should-retry"), Some("true"));
    assert_eq!(header("content-type"), Some(JSON));
    assert_eq!(
        whole(&script),
        br#"{"type":"error","error":{"type":"rate_limit_error","message":"There were too many requests."},"request_id":"req_1"}"#
    );
}

#[test]
fn a_redirect_names_the_second_host_by_its_origin() {
    let location = |to: &str| {
        let script = stream(&format!("redirect = {{ status = 308, to = '{to}' }}"));
        assert!(script.pieces.is_empty());
        let head = script.head.unwrap();
        assert_eq!((head.status, head.length), (308, Some(0)));
        head.headers
    };
    let named = |to: &str| vec![("location", to.to_owned())];
    assert_eq!(
        location("{elsewhere}/v1/messages"),
        named("http://127.0.0.2:9/v1/messages")
    );
    assert_eq!(location("http://a.example/"), named("http://a.example/"));
}

fn chunkings() -> impl Strategy<Value = String> {
    prop_oneof![
        (1usize..300).prop_map(|size| format!("chunk_bytes = {size}")),
        any::<u32>().prop_map(|seed| format!("chunk_seed = {seed}")),
        proptest::collection::vec(1usize..2000, 1..20)
            .prop_map(|cuts| format!("chunk_cuts = {cuts:?}")),
    ]
}

proptest! {
    #[test]
    fn the_body_of_every_scenario_is_the_same_in_whatever_pieces(
        index in 0..Scenario::names().count(),
        chunking in chunkings(),
        event_delay in prop_oneof![Just(""), Just("event_delay_ms = 1")],
    ) {
        let name = Scenario::names().nth(index).unwrap().name;
        let plain = Scenario::named(name).unwrap();
        let cut_up: Scenario = recut(&plain, &chunking, event_delay);
        for streams in [true, false] {
            let (plain, cut_up) = (script(&plain, streams), script(&cut_up, streams));
            prop_assert_eq!(whole(&plain), whole(&cut_up));
            prop_assert_eq!((plain.head, plain.end), (cut_up.head, cut_up.end));
            prop_assert!(cut_up.pieces.iter().all(|piece| !piece.bytes.is_empty()));
        }
    }
}

/// Returns the scenario with other cuts of its first answer.
fn recut(plain: &Scenario, chunking: &str, event_delay: &str) -> Scenario {
    let mut wire = serde_json::to_value(plain).unwrap();
    for key in ["chunk_bytes", "chunk_cuts", "chunk_seed"] {
        wire[key] = serde_json::Value::Null;
    }
    let is_message = !wire["blocks"].is_null();
    let keys: serde_json::Value = toml::from_str(&format!(
        "{chunking}\n{}",
        if is_message { event_delay } else { "" }
    ))
    .unwrap();
    for (key, value) in keys.as_object().unwrap() {
        wire[key] = value.clone();
    }
    serde_json::from_value(wire).unwrap()
}
