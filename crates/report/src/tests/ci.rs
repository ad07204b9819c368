//! Reports for CI systems, JUnit XML and Markdown, each read by a third-party parser.

use pulldown_cmark::{Event, Options, Parser, Tag};

use super::*;

/// Audit of a program that queries names, tries addresses, prints its credential and looks up hidden paths.
pub(crate) fn audit() -> Report {
    let mut run = case_b();
    let mut query = connect("inet", "127.0.0.1", Some(53));
    query.names = vec!["example.com".to_owned()];
    (query.kind, query.outcome) = (AttemptKind::Question, Outcome::Allowed);
    run.evidence
        .attempts
        .extend([query, connect("inet", "192.0.2.1", Some(443))]);
    run.evidence.names.push(question("example.com"));
    run.evidence.sightings.push(Sighting {
        place: "stdout".to_owned(),
        form: "as written".to_owned(),
    });
    run.evidence.lookups = missed();
    run.evidence.exit = Exit::Code(7);
    run.evidence.stderr.tail = "1\n2\n3\n4\n5\ncurl: (7) \u{1b}[2J\n".to_owned();
    run.evidence.stderr.bytes = 19;
    run.evidence.gaps.push(gap(GapKind::Lookups));
    audit_of(run)
}

/// Audit of a program that does nothing but one request to the stub.
pub(crate) fn quiet_audit() -> Report {
    audit_of(case_b())
}

/// Report of an audit with the evidence of a run.
pub(super) fn audit_of(run: Fixture) -> Report {
    let checks = judge::check::audit(&[], &run.evidence);
    let verdict = judge::gate::verdict(&checks, &run.evidence);
    let mut report = report(run);
    (report.checks, report.verdict) = (checks, verdict);
    report.purpose = Purpose::Audit;
    report.case.name = "audit".to_owned();
    report.client.program = "/usr/bin/curl".to_owned();
    report.client.content = Content::Cached(digest(12));
    report.client.profile = None;
    for entry in &mut report.evidence.files {
        entry.expected = None;
    }
    report.wider_rules.push(WiderRule {
        rule: "reads /opt/runtime".to_owned(),
        reason: "asked for on the command line".to_owned(),
    });
    report
}

pub(super) fn every_report() -> [Report; 5] {
    [
        report(case_b()),
        hostile(),
        broken(),
        audit(),
        drifted(HOSTILE),
    ]
}

pub(super) fn junit(report: &Report) -> String {
    String::from_utf8(super::junit::render(report).unwrap()).unwrap()
}

pub(super) fn markdown(report: &Report) -> String {
    String::from_utf8(super::markdown::render(report).unwrap()).unwrap()
}

#[test]
fn the_junit_report_of_a_passed_run() {
    insta::assert_snapshot!(junit(&report(case_b())));
}

#[test]
fn the_junit_report_of_a_failed_run_with_hostile_text() {
    insta::assert_snapshot!(junit(&hostile()));
}

#[test]
fn the_junit_report_of_a_run_in_a_broken_sandbox() {
    insta::assert_snapshot!(junit(&broken()));
}

#[test]
fn the_junit_report_of_an_audit() {
    insta::assert_snapshot!(junit(&audit()));
}

/// The parser is another part of the crate that writes the report.
#[test]
fn a_reader_finds_each_check_of_the_junit_report_with_its_status() {
    for report in [report(case_b()), hostile(), broken()] {
        let read = quick_junit::Report::deserialize_from_str(&junit(&report)).unwrap();
        let [suite] = read.test_suites.as_slice() else {
            panic!("{read:?}");
        };
        let cases = suite.test_cases.iter().map(|case| case.name.as_str());
        let ids = report.checks.iter().map(|finding| &*finding.id);
        assert!(cases.eq(ids));
        let number = |status| {
            let with = report.checks.iter().filter(|one| one.status == status);
            with.count()
        };
        let counts = (suite.tests, suite.failures, suite.errors, suite.disabled);
        let (failed, errored) = (number(Status::Failed), number(Status::Errored));
        assert_eq!(
            counts,
            (
                report.checks.len(),
                failed,
                errored,
                number(Status::Skipped)
            )
        );
    }
}

