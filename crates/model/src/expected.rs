//! Evidence that a policy names beforehand: attempts, questions, files and requests, each with its reason.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::evidence::{
    Attempt, AttemptKind, Evidence, FileEntry, FileKind, Outcome as End, Question, RESOLVER,
    Request, Root,
};
use crate::journal::Host;
use crate::profile::{Destination, ExpectedAttempt, ExpectedFile, Files, SideRequest};

/// [`Attempt::target`] of the way to the resolver.
pub fn resolver_target() -> String {
    let (address, port) = RESOLVER;
    format!("inet:{address}:{port}")
}

/// Attempts of one program at one destination that came out the same way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptGroup {
    /// Path of the program, as seen inside; hostile.
    pub program: String,
    /// [`Attempt::target`]; hostile.
    pub target: String,
    /// What became of them.
    pub outcome: End,
    /// How many they are.
    pub count: u64,
    /// Why they are no finding, in the profile's words; `None` where they are one.
    pub reason: Option<String>,
}

impl AttemptGroup {
    /// `denied ENETUNREACH`, `let through`; a question to the resolver of the run went no further than that.
    pub fn outcome_words(&self) -> String {
        let resolver = resolver_target();
        let asked = |rest: &str| rest.is_empty() || rest.starts_with(" for ");
        match self.outcome {
            End::Allowed if self.target.strip_prefix(&resolver).is_some_and(asked) => {
                "answered by the resolver inside".to_owned()
            }
            End::Allowed | End::Denied(_) => self.outcome.words(),
        }
    }
}

/// The ledger's attempts by program, destination and outcome, in the order of the first of each; what is
/// setup is left out.
pub fn attempt_groups(expected: &[ExpectedAttempt], evidence: &Evidence) -> Vec<AttemptGroup> {
    grouped(judged(evidence).map(|attempt| AttemptGroup {
        program: attempt.program.clone(),
        target: attempt.target(),
        outcome: attempt.outcome,
        count: attempt.count,
        reason: reason_for_attempt(expected, evidence, attempt).map(str::to_owned),
    }))
}

/// The calls that met a limit of the sandbox, by program and limit, which stands as the target; not judged.
pub fn met_limits(evidence: &Evidence) -> Vec<AttemptGroup> {
    grouped(evidence.attempts.iter().filter_map(|attempt| {
        let limit = attempt.met_limit()?;
        // No other limit that a call meets has a key in the case.
        let key = if limit.contains("shared memory") {
            "; raised by file_size in the case"
        } else {
            ""
        };
        Some(AttemptGroup {
            program: attempt.program.clone(),
            target: format!("{limit}{key}"),
            outcome: attempt.outcome,
            count: attempt.count,
            reason: None,
        })
    }))
}

fn grouped(all: impl Iterator<Item = AttemptGroup>) -> Vec<AttemptGroup> {
    let mut groups: Vec<AttemptGroup> = Vec::new();
    for new in all {
        let same = |group: &&mut AttemptGroup| {
            (&group.program, &group.target, group.outcome, &group.reason)
                == (&new.program, &new.target, new.outcome, &new.reason)
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.count = group.count.saturating_add(new.count),
            None => groups.push(new),
        }
    }
    groups
}

/// Why an attempt is no finding, in the profile's words; `None` where it is one. A rule speaks of destinations: a
/// call that has none, a listening socket among them, is never allowed.
pub fn reason_for_attempt<'a>(
    expected: &'a [ExpectedAttempt],
    evidence: &Evidence,
    attempt: &Attempt,
) -> Option<&'a str> {
    if !attempt.is_directed() {
        return None;
    }
    let rule = expected
        .iter()
        .find(|rule| leads_to(&rule.destination, attempt));
    rule.map(|rule| rule.reason.as_str())
        .or_else(|| asks_for_names(expected, evidence, attempt))
}

/// Reason from the profile for a question that is no finding; `None` for a finding. A rule for a name covers ordinary
/// queries only: an odd datagram is a finding for any name.
pub fn reason_for_question<'a>(
    expected: &'a [ExpectedAttempt],
    question: &Question,
) -> Option<&'a str> {
    reason_for_name(expected, &question.name).filter(|_| question.odd.is_none())
}

