//! Builds the evidence from a capture: folds the journal, splits the output into records, walks the trees.
//!
//! Runs after every process of the sandbox has ended, so that its inputs cannot change meanwhile.

mod from_journal;
mod unjudged;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use model::case::Limits;
use model::evidence::Process;
use model::evidence::{
    Attempt, AttemptKind, Connection, Evidence, Exit, FileEntry, FileWatch, Gap, GapKind,
    MadeAndRemoved, Outcome, Request, Root, Sensitive, SensitivePath, Survivor, Unlisted,
};
use model::journal::{Content, Head};
use model::layout::{HOME, TMP, WORK};
use model::secret::SecretScanner;
use model::text::printable;
use sandbox::plan::Plan;
use sandbox::root::Trees;
use sandbox::supervise::ledger::lookups::Lookups;
use sandbox::supervise::ledger::{Connect, Ledger};
use sys::clock::Clock;

use crate::audit::Caller;
use crate::collect::files::{self, Bounds, Found};
use crate::collect::inode_count::{made_and_gone, next_number};
use crate::collect::output::Boundaries;
use crate::collect::{Capture, limit, mount_points};
use crate::lookups::{self, Comparison};
use crate::prepare::Prepared;
use crate::workload::Workload;
use from_journal::{Traffic, from_journal};

/// Time limit for comparing lookups with the host. Signals are not handled during that time, so it is short.
const COMPARE_LIMIT: Duration = Duration::from_secs(2);

/// Limit for reading standard output at the first byte of a request, in microseconds. Lines read later may also
/// have been written later.
const BARRIER_US: u64 = 50_000;

/// Builds the evidence of one run. Consumes the capture, so that the client's directories can be removed
/// afterwards.
pub(crate) fn build(
    mut capture: Capture,
    (limits, timeout): (&Limits, Duration),
    prepared: &Prepared,
    clock: Clock,
    workload: &Workload,
) -> Evidence {
    let (plan, secrets) = (&prepared.plan, &prepared.secrets);
    let now_us = clock.elapsed_us();
    let mut traffic = from_journal(
        std::mem::take(&mut capture.journal),
        clock.start_us,
        capture.canary_peer,
        workload.side_requests(),
    );
    traffic
        .requests
        .iter_mut()
        .for_each(|request| hide(request, secrets));
    let over = capture.output.over();
    let used = limit::Used {
        over,
        oom_kills: capture.oom_kills,
        cpu: capture.cpu,
    };
    let limit = limit::reached(capture.exit, used, timeout, limits, &plan.limits);
    let accepted = accepted(&traffic);
    let (before, unreconciled) = boundaries(&traffic, &capture);
    let unread = closed_unread(traffic.refused, limits, prepared.connections);
    let mut ledger = capture.ledger;
    let ledger_gaps = incomplete_ledger(&ledger);
    let (records, seen_on_stdout) = capture.output.into_records(before, now_us);
    let seen_in_passing = capture.passed.and_then(|passed| passed.sighting("stdout"));
    let (stderr, seen_on_stderr) = capture.errors.into_stderr(secrets);
    let names = capture.questions.finish(capture.exit);
    let seen = unjudged::Seen {
        ledger: &ledger,
        accepted,
        resolver: names.datagrams,
        at_us: now_us,
    };
    let was_asked = !names.asked.is_empty() || names.unlisted > 0;
    let counts = capture.counts.unwrap_or_default();
    ledger.attempts.extend(unjudged::attempts(counts, seen));
    let mut file_watch = FileWatch::default();
    let (found, made_and_removed) = match capture.trees {
        Some(trees) => {
            let (mut found, counts) = walk(trees, capture.first_numbers, limits, plan, secrets);
            file_watch = capture.gone.watch;
            capture.gone.add_to(&mut found, secrets);
            (found, counts)
        }
        None => (not_handed_over(capture.exit), Vec::new()),
    };
    let (layers, canaries) = capture
        .isolation
        .map_or_else(Default::default, |isolation| {
            (isolation.layers, isolation.canaries)
        });
    let prompts = workload.prompts();
    let started = ledger.processes.iter();
    let started = started
        .map(|process| Process::new(process, &prompts))
        .collect();
    let comparison = comparison(&ledger.lookups, &found.files, plan, secrets);
    let lookup_gaps = incomplete_lookups(&ledger.lookups, comparison.uncompared);
    Evidence {
        stub: capture.stub,
        connections: traffic.connections,
        requests: traffic.requests,
        provider_events: traffic.provider_events,
        records,
        files: found.files,
        made_and_removed,
        file_watch,
        stderr,
        sightings: [
            traffic.sightings,
            seen_on_stdout,
            Vec::from_iter(seen_in_passing),
            Vec::from_iter(seen_on_stderr),
            ledger.sightings,
            names.sightings,
            found.sightings,
        ]
        .concat(),
        exit: capture.exit,
        limit,
        attempts: redacted_attempts(ledger.attempts, secrets, was_asked),
        unlisted: Unlisted {
            questions: names.unlisted,
            ..ledger.unlisted
        },
        lookups: comparison.lookups,
        sensitive: sensitive(&ledger.lookups, secrets),
        names: names.asked,
        processes: started,
        survivors: redacted_survivors(capture.survivors, secrets),
        layers,
        canaries,
        gaps: [
            capture.gaps,
            traffic.gaps,
            names.gaps,
            found.gaps,
            unreconciled,
            Vec::from_iter(unread),
            ledger_gaps,
            lookup_gaps,
        ]
        .concat(),
        moments: capture.moments,
        wall: (clock.wall, SystemTime::now()),
        duration: Duration::from_micros(clock.elapsed_us()),
    }
}

