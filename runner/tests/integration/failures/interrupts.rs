//! A run that a signal interrupts: it still writes a report and leaves no process.

use std::fs;
use std::os::fd::AsFd as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::kit::{Run, parsed};
use crate::needs_sandbox;

/// Longer than a client ever needs to start.
const START: Duration = Duration::from_secs(30);
/// Waits until the client of `run` is running: a descendant with the client's name.
pub(crate) fn client_of(run: &Child) -> i32 {
    let deadline = Instant::now() + START;
    loop {
        let client = descendants(run.id()).into_iter().find(|pid| {
            fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "agent-cli\n")
        });
        match client {
            Some(pid) => return pid,
            None => assert!(Instant::now() < deadline, "the client does not start"),
        }
        std::thread::yield_now();
    }
}

fn descendants(of: u32) -> Vec<i32> {
    let parents: Vec<(i32, i32)> = fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| {
            let pid = entry.ok()?.file_name().to_str()?.parse().ok()?;
            let status = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            // The state and the parent follow the name in brackets.
            let parent = status
                .rsplit_once(") ")?
                .1
                .split(' ')
                .nth(1)?
                .parse()
                .ok()?;
            Some((pid, parent))
        })
        .collect();
    let mut found = vec![i32::try_from(of).unwrap()];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        let children = parents.iter().filter(|(_, of)| *of == parent);
        found.extend(children.map(|(pid, _)| *pid));
        next += 1;
    }
    found
}

fn assert_interrupted_by(signal: Signal) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("report.json");
    let [xml, page] = ["junit.xml", "summary.md"].map(|name| directory.path().join(name));
    let mut run = Run::case_b().deviating("stays");
    for (format, file) in [("json", &path), ("junit", &xml), ("markdown", &page)] {
        run = run
            .argument("--report")
            .argument(format!("{format}={}", file.display()));
    }
    let command = run.command();
    // The caller of the tests may ignore SIGHUP, as nohup(1) does, and programs inherit that.
    let mut run = Command::new("env")
        .arg("--default-signal=HUP")
        .arg(command.get_program())
        .args(command.get_args())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap();
    let client = client_of(&run);
    let everything = descendants(run.id());
    assert!(
        everything.len() >= 4,
        "runner, stage, init and client: {everything:?}"
    );
    // The whole group gets the signal, as with a terminal's Ctrl-C.
    kill(Pid::from_raw(-i32::try_from(run.id()).unwrap()), signal).unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(3));
    let report = parsed(&fs::read(path).unwrap(), "");
    assert_eq!(report["verdict"], "errored");
    assert_eq!(report["client"]["exit"]["interrupted"], true);
    let gaps = report["evidence"]["gaps"].to_string();
    assert!(
        gaps.contains("interrupted by a signal") && !gaps.contains("lost"),
        "{gaps}"
    );
    let xml = fs::read_to_string(xml).unwrap();
    let errors = quick_junit::Report::deserialize_from_str(&xml)
        .unwrap()
        .errors;
    assert!(
        errors > 0 && xml.contains("<system-out>ERRORED  case-b: "),
        "{xml}"
    );
    let page = fs::read_to_string(page).unwrap();
    assert!(
        page.starts_with("## ERRORED: ` case-b: ")
            && page.contains("\n### How it ended: interrupted\n")
            && page.contains("\n- not judged: because ` the run was interrupted `: "),
        "{page}"
    );
    assert!(everything.contains(&client));
    // Every process is reaped too: no zombie stays.
    let left = everything
        .iter()
        .find(|pid| Path::new(&format!("/proc/{pid}")).exists());
    assert_eq!(left, None);
}

#[test]
fn an_interrupt_leaves_a_report_and_no_process() {
    needs_sandbox!();
    assert_interrupted_by(Signal::SIGINT);
}

#[test]
fn a_termination_leaves_a_report_and_no_process() {
    needs_sandbox!();
    assert_interrupted_by(Signal::SIGTERM);
}

/// SIGHUP of a terminal that was closed.
#[test]
fn a_hangup_leaves_a_report_and_no_process() {
    needs_sandbox!();
    assert_interrupted_by(Signal::SIGHUP);
}

#[test]
fn under_nohup_a_hangup_is_not_heard() {
    needs_sandbox!();
    let run = Run::case_b().deviating("stays");
    let run = run.argument("--report").argument("json");
    let mut shell = Command::new("sh");
    shell.args(["-c", r#"trap "" HUP; exec "$0" "$@""#]);
    shell.arg(run.command().get_program());
    shell.args(run.command().get_args());
    let mut started = shell
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    client_of(&started);
    let status = fs::read_to_string(format!("/proc/{}/status", started.id())).unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = u64::from_str_radix(ignored.unwrap().trim(), 16).unwrap();
    assert_eq!(ignored & 1, 1, "{status}");
    kill(Pid::from_raw(started.id().cast_signed()), Signal::SIGINT).unwrap();
    assert_eq!(started.wait().unwrap().code(), Some(3));
}

/// The evidence is either absent or complete.
#[test]
fn a_signal_at_any_moment_of_the_start_leaves_no_half_of_the_evidence() {
    needs_sandbox!();
    for step in 0..40 {
        let directory = tempfile::tempdir().unwrap();
        let bundle = directory.path().join("evidence");
        let run = Run::case_b().argument("--out").argument(&bundle);
        let mut command = run.command();
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut started = command.spawn().unwrap();
        std::thread::sleep(Duration::from_micros(250 * step));
        kill(Pid::from_raw(started.id().cast_signed()), Signal::SIGTERM).unwrap();
        let status = started.wait().unwrap();
        match (status.code(), status.signal()) {
            (Some(0 | 3), None) => assert!(bundle.join("SHA256SUMS").exists(), "{step}"),
            (None, Some(libc::SIGTERM)) => assert!(!bundle.exists(), "{step}"),
            other => panic!("{step}: {other:?}"),
        }
    }
}

/// A blocked reader keeps the runner at its report, longer than a user would wait.
#[test]
fn while_the_report_is_written_one_signal_is_let_pass_and_the_next_one_ends_the_run() {
    needs_sandbox!();
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let (unread, written) = nix::unistd::pipe().unwrap();
        fcntl(&written, FcntlArg::F_SETPIPE_SZ(4096)).unwrap();
        let mut run = Run::case_b()
            .argument("--report")
            .argument("json")
            .command();
        let run = run.stdout(written).stderr(Stdio::null()).spawn();
        let mut run = run.unwrap();
        let mut ready = [PollFd::new(unread.as_fd(), PollFlags::POLLIN)];
        let patience = PollTimeout::try_from(START).unwrap();
        assert_eq!(poll(&mut ready, patience), Ok(1), "no report");
        let pid = Pid::from_raw(run.id().try_into().unwrap());
        kill(pid, signal).unwrap();
        // The runner only records the first signal.
        until(|| !catches(pid, signal));
        assert_eq!(run.try_wait().unwrap(), None);
        kill(pid, signal).unwrap();
        let ended = run.wait().unwrap();
        assert_eq!(ended.signal(), Some(signal as i32));
    }
}

/// Polls until the condition is true.
#[track_caller]
fn until(mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + START;
    while !is_so() {
        assert!(Instant::now() < deadline, "waited in vain");
        std::thread::yield_now();
    }
}

/// Returns true if the process has a handler for the signal: SigCgt in proc_pid_status(5).
fn catches(pid: Pid, signal: Signal) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let mask = u64::from_str_radix(mask.unwrap().trim(), 16).unwrap();
    mask & 1 << (signal as u64 - 1) != 0
}
