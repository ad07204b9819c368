//! Attempts inferred from traffic of the client's network namespace that no judged call explains.
//!
//! The supervisor judges the addresses that it reads from the client's memory, but not calls without an address.
//! The kernel's counters show the traffic of such calls. Traffic that a listed call may have caused is subtracted.

use model::evidence::{Attempt, AttemptKind, Outcome};
use nix::errno::Errno;
use sandbox::counters::Counts;
use sandbox::supervise::ledger::Ledger;

/// Caller of an unjudged call, which the counters do not identify.
const UNKNOWN: &str = "unknown";

/// Traffic known from sources other than the counters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen<'a> {
    pub(super) ledger: &'a Ledger,
    /// Number of connections that the stub accepted.
    pub(super) accepted: u64,
    /// Number of datagrams to and from the resolver; `None` if the resolver was lost.
    pub(super) resolver: Option<u64>,
    pub(super) at_us: u64,
}

/// Returns an attempt for each counter that exceeds the known traffic.
pub(super) fn attempts(counts: Counts, seen: Seen<'_>) -> Vec<Attempt> {
    let Seen {
        ledger, resolver, ..
    } = seen;
    let through = |is_cause: fn(&Attempt) -> bool| -> u64 {
        let caused = ledger.attempts.iter().filter(|attempt| {
            attempt.outcome == Outcome::Allowed && attempt.has_destination() && is_cause(attempt)
        });
        caused.map(|attempt| attempt.count).sum()
    };
    // Calls of other families, such as unix sockets, cause no IP traffic, and the resolver's traffic is known.
    let is_to_others = |attempt: &Attempt| {
        attempt.kind == AttemptKind::Attempt && attempt.is_internet() && !attempt.is_to_resolver()
    };
    let to_others = through(is_to_others) + ledger.unlisted.let_through;
    // Without IPv6 in the kernel, ::1 has no route either.
    let unrouted =
        through(|attempt| attempt.leaves_loopback() || attempt.family.as_deref() == Some("inet6"))
            + ledger.unlisted.away;
    // A connection may end with its process before the stub accepts it, so the larger number counts.
    let to_stub = seen.accepted.max(ledger.connects.len() as u64);
    let connections = to_stub + to_others;
    let datagrams = match resolver {
        Some(datagrams) if to_others == 0 => counts.datagrams.saturating_sub(datagrams),
        // The counter does not separate datagrams by destination.
        _ => 0,
    };
    let refused = Outcome::Denied(Errno::ENETUNREACH);
    let found = [
        (
            counts.unrouted.saturating_sub(unrouted),
            "call beyond loopback that no recorded call explains (kernel counter Ip OutNoRoutes)",
            refused,
        ),
        (
            counts.connections.saturating_sub(connections),
            "connection that no recorded call explains (kernel counter Tcp ActiveOpens)",
            Outcome::Allowed,
        ),
        (
            datagrams,
            "datagram that no recorded call explains (kernel counter Udp OutDatagrams)",
            Outcome::Allowed,
        ),
    ];
    let found = found.into_iter().filter(|(count, ..)| *count > 0);
    let numbers = ledger.attempts.len() as u64 + 1..;
    found
        .zip(numbers)
        .map(|((count, what, outcome), seq)| Attempt {
            seq,
            at_us: seen.at_us,
            kind: AttemptKind::Attempt,
            pid: 0,
            program: UNKNOWN.to_owned(),
            syscall: UNKNOWN.into(),
            family: None,
            socket_type: None,
            protocol: None,
            address: Some(what.to_owned()),
            port: None,
            outcome,
            count,
            names: Vec::new(),
            expected: None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use model::evidence::fixture::connect;

    use super::*;

    const NONE: Counts = Counts {
        unrouted: 0,
        connections: 0,
        datagrams: 0,
    };

    fn through(family: &str, address: &str, port: u16) -> Attempt {
        Attempt {
            outcome: Outcome::Allowed,
            ..connect(family, address, Some(port))
        }
    }

    /// Returns address and count of each attempt after these calls, with three accepted connections and four
    /// datagrams to and from the resolver.
    fn found(counts: Counts, calls: Vec<Attempt>) -> Vec<(String, u64)> {
        let mut ledger = Ledger::default();
        ledger.attempts.extend(calls);
        let seen = Seen {
            ledger: &ledger,
            accepted: 3,
            resolver: Some(4),
            at_us: 0,
        };
        let found = attempts(counts, seen).into_iter();
        found
            .map(|attempt| (attempt.target(), attempt.count))
            .collect()
    }

    #[test]
    fn traffic_that_was_seen_is_no_attempt() {
        let counts = Counts {
            connections: 3,
            datagrams: 4,
            ..NONE
        };
        assert_eq!(found(counts, Vec::new()), []);
    }

    #[test]
    fn traffic_beyond_what_was_seen_is_an_attempt() {
        for (counts, target, number) in [
            (
                Counts {
                    unrouted: 1,
                    ..NONE
                },
                "unknown call beyond loopback that no recorded call explains (kernel counter Ip OutNoRoutes)",
                1,
            ),
            (
                Counts {
                    connections: 5,
                    ..NONE
                },
                "unknown connection that no recorded call explains (kernel counter Tcp ActiveOpens)",
                2,
            ),
            (
                Counts {
                    datagrams: 7,
                    ..NONE
                },
                "unknown datagram that no recorded call explains (kernel counter Udp OutDatagrams)",
                3,
            ),
        ] {
            assert_eq!(found(counts, Vec::new()), [(target.to_owned(), number)]);
        }
    }

    #[test]
    fn calls_let_through_explain_their_own_traffic() {
        let counts = Counts {
            unrouted: 2,
            connections: 4,
            datagrams: 6,
        };
        let number = |call| found(counts, vec![call]).len();
        assert_eq!(
            number(through("inet", "192.0.2.1", 443)),
            1,
            "all but its route"
        );
        assert_eq!(
            number(through("inet", "127.0.0.1", 8125)),
            1,
            "all but a route"
        );
        assert_eq!(
            number(through("inet", "127.0.0.1", 53)),
            3,
            "the resolver takes datagrams, and counts them"
        );
        let denied = connect("inet", "192.0.2.1", Some(443));
        assert_eq!(number(denied), 3);
        let unix = Attempt {
            port: None,
            count: 9,
            ..through("unix", "/run/own", 0)
        };
        assert_eq!(number(unix), 3, "no traffic");
        let stub = Attempt {
            kind: AttemptKind::Setup,
            ..through("inet", "127.0.0.1", 4000)
        };
        assert_eq!(number(stub), 3);
    }

    #[test]
    fn calls_beyond_the_list_explain_theirs() {
        let mut ledger = Ledger::default();
        (ledger.unlisted.let_through, ledger.unlisted.away) = (2, 1);
        let seen = Seen {
            ledger: &ledger,
            accepted: 0,
            resolver: None,
            at_us: 0,
        };
        let counts = Counts {
            unrouted: 1,
            connections: 2,
            datagrams: 9,
        };
        assert_eq!(attempts(counts, seen), []);
    }
}
