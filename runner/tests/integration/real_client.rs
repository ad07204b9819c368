//! The built-in profile `claude-code`, with the client that it was written for, as published on npm.
//!
//! The test installs the client once below the target directory, and only the runner starts it. This project contains
//! no part of the client. Without npm or its registry the tests are skipped; with REGISTRY_MUST_WORK=1 they fail
//! instead.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::json;

use crate::drift::Place;
use crate::kit::Run;
use crate::needs_sandbox;

const PACKAGE: &str = "@anthropic-ai/claude-code@2.1.177";
/// A newer version, which acts differently.
const NEWER: &str = "@anthropic-ai/claude-code@2.1.332";
/// Digest of the program in the package for x86_64 and glibc.
const SHA256: &str = "ff41753634b20c869ef6a32a20863521b33d4186ac0d6a49379ab48a48395ee7";

/// Returns a run with the real client, or returns from the test if the client is unavailable.
macro_rules! needs_real_client {
    () => {
        needs_real_client!(real_client())
    };
    ($client:expr) => {{
        needs_sandbox!();
        match $client {
            Ok(program) => program,
            Err(reason) => {
                return crate::kit::skip_without(
                    "real client",
                    "REGISTRY_MUST_WORK",
                    reason.as_ref(),
                );
            }
        }
    }};
}

/// The program; installed by the first test that asks.
fn real_client() -> Result<&'static Path, &'static str> {
    static CLIENT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let client = CLIENT.get_or_init(|| {
        if !cfg!(all(target_arch = "x86_64", target_env = "gnu")) {
            return Err("it was measured on x86_64 with glibc only".to_owned());
        }
        installed(PACKAGE)
    });
    client.as_deref().map_err(String::as_str)
}

/// Returns the newer client.
fn newer_client() -> Result<PathBuf, String> {
    real_client()?;
    installed(NEWER)
}

fn installed(package: &str) -> Result<PathBuf, String> {
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join(package.replace('/', "+"));
    let program = "node_modules/@anthropic-ai/claude-code-linux-x64/claude";
    if !kept.join(program).exists() {
        let made = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))
            .map_err(|error| format!("no place for it: {error}"))?;
        install(package, made.path())?;
        fs::set_permissions(made.path(), Permissions::from_mode(0o755)).unwrap();
        // If another process was faster, its copy is equally good.
        let _ = fs::rename(made.path(), &kept);
    }
    let program = kept.join(program);
    match program.exists() {
        true => Ok(program),
        false => Err(format!("{package} has no program for this machine")),
    }
}

