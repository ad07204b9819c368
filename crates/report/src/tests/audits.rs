//! Reports of an audit with findings and of one without, in every format.

use std::fmt::Write as _;

use super::ci::{audit, markdown, quiet_audit};
use super::*;

/// Parts of the JSON report about findings.
fn json_of_findings(report: &Report) -> String {
    let value: Value = serde_json::from_str(&json(report)).unwrap();
    let keys = ["verdict", "findings", "checks"];
    let kept: serde_json::Map<String, Value> = keys
        .map(|key| (key.to_owned(), value[key].clone()))
        .into_iter()
        .collect();
    serde_json::to_string_pretty(&kept).unwrap()
}

/// Heading of the page and its sections up to the attempts, a line for each element.
fn html_of_findings(report: &Report) -> String {
    let page = html::render(report).unwrap();
    let page = String::from_utf8(page).unwrap();
    let (_, body) = page.split_once("</style>").unwrap();
    let (header, rest) = body.split_once("<nav").unwrap();
    let (_, main) = rest.split_once("<main>").unwrap();
    let (sections, _) = main.split_once("<section id=\"attempts\"").unwrap();
    format!("{header}{sections}").replace("><", ">\n<")
}

fn every_format(report: &Report) -> String {
    let mut all = String::new();
    for (format, text) in [
        ("human", human(report)),
        ("markdown", markdown(report)),
        ("html", html_of_findings(report)),
        ("json", json_of_findings(report)),
        ("junit", ci::junit(report)),
        ("sarif", sarif::sarif(report)),
    ] {
        writeln!(all, "===== {format}\n{text}").unwrap();
    }
    all
}

#[test]
fn audit_with_findings_in_every_format() {
    insta::assert_snapshot!(every_format(&audit()));
}

#[test]
fn audit_without_findings_in_every_format() {
    insta::assert_snapshot!(every_format(&quiet_audit()));
}

#[test]
fn every_format_counts_alike() {
    for report in [audit(), quiet_audit()] {
        let number = report.findings().unwrap().count;
        let line = human(&report).lines().next().unwrap().to_owned();
        let words = match number {
            0 => "AUDITED, no findings".to_owned(),
            number => format!("AUDITED, {number} findings"),
        };
        assert!(line.starts_with(&words), "{line}");
        let value: Value = serde_json::from_str(&json(&report)).unwrap();
        assert_eq!(value["findings"]["count"], number);
        assert_eq!(value["verdict"], "audited");
        let log: Value = serde_json::from_str(&sarif::sarif(&report)).unwrap();
        let run = &log["runs"][0];
        assert_eq!(run["properties"]["findings"], number);
        let junit = ci::junit(&report);
        let property = format!("<property name=\"findings\" value=\"{number}\"/>");
        assert!(junit.contains(&property), "{junit}");
        let page = String::from_utf8(html::render(&report).unwrap()).unwrap();
        for text in [&junit, &page, &markdown(&report)] {
            assert!(text.contains(&words), "{text}");
        }
        let checks = report.checks.len();
        assert_eq!(value["checks"].as_array().unwrap().len(), checks);
        assert_eq!(
            run["tool"]["driver"]["rules"].as_array().unwrap().len(),
            checks
        );
        assert_eq!(junit.matches("<testcase ").count(), checks);
        assert_eq!(page.matches("id=\"check-").count(), checks);
    }
}

#[test]
fn sensitive_place_is_listed_beside_the_findings() {
    let mut report = quiet_audit();
    report.evidence.sensitive.push(SensitivePath {
        what: Sensitive::Aws,
        path: "/root/.aws/credentials".to_owned(),
        kind: LookupKind::Read,
        count: 2,
        at_us: 1,
    });
    let metadata = connect("inet", "169.254.169.254", Some(80));
    report.evidence.attempts.push(metadata);
    let text = human(&report);
    let lines = text
        .lines()
        .skip_while(|line| !line.starts_with("Sensitive"));
    let lines: Vec<&str> = lines.take(4).collect();
    let expected = [
        "Sensitive places that it looked for: 2",
        "    times  wanted   what            place",
        "  |     2  read     aws             /root/.aws/credentials",
        "  |     1  connect  cloud-metadata  inet:169.254.169.254:80",
    ];
    assert_eq!(lines, expected);
    assert!(text.starts_with("AUDITED, 2 findings: 1 attempt, 2 sensitive places"));
}
