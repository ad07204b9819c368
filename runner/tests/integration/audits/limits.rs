//! `--limit`: each resource limit of an audited program, and the end that it causes.

use serde_json::json;

use super::Audit;
use crate::kit::Run;
use crate::needs_sandbox;

/// Prints the soft limits of processor time, data, descriptors and file size.
const LIMITS: &str = "ulimit -t; ulimit -d; ulimit -n; ulimit -f";

#[test]
fn limits_of_the_command_line_are_set() {
    needs_sandbox!();
    let audit = || {
        let audit = Audit::of(["/bin/dash", "-c", LIMITS]).option("--limit=cpu_time=2h");
        let audit = audit.option("--limit=memory=64TiB");
        let audit = audit.option("--limit=open_files=100");
        audit.option("--limit=file_size=1 MiB")
    };
    for audit in [audit(), audit().as_ordinary_user()] {
        let audited = audit.run();
        audited.assert_printed(0, "7200\n68719476736\n100\n2048\n");
        let rule = "| limit cpu_time=2h: asked for on the command line\n";
        assert!(audited.stderr.contains(rule), "{}", audited.stderr);
    }
}

#[test]
fn longer_timeout_raises_the_processor_time() {
    needs_sandbox!();
    for (options, seconds) in [
        (vec![], "600\n"),
        (vec!["--timeout=10s"], "600\n"),
        (vec!["--timeout=1h"], "7200\n"),
        (vec!["--limit=timeout=1h"], "7200\n"),
        (vec!["--timeout=1h", "--limit=cpu_time=7s"], "7\n"),
    ] {
        let audit = Audit::shell("ulimit -t");
        let audit = options.into_iter().fold(audit, Audit::option);
        audit.run().assert_printed(0, seconds);
    }
}

#[test]
fn end_by_a_limit_is_named() {
    needs_sandbox!();
    for (limit, line, code, named) in [
        (
            "cpu_time=1s",
            "while :; do :; done",
            128 + 24,
            "cpu_time = \"1s\"",
        ),
        (
            "file_size=4KiB",
            "exec head -c 9999 /dev/zero >file",
            128 + 25,
            "file_size = \"4 KiB\"",
        ),
        ("timeout=200ms", "sleep 60", 124, "timeout = \"200ms\""),
    ] {
        let audited = Audit::shell(line).option("--limit").option(limit).run();
        audited.assert_code(code);
        assert_eq!(audited.report["client"]["limit"], json!(named));
        // The positive twin: the default of the policy is enough.
        if code != 124 && !line.starts_with("while") {
            Audit::shell(line).run().assert_code(0);
        }
    }
}

#[test]
fn wrong_limit_ends_before_the_run() {
    let output = |limit: &str| {
        let audit = Audit::of(["true"]).option("--limit").option(limit);
        let output = audit.command().output().unwrap();
        assert_eq!(output.status.code(), Some(125));
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(output("memroy=1GiB").contains("hint: did you mean `memory`?"));
    assert!(output("processes=0").contains("expected 1 to 100000, found `0`"));
    let run = Run::case_b().argument("--limit=memory=1").output();
    assert_eq!(run.status.code(), Some(2));
}

#[test]
fn case_lists_its_changed_limit() {
    needs_sandbox!();
    let done = Run::case_b().argument("--limit=memory=64TiB").json();
    done.assert_passed();
    let rule = "| limit memory=64TiB: asked for on the command line\n";
    assert!(done.stderr.contains(rule), "{}", done.stderr);
}

#[test]
fn ignored_cpu_signal_ends_at_the_named_limit() {
    needs_sandbox!();
    let program = "import signal\n\
        signal.signal(signal.SIGXCPU, signal.SIG_IGN)\n\
        while True: pass";
    let audited = Audit::of(["/usr/bin/python3", "-c", program])
        .option("--limit=cpu_time=1s")
        .run();
    audited.assert_code(128 + libc::SIGKILL);
    assert_eq!(audited.report["client"]["limit"], "cpu_time = \"1s\"");
    // The twin: a kill within the limit has no such name.
    let killed = Audit::shell("kill -KILL $$")
        .option("--limit=cpu_time=1s")
        .run();
    killed.assert_code(128 + libc::SIGKILL);
    assert_eq!(killed.report["client"]["limit"], serde_json::Value::Null);
}
