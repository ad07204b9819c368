//! Queries that several readers make on the evidence, without judgement.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::{
    AttemptKind, Before, Evidence, Gap, GapKind, Line, Outcome, ProviderEvent, Record, Request,
    RequestClass,
};
use crate::endpoint::Endpoint;
use crate::journal::Head;
use crate::text::printable;

/// Detail of the gap for a stub that was lost before the end of its journal.
pub const UNDONE: &str = "the stub did not say that it had read everything";

impl Request {
    /// Returns true for a POST to the message endpoint, whatever its purpose.
    pub fn is_post(&self) -> bool {
        matches!(&self.head, Head::Request { method, path, .. }
            if method == "POST" && Endpoint::of(path) == Some(Endpoint::Messages))
    }

    /// Returns true if the request is for the turn: a message request or a retry of one.
    pub fn is_turn(&self) -> bool {
        match self.class {
            RequestClass::Message | RequestClass::Retry => true,
            RequestClass::Preflight | RequestClass::Side | RequestClass::Unknown => false,
        }
    }

    /// Returns the shape of a complete JSON body without duplicate keys.
    pub fn shape(&self) -> Option<&Value> {
        self.body.as_ref()?.whole_shape()
    }

    /// Returns the values of a header, in order. Names are compared without case.
    pub fn header(&self, name: &str) -> Vec<&str> {
        self.headers()
            .iter()
            .filter(|(found, _)| found.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
            .collect()
    }

    /// Returns all headers; empty for a malformed or incomplete head.
    pub fn headers(&self) -> &[(String, String)] {
        match &self.head {
            Head::Request { headers, .. } => headers,
            Head::Malformed { .. } | Head::Incomplete => &[],
        }
    }

    /// Returns true if head and body arrived completely. Only HEAD and GET are complete without a body.
    pub fn is_complete(&self) -> bool {
        match (&self.head, &self.body) {
            (Head::Request { .. }, Some(body)) => body.complete,
            (Head::Request { method, .. }, None) => matches!(method.as_str(), "HEAD" | "GET"),
            (Head::Malformed { .. } | Head::Incomplete, _) => false,
        }
    }
}

impl Record {
    /// Returns the JSON object, if the line is one.
    pub fn json(&self) -> Option<&Value> {
        match &self.line {
            Line::Record(value) => Some(value),
            Line::NotJson { .. } => None,
        }
    }

    /// Returns the `type` of the record.
    pub fn kind(&self) -> Option<&str> {
        self.json()?.get("type")?.as_str()
    }

    /// Returns the `subtype` of the record.
    pub fn subtype(&self) -> Option<&str> {
        self.json()?.get("subtype")?.as_str()
    }

    /// Returns the `type` of the provider event in a `stream_event` record.
    pub fn event(&self) -> Option<&str> {
        self.json()?.get("event")?.get("type")?.as_str()
    }

    /// Returns the names of the record's fields, sorted; text of the client.
    pub fn fields(&self) -> Vec<&str> {
        let fields = self.json().and_then(Value::as_object);
        let mut names: Vec<&str> = fields
            .into_iter()
            .flatten()
            .map(|(name, _)| name.as_str())
            .collect();
        names.sort_unstable();
        names
    }

    /// Returns true if the record is `kind/subtype`.
    pub fn is(&self, kind: &str, subtype: &str) -> bool {
        self.kind() == Some(kind) && self.subtype() == Some(subtype)
    }

    /// Returns a label: `system/init`, `stream_event/message_start`, `assistant`. Text of the client, a backslash as
    /// `\\`.
    pub fn label(&self) -> String {
        let Some(kind) = self.kind() else {
            return match &self.line {
                Line::Record(_) => "record without a type".to_owned(),
                Line::NotJson { .. } => "not JSON".to_owned(),
            };
        };
        let label = match self.detail() {
            Some(detail) => format!("{kind}/{detail}"),
            None => kind.to_owned(),
        };
        printable(label.as_bytes())
    }

    /// Returns the part that distinguishes records of one type: the event of a `stream_event`, else the subtype.
    pub fn detail(&self) -> Option<&str> {
        if self.kind() == Some("stream_event") {
            self.event()
        } else {
            self.subtype()
        }
    }
}

/// Ends of the answers that the stub sent as streams, by [`Request::seq`].
#[derive(Debug)]
pub struct Answers<'a>(HashMap<u64, StreamEnd<'a>>);

/// End of one stream.
#[derive(Debug, Default)]
struct StreamEnd<'a> {
    /// Name of the last event.
    last: &'a str,
    /// True if `message_stop` was sent.
    is_whole: bool,
}

