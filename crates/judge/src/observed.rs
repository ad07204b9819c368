//! Expectations from what several runs of one program showed: rules that each of the runs meets.
//!
//! What differs between the runs becomes a pattern or a number of times. What no rule may bless is listed instead: a
//! credential outside of its header, survivors, sensitive places, lost evidence, attempts without a destination. A rule
//! that a person may allow nevertheless is withheld.

mod pattern;
pub(crate) mod records;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use model::case::Expectations;
use model::case::expect::{
    Auth, BodyField, BodyRules, ExpectedExit, HeaderRules, Order, ProgramRule, Protocol,
    RequestRule, Requests,
};
use model::evidence::{
    Attempt, Evidence, Exit, FileEntry, FileKind, Question, Record, Request, Sighting,
};
use model::expected::judged;
use model::journal::{Head, Host, REDACTED};
use model::profile::{Destination, ExpectedAttempt, ExpectedFile, Files, Ports, TextPattern};
use model::report::{SensitivePlace, sensitive};
use model::secret::AUTH_HEADERS;

use pattern::patterns;

/// First port that Linux gives to a socket without one (`ip_local_port_range` of ip(7)).
const FIRST_EPHEMERAL_PORT: u16 = 32768;

/// Expectations, and what they do not include.
#[derive(Debug, Default)]
pub struct Observed {
    /// Rules that each run meets.
    pub expect: Expectations,
    /// Rules that only a person may add: files with the credential, and sensitive destinations.
    pub withheld: Expectations,
    /// Behaviour for which there is no rule, one phrase each.
    pub refused: Vec<String>,
    /// Sentence on records without a form or rules.
    pub records_not_judged: Option<String>,
}

/// Derives expectations from runs of the same program. `reason` is that of each rule.
pub fn observed(runs: &[&Evidence], reason: &str) -> Observed {
    let mut refused = BTreeSet::new();
    let of_runs = || runs.iter();
    let lines: Vec<&[Record]> = of_runs().map(|run| run.records.as_slice()).collect();
    let (records, records_not_judged) = records::records(&lines, reason);
    let sent: Vec<&[Request]> = of_runs().map(|run| run.requests.as_slice()).collect();
    let left: Vec<&[FileEntry]> = of_runs().map(|run| run.files.as_slice()).collect();
    let programs: Vec<Vec<String>> = of_runs().map(|run| further_programs(run)).collect();
    let mut expect = Expectations {
        requests: Some(requests(&sent, reason, &mut refused)),
        records,
        files: Some(files(&left, reason, &mut refused)),
        exit: exit(runs, &mut refused),
        programs: Some(program_rules(programs, reason, &mut refused)),
        attempts: attempts(
            of_runs().flat_map(|run| judged(run)),
            of_runs().flat_map(|run| &run.names),
            reason,
            &mut refused,
        ),
        ..Expectations::default()
    };
    for run in runs {
        let sightings = run.sightings.iter();
        refused.extend(sightings.map(|seen| format!("the credential in {}", seen.place)));
        let survivors = run.survivors.iter();
        refused
            .extend(survivors.map(|one| format!("the process {} that outlived it", one.program)));
        refused.extend(
            run.gaps
                .iter()
                .map(|gap| format!("lost evidence: {}", gap.detail)),
        );
    }
    let places = runs.iter().flat_map(|run| sensitive(run));
    let places: Vec<SensitivePlace> = places.collect();
    refused.extend(places.iter().map(|found| {
        format!(
            "the sensitive place {} ({})",
            found.place,
            found.what.word()
        )
    }));
    let withheld = withhold(&mut expect, runs, &places);
    Observed {
        expect,
        withheld,
        refused: refused.into_iter().collect(),
        records_not_judged,
    }
}

