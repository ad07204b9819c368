//! Accounting of one connection: turns the bytes read and written into journal entries.
//!
//! Knows no socket.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use model::journal::{End, Entry, Head, Host};
use scenario::Hangup;

use super::Shared;
use crate::barrier::Hold;
use crate::recorder::now_us;
use crate::tap::answer::{AnswerFact, AnswerTap, Awaited};
use crate::tap::head::HeadError;
use crate::tap::{Cut, RequestFact, RequestTap};

/// State of one connection.
#[derive(Debug)]
pub(super) struct Accounting {
    id: u64,
    host: Host,
    shared: Arc<Shared>,
    pub(super) tap: RequestTap,
    answers: AnswerTap,
    awaited: VecDeque<Awaited>,
    /// Bytes read and not yet parsed.
    pub(super) inbox: Queue,
    /// Bytes parsed and not yet given to the server.
    pub(super) outbox: Queue,
    /// The request held at the barrier.
    pub(super) hold: Option<Hold>,
    /// Wakes the server's read, which waits for the end of the stream.
    reader: Option<Waker>,
    /// Wakes an answer that waits for bytes to be written.
    writer: Option<Waker>,
    /// Wakes an answer that waits for the peer to close.
    stalled: Option<Waker>,
    /// Number of the last request that began; 0 before the first.
    request: u64,
    pub(super) peer: Peer,
    sending: Sending,
    /// Way in which the scenario ends the connection, once requested.
    pub(super) hangup: Option<Hangup>,
    pub(super) journal: Journal,
}

/// Consumer of the parsed bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Audience {
    /// The server, which answers, and the journal.
    Server,
    /// Only the journal.
    Journal,
}

/// State of the peer's sending side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Peer {
    Open,
    Closed(Cut),
    Reset,
}

/// State of the stub's sending side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sending {
    Open,
    /// The stub ended the connection before the peer did.
    EndedFirst,
}

/// State of the connection's journal entries: `Closed` after the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Journal {
    Open,
    Closed,
}

impl Accounting {
    pub(super) fn new(id: u64, host: Host, shared: Arc<Shared>) -> Self {
        Self {
            id,
            host,
            tap: RequestTap::new(
                shared.limits,
                shared.budget.clone(),
                (shared.credential.clone(), shared.belongs.clone()),
                host,
            ),
            shared,
            answers: AnswerTap::new(),
            awaited: VecDeque::new(),
            inbox: Queue::default(),
            outbox: Queue::default(),
            hold: None,
            reader: None,
            writer: None,
            stalled: None,
            request: 0,
            peer: Peer::Open,
            sending: Sending::Open,
            hangup: None,
            journal: Journal::Open,
        }
    }

