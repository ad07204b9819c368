//! Bundles that each differ in one way from what a run writes.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use model::evidence::fixture::case_b;
use nix::unistd::mkfifo;
use report::{Format, json};
use serde_json::{Value, json};
use tar::{Builder, EntryType, Header};
use tempfile::TempDir;

use super::*;
use crate::bundle::file_of;

/// A bundle of a run, before it is written.
struct Made {
    report: Value,
    exceptions: Value,
    entries: Vec<(Header, Vec<u8>)>,
    files: BTreeMap<String, Vec<u8>>,
}

fn header(name: &str, kind: EntryType, mode: u32, target: &str, bytes: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_uid(65_534);
    header.set_gid(65_534);
    header.set_mtime(0);
    header.set_mode(mode);
    header.set_size(bytes);
    header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
    header.as_old_mut().linkname[..target.len()].copy_from_slice(target.as_bytes());
    header.set_cksum();
    header
}

/// Returns an entry without data.
fn hole(name: &str, size: u64) -> (Header, Vec<u8>) {
    let mut header = header(name, EntryType::GNUSparse, 0o4600, "", 0);
    let gnu = header.as_gnu_mut().unwrap();
    gnu.set_real_size(size);
    gnu.sparse[0].set_offset(size);
    gnu.sparse[0].set_length(0);
    header.set_cksum();
    (header, Vec::new())
}

/// Returns the block with a long name or target, as a run writes it.
fn long(kind: EntryType, text: &[u8]) -> (Header, Vec<u8>) {
    let mut header = header("././@LongLink", kind, 0o644, "", text.len() as u64);
    header.set_uid(0);
    header.set_gid(0);
    header.set_cksum();
    (header, text.to_vec())
}

fn reported(path: &str, kind: &str, mode: &str, content: &[u8]) -> Value {
    let sha256 = (kind == "file").then(|| digest::of_bytes(content));
    let target = (kind == "symlink").then(|| String::from_utf8_lossy(content));
    json!({
        "root": "home", "path": path, "kind": kind, "mode": mode, "bytes": content.len(),
        "sha256": sha256, "target": target, "transient": false
    })
}

fn report_of_the_run() -> Value {
    let rendered = json::render(&judge::fixture::report(case_b())).unwrap();
    let mut report: Value = serde_json::from_slice(&rendered).unwrap();
    let mut record = report["evidence"]["records"][0].clone();
    record["bytes"] = json!(2);
    for (key, value) in [
        ("/case/sha256", json!(digest::of_bytes(b"case"))),
        (
            "/client/profile/sha256",
            json!(digest::of_bytes(b"profile")),
        ),
        ("/evidence/records", json!([record, record])),
        ("/evidence/stderr/bytes", json!(4)),
        (
            "/evidence/files",
            json!([
                reported("a", "file", "4600", b"A"),
                reported("d", "directory", "0700", b"4096"),
                reported("d/b", "file", "0644", b"B"),
                reported("l", "symlink", "0777", b"/etc"),
                reported("p", "fifo", "0600", b""),
                reported("s", "socket", "0600", b""),
                reported("<credential>", "file", "0600", b"C"),
            ]),
        ),
    ] {
        *report.pointer_mut(key).unwrap() = value;
    }
    report
}

impl Made {
    /// A judged run whose client left `a`, `d/b`, the link `l`, the FIFO `p` and a file with a hidden name.
    fn new() -> Self {
        let files = [
            ("case.toml", "case"),
            ("profile.toml", "profile"),
            ("stdout.jsonl", "{}\n{}\n"),
            ("stderr.txt", "text"),
        ];
        let files = files.map(|(name, content)| (name.to_owned(), content.as_bytes().to_vec()));
        let reports = Format::ALL.map(|format| (file_of(format).to_owned(), Vec::new()));
        let entry = |name, kind, mode, target, content: &[u8]| {
            (
                header(name, kind, mode, target, content.len() as u64),
                content.to_vec(),
            )
        };
        Self {
            report: report_of_the_run(),
            exceptions: json!([
                {"path": "home/s", "reason": "it is a socket"},
                {"path": "home/<credential>", "reason": "its name", "stored_as": "renamed/1"},
            ]),
            entries: vec![
                entry("home/a", EntryType::Regular, 0o4600, "", b"A"),
                entry("home/d", EntryType::Directory, 0o700, "", b""),
                entry("home/d/b", EntryType::Regular, 0o644, "", b"B"),
                entry("home/l", EntryType::Symlink, 0o777, "/etc", b""),
                entry("home/p", EntryType::Fifo, 0o600, "", b""),
                entry("renamed/1", EntryType::Regular, 0o600, "", b"C"),
            ],
            files: files.into_iter().chain(reports).collect(),
        }
    }

