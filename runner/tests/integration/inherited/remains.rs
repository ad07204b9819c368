//! Remains of a run without namespaces that end with it: no process, no directory.

use std::process::{Command, Stdio};
use std::time::Duration;
use std::{fs, thread};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::CONTAINER;
use crate::abuse::Abuse;
use crate::kit::{Done, Run, is_root};
use crate::needs_sandbox;
use crate::teardown::watch::{Place, Started, children, until};

/// Moments at which the runner is killed, half of them an ordinary user's.
const KILLS: u64 = 60;
/// Delay between two kills; a whole run takes about as long as all delays.
const STEP_US: u64 = 2_500;

fn ended(abuse: &'static str, limits: &[(&'static str, &'static str)]) {
    for ordinary in [false, true] {
        let place = Place::new();
        let mut abuse = Abuse::of(abuse);
        for (key, value) in limits {
            abuse = abuse.limit(key, value);
        }
        if ordinary {
            abuse = abuse.by_an_ordinary_user();
        }
        let run = abuse.described(&place).on_a_host_without(CONTAINER);
        let done = place.start(run).wait();
        place.assert_nothing_left();
        assert_eq!(done.report["tier"], "inherited", "{}", done.stderr);
        assert_named(&done, limits.iter().all(|(key, _)| *key != "timeout"));
    }
}

/// Survivors are named: a finding where the client ended by itself, else a consequence of the runner's end.
#[track_caller]
fn assert_named(done: &Done, is_finding: bool) {
    let survivors = done.check("process/no-survivors");
    let status = if is_finding { "failed" } else { "skipped" };
    assert_eq!(survivors["status"], status, "{}", done.stderr);
    assert!(survivors["found"].is_string(), "{survivors}");
}

#[test]
fn what_the_client_leaves_running_is_named_and_ended() {
    needs_sandbox!();
    ended("daemons-hold-the-pipes", &[]);
    ended("stop-everyone", &[("timeout", "\"1s\"")]);
}

#[test]
fn a_fork_bomb_meets_its_limit_and_ends_with_the_client() {
    needs_sandbox!();
    ended("fork-bomb", &[("processes", "64")]);
}

/// The process forks and exits repeatedly, so a scan of /proc finds only pids that have already exited.
#[test]
fn a_process_that_is_never_the_same_for_long_is_ended() {
    needs_sandbox!();
    ended("fork-chain", &[("processes", "64")]);
}

#[test]
fn a_thread_bomb_meets_its_limit() {
    needs_sandbox!();
    let place = Place::new();
    let run = Abuse::of("thread-bomb").limit("processes", "64");
    let run = run.described(&place).on_a_host_without(CONTAINER);
    let done = place.start(run).wait();
    place.assert_nothing_left();
    done.assert_passed();
}

#[test]
fn a_runner_killed_at_any_moment_leaves_neither_process_nor_directory() {
    needs_sandbox!();
    let place = Place::new();
    for kill in 0..KILLS {
        let mut abuse = Abuse::of("stop-everyone");
        if kill % 2 == 1 {
            abuse = abuse.by_an_ordinary_user();
        }
        let run = abuse.described(&place).on_a_host_without(CONTAINER);
        let mut command = place.command(run);
        let mut run = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        thread::sleep(Duration::from_micros(kill * STEP_US));
        run.kill().unwrap();
        run.wait().unwrap();
        place.assert_nothing_left();
    }
}

#[test]
fn a_run_that_is_interrupted_leaves_nothing() {
    needs_sandbox!();
    let place = Place::new();
    let abuse = Abuse::of("stop-everyone");
    let mut run = place.start(abuse.described(&place).on_a_host_without(CONTAINER));
    thread::sleep(Duration::from_millis(150));
    let done = run.interrupt();
    place.assert_nothing_left();
    assert_eq!(done.code, Some(3), "{}", done.stderr);
}

/// A shell that executes the runner leaves its background jobs to the runner as children.
#[test]
fn children_that_the_runner_did_not_start_live_on() {
    needs_sandbox!();
    let place = Place::new();
    let run = Run::case_b().on_a_host_without(CONTAINER);
    let ready = place.command(run);
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", "sleep 300 >&2 & exec \"$@\"", "sh"]);
    shell.arg(ready.get_program()).args(ready.get_args());
    let mut run = Started::of(shell);
    let runner = run.runner();
    let sleeping = || {
        let of_sleep = |child: &Pid| name(*child) == "sleep";
        children(runner).into_iter().find(of_sleep)
    };
    let sleep = until("the background job", sleeping);
    // The job shares standard error with the run, so the test can read it to the end only once the job has ended.
    until("the end of the run", || {
        (name(runner) != "runner").then_some(())
    });
    assert_eq!(name(sleep), "sleep");
    kill(sleep, Signal::SIGKILL).unwrap();
    run.wait().assert_passed();
    place.assert_nothing_left();
}

