//! Built-in scenarios: one table, in the syntax of a case file.

use super::{Scenario, Summary};

/// Name, summary and `[stub]` table of each scenario.
#[rustfmt::skip]
const TABLE: &[(&str, &str, &str)] = &[
    // Valid answers.
    ("text", "one short text in six events", ""),
    ("long-text", "a text of 200 deltas", "deltas = 200\ntext = '''\nThe stub says one sentence, and then it says it again, so that there is enough to read. The stub says one sentence, and then it says it again, so that there is enough to read. The stub says one sentence, and then it says it again, so that there is enough to read. The stub says one sentence, and then it says it again, so that there is enough to read.\n'''"),
    ("thinking", "a thinking block with its signature, then a text", "blocks = [{ type = 'thinking', thinking = 'The user greets. I greet back.', deltas = 3 }, { type = 'text', text = 'Hello from the stub.', deltas = 2 }]"),
    ("tool-use", "a text, then a tool call in pieces of JSON", "blocks = [{ type = 'text', text = 'I look it up.' }, { type = 'tool_use', name = 'get_weather', input = { city = 'Zürich', days = 3 }, deltas = 4 }]"),
    ("max-tokens", "a tool call that the token limit cuts off: its block has no stop event", "blocks = [{ type = 'tool_use', name = 'get_weather', input = { city = 'Zürich' }, deltas = 2 }]\nstop_reason = 'max_tokens'\nfaults = [{ fault = 'missing', event = 'content_block_delta', nth = 3 }, { fault = 'missing', event = 'content_block_stop' }]"),
    ("pings", "three pings inside a text", "pings = 3\ndeltas = 2"),
    ("unknown-events", "two events of an unknown kind", "unknown_events = 2\ndeltas = 2"),

    // Errors of the public table.
    ("error-400", "400 invalid_request_error", "error = { status = 400 }"),
    ("error-401", "401 authentication_error", "error = { status = 401 }"),
    ("error-402", "402 billing_error", "error = { status = 402 }"),
    ("error-403", "403 permission_error", "error = { status = 403 }"),
    ("error-404", "404 not_found_error", "error = { status = 404 }"),
    ("error-409", "409 conflict_error", "error = { status = 409 }"),
    ("error-413", "413 request_too_large", "error = { status = 413 }"),
    ("error-429", "429 rate_limit_error", "error = { status = 429 }"),
    ("error-500", "500 api_error", "error = { status = 500 }"),
    ("error-503", "503 api_error", "error = { status = 503 }"),
    ("error-504", "504 timeout_error", "error = { status = 504 }"),
    ("error-529", "529 overloaded_error", "error = { status = 529 }"),
    ("error-400-retry-after", "400 with retry-after: 1", "error = { status = 400, retry_after_s = 1 }"),
    ("error-401-retry-after", "401 with retry-after: 1", "error = { status = 401, retry_after_s = 1 }"),
    ("error-402-retry-after", "402 with retry-after: 1", "error = { status = 402, retry_after_s = 1 }"),
    ("error-403-retry-after", "403 with retry-after: 1", "error = { status = 403, retry_after_s = 1 }"),
    ("error-404-retry-after", "404 with retry-after: 1", "error = { status = 404, retry_after_s = 1 }"),
    ("error-409-retry-after", "409 with retry-after: 1", "error = { status = 409, retry_after_s = 1 }"),
    ("error-413-retry-after", "413 with retry-after: 1", "error = { status = 413, retry_after_s = 1 }"),
    ("error-429-retry-after", "429 with retry-after: 1", "error = { status = 429, retry_after_s = 1 }"),
    ("error-500-retry-after", "500 with retry-after: 1", "error = { status = 500, retry_after_s = 1 }"),
    ("error-503-retry-after", "503 with retry-after: 1", "error = { status = 503, retry_after_s = 1 }"),
    ("error-504-retry-after", "504 with retry-after: 1", "error = { status = 504, retry_after_s = 1 }"),
    ("error-529-retry-after", "529 with retry-after: 1", "error = { status = 529, retry_after_s = 1 }"),
    ("error-429-then-text", "429 once, then a text", "scenario = 'error-429'\nthen = [{ scenario = 'text' }]"),
    ("error-529-twice-then-text", "529 twice, then a text", "scenario = 'error-529'\nthen = [{ scenario = 'error-529' }, { scenario = 'text' }]"),
    ("error-event", "an `error` event as the first of the stream", "error_event = {}"),
    ("error-event-mid", "an `error` event after the first delta", "deltas = 3\nerror_event = { after = 'content_block_delta' }"),

    // Answers that end early.
    ("cut-before-head", "the connection ends (FIN) before any byte of the answer", "cut = { at = 'before-head' }"),
    ("cut-after-head", "the connection ends after the head", "cut = { at = 'after-head' }"),
    ("cut-after-message-start", "the connection ends after message_start", "cut = { after = 'message_start' }"),
    ("cut-after-content-block-start", "the connection ends after content_block_start", "cut = { after = 'content_block_start' }"),
    ("cut-after-content-block-delta", "the connection ends after the first of three deltas", "deltas = 3\ncut = { after = 'content_block_delta' }"),
    ("cut-after-content-block-stop", "the connection ends after content_block_stop", "cut = { after = 'content_block_stop' }"),
    ("cut-after-message-delta", "the connection ends after message_delta", "cut = { after = 'message_delta' }"),
    ("cut-mid-event", "the connection ends inside the second of three deltas", "deltas = 3\ncut = { inside = 'content_block_delta', nth = 2 }"),
    ("reset-before-head", "the connection is reset (RST) before any byte of the answer", "cut = { at = 'before-head', by = 'reset' }"),
    ("reset-after-head", "the connection is reset after the head", "cut = { at = 'after-head', by = 'reset' }"),
    ("reset-mid-event", "the connection is reset inside the second of three deltas", "deltas = 3\ncut = { inside = 'content_block_delta', nth = 2, by = 'reset' }"),
    ("end-early", "the body ends after content_block_stop, as if complete", "cut = { after = 'content_block_stop', by = 'end' }"),
    ("stall-before-head", "no byte of the answer is sent", "stall = { at = 'before-head' }"),
    ("stall-mid-stream", "no byte is sent after the first of three deltas", "deltas = 3\nstall = { after = 'content_block_delta' }"),

    // Streams that violate the protocol.
    ("malformed-json", "the data of the second of three deltas is not JSON", "deltas = 3\nfaults = [{ fault = 'malformed-json', event = 'content_block_delta', nth = 2 }]"),
    ("invalid-utf8", "a byte that is not UTF-8 in the first of two deltas", "deltas = 2\nfaults = [{ fault = 'invalid-utf8', event = 'content_block_delta' }]"),
    ("duplicate-message-start", "two message_start events", "faults = [{ fault = 'duplicate', event = 'message_start' }]"),
    ("missing-message-start", "no message_start", "faults = [{ fault = 'missing', event = 'message_start' }]"),
    ("out-of-order", "content_block_delta before content_block_start", "faults = [{ fault = 'early', event = 'content_block_delta' }]"),
    ("wrong-index", "a delta for a block that was never started", "faults = [{ fault = 'wrong-index', event = 'content_block_delta', index = 7 }]"),
    ("overlapping-index", "two blocks with the index 0", "blocks = [{ type = 'text', text = 'One.' }, { type = 'text', text = 'Two.' }]\nfaults = [{ fault = 'wrong-index', event = 'content_block_start', nth = 2, index = 0 }, { fault = 'wrong-index', event = 'content_block_delta', nth = 2, index = 0 }, { fault = 'wrong-index', event = 'content_block_stop', nth = 2, index = 0 }]"),
    ("no-usage", "no usage in message_start and in message_delta", "faults = [{ fault = 'no-usage', event = 'message_start' }, { fault = 'no-usage', event = 'message_delta' }]"),
    ("no-type", "the data of the first of two deltas has no type", "deltas = 2\nfaults = [{ fault = 'no-type', event = 'content_block_delta' }]"),
    ("no-event-line", "the first of two deltas has no `event:` line", "deltas = 2\nfaults = [{ fault = 'no-event-line', event = 'content_block_delta' }]"),
    ("no-last-blank-line", "no empty line after message_stop", "framing = { last_blank_line = false }"),
    ("empty-200", "200, an empty event stream", "literal = { content_type = 'text/event-stream; charset=utf-8' }"),
    ("html-200", "200, an HTML page", "literal = { content_type = 'text/html; charset=utf-8', body = '<!doctype html><title>Sign in</title><p>Please sign in.</p>' }"),
    ("json-200", "200, truncated JSON", "literal = { content_type = 'application/json', body = '{\"type\":\"message\",\"id\":\"msg_1\",\"content\":[{\"type\":\"te' }"),

    // Valid streams that decoders often get wrong.
    ("split", "lines end in CR LF; the body is cut inside characters, inside line ends, and between the lines of each event", "text = 'Grüezi, 世界 🌍!'\ndeltas = 3\nframing = { line_end = 'crlf' }\nchunk_cuts = ['mid-utf8', 'mid-crlf', 'event-data']"),
    ("split-bytes", "the body byte by byte", "text = 'Grüezi, 世界 🌍!'\nchunk_bytes = 1"),
    ("split-seed", "the body in pieces of random sizes, equal in each run", "text = 'Grüezi, 世界 🌍!'\ndeltas = 5\nchunk_seed = 1"),
    ("crlf", "lines end in CR LF", "framing = { line_end = 'crlf' }"),
    ("cr", "lines end in CR alone", "framing = { line_end = 'cr' }"),
    ("bom", "a byte order mark before the first event", "framing = { bom = true }"),
    ("comments", "a comment before each event", "framing = { comments = true }"),
    ("data-without-space", "no space after `data:`", "framing = { data_space = false }"),

    // Redirects.
    ("redirect-302", "302 to the second host of the stub", "redirect = { status = 302, to = '{elsewhere}/v1/messages' }"),
    ("redirect-307", "307 to the second host of the stub", "redirect = { status = 307, to = '{elsewhere}/v1/messages' }"),
    ("redirect-308", "308 to the second host of the stub", "redirect = { status = 308, to = '{elsewhere}/v1/messages' }"),
];

/// Returns the scenario of that name.
pub(super) fn named(name: &str) -> Option<Scenario> {
    let (_, _, table) = TABLE.iter().find(|(known, _, _)| *known == name)?;
    // A test parses each table, so this cannot fail.
    toml::from_str(table).ok()
}

/// Lists all names, in the order of the table.
pub(super) fn names() -> impl Iterator<Item = Summary> {
    TABLE
        .iter()
        .map(|(name, summary, _)| Summary { name, summary })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_table_is_valid_survives_its_wire_form_and_has_a_name_of_its_own() {
        let mut seen = BTreeSet::new();
        for (name, summary, table) in TABLE {
            let scenario: Scenario =
                toml::from_str(table).unwrap_or_else(|error| panic!("{name}: {error}"));
            let wire = serde_json::to_string(&scenario).unwrap();
            let again: Scenario = serde_json::from_str(&wire).unwrap();
            assert_eq!(again, scenario, "{name}");
            assert!(seen.insert(name), "{name}");
            assert!(!summary.is_empty() && summary.is_ascii() && !summary.contains('\n'));
        }
    }
}
