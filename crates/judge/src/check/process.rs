//! Checks of the client's exit and of its remaining processes.

use model::evidence::{Evidence, Exit, GRACE};

use super::outcome::{Deviation, JudgedRun, Outcome, list};

pub(super) fn exit_zero(run: &JudgedRun) -> Outcome {
    let deviation = Deviation::new("The client did not exit with 0.").expected("exit code 0");
    let exit = run.evidence.exit;
    if run.evidence.is_stub_lost() && exit != Exit::Code(0) {
        return deviation.undecided("the stub was lost before the client ended");
    }
    let found = match exit {
        Exit::Code(0) => return Ok("The client exited with 0.".to_owned()),
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
        Exit::NotStarted => return deviation.undecided("the client was never started"),
    };
    deviation.found(run.evidence.at_limit(found)).failed()
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
