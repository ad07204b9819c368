//! Tests with large evidence: it must not displace other parts of a report, nor let a report grow without limit.

use std::collections::{BTreeMap, BTreeSet};

use model::evidence::Request;
use model::evidence::fixture::headers;

use super::ci::{audit_of, markdown};
use super::page::page;
use super::*;
use crate::claims;

/// More entries of maximum width than any table can show.
const MANY: usize = 120;
/// Length of a text near the limit of a page, in characters.
const WIDE: usize = 900;
/// Character that takes six bytes on a page.
const OF_A_PAGE: &str = "\"";
/// Character that takes four bytes in a summary.
const OF_A_SUMMARY: &str = "\u{1f512}";
/// Maximum size of a page, in bytes.
const MAX_PAGE_BYTES: usize = 12 << 20;

/// Function that adds one entry with a text to a part of the evidence.
type Add = fn(&mut Evidence, &str);

/// Parts of the evidence that a client can enlarge, by their section of the page.
const PARTS: [(&str, Add); 11] = [
    ("attempts", |evidence, text| {
        evidence.attempts.push(connect("unix", text, None));
    }),
    ("names", |evidence, text| {
        evidence.names.push(question(text))
    }),
    ("files", |evidence, text| {
        evidence.files.push(file(Root::Home, text));
    }),
    ("transient", |evidence, text| {
        let mut gone = file(Root::Home, text);
        (gone.transient, gone.sha256) = (true, None);
        evidence.files.push(gone);
    }),
    ("programs", |evidence, text| {
        let program = text.to_owned();
        let process = started(&["sh", text]);
        (evidence.processes).push(model::evidence::Process { program, ..process });
    }),
    ("survivors", |evidence, text| {
        let program = text.to_owned();
        evidence.survivors.push(Survivor { pid: 7, program });
    }),
    ("lookups", |evidence, text| {
        let looked = missed().remove(0);
        let path = text.to_owned();
        evidence.lookups.push(Lookup { path, ..looked });
    }),
    ("records", |evidence, text| {
        let last = evidence.records.len();
        insert_record(evidence, last, json!({"type": text, "subtype": text}));
    }),
    ("gaps", |evidence, text| {
        let detail = text.to_owned();
        let what = GapKind::Isolation;
        evidence.gaps.push(model::evidence::Gap { what, detail });
    }),
    ("requests", |evidence, text| {
        let mut request = head_request();
        request.seq = evidence.requests.len() as u64 + 1;
        (request.at_us, request.class) = (request.seq, RequestClass::Unknown);
        if let Head::Request { path, .. } = &mut request.head {
            path.push_str(text);
        }
        for _ in 0..66 {
            add_header(&mut request, "x-note", text);
        }
        evidence.requests.push(request);
    }),
    ("connections", |evidence, _| {
        let one = evidence.connections[0].clone();
        evidence.connections.push(one);
    }),
];

/// Returns the text of the first entry of a part.
fn first(index: usize, section: &str) -> String {
    format!("the first of part {index}, {section}")
}

/// Run with one entry in each part, and many in the part at an index, or in all parts.
fn crowded(crowded: Option<usize>, with: &str) -> Fixture {
    let mut run = case_b();
    for (index, (section, add)) in PARTS.into_iter().enumerate() {
        add(&mut run.evidence, &first(index, section));
        if crowded.is_none_or(|crowded| crowded == index) {
            let many = if section == "requests" { 60 } else { MANY };
            for number in 0..many {
                add(&mut run.evidence, &format!("{number}{}", with.repeat(WIDE)));
            }
        }
    }
    run
}

/// Report with drift in each fact that has a text.
fn with_much_drift(mut report: Report, with: &str) -> Report {
    let texts = (0..MANY).map(|number| format!("{number}{}", with.repeat(WIDE)));
    let mut drift = drifted("x-new").baseline.unwrap();
    let added = |text: String| Difference {
        fact: Fact {
            area: Area::Headers,
            key: text.clone(),
        },
        change: Change::Added(text),
    };
    drift.differences.extend(texts.map(added));
    report.baseline = Some(drift);
    report
}

/// Report with each check failed, with long texts.
fn with_everything_wrong(report: Report, with: &str) -> Report {
    let mut report = with_much_drift(report, with);
    let text = with.repeat(WIDE);
    for finding in &mut report.checks {
        let part = || Some(text.clone());
        finding.status = Status::Failed;
        (finding.object, finding.expected) = (part(), part());
        (finding.found, finding.because) = (part(), part());
    }
    for number in 0..MANY {
        let rule = format!("{number}{text}");
        let reason = rule.clone();
        report.wider_rules.push(WiderRule { rule, reason });
    }
    report
}