impl Answers<'_> {
    /// Describes an answer to a turn request that ended before `message_stop`; `None` for a complete answer. For an
    /// answer that is not a stream, only the status is known.
    pub fn cut(&self, request: &Request) -> Option<String> {
        let asked = request.shape().map(|shape| shape.get("stream"));
        let is_stream = asked.is_none_or(|stream| stream == Some(&Value::Bool(true)));
        match (request.status, self.0.get(&request.seq)) {
            (Some(200..=299), _) if !is_stream => None,
            (Some(200..=299), Some(end)) if end.is_whole => None,
            (Some(200..=299), Some(end)) => Some(format!("the last event is {}", end.last)),
            (Some(200..=299), None) => Some("no event".to_owned()),
            (Some(status), _) => Some(format!("status {status}")),
            (None, _) => Some("no answer".to_owned()),
        }
    }
}

impl Evidence {
    /// Returns the first `system/init` record.
    pub fn init(&self) -> Option<&Record> {
        self.records
            .iter()
            .find(|record| record.is("system", "init"))
    }

    /// Returns the event that both `system/init` and `system/status` preceded: the weaker of the two.
    pub fn startup_before(&self) -> Option<Before> {
        let status = self
            .records
            .iter()
            .find(|record| record.is("system", "status"))?;
        match (self.init()?.before, status.before) {
            (Before::Connect, Before::Connect) => Some(Before::Connect),
            (Before::None, _) | (_, Before::None) => Some(Before::None),
            (Before::Connect | Before::Post, Before::Connect | Before::Post) => Some(Before::Post),
        }
    }

    /// Lists the events that the stub sent for the turn, without those for side requests.
    pub fn turn_events(&self) -> impl Iterator<Item = &ProviderEvent> {
        let mut sides: HashSet<u64> = self.requests.iter().map(|request| request.seq).collect();
        for request in self.requests.iter().filter(|request| request.is_turn()) {
            sides.remove(&request.seq);
        }
        let events = self.provider_events.iter();
        events.filter(move |event| !sides.contains(&event.request))
    }

    /// Returns the ends of all answers that are streams.
    pub fn answers(&self) -> Answers<'_> {
        let mut ends: HashMap<u64, StreamEnd<'_>> = HashMap::new();
        for event in &self.provider_events {
            let kind = event.data.get("type").and_then(Value::as_str);
            let end = ends.entry(event.request).or_default();
            end.last = &event.event;
            end.is_whole |= [Some(event.event.as_str()), kind].contains(&Some("message_stop"));
        }
        Answers(ends)
    }

    /// Lists the probes whose attempts a filter outside the sandbox refuses before they are recorded, each name once.
    pub fn unseen(&self) -> Vec<&str> {
        let mut classes = Vec::new();
        for canary in self.canaries.iter().filter(|canary| canary.unseen) {
            if !classes.contains(&canary.name.as_str()) {
                classes.push(canary.name.as_str());
            }
        }
        classes
    }

    /// Lists the limits of the ledger, one sentence each; empty if each attempt is recorded with its destination.
    pub fn limits_of_ledger(&self) -> Vec<String> {
        let classes = self.unseen();
        let hidden = (!classes.is_empty()).then(|| {
            format!(
                "Not in the ledger, because the host refuses them first: {}.",
                classes.join(", ")
            )
        });
        let nameless = self.attempts.iter().filter(|attempt| {
            attempt.syscall == "socket"
                && attempt.family.as_deref() == Some("unix")
                && matches!(attempt.outcome, Outcome::Denied(_))
        });
        let nameless: u64 = nameless.map(|attempt| attempt.count).sum();
        let nameless = (nameless > 0).then(|| {
            format!(
                "Unknown destinations of unix sockets, refused before they had a name: {nameless}."
            )
        });
        // Any port counts: the socket may be a listener, or a client that binds before its connect(2).
        let unbound = self.attempts.iter().filter(|attempt| {
            attempt.syscall == "bind"
                && attempt.kind == AttemptKind::Setup
                && attempt.is_internet()
                && matches!(attempt.outcome, Outcome::Denied(_))
        });
        let unbound: u64 = unbound.map(|attempt| attempt.count).sum();
        let unbound = (unbound > 0).then(|| {
            format!("Unknown purpose of sockets, refused at bind(2) before they listened or connected: {unbound}.")
        });
        hidden.into_iter().chain(nameless).chain(unbound).collect()
    }

    /// Returns true if the stub was lost: its journal has no end, and the client may have waited for it in vain.
    pub fn is_stub_lost(&self) -> bool {
        let mut gaps = self.gaps.iter();
        gaps.any(|gap| gap.what == GapKind::Requests && gap.detail == UNDONE)
    }

    /// Returns the first gap of one of these kinds.
    pub fn gap(&self, kinds: &[GapKind]) -> Option<&Gap> {
        self.gaps.iter().find(|gap| kinds.contains(&gap.what))
    }
}
