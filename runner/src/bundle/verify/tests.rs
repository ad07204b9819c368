//! Verification of bundles that each have one difference from their manifest.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use nix::unistd::mkfifo;
use tempfile::TempDir;

use super::*;
use crate::bundle::manifest::{Case, Client, Original, Runner};

const REPORTED: &str = r#"{"runner": {"version": "0.1.0", "sha256": "r"}, "case": {"name": "case-b", "sha256": "c"},
    "client": {"sha256": "p"}, "verdict": "passed", "tier": "namespace", "started_at": "t",
    "evidence": {"files": [FILES]}}"#;

fn run() -> Run {
    Run {
        runner: Runner {
            version: "0.1.0".into(),
            sha256: "r".into(),
        },
        case: Case {
            name: "case-b".into(),
            sha256: "c".into(),
        },
        client: Client { sha256: "p".into() },
        verdict: "passed".into(),
        tier: "namespace".into(),
        started_at: "t".into(),
    }
}

fn entry(path: &str, content: &[u8]) -> String {
    let sha256 = digest::of_bytes(content);
    format!(r#"{{"root": "home", "path": "{path}", "sha256": "{sha256}", "transient": false}}"#)
}

/// A bundle of a report and two files of the client, `home/a` and `home/d/b`.
struct Made {
    directory: TempDir,
    manifest: Manifest,
}

impl Made {
    fn new() -> Self {
        Self::reporting(&[entry("a", b"A"), entry("d/b", b"B")].join(","))
    }

    /// Creates a bundle whose report lists these files.
    fn reporting(files: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir_all(directory.path().join("home/d")).unwrap();
        let report = REPORTED.replace("FILES", files);
        let mut listed = Vec::new();
        for (path, content, original) in [
            ("report.json", report.as_bytes(), None),
            ("home/a", b"A", Some("a")),
            ("home/d/b", b"B", Some("d/b")),
        ] {
            fs::write(directory.path().join(path), content).unwrap();
            listed.push(Listed {
                path: path.into(),
                bytes: content.len() as u64,
                sha256: digest::of_bytes(content),
                original: original.map(|path| Original {
                    root: "home".into(),
                    path: path.into(),
                    mode: "0600".into(),
                }),
            });
        }
        Self {
            directory,
            manifest: Manifest::new(run(), listed, Vec::new()),
        }
    }

    fn at(&self, path: &str) -> std::path::PathBuf {
        self.directory.path().join(path)
    }

    fn write_manifest(&self) {
        let document = self.manifest.document().unwrap();
        fs::write(self.at("manifest.json"), document).unwrap();
    }

    /// Returns the lines of the differences.
    #[track_caller]
    fn differences(&self) -> Vec<String> {
        self.write_manifest();
        let (verified, text) = verified(self.directory.path(), None).unwrap();
        let lines = text.lines().map(str::to_owned).collect();
        match verified {
            Verified::Bad => lines,
            Verified::Good => {
                assert!(text.starts_with("verified: 3 files, "), "{text}");
                Vec::new()
            }
        }
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

#[test]
fn a_bundle_as_it_was_made_is_good() {
    assert_eq!(Made::new().differences(), [""; 0]);
}

#[test]
fn each_tampering_is_told_on_a_line_of_its_own() {
    type Tampering = (fn(&Made), &'static str);
    let all: [Tampering; 10] = [
        (
            |made| fs::remove_file(made.at("home/a")).unwrap(),
            "missing: home/a",
        ),
        (
            |made| fs::remove_dir_all(made.at("home/d")).unwrap(),
            "missing: home/d/b",
        ),
        (
            |made| fs::write(made.at("home/a"), "AA").unwrap(),
            "differs: home/a: 2 bytes, and 1 are listed",
        ),
        (
            |made| fs::write(made.at("home/a"), "X").unwrap(),
            "differs: home/a: its SHA-256 is \
             4b68ab3847feda7d6c62c1fbcbeebfa35eab7351ed5e78f4ddadea5df64b8015, and \
             559aead08264d5795d3909718cdd05abd49572e84fe55590eef31a88a08fdffd is listed",
        ),
        (
            |made| fs::write(made.at("home/\x1b[2J\nverified: "), "").unwrap(),
            r"not listed: home/\u{1b}[2J\nverified: : a file",
        ),
        (
            |made| fs::create_dir(made.at("home/new")).unwrap(),
            "not listed: home/new: a directory",
        ),
        (
            |made| {
                fs::remove_file(made.at("home/a")).unwrap();
                symlink(made.at("report.json"), made.at("home/a")).unwrap();
            },
            "differs: home/a: a link, and a file is listed",
        ),
        (
            |made| {
                fs::remove_file(made.at("home/a")).unwrap();
                mkfifo(&made.at("home/a"), Mode::S_IRWXU).unwrap();
            },
            "differs: home/a: a FIFO, and a file is listed",
        ),
        (
            |made| {
                fs::rename(made.at("home/d"), made.at("home/e")).unwrap();
                symlink("e", made.at("home/d")).unwrap();
            },
            "differs: home/d: a link, and a directory is listed",
        ),
        (
            |made| {
                fs::remove_dir_all(made.at("home/d")).unwrap();
                fs::write(made.at("home/d"), "").unwrap();
            },
            "differs: home/d: a file, and a directory is listed",
        ),
    ];
    for (tamper, line) in all {
        let made = Made::new();
        tamper(&made);
        let mut differences = made.differences();
        differences.retain(|line| line != "not listed: home/e: a directory");
        assert_eq!(differences, [line]);
    }
}

#[test]
fn of_many_differences_some_are_told_and_all_are_counted() {
    let made = Made::new();
    for number in 0..MAX_PRINTED + 5 {
        fs::write(made.at(&number.to_string()), "").unwrap();
    }
    let differences = made.differences();
    assert_eq!(differences.len(), MAX_PRINTED + 1);
    assert_eq!(differences[MAX_PRINTED], "and 5 more");
}

#[test]
fn files_of_one_path_are_compared_by_how_often_each_content_is_there() {
    let mut files = vec![entry("a", b"A"), entry("d/b", b"B"), entry("a", b"A")];
    let missing = "missing: home/a, which report.json lists";
    assert_eq!(Made::reporting(&files.join(",")).differences(), [missing]);
    files.extend((0..20_000).map(|number: u32| entry("a", &number.to_be_bytes())));
    let mut made = Made::reporting(&files.join(","));
    let original = made.manifest.files[0].original.clone();
    for number in (0..20_000_u32).rev() {
        made.manifest.files.push(Listed {
            path: format!("home/{number}"),
            bytes: 4,
            sha256: digest::of_bytes(&number.to_be_bytes()),
            original: original.clone(),
        });
    }
    made.manifest = Manifest::new(run(), made.manifest.files, Vec::new());
    let told = made.differences();
    assert_eq!(
        told[MAX_PRINTED],
        format!("and {} more", 20_001 - MAX_PRINTED)
    );
}

#[test]
fn what_is_repeated_of_a_manifest_moves_no_terminal_and_is_bounded() {
    let made = Made::new();
    made.write_manifest();
    let document = fs::read_to_string(made.at("manifest.json")).unwrap();
    let hostile = format!(r"\u001b[2J\nverified: \u202e{}", "x".repeat(1 << 20));
    for (from, to) in [
        (
            r#""not_copied": []"#,
            r#""not_copied": [{"root": "HOSTILE"}]"#,
        ),
        ("runner.bundle/1", "HOSTILE"),
        ("home/a", "/HOSTILE"),
        ("\"sha256\": \"5", "\"sha256\": \"HOSTILE"),
    ] {
        assert!(document.contains(from), "{from}");
        let other = document.replace(from, &to.replace("HOSTILE", &hostile));
        fs::write(made.at("manifest.json"), other).unwrap();
        let error = verified(made.directory.path(), None).unwrap_err();
        let mut told = vec![error.to_string()];
        let mut cause = std::error::Error::source(&error);
        while let Some(error) = cause {
            told.push(error.to_string());
            cause = error.source();
        }
        let told = told.concat();
        assert!(told.len() < 10_000, "{from}: {} bytes", told.len());
        assert!(told.contains(r"\u{1b}[2J\nverified: \u{202e}xx"), "{told}");
        assert!(!told.contains(['\n', '\u{1b}', '\u{202e}']), "{told}");
    }
}

#[test]
fn a_report_of_another_run_is_told() {
    let mut made = Made::new();
    made.manifest.run.verdict = "failed".into();
    made.manifest.run.client.sha256 = "q".into();
    assert_eq!(
        made.differences(),
        [
            "differs: report.json: client.sha256 is p, and the manifest says q",
            "differs: report.json: verdict is passed, and the manifest says failed",
        ]
    );
}

#[test]
fn a_report_of_other_files_is_told() {
    let made = Made::reporting(&[entry("a", b"other"), entry("d/b", b"B")].join(","));
    assert_eq!(
        made.differences(),
        [
            "differs: report.json: it lists no home/a like home/a",
            "missing: home/a, which report.json lists"
        ]
    );
    let made = Made::reporting(
        &[
            entry("a", b"A"),
            entry("d/b", b"B"),
            entry("c\\u001b", b"C"),
        ]
        .join(","),
    );
    assert_eq!(
        made.differences(),
        [r"missing: home/c\u{1b}, which report.json lists"]
    );
}

#[test]
fn a_bundle_without_a_report_or_with_one_that_is_none_is_told() {
    let mut made = Made::new();
    made.manifest.files.retain(|file| file.path != REPORT);
    assert_eq!(
        made.differences(),
        [
            "not listed: report.json: a file",
            "not listed: report.json: there is no bundle without it"
        ]
    );
    let mut made = Made::new();
    fs::write(made.at(REPORT), "{}").unwrap();
    let listed = made.manifest.files.iter_mut();
    for report in listed.filter(|file| file.path == REPORT) {
        (report.bytes, report.sha256) = (2, digest::of_bytes(b"{}"));
    }
    let differences = made.differences();
    assert!(
        matches!(differences.as_slice(), [line] if line.starts_with("unreadable: report.json: missing field")),
        "{differences:?}"
    );
}

#[test]
fn a_demanded_manifest_is_compared_first() {
    let made = Made::new();
    made.write_manifest();
    let sha256 = digest::of_bytes(&fs::read(made.at("manifest.json")).unwrap());
    let (good, _) = verified(made.directory.path(), Some(&sha256)).unwrap();
    assert_eq!(good, Verified::Good);
    fs::write(made.at("manifest.json"), "{}").unwrap();
    let (bad, text) = verified(made.directory.path(), Some(&sha256)).unwrap();
    assert_eq!(bad, Verified::Bad);
    let found = digest::of_bytes(b"{}");
    assert_eq!(
        text,
        format!("differs: manifest.json: its SHA-256 is {found}, and {sha256} is required\n")
    );
}

#[test]
fn what_is_no_bundle_is_an_error() {
    let made = Made::new();
    let at = |path: &str| made.at(path);
    let said = |path: &Path| {
        let error = verified(path, None).unwrap_err();
        (error.to_string(), error.hint().is_some())
    };
    let (text, hint) = said(made.directory.path());
    assert!(
        text.starts_with("cannot read the manifest of ") && hint,
        "{text}"
    );
    for path in [at("absent"), at("report.json")] {
        let (text, hint) = said(&path);
        assert!(
            text.starts_with("cannot open the directory ") && hint,
            "{text}"
        );
    }
    symlink("report.json", at("manifest.json")).unwrap();
    assert!(said(made.directory.path()).0.contains("found a link"));
    fs::remove_file(at("manifest.json")).unwrap();
    mkfifo(&at("manifest.json"), Mode::S_IRWXU).unwrap();
    assert!(said(made.directory.path()).0.contains("found a FIFO"));
    fs::remove_file(at("manifest.json")).unwrap();
    let large = File::create(at("manifest.json")).unwrap();
    large.set_len(manifest::MAX_BYTES + 1).unwrap();
    assert!(said(made.directory.path()).0.contains(" is larger than "));
    fs::write(at("manifest.json"), "{}").unwrap();
    assert!(
        said(made.directory.path())
            .0
            .contains("cannot be relied on")
    );
}

#[test]
fn modes_are_nothing_to_the_manifest() {
    let made = Made::new();
    fs::set_permissions(made.at("home/a"), fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(made.differences(), [""; 0]);
}
