//! `runner diff`.

use std::fs;

use serde_json::Value;

use super::{Place, lines, straight};
use crate::kit::{Run, is_root, parsed};
use crate::{needs_program, needs_sandbox};

#[track_caller]
fn assert_unchanged(run: impl Fn() -> Run) {
    let place = Place::new();
    place.keep(run(), "old.json");
    place.keep(run(), "new.json");
    let output = place.diff("old.json", "new.json");
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.starts_with("UNCHANGED  no difference\n"), "{said}");
    assert!(said.contains("\nNot compared:\n"), "{said}");
    assert!(output.stderr.is_empty());
}

#[test]
fn two_runs_of_the_reference_client_are_alike() {
    needs_sandbox!();
    for case in [Run::case_a, Run::case_b] {
        assert_unchanged(case);
        assert_unchanged(|| case().as_ordinary_user());
        assert_unchanged(|| case().on_a_host_without("network,namespaces"));
        assert_unchanged(|| {
            let run = case().on_a_host_without("network,namespaces");
            run.as_ordinary_user()
        });
    }
}

#[test]
fn a_run_of_root_and_one_of_an_ordinary_user_are_alike() {
    needs_sandbox!();
    if !is_root() {
        eprintln!("only root can make a run of root");
        return;
    }
    let place = Place::new();
    place.keep(Run::case_a(), "root.json");
    place.keep(Run::case_a().as_ordinary_user(), "user.json");
    assert_eq!(place.diff("root.json", "user.json").status.code(), Some(0));
}

/// Asserts that two audits of one command are alike and that each did its work: two equal failures would prove nothing.
#[track_caller]
fn assert_audits_alike(
    command: &[&str],
    code: i32,
    evidence: impl Fn(&Value) -> Vec<String>,
    expected: &[&str],
) {
    let place = Place::new();
    for name in ["old.json", "new.json"] {
        let json = format!("json={}", place.at(name).display());
        let audit = Run::case("audit").argument("--stub=text");
        let audit = audit.argument("--report").argument(json);
        let audit = command.iter().copied().fold(audit, Run::client_argument);
        let output = audit.output();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{said}");
        let report = parsed(&fs::read(place.at(name)).unwrap(), &said);
        assert_eq!(evidence(&report["evidence"]), expected, "{said}");
    }
    let output = place.diff("old.json", "new.json");
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{command:?}: {said}");
}

/// `GET /x` of every request, sorted; an id in a path reads `…`.
fn requests(evidence: &Value) -> Vec<String> {
    let requests = evidence["requests"].as_array().unwrap().iter();
    let mut lines: Vec<String> = requests
        .map(|one| {
            let (method, path) = (one["method"].as_str(), one["path"].as_str());
            let path = path.unwrap();
            let path = if path.len() > 30 { "/…" } else { path };
            format!("{} {path}", method.unwrap())
        })
        .collect();
    lines.sort();
    lines
}

fn names(evidence: &Value) -> Vec<String> {
    let names = evidence["names"].as_array().unwrap().iter();
    let mut names: Vec<String> = names
        .map(|one| one["name"].as_str().unwrap().to_owned())
        .collect();
    names.dedup();
    names
}

fn programs(evidence: &Value) -> Vec<String> {
    let processes = evidence["processes"].as_array().unwrap().iter();
    let programs = processes.map(|one| one["program"].as_str().unwrap().to_owned());
    programs.collect()
}

#[test]
fn two_audits_of_curl_are_alike() {
    needs_program!("/usr/bin/curl");
    let command = ["/usr/bin/curl", "-s", "{base_url}/x", "http://example.com/"];
    assert_audits_alike(&command, 6, requests, &["GET /x"]);
    assert_audits_alike(&command, 6, names, &["example.com"]);
}

#[test]
fn two_audits_of_a_program_with_requests_at_a_time_are_alike() {
    needs_program!("/usr/bin/curl");
    let urls = ["1", "2", "3", "4"].map(|n| format!("{{base_url}}/v1/x?n={n}"));
    let mut command = vec!["/usr/bin/curl", "-s", "--parallel", "--parallel-immediate"];
    command.extend(urls.iter().map(String::as_str));
    assert_audits_alike(&command, 0, requests, &["GET /v1/x"; 4]);
}

#[test]
fn two_audits_of_git_are_alike() {
    needs_program!("/usr/bin/git");
    let command = ["/usr/bin/git", "ls-remote", "http://example.com/x"];
    assert_audits_alike(&command, 128, names, &["example.com"]);
}

#[test]
fn two_audits_of_a_program_that_makes_ids_are_alike() {
    needs_program!("/usr/bin/python3");
    let make = "import tempfile, uuid, urllib.request as u\nf = tempfile.mkstemp()[1]\nopen(f, 'w').write(str(uuid.uuid4()))\nu.urlopen(u.Request('{base_url}/' + str(uuid.uuid4()), headers={'Date': __import__('email.utils').utils.formatdate(usegmt=True)}))";
    let command = ["/usr/bin/python3", "-c", make];
    assert_audits_alike(&command, 1, requests, &["GET /…"]);
}

