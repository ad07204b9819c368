//! Clients that deviate in one way, and the complete set of checks that each run fails.
//!
//! The fixture `deviant-client` acts like the reference client in both cases; `--deviate NAME` changes one action. Each
//! line here is a run of the executable.

use std::collections::BTreeSet;

use crate::inherited::CONTAINER;
use crate::kit::{Done, Run, fixture};
use crate::needs_sandbox;

mod body;
mod files;
mod headers;
mod limits;
mod outbound;
mod processes;
mod records;
mod requests;
mod secrets;

/// One test for each line, `name: case, "deviation" => [ids that fail];`. A line without ids is the twin of a failing
/// one: the run passes.
macro_rules! deviations {
    ($($name:ident: $case:ident, $deviation:literal => [$($id:literal),*];)*) => {
        pub(super) const NAMED: &[&str] = &[$($($id,)*)*];

        #[test]
        fn in_tier_inherited_each_is_judged_alike() {
            crate::needs_sandbox!();
            super::assert_judged_alike_inherited(&[
                $((crate::kit::Run::$case, $deviation, &[$($id),*]),)*
            ]);
        }
        $(
            #[test]
            fn $name() {
                crate::needs_sandbox!();
                let done = crate::kit::Run::$case().deviating($deviation).json();
                super::assert_found(&done, &[$($id),*]);
            }
        )*
    };
}
use deviations;

#[track_caller]
fn assert_found(done: &Done, ids: &[&str]) {
    if ids.is_empty() {
        done.assert_passed();
    } else {
        done.assert_fails(ids);
    }
}

/// Rows with other findings in isolation `inherited`. Sockets are refused there before they have a destination,
/// /dev/shm is the container's, and the fixture panics without a datagram socket or a set-id bit.
const OTHERWISE_INHERITED: &[(&str, &[&str])] = &[
    ("socket", &["process/exit-zero"]),
    ("file-in-shared-memory", &["process/exit-zero"]),
    ("connects-to-a-unix-socket", &[]),
    ("listens", &[]),
    ("app-directory-of-mode-7777", &["process/exit-zero"]),
    ("app-directory-with-set-gid", &["process/exit-zero"]),
    ("connects-a-datagram-socket", &["outbound/no-attempts"]),
    ("sends-a-datagram", NO_DATAGRAM),
    ("key-behind-the-question", NO_DATAGRAM),
    ("sends-no-dns", NO_DATAGRAM),
];
const NO_DATAGRAM: &[&str] = &[
    "requests/first-and-only",
    "requests/post-count",
    "records/sequence",
    "records/result-success",
    "outbound/no-attempts",
    "process/exit-zero",
];

/// Case, deviation, and the ids that fail.
type Row<'a> = (fn() -> Run, &'a str, &'a [&'a str]);

/// Runs a table again in isolation `inherited`.
#[track_caller]
fn assert_judged_alike_inherited(rows: &[Row<'_>]) {
    let mut otherwise = Vec::new();
    for (case, deviation, ids) in rows {
        let row = OTHERWISE_INHERITED.iter().find(|row| row.0 == *deviation);
        let expected = row.map_or(*ids, |row| row.1);
        let run = || {
            let run = case().on_a_host_without(CONTAINER);
            run.deviating(deviation).json()
        };
        let mut done = run();
        // Watches are best-effort in this isolation: a new directory is watched a moment after its creation, so a
        // removed file may be missed.
        if *ids == ["files/no-transcript"] && done.report["verdict"] == "passed" {
            done = run();
        }
        let found = done.checks("failed");
        let verdict = if expected.is_empty() {
            "passed"
        } else {
            "failed"
        };
        if done.report["tier"] != "inherited"
            || done.report["verdict"] != verdict
            || found != expected
        {
            otherwise.push(format!("{deviation}: {} {found:?}", done.report["verdict"]));
        }
    }
    assert!(otherwise.is_empty(), "{}", otherwise.join("\n"));
}

#[test]
fn without_a_deviation_the_fixture_client_passes_both_cases() {
    needs_sandbox!();
    for case in [Run::case_a(), Run::case_b()] {
        case.client(fixture("deviant-client"))
            .json()
            .assert_passed();
    }
}

#[test]
fn a_deviation_that_the_fixture_client_does_not_know_never_passes() {
    needs_sandbox!();
    let done = Run::case_b().deviating("no-such-deviation").json();
    done.assert_fails(&["process/exit-zero"]);
    assert_eq!(done.report["client"]["exit"]["code"], 70);
}

#[test]
fn a_deviation_is_found_for_an_ordinary_user_as_well() {
    needs_sandbox!();
    let of_each_kind: [(&str, &[&str]); 6] = [
        ("unknown-get", &["requests/first-and-only"]),
        ("init-after-the-answer", &["records/init-before-post"]),
        ("closed-directory", &["files/nothing-else"]),
        ("state-for-all", &["files/modes"]),
        (
            "key-in-state-as-base64",
            &["secrets/credential-not-written"],
        ),
        ("survivor", &["process/no-survivors"]),
    ];
    for (deviation, ids) in of_each_kind {
        let run = Run::case_b().as_ordinary_user().deviating(deviation);
        run.json().assert_fails(ids);
    }
}

/// `outbound/denied` judges the sandbox, so no client can fail it. The built-in cases have no rules for the others.
const NOT_NAMED: [&str; 5] = [
    "outbound/denied",
    "headers/rules",
    "records/rules",
    "files/rules",
    "process/programs",
];

#[test]
fn every_check_of_the_client_is_failed_by_a_deviation() {
    let named = [
        body::NAMED,
        files::NAMED,
        headers::NAMED,
        outbound::NAMED,
        processes::NAMED,
        records::NAMED,
        requests::NAMED,
        secrets::NAMED,
    ];
    let named: BTreeSet<_> = named.into_iter().flatten().copied().collect();
    let clients = model::finding::ids().filter(|id| !NOT_NAMED.contains(id));
    assert_eq!(named, clients.collect());
}
