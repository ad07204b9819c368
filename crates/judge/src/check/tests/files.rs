//! Deviations in the home and the temporary directory.

use std::time::Duration;

use model::case::Count;
use model::evidence::fixture::{Fixture, STARTED_MS, case_b, file};
use model::evidence::{FileEntry, FileKind, Root};
use model::expected::reason_for_file;
use model::profile::ExpectedFile;

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

    directory_writable_by_all_fails_modes: case_b, |run| {
        run.evidence.files[0].mode = 0o7777;
    } => ["files/modes"];

    directory_writable_by_group_fails_modes: case_b, |run| {
        run.evidence.files[0].mode = 0o720;
    } => ["files/modes"];

    directory_with_a_sticky_bit_fails_modes: case_b, |run| {
        run.evidence.files[0].mode = 0o1700;
    } => ["files/modes"];

    directory_readable_by_all_passes: case_b, |run| {
        run.evidence.files[0].mode = 0o755;
    } => [];

    named_directory_in_tmp_with_set_gid_fails_modes: case_b, |run| {
        expect(run, Root::Tmp, "agent-{uid}");
        run.evidence.files.push(FileEntry { mode: 0o2700, ..directory(Root::Tmp, "agent-1000") });
    } => ["files/modes"];

    named_file_with_set_uid_fails_modes: case_b, |run| {
        expect(run, Root::Home, ".agent/tool");
        run.evidence.files.push(FileEntry { mode: 0o4755, ..file(Root::Home, ".agent/tool") });
    } => ["files/modes"];

    unnamed_directory_of_any_mode_is_found_once: case_b, |run| {
        run.evidence.files.push(FileEntry { mode: 0o7777, ..directory(Root::Tmp, "open") });
    } => ["files/nothing-else"];

    a_further_file_is_found: case_b, |run| {
        run.evidence.files.push(file(Root::Home, ".agent/telemetry"));
    } => ["files/nothing-else"];

    a_state_file_that_is_gone_again_is_missing: case_b, |run| {
        run.evidence.files[STATE].transient = true;
    } => ["files/state-file"];

    a_further_file_that_is_gone_again_was_not_left: case_b, |run| {
        run.evidence.files.push(gone(".agent/.agent.json.tmp.Qx"));
    } => [];

    a_transcript_with_a_line_feed_is_found: case_b, |run| {
        run.evidence.files.push(gone(".agent/session.jsonl\n"));
    } => ["files/no-transcript"];

    a_transcript_with_a_byte_behind_it_is_found: case_b, |run| {
        run.evidence.files.push(gone(r".agent/session.jsonl\xff"));
    } => ["files/no-transcript"];

    a_transcript_in_other_letters_is_found: case_b, |run| {
        run.evidence.files.push(gone(".agent/session.J\u{17f}onL"));
    } => ["files/no-transcript"];

    a_transcript_with_a_blank_inside_is_found: case_b, |run| {
        run.evidence.files.push(gone(".agent/session.js\u{2800}onl"));
    } => ["files/no-transcript"];

    a_transcript_under_a_temporary_name_is_found: case_b, |run| {
        run.evidence.files.push(gone(".agent/session.jsonl.tmp.7.c0ffee"));
    } => ["files/no-transcript"];

    json_beside_a_log_is_no_transcript: case_b, |run| {
        run.evidence.files.push(gone(".agent/session.json/log"));
        run.evidence.files.push(gone(".agent/session.json.lock"));
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
        run.evidence.files.push(file(Root::Home, ".agent/cache/id"));
        run.evidence.files.push(directory(Root::Home, ".agent/cache"));
        expect(run, Root::Home, ".agent/cache/id");
    } => [];

    a_directory_that_the_profile_names_is_as_good: case_b, |run| {
        expect(run, Root::Tmp, "agent-{uid}");
        run.evidence.files.push(directory(Root::Tmp, "agent-1000"));
    } => [];

    a_neighbour_of_a_directory_that_the_profile_names_is_found: case_b, |run| {
        expect(run, Root::Tmp, "agent-{uid}");
        run.evidence.files.push(directory(Root::Tmp, "agent-10000"));
    } => ["files/nothing-else"];

    what_lies_in_a_directory_that_the_profile_names_is_found: case_b, |run| {
        expect(run, Root::Tmp, "agent-{uid}");
        run.evidence.files.push(directory(Root::Tmp, "agent-1000"));
        run.evidence.files.push(file(Root::Tmp, "agent-1000/notes"));
    } => ["files/nothing-else"];

    a_path_that_the_profile_names_in_the_other_tree_is_found: case_b, |run| {
        expect(run, Root::Tmp, ".agent/cache");
        run.evidence.files.push(file(Root::Home, ".agent/cache"));
    } => ["files/nothing-else"];

    a_link_with_a_name_that_the_profile_names_is_found: case_b, |run| {
        expect(run, Root::Home, ".agent/cache");
        let link = FileEntry { kind: FileKind::Symlink, ..file(Root::Home, ".agent/cache") };
        run.evidence.files.push(link);
    } => ["files/nothing-else"];

    a_file_that_was_to_be_there_for_a_time_only_is_found: case_b, |run| {
        run.profile.files.transient.push(known(Root::Home, ".agent/lock"));
        run.evidence.files.push(file(Root::Home, ".agent/lock"));
    } => ["files/nothing-else"];

    a_transcript_is_found: case_b, |run| {
        run.evidence.files.push(file(Root::Home, ".agent/projects/home/1.JSONL"));
    } => ["files/nothing-else", "files/no-transcript"];

    a_transcript_that_the_profile_names_is_found: case_b, |run| {
        run.evidence.files.push(file(Root::Home, ".agent/log.jsonl"));
        expect(run, Root::Home, ".agent/log.jsonl");
    } => ["files/no-transcript"];
}

