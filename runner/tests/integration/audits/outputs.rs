//! Destinations of the program's output, and the report after it.

use std::io::Read as _;
use std::os::fd::AsFd as _;
use std::process::Stdio;

use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use super::{Audit, open_directory};
use crate::needs_sandbox;

#[test]
fn both_outputs_are_passed_on_byte_for_byte_and_the_summary_follows_on_standard_error() {
    needs_sandbox!();
    let line = r"printf 'out\000\377\033[31m\n'; printf 'err\376\n' >&2; printf 'no line feed'";
    let output = Audit::shell(line).command().output().unwrap();
    assert_eq!(output.stdout, b"out\0\xff\x1b[31m\nno line feed");
    let rest = output.stderr.strip_prefix(b"err\xfe\n").unwrap();
    assert!(rest.starts_with(b"AUDITED, no findings\n"));
}

#[test]
fn the_summary_begins_on_a_line_of_its_own_whatever_the_program_left_open() {
    needs_sandbox!();
    let reset = b"\x18\x1b\\\x1b[!p\x1b[0m\x1b(B\x0f\n".as_slice();
    for (line, own, between) in [
        (
            "printf 'no line feed' >&2",
            b"no line feed".as_slice(),
            b"\n".as_slice(),
        ),
        ("printf 'a line\\n' >&2", b"a line\n", b""),
        ("printf '\\033]0;open' >&2", b"\x1b]0;open", reset),
        ("printf '\\033[8mhidden\\n' >&2", b"\x1b[8mhidden\n", reset),
    ] {
        let output = Audit::shell(line).command().output().unwrap();
        let rest = output.stderr.strip_prefix(own).unwrap();
        let report = rest.strip_prefix(between).unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(report.starts_with(b"AUDITED, no findings\n"), "{told}");
    }
}

#[test]
fn where_both_outputs_go_to_one_place_the_summary_begins_on_a_line_of_its_own() {
    needs_sandbox!();
    let (mut reading, writing) = std::io::pipe().unwrap();
    let mut child = Audit::shell("printf 'no line feed'")
        .command()
        .stdout(writing.try_clone().unwrap())
        .stderr(writing)
        .spawn()
        .unwrap();
    let mut text = String::new();
    reading.read_to_string(&mut text).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(
        text.starts_with("no line feed\nAUDITED, no findings\n"),
        "{text}"
    );
}

#[test]
fn a_megabyte_arrives_whole_however_slowly_it_is_read() {
    needs_sandbox!();
    let line = "i=0; while [ $i -lt 1024 ]; do printf '%01024d' $i; i=$((i+1)); done";
    let mut child = Audit::shell(line)
        .command()
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut bytes = Vec::new();
    let mut stdout = child.stdout.take().unwrap();
    let mut piece = [0; 997];
    loop {
        match stdout.read(&mut piece).unwrap() {
            0 => break,
            length => bytes.extend_from_slice(&piece[..length]),
        }
    }
    assert_eq!(bytes.len(), 1 << 20);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_reader_that_begins_long_after_the_program_has_ended_gets_all_of_it() {
    needs_sandbox!();
    // More than the pipes and the queue between them hold.
    let line = "head -c 500000 /dev/zero; echo ended >&2";
    let mut child = Audit::shell(line)
        .command()
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = child.stderr.take().unwrap();
    // The program prints this line once our pipe, the queue and its own pipe hold the rest.
    let mut stdout = child.stdout.take().unwrap();
    let mut some = vec![0; 150_000];
    stdout.read_exact(&mut some).unwrap();
    let mut ended = [0; 6];
    stderr.read_exact(&mut ended).unwrap();
    assert_eq!(&ended, b"ended\n");
    // The runner neither prints a summary nor ends, for longer than its limit for a client whose output it keeps.
    let mut polled = [PollFd::new(stderr.as_fd(), PollFlags::POLLIN)];
    assert_eq!(poll(&mut polled, 2_500_u16), Ok(0));
    let mut rest = Vec::new();
    stdout.read_to_end(&mut rest).unwrap();
    assert_eq!(some.len() + rest.len(), 500_000);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_signal_while_output_waits_for_its_reader_is_125_and_a_gap() {
    needs_sandbox!();
    let directory = open_directory("/tmp");
    let report = directory.path().join("report.json");
    // More than our pipe holds, and far less than the pipe and the queue together, however small the pieces in which
    // it is read: the program ends, and the runner waits for a reader with all output in its queue.
    let line = "head -c 90000 /dev/zero; echo ended >&2";
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let mut child = Audit::shell(line)
            .option(format!("--report=json={}", report.display()))
            .command()
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = child.stdout.take().unwrap();
        let mut stderr = child.stderr.take().unwrap();
        let mut ended = [0; 6];
        stderr.read_exact(&mut ended).unwrap();
        assert_eq!(&ended, b"ended\n");
        // The runner now only waits for the reader of standard output.
        let mut polled = [PollFd::new(stderr.as_fd(), PollFlags::POLLIN)];
        assert_eq!(poll(&mut polled, 1_500_u16), Ok(0));
        kill(Pid::from_raw(child.id() as i32), signal).unwrap();
        let mut told = String::new();
        stderr.read_to_string(&mut told).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(125), "{told}");
        drop(stdout);
        let words = "cannot pass the program's output on to standard output";
        assert!(told.contains(words), "{told}");
        assert!(told.contains("ERRORED"), "{told}");
        let report: Value = serde_json::from_slice(&std::fs::read(&report).unwrap()).unwrap();
        let gaps = report["evidence"]["gaps"].as_array().unwrap();
        let details: Vec<_> = gaps
            .iter()
            .map(|gap| gap["detail"].as_str().unwrap())
            .collect();
        assert_eq!(
            details,
            ["interrupted before all of standard output had been passed on"]
        );
    }
}

#[test]
fn where_nobody_reads_the_program_has_a_broken_pipe_as_anywhere() {
    needs_sandbox!();
    let mut child = Audit::of(["yes"])
        .command()
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = [0; 2];
    child.stdout.take().unwrap().read_exact(&mut line).unwrap();
    assert_eq!(&line, b"y\n");
    assert_eq!(child.wait().unwrap().code(), Some(128 + 13));
}

#[test]
fn output_that_cannot_be_written_is_told_and_is_125() {
    needs_sandbox!();
    let full = std::fs::File::create("/dev/full").unwrap();
    let output = Audit::of(["echo", "hi"])
        .command()
        .stdout(full)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(125));
    let told = String::from_utf8(output.stderr).unwrap();
    let words = "cannot pass the program's output on to standard output";
    assert!(
        told.contains(words) && told.contains("No space left"),
        "{told}"
    );
}