/// Takes the rules out that no run may bless: those of files with the credential, and of sensitive destinations.
fn withhold(
    expect: &mut Expectations,
    runs: &[&Evidence],
    places: &[SensitivePlace],
) -> Expectations {
    let holds_credential = |rule: &mut ExpectedFile| {
        let mut files = runs
            .iter()
            .flat_map(|run| &run.sightings)
            .filter_map(Sighting::file);
        files.any(|(root, path)| rule.root == root && rule.path.matches(path))
    };
    let mut files = Files::default();
    if let Some(all) = &mut expect.files {
        files.expected = all.expected.extract_if(.., holds_credential).collect();
    }
    for rule in &mut files.expected {
        rule.may_hold_credential = true;
    }
    Expectations {
        files: Some(files),
        attempts: expect
            .attempts
            .extract_if(.., |rule| is_sensitive(rule, places))
            .collect(),
        ..Expectations::default()
    }
}

/// Checks for the destination of a sensitive place.
pub(crate) fn is_sensitive(rule: &ExpectedAttempt, places: &[SensitivePlace]) -> bool {
    let destination = rule.destination.to_string();
    places.iter().any(|found| {
        destination == found.place
            || destination == Destination::Name(found.place.to_ascii_lowercase()).to_string()
    })
}

/// Derives rules from the requests of each run.
pub(crate) fn requests(
    runs: &[&[Request]],
    reason: &str,
    refused: &mut BTreeSet<String>,
) -> Requests {
    let mut rules = Vec::new();
    let mut methods = BTreeSet::new();
    for request in runs.iter().copied().flatten() {
        match (&request.head, request.host) {
            (Head::Request { method, .. }, Host::Stub) => drop(methods.insert(method.as_str())),
            (Head::Request { .. }, Host::Elsewhere) => {
                refused.insert("a request to the second host of a redirect".to_owned());
            }
            (Head::Malformed { .. } | Head::Incomplete, _) => {
                refused.insert("bytes that are no whole request".to_owned());
            }
        }
    }
    for method in methods {
        let paths = runs.iter().map(|run| {
            let paths = run.iter().filter_map(|request| path_of(request, method));
            paths.map(str::to_owned).collect()
        });
        for pattern in patterns(paths) {
            let Ok(path) = pattern.text.parse() else {
                refused.insert(format!("a request whose path has braces: {}", pattern.text));
                continue;
            };
            let all: Vec<&Request> = runs
                .iter()
                .copied()
                .flatten()
                .filter(|request| path_of(request, method).is_some_and(|path| pattern.covers(path)))
                .collect();
            let is_turn = all.iter().all(|request| request.is_post());
            rules.push(RequestRule {
                name: String::new(),
                profile: None,
                protocol: is_turn.then_some(Protocol::Messages),
                method: method.to_owned(),
                path,
                count: pattern.count,
                queries: queries(&all),
                auth: auth(&all),
                headers: HeaderRules::default(),
                user_agent: user_agent(&all),
                families: Vec::new(),
                beta_header: String::new(),
                body: BodyRules {
                    fields: fields(&all),
                    ..BodyRules::default()
                },
                reason: reason.to_owned(),
            });
        }
    }
    let first = |rule: &RequestRule| {
        let mut requests = runs.iter().flat_map(|run| run.iter().enumerate());
        requests
            .find(|(_, request)| fits(rule, request))
            .map(|(place, _)| place)
    };
    rules.sort_by_key(|rule| first(rule));
    for (number, rule) in rules.iter_mut().enumerate() {
        rule.name = format!("{}-{}", rule.method.to_lowercase(), number + 1);
    }
    let order = if runs.iter().all(|run| is_in_order(&rules, run)) {
        Order::Listed
    } else {
        Order::Any
    };
    Requests { order, rules }
}

fn path_of<'r>(request: &'r Request, wanted: &str) -> Option<&'r str> {
    match &request.head {
        Head::Request { method, path, .. } if method == wanted && request.host == Host::Stub => {
            Some(path)
        }
        Head::Request { .. } | Head::Malformed { .. } | Head::Incomplete => None,
    }
}

fn fits(rule: &RequestRule, request: &Request) -> bool {
    request.host == Host::Stub && rule.covers(request)
}

fn is_in_order(rules: &[RequestRule], run: &[Request]) -> bool {
    let places = run.iter();
    let places = places.filter_map(|request| rules.iter().position(|rule| fits(rule, request)));
    places.is_sorted()
}

