//! Contents of a bundle, which is complete after every kind of end.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use super::{Place, command, names, verified};
use crate::kit::{Run, fixture, runner};
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
fn evidence_is_one_directory_of_its_user_alone() {
    needs_sandbox!();
    let place = Place::new();
    let made = place.run(Run::case_b());
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    let evidence = place.evidence();
    assert_eq!(fs::metadata(&evidence).unwrap().mode() & 0o7777, 0o700);
    let mut expected = vec![
        "SHA256SUMS",
        "case.toml",
        "exceptions.json",
        "files.tar",
        "profile.toml",
    ];
    expected.extend(REPORTS);
    expected.extend(["stderr.txt", "stdout.jsonl"]);
    assert_eq!(names(&evidence), expected);
    place.assert_verifies();
    place.assert_nothing_outside();
    let report = place.report();
    let [case, profile] = ["case-b", "reference"].map(|name| {
        let policy = command(runner(), &["policy", "show", name].map(OsStr::new));
        String::from_utf8(policy).unwrap()
    });
    assert_eq!(
        (place.read("case.toml"), place.read("profile.toml")),
        (case, profile)
    );
    let listed = place.listed();
    let is_state = |line: &String| line.ends_with(" home/.agent/.agent.json");
    assert!(listed.iter().any(is_state), "{listed:#?}");
    assert_eq!(place.exceptions(), [] as [Value; 0]);
    let counted = report["evidence"]["records"].as_array().unwrap().len();
    assert_eq!(place.read("stdout.jsonl").lines().count(), counted);
    assert!(place.read("report.txt").starts_with("PASSED  case-b: "));
}

/// No byte of a line longer than 4 MiB stays in memory, but the bundle has the line, without the credential.
#[test]
fn bundle_has_a_line_that_is_too_long_for_a_record() {
    needs_sandbox!();
    let place = Place::new();
    let size = "output_size = \"16 MiB\"";
    let run = Run::changed_case("case-b", size, "output_size = \"64 MiB\"")
        .client(fixture("abusive-client"))
        .client_argument("--deviate")
        .client_argument("line-of-48-mib");
    let made = place.run(run);
    assert_eq!(made.code, Some(1), "{}", made.stderr);
    place.assert_verifies();
    let written = place.read("stdout.jsonl");
    let line = written.lines().last().unwrap();
    let half = "a".repeat(24 << 20);
    assert!(line == format!("{half}<credential>{half}"));
    let reason = "the credential or a hidden value is replaced in it";
    assert_eq!(place.reason("stdout.jsonl"), reason);
}

#[test]
fn digest_that_the_run_prints_can_be_required() {
    needs_sandbox!();
    let place = Place::new();
    let made = place.run(Run::case_b());
    let path = place.evidence().canonicalize().unwrap();
    let begin = format!(
        "note: the evidence is in {}; its SHA256SUMS has the SHA-256 ",
        path.display()
    );
    let told = made.stderr.trim_end().strip_prefix(&begin).unwrap();
    assert_eq!(verified(&path, &["--require-sums", told]).0, 0);
    let other = "0".repeat(64);
    let (code, text) = verified(&path, &["--require-sums", &other]);
    let line = format!("differs: SHA256SUMS: its SHA-256 is {told}, and {other} is required\n");
    assert_eq!((code, text), (1, line));
}

/// Each tampering is made twice: as it is, and with new digests.
#[test]
fn tampering_is_found_even_with_new_digests() {
    needs_sandbox!();
    let place = Place::new();
    place.run(Run::case_b().deviating("unknown-get"));
    for (tamper, line, with_new_sums) in [
        (
            "rm stdout.jsonl",
            "missing: stdout.jsonl",
            "missing: stdout.jsonl, which such a run",
        ),
        (
            "touch new",
            "not listed: new: a file",
            "differs: new: no run like this one writes it",
        ),
        (
            "echo x >> stderr.txt",
            "differs: stderr.txt: its SHA-256",
            "differs: stderr.txt: 2 bytes",
        ),
        (
            "echo >> case.toml",
            "differs: case.toml: its SHA-256",
            "differs: case.toml: its SHA-256",
        ),
        (
            "echo >> profile.toml",
            "differs: profile.toml: its SHA-256",
            "differs: profile.toml: its SHA-256",
        ),
        (
            "tar -b 1 -f files.tar --delete home/.agent/.agent.json",
            "differs: files.tar: its SHA-256",
            "missing: home/.agent/.agent.json, which report.json lists",
        ),
        (
            "touch home; tar -b 1 -rf files.tar home; rm home",
            "differs: files.tar: its SHA-256",
            "differs: files.tar: home: no run writes such an entry",
        ),
        (
            "sed -i 's/\"mode\": \"0600\"/\"mode\": \"0644\"/' report.json",
            "differs: report.json: its SHA-256",
            "differs: files.tar: home/.agent/",
        ),
    ] {
        let copy = place.at("copy");
        let evidence = place.evidence();
        command("cp", &["-a".as_ref(), evidence.as_ref(), copy.as_ref()]);
        let shell = |line: &str| {
            let line = format!("cd \"$0\" && {line}");
            command("sh", &["-c".as_ref(), line.as_ref(), copy.as_ref()]);
        };
        shell(tamper);
        let (code, text) = verified(&copy, &[]);
        assert!(code == 1 && text.starts_with(line), "{tamper}: {text}");
        shell("rm SHA256SUMS && sha256sum * > .sums && mv .sums SHA256SUMS");
        let (code, text) = verified(&copy, &[]);
        assert!(
            code == 1 && text.starts_with(with_new_sums),
            "{tamper}: {text}"
        );
        fs::remove_dir_all(copy).unwrap();
    }
}

