//! Deviations in the home and the temporary directory.

use std::time::Duration;

use crate::evidence::fixture::{STARTED_MS, file};
use crate::evidence::{FileEntry, FileKind, Root};
use crate::profile::ExpectedFile;

use super::deviations;

deviations! {
    a_missing_state_file_is_found: case_b, |run| { run.evidence.files.remove(STATE); } => ["files/state-file"];

    an_empty_state_file_is_found: case_b, |run| run.evidence.files[STATE].bytes = 0 => ["files/state-file"];

    a_link_in_place_of_the_state_file_is_found: case_b, |run| {
        run.evidence.files[STATE].kind = FileKind::Symlink;
    } => ["files/state-file", "files/nothing-else"];

    a_missing_backup_is_found: case_b, |run| { run.evidence.files.remove(BACKUP); } => ["files/backup"];

    a_second_backup_is_found: case_b, |run| {
        run.evidence.files.push(backup(&(STARTED_MS + 130).to_string()));
    } => ["files/backup"];

    a_backup_with_another_suffix_is_found: case_b, |run| {
        run.evidence.files[BACKUP] = backup("178000000000x");
    } => ["files/backup", "files/nothing-else"];

    a_backup_with_a_digit_too_many_is_found: case_b, |run| {
        run.evidence.files[BACKUP] = backup(&format!("{STARTED_MS}0"));
    } => ["files/backup", "files/nothing-else"];

    a_backup_stamped_before_the_run_is_found: case_b, |run| {
        run.evidence.files[BACKUP] = backup(&(STARTED_MS - 1_001).to_string());
    } => ["files/backup"];

    a_backup_stamped_after_the_run_is_found: case_b, |run| {
        run.evidence.wall.1 = run.evidence.wall.0 + Duration::from_millis(412);
        run.evidence.files[BACKUP] = backup(&(STARTED_MS + 1_413).to_string());
    } => ["files/backup"];

    a_backup_stamped_a_second_off_is_as_good: case_b, |run| {
        run.evidence.files[BACKUP] = backup(&(STARTED_MS - 1_000).to_string());
    } => [];

    a_state_file_that_others_can_read_is_found: case_b, |run| {
        run.evidence.files[STATE].mode = 0o644;
    } => ["files/modes"];

    a_backup_with_a_set_uid_bit_is_found: case_b, |run| {
        run.evidence.files[BACKUP].mode = 0o4600;
    } => ["files/modes"];

    a_further_file_is_found: case_b, |run| {
        run.evidence.files.push(file(Root::Home, ".agent/telemetry"));
    } => ["files/nothing-else"];

    a_state_file_that_is_gone_again_is_missing: case_b, |run| {
        run.evidence.files[STATE].transient = true;
    } => ["files/state-file"];

    a_further_file_that_is_gone_again_was_not_left: case_b, |run| {
        run.evidence.files.push(gone(".agent/.agent.json.tmp.Qx"));
    } => [];

    a_transcript_that_is_gone_again_is_found: case_b, |run| {
        run.evidence.files.push(gone(".agent/session.jsonl"));
    } => ["files/no-transcript"];

    a_file_in_the_temporary_directory_is_found: case_b, |run| {
        run.evidence.files.push(file(Root::Tmp, ".agent/.agent.json"));
    } => ["files/nothing-else"];

    a_named_pipe_is_found: case_b, |run| {
        let mut pipe = file(Root::Home, ".agent/pipe");
        pipe.kind = FileKind::Fifo;
        run.evidence.files.push(pipe);
    } => ["files/nothing-else"];

    a_directory_that_leads_to_no_expected_file_is_found: case_b, |run| {
        let mut directory = file(Root::Home, ".agent/back");
        directory.kind = FileKind::Directory;
        run.evidence.files.push(directory);
    } => ["files/nothing-else"];

    a_file_that_the_profile_names_is_as_good: case_b, |run| {
        let path = ".agent/cache/id".to_owned();
        run.evidence.files.push(file(Root::Home, &path));
        let mut directory = file(Root::Home, ".agent/cache");
        directory.kind = FileKind::Directory;
        run.evidence.files.push(directory);
        run.profile.files.expected.push(ExpectedFile { path, reason: "A cache.".to_owned() });
    } => [];

    a_transcript_is_found: case_b, |run| {
        run.evidence.files.push(file(Root::Home, ".agent/projects/home/1.JSONL"));
    } => ["files/nothing-else", "files/no-transcript"];

    a_transcript_that_the_profile_names_is_found: case_b, |run| {
        let path = ".agent/log.jsonl".to_owned();
        run.evidence.files.push(file(Root::Home, &path));
        run.profile.files.expected.push(ExpectedFile { path, reason: "A log.".to_owned() });
    } => ["files/no-transcript"];
}

/// Index of the state file in the fixture.
const STATE: usize = 1;
/// Index of the backup in the fixture.
const BACKUP: usize = 3;

fn backup(suffix: &str) -> crate::evidence::FileEntry {
    file(
        Root::Home,
        &format!(".agent/backups/.agent.json.backup.{suffix}"),
    )
}

/// A file of the home that did not stay.
fn gone(path: &str) -> FileEntry {
    FileEntry {
        transient: true,
        ..file(Root::Home, path)
    }
}