/// Queries of the requests, each once.
pub(crate) fn queries(requests: &[&Request]) -> Vec<String> {
    let queries = requests.iter().filter_map(|request| match &request.head {
        Head::Request { query, .. } => query.clone().filter(|query| !query.is_empty()),
        Head::Malformed { .. } | Head::Incomplete => None,
    });
    BTreeSet::from_iter(queries).into_iter().collect()
}

/// Finds the header of the credential: one in which all requests carry it, or none if no request carries it. Anything
/// else is not judged.
fn auth(requests: &[&Request]) -> Auth {
    let carries = |request: &Request, header: &str| {
        let values = request.header(header);
        values.iter().any(|value| value.ends_with(REDACTED))
    };
    let mut headers = AUTH_HEADERS.into_iter();
    if let Some(header) = headers.find(|header| requests.iter().all(|one| carries(one, header))) {
        return Auth::Header(header.to_owned());
    }
    let is_bare = |request: &&Request| !AUTH_HEADERS.iter().any(|one| carries(request, one));
    if requests.iter().all(is_bare) {
        return Auth::None;
    }
    Auth::Any
}

/// User agent of all requests, with versions as a placeholder.
pub(crate) fn user_agent(requests: &[&Request]) -> Option<String> {
    let agents = requests.iter().map(|request| {
        let agents = request.header("user-agent");
        agents.first().map(|agent| pattern::of_versions(agent))
    });
    let agents: BTreeSet<Option<String>> = agents.collect();
    let mut agents = agents.into_iter();
    let (Some(Some(agent)), None) = (agents.next(), agents.next()) else {
        return None;
    };
    let is_pattern = agent.parse::<TextPattern>().is_ok();
    is_pattern.then_some(agent)
}

/// Top-level fields of the bodies, where all are objects with the same fields.
pub(crate) fn fields(requests: &[&Request]) -> Option<Vec<BodyField>> {
    let keys = |request: &&Request| {
        let shape = request.shape()?.as_object()?;
        Some(shape.keys().cloned().collect::<Vec<_>>())
    };
    let all: Option<BTreeSet<Vec<String>>> = requests.iter().map(keys).collect();
    let mut all = all?.into_iter();
    let (Some(keys), None) = (all.next(), all.next()) else {
        return None;
    };
    let field = |name| BodyField { name, kind: None };
    Some(keys.into_iter().map(field).collect())
}

/// Derives rules from the files of each run.
pub(crate) fn files(runs: &[&[FileEntry]], reason: &str, refused: &mut BTreeSet<String>) -> Files {
    let mut files = Files::default();
    let all = || runs.iter().copied().flatten();
    for entry in all().filter(|entry| !is_plain(entry)) {
        refused.insert(format!("{} at {}", entry.kind.with_article(), entry.path));
    }
    let kinds = BTreeSet::from_iter(all().map(|entry| (entry.root, entry.transient)));
    for (root, transient) in kinds {
        let is_of = |entry: &&FileEntry| {
            entry.root == root && entry.transient == transient && is_plain(entry)
        };
        let paths = runs.iter().map(|run| {
            let entries = run.iter().filter(is_of);
            let leaves = entries.filter(|entry| is_leaf(entry, run));
            leaves.map(|entry| entry.path.clone()).collect()
        });
        for pattern in patterns(paths) {
            let Ok(path) = pattern.text.parse() else {
                refused.insert(format!("a file whose path has braces: {}", pattern.text));
                continue;
            };
            let entries = all()
                .filter(is_of)
                .filter(|entry| pattern.covers(&entry.path));
            let modes = BTreeSet::from_iter(entries.map(|entry| entry.mode));
            let mode = modes
                .first()
                .copied()
                .filter(|_| modes.len() == 1 && !transient);
            let rule = ExpectedFile {
                root,
                path,
                mode,
                count: pattern.count,
                may_hold_credential: false,
                reason: reason.to_owned(),
            };
            if transient {
                files.transient.push(rule);
            } else {
                files.expected.push(rule);
            }
        }
    }
    files
}

