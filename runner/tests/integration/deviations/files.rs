//! Files left in the home and in the temporary directory.

use super::deviations;

deviations! {
    a_missing_state_file_is_found: case_b, "no-state" => ["files/state-file"];
    an_empty_state_file_is_found: case_b, "state-is-empty" => ["files/state-file"];
    a_link_in_the_place_of_the_state_file_is_found: case_b, "state-is-a-link" => ["files/state-file",
        "files/modes", "files/nothing-else"];
    a_directory_in_the_place_of_the_state_file_is_found: case_b, "state-is-a-directory" =>
        ["files/state-file", "files/modes", "files/nothing-else"];

    a_missing_backup_is_found: case_b, "no-backup" => ["files/backup"];
    a_second_backup_is_found: case_b, "two-backups" => ["files/backup"];
    a_backup_from_another_time_is_found: case_b, "old-backup" => ["files/backup"];
    a_backup_stamped_in_seconds_is_found: case_b, "backup-with-seconds" => ["files/backup",
        "files/nothing-else"];
    a_link_in_the_place_of_the_backup_is_found: case_b, "backup-is-a-link" => ["files/backup",
        "files/modes", "files/nothing-else"];

    a_state_file_that_others_may_read_is_found: case_b, "state-for-all" => ["files/modes"];
    a_backup_that_others_may_read_is_found: case_b, "backup-for-all" => ["files/modes"];
    directory_of_mode_7777_fails_modes: case_b, "app-directory-of-mode-7777" => ["files/modes"];
    directory_for_its_group_fails_modes: case_a, "app-directory-for-its-group" => ["files/modes"];
    directory_with_set_gid_fails_modes: case_b, "app-directory-with-set-gid" => ["files/modes"];
    directory_for_all_to_read_passes: case_b, "app-directory-for-all-to-read" => [];
    directories_are_walked_whatever_their_mode: case_b, "closed-app-directory" => [];

    a_further_file_is_found: case_b, "extra-file" => ["files/nothing-else"];
    a_further_file_beside_the_state_is_found: case_a, "file-beside-the-state" => ["files/nothing-else"];
    a_further_directory_is_found: case_b, "directory" => ["files/nothing-else"];
    a_directory_that_is_closed_to_its_owner_is_found: case_b, "closed-directory" => ["files/nothing-else"];
    a_named_pipe_is_found_and_not_opened: case_b, "fifo" => ["files/nothing-else"];
    a_socket_is_found: case_b, "socket" => ["files/nothing-else", "outbound/no-attempts"];
    a_link_is_found: case_b, "link" => ["files/nothing-else"];
    a_file_in_the_temporary_directory_is_found: case_b, "file-in-tmp" => ["files/nothing-else"];
    a_directory_in_the_temporary_directory_is_found: case_b, "directory-in-tmp" => ["files/nothing-else"];
    a_file_in_the_working_directory_is_found: case_b, "file-in-work" => ["files/nothing-else"];
    a_file_in_the_working_directory_fails_case_a_too: case_a, "file-in-work" => ["files/nothing-else"];
    a_directory_in_the_working_directory_is_found: case_b, "directory-in-work" => ["files/nothing-else"];
    a_transcript_in_the_working_directory_is_found: case_b, "transcript-in-work" => ["files/no-transcript"];
    a_file_in_shared_memory_is_found: case_b, "file-in-shared-memory" => ["files/nothing-else"];
    a_file_that_was_removed_again_is_not_seen: case_b, "removed-file" => [];

    a_transcript_is_found: case_b, "transcript" => ["files/nothing-else", "files/no-transcript"];
    a_transcript_in_the_temporary_directory_is_found: case_b, "transcript-in-tmp" => ["files/nothing-else",
        "files/no-transcript"];
    a_transcript_with_a_line_feed_is_found: case_b, "transcript-with-a-line-feed" => ["files/no-transcript"];
    a_transcript_with_a_byte_is_found: case_b, "transcript-with-a-byte" => ["files/no-transcript"];
    a_transcript_in_capitals_is_found: case_b, "transcript-in-capitals" => ["files/no-transcript"];
    a_transcript_with_a_blank_is_found: case_b, "transcript-with-a-blank" => ["files/no-transcript"];
    a_transcript_under_a_temporary_name_is_found: case_b, "transcript-under-a-temporary-name" =>
        ["files/no-transcript"];
    a_transcript_that_was_there_for_a_moment_is_found: case_b, "transcript-for-a-moment" =>
        ["files/no-transcript"];
    a_transcript_that_became_the_state_file_is_found: case_b, "transcript-becomes-the-state" =>
        ["files/no-transcript"];
}