/// Why asking for a name is no finding, in the profile's words; `None` where it is one.
fn reason_for_name<'a>(expected: &'a [ExpectedAttempt], name: &str) -> Option<&'a str> {
    let rule = expected.iter().find(|rule| match &rule.destination {
        // Names are compared without regard to case (RFC 4343).
        Destination::Name(named) => named.eq_ignore_ascii_case(name),
        Destination::Unix(_) | Destination::Inet(..) => false,
    })?;
    Some(&rule.reason)
}

fn judged(evidence: &Evidence) -> impl Iterator<Item = &Attempt> {
    evidence
        .attempts
        .iter()
        .filter(|attempt| attempt.kind == AttemptKind::Attempt)
}

fn leads_to(destination: &Destination, attempt: &Attempt) -> bool {
    match destination {
        Destination::Unix(path) => {
            attempt.family.as_deref() == Some("unix")
                && attempt.address.as_deref() == Some(path.as_str())
        }
        Destination::Inet(address, ports) => {
            attempt.ip() == Some(*address) && attempt.port.is_some_and(|port| ports.include(port))
        }
        Destination::Name(_) => false,
    }
}

/// The way to the resolver is allowed with the names that are asked for there: all of them, and one at least.
/// Where the call itself shows none (a connect, then sends without an address), it is all that were asked for.
fn asks_for_names<'a>(
    expected: &'a [ExpectedAttempt],
    evidence: &Evidence,
    attempt: &Attempt,
) -> Option<&'a str> {
    if !attempt.is_to_resolver() {
        return None;
    }
    let asked: Vec<&str> = if attempt.names.is_empty() {
        evidence
            .names
            .iter()
            .map(|name| name.name.as_str())
            .collect()
    } else {
        attempt.names.iter().map(String::as_str).collect()
    };
    let reasons: Option<Vec<&str>> = asked
        .into_iter()
        .map(|name| reason_for_name(expected, name))
        .collect();
    reasons?.first().copied()
}

/// Why a file or directory is no surprise: the specification names it, or the profile, or it leads to what one of
/// them names. `None` for any other, and for a link, FIFO, socket or device whatever its name. What was there for
/// a time only may also be named so.
pub fn reason_for_file<'a>(files: &'a Files, entry: &FileEntry) -> Option<&'a str> {
    match entry.kind {
        FileKind::File | FileKind::Directory => {}
        FileKind::Symlink | FileKind::Fifo | FileKind::Socket | FileKind::Device => return None,
    }
    let transient = files.transient.iter().filter(|_| entry.transient);
    let mut named = files
        .expected
        .iter()
        .chain(transient)
        .filter(|named| named.root == entry.root);
    let is_directory = entry.kind == FileKind::Directory;
    if let Some(named) = named.clone().find(|named| named.path.matches(&entry.path)) {
        return Some(&named.reason);
    }
    if entry.root == Root::Home && !is_directory {
        if entry.path == files.state {
            return Some("the application state file");
        }
        if stamp(files, &entry.path).is_some() {
            return Some("the backup of the application state file");
        }
    }
    let leads = |named: &ExpectedFile| named.path.lies_below(&entry.path);
    let on_the_way = named.any(leads)
        || (entry.root == Root::Home
            && [&files.state, &files.backup_prefix]
                .into_iter()
                .any(|path| lies_below(path, &entry.path)));
    (is_directory && on_the_way).then_some("a directory on the way to an expected file")
}

/// Whether a request beside the turn is one that the profile expects.
pub fn is_expected_beside(known: &[SideRequest], request: &Request) -> bool {
    let rule = known
        .iter()
        .find(|rule| Some(&rule.name) == request.side.as_ref());
    request.host == Host::Stub && rule.is_some_and(|rule| rule.expected)
}

fn lies_below(path: &str, directory: &str) -> bool {
    path.strip_prefix(directory)
        .is_some_and(|rest| rest.starts_with('/'))
}

/// Digits of an epoch time in milliseconds.
pub const STAMP_DIGITS: usize = 13;

/// The time that a well formed backup carries in its name.
pub fn stamp(files: &Files, path: &str) -> Option<SystemTime> {
    let digits = path.strip_prefix(files.backup_prefix.as_str())?;
    if digits.len() != STAMP_DIGITS || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(UNIX_EPOCH + Duration::from_millis(digits.parse().ok()?))
}
