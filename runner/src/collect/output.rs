//! Standard output of a client: lines with the time of each read, and the records that they hold.
//!
//! Knows lines and limits, but not the meaning of the JSON: a line becomes a record, which the checks then
//! read. Reading only finds the line feeds, because the answer to a request waits for it. The loop makes the
//! records between two steps, so that the bytes kept do not grow with the bytes written.

mod errors;
mod spool;

use model::evidence::{Before, Line, Record, Sighting, UNFINISHED};
use model::journal::Content;
use model::secret::{Form, Scanner, SecretScanner};
use policy::quantity::show_size;
use serde_json::Value;

pub(crate) use errors::Errors;
pub(crate) use spool::{Fidelity, Shown, Spool};

/// Longest line that can be a record, in bytes: the longest text of a scenario, with an escape for each character
/// and in two fields.
const LINE_BYTES: usize = 4 << 20;
/// Largest number of JSON values in one line. Each empty string is three bytes, but much more memory once
/// parsed.
const LINE_VALUES: usize = 20_000;
/// Largest number of bytes in all records together, as written; the reason of a line that is no record counts as well.
const MAX_BYTES: usize = 16 << 20;
/// Largest weight of the JSON values in all records together ([`weight`](model::shape::weight)).
const MAX_VALUES: usize = 400_000;
/// Bytes of lines that wait to be parsed. A run with fewer parses them after its end.
const WAITING_BYTES: usize = 64 * 1024;

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
    limit: u64,
    max_lines: usize,
    /// Number of bytes within the limits.
    bytes: u64,
    over: Option<Over>,
    /// Bytes that wait to be parsed.
    waiting: Vec<u8>,
    /// Offset of each waiting line feed, and the time of its read in microseconds.
    ends: Vec<(usize, u64)>,
    /// Dropped beginning of the waiting line, if the line is too long for a record.
    long: Option<Long>,
    records: Vec<Record>,
    left: Left,
    secrets: SecretScanner,
    sightings: Vec<Sighting>,
    /// Search of the whole stream, for a credential split over two lines.
    scanner: Scanner,
    copy: Option<Spool>,
}

/// Dropped part of a line.
#[derive(Debug)]
struct Long {
    bytes: u64,
    scanner: Scanner,
}

/// Rest of the limits on all records together.
#[derive(Debug)]
struct Left {
    bytes: usize,
    values: usize,
}

impl Output {
    /// Creates an output that takes at most `bytes` bytes and `lines` lines.
    pub(crate) fn new(bytes: u64, lines: u64, secrets: &SecretScanner) -> Self {
        Self {
            limit: bytes,
            max_lines: usize::try_from(lines).unwrap_or(usize::MAX),
            bytes: 0,
            over: None,
            waiting: Vec::new(),
            ends: Vec::new(),
            long: None,
            records: Vec::new(),
            left: Left {
                bytes: MAX_BYTES,
                values: MAX_VALUES,
            },
            secrets: secrets.clone(),
            sightings: Vec::new(),
            scanner: Scanner::new(secrets),
            copy: None,
        }
    }

    /// Copies all bytes within the limits to `copy`.
    pub(super) fn copy_to(&mut self, copy: Option<Spool>) {
        self.copy = copy;
    }

    /// Appends bytes read at `at_us`. Bytes beyond the limit are dropped, and [`Output::over`] then names the
    /// limit.
    pub(crate) fn push(&mut self, piece: &[u8], at_us: u64) {
        if self.over.is_some() {
            return;
        }
        let space = usize::try_from(self.limit - self.bytes).unwrap_or(usize::MAX);
        let kept = piece.get(..space).unwrap_or(piece);
        let base = self.waiting.len();
        let feeds = kept.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        self.ends.extend(
            feeds
                .map(|(index, _)| (base + index, at_us))
                .take(self.max_lines - self.records.len() - self.ends.len()),
        );
        let within = if self.lines() == self.max_lines {
            let end = self.ends.last().map_or(0, |(end, _)| end + 1);
            let space = end.saturating_sub(base);
            kept.get(..space).unwrap_or(kept)
        } else {
            kept
        };
        self.over = if within.len() < kept.len() {
            Some(Over::Lines)
        } else {
            (kept.len() < piece.len()).then_some(Over::Bytes)
        };
        self.waiting.extend_from_slice(within);
        self.bytes += within.len() as u64;
    }

    /// Returns the limit that was exceeded.
    pub(crate) fn over(&self) -> Option<Over> {
        self.over
    }

    /// Number of complete lines so far.
    pub(crate) fn lines(&self) -> usize {
        self.records.len() + self.ends.len()
    }

    /// Number of complete lines read before `at_us`.
    pub(crate) fn lines_before(&self, at_us: u64) -> usize {
        let parsed = self.records.partition_point(|line| line.at_us < at_us);
        parsed + self.ends.partition_point(|(_, read_us)| *read_us < at_us)
    }

    /// Makes records of the complete lines, if many bytes wait. No request waits while the loop calls it.
    pub(super) fn parse_waiting(&mut self) {
        if self.waiting.len() >= WAITING_BYTES {
            self.parse();
        }
    }

