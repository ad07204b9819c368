//! Standard output and standard error of the client, as bytes with the time of each read.
//!
//! Knows lines and limits, but not the meaning of the JSON: a line becomes a record, which the checks then
//! read.

use model::evidence::{Before, Line, Record, Sighting, Stderr, UNFINISHED};
use model::journal::Content;
use model::secret::SecretScanner;
use serde_json::Value;

/// Largest number of JSON values in one line. Each empty string is three bytes, but much more memory once
/// parsed.
const LINE_VALUES: usize = 20_000;
/// Largest number of JSON values in all lines together.
const MAX_VALUES: usize = 250_000;
/// Part of standard error that a report shows, in bytes.
const TAIL_BYTES: usize = 4096;

/// Number of lines on standard output before the message request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Boundaries {
    /// Lines when the request's connection was made.
    pub(crate) connect: usize,
    /// Lines when the request's first byte was read.
    pub(crate) post: usize,
}

/// Limit of standard output that was exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Over {
    Bytes,
    /// A limit of its own, because the shortest lines take the most memory for their bytes.
    Lines,
}

/// Standard output so far.
#[derive(Debug)]
pub(crate) struct Output {
    bytes: Vec<u8>,
    limit: usize,
    max_lines: usize,
    /// Offset of each complete line's line feed, and the time of its read in microseconds.
    ends: Vec<(usize, u64)>,
    over: Option<Over>,
}

impl Output {
    /// Creates an output that keeps at most `bytes` bytes and `lines` lines.
    pub(crate) fn new(bytes: u64, lines: u64) -> Self {
        let to_usize = |limit| usize::try_from(limit).unwrap_or(usize::MAX);
        Self {
            bytes: Vec::new(),
            limit: to_usize(bytes),
            max_lines: to_usize(lines),
            ends: Vec::new(),
            over: None,
        }
    }

    /// Appends bytes read at `at_us`. Bytes beyond the limit are dropped, and [`Output::over`] then names the
    /// limit.
    pub(crate) fn push(&mut self, piece: &[u8], at_us: u64) {
        if self.over.is_some() {
            return;
        }
        let space = self.limit - self.bytes.len();
        let kept = piece.get(..space).unwrap_or(piece);
        let base = self.bytes.len();
        let feeds = kept.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        self.ends.extend(
            feeds
                .map(|(index, _)| (base + index, at_us))
                .take(self.max_lines - self.ends.len()),
        );
        let is_full = self.ends.len() == self.max_lines;
        let last = self.ends.last().filter(|_| is_full);
        let within = last.map_or(kept, |(end, _)| {
            let space = (end + 1).saturating_sub(base);
            kept.get(..space).unwrap_or(kept)
        });
        self.over = if within.len() < kept.len() {
            Some(Over::Lines)
        } else {
            (kept.len() < piece.len()).then_some(Over::Bytes)
        };
        self.bytes.extend_from_slice(within);
    }

    /// Returns the limit that was exceeded.
    pub(crate) fn over(&self) -> Option<Over> {
        self.over
    }

    /// Returns all kept bytes, with the credential redacted.
    pub(crate) fn shown(&self, secrets: &SecretScanner) -> Shown {
        shown(&self.bytes, self.over.is_some(), secrets)
    }

    /// Number of complete lines so far.
    pub(crate) fn lines(&self) -> usize {
        self.ends.len()
    }

    /// Number of complete lines read before `at_us`.
    pub(crate) fn lines_before(&self, at_us: u64) -> usize {
        self.ends.partition_point(|(_, read_us)| *read_us < at_us)
    }