fn is_plain(entry: &FileEntry) -> bool {
    matches!(entry.kind, FileKind::File | FileKind::Directory)
}

/// Checks for a file, or a directory without one: rules of files cover the directories above them.
fn is_leaf(entry: &FileEntry, run: &[FileEntry]) -> bool {
    let mut others = run.iter().filter(|other| other.root == entry.root);
    let holds = |other: &FileEntry| {
        let below = other.path.strip_prefix(entry.path.as_str());
        below.is_some_and(|rest| rest.starts_with('/')) && other.transient == entry.transient
    };
    entry.kind == FileKind::File || !others.any(holds)
}

fn exit(runs: &[&Evidence], refused: &mut BTreeSet<String>) -> Option<ExpectedExit> {
    let mut codes = BTreeSet::new();
    for run in runs {
        match run.exit {
            Exit::Code(code) => drop(codes.insert(code)),
            Exit::Signal(signal) => drop(refused.insert(format!("the end by signal {signal}"))),
            Exit::Timeout(_)
            | Exit::OutputLimit
            | Exit::RequestLimit
            | Exit::Interrupted
            | Exit::NotStarted => drop(refused.insert("an end by the runner".to_owned())),
        }
    }
    match (codes.first(), codes.len()) {
        (Some(code), 1) => Some(ExpectedExit::Code(*code)),
        (_, 0) => None,
        (_, _) => Some(ExpectedExit::AnyCode),
    }
}

/// Programs that a client started beside its own.
pub(crate) fn further_programs(run: &Evidence) -> Vec<String> {
    let own = run.processes.first().map(|process| &process.program);
    let started = run.processes.iter().filter(|process| process.is_started());
    let programs = started.map(|process| &process.program);
    let others = programs.filter(|program| Some(*program) != own);
    others.cloned().collect()
}

/// Derives rules from the programs of each run.
pub(crate) fn program_rules(
    started: Vec<Vec<String>>,
    reason: &str,
    refused: &mut BTreeSet<String>,
) -> Vec<ProgramRule> {
    let mut rules = Vec::new();
    for pattern in patterns(started) {
        let Ok(program) = pattern.text.parse() else {
            refused.insert(format!("a program whose path has braces: {}", pattern.text));
            continue;
        };
        rules.push(ProgramRule {
            program,
            reason: reason.to_owned(),
        });
    }
    rules
}

/// Derives rules from attempts and questions.
pub(crate) fn attempts<'r>(
    attempts: impl Iterator<Item = &'r Attempt>,
    names: impl Iterator<Item = &'r Question>,
    reason: &str,
    refused: &mut BTreeSet<String>,
) -> Vec<ExpectedAttempt> {
    let mut destinations: BTreeMap<String, Destination> = BTreeMap::new();
    for question in names {
        let name = Destination::Name(question.name.to_ascii_lowercase());
        let is_spelt = name.to_string().parse::<Destination>().is_ok();
        if question.odd.is_none() && is_spelt {
            destinations.insert(name.to_string(), name);
        } else {
            refused.insert(format!("a question for {}", question.name));
        }
    }
    for attempt in attempts.filter(|attempt| !attempt.is_to_resolver()) {
        match destination(attempt) {
            Some(destination) => drop(destinations.insert(destination.to_string(), destination)),
            None => drop(refused.insert(format!("the attempt {}", attempt.target()))),
        }
    }
    let rule = |destination| ExpectedAttempt {
        destination,
        reason: reason.to_owned(),
    };
    destinations.into_values().map(rule).collect()
}

/// Returns the rule that accepts the attempt; `None` for a call whose memory could not be read.
fn destination(attempt: &Attempt) -> Option<Destination> {
    if attempt.is_unreadable() {
        return None;
    }
    let destination = attempt.rule().parse().ok()?;
    // The kernel gives another port to the listener of each run.
    if let Destination::Inet(address, Ports::Only(FIRST_EPHEMERAL_PORT..)) = &destination
        && address.is_loopback()
    {
        return Some(Destination::Inet(*address, Ports::Any));
    }
    Some(destination)
}
