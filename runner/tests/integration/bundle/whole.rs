//! Contents of a bundle, which is complete after every kind of end.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::process::{Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use super::{Place, command, everything, names, verified};
use crate::kit::{Run, runner};
use crate::needs_sandbox;

const REPORTS: [&str; 6] = [
    "report.html",
    "report.json",
    "report.md",
    "report.sarif",
    "report.txt",
    "report.xml",
];

#[test]
fn the_evidence_of_a_run_is_in_one_directory_that_is_its_users_alone() {
    needs_sandbox!();
    let place = Place::new();
    let made = place.run(Run::case_b());
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    let evidence = place.evidence();
    assert_eq!(fs::metadata(&evidence).unwrap().mode() & 0o7777, 0o700);
    let mut expected = vec!["home", "manifest.json"];
    expected.extend(REPORTS);
    expected.extend(["stderr.txt", "stdout.jsonl"]);
    assert_eq!(names(&evidence), expected);
    place.assert_verifies();
    place.assert_nothing_outside();
    let manifest = place.manifest();
    let run = &manifest["run"];
    let report = place.report();
    assert_eq!(
        (
            &run["verdict"],
            &run["started_at"],
            &run["client"]["sha256"]
        ),
        (
            &json!("passed"),
            &report["started_at"],
            &report["client"]["sha256"]
        )
    );
    let state = &manifest["files"][0];
    assert_eq!(state["path"], "home/%2Eagent/%2Eagent.json");
    let original = json!({"root": "home", "path": ".agent/.agent.json", "mode": "0600"});
    assert_eq!(state["original"], original);
    let records = fs::read_to_string(evidence.join("stdout.jsonl")).unwrap();
    let counted = report["evidence"]["records"].as_array().unwrap().len();
    assert_eq!(records.lines().count(), counted);
    let human = fs::read_to_string(evidence.join("report.txt")).unwrap();
    assert!(human.starts_with("PASSED  case-b: "), "{human}");
}

#[test]
fn the_digest_that_the_run_told_is_the_one_to_demand() {
    needs_sandbox!();
    let place = Place::new();
    let made = place.run(Run::case_b());
    let path = place.evidence().canonicalize().unwrap();
    let begin = format!(
        "note: the evidence is in {}; its manifest has the SHA-256 ",
        path.display()
    );
    let told = made.stderr.trim_end().strip_prefix(&begin).unwrap();
    assert_eq!(verified(&path, &["--require-manifest", told]).0, 0);
    let other = "0".repeat(64);
    let (code, text) = verified(&path, &["--require-manifest", &other]);
    let line = format!("differs: manifest.json: its SHA-256 is {told}, and {other} is required\n");
    assert_eq!((code, text), (1, line));
}

#[test]
fn a_manifest_fits_the_schema_that_is_printed() {
    needs_sandbox!();
    let place = Place::new();
    place.run(Run::case_b().deviating("unknown-get"));
    let printed = Command::new(runner())
        .args(["policy", "schema", "manifest"])
        .output()
        .unwrap();
    let schema: Value = serde_json::from_slice(&printed.stdout).unwrap();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    assert!(validator.is_valid(&place.manifest()));
}

#[test]
fn each_tampering_is_found_by_its_line() {
    needs_sandbox!();
    let place = Place::new();
    place.run(Run::case_b());
    for (tamper, line) in [
        ("rm stdout.jsonl", "missing: stdout.jsonl"),
        ("touch new", "not listed: new: a file"),
        ("mkdir tmp", "not listed: tmp: a directory"),
        ("touch '.a\tb'", r"not listed: .a\tb: a file"),
        (
            "rm report.txt; ln -s report.md report.txt",
            "differs: report.txt: a link, and a file is listed",
        ),
        (
            "rm stderr.txt; ln -s /dev/zero stderr.txt",
            "differs: stderr.txt: a link, and a file is listed",
        ),
        (
            "rm stderr.txt; mkfifo stderr.txt",
            "differs: stderr.txt: a FIFO, and a file is listed",
        ),
        (
            "echo x >> stderr.txt",
            "differs: stderr.txt: 2 bytes, and 0 are listed",
        ),
        (
            "sed -i s/passed/failed/ manifest.json",
            "differs: report.json: verdict is passed, and the manifest says failed",
        ),
    ] {
        let copy = place.at("copy");
        command(
            "cp",
            &["-a".as_ref(), place.evidence().as_ref(), copy.as_ref()],
        );
        let line_of_shell = format!("cd \"$0\" && {tamper}");
        command(
            "sh",
            &["-c".as_ref(), line_of_shell.as_ref(), copy.as_ref()],
        );
        assert_eq!(verified(&copy, &[]), (1, format!("{line}\n")), "{tamper}");
        fs::remove_dir_all(copy).unwrap();
    }
    let report = place.evidence().join("report.json");
    let text = fs::read_to_string(&report).unwrap();
    fs::write(&report, text.replacen("\"passed\"", "\"failed\"", 1)).unwrap();
    let (code, text) = verified(&place.evidence(), &[]);
    let begin = "differs: report.json: its SHA-256 is ";
    assert!(
        code == 1 && text.starts_with(begin) && text.lines().count() == 1,
        "{text}"
    );
}