/// Areas, times and counts follow <https://github.com/testmoapp/junitxml>.
#[test]
fn a_strict_reader_finds_in_the_junit_report_what_viewers_show() {
    for report in every_report() {
        let text = junit(&report);
        let document = roxmltree::Document::parse(&text).unwrap();
        let root = document.root_element();
        assert_eq!(root.tag_name().name(), "testsuites");
        let suite = root.first_element_child().unwrap();
        let seconds = suite.attribute("time").unwrap();
        assert_eq!(root.attribute("time"), Some(seconds));
        assert!(seconds.parse::<f64>().unwrap() > 0.0);
        assert!(suite.attribute("timestamp").unwrap().ends_with('Z'));
        let named = |tag| {
            suite
                .descendants()
                .filter(move |node| node.has_tag_name(tag))
        };
        for (attribute, tag) in [
            ("tests", "testcase"),
            ("failures", "failure"),
            ("errors", "error"),
            ("skipped", "skipped"),
        ] {
            let number = named(tag).count().to_string();
            assert_eq!(suite.attribute(attribute), Some(number.as_str()), "{tag}");
        }
        for case in named("testcase") {
            let (id, area) = (case.attribute("name"), case.attribute("classname"));
            assert!(id.unwrap().starts_with(area.unwrap()), "{case:?}");
            assert_eq!(case.attribute("time"), Some("0.000"));
        }
        let out: Vec<_> = named("system-out").map(|out| out.text()).collect();
        let line = human(&report).lines().next().map(str::to_owned);
        assert_eq!(out, [line.as_deref()]);
    }
}

#[test]
fn the_junit_report_of_an_audit_has_the_checks_that_hold_for_any_program() {
    let read = quick_junit::Report::deserialize_from_str(&junit(&audit())).unwrap();
    let cases = read.test_suites.iter().flat_map(|suite| &suite.test_cases);
    let cases: Vec<_> = cases.map(|case| case.name.as_str()).collect();
    let expected = [
        "secrets/credential-not-written",
        "outbound/denied",
        "outbound/no-attempts",
        "process/no-survivors",
    ];
    assert_eq!(cases, expected);
}

/// Asserts that the Markdown has text, code, headings, lists and well-formed tables only, and no link.
///
/// Single lines are parsed as well, for viewers that show a line by itself.
#[track_caller]
fn assert_leads_nowhere(text: &str) {
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        let leads_on = matches!(
            event,
            Event::Start(Tag::Link { .. } | Tag::Image { .. } | Tag::HtmlBlock | Tag::CodeBlock(_))
                | Event::Html(_)
                | Event::InlineHtml(_)
        );
        assert!(!leads_on, "{event:?} in {text}");
        // Viewers make mentions, references and bare URLs from text only, not from code.
        if let Event::Text(said) = event {
            assert!(!said.contains(['@', '<', '`']), "{said} in {text}");
            assert!(!said.contains("://"), "{said} in {text}");
        }
    }
    assert!(!text.contains("]("), "{text}");
    for line in text.lines() {
        assert!(!line.trim_start().starts_with("::"), "{line}");
        let ours = line.trim_start_matches('#');
        assert!(!ours.contains("##"), "{line}");
        let characters = ours
            .chars()
            .scan(None, |before, c| Some((before.replace(c), c)));
        for (before, c) in characters {
            assert!(!escape::is_dangerous(before, c), "{c:?} in {line}");
        }
    }
}

/// Asserts that each row has as many cells as the head of its table.
#[track_caller]
fn assert_tables_are_whole(text: &str) {
    let pipes = |line: &str| {
        let mut before = None;
        let bare = line
            .chars()
            .filter(|c| before.replace(*c) != Some('\\') && *c == '|');
        bare.count()
    };
    let mut head = None;
    for line in text.lines() {
        if !line.starts_with('|') {
            head = None;
        } else {
            let cells = *head.get_or_insert(pipes(line));
            assert_eq!(pipes(line), cells, "{line}");
        }
    }
}

#[test]
fn a_reader_finds_nothing_in_the_markdown_that_leads_anywhere() {
    for report in every_report() {
        let text = markdown(&report);
        assert_leads_nowhere(&text);
        assert_tables_are_whole(&text);
    }
}

