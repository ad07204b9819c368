//! Parser of the stub's own output: the status of each answer and the provider's events in it.
//!
//! Reads the bytes that the socket accepted, so that the journal reports what was sent, not what a handler
//! intended to send.

use std::collections::VecDeque;

use httparse::{EMPTY_HEADER, Status};
use model::text::printable;
use serde_json::Value;

use super::framing::{Decoder, Framing};

/// Largest number of header lines in an answer; the stub's answers have fewer.
const MAX_HEADERS: usize = 32;

/// Request without its complete answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Awaited {
    pub(crate) request: u64,
    pub(crate) bodiless: bool,
}

/// One fact about the bytes written.
#[derive(Debug, PartialEq)]
pub(crate) enum AnswerFact {
    /// Status of a final answer, after its head.
    Status(u16),
    /// One complete event of a stream.
    Event { name: String, data: Value },
}

/// Parser of the answers of one connection.
#[derive(Debug)]
pub(crate) struct AnswerTap {
    state: State,
    /// Progress of the last final answer whose head was written.
    last: Option<Progress>,
}

/// Written part of an answer.
#[derive(Debug)]
struct Progress {
    /// Value of the `request-id` header; empty without one.
    id: Vec<u8>,
    /// Bytes of the body written so far.
    bytes: u64,
}

#[derive(Debug)]
enum State {
    Head(Vec<u8>),
    Body {
        decoder: Decoder,
        events: Option<Events>,
    },
    /// After an answer that this parser cannot read: no further facts.
    Lost,
}

impl AnswerTap {
    pub(crate) fn new() -> Self {
        Self {
            state: State::Head(Vec::new()),
            last: None,
        }
    }

    /// Returns the number of body bytes written for the answer with this `request-id`; `None` before its head.
    pub(crate) fn written(&self, id: &[u8]) -> Option<u64> {
        let last = self.last.as_ref().filter(|last| last.id == id)?;
        Some(last.bytes)
    }

    /// Parses written bytes. Answers belong to the requests of `awaited` in order; each complete answer removes
    /// its own.
    pub(crate) fn push(
        &mut self,
        mut bytes: &[u8],
        awaited: &mut VecDeque<Awaited>,
        wrote: &mut Vec<(u64, AnswerFact)>,
    ) {
        while !bytes.is_empty() {
            let current = awaited.front().copied();
            let taken = match &mut self.state {
                State::Head(head) => {
                    let taken = take_head(head, bytes);
                    if head.ends_with(b"\r\n\r\n") {
                        let head = std::mem::take(head);
                        let (state, id) = after_head(&head, current, wrote);
                        self.state = state;
                        self.last = id.map(|id| Progress { id, bytes: 0 });
                    }
                    taken
                }
                State::Body { decoder, events } => match decoder.step(bytes) {
                    Ok(piece) => {
                        if let Some(last) = &mut self.last {
                            last.bytes += piece.data.len() as u64;
                        }
                        if let (Some(events), Some(current)) = (events, current) {
                            events.push(&bytes[piece.data], |event| {
                                wrote.push((current.request, event))
                            });
                        }
                        piece.consumed
                    }
                    Err(_) => {
                        self.state = State::Lost;
                        0
                    }
                },
                State::Lost => return,
            };
            bytes = &bytes[taken..];
            if let State::Body { decoder, .. } = &self.state
                && decoder.is_done()
            {
                awaited.pop_front();
                self.state = State::Head(Vec::new());
            }
        }
    }
}

/// Appends bytes to the head up to its empty line. Returns the number of bytes taken.
fn take_head(head: &mut Vec<u8>, bytes: &[u8]) -> usize {
    for (at, byte) in bytes.iter().enumerate() {
        head.push(*byte);
        if head.ends_with(b"\r\n\r\n") {
            return at + 1;
        }
    }
    bytes.len()
}

