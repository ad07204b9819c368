//! The built-in profile `claude-code`, with the client that it was written for, as npm gives it out.
//!
//! It is installed below the target directory, once, and started by the runner only. Nothing of it is kept in this
//! project. Without npm or its registry the tests are skipped; with REGISTRY_MUST_WORK=1 they fail instead.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::json;

use crate::kit::Run;
use crate::needs_sandbox;

const PACKAGE: &str = "@anthropic-ai/claude-code@2.1.177";
/// Of the program in the package for x86_64 and glibc.
const SHA256: &str = "ff41753634b20c869ef6a32a20863521b33d4186ac0d6a49379ab48a48395ee7";

/// A run with the real client, or a return from the test where it cannot be had.
macro_rules! needs_real_client {
    () => {{
        needs_sandbox!();
        match real_client() {
            Ok(program) => program,
            Err(reason) => {
                assert!(
                    std::env::var_os("REGISTRY_MUST_WORK").is_none(),
                    "no real client: {reason}"
                );
                eprintln!("skipped, no real client here: {reason}");
                return;
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
        installed()
    });
    client.as_deref().map_err(String::as_str)
}

fn installed() -> Result<PathBuf, String> {
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join(PACKAGE.replace('/', "+"));
    let program = "node_modules/@anthropic-ai/claude-code-linux-x64/claude";
    if !kept.join(program).exists() {
        let made = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))
            .map_err(|error| format!("no place for it: {error}"))?;
        install(made.path())?;
        fs::set_permissions(made.path(), Permissions::from_mode(0o755)).unwrap();
        // Where another process was faster, its copy is as good.
        let _ = fs::rename(made.path(), &kept);
    }
    let program = kept.join(program);
    match program.exists() {
        true => Ok(program),
        false => Err(format!("{PACKAGE} has no program for this machine")),
    }
}

/// Without the package's own scripts: nothing of it is started here.
fn install(directory: &Path) -> Result<(), String> {
    let output = Command::new("npm")
        .args(["install", "--ignore-scripts", "--no-audit", "--no-fund"])
        .args(["--no-save", "--no-package-lock", "--fetch-retries", "1"])
        .arg("--prefix")
        .arg(directory)
        .arg(PACKAGE)
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

/// Where nothing is its own, it does the same.
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

/// What it does by itself is more than the cases show, and each of it is found.
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

/// The body of its default model has a field that case A does not show.
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

/// As the README says: its key goes to wherever a redirect leads.
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
