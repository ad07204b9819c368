//! Folds the journal of the stub into the lists of the evidence.
//!
//! Owns the class of a request, the numbering without the positive canary's connection, and the search for
//! inconsistencies: whatever the journal should say and does not is a gap. It must not know who reads the
//! journal, nor what a case expects. Which requests are beside the turn is told by the profile's rules.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use model::evidence::{
    Connection, Gap, GapKind, ProviderEvent, Request, RequestClass, Sighting, UNDONE,
};
use model::journal::{Body, End, Entry, Head, Host};
use model::profile::{MESSAGES, SideRequest};

/// What the stub's journal says, in the terms of the evidence.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Traffic {
    /// Connections, the positive canary's left out.
    pub connections: Vec<Connection>,
    /// Requests in the order of their first byte.
    pub requests: Vec<Request>,
    /// Events in the order in which they were handed over.
    pub provider_events: Vec<ProviderEvent>,
    /// Where the stub found the credential.
    pub sightings: Vec<Sighting>,
    /// What the journal lacks.
    pub gaps: Vec<Gap>,
}

/// Folds journal entries into the evidence.
///
/// `start_us` is the run's start on the journal's clock. `ignore_peer` is the address from which the positive
/// canary reached the stub: the first connection from there is left out if it carried no byte, and the others
/// are numbered anew. `side_requests` are the requests beside the turn that the profile knows.
pub(super) fn from_journal(
    entries: &[Entry],
    start_us: u64,
    ignore_peer: Option<SocketAddr>,
    side_requests: &[SideRequest],
) -> Traffic {
    let mut fold = Fold {
        start_us,
        ..Fold::default()
    };
    for entry in entries {
        fold.take(entry);
    }
    fold.finish(ignore_peer, side_requests)
}

#[derive(Default)]
struct Fold {
    start_us: u64,
    accepted: Vec<Accepted>,
    hosts: BTreeMap<u64, Host>,
    requests: BTreeMap<u64, Asked>,
    provider_events: Vec<ProviderEvent>,
    sightings: Vec<Sighting>,
    gaps: Vec<Gap>,
    is_done: bool,
}

struct Accepted {
    number: u64,
    at_us: u64,
    host: Host,
    peer: SocketAddr,
    closed: Option<Closed>,
    /// Bytes that the kernel still held for the client.
    held: u64,
}

struct Closed {
    bytes: u64,
    unaccounted: u64,
    requests: u64,
    end: End,
}

struct Asked {
    at_us: u64,
    connection: u64,
    head: Option<Head>,
    body: Option<Body>,
    status: Option<u16>,
}

impl Fold {
    fn take(&mut self, entry: &Entry) {
        if self.is_done {
            self.lacks("the journal goes on after its end");
        }
        match entry {
            Entry::Accepted {
                connection,
                at_us,
                peer,
                host,
            } => {
                let at_us = self.since_start(*at_us);
                self.hosts.insert(*connection, *host);
                self.accepted.push(Accepted {
                    number: *connection,
                    at_us,
                    host: *host,
                    peer: *peer,
                    closed: None,
                    held: 0,
                });
            }
            Entry::Began {
                connection,
                request,
                at_us,
            } => {
                let (at_us, connection) = (self.since_start(*at_us), *connection);
                let asked = Asked {
                    at_us,
                    connection,
                    head: None,
                    body: None,
                    status: None,
                };
                if self.requests.insert(*request, asked).is_some() {
                    self.lacks(format!("request {request} began twice"));
                }
            }
            Entry::Head { request, head, .. } => {
                let head = head.clone();
                self.of_request(*request, "head", |asked| asked.head.replace(head).is_some());
            }
            Entry::Body { request, body, .. } => {
                let body = body.clone();
                self.of_request(*request, "body", |asked| asked.body.replace(body).is_some());
            }
            Entry::Answered {
                request, status, ..
            } => {
                self.of_request(*request, "answer", |asked| {
                    asked.status.replace(*status).is_some()
                });
            }
            Entry::Sent {
                request,
                at_us,
                event,
                data,
                ..
            } => {
                self.of_request(*request, "event", |_| false);
                let at_us = self.since_start(*at_us);
                self.provider_events.push(ProviderEvent {
                    at_us,
                    request: *request,
                    event: event.clone(),
                    data: data.clone(),
                });
            }
            Entry::Sighting {
                connection,
                request,
                place,
                ..
            } => {
                let of = match request {
                    0 => format!("connection {connection}"),
                    _ => format!("request {request}"),
                };
                self.sightings.push(Sighting {
                    place: format!("{of} {place}"),
                    form: "as written or encoded".to_owned(),
                });
            }
            Entry::Unordered { request, .. } => self.gaps.push(Gap {
                what: GapKind::Order,
                detail: format!(
                    "request {request} was answered before the records ahead of it were read"
                ),
            }),
            Entry::Closed {
                connection,
                bytes,
                unaccounted,
                requests,
                end,
                ..
            } => self.close(
                *connection,
                Closed {
                    bytes: *bytes,
                    unaccounted: *unaccounted,
                    requests: *requests,
                    end: *end,
                },
            ),
            Entry::Held {
                at_us,
                peer,
                host,
                bytes,
            } => self.hold(*at_us, (*peer, *host), *bytes),
            // Counted once, where the limit is known.
            Entry::Refused { .. } => {}
            Entry::Done { .. } => self.is_done = true,
        }
    }

