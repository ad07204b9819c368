//! A provider that redirects a program: the next destination, and whether the credential is sent there. The second host
//! listens inside the sandbox, and its requests are evidence like any others.

use serde_json::{Value, json};

use super::{Audit, Audited};
use crate::kit::Run;
use crate::needs_sandbox;

/// curl asks for a message and follows redirects, with `options`.
fn curl(options: &str, scenario: &str) -> Audit {
    let body = r#"{\"model\":\"m\",\"max_tokens\":1,\"messages\":[],\"stream\":true}"#;
    let line = format!(
        "printf 'header = \"x-api-key: %s\"\\n' $KEY | curl -sS -L -K - {options} -d \"{body}\" $URL/v1/messages"
    );
    Audit::shell(&line)
        .option("--env=URL={base_url}")
        .option("--env=KEY={credential}")
        .option(format!("--stub={scenario}"))
}

/// Returns host, method, status and the presence of the key, for each request.
fn requests(report: &Value) -> Vec<Value> {
    let requests = report["evidence"]["requests"].as_array().unwrap();
    let row = |one: &Value| {
        let headers = one["headers"].as_array().unwrap();
        let has_key = headers.iter().any(|header| {
            header[0]
                .as_str()
                .unwrap()
                .eq_ignore_ascii_case("x-api-key")
        });
        json!([one["host"], one["method"], one["status"], has_key])
    };
    requests.iter().map(row).collect()
}

/// Ids of the checks that failed.
fn failed(audited: &Audited) -> Vec<&str> {
    let checks = audited.report["checks"].as_array().unwrap();
    let failed = checks.iter().filter(|check| check["status"] == "failed");
    failed.map(|check| check["id"].as_str().unwrap()).collect()
}

#[test]
fn a_program_that_follows_with_its_credential_is_seen_at_the_second_host() {
    needs_sandbox!();
    for (scenario, status, method) in [
        ("redirect-307", 307, "POST"),
        ("redirect-308", 308, "POST"),
        ("redirect-302", 302, "GET"),
    ] {
        let audited = curl("", scenario).run();
        audited.assert_code(0);
        let expected = [
            json!(["stub", "POST", status, true]),
            json!([
                "elsewhere",
                method,
                if method == "GET" { 405 } else { 200 },
                true
            ]),
        ];
        assert_eq!(requests(&audited.report), expected, "{scenario}");
        let there = ["secrets/credential-not-written", "outbound/no-attempts"];
        assert_eq!(failed(&audited), there, "{scenario}");
        let shown = "at the second host, with x-api-key";
        // A row of the terminal report may be wrapped.
        let words = audited
            .stderr
            .split_whitespace()
            .filter(|word| *word != "|");
        let told = words.collect::<Vec<_>>().join(" ");
        assert!(told.contains(shown), "{}", audited.stderr);
        assert_eq!(audited.attempts().len(), 1);
        assert!(audited.attempts()[0].starts_with("127.0.0.2:"));
        let connections = audited.report["evidence"]["connections"]
            .as_array()
            .unwrap();
        let hosts: Vec<_> = connections.iter().map(|one| &one["host"]).collect();
        assert_eq!(hosts, ["stub", "elsewhere"]);
    }
}

#[test]
fn a_program_that_leaves_its_credential_behind_is_seen_without_it() {
    needs_sandbox!();
    // curl sends the credential of -u only to the host for which it was given.
    let line = "curl -sS -L -u user:word -d '{\"model\":\"m\",\"max_tokens\":1,\"messages\":[]}' $URL/v1/messages";
    let audited = Audit::shell(line)
        .option("--env=URL={base_url}")
        .option("--stub=redirect-307")
        .run();
    let second = &audited.report["evidence"]["requests"][1];
    assert_eq!(second["host"], "elsewhere");
    // The report wraps long lines at blanks.
    let told: Vec<_> = audited
        .stderr
        .split([' ', '\n', '|'])
        .filter(|word| !word.is_empty())
        .collect();
    let told = told.join(" ");
    assert!(
        told.contains("at the second host, without a credential"),
        "{told}"
    );
    assert_eq!(failed(&audited), ["outbound/no-attempts"]);
}

#[test]
fn a_program_that_does_not_follow_is_never_seen_there() {
    needs_sandbox!();
    let line = "curl -sS -o /dev/null -w '%{http_code} %{redirect_url}' -H 'x-api-key: k' -d '{\"model\":\"m\",\"max_tokens\":1,\"messages\":[]}' $URL/v1/messages";
    let audited = Audit::shell(line)
        .option("--env=URL={base_url}")
        .option("--stub=redirect-307")
        .run();
    audited.assert_code(0);
    assert!(
        audited.stdout.starts_with("307 http://127.0.0.2:"),
        "{}",
        audited.stdout
    );
    assert_eq!(requests(&audited.report).len(), 1);
    assert_eq!(audited.report["verdict"], "audited");
}

#[test]
fn the_reference_client_does_not_follow() {
    needs_sandbox!();
    for run in [Run::case_b(), Run::case_b().as_ordinary_user()] {
        let done = run.argument("--stub").argument("redirect-307").json();
        assert_eq!(requests(&done.report), [json!(["stub", "POST", 307, true])]);
        let failed = done.checks("failed");
        assert!(!failed.contains(&"requests/first-and-only"), "{failed:?}");
        assert!(!failed.contains(&"outbound/no-attempts"), "{failed:?}");
        assert!(failed.contains(&"records/result-success"), "{failed:?}");
    }
}

#[test]
fn a_client_that_follows_fails_the_case_with_all_that_it_did() {
    needs_sandbox!();
    let done = Run::case_b()
        .deviating("follows-a-redirect")
        .argument("--stub")
        .argument("redirect-307")
        .json();
    done.assert_fails(&[
        "requests/first-and-only",
        "requests/post-count",
        "secrets/credential-not-written",
        "outbound/no-attempts",
    ]);
}
