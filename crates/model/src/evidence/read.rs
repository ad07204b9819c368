//! Questions that more than one reader asks of the evidence; each is answered from what stands there, unjudged.

use serde_json::Value;

use super::{
    AttemptKind, Before, Evidence, Gap, GapKind, Line, Outcome, ProviderEvent, Record, Request,
    RequestClass,
};
use crate::journal::Head;
use crate::profile::MESSAGES;
use crate::text::printable;

/// Gap of a journal without its end.
/// Detail of the gap of a stub that was lost before the end of its journal.
pub const UNDONE: &str = "the stub did not say that it had read everything";

impl Request {
    /// Whether this is a `POST /v1/messages`, whatever it is for.
    pub fn is_post(&self) -> bool {
        matches!(&self.head, Head::Request { method, path, .. } if method == "POST" && path == MESSAGES)
    }

    /// Whether this asks for the turn, the first time or again: no request beside it.
    pub fn is_turn(&self) -> bool {
        match self.class {
            RequestClass::Message | RequestClass::Retry => true,
            RequestClass::Preflight | RequestClass::Side | RequestClass::Unknown => false,
        }
    }

    /// The shape of a body that arrived whole and is JSON without duplicate keys.
    pub fn shape(&self) -> Option<&Value> {
        self.body.as_ref()?.whole_shape()
    }

    /// The values of a header, in order; names are compared without regard to case.
    pub fn header(&self, name: &str) -> Vec<&str> {
        self.headers()
            .iter()
            .filter(|(found, _)| found.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
            .collect()
    }

    /// All headers; none where the head is malformed or incomplete.
    pub fn headers(&self) -> &[(String, String)] {
        match &self.head {
            Head::Request { headers, .. } => headers,
            Head::Malformed { .. } | Head::Incomplete => &[],
        }
    }

    /// Whether head and body arrived whole. Without a body only HEAD and GET are whole.
    pub fn is_complete(&self) -> bool {
        match (&self.head, &self.body) {
            (Head::Request { .. }, Some(body)) => body.complete,
            (Head::Request { method, .. }, None) => matches!(method.as_str(), "HEAD" | "GET"),
            (Head::Malformed { .. } | Head::Incomplete, _) => false,
        }
    }
}

impl Record {
    /// The JSON object, unless the line is none.
    pub fn json(&self) -> Option<&Value> {
        match &self.line {
            Line::Record(value) => Some(value),
            Line::NotJson { .. } => None,
        }
    }

    /// The record's `type`.
    pub fn kind(&self) -> Option<&str> {
        self.json()?.get("type")?.as_str()
    }

    /// The record's `subtype`.
    pub fn subtype(&self) -> Option<&str> {
        self.json()?.get("subtype")?.as_str()
    }

    /// The `type` of the provider event that a `stream_event` record wraps.
    pub fn event(&self) -> Option<&str> {
        self.json()?.get("event")?.get("type")?.as_str()
    }

    /// The names of its fields, sorted; client text.
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

    /// Whether this is the record `kind/subtype`.
    pub fn is(&self, kind: &str, subtype: &str) -> bool {
        self.kind() == Some(kind) && self.subtype() == Some(subtype)
    }

    /// `system/init`, `stream_event/message_start`, `assistant`; client text, a backslash as `\\`.
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

    /// What tells records of one type apart: the wrapped event of a `stream_event`, else the subtype.
    pub fn detail(&self) -> Option<&str> {
        if self.kind() == Some("stream_event") {
            self.event()
        } else {
            self.subtype()
        }
    }
}

impl Evidence {
    /// The first `system/init` record.
    pub fn init(&self) -> Option<&Record> {
        self.records
            .iter()
            .find(|record| record.is("system", "init"))
    }

    /// What both `system/init` and `system/status` came before: the weaker of the two.
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

    /// What the stub sent for the turn, and not for a request beside it.
    pub fn turn_events(&self) -> impl Iterator<Item = &ProviderEvent> {
        let is_beside = |event: &ProviderEvent| {
            let mut answered = self.requests.iter().filter(|one| one.seq == event.request);
            answered.clone().next().is_some() && !answered.any(Request::is_turn)
        };
        self.provider_events
            .iter()
            .filter(move |event| !is_beside(event))
    }

    /// Description of how the answer to a request for the turn falls short of `message_stop`; `None` for a whole one.
    /// Of an answer that is no stream, its status is all that is known.
    pub fn cut(&self, request: &Request) -> Option<String> {
        let sent = self.provider_events.iter();
        let mut sent = sent.filter(|event| event.request == request.seq);
        let is_stop = |event: &ProviderEvent| {
            let kind = event.data.get("type").and_then(Value::as_str);
            [Some(event.event.as_str()), kind].contains(&Some("message_stop"))
        };
        let asked = request.shape().map(|shape| shape.get("stream"));
        let is_stream = asked.is_none_or(|stream| stream == Some(&Value::Bool(true)));
        match (request.status, sent.clone().next_back()) {
            (Some(200..=299), _) if !is_stream || sent.any(is_stop) => None,
            (Some(200..=299), Some(last)) => Some(format!("the last event is {}", last.event)),
            (Some(200..=299), None) => Some("no event".to_owned()),
            (Some(status), _) => Some(format!("status {status}")),
            (None, _) => Some("no answer".to_owned()),
        }
    }

    /// Classes of attempts that a filter outside of the sandbox refuses before they are recorded, by the names of
    /// their canaries, each once.
    pub fn unseen(&self) -> Vec<&str> {
        let mut classes = Vec::new();
        for canary in self.canaries.iter().filter(|canary| canary.unseen) {
            if !classes.contains(&canary.name.as_str()) {
                classes.push(canary.name.as_str());
            }
        }
        classes
    }

    /// Limits of the ledger, a sentence each; empty where every attempt is recorded with its destination.
    pub fn limits_of_ledger(&self) -> Vec<String> {
        let classes = self.unseen();
        let hidden = (!classes.is_empty()).then(|| {
            format!(
                "Not in the ledger, since the host refuses it first: {}.",
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
            format!("Not known of unix sockets, since they were refused before they had a name: the destinations of {nameless}.")
        });
        // Any port: a listener's, or that of a connection which its client wants to name first.
        let unbound = self.attempts.iter().filter(|attempt| {
            attempt.syscall == "bind"
                && attempt.kind == AttemptKind::Setup
                && attempt.is_internet()
                && matches!(attempt.outcome, Outcome::Denied(_))
        });
        let unbound: u64 = unbound.map(|attempt| attempt.count).sum();
        let unbound = (unbound > 0).then(|| {
            format!("Not known of sockets that were refused at bind(2), {unbound} in all: whether they were to listen.")
        });
        hidden.into_iter().chain(nameless).chain(unbound).collect()
    }

    /// Checks for a lost stub: its journal has no end, and the client may have waited for it in vain.
    pub fn is_stub_lost(&self) -> bool {
        let mut gaps = self.gaps.iter();
        gaps.any(|gap| gap.what == GapKind::Requests && gap.detail == UNDONE)
    }

    /// The first gap of one of these kinds.
    pub fn gap(&self, kinds: &[GapKind]) -> Option<&Gap> {
        self.gaps.iter().find(|gap| kinds.contains(&gap.what))
    }
}
