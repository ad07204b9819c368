//! Attempts, names, programs and the end of the run. Their order and their number say nothing: each is a set.

use std::collections::BTreeMap;

use super::form::{Argument, Attempt, Evidence, Process, Report};
use super::{Area, Facts, Rule, bounded, normal};

/// The client's own program as the report names it, and as it was started: in a sandbox, or the runner itself.
pub(super) fn own_paths(report: &Report) -> Vec<String> {
    let named = Some(&report.client.program).filter(|path| path.starts_with('/'));
    let started = report.evidence.processes.first();
    let started = started.map(|process| &process.program);
    named.into_iter().chain(started).cloned().collect()
}

pub(super) fn read(evidence: &Evidence, facts: &mut Facts) {
    for attempt in &evidence.attempts {
        if attempt.kind == "attempt" {
            read_attempt(attempt, facts);
        } else {
            facts.apply(Rule::SetupCalls);
        }
    }
    for name in &evidence.names {
        repeated(name.count, facts);
        let key = format!("{} {}", facts.text(&name.name), name.kind);
        facts.gather(Area::Names, &key, "asked for".to_owned());
    }
    // The last program of each number so far: of very many, none is looked for one by one.
    let mut last = BTreeMap::new();
    for process in &evidence.processes {
        let program = bounded(&facts.program(&process.program));
        read_process(process, &program, &last, facts);
        last.insert(process.pid, program);
    }
    for survivor in &evidence.survivors {
        let program = facts.text(&survivor.program);
        facts.gather(Area::Processes, &program, "outlives the client".to_owned());
    }
    facts.applied.add(Rule::Lookups, evidence.lookups.len());
}

/// How it ended, and what it left of the credential.
pub(super) fn outcome(report: &Report, facts: &mut Facts) {
    for (how, what) in &report.client.exit {
        let value = if what.is_boolean() {
            how.replace('_', " ")
        } else {
            format!("{how} {what}")
        };
        facts.gather(Area::Outcome, "exit", value);
    }
    let stderr = match report.evidence.stderr.bytes {
        0 => "nothing",
        _ => {
            facts.apply(Rule::Output);
            "something"
        }
    };
    if report.client.profile.is_none() {
        facts.apply(Rule::Output);
    }
    facts.gather(Area::Outcome, "standard error", stderr.to_owned());
    for sighting in &report.evidence.sightings {
        let place = facts.text(&sighting.place);
        let place = without_positions(&place, facts);
        facts.gather(
            Area::Outcome,
            &format!("credential in {place}"),
            sighting.form.clone(),
        );
    }
}

fn read_attempt(attempt: &Attempt, facts: &mut Facts) {
    repeated(attempt.count, facts);
    let mut what = vec![facts.program(&attempt.program), attempt.syscall.clone()];
    what.extend(attempt.family.clone());
    what.extend(attempt.socket_type.clone());
    what.extend(attempt.protocol.map(|number| format!("protocol {number}")));
    if let Some(address) = &attempt.address {
        let is_loopback = matches!(address.as_str(), "127.0.0.1" | "::1");
        let port = attempt.port.map(|port| {
            if is_loopback && normal::is_given_port(port.into()) {
                facts.apply(Rule::Ports);
                " port {port}".to_owned()
            } else {
                format!(" port {port}")
            }
        });
        let address = facts.text(address);
        what.push(format!("{address}{}", port.unwrap_or_default()));
    }
    if !attempt.names.is_empty() {
        let names: Vec<String> = attempt.names.iter().map(|name| facts.text(name)).collect();
        what.push(format!("for {}", names.join(", ")));
    }
    let outcome = match &attempt.errno {
        Some(errno) => format!("{} {errno}", attempt.outcome),
        None => attempt.outcome.clone(),
    };
    facts.gather(Area::Attempts, &what.join(" "), outcome);
}

fn repeated(count: u64, facts: &mut Facts) {
    if count > 1 {
        facts.apply(Rule::Counts);
    }
}

/// `/usr/bin/git: git config --get remote.origin.url`, and who started it.
fn read_process(process: &Process, program: &str, last: &BTreeMap<i32, String>, facts: &mut Facts) {
    let arguments: Vec<String> = process
        .args
        .iter()
        .map(|argument| match argument {
            Argument::Word(word) => quoted(&facts.program(word)),
            Argument::Prompt { bytes } => format!("(prompt of {bytes} bytes)"),
        })
        .collect();
    let origin = match (last.get(&process.pid), last.get(&process.ppid)) {
        (Some(replaced), _) => format!("in place of {replaced}"),
        (None, Some(parent)) => format!("started by {parent}"),
        (None, None) if last.is_empty() => "started by the runner".to_owned(),
        (None, None) => "its parent has ended".to_owned(),
    };
    let key = format!("{}: {}", quoted(program), arguments.join(" "));
    facts.gather(Area::Processes, &key, origin);
}

/// Where one argument ends is seen.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| !c.is_whitespace() && !matches!(c, '"' | '\\' | '(' | ')');
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        serde_json::Value::from(word).to_string()
    }
}

/// `request 2 header x` → `request header x`.
fn without_positions(place: &str, facts: &mut Facts) -> String {
    let mut words: Vec<&str> = Vec::new();
    for word in place.split(' ') {
        let is_number = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
        let behind = words.last().copied().unwrap_or_default();
        if is_number && matches!(behind, "request" | "line" | "process") {
            facts.apply(Rule::Positions);
        } else {
            words.push(word);
        }
    }
    words.join(" ")
}
