//! Rules from runs: each run that they come from meets them.

use model::case::{Count, Expectations, Root};
use model::evidence::fixture::{Fixture, case_b, connect, file, question};
use model::evidence::{LookupKind, Sensitive, SensitivePath, Sighting, Survivor};
use model::finding::{Status, Verdict};
use proptest::prelude::*;

mod records;

use super::pattern::patterns;
use super::{Observed, observed};
use crate::check::{check, verdict};

fn of(runs: &[&Fixture]) -> Observed {
    let runs: Vec<_> = runs.iter().map(|run| &run.evidence).collect();
    observed(&runs, "seen, not reviewed")
}

/// Patterns and their numbers of times.
fn found(runs: &[&[&str]]) -> Vec<(String, u64, Option<u64>)> {
    let owned = |run: &&[&str]| run.iter().map(|text| (*text).to_owned()).collect();
    let patterns = patterns(runs.iter().map(owned));
    let patterns = patterns.into_iter();
    patterns
        .map(|pattern| (pattern.text, pattern.count.from, pattern.count.to))
        .collect()
}

fn row(text: &str, from: u64, to: u64) -> (String, u64, Option<u64>) {
    (text.to_owned(), from, Some(to))
}

#[test]
fn what_each_run_has_stays_as_it_is() {
    let both = ["a/1.json", "a/2.json"];
    let rows = [row("a/1.json", 1, 1), row("a/2.json", 1, 1)];
    assert_eq!(found(&[&both, &both]), rows);
}

#[test]
fn what_differs_becomes_the_narrowest_pattern() {
    for (one, other, pattern) in [
        (
            "s/0b7f3a52-9d1c-4e7a-8a66-2f0d1c9b7e11.json",
            "s/1c8f3a52-0d1c-4e7a-9a66-3f0d1c9b7e22.json",
            "s/{uuid}.json",
        ),
        ("log-17", "log-9", "log-{digits}"),
        ("t/a91f0c3", "t/b77e012", "t/{hex}"),
        ("t/xK9wQz", "t/PmT3aB", "t/{alnum}"),
        ("t.17/aB3xYz", "t.18/Qq9zLm", "t.{digits}/{alnum}"),
    ] {
        assert_eq!(found(&[&[one], &[other]]), [row(pattern, 1, 1)]);
    }
}

#[test]
fn what_is_unique_in_a_single_run_becomes_a_pattern() {
    let uuid = "s/0b7f3a52-9d1c-4e7a-8a66-2f0d1c9b7e11.json";
    let rows = [
        row("log-17", 1, 1),
        row("old.{digits}", 2, 2),
        row("s/{uuid}.json", 1, 1),
    ];
    let run = ["log-17", "old.1795834241604", "old.1795834241605", uuid];
    assert_eq!(found(&[&run]), rows);
}

/// Two runs of one second agree, and the next run has another time.
#[test]
fn dates_and_times_of_equal_runs_become_patterns() {
    for (text, pattern) in [
        ("logs/2026-11-30.log", "logs/{digits}-{digits}-{digits}.log"),
        ("by/2026/11/30/x", "by/{digits}/{digits}/{digits}/x"),
        (
            "h-2026-11-30T21-15-09.json",
            "h-{digits}-{digits}-{digits}T{digits}-{digits}-{digits}.json",
        ),
        (
            "_logs/2026-11-30T21_19_02_324Z-debug-0.log",
            "_logs/{digits}-{digits}-{digits}T{digits}_{digits}_{digits}_{digits}Z-debug-0.log",
        ),
        ("x/1796073241-2.json", "x/{digits}-2.json"),
        ("day-20261130", "day-{digits}"),
        ("python-3.11.2/x", "python-3.11.2/x"),
        ("a2026-11-30", "a2026-11-30"),
        ("port-4711", "port-4711"),
    ] {
        assert_eq!(found(&[&[text], &[text]]), [row(pattern, 1, 1)]);
    }
}

#[test]
fn ports_that_the_kernel_gives_become_any_port() {
    let mut run = case_b();
    for (family, address, port) in [
        ("inet", "127.0.0.1", 32768),
        ("inet", "127.0.0.1", 50_123),
        ("inet", "127.0.0.1", 32767),
        ("inet", "127.0.0.2", 40_001),
        ("inet", "192.0.2.1", 40_001),
        ("inet6", "::1", 65_535),
        ("inet6", "2001:db8::1", 65_535),
    ] {
        let connect = connect(family, address, Some(port));
        run.evidence.attempts.push(connect);
    }
    let observed = of(&[&run, &run]);
    let rules = observed.expect.attempts.iter();
    let rules: Vec<String> = rules.map(|rule| rule.destination.to_string()).collect();
    let expected = [
        "inet6:[2001:db8::1]:65535",
        "inet6:[::1]:*",
        "inet:127.0.0.1:*",
        "inet:127.0.0.1:32767",
        "inet:127.0.0.2:*",
        "inet:192.0.2.1:40001",
    ];
    assert_eq!(rules, expected);
}

#[test]
fn what_only_some_runs_have_is_optional() {
    let rows = [row("a", 1, 1), row("cache", 0, 1)];
    assert_eq!(found(&[&["a"], &["a", "cache"]]), rows);
}

#[test]
fn numbers_of_times_are_the_least_and_the_most() {
    let rows = [row("/v1/messages", 1, 3)];
    let (one, three) = (["/v1/messages"], ["/v1/messages"; 3]);
    assert_eq!(found(&[&one, &three]), rows);
}

