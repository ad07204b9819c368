//! The /proc of a sandbox that cannot mount a fresh one: a few files about the machine, and no processes.

use super::as_both;
use crate::abuse::Abuse;
use crate::escapes::attempt::{inside_of, refused_inside_of};
use crate::kit::Run;
use crate::needs_sandbox;
use crate::teardown::watch::Place;

fn without_proc() -> Run {
    Run::case_b().on_a_host_without("proc")
}

#[test]
fn the_files_that_tell_of_the_machine_can_be_read_and_nothing_else_is_there() {
    needs_sandbox!();
    let listed = inside_of(without_proc, &["list /proc"]).remove(0).detail;
    // The fixture covers /proc/version.
    assert_eq!(listed, "cpuinfo filesystems loadavg meminfo stat uptime");
    refused_inside_of(
        without_proc,
        &[
            ("read /proc/meminfo", "ok"),
            ("read /proc/uptime", "ok"),
            ("open-write /proc/uptime", "EACCES"),
            ("read /proc/1/cmdline", "ENOENT"),
            ("read /proc/self/status", "ENOENT"),
            ("read /proc/sys/kernel/hostname", "ENOENT"),
            ("list /proc/..", "ok"),
        ],
    );
}

/// Init reads the container's /proc by a descriptor that no other process has.
#[test]
fn what_the_client_leaves_running_is_named_all_the_same() {
    needs_sandbox!();
    for ordinary in [false, true] {
        let place = Place::new();
        let mut abuse = Abuse::of("daemons-hold-the-pipes");
        if ordinary {
            abuse = abuse.by_an_ordinary_user();
        }
        let run = abuse.described(&place).on_a_host_without("proc");
        let done = place.start(run).wait();
        place.assert_nothing_left();
        done.assert_fails(&["process/no-survivors"]);
        let survivors = done.report["evidence"]["survivors"].as_array().unwrap();
        assert!(!survivors.is_empty());
        for survivor in survivors {
            // The pid is the one in the client's own pid namespace.
            assert!(survivor["pid"].as_i64().unwrap() < 1000, "{survivor}");
            assert_ne!(survivor["program"], "", "{survivor}");
        }
    }
}

#[test]
fn no_descriptor_of_the_containers_proc_is_left_to_the_client() {
    needs_sandbox!();
    for run in as_both(without_proc) {
        let done = run.json();
        let layers = done.report["isolation"]["layers"].as_array().unwrap();
        let descriptors = layers.iter().find(|layer| layer["name"] == "descriptors");
        assert_eq!(descriptors.unwrap()["status"], "enforced");
    }
}