#[test]
fn a_verification_of_what_is_no_bundle_is_wrong_use() {
    let place = Place::new();
    fs::create_dir(place.at("empty")).unwrap();
    for (name, words) in [
        ("empty", "hint: the manifest is written last"),
        ("absent", "error: cannot open the directory"),
        ("beside", "error: cannot open the directory"),
    ] {
        let (code, text) = verified(&place.at(name), &[]);
        assert!(code == 2 && text.contains(words), "{name}: {code} {text}");
    }
    symlink("empty", place.at("link")).unwrap();
    fs::write(place.at("empty/manifest.json"), "{}").unwrap();
    let (code, text) = verified(&place.at("link"), &[]);
    assert!(code == 2 && text.contains("cannot be relied on"), "{text}");
}

#[test]
fn a_failed_run_and_one_without_a_client_leave_their_evidence_as_well() {
    needs_sandbox!();
    let place = Place::new();
    assert_eq!(
        place.run(Run::case_b().deviating("unknown-get")).code,
        Some(1)
    );
    place.assert_verifies();
    assert_eq!(place.manifest()["run"]["verdict"], "failed");
    let place = Place::new();
    let script = place.at("client");
    fs::write(&script, "#!/no/such/interpreter\n").unwrap();
    fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let made = place.run(Run::case_b().client(&script));
    assert_eq!(made.code, Some(3), "{}", made.stderr);
    place.assert_verifies();
    assert_eq!(place.manifest()["run"]["verdict"], "errored");
}

#[test]
fn a_run_that_is_interrupted_leaves_its_evidence() {
    needs_sandbox!();
    let place = Place::new();
    let line = "echo kept > $HOME/file; echo started; exec sleep 300";
    let run = ["/bin/sh", "-c", line].into_iter();
    let run = run.fold(Run::case("audit"), Run::client_argument);
    let mut child = place
        .described(run)
        .command()
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut started = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut started)
        .unwrap();
    kill(
        Pid::from_raw(child.id().try_into().unwrap()),
        Signal::SIGINT,
    )
    .unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(125), "{said}");
    place.assert_verifies();
    assert_eq!(place.report()["client"]["exit"]["interrupted"], true);
    let evidence = place.evidence();
    assert_eq!(fs::read(evidence.join("home/file")).unwrap(), b"kept\n");
    assert_eq!(fs::read(evidence.join("stdout.txt")).unwrap(), b"started\n");
}

#[test]
fn an_audits_output_is_there_whole_and_without_what_no_report_shows() {
    needs_sandbox!();
    let place = Place::new();
    let line = "i=0; while [ $i -lt 3000 ]; do echo \"$i out\"; echo \"$i err\" >&2; i=$((i+1)); done
        echo \"<$TOKEN>\"; echo \"<$TOKEN>\" >&2; echo x > \"$HOME/$TOKEN\"; ln -s \"$TOKEN\" $HOME/link";
    let run = Run::case("audit").argument("--env=TOKEN=of-its-users");
    let run = ["/bin/sh", "-c", line]
        .into_iter()
        .fold(run, Run::client_argument);
    let made = place.run(run);
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    place.assert_verifies();
    for (name, word) in [("stdout.txt", "out"), ("stderr.txt", "err")] {
        let text = fs::read_to_string(place.evidence().join(name)).unwrap();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], format!("0 {word}"));
        assert_eq!(lines[2999], format!("2999 {word}"));
        assert_eq!(lines[3000..], ["<<value of TOKEN>>"]);
    }
    let files = names(place.evidence().join("home"));
    assert_eq!(files, ["%3Cvalue%20of%20TOKEN%3E~1"]);
    assert!(!place.manifest().to_string().contains("of-its-users"));
}

#[test]
fn what_an_archive_of_it_gives_verifies() {
    needs_sandbox!();
    let place = Place::new();
    place.run(Run::case_b());
    place.assert_an_archive_verifies();
}

