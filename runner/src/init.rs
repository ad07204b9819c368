//! `runner init`: runs a program several times, and writes a case that allows what each of the runs did.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::{self, Write as _};

use judge::check;
use judge::observed::observed;
use model::case::Expectations;
use model::case::expect::ProgramRule;
use model::escape::visible;
use model::evidence::{Evidence, Exit, Request};
use model::finding::Status;
use model::journal::Head;
use model::profile::MESSAGES;
use model::quote::{shell_word, shown_path};
use model::text::count;
use policy::{PolicyError, Reference};
use thiserror::Error;

use crate::accept;
use crate::advice::Advice;
use crate::collect::Failure;
use crate::request::InitRequest;
use crate::run::{self, RunError};

/// Number of lines of standard error that a note shows.
const LAST_LINES: usize = 5;

/// Errors of the command.
#[derive(Debug, Error)]
pub(crate) enum InitError {
    /// A run was not possible.
    #[error("cannot run the program")]
    Run(#[from] RunError),
    /// The program was not started, or the sandbox failed.
    #[error("run {number} is of no use")]
    Failed {
        /// Number of the run, from 1.
        number: u8,
        /// The failure.
        #[source]
        failure: Failure,
    },
    /// The program did not end by itself.
    #[error("run {number}: the program did not end by itself")]
    NoEnd {
        /// Number of the run, from 1.
        number: u8,
    },
    /// The file cannot be written.
    #[error("cannot write {path}")]
    Write {
        /// The file, escaped.
        path: String,
        /// The error of open(2) or write(2).
        #[source]
        source: io::Error,
    },
    /// The file was written, but holds a value that no case can have.
    #[error("the written case cannot be run before you have mended it")]
    Unreadable(#[source] PolicyError),
}

impl InitError {
    /// Advice for the user.
    pub(crate) fn advice(&self) -> Option<Advice> {
        match self {
            Self::Run(error) => error.advice(),
            Self::Failed { failure, .. } => failure.advice(model::report::Purpose::Judge),
            Self::Unreadable(error) => Some(Advice::fix(&error.hint())),
            Self::NoEnd { .. } | Self::Write { .. } => None,
        }
    }
}

/// Result of the command, for people.
#[derive(Debug)]
pub(crate) struct Written {
    /// Lines about the file and the next step.
    pub lines: Vec<String>,
    /// Signs that the runs are not those to expect: exit with 1.
    pub doubts: Vec<String>,
    /// Behaviour that no rule accepts: exit with 1.
    pub refused: Vec<String>,
}

/// Makes the runs, and writes the file.
pub(crate) fn run(request: &InitRequest) -> Result<Written, InitError> {
    let mut runs: Vec<Evidence> = Vec::new();
    let mut client_uid = 0;
    for number in 1..=request.runs {
        let collected = run::for_evidence(&request.run)?;
        if let Some(failure) = collected.failure {
            return Err(InitError::Failed { number, failure });
        }
        if !matches!(collected.evidence.exit, Exit::Code(_) | Exit::Signal(_)) {
            return Err(InitError::NoEnd { number });
        }
        client_uid = collected.client_uid;
        runs.push(collected.evidence);
    }
    let (date, reason) = (accept::today(), accept::reason());
    let runs: Vec<&Evidence> = runs.iter().collect();
    let mut observed = observed(&runs, &reason);
    let expect = &mut observed.expect;
    // Interpreters are found anew by each run, at paths of its machine.
    let interpreters = request.run.workload.expected_programs();
    let is_interpreter =
        |rule: &ProgramRule| interpreters.iter().any(|one| one.program == rule.program);
    let project = request.project.to_string_lossy();
    if let Some(rules) = &mut expect.programs {
        rules.retain(|rule| !is_interpreter(rule));
        for rule in rules {
            rule.program = rule.program.without(&project);
        }
    }
    let about = [format!(
        "Written by `runner init` on {date} from {}. Read each rule; change its reason once you have.",
        count(runs.len(), "run")
    )];
    let asked = &request.new.attempts;
    expect
        .attempts
        .retain(|rule| !asked.iter().any(|one| one.destination == rule.destination));
    expect.attempts.splice(..0, asked.iter().cloned());
    let text = request.new.text(&about, &observed);
    let text = match policy::case_of_text(&request.file, text.clone()) {
        Ok(case) => {
            let expect = case.expect.on_machine(&project, interpreters);
            let expect = expect.with_uid(client_uid);
            let further = failing(&expect, &runs, !observed.refused.is_empty());
            observed.refused.extend(further);
            request.new.text(&about, &observed)
        }
        // Written as it is, for a person to mend; the error follows.
        Err(_) => text,
    };
    let path = shown_path(&request.file);
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&request.file)
        .and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|source| InitError::Write {
        path: path.clone(),
        source,
    })?;
    let written = policy::check(&Reference::File(request.file.clone()));
    let entry = written.map_err(InitError::Unreadable)?;
    let mut doubts: Vec<String> = runs.iter().filter_map(|run| unsuccessful(run)).collect();
    doubts.extend(runs.iter().flat_map(|run| not_served(run)));
    doubts.sort();
    doubts.dedup();
    let mut lines = request.notes.clone();
    lines.push(format!(
        "{path} has {}, none reviewed",
        count(entry.not_reviewed, "rule")
    ));
    lines.push(format!("next: runner run {}", shell_word(&request.file)));
    Ok(Written {
        lines,
        doubts,
        refused: observed.refused,
    })
}

/// Checks that fail because of behaviour which the list of refusals has already.
const REFUSED: [&str; 4] = [
    "secrets/credential-not-written",
    "process/no-survivors",
    "outbound/no-attempts",
    "files/nothing-else",
];

/// Describes the checks that fail for a run which the rules were made from: no rule can accept what they found.
fn failing(expect: &Expectations, runs: &[&Evidence], has_refusals: bool) -> BTreeSet<String> {
    let findings = runs.iter().flat_map(|run| check::check(expect, run));
    let failed = findings.filter(|finding| {
        let is_known = has_refusals && REFUSED.contains(&&*finding.id);
        finding.status == Status::Failed && !is_known
    });
    let described = failed.map(|finding| {
        let found = finding
            .found
            .map(|found| format!(" Found: {}.", visible(&found)));
        format!(
            "{}: {}{}",
            finding.id,
            finding.message,
            found.unwrap_or_default()
        )
    });
    described.collect()
}

/// Describes the requests that the stub has no answer for: another path, or another method.
fn not_served(run: &Evidence) -> Vec<String> {
    let is_missing = |one: &&Request| matches!(one.status, Some(404 | 405));
    let missing = run.requests.iter().filter(is_missing);
    let described = missing.filter_map(|one| match &one.head {
        Head::Request { method, path, .. } => Some(format!(
            "the stub has no {} {}, only POST {MESSAGES} after any prefix",
            visible(method),
            visible(path)
        )),
        Head::Malformed { .. } | Head::Incomplete => None,
    });
    described.collect()
}

/// Describes an end that is probably not the one to expect.
fn unsuccessful(run: &Evidence) -> Option<String> {
    let Exit::Code(code @ 1..) = run.exit else {
        return None;
    };
    let last = run.stderr.tail.lines().rev().take(LAST_LINES);
    let mut last: Vec<String> = last.map(visible).collect();
    last.reverse();
    let end = match last.as_slice() {
        [] => "its standard error is empty".to_owned(),
        lines => format!("its standard error ends: {}", lines.join(" | ")),
    };
    Some(format!("the program exited with {code}; {end}"))
}
