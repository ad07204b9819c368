//! Processes of the sandbox that are stopped (SIGSTOP): every wait for them ends, and no remains are left.

use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::watch::{Place, Started};
use crate::abuse::Abuse;
use crate::inherited::CONTAINER;
use crate::kit::is_root;
use crate::needs_sandbox;

/// Isolations, by whether the host refuses namespaces.
const TIERS: [bool; 2] = [false, true];

/// The processes of the sandbox, by their names in messages.
const PROCESSES: [Process; 2] = [("the stage", Started::stage), ("init", Started::init)];

type Process = (&'static str, fn(&Started) -> Pid);

/// Starts a run with a client that runs until it is killed.
fn started(is_inherited: bool, timeout: &'static str) -> (Place, Started) {
    let place = Place::new();
    let abuse = Abuse::of("stop-everyone").limit("timeout", timeout);
    let mut run = abuse.described(&place);
    if is_inherited {
        let only = run.argument("--isolation").argument("inherited");
        run = only.on_a_host_without(CONTAINER);
    }
    let started = place.start(run);
    (place, started)
}

/// A run like that of [`started`], with the client's program running.
fn running(is_inherited: bool, timeout: &'static str) -> (Place, Started) {
    let (place, started) = started(is_inherited, timeout);
    started.client_with("--of=");
    (place, started)
}

fn stop(process: Pid) {
    kill(process, Signal::SIGSTOP).unwrap();
}

#[test]
fn stopped_init_ends_with_its_run() {
    needs_sandbox!();
    let runs = TIERS.map(|tier| running(tier, "\"1s\""));
    for (_, run) in &runs {
        stop(run.init());
    }
    for (place, mut run) in runs {
        let done = run.wait();
        place.assert_nothing_left_now();
        done.assert_verdict(3, "errored");
        let gaps = done.report["evidence"]["gaps"].to_string();
        assert!(gaps.contains("is stopped"), "{gaps}");
    }
}

/// The guard is a separate process, which removes the directories of the client.
#[test]
fn stopped_guard_ends_with_its_killed_runner() {
    needs_sandbox!();
    let (place, mut run) = running(true, "\"30s\"");
    stop(run.guard());
    run.kill();
    place.assert_nothing_left();
}

#[test]
fn stopped_process_ends_with_its_killed_runner() {
    needs_sandbox!();
    for (_, process) in PROCESSES {
        for (place, mut run) in TIERS.map(|tier| running(tier, "\"30s\"")) {
            stop(process(&run));
            run.kill();
            place.assert_nothing_left();
        }
    }
}

/// The process is stopped as soon as it exists, so its last report varies.
#[test]
fn process_stopped_in_set_up_is_named() {
    needs_sandbox!();
    let of_tier = |tier| PROCESSES.map(|process| (tier, process));
    let mut cases: Vec<_> = TIERS.into_iter().flat_map(of_tier).collect();
    // On a busy machine the stop may come too late, when the run has started.
    for _ in 0..5 {
        let runs: Vec<_> = cases.iter().map(stopped_in_set_up).collect();
        let named: Vec<bool> = runs.into_iter().map(is_named).collect();
        let mut named = named.into_iter();
        cases.retain(|_| named.next() == Some(false));
        if cases.is_empty() {
            return;
        }
    }
    panic!("not stopped in set-up: {cases:?}");
}

type Case = (bool, Process);

/// Returns a run, and the message about its stopped process.
fn stopped_in_set_up((is_inherited, (name, process)): &Case) -> (Place, Started, String) {
    let (place, run) = started(*is_inherited, "\"1s\"");
    let process = process(&run);
    stop(process);
    let message = format!("{name} (process {process}) is stopped, limit 20 s; last report: ");
    (place, run, message)
}

fn is_named((place, mut run, message): (Place, Started, String)) -> bool {
    let done = run.wait();
    place.assert_nothing_left_now();
    done.assert_verdict(3, "errored");
    let message = format!("cannot complete the set-up ({message}");
    let hint = "hint: a process of the sandbox is stopped";
    [&message, hint].iter().all(|one| done.stderr.contains(one))
}

/// The process is killed at several moments of set-up, before or after the other process exists.
#[test]
fn process_killed_in_set_up_is_named() {
    needs_sandbox!();
    for process in PROCESSES {
        for tier in TIERS {
            let killed = |step| killed_in_set_up(tier, step, process);
            let named: Vec<bool> = (0..6).map(killed).collect();
            assert!(
                named.contains(&true),
                "{} was not killed in time",
                process.0
            );
        }
    }
}

fn killed_in_set_up(is_inherited: bool, step: u64, (name, process): Process) -> bool {
    let (place, mut run) = started(is_inherited, "\"30s\"");
    let process = process(&run);
    thread::sleep(Duration::from_micros(step * 800));
    kill(process, Signal::SIGKILL).unwrap();
    let start = Instant::now();
    let done = run.wait();
    assert!(start.elapsed() < Duration::from_secs(8), "{}", done.stderr);
    place.assert_nothing_left_now();
    done.assert_verdict(3, "errored");
    let later = format!("{name} (process {process}) was ended by SIGKILL; last report: ");
    let before_its_plan =
        format!("cannot start {name} (its process {process} has ended, signal: 9 (SIGKILL)");
    let mut forms = vec![later, before_its_plan];
    // The kernel hides the status of a process that is not dumpable from another one without rights (proc_pid_stat(5)).
    if !is_root() {
        forms.push(format!(
            "{name} (process {process}) has ended; last report: "
        ));
    }
    forms.iter().any(|words| done.stderr.contains(words))
}
