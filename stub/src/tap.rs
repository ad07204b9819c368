//! Parser of a connection's bytes: turns them into facts for the journal.
//!
//! [`RequestTap`] parses the client's bytes, [`AnswerTap`](answer::AnswerTap) the stub's. Both are pure: the facts
//! do not depend on where the bytes are split. Neither knows sockets, time, the journal's numbers or the HTTP
//! server.
//!
//! Every byte read is either part of a reported fact (a well-formed head, a body, the framing that the body needs)
//! or *unaccounted*:
//! - empty lines before a request;
//! - white space around header values, except one space before each if the first header of the head has it;
//! - leading zeros of Content-Length;
//! - chunk extensions, trailers, leading zeros of chunk sizes, hexadecimal letters in another case than the
//!   first;
//! - a malformed or cut-off head, and every byte after a malformed head or malformed framing.
//!
//! Not reported: the spelling that a whole head or body uses consistently (`a:b` or `a: b`, `a` or `A` in chunk
//! sizes), the borders of chunks, and the borders of TCP segments.

pub(crate) mod answer;
pub(crate) mod body;
pub(crate) mod framing;
pub(crate) mod head;
mod redact;

use model::journal::{Body, Head, Host};
use model::secret::{Belongs, Scanner, SecretScanner};

use crate::limits::{Budget, Limits};
use body::BodyTap;
use framing::{Framing, FramingError};
use head::HeadError;

/// One fact about the bytes read.
#[derive(Debug, PartialEq)]
pub(crate) enum RequestFact {
    /// The first byte of a request arrived.
    Began,
    /// A head ended. `bodiless` means that the answer has no body.
    Head { head: Head, bodiless: bool },
    /// A body ended.
    Body(Body),
    /// The credential was found in a place where it is not allowed.
    Sighting(String),
}

/// Parser of the requests of one connection.
#[derive(Debug)]
pub(crate) struct RequestTap {
    limits: Limits,
    credential: Option<SecretScanner>,
    belongs: Belongs,
    host: Host,
    budget: Budget,
    state: State,
    bytes: u64,
    unaccounted: u64,
    requests: u64,
    /// Searches the unaccounted bytes outside of requests.
    stray: Option<Scanner>,
}

#[derive(Debug)]
enum State {
    /// Between requests.
    Idle,
    Head(Vec<u8>),
    Body(Box<BodyTap>),
    /// After malformed bytes or the end of the connection: later bytes are only counted and searched.
    Stopped(Stop),
}

/// Position at which parsing stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    /// Between requests, or at a refused head that the connection has answered.
    Outside,
    /// At a refused head that still needs an answer.
    Refused(HeadError),
    /// Inside a body, whose rest the server still waits for.
    InBody,
}

/// Position in the request stream at which a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    Between,
    InRequest,
}

impl RequestTap {
    pub(crate) fn new(
        limits: Limits,
        budget: Budget,
        (credential, belongs): (Option<SecretScanner>, Belongs),
        host: Host,
    ) -> Self {
        let stray = credential.as_ref().map(Scanner::new);
        Self {
            limits,
            credential,
            belongs,
            host,
            budget,
            state: State::Idle,
            bytes: 0,
            unaccounted: 0,
            requests: 0,
            stray,
        }
    }

    /// Number of bytes read.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Number of bytes read that belong to no reported fact.
    pub(crate) fn unaccounted(&self) -> u64 {
        self.unaccounted
    }

    /// Number of requests begun.
    pub(crate) fn requests(&self) -> u64 {
        self.requests
    }

    /// Checks whether parsing has stopped for good.
    pub(crate) fn is_stopped(&self) -> bool {
        matches!(self.state, State::Stopped(_))
    }

    /// Checks whether parsing has stopped while the server waits for the rest of a body.
    pub(crate) fn is_stopped_in_body(&self) -> bool {
        matches!(self.state, State::Stopped(Stop::InBody))
    }

    /// Checks for a refused head that still needs an answer.
    pub(crate) fn is_refused(&self) -> bool {
        matches!(self.state, State::Stopped(Stop::Refused(_)))
    }

    /// Takes the error of a refused head; returns it once. The connection answers such a head, not the server.
    pub(crate) fn take_refused(&mut self) -> Option<HeadError> {
        let State::Stopped(Stop::Refused(error)) = self.state else {
            return None;
        };
        self.state = State::Stopped(Stop::Outside);
        Some(error)
    }

    /// Parses a non-empty input up to the next border, and returns the number of bytes consumed. Appends the bytes
    /// for the server to `forwarded` and the facts to `facts`. [`RequestFact::Began`] is always the last fact of a
    /// step. The bytes of its request are left for the next step, so that the caller can hold the request first.
    pub(crate) fn step(
        &mut self,
        input: &[u8],
        forwarded: &mut Vec<u8>,
        facts: &mut Vec<RequestFact>,
    ) -> usize {
        let taken = match std::mem::replace(&mut self.state, State::Idle) {
            State::Idle => self.between(input, facts),
            State::Head(head) => self.head(head, input, forwarded, facts),
            State::Body(body) => self.body(body, input, forwarded, facts),
            State::Stopped(stop) => {
                self.state = State::Stopped(stop);
                self.stray(input, facts);
                input.len()
            }
        };
        self.bytes += taken as u64;
        taken
    }

