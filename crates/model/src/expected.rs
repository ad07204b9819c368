//! Expected evidence: attempts, questions, files and requests that a policy lists, each with a reason.

use std::net::IpAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::evidence::{
    Attempt, AttemptKind, Evidence, FileEntry, FileKind, Outcome as End, Question, Request, Root,
    Sighting,
};
use crate::journal::Host;
use crate::profile::{Destination, ExpectedAttempt, ExpectedFile, Files, Ports, SideRequest};

/// Attempts of one program at one destination with the same outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptGroup {
    /// Path of the program inside the sandbox; hostile.
    pub program: String,
    /// [`Attempt::target`]; hostile.
    pub target: String,
    /// Outcome of the attempts.
    pub outcome: End,
    /// Number of attempts.
    pub count: u64,
    /// Reason in the profile why the attempts are expected; `None` for findings.
    pub reason: Option<String>,
}

/// Rules of a policy for evidence that is no finding.
#[derive(Clone, Copy, Debug)]
pub struct Rules<'a> {
    /// Expected attempts.
    pub attempts: &'a [ExpectedAttempt],
    /// Expected files, permanent and transient; `None` for an audit.
    pub files: Option<&'a Files>,
    /// Known requests besides the turn.
    pub side_requests: &'a [SideRequest],
}

impl Rules<'_> {
    /// Writes the reason of each expected attempt, question, file and request into the evidence, for the reports.
    pub fn explain(&self, evidence: &mut Evidence) {
        let reasons: Vec<Option<String>> = evidence
            .attempts
            .iter()
            .map(|attempt| match attempt.kind {
                AttemptKind::Attempt => reason_for_attempt(self.attempts, attempt),
                AttemptKind::Setup | AttemptKind::Question => None,
            })
            .map(|reason| reason.map(str::to_owned))
            .collect();
        for (attempt, reason) in evidence.attempts.iter_mut().zip(reasons) {
            attempt.expected = reason;
        }
        for question in &mut evidence.names {
            question.expected = reason_for_question(self.attempts, question).map(str::to_owned);
        }
        for entry in &mut evidence.files {
            let reason = self.files.and_then(|files| reason_for_file(files, entry));
            entry.expected = reason.map(str::to_owned);
        }
        for request in &mut evidence.requests {
            let rule = expected_side_request(self.side_requests, request);
            request.expected = rule.map(|rule| rule.reason.clone());
        }
    }
}

/// Groups the judged attempts by program, destination, outcome and the reason of `reason`, in the order of first
/// occurrence.
pub fn attempt_groups<'a>(
    evidence: &'a Evidence,
    reason: impl Fn(&'a Attempt) -> Option<&'a str>,
) -> Vec<AttemptGroup> {
    grouped(judged(evidence).map(|attempt| AttemptGroup {
        program: attempt.program.clone(),
        target: attempt.target(),
        outcome: attempt.outcome,
        count: attempt.count,
        reason: reason(attempt).map(str::to_owned),
    }))
}

/// Groups the attempts of a report, which have their reasons.
pub fn explained_groups(evidence: &Evidence) -> Vec<AttemptGroup> {
    attempt_groups(evidence, |attempt| attempt.expected.as_deref())
}

/// Groups the calls that reached a limit of the sandbox, by program and limit. These calls are not judged.
pub fn reached_limits(evidence: &Evidence) -> Vec<AttemptGroup> {
    grouped(evidence.attempts.iter().filter_map(|attempt| {
        let limit = attempt.reached_limit()?;
        // No other limit that a call can reach has a key in the case.
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

/// Returns the reason in the profile why an attempt is expected; `None` for a finding.
pub fn reason_for_attempt<'a>(
    expected: &'a [ExpectedAttempt],
    attempt: &Attempt,
) -> Option<&'a str> {
    let rule = expected
        .iter()
        .find(|rule| leads_to(&rule.destination, attempt));
    rule.map(|rule| rule.reason.as_str())
}

/// Returns the reason in the profile why a question is expected; `None` for a finding. A rule for a name covers
/// ordinary queries only; an odd datagram is always a finding.
pub fn reason_for_question<'a>(
    expected: &'a [ExpectedAttempt],
    question: &Question,
) -> Option<&'a str> {
    reason_for_name(expected, &question.name).filter(|_| question.odd.is_none())
}

