//! Attempts of the hostile client: inside, run by the executable under test, and outside without it.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::kit::{Done, Run, fixture};

/// Maximum attempts of a run: the report's tail of standard error, which has the fixture's answers, holds this many.
const BATCH: usize = 16;

/// Every device that /dev may hold.
pub(crate) const EVERY_DEVICE: &str = r#""null", "zero", "full", "random", "urandom""#;

/// Result of an attempt.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Made {
    /// `ok` or the name of an errno.
    pub(crate) outcome: String,
    pub(crate) detail: String,
}

/// The attempts of one test, as the words of the fixture's command line.
pub(crate) fn words(attempt: &str) -> Vec<&str> {
    attempt.split(' ').filter(|word| !word.is_empty()).collect()
}

/// Case B with the hostile client.
pub(crate) fn hostile(attempts: &[&str]) -> Run {
    with_attempts(Run::case_b(), attempts)
}

/// `run` with the hostile client.
pub(crate) fn with_attempts(run: Run, attempts: &[&str]) -> Run {
    with_client(run, &fixture("hostile-client"), attempts)
}

/// Adds the hostile client at `program` to `run`.
pub(crate) fn with_client(run: Run, program: &Path, attempts: &[&str]) -> Run {
    let mut run = run.client(program);
    for attempt in attempts {
        run = run.client_argument("--attempt");
        for word in words(attempt) {
            run = run.client_argument(word);
        }
    }
    run
}

/// Makes the attempts inside, as the user of the tests and as an ordinary user, and asserts equal results. Every device
/// is mounted there, since none is a way out.
#[track_caller]
pub(crate) fn inside(attempts: &[&str]) -> Vec<Made> {
    inside_of(Run::case_b, attempts)
}

/// Makes the attempts inside, in runs that `run` creates.
#[track_caller]
pub(crate) fn inside_of(run: fn() -> Run, attempts: &[&str]) -> Vec<Made> {
    let mut made = Vec::new();
    for batch in attempts.chunks(BATCH) {
        let run = || with_attempts(run().with_devices(EVERY_DEVICE), batch);
        let own = said(&run().json(), batch);
        let ordinary = said(&run().as_ordinary_user().json(), batch);
        for ((one, other), attempt) in own.iter().zip(&ordinary).zip(batch) {
            assert_eq!(one.outcome, other.outcome, "{attempt}: by user");
        }
        made.extend(own);
    }
    made
}

/// Makes one attempt inside.
#[track_caller]
pub(crate) fn inside_one(attempt: &str) -> Made {
    inside(&[attempt]).remove(0)
}

/// The fixture's lines in a report.
#[track_caller]
pub(crate) fn said(done: &Done, attempts: &[&str]) -> Vec<Made> {
    let tail = done.report["evidence"]["stderr"]["tail"].as_str();
    let made = lines(tail.unwrap_or_default());
    let exit = &done.report["client"]["exit"];
    assert_eq!(
        (made.len(), exit["code"].as_i64()),
        (attempts.len(), Some(0)),
        "{attempts:?} left {exit}, {tail:?} and {}",
        done.stderr
    );
    made
}

fn lines(text: &str) -> Vec<Made> {
    let field = |value: &Value, name: &str| value[name].as_str().unwrap_or_default().to_owned();
    text.lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .filter(|line: &Value| line["attempt"] != "nothing")
        .map(|line| Made {
            outcome: field(&line, "outcome"),
            detail: field(&line, "detail"),
        })
        .collect()
}

/// Makes one attempt outside.
#[track_caller]
pub(crate) fn outside(attempt: &str) -> Made {
    let mut command = Command::new(fixture("hostile-client"));
    let command = command.arg("--attempt").args(words(attempt));
    let output = command.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let mut made = lines(&said);
    assert_eq!(made.len(), 1, "{attempt}: {:?} {said}", output.status);
    made.remove(0)
}

/// Asserts the outcome of each attempt inside.
#[track_caller]
pub(crate) fn refused_inside(cases: &[(&str, &str)]) {
    refused_inside_of(Run::case_b, cases);
}

/// Asserts the outcome of each attempt inside, in runs that `run` creates.
#[track_caller]
pub(crate) fn refused_inside_of(run: fn() -> Run, cases: &[(&str, &str)]) {
    let attempts: Vec<&str> = cases.iter().map(|case| case.0).collect();
    for (made, (attempt, outcome)) in inside_of(run, &attempts).iter().zip(cases) {
        assert_eq!(made.outcome, *outcome, "{attempt}: {}", made.detail);
    }
}