    fn close(&mut self, connection: u64, closed: Closed) {
        let mut accepted = self.accepted.iter_mut();
        let accepted = accepted.find(|accepted| accepted.number == connection);
        match accepted.map(|accepted| accepted.closed.replace(closed)) {
            None => self.lacks(format!(
                "connection {connection} ended and was never accepted"
            )),
            Some(Some(_)) => self.lacks(format!("connection {connection} ended twice")),
            Some(None) => {}
        }
    }

    /// Adds held bytes to the last connection of that peer, or to one that never reached the stub.
    fn hold(&mut self, at_us: u64, (peer, host): (SocketAddr, Host), bytes: u64) {
        let mut accepted = self.accepted.iter_mut().rev();
        match accepted.find(|one| one.peer == peer && one.host == host) {
            Some(accepted) => accepted.held += bytes,
            None => self.accepted.push(Accepted {
                // The journal counts from 1.
                number: 0,
                at_us: self.since_start(at_us),
                host,
                peer,
                closed: Some(Closed {
                    bytes: 0,
                    unaccounted: 0,
                    requests: 0,
                    end: End::Open,
                }),
                held: bytes,
            }),
        }
    }

    fn finish(mut self, ignore_peer: Option<SocketAddr>, side_requests: &[SideRequest]) -> Traffic {
        if !self.is_done {
            self.lacks(UNDONE);
        }
        if let Some(peer) = ignore_peer {
            self.leave_out(peer);
        }
        let numbers: BTreeMap<u64, u64> = self
            .accepted
            .iter()
            .zip(1..)
            .map(|(accepted, seq)| (accepted.number, seq))
            .collect();
        let requests = self.requests(&numbers, side_requests);
        let connections = self.connections(&requests);
        Traffic {
            connections,
            requests,
            provider_events: self.provider_events,
            sightings: self.sightings,
            gaps: self.gaps,
        }
    }

    /// Leaves out the positive canary's connection: the first one of that peer, and only an empty one.
    fn leave_out(&mut self, peer: SocketAddr) {
        let Some(index) = self
            .accepted
            .iter()
            .position(|accepted| accepted.peer == peer)
        else {
            return self.lacks("the connection of the positive canary is not in the journal");
        };
        let was_empty = |accepted: &Accepted| {
            accepted
                .closed
                .as_ref()
                .is_some_and(|closed| closed.bytes == 0 && closed.requests == 0)
        };
        if self.accepted.get(index).is_some_and(was_empty) {
            self.accepted.remove(index);
        }
    }