/// Installs a package without running its scripts, so that no program of the package starts here.
fn install(package: &str, directory: &Path) -> Result<(), String> {
    let output = Command::new("npm")
        .args(["install", "--ignore-scripts", "--no-audit", "--no-fund"])
        .args(["--no-save", "--no-package-lock", "--fetch-retries", "1"])
        .arg("--prefix")
        .arg(directory)
        .arg(package)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("npm cannot be started: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

fn run(case: &str, client: &Path) -> Run {
    Run::case(case)
        .argument("--profile")
        .argument("claude-code")
        .client(client)
}

#[test]
fn the_real_client_passes_both_cases_under_its_profile() {
    let client = needs_real_client!();
    for case in ["case-a", "case-b"] {
        let done = run(case, client).json();
        done.assert_passed();
        assert_eq!(done.report["client"]["sha256"], SHA256);
        run(case, client).as_ordinary_user().json().assert_passed();
    }
}

/// The client acts the same without its own namespaces.
#[test]
fn the_real_client_passes_both_cases_in_a_container_that_refuses_namespaces() {
    let client = needs_real_client!();
    for case in ["case-a", "case-b"] {
        let contained = || run(case, client).on_a_host_without("network,namespaces");
        for run in [contained(), contained().as_ordinary_user()] {
            let done = run.json();
            done.assert_passed();
            assert_eq!(done.report["tier"], "inherited");
        }
    }
}

/// The client makes more requests by default than the cases permit, and each one is found.
#[test]
fn the_real_client_by_itself_fails_case_b_by_what_it_does_beside_the_turn() {
    let client = needs_real_client!();
    for run in [
        run("case-b", client),
        run("case-b", client).as_ordinary_user(),
    ] {
        run.argument("--plain").json().assert_fails(&[
            "requests/first-and-only",
            "requests/post-count",
            "files/state-file",
            "files/nothing-else",
            "outbound/no-attempts",
        ]);
    }
}

/// The body of the default model has a field that case A does not permit.
#[test]
fn the_real_client_by_itself_fails_case_a_by_that_and_by_the_body_of_its_own_model() {
    let client = needs_real_client!();
    for run in [
        run("case-a", client),
        run("case-a", client).as_ordinary_user(),
    ] {
        run.argument("--plain").json().assert_fails(&[
            "requests/sequence",
            "requests/post-count",
            "body/fields",
            "files/state-file",
            "files/nothing-else",
            "outbound/no-attempts",
        ]);
    }
}

/// The README documents this: the client sends its key to every redirect's destination.
#[test]
fn the_real_client_follows_a_redirect_with_its_key() {
    let client = needs_real_client!();
    let run = run("case-b", client).argument("--stub=redirect-307");
    run.json().assert_fails(&[
        "requests/first-and-only",
        "requests/post-count",
        "secrets/credential-not-written",
        "outbound/no-attempts",
    ]);
}

#[test]
fn what_the_real_client_sends_and_asks_for_by_itself_is_told_by_name() {
    let client = needs_real_client!();
    let done = run("case-b", client).argument("--plain").json();
    let requests = done.report["evidence"]["requests"].as_array().unwrap();
    let sides = requests.iter().filter(|one| one["side"] == "session title");
    assert_eq!(sides.count(), 1);
    let names = done.report["evidence"]["names"].as_array().unwrap();
    assert!(names.iter().all(|one| one["name"] == "api.anthropic.com"));
    assert!(names.iter().all(|one| one["expected"] == json!(null)));
    assert!(!names.is_empty());
}

#[test]
fn two_runs_of_the_real_client_are_alike_whatever_it_is_told() {
    let client = needs_real_client!();
    for case in ["case-a", "case-b"] {
        let plain = || run(case, client).argument("--plain");
        let inherited = || run(case, client).on_a_host_without("network,namespaces");
        let runs: [&dyn Fn() -> Run; 4] = [&|| run(case, client), &plain, &inherited, &|| {
            plain().as_ordinary_user()
        }];
        for run in runs {
            let place = Place::new();
            place.keep(run(), "old.json");
            place.keep(run(), "new.json");
            let changes = place.diff_json("old.json", "new.json")["changes"].clone();
            assert_eq!(changes, json!([]), "{case}");
        }
    }
}

#[test]
fn the_real_client_passes_its_own_lock_file() {
    let client = needs_real_client!();
    let place = Place::new();
    let lock = place.at("claude.lock");
    let with = |run: Run| run.argument("--baseline").argument(&lock);
    let update = with(run("case-b", client)).argument("--update-baseline");
    update.json().assert_passed();
    with(run("case-b", client)).json().assert_passed();
}

/// Differences of a newer version, in each part that changed.
#[test]
fn a_newer_version_of_the_real_client_is_told_by_what_it_does_otherwise() {
    let newer = needs_real_client!(newer_client());
    let client = needs_real_client!();
    let place = Place::new();
    place.keep(run("case-a", client), "old.json");
    place.keep(run("case-a", &newer), "new.json");
    let answer = place.diff_json("old.json", "new.json");
    assert_eq!(answer["status"], "changed");
    let changes = answer["changes"].as_array().unwrap();
    let is = |area: &str, kind: &str, key: &str, old, new| {
        let change = json!({"area": area, "kind": kind, "key": key, "old": old, "new": new});
        assert!(changes.contains(&change), "no {change} in {changes:#?}");
    };
    let agent = |version| json!(format!("claude-cli/{version} (external, sdk-cli)"));
    let post = |what| format!("POST /v1/messages {what}");
    let (old, new) = (agent("2.1.177"), agent("2.1.332"));
    is("headers", "changed", &post("User-Agent"), old, new);
    let preflight = json!("preflight status 200");
    is("requests", "removed", "HEAD /", preflight, json!(null));
    is(
        "body",
        "changed",
        &post("$.max_tokens"),
        json!("32000"),
        json!("128000"),
    );
    is(
        "records",
        "added",
        "system/ui_invalidate",
        json!(null),
        json!("first"),
    );
    is(
        "files",
        "added",
        "home .claude/plugins",
        json!(null),
        json!("directory 0700"),
    );
    let in_area = |area: &str| {
        changes
            .iter()
            .filter(|change| change["area"] == area)
            .count()
    };
    let areas = [
        "requests",
        "headers",
        "body",
        "records",
        "files",
        "attempts",
        "names",
        "processes",
        "outcome",
    ];
    assert_eq!(areas.map(in_area), [1, 9, 15, 34, 3, 0, 0, 0, 0]);
}