    fn parse(&mut self) {
        let (mut waiting, mut ends) = (
            std::mem::take(&mut self.waiting),
            std::mem::take(&mut self.ends),
        );
        let mut start = 0;
        for (end, at_us) in ends.drain(..) {
            self.end_line(waiting.get(start..end).unwrap_or_default(), at_us);
            start = end + 1;
        }
        if self.long.is_some() || waiting.len() - start > LINE_BYTES {
            let open = waiting.get(start..).unwrap_or_default();
            let long = self.long.get_or_insert_with(|| Long::new(&self.secrets));
            long.push(open);
            start = waiting.len();
        }
        self.leave(waiting.get(..start).unwrap_or_default());
        waiting.drain(..start);
        (self.waiting, self.ends) = (waiting, ends);
    }

    /// Searches and copies bytes of the stream that are then dropped.
    fn leave(&mut self, bytes: &[u8]) {
        if self.sightings.is_empty() {
            self.scanner.push(bytes);
        }
        if let Some(copy) = &mut self.copy {
            copy.push(bytes);
        }
    }

    fn end_line(&mut self, rest: &[u8], at_us: u64) {
        let (bytes, form) = self.measure(rest);
        let line = if bytes > LINE_BYTES as u64 {
            not_json(format!("longer than {}", show_size(LINE_BYTES as u64)))
        } else if form.is_some() || self.secrets.find_hidden(rest).is_some() {
            self.left.parse(&self.secrets.redact_bytes(rest))
        } else {
            self.left.parse(rest)
        };
        self.add(bytes, form, at_us, line);
    }

    /// Returns the length of a line that ends with `rest`, and the form of the credential in it.
    fn measure(&mut self, rest: &[u8]) -> (u64, Option<Form>) {
        match self.long.take() {
            Some(mut long) => {
                long.push(rest);
                (long.bytes, long.scanner.found())
            }
            None => (rest.len() as u64, self.secrets.find(rest)),
        }
    }

    fn add(&mut self, bytes: u64, form: Option<Form>, at_us: u64, line: Line) {
        let seq = self.records.len() as u64 + 1;
        if let Some(form) = form {
            self.sightings.push(Sighting {
                place: format!("stdout line {seq}"),
                form: form.to_string(),
            });
        }
        self.records.push(Record {
            seq,
            at_us,
            bytes,
            // Known after the end of the run.
            before: Before::None,
            line,
        });
    }

    /// Ends the copy, and returns it with the credential redacted.
    pub(crate) fn copied(&mut self) -> Option<std::io::Result<Shown>> {
        let mut copy = self.copy.take()?;
        copy.push(&self.waiting);
        Some(copy.finish(self.over.is_some()))
    }

    /// Returns the records, and the places of the credential in them. `before` has the number of records before
    /// the message request.
    pub(crate) fn into_records(
        mut self,
        before: Boundaries,
        at_us: u64,
    ) -> (Vec<Record>, Vec<Sighting>) {
        self.parse();
        let open = std::mem::take(&mut self.waiting);
        if self.long.is_some() || !open.is_empty() {
            let (bytes, form) = self.measure(&open);
            self.add(bytes, form, at_us, not_json(UNFINISHED.to_owned()));
            self.leave(&open);
        }
        for (index, record) in self.records.iter_mut().enumerate() {
            record.before = if index < before.connect {
                Before::Connect
            } else if index < before.post {
                Before::Post
            } else {
                Before::None
            };
        }
        // A credential split over two lines is in neither of them.
        if self.sightings.is_empty()
            && let Some(form) = self.scanner.found()
        {
            self.sightings.push(Sighting {
                place: "stdout".to_owned(),
                form: form.to_string(),
            });
        }
        (self.records, self.sightings)
    }
}

impl Long {
    fn new(secrets: &SecretScanner) -> Self {
        Self {
            bytes: 0,
            scanner: Scanner::new(secrets),
        }
    }

    fn push(&mut self, piece: &[u8]) {
        self.bytes += piece.len() as u64;
        self.scanner.push(piece);
    }
}

fn not_json(reason: String) -> Line {
    Line::NotJson { reason }
}

impl Left {
    /// Parses a line, if all records together stay within their limits.
    fn parse(&mut self, line: &[u8]) -> Line {
        let Some(left) = self.bytes.checked_sub(line.len()) else {
            return not_json(format!(
                "more than {} of records together",
                show_size(MAX_BYTES as u64)
            ));
        };
        let line = self.parse_json(line);
        self.bytes = match &line {
            Line::Record(_) => left,
            Line::NotJson { reason } => self.bytes.saturating_sub(reason.len()),
        };
        line
    }

    fn parse_json(&mut self, line: &[u8]) -> Line {
        let bounds = model::shape::Bounds {
            depth: usize::MAX,
            values: LINE_VALUES.min(self.values),
        };
        match model::shape::describe(line, bounds, None) {
            // Readers take the first or the last of two equal keys, so such a line has two meanings.
            Content::DuplicateKey { path } => return not_json(format!("duplicate key {path}")),
            Content::Other { reason } => return not_json(reason),
            Content::Json { .. } | Content::Empty => {}
        }
        match serde_json::from_slice::<Value>(line) {
            Ok(value) => {
                self.values -= model::shape::weight(&value).min(self.values);
                if value.is_object() {
                    Line::Record(value)
                } else {
                    not_json("JSON, but no object".to_owned())
                }
            }
            Err(error) => not_json(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests;