#[test]
fn runs_meet_the_rules_that_they_gave() {
    let (one, mut other) = (case_b(), case_b());
    other
        .evidence
        .files
        .push(file(Root::Tmp, "agent-4711/state"));
    other.evidence.names.push(question("telemetry.example.com"));
    let observed = of(&[&one, &other]);
    assert_eq!(observed.refused, [""; 0]);
    for run in [&one, &other] {
        let findings = check(&observed.expect, &run.evidence);
        let failed = findings
            .iter()
            .filter(|finding| finding.status == Status::Failed);
        assert_eq!(failed.count(), 0, "{findings:#?}");
        assert_eq!(verdict(&findings, &run.evidence), Verdict::Passed);
    }
}

#[test]
fn another_behaviour_fails_the_rules() {
    let observed = of(&[&case_b(), &case_b()]);
    type Change = (fn(&mut Fixture), &'static str);
    let changes: [Change; 4] = [
        (
            |run| run.evidence.files.push(file(Root::Home, "further")),
            "files/nothing-else",
        ),
        (
            |run| run.evidence.names.push(question("telemetry.example.com")),
            "outbound/no-attempts",
        ),
        (
            |run| {
                let again = run.evidence.requests[0].clone();
                run.evidence.requests.push(again);
            },
            "requests/first-and-only",
        ),
        (
            |run| {
                let mut git = run.evidence.processes[0].clone();
                git.program = "/usr/bin/git".to_owned();
                run.evidence.processes.push(git);
            },
            "process/programs",
        ),
    ];
    for (change, id) in changes {
        let mut run = case_b();
        change(&mut run);
        let findings = check(&observed.expect, &run.evidence);
        let finding = findings.iter().find(|finding| finding.id == id).unwrap();
        assert_eq!(finding.status, Status::Failed, "{id}");
    }
}

#[test]
fn credentials_and_survivors_have_no_rule() {
    let mut run = case_b();
    run.evidence.sightings.push(Sighting {
        place: "stdout line 3".to_owned(),
        form: "base64".to_owned(),
    });
    run.evidence.survivors.push(Survivor {
        pid: 7,
        program: "daemon".to_owned(),
    });
    let refused = of(&[&run]).refused;
    assert_eq!(
        refused,
        [
            "the credential in stdout line 3",
            "the process daemon that outlived it"
        ]
    );
}

#[test]
fn rules_that_only_a_person_may_add_are_withheld() {
    let mut run = case_b();
    run.evidence
        .files
        .extend([file(Root::Tmp, "key"), file(Root::Tmp, "log")]);
    let sighting = Sighting::in_file(Root::Tmp, "key", "base64".to_owned());
    run.evidence.sightings.push(sighting);
    run.evidence
        .attempts
        .push(connect("inet", "169.254.169.254", Some(80)));
    run.evidence.names = vec![question("Metadata.google.internal"), question("a.example")];
    run.evidence.sensitive.push(SensitivePath {
        what: Sensitive::Ssh,
        path: "/home/sandbox/.ssh".to_owned(),
        kind: LookupKind::Read,
        count: 1,
        at_us: 1,
    });
    let observed = of(&[&run]);
    assert_eq!(
        observed.refused,
        [
            "the credential in file tmp: key",
            "the sensitive place /home/sandbox/.ssh (ssh)",
            "the sensitive place Metadata.google.internal (cloud-metadata)",
            "the sensitive place inet:169.254.169.254:80 (cloud-metadata)",
        ]
    );
    let names = |expect: &Expectations| {
        let files = expect.files.iter().flat_map(|files| &files.expected);
        let files = files
            .filter(|rule| rule.root == Root::Tmp)
            .map(|rule| rule.path.to_string());
        let attempts = expect
            .attempts
            .iter()
            .map(|rule| rule.destination.to_string());
        files.chain(attempts).collect::<Vec<_>>()
    };
    assert_eq!(names(&observed.expect), ["log", "name:a.example"]);
    let withheld = [
        "key",
        "inet:169.254.169.254:80",
        "name:metadata.google.internal",
    ];
    assert_eq!(names(&observed.withheld), withheld);
    assert!(observed.withheld.files.unwrap().expected[0].may_hold_credential);
}

#[test]
fn path_with_unknown_braces_has_no_rule() {
    let mut run = case_b();
    run.evidence.files.push(file(Root::Tmp, "{a}"));
    let mut program = run.evidence.processes[0].clone();
    program.program = "/tmp/{a}".to_owned();
    run.evidence.processes.push(program);
    let refused = of(&[&run]).refused;
    assert_eq!(
        refused,
        [
            "a file whose path has braces: {a}",
            "a program whose path has braces: /tmp/{a}"
        ]
    );
}

proptest! {
    /// Each text of each run is covered by a pattern whose count allows its number.
    #[test]
    fn patterns_cover_every_text(
        runs in prop::collection::vec(prop::collection::vec("[ab0-9/.-]{1,12}", 0..5), 1..4),
    ) {
        let patterns = patterns(runs.clone());
        for text in runs.iter().flatten() {
            prop_assert!(patterns.iter().any(|pattern| pattern.covers(text)), "{}", text);
        }
        let never = Count { from: 0, to: Some(0) };
        prop_assert!(patterns.iter().all(|pattern| pattern.count != never));
    }
}