    fn entry(&mut self, name: &str, kind: EntryType, content: &[u8]) {
        let header = header(name, kind, 0o644, "", content.len() as u64);
        self.entries.push((header, content.to_vec()));
    }

    /// Changes one header, and makes its checksum again.
    fn change(&mut self, entry: usize, change: impl FnOnce(&mut Header)) {
        change(&mut self.entries[entry].0);
        self.entries[entry].0.set_cksum();
    }

    fn except(&mut self, path: &str, stored_as: Option<&str>) {
        let exceptions = self.exceptions.as_array_mut().unwrap();
        exceptions.push(json!({"path": path, "reason": "", "stored_as": stored_as}));
    }

    /// Writes the bundle, with digests of the files as they are.
    fn written(mut self) -> TempDir {
        let mut put = |name: &str, content| {
            let _ = self.files.entry(name.to_owned()).or_insert(content);
        };
        let mut archive = Builder::new(Vec::new());
        for (header, content) in &self.entries {
            archive.append(header, content.as_slice()).unwrap();
        }
        put("files.tar", archive.into_inner().unwrap());
        put("exceptions.json", self.exceptions.to_string().into_bytes());
        if self.files.get("report.json").is_some_and(Vec::is_empty) {
            self.files.insert(
                "report.json".to_owned(),
                self.report.to_string().into_bytes(),
            );
        }
        let directory = tempfile::tempdir().unwrap();
        let mut sums = Sums::new();
        for (name, content) in self.files {
            fs::write(directory.path().join(&name), &content).unwrap();
            sums.insert(name, digest::of_bytes(&content));
        }
        fs::write(directory.path().join(sums::NAME), sums::document(&sums)).unwrap();
        directory
    }
}

fn verified(path: &Path, required: Option<&str>) -> Result<(Verified, String), VerifyError> {
    let mut out = Vec::new();
    let request = VerifyRequest {
        directory: path.into(),
        required: required.map(str::to_owned),
    };
    let verified = verify(&request, &mut out)?;
    Ok((verified, String::from_utf8(out).unwrap()))
}

/// Returns the lines of the differences.
fn differences(path: &Path) -> Vec<String> {
    match verified(path, None).unwrap() {
        (Verified::Bad, text) => text.lines().map(str::to_owned).collect(),
        (Verified::Good, text) => {
            assert!(
                text.starts_with("verified: 12 files, 2 exceptions, SHA-256 of SHA256SUMS "),
                "{text}"
            );
            Vec::new()
        }
    }
}

#[test]
fn bundle_as_written_verifies() {
    assert_eq!(differences(Made::new().written().path()), [""; 0]);
}

