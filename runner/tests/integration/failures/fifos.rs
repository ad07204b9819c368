//! Reports to FIFOs: a present reader gets all of the report, and the runner waits for an absent one up to a limit.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, fcntl};
use nix::sys::stat::Mode;
use tempfile::TempDir;

use super::assert_refused;
use crate::kit::{Run, parsed};
use crate::needs_sandbox;

fn fifo() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("report");
    nix::unistd::mkfifo(&path, Mode::S_IRWXU).unwrap();
    (directory, path)
}

/// Starts a run of case B with its JSON report to `path`.
fn reporting(path: &Path) -> Child {
    let report = format!("json={}", path.display());
    let mut command = Run::case_b()
        .argument("--report")
        .argument(report)
        .command();
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

#[test]
fn reader_of_a_fifo_gets_the_report() {
    needs_sandbox!();
    let (_directory, path) = fifo();
    let run = reporting(&path);
    // The runner waits for its reader.
    thread::sleep(Duration::from_millis(100));
    let report = parsed(&fs::read(&path).unwrap(), "");
    assert_eq!(report["verdict"], "passed");
    assert_eq!(run.wait_with_output().unwrap().status.code(), Some(0));
}

/// Both cases run at once, since each takes the whole limit.
#[test]
fn fifo_that_nobody_reads_is_an_error() {
    needs_sandbox!();
    let (_directory, unread) = fifo();
    let (_directory, stalled) = fifo();
    let open = OpenOptions::new()
        .read(true)
        .custom_flags(nix::libc::O_NONBLOCK)
        .open(&stalled);
    // Shorter than a report.
    let reader: File = open.unwrap();
    fcntl(&reader, FcntlArg::F_SETPIPE_SZ(4096)).unwrap();
    let runs = [reporting(&unread), reporting(&stalled)];
    let [unread, stalled] = runs.map(|run| run.wait_with_output().unwrap());
    let words = [
        "error: cannot open the report file",
        "caused by: no process reads from it within 10 s",
    ];
    assert_refused(&unread, 2, &words);
    let said = String::from_utf8_lossy(&stalled.stderr);
    assert_eq!(stalled.status.code(), Some(3), "{said}");
    assert!(
        said.contains("error: cannot write the report to "),
        "{said}"
    );
    let cause = "caused by: its reader paused for 10 s";
    assert!(said.contains(cause), "{said}");
}

#[test]
fn report_to_a_socket_is_an_error_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("socket");
    let _socket = UnixListener::bind(&path).unwrap();
    let start = Instant::now();
    let output = reporting(&path).wait_with_output().unwrap();
    let words = [
        "error: cannot open the report file",
        "caused by: it is a socket, not a FIFO or a device",
    ];
    assert_refused(&output, 2, &words);
    assert!(start.elapsed() < Duration::from_secs(8));
}
