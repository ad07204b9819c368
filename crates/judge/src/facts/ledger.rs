//! Facts of attempts, names, programs and the end of the run. Each is a set: order and number are not compared.

use model::difference::Area;

use super::form::{Argument, Attempt, Evidence, Process, Report};
use super::{Facts, Rule, bounded, normal};

/// Kind of calls that are no attempts.
const SETUP: &str = "setup";
/// Characters of paths and abstract names that our own words do not contain.
const PATH: [char; 3] = ['/', '@', '.'];

/// Paths of the client's own program: as the report names it, and as it was started.
pub(super) fn own_paths(report: &Report) -> Vec<String> {
    let named = Some(&report.client.program).filter(|path| path.starts_with('/'));
    let started = report.evidence.processes.first();
    let started = started.map(|process| &process.program);
    named.into_iter().chain(started).cloned().collect()
}

/// Ports of the stub: the loopback ports of setup calls. A bind(2) among the setup calls has port 0; any other bind(2)
/// is an attempt.
pub(super) fn stub_ports(attempts: &[Attempt]) -> normal::StubPorts {
    let to_stub = attempts.iter().filter(|call| {
        let address = call.address.as_deref();
        call.kind == SETUP && address.is_some_and(normal::is_this_host)
    });
    let ports = to_stub.filter_map(|call| call.port);
    ports.filter(|port| *port != 0).collect()
}

pub(super) fn read(evidence: &Evidence, facts: &mut Facts) {
    for attempt in &evidence.attempts {
        if attempt.kind == SETUP {
            facts.apply(Rule::SetupCalls);
        } else {
            read_attempt(attempt, facts);
        }
    }
    for name in &evidence.names {
        repeated(name.count, facts);
        let key = format!("{} {}", facts.text(&name.name), name.kind);
        let how = match &name.odd {
            Some(odd) => format!("asked for, {odd}"),
            None => "asked for".to_owned(),
        };
        facts.add_to_set(Area::Names, &key, how);
    }
    for process in &evidence.processes {
        read_process(process, facts);
    }
    for survivor in &evidence.survivors {
        let program = quoted(&facts.text(&survivor.program));
        facts.add_to_set(Area::Processes, &program, "outlives the client".to_owned());
    }
    facts.applied.add(Rule::Lookups, evidence.lookups.len());
}

/// Facts of the client's exit, its standard error, and the places of the credential.
pub(super) fn outcome(report: &Report, facts: &mut Facts) {
    for (how, what) in &report.client.exit {
        let value = if what.is_boolean() {
            how.replace('_', " ")
        } else {
            format!("{how} {what}")
        };
        facts.add_to_set(Area::Outcome, "exit", value);
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
    facts.add_to_set(Area::Outcome, "standard error", stderr.to_owned());
    for sighting in &report.evidence.sightings {
        let place = facts.text(&sighting.place);
        let place = without_positions(&place, facts);
        facts.add_to_set(
            Area::Outcome,
            &format!("credential in {place}"),
            sighting.form.clone(),
        );
    }
}

fn read_attempt(attempt: &Attempt, facts: &mut Facts) {
    repeated(attempt.count, facts);
    let program = quoted(&facts.program(&attempt.program));
    let mut what = vec![program, attempt.syscall.clone()];
    what.extend(attempt.family.clone());
    what.extend(attempt.socket_type.clone());
    what.extend(attempt.protocol.map(|number| format!("protocol {number}")));
    if let Some(address) = &attempt.address {
        let is_loopback = normal::is_this_host(address);
        let port = attempt.port.map(|port| {
            if is_loopback && normal::is_given_port(port, &facts.stub) {
                facts.apply(Rule::Ports);
                " port {port}".to_owned()
            } else {
                format!(" port {port}")
            }
        });
        let address = quoted_address(&facts.text(address), attempt.family.as_deref());
        what.push(format!("{address}{}", port.unwrap_or_default()));
    }
    if !attempt.names.is_empty() {
        let names = attempt.names.iter();
        let names: Vec<String> = names.map(|name| quoted(&facts.text(name))).collect();
        what.push(format!("for {}", names.join(", ")));
    }
    let outcome = match &attempt.errno {
        Some(errno) => format!("{} {errno}", attempt.outcome),
        None => attempt.outcome.clone(),
    };
    facts.add_to_set(Area::Attempts, &what.join(" "), outcome);
}

fn repeated(count: u64, facts: &mut Facts) {
    if count > 1 {
        facts.apply(Rule::Counts);
    }
}

/// Fact of a started program: `/usr/bin/git: git config --get remote.origin.url`. The parent is left out: it may have
/// ended before the supervisor reads it, and a process that only forked has no program here.
fn read_process(process: &Process, facts: &mut Facts) {
    facts.apply(Rule::Origins);
    let program = bounded(&facts.program(&process.program));
    let arguments: Vec<String> = process
        .args
        .iter()
        .map(|argument| match argument {
            Argument::Word(word) => quoted(&facts.program(word)),
            Argument::Prompt { bytes } => format!("(prompt of {bytes} bytes)"),
        })
        .collect();
    let key = format!("{}: {}", quoted(&program), arguments.join(" "));
    facts.add_to_set(Area::Processes, &key, "started".to_owned());
}

/// Quotes an address, so that its end is visible. A unix path without `/`, `@` or `.` is always quoted, since it could
/// equal one of our words, such as `dgram`.
fn quoted_address(address: &str, family: Option<&str>) -> String {
    if family == Some("unix") && !address.contains(PATH) {
        serde_json::Value::from(address).to_string()
    } else {
        quoted(address)
    }
}

/// Quotes a word, unless its end is visible without quotes.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| !c.is_whitespace() && !matches!(c, '"' | '\\' | '(' | ')');
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        serde_json::Value::from(word).to_string()
    }
}

/// Removes positions: `request 2 header x` → `request header x`.
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
