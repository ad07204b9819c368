//! Folds the stub's journal into the lists of the evidence.
//!
//! Owns the class of a request, the numbering without the positive canary's connection, and the search for
//! inconsistencies: each missing or contradictory entry is a gap. Knows neither the readers of the journal nor the
//! case's expectations. The profile's rules identify requests beside the turn.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::SocketAddr;

use model::endpoint::Endpoint;
use model::evidence::{
    Connection, Gap, GapKind, ProviderEvent, Request, RequestClass, Sighting, UNDONE,
};
use model::journal::{Body, End, Entry, Head, Host};
use model::profile::SideRequest;

/// Content of the stub's journal, in the terms of the evidence.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Traffic {
    /// Connections, except the positive canary's.
    pub connections: Vec<Connection>,
    /// Requests in the order of their first byte.
    pub requests: Vec<Request>,
    /// Events in the order in which they were sent.
    pub provider_events: Vec<ProviderEvent>,
    /// Number of connections that the stub closed unread, beyond its limit.
    pub refused: u64,
    /// Places where the stub found the credential.
    pub sightings: Vec<Sighting>,
    /// Missing or contradictory entries.
    pub gaps: Vec<Gap>,
}

/// Folds journal entries into the evidence.
///
/// `start_us` is the run's start on the journal's clock. `ignore_peer` is the address from which the positive
/// canary reached the stub. The first connection from there is left out if it carried no byte, and the others are
/// numbered without it. `side_requests` are the profile's requests beside the turn.
pub(super) fn from_journal(
    entries: Vec<Entry>,
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
    accepted: Vec<ConnectionParts>,
    /// Index in `accepted` of each connection, by its number in the journal.
    by_number: HashMap<u64, usize>,
    /// Index in `accepted` of the last connection of each peer.
    by_peer: HashMap<(SocketAddr, Host), usize>,
    requests: BTreeMap<u64, RequestParts>,
    provider_events: Vec<ProviderEvent>,
    refused: u64,
    sightings: Vec<Sighting>,
    gaps: Vec<Gap>,
    is_done: bool,
}