/// Run with the text in each field that a client or an audited program fills.
pub(super) fn with_text_everywhere(text: &str) -> Fixture {
    let mut run = case_b();
    let evidence = &mut run.evidence;
    if let Head::Request {
        method,
        path,
        query,
        ..
    } = &mut evidence.requests[0].head
    {
        (*method, *path, *query) = (text.to_owned(), text.to_owned(), Some(text.to_owned()));
    }
    add_header(&mut evidence.requests[0], text, text);
    evidence.survivors.push(Survivor {
        pid: 7,
        program: text.to_owned(),
    });
    evidence.attempts.push(Attempt {
        program: text.to_owned(),
        names: vec![text.to_owned()],
        ..connect("unix", text, None)
    });
    evidence.names.push(question(text));
    evidence.names[0].kind = text.to_owned();
    evidence.processes.push(model::evidence::Process {
        program: text.to_owned(),
        ..started(&[text, text])
    });
    evidence.files.push(file(Root::Home, text));
    evidence.lookups = missed();
    for lookup in &mut evidence.lookups {
        lookup.path = text.to_owned();
        if let Advice::Read(path) | Advice::Write(path) = &mut lookup.advice {
            *path = text.to_owned();
        }
    }
    evidence.sightings.push(Sighting {
        place: text.to_owned(),
        form: "base64".to_owned(),
    });
    let mut lost = gap(GapKind::Requests);
    lost.detail = text.to_owned();
    evidence.gaps.push(lost);
    insert_record(evidence, 2, json!({"type": text, "subtype": text}));
    run
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_harmless_in_the_reports_for_ci(
        text in "(\\PC|\\pC|::|##|`{1,3}|\\||\\\\|<a>|<!--|@x|https://x|\\]\\(|\\[|\\]\\]>|&|\u{fffe}|\n| ){0,60}"
    ) {
        let mut judged = report(with_text_everywhere(&text));
        let mut audited = audit_of(with_text_everywhere(&text));
        let mut drifted = drifted(&text);
        for report in [&mut judged, &mut audited, &mut drifted] {
            report.client.program.clone_from(&text);
            let markdown = markdown(report);
            assert_leads_nowhere(&markdown);
            assert_tables_are_whole(&markdown);
            let xml = junit(report);
            prop_assert!(roxmltree::Document::parse(&xml).is_ok(), "{}", xml);
            quick_junit::Report::deserialize_from_str(&xml).unwrap();
            assert_harmless(&xml);
        }
    }
}

#[test]
fn an_option_that_would_show_a_path_is_one_word_of_a_shell() {
    let text = markdown(&audit());
    for option in [
        "--read /root/.pyenv/versions/3.11",
        r"--read '/srv/it'\''s'",
        "--write /srv",
    ] {
        assert!(
            text.contains(&format!("` {option} `")),
            "{option} in {text}"
        );
    }
}

#[test]
fn no_prompt_stands_in_a_report_for_ci() {
    let mut run = case_b();
    let shell = started(&["sh", "-c", "agent-cli --prompt='Say something.'"]);
    run.evidence.processes.push(shell);
    let report = report(run);
    for text in [junit(&report), markdown(&report)] {
        assert!(!text.contains("Say something"), "{text}");
    }
}

#[test]
fn refused_program_is_not_listed_as_started() {
    let mut run = case_b();
    let mut made = started(&["made"]);
    made.program = "/tmp/made".to_owned();
    made.refused = Some("EACCES".to_owned());
    let mut elsewhere = started(&["notes"]);
    elsewhere.program = "/usr/share/notes".to_owned();
    elsewhere.refused = Some("EACCES".to_owned());
    run.evidence.processes.extend([made, elsewhere]);
    let page = human(&audit_of(run));
    let (started, refused) = page.split_once("refused to execute: 2").unwrap();
    assert!(!started.contains("/tmp/made"), "{page}");
    assert!(refused.contains("/tmp/made   --allow-exec tmp\n"), "{page}");
    assert!(refused.contains("/usr/share/notes\n"), "{page}");
}

#[test]
fn hint_needs_every_part_of_its_message() {
    let hints = |tail: &str| {
        let mut run = case_b();
        run.evidence.stderr.tail = tail.to_owned();
        human(&audit_of(run)).contains("refuses unix sockets")
    };
    let socket = "_socket.socket.__init__(self, family, type, proto, fileno)";
    let denied = "PermissionError: [Errno 13] Permission denied";
    assert!(hints(&format!("{socket}\n{denied}")));
    assert!(!hints(socket) && !hints(denied) && !hints(""));
    assert!(hints("Error: listen EACCES: permission denied /tmp/x.sock"));
}