    /// Handles the result of one read.
    pub(super) fn handle_read(&mut self, result: io::Result<usize>, buffer: &[u8]) {
        match result {
            Ok(0) => self.peer = Peer::Closed(self.cut()),
            Ok(count) => self.inbox.put(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => {
                self.cut();
                self.peer = Peer::Reset;
            }
        }
    }

    /// Parses the bytes read. For the server, parsing pauses at the next request that the barrier holds.
    pub(super) fn parse(&mut self, audience: Audience) {
        if audience == Audience::Journal {
            self.drop_hold();
        }
        let mut facts = Vec::new();
        while !self.inbox.is_empty() && self.hold.is_none() {
            let taken = self
                .tap
                .step(self.inbox.rest(), &mut self.outbox.bytes, &mut facts);
            self.inbox.take(taken);
            for fact in facts.drain(..) {
                self.report(fact, audience);
            }
        }
        if audience == Audience::Journal {
            self.outbox = Queue::default();
        }
    }

    /// Journals the bytes written.
    pub(super) fn handle_written(&mut self, bytes: &[u8]) {
        let mut wrote = Vec::new();
        self.answers.push(bytes, &mut self.awaited, &mut wrote);
        for (request, fact) in wrote {
            let (connection, at_us) = (self.id, now_us());
            self.shared.recorder.record(&match fact {
                AnswerFact::Status(status) => Entry::Answered {
                    connection,
                    request,
                    at_us,
                    status,
                },
                AnswerFact::Event { name, mut data } => {
                    // An answer repeats the model's name, which the client chose, so it may hold the
                    // credential.
                    if let Some(secrets) = &self.shared.credential {
                        secrets.redact_json(&mut data);
                    }
                    Entry::Sent {
                        connection,
                        request,
                        at_us,
                        event: name,
                        data,
                    }
                }
            });
        }
        if let Some(writer) = self.writer.take() {
            writer.wake();
        }
        if self.awaited.is_empty()
            && let Some(reader) = self.reader.take()
        {
            reader.wake();
        }
    }

    /// Returns ready when the head of `answer` and the given number of bytes of its body were written.
    pub(super) fn poll_written(&mut self, answer: &str, bytes: u64, cx: &Context<'_>) -> Poll<()> {
        let taken = self.answers.written(answer.as_bytes());
        if taken.is_some_and(|taken| taken >= bytes) {
            return Poll::Ready(());
        }
        self.writer = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Returns ready when the peer has closed its sending side or reset the connection.
    pub(super) fn poll_closed(&mut self, cx: &Context<'_>) -> Poll<()> {
        if self.peer != Peer::Open {
            return Poll::Ready(());
        }
        self.stalled = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Registers the server's read for the end of the stream, and wakes an answer that waits for the peer to
    /// close.
    pub(super) fn await_end(&mut self, cx: &Context<'_>) {
        self.reader = Some(cx.waker().clone());
        if let Some(stalled) = self.stalled.take() {
            stalled.wake();
        }
    }

    /// Checks that every request given to the server has its complete answer.
    pub(super) fn is_answered(&self) -> bool {
        self.awaited.is_empty()
    }

    /// Takes the refused head that the connection itself has to answer; returns it once.
    pub(super) fn begin_refusal(&mut self) -> Option<HeadError> {
        let error = self.tap.take_refused()?;
        self.awaited = VecDeque::from([Awaited {
            request: self.request,
            bodiless: false,
        }]);
        Some(error)
    }

    /// Records that the stub has closed its sending side.
    pub(super) fn end_sending(&mut self) {
        if self.peer == Peer::Open {
            self.sending = Sending::EndedFirst;
        }
    }

    /// Journals the end of the connection.
    pub(super) fn close(&mut self) {
        if self.peer == Peer::Open {
            self.cut();
        }
        let end = match (self.peer, self.sending) {
            (Peer::Reset, _) => End::Reset,
            (Peer::Open, _) if self.shared.is_frozen() => End::Open,
            (_, Sending::EndedFirst) => End::ByStub,
            (Peer::Closed(Cut::InRequest), Sending::Open) => End::Truncated,
            (Peer::Closed(Cut::Between), Sending::Open) => End::Closed,
            (Peer::Open, Sending::Open) => End::Open,
        };
        self.shared.recorder.record(&Entry::Closed {
            connection: self.id,
            at_us: now_us(),
            bytes: self.tap.bytes(),
            unaccounted: self.tap.unaccounted(),
            requests: self.tap.requests(),
            end,
        });
        self.journal = Journal::Closed;
    }

    /// Journals a request that the end of the stream cuts off.
    fn cut(&mut self) -> Cut {
        let mut facts = Vec::new();
        let cut = self.tap.end(&mut facts);
        for fact in facts {
            self.report(fact, Audience::Journal);
        }
        cut
    }

    fn report(&mut self, fact: RequestFact, audience: Audience) {
        let (connection, at_us) = (self.id, now_us());
        let entry = match fact {
            RequestFact::Began => {
                self.request = self.shared.recorder.next_request();
                Entry::Began {
                    connection,
                    request: self.request,
                    at_us,
                }
            }
            RequestFact::Head { head, bodiless } => {
                if audience == Audience::Server && matches!(head, Head::Request { .. }) {
                    self.awaited.push_back(Awaited {
                        request: self.request,
                        bodiless,
                    });
                }
                Entry::Head {
                    connection,
                    request: self.request,
                    at_us,
                    head,
                }
            }
            RequestFact::Body(body) => Entry::Body {
                connection,
                request: self.request,
                at_us,
                body,
            },
            RequestFact::Sighting(place) => Entry::Sighting {
                connection,
                request: self.request,
                at_us,
                place: match self.host {
                    Host::Stub => place,
                    Host::Elsewhere => format!("{place} at another host"),
                },
            },
        };
        self.shared.recorder.record(&entry);
        if audience == Audience::Server && matches!(entry, Entry::Began { .. }) {
            self.hold = self.shared.barrier.hold(self.request);
        }
    }

    fn drop_hold(&mut self) {
        if let Some(hold) = self.hold.take() {
            self.shared.barrier.remove(&hold);
        }
    }
}

/// First-in, first-out buffer of bytes.
#[derive(Debug, Default)]
pub(super) struct Queue {
    pub(super) bytes: Vec<u8>,
    taken: usize,
}

impl Queue {
    pub(super) fn is_empty(&self) -> bool {
        self.rest().is_empty()
    }

    pub(super) fn rest(&self) -> &[u8] {
        &self.bytes[self.taken..]
    }

    pub(super) fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    pub(super) fn take(&mut self, count: usize) {
        self.taken += count;
        if self.taken == self.bytes.len() {
            self.bytes.clear();
            self.taken = 0;
        }
    }
}