    /// Returns the records, and the places of the credential in them. `before` has the number of records before
    /// the message request.
    pub(crate) fn into_records(
        self,
        before: Boundaries,
        at_us: u64,
        secrets: &SecretScanner,
    ) -> (Vec<Record>, Vec<Sighting>) {
        let mut records = Vec::with_capacity(self.ends.len());
        let mut sightings = Vec::new();
        let mut remaining = MAX_VALUES;
        let mut start = 0;
        let last = self.bytes.len();
        let open_end = self.ends.last().map_or(0, |(end, _)| end + 1) < last;
        let open_line = open_end.then_some((last, at_us));
        for (index, (end, at_us)) in self.ends.iter().copied().chain(open_line).enumerate() {
            let seq = index as u64 + 1;
            let line = self.bytes.get(start..end).unwrap_or_default();
            start = end + 1;
            if let Some(form) = secrets.find(line) {
                sightings.push(Sighting {
                    place: format!("stdout line {seq}"),
                    form: form.to_string(),
                });
            }
            let complete = index < self.ends.len();
            records.push(Record {
                seq,
                at_us,
                bytes: line.len() as u64,
                before: if index < before.connect {
                    Before::Connect
                } else if index < before.post {
                    Before::Post
                } else {
                    Before::None
                },
                line: if complete {
                    parse(&secrets.redact_bytes(line), &mut remaining)
                } else {
                    unfinished()
                },
            });
        }
        // A credential split over two lines is in neither of them, so the whole stream is searched as well.
        if sightings.is_empty()
            && let Some(form) = secrets.find(&self.bytes)
        {
            sightings.push(Sighting {
                place: "stdout".to_owned(),
                form: form.to_string(),
            });
        }
        (records, sightings)
    }
}

/// Output for a report, with the credential redacted.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) bytes: Vec<u8>,
    pub(crate) fidelity: Fidelity,
}

/// Relation of shown output to the bytes that the client wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fidelity {
    /// All of them, unchanged.
    Exact,
    /// All of them, some of which are redacted.
    Redacted,
    /// The first part.
    Cut,
}

/// Redacts output. If the bytes are cut, also drops the end that could be the beginning of a redacted text.
fn shown(bytes: &[u8], is_cut: bool, secrets: &SecretScanner) -> Shown {
    let mut shown = secrets.redact_bytes(bytes);
    let fidelity = match () {
        () if is_cut => Fidelity::Cut,
        () if shown == bytes => Fidelity::Exact,
        () => Fidelity::Redacted,
    };
    if is_cut {
        shown.truncate(shown.len().saturating_sub(secrets.longest()));
    }
    Shown {
        bytes: shown,
        fidelity,
    }
}

fn unfinished() -> Line {
    Line::NotJson {
        reason: UNFINISHED.to_owned(),
    }
}

/// Parses a line, if it has no more values than `remaining`.
fn parse(line: &[u8], remaining: &mut usize) -> Line {
    let bounds = model::shape::Bounds {
        depth: usize::MAX,
        values: LINE_VALUES.min(*remaining),
    };
    match model::shape::describe(line, bounds, None) {
        // Readers take the first or the last of two equal keys, so such a line has two meanings.
        Content::DuplicateKey { path } => {
            return Line::NotJson {
                reason: format!("duplicate key {path}"),
            };
        }
        Content::Other { reason } => return Line::NotJson { reason },
        Content::Json { .. } | Content::Empty => {}
    }
    match serde_json::from_slice::<Value>(line) {
        Ok(value) => {
            *remaining -= model::shape::values(&value).min(*remaining);
            if value.is_object() {
                Line::Record(value)
            } else {
                Line::NotJson {
                    reason: "JSON, but no object".to_owned(),
                }
            }
        }
        Err(error) => Line::NotJson {
            reason: error.to_string(),
        },
    }
}

/// Kept part of a stream without records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// The last part, for a report.
    Tail,
    /// Also the first bytes, up to this number, for a bundle of evidence.
    UpTo(u64),
}

/// Standard error so far, or output without records: counted, searched for the credential, and kept in part.
#[derive(Clone, Debug)]
pub(crate) struct Errors {
    bytes: u64,
    tail: Vec<u8>,
    /// Kept bytes of the tail: more than are shown, so that a redacted text is complete at the cut.
    kept: usize,
    scanner: model::secret::Scanner,
    /// First bytes, up to the extent.
    head: Vec<u8>,
    extent: Extent,
}

impl Errors {
    pub(crate) fn new(secrets: &SecretScanner, extent: Extent) -> Self {
        Self {
            bytes: 0,
            tail: Vec::new(),
            kept: TAIL_BYTES + secrets.longest(),
            scanner: model::secret::Scanner::new(secrets),
            head: Vec::new(),
            extent,
        }
    }