/// Returns the reason in the profile why a name is expected; `None` for a finding.
fn reason_for_name<'a>(expected: &'a [ExpectedAttempt], name: &str) -> Option<&'a str> {
    let rule = expected.iter().find(|rule| match &rule.destination {
        // Names are compared without case (RFC 4343).
        Destination::Name(named) => named.eq_ignore_ascii_case(name),
        Destination::Unix(_)
        | Destination::Inet(..)
        | Destination::Netlink(_)
        | Destination::Bind(..)
        | Destination::Call(_) => false,
    })?;
    Some(&rule.reason)
}

/// Returns the attempts that are judged as such: neither setup nor questions, which are judged by their names.
pub fn judged(evidence: &Evidence) -> impl Iterator<Item = &Attempt> {
    evidence
        .attempts
        .iter()
        .filter(|attempt| attempt.kind == AttemptKind::Attempt)
}

fn leads_to(destination: &Destination, attempt: &Attempt) -> bool {
    let is_at = |address: IpAddr, ports: Ports| {
        attempt.ip() == Some(address) && attempt.port.is_some_and(|port| ports.include(port))
    };
    match destination {
        Destination::Inet(address, ports) => attempt.has_destination() && is_at(*address, *ports),
        Destination::Bind(address, ports) => attempt.syscall == "bind" && is_at(*address, *ports),
        Destination::Unix(_) | Destination::Netlink(_) | Destination::Call(_) => {
            attempt.rule() == destination.to_string()
        }
        Destination::Name(_) => false,
    }
}

/// Returns the reason why a file or directory is expected: the specification or the profile names it, or it contains
/// such a path.
///
/// `None` for any other object, and for every link, FIFO, socket and device. Removed objects may also match the
/// profile's list of transient files.
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
        if files.state.as_ref() == Some(&entry.path) {
            return Some("the application state file");
        }
        if stamp(files, &entry.path).is_some() {
            return Some("the backup of the application state file");
        }
    }
    let leads = |named: &ExpectedFile| named.path.lies_below(&entry.path);
    let on_the_way = named.any(leads)
        || (entry.root == Root::Home
            && files
                .state
                .iter()
                .chain(&files.backup_prefix)
                .any(|path| lies_below(path, &entry.path)));
    (is_directory && on_the_way).then_some("a directory on the way to an expected file")
}

/// Returns true if the profile expects this side request.
pub fn is_expected_side_request(known: &[SideRequest], request: &Request) -> bool {
    expected_side_request(known, request).is_some()
}

fn expected_side_request<'a>(
    known: &'a [SideRequest],
    request: &Request,
) -> Option<&'a SideRequest> {
    let mut known = known.iter();
    let rule = known.find(|rule| Some(&rule.name) == request.side.as_ref())?;
    (request.host == Host::Stub && rule.expected).then_some(rule)
}

/// Returns the rule of a file that may hold the credential; `None` for a finding.
pub fn rule_for_sighting<'a>(files: &'a Files, sighting: &Sighting) -> Option<&'a ExpectedFile> {
    let (root, path) = sighting.file()?;
    files
        .expected
        .iter()
        .find(|rule| rule.may_hold_credential && rule.root == root && rule.path.matches(path))
}

fn lies_below(path: &str, directory: &str) -> bool {
    path.strip_prefix(directory)
        .is_some_and(|rest| rest.starts_with('/'))
}

/// Number of digits of an epoch time in milliseconds.
pub const STAMP_DIGITS: usize = 13;

/// Returns the time in the name of a well-formed backup file.
pub fn stamp(files: &Files, path: &str) -> Option<SystemTime> {
    let digits = path.strip_prefix(files.backup_prefix.as_deref()?)?;
    if digits.len() != STAMP_DIGITS || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(UNIX_EPOCH + Duration::from_millis(digits.parse().ok()?))
}