/// Asserts that the page has all our own texts, each first entry in its section, and the target of each link.
#[track_caller]
fn assert_nothing_is_lost(report: &Report) {
    let page = page(report);
    assert!(page.len() < MAX_PAGE_BYTES, "{}", page.len());
    let ids: BTreeSet<&str> = values(&page, " id=\"").collect();
    for end in values(&page, " href=\"#") {
        assert!(ids.contains(end), "nothing is #{end}");
    }
    let sections = page.split("<section id=\"").skip(1);
    let sections: BTreeMap<&str, &str> = sections
        .filter_map(|section| section.split_once('"'))
        .collect();
    let has = |id: &str, text: &str| {
        let shown = sections.get(id).unwrap_or_else(|| panic!("no #{id}"));
        assert!(shown.contains(text), "{text} is not in #{id}");
    };
    for finding in &report.checks {
        has("checks", &format!("<tr id=\"check-{}\">", finding.id));
    }
    let evidence = &report.evidence;
    for layer in &evidence.layers {
        has("layers", &layer.name);
    }
    for canary in &evidence.canaries {
        has("canaries", &canary.name);
    }
    for setting in &report.client.settings {
        has("settings", &setting.name);
    }
    for sentence in claims::not_proved(report) {
        has("claims", &sentence);
    }
    for (index, (section, _)) in PARTS.into_iter().enumerate() {
        match (section, report.purpose) {
            ("requests", _) => has("requests", "<tr id=\"request-2\">"),
            ("connections", _) => has("connections", "closed by the client"),
            ("records", Purpose::Audit) => {}
            _ => has(section, &first(index, section)),
        }
    }
    has("unsound", "the first of part");
}

/// Returns the text after each `before`, up to the next quotation mark. Client text has no unescaped one.
fn values<'a>(page: &'a str, before: &'a str) -> impl Iterator<Item = &'a str> {
    let found = page.split(before).skip(1);
    found.filter_map(|rest| rest.split('"').next())
}

#[test]
fn a_page_loses_nothing_to_a_client_that_makes_much_of_one_thing() {
    for (index, (section, _)) in PARTS.into_iter().enumerate() {
        let report = report(crowded(Some(index), OF_A_PAGE));
        assert_nothing_is_lost(&report);
        let cut = match section {
            "requests" => "more entries of 6",
            "connections" => continue,
            _ => "more entries of 1",
        };
        let cut = page(&report).contains(cut);
        assert!(cut, "{section} says nothing of what it cut");
    }
}

#[test]
fn a_page_is_bounded_whatever_the_client_does_and_counts_what_it_cuts() {
    for report in [
        with_everything_wrong(report(crowded(None, OF_A_PAGE)), OF_A_PAGE),
        audit_of(crowded(None, OF_A_PAGE)),
    ] {
        assert_nothing_is_lost(&report);
        assert!(page(&report).contains("more entries of 1"));
    }
}

/// Close moments are merged into one mark, and tooltips are cut.
#[test]
fn a_drawing_is_bounded_however_much_happens() {
    let mut run = case_b();
    let text = OF_A_PAGE.repeat(WIDE);
    let mut request = head_request();
    if let Head::Request { path, .. } = &mut request.head {
        path.clone_from(&text);
    }
    for number in 0..5_000 {
        let at_us = number * 80;
        let attempt = connect("unix", &text, None);
        run.evidence.attempts.push(Attempt { at_us, ..attempt });
        let seq = number + 2;
        let request = request.clone();
        (run.evidence.requests).push(Request {
            seq,
            at_us,
            ..request
        });
    }
    let page = page(&report(run));
    let (_, drawing) = page.split_once("<section id=\"timeline\">").unwrap();
    let (drawing, _) = drawing.split_once("</section>").unwrap();
    let marks = drawing.matches("<svg").count();
    assert!((200..1_000).contains(&marks), "{marks}");
    assert!(drawing.len() < 1 << 20, "{}", drawing.len());
}

/// Each request keeps its line, although not all heads fit.
#[test]
fn a_large_head_takes_no_request_off_the_page() {
    let mut run = case_b();
    let headers = headers(&mut run.evidence.requests[0]);
    headers.extend((0..66).map(|number| (format!("x-{number}"), "\"".repeat(WIDE))));
    let large = run.evidence.requests[0].clone();
    let more = (2..=60).map(|seq| Request {
        seq,
        ..large.clone()
    });
    run.evidence.requests.extend(more);
    let page = page(&report(run));
    for seq in 1..=60 {
        let id = format!("id=\"request-{seq}\"");
        assert!(page.contains(&id), "no {id}");
    }
    assert!(page.contains(" more entries of 72. "));
    let heads = page.matches("<summary>Head ").count();
    assert!((1..60).contains(&heads), "{heads}");
    // Each request has a head and a body.
    assert!(page.contains("more entries of 120. "));
}