#[test]
fn each_difference_from_the_sums_has_a_line() {
    type Tampering = (fn(PathBuf), &'static str, &'static str);
    let all: [Tampering; 8] = [
        (
            |at| fs::remove_file(at).unwrap(),
            "case.toml",
            "missing: case.toml",
        ),
        (
            |at| fs::write(at, "x").unwrap(),
            "case.toml",
            "differs: case.toml: its SHA-256 is \
             2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881, and \
             ",
        ),
        (
            |at| fs::write(at, "").unwrap(),
            "\x1b[2J\nverified: ",
            r"not listed: \u{1b}[2J\nverified: : a file",
        ),
        (
            |at| fs::create_dir(at).unwrap(),
            "new",
            "not listed: new: a directory",
        ),
        (
            |at| fs::write(at, "").unwrap(),
            ".part",
            "not listed: .part: a file",
        ),
        (
            |at| {
                fs::rename(&at, at.with_extension("old")).unwrap();
                fs::rename(at.with_extension("old"), at.with_file_name("report.md")).unwrap();
                symlink("report.md", at).unwrap();
            },
            "report.html",
            "differs: report.html: a symbolic link, and a file is listed",
        ),
        (
            |at| {
                fs::remove_file(&at).unwrap();
                mkfifo(&at, Mode::S_IRWXU).unwrap();
            },
            "stderr.txt",
            "differs: stderr.txt: a FIFO, and a file is listed",
        ),
        (
            |at| {
                let file = OpenOptions::new().write(true).open(at).unwrap();
                file.set_len(MAX_FILE_BYTES + 1).unwrap();
            },
            "files.tar",
            "differs: files.tar: it is larger than 549755813888 bytes",
        ),
    ];
    for (tamper, name, line) in all {
        // A file system may not permit a file of that size.
        let directory = Made::new().written();
        tamper(directory.path().join(name));
        let found = differences(directory.path());
        assert!(
            matches!(&*found, [one] if one.starts_with(line)),
            "{name}: {found:?}"
        );
    }
}

/// Each row: a change before the digests are made, and the line that tells it.
macro_rules! disagreements {
    ($($name:ident: $tamper:expr => $line:literal,)+) => {$(
        #[test]
        fn $name() {
            let mut made = Made::new();
            let tamper: fn(&mut Made) = $tamper;
            tamper(&mut made);
            let found = differences(made.written().path());
            assert!(matches!(&*found, [one] if one.starts_with($line)), "{found:#?}");
        }
    )+};
}

mod forms;

fn set(made: &mut Made, pointer: &str, value: Value) {
    *made.report.pointer_mut(pointer).unwrap() = value;
}

