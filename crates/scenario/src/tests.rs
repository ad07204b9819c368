use super::*;

fn parse(toml: &str) -> Result<Scenario, String> {
    toml::from_str(toml).map_err(|error| error.to_string())
}

/// Lists the deltas of each block of the first answer.
fn deltas(toml: &str) -> Vec<Vec<String>> {
    let scenario = parse(toml).unwrap();
    let Reply::Message(turn) = &scenario.answer(0).reply else {
        panic!("no message: {toml}")
    };
    let blocks = turn.blocks.iter();
    blocks.map(|block| block.deltas().to_vec()).collect()
}

#[test]
fn an_empty_table_is_the_default_of_one_delta() {
    assert_eq!(parse("").unwrap(), Scenario::default());
    assert_eq!(deltas(""), [["Hello from the stub."]]);
}

#[test]
fn a_number_of_deltas_cuts_the_text_between_characters() {
    assert_eq!(deltas("text = \"añb€c\"\ndeltas = 3"), [["añ", "b€", "c"]]);
}

#[test]
fn a_list_of_deltas_is_taken_as_written() {
    assert_eq!(deltas("deltas = [\"Hel\", \"lo\"]"), [["Hel", "lo"]]);
    assert!(
        parse("text = \"Hi\"\ndeltas = [\"Hel\", \"lo\"]")
            .unwrap_err()
            .contains("does not add up")
    );
}

#[test]
fn each_block_has_deltas_of_its_own() {
    assert_eq!(
        deltas(
            "blocks = [{ type = 'text', text = 'ab', deltas = 2 }, { type = 'thinking', deltas = ['x'] }]"
        ),
        [vec!["a", "b"], vec!["x"]]
    );
}

#[test]
fn the_last_answer_repeats() {
    let scenario =
        parse("scenario = 'error-429'\nthen = [{ text = 'a' }, { text = 'b' }]").unwrap();
    let answers: Vec<_> = (0..5).map(|before| scenario.answer(before)).collect();
    assert!(matches!(answers[0].reply, Reply::Error(_)));
    assert_eq!(answers[1], parse("text = 'a'").unwrap().answer(0));
    assert_eq!(answers[2], parse("text = 'b'").unwrap().answer(0));
    assert_eq!(answers[2..], [answers[2]; 3]);
    let only = parse("text = 'a'").unwrap();
    assert_eq!(only.answer(0), only.answer(9));
}

#[test]
fn a_named_sequence_continues_with_then() {
    let scenario =
        parse("scenario = 'error-529-twice-then-text'\nthen = [{ error = { status = 400 } }]");
    let statuses: Vec<_> = (0..5)
        .map(
            |before| match &scenario.as_ref().unwrap().answer(before).reply {
                Reply::Error(error) => error.status,
                Reply::Message(_) | Reply::Redirect(_) | Reply::Literal(_) => 200,
            },
        )
        .collect();
    assert_eq!(statuses, [529, 529, 200, 400, 400]);
}

#[test]
fn an_error_takes_its_type_from_the_public_table_and_its_headers_from_the_record() {
    let error = |toml: &str| {
        let scenario = parse(&format!("error = {{ {toml} }}")).unwrap();
        let Reply::Error(error) = &scenario.answer(0).reply else {
            panic!("no error: {toml}")
        };
        error.clone()
    };
    for (status, kind) in [
        (400, ErrorType::InvalidRequest),
        (401, ErrorType::Authentication),
        (402, ErrorType::Billing),
        (403, ErrorType::Permission),
        (404, ErrorType::NotFound),
        (409, ErrorType::Conflict),
        (413, ErrorType::RequestTooLarge),
        (422, ErrorType::InvalidRequest),
        (429, ErrorType::RateLimit),
        (500, ErrorType::Api),
        (503, ErrorType::Api),
        (504, ErrorType::Timeout),
        (529, ErrorType::Overloaded),
    ] {
        assert_eq!(error(&format!("status = {status}")).kind, kind, "{status}");
    }
    let should_retry = |toml| error(toml).should_retry;
    assert_eq!(should_retry("status = 400"), Some(false));
    assert_eq!(should_retry("status = 429"), Some(true));
    assert_eq!(should_retry("status = 529"), None);
    assert_eq!(
        should_retry("status = 429, should_retry = false"),
        Some(false)
    );
    let stated =
        error("status = 500, type = 'overloaded_error', message = 'Busy', retry_after_s = 3");
    assert_eq!(
        (stated.kind, stated.message.as_str(), stated.retry_after_s),
        (ErrorType::Overloaded, "Busy", Some(3))
    );
}