    /// Appends bytes that were read.
    pub(crate) fn push(&mut self, piece: &[u8]) {
        self.bytes += piece.len() as u64;
        self.scanner.push(piece);
        if let Extent::UpTo(limit) = self.extent {
            let limit = usize::try_from(limit).unwrap_or(usize::MAX);
            let space = limit.saturating_sub(self.head.len());
            self.head
                .extend_from_slice(piece.get(..space).unwrap_or(piece));
        }
        self.tail.extend_from_slice(piece);
        if self.tail.len() > 2 * self.kept {
            self.tail.drain(..self.tail.len() - self.kept);
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the first bytes as far as kept, with the credential redacted.
    pub(crate) fn shown(&self, secrets: &SecretScanner) -> Shown {
        let is_cut = self.bytes > self.head.len() as u64;
        shown(&self.head, is_cut, secrets)
    }

    /// Returns the sighting of the credential in this stream, if there was one.
    pub(crate) fn sighting(&self, stream: &str) -> Option<Sighting> {
        self.scanner.found().map(|form| Sighting {
            place: stream.to_owned(),
            form: form.to_string(),
        })
    }

    /// Returns the evidence, and the sighting of the credential if there was one.
    pub(crate) fn into_stderr(self, secrets: &SecretScanner) -> (Stderr, Option<Sighting>) {
        let sighting = self.sighting("stderr");
        let text = secrets.redact(&String::from_utf8_lossy(&self.tail));
        let from = text.len().saturating_sub(TAIL_BYTES);
        let from = (from..text.len())
            .find(|index| text.is_char_boundary(*index))
            .unwrap_or(text.len());
        let tail = text.get(from..).unwrap_or_default().to_owned();
        (
            Stderr {
                bytes: self.bytes,
                tail,
            },
            sighting,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "runner-key-0123456789abcdef";

    fn secrets() -> SecretScanner {
        SecretScanner::new(SECRET).unwrap()
    }

    fn records(pieces: &[&str], post: usize) -> (Vec<Record>, Vec<Sighting>) {
        let mut output = Output::new(1024, 100);
        for (index, piece) in pieces.iter().enumerate() {
            output.push(piece.as_bytes(), index as u64);
        }
        output.into_records(Boundaries { connect: 0, post }, 99, &secrets())
    }

    #[test]
    fn a_line_is_a_record_from_the_moment_its_line_feed_was_read() {
        let (records, _) = records(&["{\"a\":", "1}\n{\"b\":2}\n"], 1);
        assert_eq!(records.len(), 2);
        assert_eq!(
            (records[0].at_us, records[0].before, records[0].bytes),
            (1, Before::Post, 7)
        );
        assert_eq!((records[1].at_us, records[1].before), (1, Before::None));
        assert_eq!(records[1].line, Line::Record(serde_json::json!({"b": 2})));
    }

    #[test]
    fn what_is_no_object_or_has_no_line_feed_is_no_record() {
        let (records, _) = records(&["[1]\nnonsense\n\n{\"a\":1}"], 0);
        assert_eq!(records.len(), 4);
        assert!(
            records
                .iter()
                .all(|record| matches!(record.line, Line::NotJson { .. }))
        );
    }

    #[test]
    fn a_line_that_says_two_things_is_no_record() {
        let (records, _) = records(
            &["{\"is_error\":true,\"is_error\":false}\n{\"a\":{\"b\":1,\"b\":1}}\n"],
            0,
        );
        assert!(records.iter().all(
            |record| matches!(&record.line, Line::NotJson { reason } if reason.contains("duplicate key"))
        ));
    }

    #[test]
    fn beyond_the_limit_nothing_is_kept_and_it_says_so() {
        let mut output = Output::new(4, 100);
        output.push(b"ab\n", 0);
        assert_eq!(output.over(), None);
        output.push(b"cdef\n", 0);
        assert_eq!(output.over(), Some(Over::Bytes));
        assert_eq!(output.bytes, b"ab\nc");
    }

    #[test]
    fn more_lines_than_are_kept_are_over_the_limit() {
        let mut output = Output::new(1 << 20, 100);
        output.push(&[b'\n'; 99], 0);
        output.push(b"a\n", 0);
        assert_eq!(output.over(), None);
        output.push(b"b", 0);
        assert_eq!(output.over(), Some(Over::Lines));
        assert_eq!((output.lines(), output.bytes.len()), (100, 101));
        let mut output = Output::new(1 << 20, 100);
        output.push(&[b'\n'; 101], 0);
        assert_eq!(output.over(), Some(Over::Lines));
        assert_eq!((output.lines(), output.bytes.len()), (100, 100));
    }

    #[test]
    fn a_line_of_more_values_than_are_read_is_no_record() {
        let list = |count: usize| format!("{{\"a\":[0{}]}}\n", ",0".repeat(count));
        let mut output = Output::new(1 << 20, 100);
        output.push(list(LINE_VALUES - 3).as_bytes(), 0);
        output.push(list(LINE_VALUES).as_bytes(), 0);
        // Each of these lines is within the limit of a line, but all together exceed the limit of all lines.
        (0..20).for_each(|_| output.push(list(LINE_VALUES - 3).as_bytes(), 0));
        let none = Boundaries {
            connect: 0,
            post: 0,
        };
        let (records, _) = output.into_records(none, 0, &secrets());
        let read = |record: &Record| matches!(record.line, Line::Record(_));
        assert!(read(&records[0]) && !read(&records[1]));
        assert_eq!(records.iter().filter(|one| read(one)).count(), 12);
    }

    #[test]
    fn the_credential_is_named_by_line_and_replaced() {
        let line = format!("{{\"key\":\"{SECRET}\"}}\n");
        let (records, sightings) = records(&["{}\n", &line], 0);
        assert_eq!(sightings[0].place, "stdout line 2");
        assert_eq!(
            records[1].line,
            Line::Record(serde_json::json!({"key": "<credential>"}))
        );
    }

    #[test]
    fn a_value_that_is_cut_by_the_beginning_of_the_tail_is_not_shown_in_part() {
        let value = "v".repeat(30) + "alue that is hidden";
        let secrets = secrets().hiding([("VALUE", value.as_str())]);
        for behind in [TAIL_BYTES - 20, TAIL_BYTES - 1, TAIL_BYTES] {
            let mut errors = Errors::new(&secrets, Extent::Tail);
            errors.push(&b"x".repeat(50_000));
            errors.push(value.as_bytes());
            errors.push(&b"y".repeat(behind));
            let (stderr, sighting) = errors.into_stderr(&secrets);
            assert!(!stderr.tail.contains("hidden"), "{behind}");
            assert_eq!(sighting, None);
        }
    }

    #[test]
    fn the_tail_of_standard_error_is_short_and_holds_no_credential() {
        let mut errors = Errors::new(&secrets(), Extent::Tail);
        for _ in 0..10_000 {
            errors.push(b"some words. ");
        }
        errors.push(SECRET.as_bytes());
        let (stderr, sighting) = errors.into_stderr(&secrets());
        assert_eq!(stderr.bytes, 120_000 + SECRET.len() as u64);
        assert!(stderr.tail.len() <= TAIL_BYTES && stderr.tail.ends_with("<credential>"));
        assert_eq!(sighting.unwrap().place, "stderr");
    }

    #[test]
    fn what_is_kept_from_the_beginning_ends_before_a_credential_that_is_cut() {
        let secrets = secrets();
        let text = format!("begin {SECRET} middle ").repeat(40) + SECRET;
        for cut in 0..text.len() as u64 {
            let mut errors = Errors::new(&secrets, Extent::UpTo(cut));
            let mut output = Output::new(cut, 100);
            for piece in text.as_bytes().chunks(7) {
                errors.push(piece);
                output.push(piece, 0);
            }
            for shown in [errors.shown(&secrets), output.shown(&secrets)] {
                let shown_text = String::from_utf8(shown.bytes).unwrap();
                assert!(
                    shown.fidelity == Fidelity::Cut && !shown_text.contains("runner-"),
                    "{cut}"
                );
            }
        }
        let mut errors = Errors::new(&secrets, Extent::UpTo(text.len() as u64));
        errors.push(text.as_bytes());
        let whole = text.replace(SECRET, "<credential>").into_bytes();
        let expected = Shown {
            bytes: whole,
            fidelity: Fidelity::Redacted,
        };
        assert_eq!(errors.shown(&secrets), expected);
    }
}
