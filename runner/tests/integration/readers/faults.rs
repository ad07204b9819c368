//! Faults in good reports: each reader finds the one that it is given.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::{Reports, readers};
use crate::kit::Run;
use crate::needs_sandbox;

#[test]
fn the_validator_and_the_schema_find_each_fault_that_is_put_into_a_log() {
    needs_sandbox!();
    let Some(readers) = readers() else { return };
    let reports = Reports::of(Run::case_b().deviating("unknown-get"), 1);
    let place = "/runs/0/results/0/locations/0/physicalLocation";
    for (pointer, value, rule) in [
        ("/runs/0/results/0/ruleIndex", json!(99), "SARIF1009"),
        ("/version", json!("2.0.0"), "JSON1019"),
        (&format!("{place}/region/startLine"), json!(0), "JSON1008"),
        (
            &format!("{place}/artifactLocation/uri"),
            json!("a b"),
            "SARIF1002",
        ),
    ] {
        let faults = readers.faults(&changed(&reports, pointer, value));
        assert!(
            faults.iter().any(|fault| fault.contains(rule)),
            "{pointer}: {faults:?}"
        );
    }
    for (pointer, value) in [
        ("/version", json!("2.0.0")),
        ("/runs/0/results/0/level", json!("fatal")),
        ("/runs/0/results/0/message", json!("text")),
        ("/runs/0/invocations/0/startTimeUtc", json!(7)),
    ] {
        let file = changed(&reports, pointer, value);
        let log = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
        assert_ne!(readers.misfits(&log), [""; 0], "{pointer}");
    }
}

/// Writes the log, with one value replaced, to a file.
fn changed(reports: &Reports, pointer: &str, value: Value) -> PathBuf {
    let mut log = reports.sarif();
    *log.pointer_mut(pointer).unwrap() = value;
    let file = reports.file("broken.sarif");
    fs::write(&file, log.to_string()).unwrap();
    file
}

#[test]
fn the_reader_of_junit_xml_counts_anew() {
    needs_sandbox!();
    let Some(readers) = readers() else { return };
    let reports = Reports::of(Run::case_b().deviating("unknown-get"), 1);
    let xml = fs::read_to_string(reports.file("junit")).unwrap();
    let wrong = xml.replace("failures=\"1\"", "failures=\"2\"");
    assert_ne!(wrong, xml);
    let file = reports.file("wrong.xml");
    fs::write(&file, wrong).unwrap();
    let read = readers.junit(&file);
    assert_ne!(read["counted"], read["counts"]);
}
