//! A Kubernetes Job. Without a cluster, the engines start its container with the settings of its security contexts, on
//! a network, as a pod has one.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::process::Output;

use serde_json::Value;
use yaml_rust2::Yaml;

use super::{clone_with, good_client, keys, recipe, words};
use crate::engine::{Engine, IMAGE};
use crate::place::Place;

/// Mount point of the claim in the container.
const REPORTS: &str = "/reports";

fn pod() -> Yaml {
    recipe("kind")["spec"]["template"]["spec"].clone()
}

fn container() -> Yaml {
    let pod = pod();
    let containers = pod["containers"].as_vec().unwrap();
    assert_eq!(containers.len(), 1);
    containers[0].clone()
}

/// Returns the engine's flags for the security contexts. Unknown keys are a failure, so that none is ignored.
fn flags(engine: Engine, seccomp: &str) -> Vec<String> {
    let network = match engine {
        Engine::Docker => "bridge",
        // Podman's own networks need programs that Podman does not ship.
        Engine::Podman => "host",
    };
    let mut flags = vec![format!("--network={network}")];
    let (pod, container) = (pod(), container());
    for context in [&pod["securityContext"], &container["securityContext"]] {
        for key in keys(context) {
            let value = &context[key];
            match key {
                "runAsUser" => {
                    let (user, group) = (value.as_i64(), context["runAsGroup"].as_i64());
                    flags.push(format!("--user={}:{}", user.unwrap(), group.unwrap()));
                }
                "readOnlyRootFilesystem" => {
                    assert_eq!(value.as_bool(), Some(true));
                    flags.push("--read-only".to_owned());
                    // A pod has no temporary directory unless its manifest names one.
                    if engine == Engine::Podman {
                        flags.push("--read-only-tmpfs=false".to_owned());
                    }
                }
                "allowPrivilegeEscalation" => {
                    assert_eq!(value.as_bool(), Some(false));
                    flags.push("--security-opt=no-new-privileges".to_owned());
                }
                "capabilities" => {
                    assert_eq!(words(&value["drop"]), ["ALL"]);
                    flags.push("--cap-drop=ALL".to_owned());
                }
                "seccompProfile" => match seccomp {
                    "RuntimeDefault" => {}
                    "Unconfined" => flags.push("--security-opt=seccomp=unconfined".to_owned()),
                    other => panic!("{other}"),
                },
                "appArmorProfile" => {
                    assert_eq!(value["type"].as_str(), Some("Unconfined"));
                    flags.push("--security-opt=apparmor=unconfined".to_owned());
                }
                // These keys describe the image and the claim, which already match them.
                "runAsNonRoot" | "runAsGroup" | "fsGroup" => {}
                other => panic!("{other} has no flag here"),
            }
        }
    }
    flags
}

/// Runs the container with this profile: its output, and the report on the claim.
fn run(engine: Engine, seccomp: &str) -> (Output, Option<Value>) {
    let client = clone_with(&good_client());
    let claim = Place::new();
    let group = pod()["securityContext"]["fsGroup"].as_i64().unwrap();
    chown(claim.path(), Some(0), Some(group.try_into().unwrap())).unwrap();
    fs::set_permissions(claim.path(), fs::Permissions::from_mode(0o2775)).unwrap();
    let program = client.path().join("my-client");
    let mut flags = flags(engine, seccomp);
    flags.push(format!("--volume={}:/my-client:ro", program.display()));
    flags.push(claim.volume(REPORTS));
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let output = engine.run(&flags, IMAGE, &words(&container()["args"]));
    let report = fs::read(claim.path().join("runner.json")).ok();
    (
        output,
        report.map(|report| serde_json::from_slice(&report).unwrap()),
    )
}

#[test]
fn it_is_a_job_that_is_tried_once_and_keeps_its_report() {
    let job = recipe("kind");
    assert_eq!(job["apiVersion"].as_str(), Some("batch/v1"));
    assert_eq!(job["kind"].as_str(), Some("Job"));
    assert_eq!(job["spec"]["backoffLimit"].as_i64(), Some(0));
    let pod = pod();
    assert_eq!(pod["restartPolicy"].as_str(), Some("Never"));
    assert_eq!(pod["automountServiceAccountToken"].as_bool(), Some(false));
    let mounts = &container()["volumeMounts"];
    assert_eq!(mounts[0]["mountPath"].as_str(), Some(REPORTS));
    assert_eq!(mounts[0]["name"], pod["volumes"][0]["name"]);
}

#[test]
fn each_key_of_its_security_contexts_has_a_flag() {
    let profile = pod()["securityContext"]["seccompProfile"]["type"].clone();
    assert_eq!(profile.as_str(), Some("Unconfined"));
    for engine in Engine::ALL {
        assert!(
            flags(engine, "Unconfined").contains(&"--security-opt=seccomp=unconfined".to_owned())
        );
    }
}

#[test]
#[ignore = "needs container engines: .ci/containers"]
fn its_container_passes_on_a_network_in_a_namespace_of_its_own() {
    for engine in Engine::ALL {
        let (output, report) = run(engine, "Unconfined");
        assert_eq!(output.status.code(), Some(0), "{engine:?} {output:?}");
        let report = report.unwrap();
        assert_eq!(report["verdict"], "passed");
        assert_eq!(report["tier"], "namespace");
    }
}

#[test]
#[ignore = "needs container engines: .ci/containers"]
fn with_the_default_profile_it_runs_nothing_and_says_why() {
    let (output, _) = run(Engine::Docker, "RuntimeDefault");
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("--network none"), "{said}");
}