/// Walks the trees. Returns their files, and for each tree the number of objects created and removed again, if
/// known.
fn walk(
    trees: Trees,
    first_numbers: [Option<u64>; 3],
    limits: &Limits,
    plan: &Plan,
    secrets: &SecretScanner,
) -> (Found, Vec<MadeAndRemoved>) {
    let bounds = Bounds {
        bytes: 2 * limits.home_bytes,
        entries: limits.home_files,
    };
    let mut found = Found::default();
    let mut made_and_removed = Vec::new();
    for ((root, tree), first) in trees.into_each().into_iter().zip(first_numbers) {
        let last = first.and_then(|_| next_number(&tree, plan.identity));
        found.objects.clear();
        let own = match root {
            Root::Tmp => plan.root.names_in_tmp(),
            Root::Home | Root::Work => Vec::new(),
        };
        if let Err(errno) = mount_points::remove(&tree, &own, plan.identity) {
            found.gaps.push(Gap {
                what: GapKind::Files,
                detail: format!(
                    "the sandbox's own mount points in {TMP} cannot be removed: {errno:?}"
                ),
            });
            continue;
        }
        files::walk(root, tree, secrets, bounds, &mut found);
        // After an incomplete walk, objects that were not visited would count as removed.
        let present = found.gaps.is_empty().then_some(found.objects.len() as u64);
        let count = present.and_then(|present| made_and_gone(first, last, present));
        made_and_removed.push(MadeAndRemoved { root, count });
    }
    (found, made_and_removed)
}

fn not_handed_over(exit: Exit) -> Found {
    let mut found = Found::default();
    if exit != Exit::NotStarted {
        found.gaps.push(Gap {
            what: GapKind::Files,
            detail: "init did not send the descriptors of the client's directories".to_owned(),
        });
    }
    found
}