disagreements! {
    case_of_another_run_is_told: |made| set(made, "/case/sha256", json!("\u{1b}x"))
        => "differs: case.toml: its SHA-256 is ",
    profile_of_another_run_is_told: |made| set(made, "/client/profile/sha256", json!("x"))
        => "differs: profile.toml: its SHA-256 is ",
    other_size_of_stdout_is_told: |made| set(made, "/evidence/records/1/bytes", json!(9))
        => "differs: stdout.jsonl: 6 bytes, and report.json says 13",
    other_size_of_stderr_is_told: |made| set(made, "/evidence/stderr/bytes", json!(u64::MAX))
        => "differs: stderr.txt: 4 bytes, and report.json says 18446744073709551615",
    other_digest_of_a_file_is_told: |made| set(made, "/evidence/files/0/sha256", json!("\u{1b}"))
        => "differs: files.tar: home/a: its SHA-256 is 559aead0",
    other_size_of_a_file_is_told: |made| set(made, "/evidence/files/0/bytes", json!(2))
        => "differs: files.tar: home/a: 1 bytes, and report.json says 2",
    other_mode_of_a_file_is_told: |made| set(made, "/evidence/files/0/mode", json!("0600"))
        => "differs: files.tar: home/a: its mode is 4600, and report.json says 0600",
    other_mode_of_a_directory_is_told: |made| set(made, "/evidence/files/1/mode", json!("0755"))
        => "differs: files.tar: home/d: its mode is 0700, and report.json says 0755",
    other_target_of_a_link_is_told: |made| set(made, "/evidence/files/3/target", json!("/"))
        => "differs: files.tar: home/l: its target is /etc, and report.json says /",
    unknown_kind_in_the_report_is_told: |made| set(made, "/evidence/files/4/kind", json!("door"))
        => "unreadable: report.json: unexpected value at evidence.files[4].kind: unknown variant `door`",
    report_of_another_form_is_told: |made| set(made, "/evidence", json!({}))
        => "unreadable: report.json: unexpected value at evidence: missing field `connections`",
    file_missing_from_the_archive_is_told: |made| drop(made.entries.remove(0))
        => "missing: home/a, which report.json lists",
    renamed_file_missing_is_told: |made| drop(made.entries.pop())
        => "missing: home/<credential>, which report.json lists",
    file_missing_from_the_report_is_told: |made| {
        made.report["evidence"]["files"].as_array_mut().unwrap().remove(0);
    } => "differs: files.tar: home/a: report.json lists no such file",
    transient_file_in_the_archive_is_told: |made| set(made, "/evidence/files/0/transient", json!(true))
        => "differs: files.tar: home/a: report.json lists no such file",
    exception_missing_is_told: |made| drop(made.exceptions.as_array_mut().unwrap().remove(0))
        => "missing: home/s, which report.json lists",
    unlisted_rename_is_told: |made| made.entry("renamed/2\u{1b}", EntryType::Regular, b"")
        => r"differs: files.tar: renamed/2\u{1b}: report.json lists no such file",
    entry_outside_is_told: |made| made.entry("home/../x", EntryType::Regular, b"")
        => "differs: files.tar: home/../x: no run writes such an entry",
    entry_named_parent_is_told: |made| made.entry("home/..", EntryType::Directory, b"")
        => "differs: files.tar: home/..: no run writes such an entry",
    absolute_entry_is_told: |made| made.entry("/etc/passwd", EntryType::Regular, b"")
        => "differs: files.tar: /etc/passwd: no run writes such an entry",
    entry_below_a_link_is_told: |made| made.entry("home/l/passwd", EntryType::Regular, b"")
        => "differs: files.tar: home/l/passwd: no run writes such an entry",
    entry_of_another_root_is_told: |made| made.entry("etc/passwd", EntryType::Regular, b"")
        => "differs: files.tar: etc/passwd: no run writes such an entry",
    second_entry_of_a_name_is_told: |made| made.entry("home/a", EntryType::Regular, b"A")
        => "differs: files.tar: home/a: no run writes such an entry",
    hard_link_is_told: |made| made.entry("home/h", EntryType::Link, b"")
        => "differs: files.tar: home/h: no run writes such an entry",
    device_is_told: |made| made.entry("home/null", EntryType::Char, b"")
        => "differs: files.tar: home/null: no run writes such an entry",
    global_pax_header_is_told: |made| made.entry("home/g", EntryType::XGlobalHeader, b"9 path=x\n")
        => "differs: files.tar: home/g: no run writes such an entry",
    pax_header_is_told: |made| {
        let pax = b"17 comment=hello\n";
        let header = header("x", EntryType::XHeader, 0o644, "", pax.len() as u64);
        made.entries.insert(0, (header, pax.to_vec()));
    } => "differs: files.tar: home/a: no run writes such a header",
    damaged_header_is_told: |made| made.entries[0].0.set_mode(0o777)
        => "unreadable: files.tar: archive header checksum mismatch",
    cut_archive_is_told: |made| drop(made.files.insert("files.tar".into(), vec![0; 512]))
        => "unreadable: files.tar: it does not end after two blocks of zeros",
    archive_with_more_after_its_end_is_told: |made| {
        drop(made.files.insert("files.tar".into(), vec![0; 1536]));
    } => "unreadable: files.tar: it does not end after two blocks of zeros",
    report_is_required: |made| drop(made.files.remove("report.json"))
        => "missing: report.json, which every bundle has",
    profile_is_required: |made| drop(made.files.remove("profile.toml"))
        => "missing: profile.toml, which such a run writes",
    other_file_is_told: |made| drop(made.files.insert("more.txt".into(), vec![]))
        => "differs: more.txt: no run like this one writes it",
    too_long_a_name_is_told: |made| {
        let bytes = vec![b'n'; 17 << 20];
        made.entry("././@LongLink", EntryType::GNULongName, &bytes);
    } => "unreadable: files.tar: the headers of one entry are too large",
    too_many_ranges_are_told: |made| {
        let mut header = header("home/x", EntryType::GNUSparse, 0o644, "", 0);
        header.as_gnu_mut().unwrap().set_is_extended(true);
        header.set_cksum();
        let mut map = tar::GnuExtSparseHeader::new();
        map.set_is_extended(true);
        made.entries.push((header, map.as_bytes().repeat(1 << 16)));
    } => "unreadable: files.tar: the headers of one entry are too large",
    sparse_file_of_another_size_is_not_read: |made| {
        made.entries[0] = hole("home/a", 40 << 30);
        set(made, "/evidence/files/0/bytes", json!(1));
    } => "differs: files.tar: home/a: 42949672960 bytes, and report.json says 1",
    sparse_file_beyond_any_run_is_told: |made| {
        made.entries.push(hole("home/x", 1 << 60));
    } => "unreadable: files.tar: its files are larger than those of any run",
}

