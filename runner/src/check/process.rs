//! How the client ended, and what it left running.

use crate::evidence::{Evidence, Exit};

use super::outcome::{Deviation, Outcome, Run, list};

pub(super) fn exit_zero(run: &Run) -> Outcome {
    let deviation = Deviation::new("The client did not exit with 0.").expected("exit code 0");
    let exit = run.evidence.exit;
    if run.evidence.is_stub_lost() && exit != Exit::Code(0) {
        return deviation.undecided("the stub was lost before the client ended");
    }
    match exit {
        Exit::Code(0) => Ok("The client exited with 0.".to_owned()),
        Exit::Code(code) => deviation.found(format!("exit code {code}")).failed(),
        Exit::Signal(signal) => deviation
            .found(format!("ended by signal {signal}"))
            .failed(),
        Exit::Timeout(after) => deviation
            .found(format!(
                "still running after {:.1} s, ended by the runner",
                after.as_secs_f64()
            ))
            .failed(),
        Exit::OutputLimit => deviation
            .found("wrote more than its output limit, ended by the runner")
            .failed(),
        Exit::RequestLimit => deviation
            .found("made more requests than its limit, ended by the runner")
            .failed(),
        Exit::Interrupted => deviation.undecided("the run was interrupted before the client ended"),
        Exit::NotStarted => deviation.undecided("the client was never started"),
    }
}

pub(super) fn no_survivors(evidence: &Evidence) -> Outcome {
    let survivors = &evidence.survivors;
    if survivors.is_empty() {
        return Ok("No process outlived the client.".to_owned());
    }
    Deviation::new("Processes outlived the client.")
        .expected("no process")
        .found(list(survivors.iter().map(|process| {
            format!("{} (pid {})", process.program, process.pid)
        })))
        .left()
        .failed()
}