fn name(process: Pid) -> String {
    let name = fs::read_to_string(format!("/proc/{process}/comm"));
    let state = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    if state.contains("(zombie)") {
        return String::new();
    }
    name.unwrap_or_default().trim_end().to_owned()
}

fn loses_its_guard(signal: Signal) {
    let place = Place::new();
    let abuse = Abuse::of("stop-everyone").limit("timeout", "\"1s\"");
    let mut run = place.start(abuse.described(&place).on_a_host_without(CONTAINER));
    let guard = run.guard();
    until("the directories", || place.holds_something().then_some(()));
    kill(guard, signal).unwrap();
    run.wait();
    place.assert_nothing_left_now();
}

#[test]
fn a_guard_that_somebody_kills_is_stood_in_for_by_the_runner() {
    needs_sandbox!();
    loses_its_guard(Signal::SIGKILL);
}

#[test]
fn a_guard_that_somebody_stops_is_stood_in_for_by_the_runner() {
    needs_sandbox!();
    loses_its_guard(Signal::SIGSTOP);
}

/// A mount of the shown directory would also show the home's neighbours.
#[test]
fn a_home_below_a_shown_directory_is_refused() {
    needs_sandbox!();
    let shown = tempfile::tempdir_in("/var/tmp").unwrap();
    let mut command = Run::case("audit")
        .on_a_host_without(CONTAINER)
        .argument("--read")
        .argument(shown.path())
        .argument("--")
        .argument("true")
        .command();
    let output = command.env("TMPDIR", shown.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(125), "{said}");
    assert!(said.contains("name another directory in TMPDIR"), "{said}");
    assert_eq!(fs::read_dir(shown.path()).unwrap().count(), 0);
}

/// The network is the container's, and its processes may change it, so the runner checks it again at the end.
#[test]
fn a_link_that_comes_up_during_the_run_makes_it_errored() {
    needs_sandbox!();
    if !is_root() {
        return;
    }
    let place = Place::new();
    let abuse = Abuse::of("stop-everyone").limit("timeout", "\"2s\"");
    let mut run = place.start(abuse.described(&place).on_a_host_without(CONTAINER));
    until("the directories", || place.holds_something().then_some(()));
    // Init's child: the runner checked the network before this.
    run.client_with("--deviate");
    let network = format!("--net=/proc/{}/ns/net", run.runner());
    let ip = |words: &str| {
        let mut command = Command::new("nsenter");
        let output = command
            .arg(&network)
            .arg("ip")
            .args(words.split(' '))
            .output()
            .unwrap();
        assert!(output.status.success(), "{words}: {output:?}");
    };
    ip("link add late type veth peer name other");
    ip("link set late up");
    let done = run.wait();
    place.assert_nothing_left();
    // The time-out is certain; the state of the network at that time is not.
    done.assert_fails_and_errs(&["process/exit-zero"], &["outbound/denied"]);
    let gaps = done.report["evidence"]["gaps"].to_string();
    assert!(gaps.contains("more than loopback after the run"), "{gaps}");
}

/// A background job of the shell that executed the runner ends during the run, and the job's child becomes the runner's
/// child.
#[test]
fn an_orphan_of_somebody_else_that_the_runner_inherits_lives_on() {
    needs_sandbox!();
    let place = Place::new();
    let pid = place.directory().join("orphan");
    let abuse = Abuse::of("stop-everyone").limit("timeout", "\"2s\"");
    let ready = place.command(abuse.described(&place).on_a_host_without(CONTAINER));
    let mut shell = Command::new("/bin/sh");
    let script = "(sleep 300 >/dev/null 2>&1 & echo $! >\"$1\"; sleep 1) & shift; exec \"$@\"";
    shell.args(["-c", script, "sh"]).arg(&pid);
    shell.arg(ready.get_program()).args(ready.get_args());
    shell.envs(
        ready
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    let done = Started::of(shell).wait();
    let pid = fs::read_to_string(&pid).unwrap();
    let orphan = Pid::from_raw(pid.trim().parse().unwrap());
    assert_eq!(name(orphan), "sleep", "{}", done.stderr);
    kill(orphan, Signal::SIGKILL).unwrap();
    assert_named(&done, false);
    place.assert_nothing_left();
}
