//! What one connection has carried so far, and the entries that tell it.
//!
//! It turns bytes that were read and written into journal entries. It knows no socket.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use model::journal::{End, Entry, Head, Host};
use scenario::Hangup;

use crate::barrier::Hold;
use crate::recorder::now_us;
use crate::shared::Shared;
use crate::tap::answer::{AnswerTap, Awaited, Wrote};
use crate::tap::head::HeadError;
use crate::tap::{Cut, RequestTap, Seen};

/// The state of one connection.
#[derive(Debug)]
pub(super) struct Carried {
    id: u64,
    host: Host,
    shared: Arc<Shared>,
    pub(super) tap: RequestTap,
    answers: AnswerTap,
    awaited: VecDeque<Awaited>,
    /// Read, and not understood yet.
    pub(super) inbox: Queue,
    /// Understood, and not given to the server yet.
    pub(super) outbox: Queue,
    /// The request that waits at the gate.
    pub(super) hold: Option<Hold>,
    /// The server, where it waits for the end of the stream.
    reader: Option<Waker>,
    /// The answer, where it waits until something was written.
    writer: Option<Waker>,
    /// The answer, where it waits until the peer goes.
    stalled: Option<Waker>,
    /// The last request that began; 0 before the first.
    request: u64,
    pub(super) peer: Peer,
    sending: Sending,
    /// How the answer ends the connection, once it does.
    pub(super) hangup: Option<Hangup>,
    pub(super) journal: Journal,
}

/// For whom bytes are understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Audience {
    /// The server, which answers.
    Server,
    /// The journal alone.
    NoOne,
}

/// What the other end has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Peer {
    Open,
    Closed(Cut),
    Reset,
}

/// Whether the stub still sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sending {
    Open,
    /// The stub ended the connection before the peer did.
    EndedFirst,
}

/// Whether the connection is still written about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Journal {
    Open,
    Closed,
}

impl Carried {
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

    /// Takes the outcome of one read.
    pub(super) fn took(&mut self, result: io::Result<usize>, buffer: &[u8]) {
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

    /// Understands what was read; for the server, up to the next request that has to wait.
    pub(super) fn understand(&mut self, audience: Audience) {
        if audience == Audience::NoOne {
            self.drop_hold();
        }
        let mut seen = Vec::new();
        while !self.inbox.is_empty() && self.hold.is_none() {
            let taken = self
                .tap
                .step(self.inbox.rest(), &mut self.outbox.bytes, &mut seen);
            self.inbox.take(taken);
            for fact in seen.drain(..) {
                self.report(fact, audience);
            }
        }
        if audience == Audience::NoOne {
            self.outbox = Queue::default();
        }
    }

    /// Takes what was written.
    pub(super) fn wrote(&mut self, bytes: &[u8]) {
        let mut wrote = Vec::new();
        self.answers.push(bytes, &mut self.awaited, &mut wrote);
        for (request, fact) in wrote {
            let (connection, at_us) = (self.id, now_us());
            self.shared.recorder.record(&match fact {
                Wrote::Status(status) => Entry::Answered {
                    connection,
                    request,
                    at_us,
                    status,
                },
                Wrote::Event { name, mut data } => {
                    // An answer repeats the name of the model, which the client chose.
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

    /// Ready when that many bytes of the answer's body were written, and its head.
    pub(super) fn poll_taken(&mut self, answer: &str, bytes: u64, cx: &Context<'_>) -> Poll<()> {
        let taken = self.answers.taken(answer.as_bytes());
        if taken.is_some_and(|taken| taken >= bytes) {
            return Poll::Ready(());
        }
        self.writer = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Ready when the peer sends nothing more.
    pub(super) fn poll_gone(&mut self, cx: &Context<'_>) -> Poll<()> {
        if self.peer != Peer::Open {
            return Poll::Ready(());
        }
        self.stalled = Some(cx.waker().clone());
        Poll::Pending
    }

    /// The server waits for the end of the stream, and an answer maybe for the end of the peer.
    pub(super) fn await_end(&mut self, cx: &Context<'_>) {
        self.reader = Some(cx.waker().clone());
        if let Some(stalled) = self.stalled.take() {
            stalled.wake();
        }
    }

    /// Every request that the server has seen is answered to its end.
    pub(super) fn is_answered(&self) -> bool {
        self.awaited.is_empty()
    }

    /// The head that the connection itself has to answer, once.
    pub(super) fn begin_refusal(&mut self) -> Option<HeadError> {
        let error = self.tap.take_refused()?;
        self.awaited = VecDeque::from([Awaited {
            request: self.request,
            bodiless: false,
        }]);
        Some(error)
    }

    /// The stub sends nothing more.
    pub(super) fn end_sending(&mut self) {
        if self.peer == Peer::Open {
            self.sending = Sending::EndedFirst;
        }
    }

    /// The last entry.
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

    /// Nothing more comes: journals what is cut off.
    fn cut(&mut self) -> Cut {
        let mut seen = Vec::new();
        let cut = self.tap.end(&mut seen);
        for fact in seen {
            self.report(fact, Audience::NoOne);
        }
        cut
    }

    fn report(&mut self, fact: Seen, audience: Audience) {
        let (connection, at_us) = (self.id, now_us());
        let entry = match fact {
            Seen::Began => {
                self.request = self.shared.recorder.next_request();
                Entry::Began {
                    connection,
                    request: self.request,
                    at_us,
                }
            }
            Seen::Head { head, bodiless } => {
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
            Seen::Body(body) => Entry::Body {
                connection,
                request: self.request,
                at_us,
                body,
            },
            Seen::Sighting(place) => Entry::Sighting {
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
            self.hold = self.shared.gate.hold(self.request);
        }
    }

    fn drop_hold(&mut self) {
        if let Some(hold) = self.hold.take() {
            self.shared.gate.leave(&hold);
        }
    }
}

/// Bytes in order.
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
