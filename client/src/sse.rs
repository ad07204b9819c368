//! Decoder of server-sent events: bytes in, events out, for any split of the byte stream.
//!
//! Source: WHATWG HTML, section 9.2.6, "Interpreting an event stream". `id` and `retry` matter only for reconnection,
//! which a turn never does, so they are skipped like unknown fields. The decoder handles bytes; the reader of an event
//! checks its data for UTF-8.
//!
//! Knows no meaning of events, HTTP or records.

/// Longest accepted line in bytes, without its terminator; a comment is a line too.
pub(crate) const MAX_LINE_BYTES: usize = 1024 * 1024;
/// Largest joined data of one event, in bytes.
pub(crate) const MAX_EVENT_BYTES: usize = 1024 * 1024;

/// One dispatched event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    /// Value of the last `event` field; empty without such a field.
    pub(crate) name: Vec<u8>,
    /// Values of the `data` fields, joined by line feeds.
    pub(crate) data: Vec<u8>,
}

/// Reason why the stream cannot be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SseError {
    /// A line, complete or not, is longer than the limit.
    #[error("a line of the event stream is longer than {MAX_LINE_BYTES} bytes")]
    LineTooLong,
    /// The joined data of one event is larger than the limit.
    #[error("an event of the stream is larger than {MAX_EVENT_BYTES} bytes")]
    EventTooLarge,
}

/// State of the decoder between two pieces of the stream.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    /// Beginning of an incomplete line.
    line: Vec<u8>,
    name: Vec<u8>,
    /// Data so far; `None` before the first `data` field, because an empty field counts.
    data: Option<Vec<u8>>,
    /// True after a carriage return: a line feed directly after it belongs to it.
    after_cr: bool,
    /// True after the first line, where a byte order mark is no longer expected.
    started: bool,
}

impl Decoder {
    /// Makes a decoder at the start of a stream.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Consumes bytes from the front of `input` until an event is complete or `input` is empty.
    ///
    /// An event is returned at the byte that ends its blank line. After a carriage return, the decoder does not wait
    /// for a line feed.
    pub(crate) fn next_event(&mut self, input: &mut &[u8]) -> Result<Option<Event>, SseError> {
        loop {
            self.skip_line_feed_of_crlf(input);
            let Some(end) = input.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
                self.keep(input)?;
                *input = &[];
                return Ok(None);
            };
            let (piece, rest) = input.split_at(end);
            self.after_cr = rest.first() == Some(&b'\r');
            *input = rest.get(1..).unwrap_or_default();
            if let Some(event) = self.end_line(piece)? {
                return Ok(Some(event));
            }
        }
    }

    fn skip_line_feed_of_crlf(&mut self, input: &mut &[u8]) {
        let Some(first) = input.first() else { return };
        if self.after_cr && *first == b'\n' {
            *input = input.get(1..).unwrap_or_default();
        }
        self.after_cr = false;
    }

    fn keep(&mut self, piece: &[u8]) -> Result<(), SseError> {
        if self.line.len() + piece.len() > MAX_LINE_BYTES {
            return Err(SseError::LineTooLong);
        }
        self.line.extend_from_slice(piece);
        Ok(())
    }

    fn end_line(&mut self, piece: &[u8]) -> Result<Option<Event>, SseError> {
        self.keep(piece)?;
        let mut line = std::mem::take(&mut self.line);
        let event = self.read_line(&line);
        // The buffer is kept for the next line, unless it has grown large.
        if line.capacity() <= 4096 {
            line.clear();
            self.line = line;
        }
        event
    }

    fn read_line(&mut self, line: &[u8]) -> Result<Option<Event>, SseError> {
        let line = match line.strip_prefix(b"\xEF\xBB\xBF") {
            Some(after_mark) if !self.started => after_mark,
            _ => line,
        };
        self.started = true;
        if line.is_empty() {
            return Ok(self.dispatch());
        }
        let (field, value) = split_field(line);
        match field {
            b"event" => self.name = value.to_vec(),
            b"data" => self.append_data(value)?,
            // A comment is a line with an empty field name.
            _ => {}
        }
        Ok(None)
    }

    fn append_data(&mut self, value: &[u8]) -> Result<(), SseError> {
        let joined = match self.data.take() {
            None => value.to_vec(),
            Some(data) if data.len() + 1 + value.len() > MAX_EVENT_BYTES => {
                return Err(SseError::EventTooLarge);
            }
            Some(mut data) => {
                data.push(b'\n');
                data.extend_from_slice(value);
                data
            }
        };
        self.data = Some(joined);
        Ok(())
    }

    /// Handles a blank line: returns the event, or drops the name of an event without a `data` field.
    fn dispatch(&mut self) -> Option<Event> {
        let name = std::mem::take(&mut self.name);
        self.data.take().map(|data| Event { name, data })
    }
}