#[test]
fn only_a_redirect_to_the_second_host_needs_one() {
    let needs = |to: &str| {
        let toml = format!("text = 'a'\nthen = [{{ redirect = {{ status = 307, to = '{to}' }} }}]");
        parse(&toml).unwrap().needs_elsewhere()
    };
    assert!(needs("{elsewhere}"));
    assert!(needs("{elsewhere}/v1/messages"));
    assert!(!needs("http://127.0.0.1:1/v1/messages"));
}

#[test]
fn unknown_keys_and_values_out_of_range_are_refused_by_name() {
    for (toml, message) in [
        ("txt = \"a\"", "txt"),
        ("text = \"\"", "no text"),
        ("deltas = 0", "must be 1 to 20"),
        ("deltas = 21", "must be 1 to 20"),
        ("deltas = \"x\"", "a number or a list"),
        ("blocks = []", "`blocks` has 0 blocks"),
        ("blocks = [{ type = 'image' }]", "unknown variant `image`"),
        ("blocks = [{ type = 'text', txt = 'a' }]", "txt"),
        ("blocks = [{ type = 'tool_use' }]", "name"),
        ("stop_reason = 'tired'", "tired"),
        ("stop_reason = 'stop_sequence'", "`stop_sequence` goes with"),
        (
            "stop_sequence = 'a'\nstop_reason = 'end_turn'",
            "`stop_sequence` goes with",
        ),
        ("chunk_bytes = 0", "at least 1"),
        ("chunk_cuts = [0]", "at least 1"),
        ("chunk_cuts = []", "names 0 cuts"),
        (
            "chunk_cuts = ['middle']",
            "\"mid-utf8\", \"mid-crlf\" or \"event-data\"",
        ),
        ("chunk_cuts = ['mid-utf8']", "the body has no such place"),
        (
            "text = 'é'\nchunk_cuts = ['mid-crlf']",
            "`mid-crlf`, but the body",
        ),
        ("chunk_bytes = 1\nchunk_seed = 1", "exclude each other"),
        ("chunk_delay_ms = 1", "needs `chunk_bytes`"),
        ("event_delay_ms = 60001", "`event_delay_ms` is 60001"),
        ("pings = 101", "`pings` is 101; at most 100"),
        ("unknown_events = 101", "`unknown_events` is 101"),
        ("framing = { line_end = 'lfcr' }", "lfcr"),
        ("faults = [{ fault = 'evil', event = 'ping' }]", "evil"),
        (
            "faults = [{ fault = 'missing', event = 'ping' }]",
            "names `ping` number 1",
        ),
        (
            "faults = [{ fault = 'missing', event = 'message_stop', nth = 0 }]",
            "counts from 1",
        ),
        (
            "faults = [{ fault = 'early', event = 'message_start' }]",
            "names `message_start` number 1",
        ),
        (
            "faults = [{ fault = 'wrong-index', event = 'content_block_delta' }]",
            "`index` goes with",
        ),
        (
            "faults = [{ fault = 'missing', event = 'message_stop', index = 1 }]",
            "`index` goes with",
        ),
        (
            "faults = [{ fault = 'wrong-index', event = 'message_stop', index = 1 }]",
            "has no `index`",
        ),
        (
            "faults = [{ fault = 'no-usage', event = 'message_stop' }]",
            "has no `usage`",
        ),
        (
            "error_event = { after = 'ping' }",
            "`error_event` names `ping`",
        ),
        ("error_event = { nth = 2 }", "`nth` needs the name"),
        ("cut = {}", "expected exactly one place"),
        (
            "cut = { byte = 1, at = 'after-head' }",
            "expected exactly one place",
        ),
        ("cut = { byte = 1, nth = 1 }", "`nth` needs the name"),
        (
            "cut = { after = 'content_block_delta', nth = 2 }",
            "`after` names `content_block_delta` number 2",
        ),
        (
            "stall = { inside = 'ping' }",
            "`inside` names `ping` number 1",
        ),
        ("stall = { byte = 1, by = 'fin' }", "unknown field `by`"),
        (
            "cut = { at = 'before-head', by = 'end' }",
            "a body cannot end",
        ),
        (
            "cut = { byte = 1 }\nstall = { byte = 1 }",
            "exclude each other",
        ),
        ("error = { status = 200 }", "it must be 400 to 599"),
        ("error = {}", "status"),
        ("error = { status = 500, type = 'odd_error' }", "odd_error"),
        (
            "error = { status = 500 }\npings = 1",
            "`pings` does not go with `error`",
        ),
        (
            "error = { status = 500 }\nliteral = { content_type = 'a/b' }",
            "`literal` does not go with `error`",
        ),
        (
            "error = { status = 500 }\ncut = { after = 'ping' }",
            "only a message has events",
        ),
        (
            "error = { status = 500 }\nchunk_cuts = ['event-data']",
            "the body has no such place",
        ),
        (
            "redirect = { status = 304, to = 'http://a/' }",
            "301, 302, 303, 307 or 308",
        ),
        ("redirect = { status = 307, to = '/v1' }", "`to` is `/v1`"),
        (
            "redirect = { status = 307, to = 'http:///v1' }",
            "`to` is `http:///v1`",
        ),
        (
            "redirect = { status = 307, to = 'http://a b/' }",
            "`to` is `http://a b/`",
        ),
        (
            "redirect = { status = 307, to = '{elsewhere}v1' }",
            "`to` is `{elsewhere}v1`",
        ),
        ("literal = { content_type = '' }", "visible ASCII"),
        (
            "literal = { content_type = 'a/b', status = 204 }",
            "but 204",
        ),
        ("scenario = 'nothing'", "there is no scenario `nothing`"),
        (
            "scenario = 'text'\npings = 0",
            "`pings` does not go with `scenario`",
        ),
        (
            "scenario = 'text'\nchunk_seed = 1",
            "`chunk_seed` does not go with `scenario`",
        ),
        (
            "scenario = 'text'\nerror = { status = 500 }",
            "`error` does not go with `scenario`",
        ),
        ("then = [{ then = [] }]", "is not allowed"),
    ] {
        let error = parse(toml).unwrap_err();
        assert!(error.contains(message), "{toml}: {error}");
    }
}

