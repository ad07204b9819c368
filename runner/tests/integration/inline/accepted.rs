//! Changes that a failed run proposes: put into the case, they let the next run pass, not reviewed.

use std::fs;

use super::{project, run};
use crate::kit::{Done, Run};
use crate::needs_program;

/// End of the agent.
const END: &str = "print(\"\".join";
/// Rules for records of the agent.
const RECORDS: &str = "
[expect.records]
format = \"json-lines\"
order = \"listed\"

[[expect.records.rule]]
where = { \"/type\" = \"result\" }
count = { from = 1, to = 1 }
fields = { \"/is_error\" = false }
reason = \"the end\"
";

/// Changes that the failed checks propose, each text once.
fn proposed(done: &Done) -> Vec<String> {
    let checks = done.report["checks"].as_array().unwrap().iter();
    let mut texts: Vec<String> = checks
        .filter_map(|check| check["accept"].as_str())
        .map(str::to_owned)
        .collect();
    texts.dedup();
    texts
}

/// Puts changes into a case, as their comments say. A table with its keys is a paragraph.
fn put(case: &str, changes: &str) -> String {
    let mut paragraphs: Vec<String> = case.split("\n\n").map(str::to_owned).collect();
    let mut place = String::new();
    for change in changes.split("\n\n") {
        let (comment, table) = match change.strip_prefix("# ") {
            Some(rest) => rest.split_once('\n').unwrap(),
            None => (place.as_str(), change),
        };
        let (comment, table) = (comment.to_owned(), table.trim_end().to_owned());
        let key = |name: &str| {
            let (_, rest) = comment.split_once(name)?;
            Some(rest.trim_end_matches(':').to_owned())
        };
        let header = table.lines().next().unwrap();
        let of_rule = |paragraph: &&String| {
            let named = key("the rule \"")
                .is_some_and(|name| paragraph.contains(&format!("name = \"{name}")));
            let selects = key("the rule with ").is_some_and(|text| paragraph.contains(&text));
            let is_file = key("the rule for ").is_some_and(|text| {
                paragraph.contains(&format!("path = {}", text.split(" in ").next().unwrap()))
            });
            paragraph.contains(header)
                && (named || selects || is_file || comment.contains("the table"))
        };
        let known = paragraphs.iter().position(|paragraph| of_rule(&paragraph));
        match (comment.split(" the ").next().unwrap(), known) {
            ("Add at", None) => paragraphs.push(table),
            ("Put before", Some(number)) => paragraphs.insert(number, table),
            ("Put in place of", Some(number)) => paragraphs[number] = table,
            _ => panic!("no place for {change}\nin {case}"),
        }
        place = comment;
    }
    paragraphs.join("\n\n") + "\n"
}

/// Runs the changed agent, then again with the changes that the first run proposes.
#[track_caller]
fn accepts(text: &str, other: &str, failed: &[&str], with: &str) -> Done {
    let project = project(text, other);
    let file = project.path().join("agent.toml");
    let case = fs::read_to_string(&file).unwrap().trim_end().to_owned() + "\n" + with;
    fs::write(&file, &case).unwrap();
    let done = run(&project).json();
    assert_eq!(done.checks("failed"), failed, "{other}: {}", done.stderr);
    let changes = proposed(&done);
    assert!(!changes.is_empty(), "{other}: {:#}", done.report["checks"]);
    let changed = changes
        .iter()
        .fold(case, |case, changes| put(&case, changes));
    fs::write(&file, &changed).unwrap();
    let again = run(&project).json();
    assert_eq!(again.verdict(), "passed", "{changed}\n{}", again.stderr);
    again
}

#[test]
fn proposed_changes_accept_the_run_and_are_not_reviewed() {
    needs_program!("/usr/bin/python3");
    let at_end = |line: &str| format!("{line}\n{END}");
    let head = "urllib.request.urlopen(urllib.request.Request(os.environ[\"ANTHROPIC_BASE_URL\"] + \"/\", method=\"HEAD\"))";
    let again = ["requests/first-and-only", "requests/post-count"];
    for (text, other, failed) in [
        (END, at_end("ask(\"again\")"), &again[..]),
        (END, at_end(head), &["requests/first-and-only"]),
        (
            "answer = ask",
            format!("{head}\nanswer = ask"),
            &["requests/first-and-only"],
        ),
        (
            "+ \"/v1/messages\"",
            "+ \"/v1/messages?beta=true\"".to_owned(),
            &["requests/query"],
        ),
        (
            "\"max_tokens\": 100",
            "\"max_tokens\": 100, \"metadata\": {}".to_owned(),
            &["body/fields"],
        ),
        (
            "\"anthropic-version\":",
            "\"user-agent\": \"agent/1.0\", \"anthropic-version\":".to_owned(),
            &["headers/user-agent"],
        ),
        (
            "\"anthropic-version\": \"2023-06-01\"",
            "\"cookie\": \"a=b\"".to_owned(),
            &["headers/rules"],
        ),
        ("0o600", "0o644".to_owned(), &["files/rules"]),
        (END, at_end("keep(answer)"), &["files/rules"]),
        (
            END,
            at_end("open(os.environ[\"HOME\"] + \"/a\\u202eb\", \"w\").close()"),
            &["files/nothing-else"],
        ),
        (
            END,
            at_end("os.mkdir(os.environ[\"TMPDIR\"] + \"/empty\")"),
            &["files/nothing-else"],
        ),
        (
            END,
            at_end("import subprocess; subprocess.run([\"/bin/true\"])"),
            &["process/programs"],
        ),
        (
            END,
            at_end("import socket; s = socket.socket(); s.bind((\"127.0.0.1\", 0)); s.listen()"),
            &["outbound/no-attempts"],
        ),
        (
            END,
            at_end("import socket; socket.socket().connect_ex((\"192.0.2.7\", 443))"),
            &["outbound/no-attempts"],
        ),
    ] {
        let again = accepts(text, &other, failed, "");
        assert_eq!(again.report["not_reviewed"], 1, "{other}");
    }
}

#[test]
fn proposed_changes_accept_the_records() {
    needs_program!("/usr/bin/python3");
    let result = "print(json.dumps({\"type\": \"result\", \"is_error\": False}))";
    let print = format!("{result}\n0 and {END}");
    for (from, to) in [
        ("0 and", "print('{\"type\": \"debug\"}') and"),
        (
            "print(json",
            "print('{\"type\": \"debug\", \"n\": 1}')\nprint(json",
        ),
        (
            "0 and",
            "print('{\"type\": \"debug\", \"subtype\": \"a\", \"\": 1, \"x/y\": 2, \"x~y\": 3}') and",
        ),
        ("\"is_error\": False", "\"is_error\": None"),
        (
            "0 and",
            "print('{\"type\": \"result\", \"is_error\": false}') and",
        ),
    ] {
        let again = accepts(
            END,
            &print.replacen(from, to, 1),
            &["records/rules"],
            RECORDS,
        );
        assert_eq!(again.report["not_reviewed"], 1, "{to}");
    }
}

#[test]
fn another_exit_code_is_accepted_by_its_table() {
    needs_program!("/usr/bin/python3");
    let exit = format!("sys.exit(3)\n{END}");
    let again = accepts(END, &exit, &["process/exit-zero"], "");
    assert_eq!(again.report["client"]["exit"]["code"], 3);
    assert!(again.report["not_reviewed"].is_null());
}

#[test]
fn each_format_shows_the_change() {
    needs_program!("/usr/bin/python3");
    let project = project(
        END,
        &format!("open(os.environ[\"HOME\"] + \"/log\", \"w\").close()\n{END}"),
    );
    for (format, line) in [
        (
            "human",
            "\n      [[expect.files.rule]]\n      in = \"home\"\n      path = \"log\"\n",
        ),
        (
            "markdown",
            "\n    ```toml\n    # Add at the end of the case:\n    [[expect.files.rule]]\n    in = \"home\"\n",
        ),
        (
            "html",
            "<pre><code># Add at the end of the case:\n[[expect.files.rule]]\nin = &quot;home&quot;\n",
        ),
        (
            "junit",
            "to accept:\n# Add at the end of the case:\n[[expect.files.rule]]\n",
        ),
        (
            "sarif",
            "\"accept\": \"# Add at the end of the case:\\n[[expect.files.rule]]\\n",
        ),
    ] {
        let output = run(&project).argument("--report").argument(format).output();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.contains(line), "{format}: {text}");
    }
}

#[test]
fn no_rule_is_proposed_for_what_no_rule_may_accept() {
    needs_program!("/usr/bin/python3");
    let log = "open(os.environ[\"HOME\"] + \"/log\", \"w\")";
    for line in [
        // The credential on disk.
        format!("{log}.write(os.environ[\"ANTHROPIC_API_KEY\"])"),
        // A program that outlives the agent, and a link.
        "os.fork() or __import__(\"time\").sleep(60)".to_owned(),
        "os.symlink(\"x\", os.environ[\"HOME\"] + \"/link\")".to_owned(),
        // A name that no rule can have.
        "open(os.environ[\"HOME\"] + \"/{a}\", \"w\")".to_owned(),
        "os.kill(os.getpid(), 9)".to_owned(),
    ] {
        let project = project(END, &format!("{line}\n{END}"));
        let done = run(&project).json();
        done.assert_verdict(1, "failed");
        assert_eq!(proposed(&done), [""; 0], "{line}");
    }
}

#[test]
fn no_change_of_a_built_in_case_is_proposed() {
    for (run, number) in [
        (Run::case_b(), 0),
        (
            Run::changed_case("case-b", "name = \"case-b\"", "name = \"mine\""),
            1,
        ),
    ] {
        let done = run.deviating("unknown-get").json();
        assert_eq!(done.checks("failed"), ["requests/first-and-only"]);
        assert_eq!(proposed(&done).len(), number, "{:?}", proposed(&done));
    }
}
