//! Headers and exceptions that no run writes.

use super::*;

disagreements! {
    other_owner_is_told: |made| made.change(0, |header| header.set_uid(0))
        => "differs: files.tar: home/a: no run writes such a header",
    owner_by_name_is_told: |made| made.change(0, |header| {
        header.as_gnu_mut().unwrap().uname[..4].copy_from_slice(b"root");
    }) => "differs: files.tar: home/a: no run writes such a header",
    group_by_name_is_told: |made| made.change(0, |header| {
        header.as_gnu_mut().unwrap().gname[..4].copy_from_slice(b"\x1b[2J");
    }) => "differs: files.tar: home/a: no run writes such a header",
    prefix_of_another_version_is_told: |made| made.change(0, |header| {
        header.as_mut_bytes()[257..265].copy_from_slice(b"ustar\0xx");
        header.as_mut_bytes()[345..352].copy_from_slice(b"home/.x");
    }) => "differs: files.tar: home/a: no run writes such a header",
    zero_in_a_long_name_is_told: |made| {
        made.report["evidence"]["files"][0]["path"] = json!("a\0b");
        made.entries.insert(0, long(EntryType::GNULongName, b"home/a\0b\0"));
    } => r"differs: files.tar: home/a\u{0}b: no run writes such a header",
    needless_long_name_is_told: |made| {
        made.entries.insert(0, long(EntryType::GNULongName, b"home/a\0"));
    } => "differs: files.tar: home/a: no run writes such a header",
    long_link_of_a_file_is_told: |made| {
        made.entries.insert(0, long(EntryType::GNULongLink, b"home/b\0"));
    } => "differs: files.tar: home/a: no run writes such a header",
    size_with_a_sign_is_told: |made| made.change(0, |header| {
        header.as_old_mut().size = *b"+1\0\0\0\0\0\0\0\0\0\0";
    }) => "differs: files.tar: home/a: no run writes such a header",
    size_with_high_bytes_is_told: |made| made.change(0, |header| {
        header.as_old_mut().size = *b"\x80\xff\xff\xff\0\0\0\0\0\0\0\x01";
    }) => "differs: files.tar: home/a: no run writes such a header",
    time_with_high_bytes_is_told: |made| made.change(0, |header| {
        header.as_old_mut().mtime = *b"\x80\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff";
    }) => "differs: files.tar: home/a: no run writes such a header",
    old_type_of_a_file_is_told: |made| made.change(0, |header| {
        header.as_old_mut().linkflag = [0];
    }) => "differs: files.tar: home/a: no run writes such a header",
    sparse_file_without_a_hole_is_told: |made| made.change(0, |header| {
        header.set_entry_type(EntryType::GNUSparse);
        let gnu = header.as_gnu_mut().unwrap();
        gnu.set_real_size(1);
        gnu.sparse[0].set_offset(0);
        gnu.sparse[0].set_length(1);
    }) => "differs: files.tar: home/a: no run writes such a header",
    exception_of_a_stored_file_is_told: |made| made.except("home/a", None)
        => "differs: exceptions.json: home/a: no run like this one writes it",
    exception_of_an_unlisted_file_is_told: |made| made.except("home/none\u{1b}", None)
        => r"differs: exceptions.json: home/none\u{1b}: no run like this one writes it",
    exception_of_another_stdout_is_told: |made| made.except("stdout.txt", None)
        => "differs: exceptions.json: stdout.txt: no run like this one writes it",
    exception_of_a_present_case_is_told: |made| made.except("case.toml", None)
        => "differs: exceptions.json: case.toml: no run like this one writes it",
    rename_without_an_entry_is_told: |made| made.except("home/a", Some("renamed/2"))
        => "differs: exceptions.json: home/a: no run like this one writes it",
    second_rename_of_an_entry_is_told: |made| {
        let exceptions = made.exceptions.as_array_mut().unwrap();
        exceptions.insert(0, json!({"path": "home/a", "reason": "", "stored_as": "renamed/1"}));
    } => "differs: exceptions.json: home/a: no run like this one writes it",
    rename_to_a_plain_name_is_told: |made| made.except("home/b", Some("home/a"))
        => "differs: exceptions.json: home/b: no run like this one writes it",
    report_that_is_not_json_has_a_cause: |made| {
        drop(made.files.insert("report.json".into(), b"{]".to_vec()));
    } => "unreadable: report.json: cannot parse it as JSON: key must be a string at line 1 column 2",
    size_that_matches_is_preferred: |made| {
        let files = made.report["evidence"]["files"].as_array_mut().unwrap();
        files.push(reported("<credential>", "file", "0600", b"CC"));
        made.except("home/<credential>", Some("renamed/2"));
        let last = made.entries.len() - 1;
        made.entries[last] = (header("renamed/1", EntryType::Regular, 0o600, "", 2), b"XX".to_vec());
        made.entries.push((header("renamed/2", EntryType::Regular, 0o600, "", 1), b"C".to_vec()));
    } => "differs: files.tar: renamed/1: its SHA-256 is ",
    file_beyond_any_case_is_told: |made| {
        made.entries[0] = hole("home/a", 65 << 30);
        set(made, "/evidence/files/0/bytes", json!(65_u64 << 30));
        made.except("home/a", None);
    } => "differs: files.tar: home/a: no run writes such an entry",
}

#[test]
fn forms_of_a_run_verify() {
    let mut made = Made::new();
    let (name, target) = ("n".repeat(200), "t".repeat(100) + "/t");
    made.entries[0] = hole("home/a", 1 << 20);
    made.entries.push(long(
        EntryType::GNULongName,
        format!("home/{name}\0").as_bytes(),
    ));
    made.entries.push(long(
        EntryType::GNULongLink,
        format!("{target}\0").as_bytes(),
    ));
    let stored = &format!("home/{name}")[..100];
    let mut link = header(stored, EntryType::Symlink, 0o777, &target[..100], 0);
    link.set_mtime(1 << 40);
    link.set_cksum();
    made.entries.push((link, Vec::new()));
    made.report["evidence"]["gaps"] = json!([{"what": "files", "detail": ""}]);
    let files = made.report["evidence"]["files"].as_array_mut().unwrap();
    files[0] = reported("a", "file", "4600", &vec![0; 1 << 20]);
    files.push(reported(&name, "symlink", "0777", target.as_bytes()));
    for path in ["home/unlisted", "stdout.jsonl", "stderr.txt", "case.toml"] {
        made.except(path, None);
    }
    made.files.remove("case.toml");
    let (verified, text) = verified(made.written().path(), None).unwrap();
    assert_eq!(verified, Verified::Good, "{text}");
    assert!(
        text.starts_with("verified: 11 files, 6 exceptions, "),
        "{text}"
    );
}