/// Counts the lines on standard output before the message request: at its connection and at its first byte. The
/// connections permitted by the supervisor must match those that the stub accepted, in number and in order of
/// time. Otherwise the lines at the connection are unknown.
fn boundaries(traffic: &Traffic, capture: &Capture) -> (Boundaries, Vec<Gap>) {
    let none = Boundaries {
        connect: 0,
        post: 0,
    };
    let permitted = capture.ledger.connects.len() as u64;
    let accepted = accepted(traffic);
    let mut gaps = Vec::new();
    if permitted != accepted {
        let detail = format!(
            "the supervisor permitted {permitted} connections to the stub, and the stub accepted {accepted}"
        );
        gaps.push(Gap {
            what: GapKind::Requests,
            detail,
        });
    }
    let is_early = |(connect, accepted): (&Connect, &Connection)| accepted.at_us < connect.at_us;
    let mut pairs = capture.ledger.connects.iter().zip(&traffic.connections);
    if permitted == accepted && pairs.any(is_early) {
        // The numbers match, but not the connections: one never arrived, and another one was not permitted.
        let detail =
            "the stub accepted a connection before the supervisor permitted one".to_owned();
        gaps.push(Gap {
            what: GapKind::Requests,
            detail,
        });
    }
    let Some(post) = traffic.requests.iter().find(|request| request.is_turn()) else {
        return (none, gaps);
    };
    let barrier = capture
        .barriers
        .iter()
        .find(|(request, _)| *request == post.seq);
    let connect = if gaps.is_empty() {
        lines_at_connect(traffic, capture, post.connection)
    } else {
        None
    };
    let at_barrier = barrier.map_or(0, |(_, lines)| *lines);
    let limit_us = post.at_us + BARRIER_US;
    let in_time = at_barrier.min(capture.output.lines_before(limit_us));
    if in_time < at_barrier {
        let number = at_barrier - in_time;
        gaps.push(Gap {
            what: GapKind::Order,
            detail: format!(
                "{number} lines of standard output were read more than {} ms after the first byte of the request, and may \
                 have been written before or after it",
                BARRIER_US / 1000
            ),
        });
    }
    let boundaries = Boundaries {
        connect: connect.unwrap_or(0),
        post: in_time,
    };
    (boundaries, gaps)
}

/// Number of connections that arrived at the stub.
fn accepted(traffic: &Traffic) -> u64 {
    traffic.connections.len() as u64 + traffic.refused
}

/// Returns the number of lines at the connect of `connection`. Only their order identifies connections. If an
/// earlier permitted connection had not been accepted by then, the two may be swapped, so the earlier one counts.
fn lines_at_connect(traffic: &Traffic, capture: &Capture, connection: u64) -> Option<usize> {
    let connects = &capture.ledger.connects;
    let mut index = traffic
        .connections
        .iter()
        .position(|one| one.seq == connection)?;
    let at_us = connects.get(index)?.at_us;
    while index > 0
        && traffic
            .connections
            .get(index - 1)
            .is_some_and(|earlier| earlier.at_us > at_us)
    {
        index -= 1;
    }
    connects.get(index)?.lines
}

/// Gap for connections beyond the limit of the case, or beyond the number that this machine permits the stub.
fn closed_unread(refused: u64, limits: &Limits, held: u64) -> Option<Gap> {
    let limit = if held < limits.connections {
        format!(
            "the hard limit RLIMIT_NOFILE on this machine leaves {held} at one time of connections"
        )
    } else {
        "connections".to_owned()
    };
    (refused > 0).then(|| Gap {
        what: GapKind::Requests,
        detail: format!(
            "{refused} connections beyond the limit were closed unread (limit: {limit} = {})",
            limits.connections
        ),
    })
}

/// Compares the lookups with the host. HOME names the home of the runner's user, as for a shell.
fn comparison(
    lookups: &Lookups,
    files: &[FileEntry],
    plan: &Plan,
    secrets: &SecretScanner,
) -> Comparison {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let starts_alone = plan.client.directory == WORK;
    let directory = std::env::current_dir().ok().filter(|_| starts_alone);
    let inside = files.iter().map(|entry| match entry.root {
        Root::Home => format!("{HOME}/{}", entry.path),
        Root::Work => format!("{WORK}/{}", entry.path),
        Root::Tmp => format!("{TMP}/{}", entry.path),
    });
    let present: Vec<String> = inside.collect();
    let caller = Caller {
        directory: directory.as_deref(),
        home: home.as_deref(),
    };
    lookups::compare(
        lookups,
        &plan.root.binds,
        &present,
        caller,
        secrets,
        lookups::host::probe,
        Instant::now() + COMPARE_LIMIT,
    )
}