#[test]
fn verify_of_another_directory_is_wrong_use() {
    let place = Place::new();
    fs::create_dir(place.at("empty")).unwrap();
    for (name, words) in [
        ("empty", "hint: SHA256SUMS is written last"),
        ("absent", "error: cannot open the directory"),
        ("beside", "error: cannot open the directory"),
    ] {
        let (code, text) = verified(&place.at(name), &[]);
        assert!(code == 2 && text.contains(words), "{name}: {code} {text}");
    }
    symlink("empty", place.at("link")).unwrap();
    fs::write(place.at("empty/SHA256SUMS"), "{}").unwrap();
    let (code, text) = verified(&place.at("link"), &[]);
    assert!(
        code == 2 && text.contains("cannot parse SHA256SUMS"),
        "{text}"
    );
}

#[test]
fn failed_and_errored_runs_leave_evidence() {
    needs_sandbox!();
    let place = Place::new();
    assert_eq!(
        place.run(Run::case_b().deviating("unknown-get")).code,
        Some(1)
    );
    place.assert_verifies();
    assert_eq!(place.report()["verdict"], "failed");
    let place = Place::new();
    let script = place.at("client");
    fs::write(&script, "#!/no/such/interpreter\n").unwrap();
    fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let made = place.run(Run::case_b().client(&script));
    assert_eq!(made.code, Some(3), "{}", made.stderr);
    place.assert_verifies();
    assert_eq!(place.report()["verdict"], "errored");
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
    assert_eq!(place.file("home/file"), b"kept\n");
    assert_eq!(place.read("stdout.txt"), "started\n");
}

#[test]
fn output_of_an_audit_is_whole_and_redacted() {
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
    assert_eq!(place.file("renamed/1"), b"x\n");
    let policy = command(runner(), &["policy", "show", "audit"].map(OsStr::new));
    assert_eq!(place.read("case.toml").into_bytes(), policy);
    assert!(!place.read("exceptions.json").contains("of-its-users"));
}

#[test]
fn policy_with_a_value_of_env_is_withheld() {
    needs_sandbox!();
    let place = Place::new();
    let run = Run::case("audit").argument("--env=TOKEN=runner.audit/1");
    place.run(run.client_argument("/bin/true"));
    assert!(!place.evidence().join("case.toml").exists());
    let reason = "the value of TOKEN is in it, which no report shows";
    assert_eq!(place.reason("case.toml"), reason);
    place.assert_verifies();
}

#[test]
fn packed_and_unpacked_bundle_verifies() {
    needs_sandbox!();
    let place = Place::new();
    place.run(Run::case_b());
    place.assert_an_archive_verifies();
}

#[test]
fn file_with_a_value_of_env_is_not_copied() {
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
    let note = "note: not in the evidence: 3 files that hold a value of `--env`; exceptions.json lists them";
    assert!(made.stderr.contains(note), "{}", made.stderr);
    place.assert_verifies();
    let exceptions = place.exceptions();
    let (renamed, withheld): (Vec<_>, Vec<_>) = exceptions
        .iter()
        .partition(|one| one["stored_as"].is_string());
    let told = withheld.iter().map(|one| {
        let reason = "the value of TOKEN is in it, which no report shows";
        assert_eq!(one["reason"], reason);
        one["path"].as_str().unwrap()
    });
    assert_eq!(
        told.collect::<Vec<_>>(),
        ["home/f", "home/hex", "home/long"]
    );
    let renamed = renamed.iter().map(|one| one["path"].as_str().unwrap());
    let expected = ["home/<value of TOKEN>", "home/<value of TOKEN>/beside"];
    assert_eq!(renamed.collect::<Vec<_>>(), expected);
    assert_eq!(place.file("renamed/2"), b"harmless\n");
    assert_eq!(place.file("home/rest"), b"rest\n");
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
    for name in names(place.evidence()) {
        let content = fs::read(place.evidence().join(&name)).unwrap();
        let content = String::from_utf8_lossy(&content);
        let is_there = content.contains("of-its-users/only") || content.contains(&hex);
        assert!(!is_there, "{name}");
    }
    // The key of the run belongs to no user, so its copies stay in the evidence.
    assert!(place.file("home/own").starts_with(b"key=runner-key-"));
}
