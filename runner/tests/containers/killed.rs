//! Killed or stopped containers, and a killed runner in a running container: no process and no file stays.

use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::engine::{Container, Engine, IMAGE, SLIM};
use crate::place::{Place, descendants, fixtures, processes, until};

const CLIENT: &str = "/fixtures/hostile-client";
const NONE: &str = "--network=none";
/// Both isolations on both engines.
const STARTS: [(Engine, &[&str]); 4] = [
    (Engine::Docker, &[]),
    (Engine::Docker, &["--security-opt=seccomp=unconfined"]),
    (Engine::Podman, &[]),
    (Engine::Podman, &["--cap-drop=ALL", "--user=0"]),
];

/// A client that keeps running and starts a daemon; the marker is on the command line of both, and of the runner's.
fn run(marker: &str) -> [&str; 7] {
    [
        "case-b",
        "--client",
        CLIENT,
        "--",
        marker,
        "--attempt",
        "sleep-with-daemon",
    ]
}

/// Waits until client and daemon run: the only processes with the marker that do not name the case.
#[track_caller]
fn wait_for_client(marker: &str) {
    until("the client and its daemon", || {
        let started = processes(marker);
        let clients = started
            .iter()
            .filter(|(_, words)| !words.contains("case-b"));
        (clients.count() == 2).then_some(())
    });
}

#[track_caller]
fn assert_no_process(marker: &str) {
    until("the end of every process", || {
        processes(marker).is_empty().then_some(())
    });
}

#[test]
#[ignore = "needs container engines: .ci/containers"]
fn a_container_that_is_killed_leaves_no_process_and_no_file() {
    for (engine, flags) in STARTS {
        let place = Place::new();
        let marker = place.marker();
        let flags = [flags, &[NONE, "--rm", fixtures()]].concat();
        let container = engine.start(&flags, IMAGE, &run(&marker));
        wait_for_client(&marker);
        engine.says(&["kill", &container.id]);
        assert_no_process(&marker);
        until("the end of the container", || {
            let known = engine.says(&["ps", "--all", "--quiet", "--no-trunc"]);
            (!known.contains(&container.id)).then_some(())
        });
    }
}

#[test]
#[ignore = "needs container engines: .ci/containers"]
fn a_container_that_is_stopped_ends_as_errored_and_leaves_no_process_and_no_file() {
    for (engine, flags) in STARTS {
        let place = Place::new();
        let marker = place.marker();
        let volume = place.volume("/tmp");
        let flags = [flags, &[NONE, fixtures(), &volume]].concat();
        let container = engine.start(&flags, IMAGE, &run(&marker));
        wait_for_client(&marker);
        engine.says(&["stop", "--time", "30", &container.id]);
        assert_eq!(container.inspect("{{.State.ExitCode}}"), "3");
        let logs = container.logs();
        assert!(logs.contains("interrupted"), "{logs}");
        assert_no_process(&marker);
        assert_eq!(place.names(), [""; 0], "{engine:?} {flags:?}");
    }
}

#[test]
#[ignore = "needs container engines: .ci/containers"]
fn a_runner_that_is_killed_in_a_container_that_goes_on_leaves_no_process_and_no_file() {
    for (engine, flags) in STARTS {
        let place = Place::new();
        let marker = place.marker();
        let volume = place.volume("/tmp");
        let script = format!(
            "/runner {}; while :; do sleep 1; done",
            run(&marker).join(" ")
        );
        let flags = [
            flags,
            &[NONE, "--init", "--entrypoint=/bin/sh"],
            &[fixtures(), &volume],
        ]
        .concat();
        let container = engine.start(&flags, SLIM, &["-c", &script]);
        wait_for_client(&marker);
        kill(runner(&marker), Signal::SIGKILL).unwrap();
        until("nothing but the container's own processes", || {
            (working(&container) == ["sh", "sleep"]).then_some(())
        });
        until("an empty temporary directory", || {
            place.names().is_empty().then_some(())
        });
    }
}

fn runner(marker: &str) -> Pid {
    let started = processes(marker);
    let found: Vec<_> = started
        .iter()
        .filter(|(_, words)| words.starts_with("/runner case-b"))
        .collect();
    assert_eq!(found.len(), 1, "{started:?}");
    Pid::from_raw(found[0].0)
}

/// The names of the processes in the container, without its init.
fn working(container: &Container) -> Vec<String> {
    let init = container.inspect("{{.State.Pid}}").parse().unwrap();
    let name = |pid| fs::read_to_string(format!("/proc/{pid}/comm")).ok();
    let mut names: Vec<_> = descendants(init)
        .into_iter()
        .filter_map(name)
        .map(|name| name.trim().to_owned())
        .collect();
    names.sort();
    names
}