/// Returns the result of `verify` for a manifest with these paths, with this memory limit (`ulimit -d`, in KiB).
fn answered(paths: impl Iterator<Item = String>, memory: &str) -> (Option<i32>, String) {
    let place = Place::new();
    fs::create_dir(place.evidence()).unwrap();
    let sha256 = "0".repeat(64);
    let file = |path: String| json!({"path": path, "bytes": 0, "sha256": sha256, "original": null});
    let document = json!({
        "schema": "runner.bundle/1",
        "run": {
            "runner": {"version": "0.1.0", "sha256": sha256},
            "case": {"name": "case-b", "sha256": sha256},
            "client": {"sha256": sha256},
            "verdict": "passed",
            "tier": "namespace",
            "started_at": "2026-01-01T00:00:00.000Z"
        },
        "files": paths.map(file).collect::<Vec<_>>(),
        "not_copied": []
    });
    let manifest = place.evidence().join("manifest.json");
    fs::write(manifest, document.to_string()).unwrap();
    let output = Command::new("/bin/sh")
        .args(["-c", "ulimit -d \"$0\"; exec \"$@\"", memory])
        .arg(runner())
        .arg("verify")
        .arg(place.evidence())
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(text).unwrap())
}

#[test]
fn a_manifest_takes_no_more_memory_than_a_few_times_its_bytes() {
    // 3.5 MB: storing each name of each path separately would take hundreds.
    let deep = |number: usize| format!("{number:05}{}", "/d".repeat(118));
    let (code, text) = answered((0..10_000).map(deep), "60000");
    assert_eq!(code, Some(1), "{text}");
    assert!(
        text.starts_with(&format!("missing: {}\n", deep(0))),
        "{text}"
    );
    // 40 MB in one path, which has 20 million names.
    let long = "d/".repeat(20_000_000) + "d";
    let (code, text) = answered([long].into_iter(), "250000");
    assert_eq!(code, Some(2), "{text}");
    assert!(
        text.contains("… (40000001 bytes), which is too deep"),
        "{text}"
    );
}

#[test]
fn a_file_with_a_value_of_an_env_option_is_listed_and_not_copied() {
    needs_sandbox!();
    let place = Place::new();
    // Across the boundary of two read buffers, encoded, and split by a slash in the path.
    let line = "cd; echo tok=$TOKEN > f; head -c 65530 /dev/zero | tr '\\0' x > long; echo $TOKEN >> long
        printf %s \"$TOKEN\" | od -An -v -tx1 | tr -d ' \\n' > hex
        mkdir -p \"$TOKEN\"; echo harmless > \"$TOKEN/beside\"; echo key=$KEY > own; echo rest > rest";
    let run = Run::case("audit")
        .argument("--env=TOKEN=of-its-users/only")
        .argument("--env=KEY={credential}");
    let run = ["/bin/sh", "-c", line]
        .into_iter()
        .fold(run, Run::client_argument);
    let made = place.run(run);
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    let note = "note: not in the evidence: 3 files, in which there is a value of `--env`; the manifest says which";
    assert!(made.stderr.contains(note), "{}", made.stderr);
    place.assert_verifies();
    let manifest = place.manifest();
    let left_out = manifest["not_copied"].as_array().unwrap();
    let told = left_out.iter().map(|one| {
        assert_eq!(
            one["reason"],
            "the value of TOKEN is in it, which no report shows"
        );
        one["path"].as_str().unwrap()
    });
    assert_eq!(told.collect::<Vec<_>>(), ["f", "hex", "long"]);
    let files = manifest["files"].as_array().unwrap();
    let originals = files
        .iter()
        .filter_map(|file| file["original"]["path"].as_str());
    let mut originals: Vec<_> = originals.collect();
    originals.sort_unstable();
    assert_eq!(originals, ["<value of TOKEN>/beside", "own", "rest"]);
    // The report has the digest of the original file, not of the redacted copy.
    let report = place.report();
    let reported = report["evidence"]["files"].as_array().unwrap();
    let found = reported.iter().find(|file| file["path"] == "f").unwrap();
    let content = "tok=of-its-users/only\n";
    assert_eq!(found["bytes"], content.len());
    // No file of the bundle contains the value, in its name or its content.
    let hex: String = "of-its-users/only"
        .bytes()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    for path in everything(&place.evidence()) {
        let shown = path
            .strip_prefix(place.evidence())
            .unwrap()
            .to_str()
            .unwrap();
        assert!(!shown.contains("of-its-users/only"), "{shown}");
        if path.is_file() {
            let content = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
            let is_there = content.contains("of-its-users/only") || content.contains(&hex);
            assert!(!is_there, "{shown}");
        }
    }
    // The key of the run belongs to no user, so its copies stay in the evidence.
    let own = fs::read_to_string(place.evidence().join("home/own")).unwrap();
    assert!(own.starts_with("key=runner-key-"), "{own}");
}