struct ConnectionParts {
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

struct RequestParts {
    at_us: u64,
    connection: u64,
    head: Option<Head>,
    body: Option<Body>,
    status: Option<u16>,
}

impl Fold {
    fn take(&mut self, entry: Entry) {
        if self.is_done {
            self.gap("the journal continues after its end");
        }
        match entry {
            Entry::Accepted {
                connection,
                at_us,
                peer,
                host,
            } => {
                let at_us = self.since_start(at_us);
                self.by_number.insert(connection, self.accepted.len());
                self.accept(ConnectionParts {
                    number: connection,
                    at_us,
                    host,
                    peer,
                    closed: None,
                    held: 0,
                });
            }
            Entry::Began {
                connection,
                request,
                at_us,
            } => {
                let at_us = self.since_start(at_us);
                let asked = RequestParts {
                    at_us,
                    connection,
                    head: None,
                    body: None,
                    status: None,
                };
                if self.requests.insert(request, asked).is_some() {
                    self.gap(format!("request {request} began twice"));
                }
            }
            Entry::Head { request, head, .. } => {
                self.update_request(request, "head", |asked| asked.head.replace(head).is_some());
            }
            Entry::Body { request, body, .. } => {
                self.update_request(request, "body", |asked| asked.body.replace(body).is_some());
            }
            Entry::Answered {
                request, status, ..
            } => {
                self.update_request(request, "answer", |asked| {
                    asked.status.replace(status).is_some()
                });
            }
            Entry::Sent {
                request,
                at_us,
                event,
                data,
                ..
            } => {
                self.update_request(request, "event", |_| false);
                let at_us = self.since_start(at_us);
                self.provider_events.push(ProviderEvent {
                    at_us,
                    request,
                    event,
                    data,
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
                connection,
                Closed {
                    bytes,
                    unaccounted,
                    requests,
                    end,
                },
            ),
            Entry::Held {
                at_us,
                peer,
                host,
                bytes,
            } => self.hold(at_us, (peer, host), bytes),
            Entry::Refused { connections, .. } => self.refused = self.refused.max(connections),
            Entry::Done { .. } => self.is_done = true,
        }
    }

    fn accept(&mut self, connection: ConnectionParts) {
        let peer = (connection.peer, connection.host);
        self.by_peer.insert(peer, self.accepted.len());
        self.accepted.push(connection);
    }

    fn close(&mut self, connection: u64, closed: Closed) {
        let index = self.by_number.get(&connection);
        let accepted = index.and_then(|index| self.accepted.get_mut(*index));
        match accepted.map(|accepted| accepted.closed.replace(closed)) {
            None => self.gap(format!(
                "connection {connection} ended but was never accepted"
            )),
            Some(Some(_)) => self.gap(format!("connection {connection} ended twice")),
            Some(None) => {}
        }
    }

    /// Adds held bytes to the peer's last connection, or records a connection that never reached the stub.
    fn hold(&mut self, at_us: u64, (peer, host): (SocketAddr, Host), bytes: u64) {
        let index = self.by_peer.get(&(peer, host));
        match index.and_then(|index| self.accepted.get_mut(*index)) {
            Some(accepted) => accepted.held += bytes,
            None => self.accept(ConnectionParts {
                // No connection of the journal has this number; the journal counts from 1.
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
            self.gap(UNDONE);
        }
        if let Some(peer) = ignore_peer {
            self.drop_canary(peer);
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
            refused: self.refused,
            sightings: self.sightings,
            gaps: self.gaps,
        }
    }

    /// Leaves out the positive canary's connection: the first of that peer, if it carried no byte.
    fn drop_canary(&mut self, peer: SocketAddr) {
        let Some(index) = self
            .accepted
            .iter()
            .position(|accepted| accepted.peer == peer)
        else {
            return self.gap("the connection of the positive canary is not in the journal");
        };
        let was_empty = |accepted: &ConnectionParts| {
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
        let mut digests = HashSet::new();
        let mut requests = Vec::new();
        for (seq, asked) in std::mem::take(&mut self.requests) {
            if !numbers.contains_key(&asked.connection) {
                self.gap(format!(
                    "request {seq} is on a connection that was never accepted"
                ));
            }
            if asked.head.is_none() {
                self.gap(format!("request {seq} has no head"));
            }
            let head = asked.head.unwrap_or(Head::Incomplete);
            let side = side(&head, asked.body.as_ref(), side_requests);
            let seq_of_connection = numbers.get(&asked.connection).copied().unwrap_or(0);
            let host = self.host(seq_of_connection);
            let class = match (side, class(&head, asked.body.as_ref(), &digests)) {
                (Some(_), _) => RequestClass::Side,
                // A preflight asks the provider's own host; at another host it has no purpose.
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
                connection: seq_of_connection,
                host,
                class,
                side: side.map(str::to_owned),
                head,
                body: asked.body,
                status: asked.status,
                expected: None,
            });
        }
        requests
    }

    fn connections(&mut self, requests: &[Request]) -> Vec<Connection> {
        let mut connections = Vec::new();
        let mut requests_of: HashMap<u64, u64> = HashMap::new();
        for request in requests {
            *requests_of.entry(request.connection).or_default() += 1;
        }
        for (accepted, seq) in std::mem::take(&mut self.accepted).into_iter().zip(1..) {
            let began = requests_of.get(&seq).copied().unwrap_or(0);
            let closed = accepted.closed.unwrap_or_else(|| {
                self.gap(format!("connection {seq} has no end"));
                Closed {
                    bytes: 0,
                    unaccounted: 0,
                    requests: began,
                    end: End::Open,
                }
            });
            if closed.requests != began {
                let counted = closed.requests;
                self.gap(format!(
                    "connection {seq} ended with {counted} requests, but the journal has {began}"
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

    /// Fills in a part of a request; `fill` returns true if the part was already there.
    fn update_request(
        &mut self,
        request: u64,
        part: &str,
        fill: impl FnOnce(&mut RequestParts) -> bool,
    ) {
        match self.requests.get_mut(&request).map(fill) {
            None => self.gap(format!(
                "the {part} of request {request} came before its first byte"
            )),
            Some(true) => self.gap(format!("request {request} has a second {part}")),
            Some(false) => {}
        }
    }

    /// Returns the host that accepted the connection of this number in the evidence.
    fn host(&self, seq: u64) -> Host {
        let index = usize::try_from(seq).ok().and_then(|seq| seq.checked_sub(1));
        let accepted = index.and_then(|index| self.accepted.get(index));
        accepted.map_or(Host::default(), |accepted| accepted.host)
    }

    fn gap(&mut self, detail: impl Into<String>) {
        self.gaps.push(Gap {
            what: GapKind::Requests,
            detail: detail.into(),
        });
    }

    fn since_start(&self, at_us: u64) -> u64 {
        at_us.saturating_sub(self.start_us)
    }
}

/// Returns the profile's name for a request beside the turn, if a rule matches.
fn side<'r>(head: &Head, body: Option<&Body>, rules: &'r [SideRequest]) -> Option<&'r str> {
    let Head::Request { method, path, .. } = head else {
        return None;
    };
    let shape = body.and_then(Body::whole_shape);
    let rule = rules.iter().find(|rule| rule.fits(method, path, shape))?;
    Some(&rule.name)
}

/// Classifies a request that no rule of the profile names. `earlier` has the digests of the earlier message
/// bodies.
fn class(head: &Head, body: Option<&Body>, earlier: &HashSet<String>) -> RequestClass {
    let Head::Request {
        method,
        path,
        headers,
        ..
    } = head
    else {
        return RequestClass::Unknown;
    };
    match (method.as_str(), Endpoint::of(path)) {
        ("HEAD", Some(Endpoint::Root)) => RequestClass::Preflight,
        ("POST", Some(Endpoint::Messages)) => {
            let is_again = body.is_some_and(|body| earlier.contains(&body.sha256));
            if is_again || retry_count(headers) > 0 {
                RequestClass::Retry
            } else {
                RequestClass::Message
            }
        }
        ("POST", Some(Endpoint::CountTokens)) | ("GET", Some(Endpoint::Models)) => {
            RequestClass::Side
        }
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