/// Index of the state file in the fixture.
const STATE: usize = 1;
/// Index of the backup in the fixture.
const BACKUP: usize = 3;

fn backup(suffix: &str) -> model::evidence::FileEntry {
    file(
        Root::Home,
        &format!(".agent/backups/.agent.json.backup.{suffix}"),
    )
}

fn known(root: Root, path: &str) -> ExpectedFile {
    ExpectedFile {
        root,
        path: path.parse().unwrap(),
        mode: None,
        count: Count::ANY,
        may_hold_credential: false,
        reason: "the client is known for it".to_owned(),
    }
}

fn expect(run: &mut Fixture, root: Root, path: &str) {
    run.profile.files.expected.push(known(root, path));
}

fn directory(root: Root, path: &str) -> FileEntry {
    FileEntry {
        kind: FileKind::Directory,
        ..file(root, path)
    }
}

#[test]
fn what_is_no_surprise_has_a_reason_and_anything_else_has_none() {
    let mut run = case_b();
    expect(&mut run, Root::Home, ".agent/cache/id-{hex}");
    run.profile
        .files
        .transient
        .push(known(Root::Home, ".agent/lock.{pid}"));
    let reason = |entry: &FileEntry| reason_for_file(&run.profile.files, entry);
    let profiles = Some("the client is known for it");
    assert_eq!(reason(&file(Root::Home, ".agent/cache/id-0a")), profiles);
    assert_eq!(reason(&gone(".agent/cache/id-0a")), profiles);
    assert_eq!(reason(&gone(".agent/lock.2")), profiles);
    assert_eq!(reason(&file(Root::Home, ".agent/lock.2")), None);
    assert_eq!(reason(&gone(".agent/lock.x")), None);
    let state = reason(&run.evidence.files[STATE]);
    assert_eq!(state, Some("the application state file"));
    let backup = reason(&run.evidence.files[BACKUP]);
    assert_eq!(backup, Some("the backup of the application state file"));
    let way = Some("a directory on the way to an expected file");
    assert_eq!(reason(&directory(Root::Home, ".agent/cache")), way);
    assert_eq!(reason(&directory(Root::Home, ".agent/backups")), way);
    assert_eq!(reason(&directory(Root::Tmp, ".agent/cache")), None);
}

/// Transient file of the home.
fn gone(path: &str) -> FileEntry {
    FileEntry {
        transient: true,
        ..file(Root::Home, path)
    }
}