/// Splits a line at its first colon, and removes one space after the colon.
fn split_field(line: &[u8]) -> (&[u8], &[u8]) {
    match line.iter().position(|byte| *byte == b':') {
        None => (line, b""),
        Some(colon) => {
            let (field, rest) = line.split_at(colon);
            let value = rest.strip_prefix(b":").unwrap_or(rest);
            (field, value.strip_prefix(b" ").unwrap_or(value))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decode<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Result<Vec<Event>, SseError> {
        let mut decoder = Decoder::new();
        let mut events = Vec::new();
        for mut piece in pieces {
            while let Some(event) = decoder.next_event(&mut piece)? {
                events.push(event);
            }
        }
        Ok(events)
    }

    fn events_of(stream: &str) -> Vec<(String, String)> {
        decode([stream.as_bytes()])
            .unwrap()
            .into_iter()
            .map(|event| (text(event.name), text(event.data)))
            .collect()
    }

    fn text(bytes: Vec<u8>) -> String {
        String::from_utf8(bytes).unwrap()
    }

    fn pair(name: &str, data: &str) -> (String, String) {
        (name.to_owned(), data.to_owned())
    }

    #[test]
    fn each_line_ending_gives_the_same_event() {
        for ending in ["\n", "\r", "\r\n"] {
            let stream = "event: ping\ndata: {}\n\n".replace('\n', ending);
            assert_eq!(events_of(&stream), [pair("ping", "{}")], "{ending:?}");
        }
    }

    #[test]
    fn a_carriage_return_dispatches_without_waiting_for_a_line_feed() {
        assert_eq!(events_of("data: a\r\r"), [pair("", "a")]);
        assert_eq!(
            events_of("data: a\r\r\ndata: b\n\n"),
            [pair("", "a"), pair("", "b")]
        );
    }

    #[test]
    fn a_leading_byte_order_mark_is_not_part_of_the_first_field_name() {
        assert_eq!(
            events_of("\u{feff}event: ping\ndata: 1\n\n"),
            [pair("ping", "1")]
        );
    }

    #[test]
    fn a_later_byte_order_mark_is_part_of_a_field_name() {
        assert_eq!(events_of("data: 1\n\u{feff}data: 2\n\n"), [pair("", "1")]);
    }

    #[test]
    fn only_one_space_after_the_colon_is_dropped() {
        assert_eq!(
            events_of("data:x\n\ndata:  y\n\n"),
            [pair("", "x"), pair("", " y")]
        );
    }

    #[test]
    fn data_lines_are_joined_by_a_line_feed() {
        assert_eq!(
            events_of("data: {\ndata\ndata: }\n\n"),
            [pair("", "{\n\n}")]
        );
    }

    #[test]
    fn comments_and_unknown_fields_are_skipped() {
        assert_eq!(
            events_of(": hello\nid: 7\nretry: 1\nfoo\ndata: x\n\n"),
            [pair("", "x")]
        );
    }

    #[test]
    fn a_name_without_data_is_dropped_and_does_not_leak_into_the_next_event() {
        assert_eq!(events_of("event: error\n\ndata: x\n\n"), [pair("", "x")]);
    }

    #[test]
    fn an_event_without_its_blank_line_is_not_dispatched() {
        assert_eq!(events_of("event: message_stop\ndata: {}\n"), []);
    }

    #[test]
    fn an_endless_line_is_refused_in_bounded_memory() {
        let piece = vec![b'x'; 64 * 1024];
        let mut decoder = Decoder::new();
        let refused = (0..20).find_map(|_| decoder.next_event(&mut piece.as_slice()).err());
        assert_eq!(refused, Some(SseError::LineTooLong));
        assert!(decoder.line.len() <= MAX_LINE_BYTES);
    }

    #[test]
    fn endless_data_lines_are_refused() {
        let line = [b"data: ".as_slice(), &[b'x'; 1000], b"\n"].concat();
        let mut decoder = Decoder::new();
        let refused = (0..2000).find_map(|_| decoder.next_event(&mut line.as_slice()).err());
        assert_eq!(refused, Some(SseError::EventTooLarge));
    }

    #[test]
    fn a_line_of_exactly_the_limit_is_accepted() {
        let line = [vec![b':'; MAX_LINE_BYTES], b"\n".to_vec()].concat();
        assert_eq!(decode([line.as_slice()]), Ok(Vec::new()));
        let longer = [vec![b':'; MAX_LINE_BYTES + 1], b"\n".to_vec()].concat();
        assert_eq!(decode([longer.as_slice()]), Err(SseError::LineTooLong));
    }

    /// Generates text with every construct that a split may cut.
    fn stream() -> impl Strategy<Value = Vec<u8>> {
        let part = prop_oneof![
            Just("event: content_block_delta".to_owned()),
            Just("data: {\"text\":\"ä€😀\u{feff}\"}".to_owned()),
            Just("data:x".to_owned()),
            Just("data".to_owned()),
            Just(":".to_owned()),
            Just("\u{feff}".to_owned()),
            Just("\n".to_owned()),
            Just("\r".to_owned()),
            Just("\r\n".to_owned()),
            Just("\n\n".to_owned()),
            Just("\r\n\r\n".to_owned()),
            Just("\0".to_owned()),
            ".{0,6}",
        ];
        prop::collection::vec(part, 0..40).prop_map(|parts| parts.concat().into_bytes())
    }

    proptest! {
        #[test]
        fn any_split_of_the_stream_gives_the_same_events(
            stream in stream(),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        ) {
            let whole = decode([stream.as_slice()]);
            let bytewise = decode(stream.chunks(1));
            let mut ends: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
            ends.sort_unstable();
            ends.push(stream.len());
            let mut start = 0;
            let pieces = ends.into_iter().map(|end| {
                let piece = &stream[start..end];
                start = end;
                piece
            });
            prop_assert_eq!(&decode(pieces), &whole);
            prop_assert_eq!(&bytewise, &whole);
        }

        #[test]
        fn any_bytes_are_decoded_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let _ = decode([bytes.as_slice()]);
        }

        #[test]
        fn every_line_ending_may_be_mixed_with_every_other(
            endings in prop::collection::vec(prop::sample::select(vec!["\n", "\r\n", "\r"]), 3),
        ) {
            // A lone CR before a field line is a complete line end; before LF it is a part of one.
            let stream = format!(
                "event: a{}data: b{}{}data: c\n\n", endings[0], endings[1], endings[2],
            );
            let joined = endings[1] == "\r" && endings[2] == "\n";
            let expected = if joined {
                vec![pair("a", "b\nc")]
            } else {
                vec![pair("a", "b"), pair("", "c")]
            };
            prop_assert_eq!(events_of(&stream), expected);
        }
    }
}