/// Two hundred heads of 8,000 bytes each fit the budget of heads and bodies.
#[test]
fn what_stands_inside_of_an_entry_takes_room_once() {
    let mut run = case_b();
    let mut request = head_request();
    for _ in 0..8 {
        add_header(&mut request, "x-note", &"x".repeat(WIDE));
    }
    run.evidence.requests = (1..=200)
        .map(|seq| Request {
            seq,
            ..request.clone()
        })
        .collect();
    let page = page(&report(run));
    let shown = page.matches("x-note").count();
    assert_eq!(shown, 8 * 200);
    assert!(!page.contains("Cut: "));
}

/// Asserts for the summary of a job what [`assert_nothing_is_lost`] asserts for a page.
#[track_caller]
fn assert_summary_has_what_is_ours(report: &Report) {
    let text = markdown(report);
    assert!(text.len() < 900 << 10, "{}", text.len());
    let part = |title: &str| {
        let (_, part) = text.split_once(&format!("\n### {title}")).unwrap();
        part.split_once("\n### ").unwrap().0
    };
    let claims_of_it = part("What this run shows, and what it does not\n");
    for sentence in claims::not_proved(report) {
        let line = format!("- not proved: {sentence}\n");
        assert!(claims_of_it.contains(&line), "no {sentence}");
    }
    assert!(!claims_of_it.contains("Cut"), "{claims_of_it}");
    let wrong = |finding: &&Finding| {
        matches!(finding.status, Status::Failed | Status::Errored)
            && (report.purpose == Purpose::Judge || finding.id != "outbound/no-attempts")
            && phrases::consequence(finding).is_none()
    };
    let findings = match text.contains("\n### Findings: ") {
        true => part("Findings: "),
        false => "",
    };
    for finding in report.checks.iter().filter(wrong) {
        let line = format!("\n- {} ` {} `, ", finding.status.word(), finding.id);
        assert!(findings.contains(&line), "no {line}");
    }
    for (index, (section, _)) in PARTS.into_iter().enumerate() {
        let is_left_out = ["records", "requests", "connections"].contains(&section);
        let text_of_it = first(index, section);
        assert!(is_left_out || text.contains(&text_of_it), "no {text_of_it}");
    }
}

#[test]
fn a_summary_loses_nothing_to_a_client_that_makes_much_of_one_thing_or_of_all() {
    for index in (0..PARTS.len()).map(Some).chain([None]) {
        assert_summary_has_what_is_ours(&report(crowded(index, OF_A_SUMMARY)));
    }
    assert_summary_has_what_is_ours(&with_much_drift(
        report(crowded(None, OF_A_SUMMARY)),
        OF_A_SUMMARY,
    ));
    assert_summary_has_what_is_ours(&audit_of(crowded(None, OF_A_SUMMARY)));
}

/// Each text has its maximum length, and each part is shown.
#[test]
fn a_summary_in_which_everything_is_wrong_has_room_for_all_that_is_ours() {
    let report = with_everything_wrong(report(crowded(None, OF_A_SUMMARY)), OF_A_SUMMARY);
    assert_summary_has_what_is_ours(&report);
}

#[test]
fn a_summary_stays_below_the_limit_whatever_the_client_does_and_counts_what_it_cuts() {
    let crowded = || {
        let mut run = case_b();
        let lookup = missed().remove(0);
        for number in 0..1_000 {
            let name = format!("{number}{}", "\u{1f512}|`".repeat(400));
            run.evidence.names.push(question(&name));
            run.evidence.files.push(file(Root::Home, &name));
            run.evidence.processes.push(started(&[&name]));
            run.evidence.attempts.push(connect("unix", &name, None));
            run.evidence.gaps.push(gap(GapKind::Requests));
            run.evidence.lookups.push(Lookup {
                path: name.clone(),
                advice: Advice::Read(name),
                ..lookup.clone()
            });
        }
        run
    };
    for report in [report(crowded()), audit_of(crowded())] {
        let text = markdown(&report);
        assert!(text.len() < 1 << 20, "{}", text.len());
        assert!(text.contains("\nCut: 900 more entries of 1,000. "));
        assert!(text.contains("(cut: 904 more characters)"));
    }
}