/// Returns the state after the head, and the `request-id` of a final answer.
fn after_head(
    head: &[u8],
    current: Option<Awaited>,
    wrote: &mut Vec<(u64, AnswerFact)>,
) -> (State, Option<Vec<u8>>) {
    let mut headers = [EMPTY_HEADER; MAX_HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    let (Ok(Status::Complete(_)), Some(status), Some(current)) =
        (response.parse(head), response.code, current)
    else {
        return (State::Lost, None);
    };
    if (100..200).contains(&status) && status != 101 {
        return (State::Head(Vec::new()), None);
    }
    wrote.push((current.request, AnswerFact::Status(status)));
    let value = |name: &str| {
        response
            .headers
            .iter()
            .find(|header| header.name.eq_ignore_ascii_case(name))
            .map(|header| header.value)
    };
    let length = || {
        std::str::from_utf8(value("content-length")?)
            .ok()?
            .parse()
            .ok()
    };
    let framing = if current.bodiless || status == 204 || status == 304 {
        Framing::Length(0)
    } else if value("transfer-encoding").is_some() {
        Framing::Chunked
    } else {
        length().map_or(Framing::ToClose, Framing::Length)
    };
    let streams = value("content-type").is_some_and(|kind| kind.starts_with(b"text/event-stream"));
    let id = value("request-id").unwrap_or_default().to_vec();
    let body = State::Body {
        decoder: Decoder::new(framing),
        events: streams.then(Events::default),
    };
    (body, Some(id))
}

/// Parser of one answer's server-sent events, by the HTML standard. Lines end in LF, CR or CR LF. A byte order
/// mark may precede the first line. An empty line ends an event; an event without that line is dropped.
#[derive(Debug, Default)]
struct Events {
    line: Vec<u8>,
    /// The last byte was a carriage return, so a line feed now is part of the same line end.
    after_return: bool,
    /// At least one line has ended.
    past_first: bool,
    name: String,
    data: Option<Vec<u8>>,
}

impl Events {
    fn push(&mut self, bytes: &[u8], mut report: impl FnMut(AnswerFact)) {
        for byte in bytes {
            let after_return = std::mem::replace(&mut self.after_return, *byte == b'\r');
            match byte {
                b'\n' if after_return => {}
                b'\n' | b'\r' => {
                    let line = std::mem::take(&mut self.line);
                    let first = !std::mem::replace(&mut self.past_first, true);
                    let mark = "\u{feff}".as_bytes();
                    let line = line.strip_prefix(mark).filter(|_| first).unwrap_or(&line);
                    self.line(line, &mut report);
                }
                _ => self.line.push(*byte),
            }
        }
    }

    fn line(&mut self, line: &[u8], report: &mut impl FnMut(AnswerFact)) {
        let field = |name: &[u8]| {
            let value = line.strip_prefix(name)?.strip_prefix(b":")?;
            Some(value.strip_prefix(b" ").unwrap_or(value))
        };
        if let Some(name) = field(b"event") {
            self.name = printable(name);
        } else if let Some(value) = field(b"data") {
            match &mut self.data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                None => self.data = Some(value.to_vec()),
            }
        } else if line.is_empty() {
            let name = std::mem::take(&mut self.name);
            if let Some(data) = self.data.take() {
                let data = serde_json::from_slice(&data)
                    .unwrap_or_else(|_| Value::String(printable(&data)));
                report(AnswerFact::Event { name, data });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn follow(bytes: &[u8], awaited: &[Awaited], size: usize) -> (Vec<(u64, AnswerFact)>, usize) {
        let (mut tap, mut wrote, mut awaited) = (
            AnswerTap::new(),
            Vec::new(),
            awaited.iter().copied().collect(),
        );
        for piece in bytes.chunks(size) {
            tap.push(piece, &mut awaited, &mut wrote);
        }
        (wrote, awaited.len())
    }

    fn awaited(request: u64) -> Awaited {
        Awaited {
            request,
            bodiless: false,
        }
    }

    #[test]
    fn events_are_found_in_a_chunked_stream_at_any_split() {
        let wire = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n\
            12\r\nevent: ping\ndata: \r\n13\r\n{\"type\":\n\n\n\ndata: 1\r\n2\r\n\n\n\r\n0\r\n\r\n";
        for size in 1..wire.len() {
            let (wrote, left) = follow(wire, &[awaited(7)], size);
            assert_eq!(left, 0);
            assert_eq!(
                wrote,
                [
                    (7, AnswerFact::Status(200)),
                    (
                        7,
                        AnswerFact::Event {
                            name: "ping".to_owned(),
                            data: json!("{\"type\":")
                        }
                    ),
                    (
                        7,
                        AnswerFact::Event {
                            name: String::new(),
                            data: json!(1)
                        }
                    ),
                ]
            );
        }
    }

    #[test]
    fn answers_are_given_to_requests_in_order_and_interim_ones_to_none() {
        let wire = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 400 x\r\ncontent-length: 3\r\n\r\nabc\
            HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nHTTP/1.1 404 x\r\ncontent-length: 0\r\n\r\n";
        let requests = [
            awaited(1),
            Awaited {
                request: 2,
                bodiless: true,
            },
            awaited(3),
        ];
        let (wrote, left) = follow(wire, &requests, 5);
        assert_eq!(
            wrote,
            [
                (1, AnswerFact::Status(400)),
                (2, AnswerFact::Status(200)),
                (3, AnswerFact::Status(404))
            ]
        );
        assert_eq!(left, 0);
    }

    #[test]
    fn a_stream_up_to_the_close_is_read_without_an_end() {
        let wire = b"HTTP/1.0 200 OK\r\ncontent-type: text/event-stream\r\n\r\nevent: a\r\ndata: {}\r\n\r\n";
        let (wrote, left) = follow(wire, &[awaited(1)], 4);
        assert_eq!(
            wrote[1],
            (
                1,
                AnswerFact::Event {
                    name: "a".to_owned(),
                    data: json!({})
                }
            )
        );
        assert_eq!(left, 1);
    }

    /// Returns the events of a stream with this body, and checks that they do not depend on where the bytes are
    /// split.
    fn events(body: &[u8]) -> Vec<(String, Value)> {
        let mut wire = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n".to_vec();
        wire.extend_from_slice(body);
        let at = |size| {
            let (wrote, _) = follow(&wire, &[awaited(1)], size);
            let event = |(_, wrote)| match wrote {
                AnswerFact::Event { name, data } => Some((name, data)),
                AnswerFact::Status(_) => None,
            };
            wrote.into_iter().filter_map(event).collect::<Vec<_>>()
        };
        let whole = at(wire.len());
        for size in 1..wire.len() {
            assert_eq!(at(size), whole, "{size}");
        }
        whole
    }

    #[test]
    fn lines_end_in_any_of_the_three_ways_and_two_line_feeds_after_a_return_are_two() {
        let one = [("a".to_owned(), json!(1))];
        assert_eq!(events(b"event: a\ndata: 1\n\n"), one);
        assert_eq!(events(b"event: a\rdata: 1\r\r"), one);
        assert_eq!(events(b"event: a\r\ndata: 1\r\n\r\n"), one);
        assert_eq!(events(b"event: a\rdata: 1\n\r\n"), one);
        assert_eq!(events(b"event: a\r\ndata: 1\r\n"), []);
    }

    #[test]
    fn a_mark_before_the_first_line_comments_and_a_missing_space_change_nothing() {
        let one = [("a".to_owned(), json!(1))];
        assert_eq!(events("\u{feff}event: a\ndata: 1\n\n".as_bytes()), one);
        assert_eq!(events(b": comment\nevent:a\ndata:1\n\n"), one);
        let second = events("event: a\n\u{feff}data: 1\ndata: 2\n\n".as_bytes());
        assert_eq!(second, [("a".to_owned(), json!(2))]);
    }

    #[test]
    fn what_no_empty_line_ends_is_no_event() {
        assert_eq!(events(b"event: a\ndata: 1\n"), []);
        assert_eq!(
            events(b"event: a\ndata: {\"x\":\n\n"),
            [("a".to_owned(), json!("{\"x\":"))]
        );
    }

    #[test]
    fn how_much_of_an_answer_was_taken_is_known_by_its_identifier() {
        let mut tap = AnswerTap::new();
        let mut requests = VecDeque::from([awaited(1), awaited(2)]);
        let mut push =
            |tap: &mut AnswerTap, bytes: &[u8]| tap.push(bytes, &mut requests, &mut Vec::new());
        push(
            &mut tap,
            b"HTTP/1.1 200 OK\r\nrequest-id: req_1\r\ncontent-length: 5\r\n",
        );
        assert_eq!(tap.written(b"req_1"), None);
        push(&mut tap, b"\r\nab");
        assert_eq!(
            (tap.written(b"req_1"), tap.written(b"req_2")),
            (Some(2), None)
        );
        push(&mut tap, b"cdeHTTP/1.1 200 OK\r\n");
        assert_eq!(tap.written(b"req_1"), Some(5));
        push(
            &mut tap,
            b"request-id: req_2\r\ntransfer-encoding: chunked\r\n\r\n3\r\nab",
        );
        assert_eq!(
            (tap.written(b"req_1"), tap.written(b"req_2")),
            (None, Some(2))
        );
    }
}
