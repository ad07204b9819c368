//! Endpoints that a client in a container must not reach: a mounted engine socket, as in many set-ups, and a neighbour
//! on a loopback that several containers share, as in a pod.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::process::Output;

use serde_json::Value;

use crate::engine::{Engine, IMAGE};
use crate::place::{Place, fixtures, until};

/// An address in a network that only this test's containers use.
const NEIGHBOUR: &str = "127.0.0.1:4317";
const CLIENT: &str = "/fixtures/hostile-client";
const NONE: &str = "--network=none";
const UNCONFINED: &str = "--security-opt=seccomp=unconfined";

/// Engine, flags and isolation.
const STARTS: [(Engine, &[&str], &str); 4] = [
    (Engine::Docker, &[], "inherited"),
    (Engine::Docker, &[UNCONFINED], "namespace"),
    (Engine::Podman, &[], "namespace"),
    (Engine::Podman, &["--cap-drop=ALL", "--user=0"], "inherited"),
];

/// The attempt made in a container, without the runner.
fn outside(engine: Engine, flags: &[&str], attempt: &[&str]) -> String {
    let flags = [flags, &[fixtures(), "--entrypoint", CLIENT]].concat();
    let output = engine.run(&flags, IMAGE, &[&["--attempt"], attempt].concat());
    outcome(&String::from_utf8_lossy(&output.stdout)).unwrap_or_else(|| panic!("{output:?}"))
}

/// The attempt made by the client of a run in a container.
fn inside(engine: Engine, flags: &[&str], attempt: &[&str]) -> (Value, String) {
    let flags = [flags, &[fixtures()]].concat();
    let run = ["case-b", "--report", "json", "--client", CLIENT, "--"];
    let output = engine.run(&flags, IMAGE, &[&run[..], &["--attempt"], attempt].concat());
    let report = report(&output);
    let tail = report["evidence"]["stderr"]["tail"].as_str().unwrap_or("");
    let said = outcome(tail).unwrap_or_else(|| panic!("{output:?}"));
    (report, said)
}

fn report(output: &Output) -> Value {
    let said = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"))
}

/// The fixture's answer.
fn outcome(said: &str) -> Option<String> {
    let line = said.lines().find(|line| line.starts_with('{'))?;
    let answer: Value = serde_json::from_str(line).ok()?;
    Some(answer["outcome"].as_str()?.to_owned())
}

fn failed(report: &Value, id: &str) -> bool {
    let checks = report["checks"].as_array().unwrap();
    checks
        .iter()
        .any(|check| check["id"] == id && check["status"] == "failed")
}

#[test]
#[ignore = "needs container engines: .ci/containers"]
fn a_socket_of_the_engine_in_the_container_is_not_reached() {
    for (engine, flags, tier) in STARTS {
        let place = Place::new();
        let socket = place.path().join("docker.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        listener.set_nonblocking(true).unwrap();
        fs::set_permissions(&socket, fs::Permissions::from_mode(0o666)).unwrap();
        let volume = place.volume("/var/run");
        let flags = [flags, &[NONE, &volume]].concat();
        let attempt = ["unix-connect", "/var/run/docker.sock"];

        let (report, said) = inside(engine, &flags, &attempt);
        assert_eq!(report["tier"], tier);
        let expected = if tier == "namespace" {
            "ENOENT"
        } else {
            "EACCES"
        };
        assert_eq!(said, expected, "{engine:?} {tier}");
        assert!(listener.accept().is_err(), "{engine:?} {tier}: reached");
        if tier == "namespace" {
            assert!(failed(&report, "outbound/no-attempts"), "{report}");
        } else {
            // The call was refused before it had a destination, so it is recorded but not judged.
            let entry = &report["evidence"]["attempts"][0];
            let found = ["syscall", "family", "outcome", "errno"].map(|key| entry[key].as_str());
            assert_eq!(found, ["socket", "unix", "denied", "EACCES"].map(Some));
        }

        assert_eq!(outside(engine, &flags, &attempt), "ok");
        assert!(listener.accept().is_ok(), "the twin did not reach it");
    }
}

#[test]
#[ignore = "needs container engines: .ci/containers"]
fn a_neighbour_on_the_shared_loopback_is_not_reached() {
    for (engine, flags, tier) in STARTS {
        let neighbour = engine.start(
            &[NONE, fixtures(), "--entrypoint", CLIENT],
            IMAGE,
            &["--listen", NEIGHBOUR, "--attempt", "sleep"],
        );
        until("the neighbour", || {
            neighbour.logs().contains("asleep").then_some(())
        });
        let network = format!("--network=container:{}", neighbour.id);
        let flags = [flags, &[&network]].concat();
        let attempt = ["tcp", NEIGHBOUR];

        let (report, said) = inside(engine, &flags, &attempt);
        assert_eq!(report["tier"], tier);
        let expected = if tier == "namespace" {
            "ECONNREFUSED"
        } else {
            "EACCES"
        };
        assert_eq!(said, expected, "{engine:?} {tier}");
        assert!(failed(&report, "outbound/no-attempts"), "{report}");

        assert_eq!(outside(engine, &flags, &attempt), "ok", "the twin");
    }
}