    fn requests(
        &mut self,
        numbers: &BTreeMap<u64, u64>,
        side_requests: &[SideRequest],
    ) -> Vec<Request> {
        let mut digests: Vec<String> = Vec::new();
        let mut requests = Vec::new();
        for (seq, asked) in std::mem::take(&mut self.requests) {
            if !numbers.contains_key(&asked.connection) {
                self.lacks(format!(
                    "request {seq} came on a connection that was never accepted"
                ));
            }
            if asked.head.is_none() {
                self.lacks(format!("request {seq} has no head"));
            }
            let head = asked.head.unwrap_or(Head::Incomplete);
            let side = side(&head, asked.body.as_ref(), side_requests);
            let host = self.host(asked.connection);
            let class = match (side, class(&head, asked.body.as_ref(), &digests)) {
                (Some(_), _) => RequestClass::Side,
                // Whether the provider can be reached is asked of the provider.
                (None, RequestClass::Preflight) if host == Host::Elsewhere => RequestClass::Unknown,
                (None, class) => class,
            };
            let digest = asked.body.as_ref().map(|body| body.sha256.clone());
            if matches!(class, RequestClass::Message | RequestClass::Retry) {
                digests.extend(digest);
            }
            requests.push(Request {
                seq,
                at_us: asked.at_us,
                connection: numbers.get(&asked.connection).copied().unwrap_or(0),
                host,
                class,
                side: side.map(str::to_owned),
                head,
                body: asked.body,
                status: asked.status,
            });
        }
        requests
    }

    fn connections(&mut self, requests: &[Request]) -> Vec<Connection> {
        let mut connections = Vec::new();
        for (accepted, seq) in std::mem::take(&mut self.accepted).into_iter().zip(1..) {
            let began = requests
                .iter()
                .filter(|request| request.connection == seq)
                .count() as u64;
            let closed = accepted.closed.unwrap_or_else(|| {
                self.lacks(format!("connection {seq} has no end"));
                Closed {
                    bytes: 0,
                    unaccounted: 0,
                    requests: began,
                    end: End::Open,
                }
            });
            if closed.requests != began {
                let counted = closed.requests;
                self.lacks(format!(
                    "connection {seq} counted {counted} requests, and {began} are in the journal"
                ));
            }
            connections.push(Connection {
                seq,
                at_us: accepted.at_us,
                host: accepted.host,
                bytes: closed.bytes,
                unaccounted: closed.unaccounted,
                held: accepted.held,
                requests: closed.requests,
                end: closed.end,
            });
        }
        connections
    }

    /// Fills in a part of a request; `fill` says whether the part was there already.
    fn of_request(&mut self, request: u64, part: &str, fill: impl FnOnce(&mut Asked) -> bool) {
        match self.requests.get_mut(&request).map(fill) {
            None => self.lacks(format!(
                "the {part} of request {request} came before its first byte"
            )),
            Some(true) => self.lacks(format!("request {request} has a second {part}")),
            Some(false) => {}
        }
    }

    /// Where a connection was accepted, by its number in the journal.
    fn host(&self, connection: u64) -> Host {
        let accepted = self.hosts.get(&connection);
        accepted.copied().unwrap_or_default()
    }

    fn lacks(&mut self, detail: impl Into<String>) {
        self.gaps.push(Gap {
            what: GapKind::Requests,
            detail: detail.into(),
        });
    }

    fn since_start(&self, at_us: u64) -> u64 {
        at_us.saturating_sub(self.start_us)
    }
}

/// The profile's name for a request beside the turn, if it knows it.
fn side<'r>(head: &Head, body: Option<&Body>, rules: &'r [SideRequest]) -> Option<&'r str> {
    let Head::Request { method, path, .. } = head else {
        return None;
    };
    let shape = body.and_then(Body::whole_shape);
    let rule = rules.iter().find(|rule| rule.fits(method, path, shape))?;
    Some(&rule.name)
}

/// What a request is for that the profile does not name. `earlier` holds the digests of the message bodies before it.
fn class(head: &Head, body: Option<&Body>, earlier: &[String]) -> RequestClass {
    let Head::Request {
        method,
        path,
        headers,
        ..
    } = head
    else {
        return RequestClass::Unknown;
    };
    match (method.as_str(), path.as_str()) {
        ("HEAD", "/") => RequestClass::Preflight,
        ("POST", MESSAGES) => {
            let is_again = body.is_some_and(|body| earlier.contains(&body.sha256));
            if is_again || retry_count(headers) > 0 {
                RequestClass::Retry
            } else {
                RequestClass::Message
            }
        }
        ("POST", "/v1/messages/count_tokens") | ("GET", "/v1/models") => RequestClass::Side,
        _ => RequestClass::Unknown,
    }
}

fn retry_count(headers: &[(String, String)]) -> u64 {
    let counts = headers
        .iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case("x-stainless-retry-count"));
    counts
        .filter_map(|(_, value)| value.trim().parse().ok())
        .max()
        .unwrap_or(0)
}

#[cfg(test)]
mod tests;
