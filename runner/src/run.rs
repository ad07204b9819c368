//! One run (being written).
use crate::clock::Clock;
use crate::cli::RunRequest;
use crate::collect::{self, Watch};
use crate::sandbox::{canary, readback, spawn};

pub(crate) fn run(request: &RunRequest) -> i32 {
    let clock = Clock::start();
    let prepared = match crate::prepare::prepare(request) { Ok(p) => p, Err(e) => { eprintln!("{e}"); return 3 } };
    let stage = spawn::spawn(&prepared.plan).unwrap();
    let watch = Watch {
        plan: &prepared.plan, clock, timeout: request.timeout.unwrap_or(request.case.sandbox.limits.timeout),
        output_bytes: request.case.sandbox.limits.output_bytes, needle: &prepared.needle,
        namespaces: readback::own_namespaces().unwrap(),
        refused: canary::refused_outside(&prepared.plan.probe),
    };
    let rt = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let capture = rt.block_on(collect::collect(stage, watch)).unwrap();
    eprintln!("{capture:#?}");
    0
}