/// Lists the sensitive paths among the lookups, in path order, each with its strongest use.
fn sensitive(lookups: &Lookups, secrets: &SecretScanner) -> Vec<SensitivePath> {
    let mut found: BTreeMap<String, SensitivePath> = BTreeMap::new();
    for (wanted, seen) in lookups.iter() {
        let Some(what) = Sensitive::of_path(&wanted.path) else {
            continue;
        };
        let path = secrets.redact(&printable(wanted.path.as_os_str().as_encoded_bytes()));
        let new = SensitivePath {
            what,
            path: path.clone(),
            kind: wanted.kind,
            count: 0,
            at_us: seen.at_us,
        };
        let listed = found.entry(path).or_insert(new);
        listed.kind = listed.kind.max(wanted.kind);
        listed.count += seen.count;
        listed.at_us = listed.at_us.min(seen.at_us);
    }
    found.into_values().collect()
}

fn incomplete_lookups(lookups: &Lookups, uncompared: u64) -> Vec<Gap> {
    let missing = [
        (lookups.further, "more lookups than are kept"),
        (lookups.unreadable, "lookups whose path could not be read"),
        (
            uncompared,
            "lookups that were not compared with the host within the time limit",
        ),
    ];
    let missing = missing.into_iter().filter(|(count, _)| *count > 0);
    let gap = |(count, what): (u64, &str)| Gap {
        what: GapKind::Lookups,
        detail: format!("{count} {what}"),
    };
    missing.map(gap).collect()
}

fn incomplete_ledger(ledger: &Ledger) -> Vec<Gap> {
    let unlisted = &ledger.unlisted;
    let further = [
        (
            unlisted.attempts() + unlisted.setup,
            GapKind::Cut,
            "calls by programs or to destinations beyond those that are listed",
        ),
        (
            unlisted.away,
            GapKind::Attempts,
            "calls to destinations beyond loopback, permitted and not listed",
        ),
        (
            ledger.further_processes,
            GapKind::Cut,
            "started programs beyond those that are listed",
        ),
    ];
    let further = further.into_iter().filter(|(count, ..)| *count > 0);
    let further = further.map(|(count, what, of)| (what, format!("{count} {of}")));
    let unasked = ledger
        .connects
        .iter()
        .filter(|connect| connect.lines.is_none())
        .count();
    let unasked = (unasked > 0).then(|| {
        let detail = format!("{unasked} connections did not wait for the records before them");
        (GapKind::Order, detail)
    });
    further
        .chain(
            ledger
                .faults
                .iter()
                .map(|detail| (GapKind::Attempts, detail.clone())),
        )
        .chain(unasked)
        .map(|(what, detail)| Gap { what, detail })
        .collect()
}

/// Redacts the hidden values in a request; the stub itself redacts only the credential.
fn hide(request: &mut Request, secrets: &SecretScanner) {
    let hide = |text: &mut String| *text = secrets.redact(text);
    if let Head::Request {
        method,
        path,
        query,
        headers,
        ..
    } = &mut request.head
    {
        [method, path].into_iter().chain(query).for_each(hide);
        for (name, value) in headers {
            hide(name);
            hide(value);
        }
    }
    match request.body.as_mut().map(|body| &mut body.content) {
        Some(Content::Json { shape }) => secrets.redact_json(shape),
        Some(Content::DuplicateKey { path }) => hide(path),
        Some(Content::Empty | Content::Other { .. }) | None => {}
    }
}

fn redacted_survivors(mut survivors: Vec<Survivor>, secrets: &SecretScanner) -> Vec<Survivor> {
    for survivor in &mut survivors {
        survivor.program = secrets.redact(&survivor.program);
    }
    survivors
}

/// Redacts the attempts. Calls to the resolver become questions if it was asked anything: it lists each datagram itself.
fn redacted_attempts(
    mut attempts: Vec<Attempt>,
    secrets: &SecretScanner,
    was_asked: bool,
) -> Vec<Attempt> {
    for attempt in &mut attempts {
        let is_through = attempt.outcome == Outcome::Allowed && attempt.has_destination();
        if was_asked && is_through && attempt.is_to_resolver() {
            attempt.kind = AttemptKind::Question;
        }
        attempt.program = secrets.redact(&attempt.program);
        attempt.address = attempt
            .address
            .as_deref()
            .map(|address| secrets.redact(address));
        attempt.names = attempt
            .names
            .iter()
            .map(|name| secrets.redact(name))
            .collect();
    }
    attempts
}

#[cfg(test)]
mod tests;
