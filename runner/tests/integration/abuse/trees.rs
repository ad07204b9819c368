//! Home and temporary directory.

use super::{Abuse, WITHOUT_FILES, abuses};
use crate::needs_sandbox;

const MORE: &[&str] = &["files/nothing-else"];

abuses! {
    a_full_home_is_an_error_inside: "full-home" => *MORE, &[];
    a_full_temporary_directory_is_an_error_inside: "full-tmp" => *MORE, &[];
    shared_memory_files_lie_in_the_temporary_directory: "full-shm" => *MORE, &[];
    all_inodes_are_taken_and_every_file_is_listed: "many-files" => *MORE, &[];
    twenty_thousand_links_are_listed_and_not_followed: "many-links" => *MORE, &[];
    hard_links_of_one_file_are_read_to_a_limit: "hard-links" => *MORE, WITHOUT_FILES;
    sparse_files_are_read_to_a_limit: "sparse-files" => *MORE, WITHOUT_FILES;
    paths_of_25_kib_each_are_listed_to_a_limit: "long-paths" => *MORE, WITHOUT_FILES;
    fifos_sockets_devices_and_modes_are_listed: "odd-files" => ["files/nothing-else", "outbound/no-attempts"], &[];
    names_that_steer_a_terminal_are_spelt_out: "odd-names" => *MORE, &[];
    what_the_client_removed_is_missing: "deletes-its-own" => ["files/state-file", "files/backup"], &[];
    what_the_client_renamed_is_missing_and_found: "renames-its-own"
        => ["files/state-file", "files/backup", "files/nothing-else"], &[];
    files_that_come_and_go_without_end_are_remembered_to_a_limit: "makes-and-removes" => [], &[];
    a_home_without_rights_is_walked: "home-without-rights" => [], &[];
}

/// Landlock checks every parent directory, so the speed of the machine decides if the time suffices for all levels.
#[test]
fn a_tree_of_10_000_levels_is_not_walked_and_never_passes() {
    needs_sandbox!();
    let ended = Abuse::of("deep-directories")
        .limit("timeout", "\"2s\"")
        .run();
    // If the time did not suffice, the remaining files are a consequence of the runner's end.
    let mut expected = WITHOUT_FILES.to_vec();
    if !ended.checks("failed").contains(&"files/nothing-else") {
        expected.insert(3, "files/nothing-else");
    }
    assert_eq!(ended.checks("errored"), expected);
    assert!(
        ended.gaps().contains("100 directories deep"),
        "{}",
        ended.gaps()
    );
}

#[test]
fn an_ordinary_users_walk_is_stopped_by_no_mode() {
    needs_sandbox!();
    Abuse::of("home-without-rights")
        .by_an_ordinary_user()
        .run()
        .assert_found(&[], &[]);
    let failed = ["files/nothing-else", "outbound/no-attempts"];
    Abuse::of("odd-files")
        .by_an_ordinary_user()
        .run()
        .assert_found(&failed, &[]);
}

/// No process runs when the home is walked: the file has one of its two names, and is read.
#[test]
fn files_that_change_without_end_are_listed_in_one_state() {
    needs_sandbox!();
    let ended = Abuse::of("changes-without-end").run();
    ended.assert_found(&["files/nothing-else", "process/no-survivors"], &[]);
    let files = ended.report["evidence"]["files"].as_array().unwrap();
    let names = ["one", "other"];
    let there = |file: &&serde_json::Value| {
        names.iter().any(|name| file["path"] == *name) && file["transient"] != true
    };
    let there: Vec<_> = files.iter().filter(there).collect();
    assert!(
        there.len() == 1 && there[0]["sha256"].is_string(),
        "{there:?}"
    );
}