/// The inner shell may or may not have ended when the program starts.
#[test]
fn two_audits_of_a_program_whose_parent_may_have_ended_are_alike() {
    needs_sandbox!();
    let line = "true \"$(/bin/sh -c '/bin/ls /nowhere & :')\"";
    let command = ["/bin/sh", "-c", line];
    let started = ["/bin/sh", "/bin/sh", "/bin/ls"];
    assert_audits_alike(&command, 0, programs, &started);
}

/// One test for each line, `name: "deviation" => [changes];`.
macro_rules! changes {
    ($($name:ident: $deviation:literal => [$($line:literal),* $(,)?];)*) => {$(
        #[test]
        fn $name() {
            needs_sandbox!();
            let place = Place::new();
            place.keep(straight(), "old.json");
            place.keep(crate::kit::Run::case_b().deviating($deviation), "new.json");
            let answer = place.diff_json("old.json", "new.json");
            assert_eq!(lines(&answer["changes"]), [$($line),*] as [&str; _]);
            assert_eq!(place.diff("old.json", "new.json").status.code(), Some(1));
        }
    )*};
}

changes! {
    a_further_header_is_one_change: "extra-header" => ["+ headers POST /v1/messages x-trace: 1"];
    another_version_is_one_change: "another-version" =>
        ["~ headers POST /v1/messages user-agent: agent-cli/2.1.178 (external, sdk-cli)"];
    a_further_request_is_told_with_its_headers: "unknown-get" => [
        "+ requests GET /version: unknown status 404",
        "+ headers GET /version accept: */*",
        "+ headers GET /version connection: close",
        "+ headers GET /version host: 127.0.0.1:{port}",
    ];
    a_further_field_is_one_change: "extra-field" => ["+ body POST /v1/messages $.temperature: 1"];
    a_record_twice_is_one_change: "status-twice" => ["~ records system/status: × 2, after system/init"];
    a_missing_field_of_a_record_is_one_change: "init-without-agents" =>
        ["- records system/init field agents: in each"];
    a_further_file_is_one_change: "file-in-tmp" => [
        "+ files tmp notes: file 0600 sha256 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    ];
    another_mode_is_one_change: "state-for-all" => ["~ files home .agent/.agent.json: file 0644"];
    an_attempt_is_one_change: "connects-elsewhere" =>
        ["+ attempts {client} connect inet 192.0.2.1 port 443: denied ENETUNREACH"];
    another_exit_code_is_one_change: "exit-code-1" => ["~ outcome exit: code 1"];
    a_survivor_is_told: "survivor" => [
        "+ processes agent-cli: outlives the client",
        "+ processes {client} {client} --linger: started",
    ];
    a_file_that_was_removed_again_is_no_change: "removed-file" => [];
}

#[test]
fn another_case_is_compared_and_noted() {
    needs_sandbox!();
    let place = Place::new();
    place.keep(Run::case_a(), "a.json");
    place.keep(Run::case_b(), "b.json");
    let output = place.diff("a.json", "b.json");
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        said.contains("the case differs: case-a before, case-b now"),
        "{said}"
    );
    assert!(
        said.contains("\n  | - HEAD /: preflight status 200"),
        "{said}"
    );
    assert_eq!(said.lines().next(), said.lines().last());
}

#[test]
fn a_directory_is_compared_by_the_report_in_it() {
    needs_sandbox!();
    let place = Place::new();
    let bundle = place.at("bundle");
    let run = Run::case_b().argument("--out").argument(&bundle);
    place.keep(run, "report.json");
    assert_eq!(place.diff("bundle", "report.json").status.code(), Some(0));
    let report = bundle.join("report.json");
    let text = fs::read_to_string(&report).unwrap();
    fs::write(&report, text.replace("\"code\": 0", "\"code\": 1")).unwrap();
    let output = place.diff("bundle", "report.json");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("its report.json does not match SHA256SUMS"),
        "{said}"
    );
    assert!(said.contains("hint: `runner verify DIR`"), "{said}");
    let anyway = place.diff("bundle/report.json", "report.json");
    assert_eq!(anyway.status.code(), Some(1));
}

#[test]
fn an_errored_run_is_never_unchanged() {
    needs_sandbox!();
    let place = Place::new();
    place.keep(Run::case_b(), "old.json");
    let json = format!("json={}", place.at("new.json").display());
    let script = place.at("client");
    fs::write(&script, "#!/no/such/interpreter\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&script, mode).unwrap();
    let run = Run::case_b()
        .client(&script)
        .argument("--report")
        .argument(json);
    assert_eq!(run.output().status.code(), Some(3));
    let output = place.diff("old.json", "new.json");
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("  | lost      the new run: "), "{said}");
}

#[test]
fn what_is_no_report_is_wrong_use_and_waits_for_nobody() {
    let place = Place::new();
    fs::write(place.at("text"), "hello").unwrap();
    nix::unistd::mkfifo(&place.at("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    fs::create_dir(place.at("empty")).unwrap();
    for (name, words) in [
        ("text", "as a JSON report"),
        ("fifo", "is a FIFO, not a regular file"),
        (
            "empty",
            "is not a directory of `--out`: it has no SHA256SUMS",
        ),
        ("absent", "cannot open"),
    ] {
        let output = place.diff(name, name);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(words) && output.stdout.is_empty(), "{said}");
    }
}