#[test]
fn too_long_lists_are_refused() {
    let many = |key: &str, item: &str, count| format!("{key} = [{}]", vec![item; count].join(", "));
    for (toml, message) in [
        (many("then", "{}", MAX_ANSWERS), "has 101 answers"),
        (
            many("blocks", "{ type = 'text' }", MAX_BLOCKS + 1),
            "has 101 blocks",
        ),
        (
            many(
                "faults",
                "{ fault = 'no-type', event = 'message_stop' }",
                MAX_FAULTS + 1,
            ),
            "has 101 entries",
        ),
        (many("chunk_cuts", "1", MAX_CUTS + 1), "names 10001 cuts"),
    ] {
        let error = parse(&toml).unwrap_err();
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn a_scenario_survives_its_wire_form() {
    for toml in [
        "text = \"abc\"\ndeltas = 2\nchunk_bytes = 3\nchunk_delay_ms = 4\npings = 1",
        "first_delay_ms = 1\nevent_delay_ms = 2\nunknown_events = 1\nchunk_cuts = [3, 'event-data']",
        "blocks = [{ type = 'thinking', deltas = ['a', 'b'] }, { type = 'tool_use', name = 'f', input = { a = [1, 'é'] }, deltas = 3 }]",
        "stop_sequence = 'x'\nframing = { bom = true, line_end = 'cr', data_space = false }",
        "faults = [{ fault = 'wrong-index', event = 'content_block_stop', index = 4 }, { fault = 'no-usage', event = 'message_delta' }]",
        "error_event = { after = 'message_start', type = 'api_error', message = 'x' }",
        "cut = { byte = 9, by = 'end' }\nthen = [{ stall = { inside = 'message_start' } }, { scenario = 'error-429' }]",
        "literal = { content_type = 'text/plain', body = 'x', status = 503 }\nthen = [{ redirect = { status = 303, to = 'https://a.example/' } }]",
    ] {
        let scenario = parse(toml).unwrap();
        let wire = serde_json::to_string(&scenario).unwrap();
        assert_eq!(
            serde_json::from_str::<Scenario>(&wire).unwrap(),
            scenario,
            "{wire}"
        );
    }
}
