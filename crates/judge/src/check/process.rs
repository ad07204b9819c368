//! Checks of the client's exit and of its remaining processes.

use std::collections::BTreeSet;

use model::case::expect::ExpectedExit;
use model::evidence::{Evidence, Exit, GRACE};
use model::finding::NEVER_STARTED;

use super::outcome::{Deviation, JudgedRun, Outcome, list, not_asked};

pub(super) fn exit_zero(run: &JudgedRun) -> Outcome {
    let exit = run.evidence.exit;
    let expected = match run.expect.exit {
        Some(expected) => expected,
        // Judged without a table too: the runner ends a client only for a deviation.
        None if exit.is_by_limit() => ExpectedExit::AnyCode,
        None => return not_asked("the case has no [expect.exit]"),
    };
    let wanted = match expected {
        ExpectedExit::Code(code) => format!("exit code {code}"),
        ExpectedExit::AnyCode => "an exit code".to_owned(),
    };
    let deviation = Deviation::new("The client did not exit as expected.").expected(wanted);
    let fits = match (exit, expected) {
        (Exit::Code(_), ExpectedExit::AnyCode) => true,
        (exit, ExpectedExit::Code(code)) => exit == Exit::Code(code),
        (_, ExpectedExit::AnyCode) => false,
    };
    if run.evidence.is_stub_lost() && !fits {
        return deviation.undecided("the stub was lost before the client ended");
    }
    let found = match exit {
        Exit::Code(code) if fits => return Ok(format!("The client exited with {code}.")),
        Exit::Code(code) => format!("exit code {code}"),
        Exit::Signal(signal) => format!("ended by signal {signal}"),
        Exit::Timeout(after) => {
            let seconds = after.as_secs_f64();
            format!("still running after {seconds:.1} s, ended by the runner")
        }
        Exit::OutputLimit => "wrote more than its output limit, ended by the runner".to_owned(),
        Exit::RequestLimit => "made more requests than its limit, ended by the runner".to_owned(),
        Exit::Interrupted => {
            return deviation.undecided("the run was interrupted before the client ended");
        }
        Exit::NotStarted => return deviation.undecided(NEVER_STARTED),
    };
    deviation.found(run.evidence.at_limit(found)).failed()
}

/// Judges which programs were started beside the client's own.
pub(super) fn programs(run: &JudgedRun) -> Outcome {
    let Some(rules) = &run.expect.programs else {
        return not_asked("the case has no [expect.programs]");
    };
    let processes = &run.evidence.processes;
    let own = processes.first().map(|process| process.program.as_str());
    let is_known = |program: &str| {
        Some(program) == own || rules.iter().any(|rule| rule.program.matches(program))
    };
    let started = processes.iter().filter(|process| process.is_started());
    let others = started.map(|process| process.program.as_str());
    let others = BTreeSet::from_iter(others.filter(|program| !is_known(program)));
    if !others.is_empty() {
        return Deviation::new("The client started programs that the case does not list.")
            .expected("the client's own program, and those of the rules")
            .found(list(others))
            .failed();
    }
    Ok("The client started no program but those of the rules.".to_owned())
}

pub(super) fn no_survivors(evidence: &Evidence) -> Outcome {
    let survivors = &evidence.survivors;
    if survivors.is_empty() {
        let seconds = GRACE.as_secs_f64();
        return Ok(format!(
            "No process outlived the client by more than {seconds:.1} s."
        ));
    }
    Deviation::new("Processes outlived the client.")
        .expected("no process")
        .found(list(survivors.iter().map(|process| {
            format!("{} (pid {})", process.program, process.pid)
        })))
        .leftover()
        .failed()
}