    /// Handles the end of the connection: reports a request that is cut off.
    pub(crate) fn end(&mut self, facts: &mut Vec<RequestFact>) -> Cut {
        let (stop, cut) = match std::mem::replace(&mut self.state, State::Idle) {
            State::Idle => (Stop::Outside, Cut::Between),
            State::Head(head) => {
                self.unaccounted += head.len() as u64;
                self.search_head(&head, facts);
                facts.push(RequestFact::Head {
                    head: Head::Incomplete,
                    bodiless: false,
                });
                (Stop::Outside, Cut::InRequest)
            }
            State::Body(body) => {
                self.end_body(*body, None, facts);
                (Stop::InBody, Cut::InRequest)
            }
            State::Stopped(stop) => (stop, Cut::Between),
        };
        self.state = State::Stopped(stop);
        cut
    }

    fn between(&mut self, input: &[u8], facts: &mut Vec<RequestFact>) -> usize {
        let empty = input
            .iter()
            .take_while(|byte| matches!(byte, b'\r' | b'\n'))
            .count();
        self.stray(&input[..empty], facts);
        if empty < input.len() {
            self.requests += 1;
            self.state = State::Head(Vec::new());
            facts.push(RequestFact::Began);
        }
        empty
    }

    fn head(
        &mut self,
        mut head: Vec<u8>,
        input: &[u8],
        forwarded: &mut Vec<u8>,
        facts: &mut Vec<RequestFact>,
    ) -> usize {
        if self.requests > self.limits.requests_per_connection {
            self.refuse(
                &head,
                HeadError::Many(self.limits.requests_per_connection),
                facts,
            );
            return 0;
        }
        for (at, byte) in input.iter().enumerate() {
            if head.len() == self.limits.head_bytes {
                self.refuse(&head, HeadError::Long(self.limits.head_bytes), facts);
                return at;
            }
            head.push(*byte);
            match byte {
                b'\n' if head.ends_with(b"\r\n\r\n") => {
                    self.complete_head(&head, forwarded, facts);
                    return at + 1;
                }
                b'\n' if !head.ends_with(b"\r\n") => {
                    self.refuse(&head, HeadError::BareLineFeed, facts);
                    return at + 1;
                }
                b'\t' | b'\r' | b'\n' => {}
                0..0x20 | 0x7f => {
                    self.refuse(&head, HeadError::Control, facts);
                    return at + 1;
                }
                _ => {}
            }
        }
        self.state = State::Head(head);
        input.len()
    }

    fn complete_head(&mut self, raw: &[u8], forwarded: &mut Vec<u8>, facts: &mut Vec<RequestFact>) {
        let parsed = match head::read(raw, self.credential.as_ref(), &self.belongs, self.host) {
            Ok(parsed) => parsed,
            Err(error) => return self.refuse(raw, error, facts),
        };
        if !self.budget.take_head(raw.len()) {
            return self.refuse(raw, HeadError::Sum(self.limits.run_head_bytes), facts);
        }
        self.unaccounted += parsed.surplus;
        forwarded.extend_from_slice(raw);
        facts.push(RequestFact::Head {
            head: parsed.head,
            bodiless: parsed.bodiless,
        });
        facts.extend(parsed.sightings.into_iter().map(RequestFact::Sighting));
        let body = BodyTap::new(parsed.framing, &self.budget, self.credential.as_ref());
        if parsed.framing == Framing::Length(0) {
            self.end_body(body, None, facts);
        } else {
            self.state = State::Body(Box::new(body));
        }
    }

    fn refuse(&mut self, raw: &[u8], error: HeadError, facts: &mut Vec<RequestFact>) {
        self.unaccounted += raw.len() as u64;
        facts.push(RequestFact::Head {
            head: Head::Malformed {
                reason: error.to_string(),
            },
            bodiless: false,
        });
        self.search_head(raw, facts);
        self.state = State::Stopped(Stop::Refused(error));
    }

    fn body(
        &mut self,
        mut body: Box<BodyTap>,
        input: &[u8],
        forwarded: &mut Vec<u8>,
        facts: &mut Vec<RequestFact>,
    ) -> usize {
        let mut at = 0;
        while at < input.len() && !body.is_done() {
            match body.step(&input[at..], &self.limits) {
                Ok(taken) => {
                    forwarded.extend_from_slice(&input[at..at + taken.consumed]);
                    at += taken.consumed;
                    self.unaccounted += taken.surplus;
                }
                Err(fault) => {
                    self.end_body(*body, Some(fault), facts);
                    self.state = State::Stopped(Stop::InBody);
                    return at;
                }
            }
        }
        if body.is_done() {
            self.end_body(*body, None, facts);
        } else {
            self.state = State::Body(body);
        }
        at
    }

    fn end_body(&self, body: BodyTap, fault: Option<FramingError>, facts: &mut Vec<RequestFact>) {
        let ended = body.end(fault, &self.limits, self.credential.as_ref());
        facts.extend(
            ended
                .sighting
                .map(|place| RequestFact::Sighting(place.to_owned())),
        );
        facts.push(RequestFact::Body(ended.body));
    }

    fn stray(&mut self, bytes: &[u8], facts: &mut Vec<RequestFact>) {
        self.unaccounted += bytes.len() as u64;
        let hit = self.stray.as_mut().and_then(|scanner| scanner.push(bytes));
        facts.extend(hit.map(|_| RequestFact::Sighting("bytes outside of requests".to_owned())));
    }

    fn search_head(&mut self, raw: &[u8], facts: &mut Vec<RequestFact>) {
        if let Some(scanner) = &mut self.stray {
            let place = |_| RequestFact::Sighting("head that is no request".to_owned());
            facts.extend(scanner.push(raw).map(place));
        }
    }
}

#[cfg(test)]
mod tests;