#[test]
fn further_differences_are_counted() {
    let directory = Made::new().written();
    for number in 0..MAX_PRINTED + 5 {
        fs::write(directory.path().join(number.to_string()), "").unwrap();
    }
    let differences = differences(directory.path());
    assert_eq!(differences.len(), MAX_PRINTED + 1);
    assert_eq!(differences[MAX_PRINTED], "and 5 more");
}

#[test]
fn files_of_one_path_are_matched_by_content() {
    const COUNT: u32 = 20_000;
    let mut made = Made::new();
    let files = made.report["evidence"]["files"].as_array_mut().unwrap();
    let exceptions = made.exceptions.as_array_mut().unwrap();
    for number in 0..COUNT {
        files.push(reported("same", "file", "0644", &number.to_be_bytes()));
        let stored_as = format!("renamed/n{number}");
        exceptions.push(json!({"path": "home/same", "reason": "", "stored_as": stored_as}));
    }
    for number in (0..COUNT).rev() {
        // One content is there twice instead of another one.
        let content = number.max(1).to_be_bytes();
        made.entry(&format!("renamed/n{number}"), EntryType::Regular, &content);
    }
    let [told] = differences(made.written().path()).try_into().unwrap();
    assert!(
        told.starts_with("differs: files.tar: renamed/n0: its SHA-256 is "),
        "{told}"
    );
}

#[test]
fn required_digest_is_compared_first() {
    let directory = Made::new().written();
    let at = directory.path().join(sums::NAME);
    let sha256 = digest::of_bytes(&fs::read(&at).unwrap());
    let (good, _) = verified(directory.path(), Some(&sha256)).unwrap();
    assert_eq!(good, Verified::Good);
    fs::write(&at, "x").unwrap();
    let (bad, text) = verified(directory.path(), Some(&sha256)).unwrap();
    assert_eq!(bad, Verified::Bad);
    let found = digest::of_bytes(b"x");
    let line = format!("differs: SHA256SUMS: its SHA-256 is {found}, and {sha256} is required\n");
    assert_eq!(text, line);
}

#[test]
fn directory_without_sums_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let sums = directory.path().join(sums::NAME);
    let said = |path: &Path| {
        let error = verified(path, None).unwrap_err();
        let cause = std::error::Error::source(&error).unwrap().to_string();
        (format!("{error}: {cause}"), error.hint().is_some())
    };
    let (text, hint) = said(directory.path());
    assert!(
        text.starts_with("cannot read SHA256SUMS of ") && hint,
        "{text}"
    );
    let (text, hint) = said(&directory.path().join("absent"));
    assert!(
        text.starts_with("cannot open the directory ") && hint,
        "{text}"
    );
    symlink("x", &sums).unwrap();
    assert!(
        said(directory.path())
            .0
            .ends_with("expected a file, found a symbolic link")
    );
    fs::remove_file(&sums).unwrap();
    mkfifo(&sums, Mode::S_IRWXU).unwrap();
    assert!(
        said(directory.path())
            .0
            .ends_with("expected a file, found a FIFO")
    );
    fs::remove_file(&sums).unwrap();
    File::create(&sums)
        .unwrap()
        .set_len(sums::MAX_BYTES + 1)
        .unwrap();
    assert!(said(directory.path()).0.contains(": it is larger than "));
    fs::write(&sums, "x").unwrap();
    assert!(
        said(directory.path())
            .0
            .starts_with("cannot parse SHA256SUMS of ")
    );
}
