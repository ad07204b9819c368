//! Rules of records: those that `runner init` writes for an agent that prints JSON lines.

use std::fs;

use super::{init, project, run_made};
use crate::needs_program;

/// End of the agent, which prints its answer as text.
const END: &str = "print(\"\".join";
/// Agent that also writes two records.
const RECORDS: &str = "print(json.dumps({\"type\": \"start\", \"session\": str(uuid.uuid4()), \"tools\": []}))
print(json.dumps({\"type\": \"result\", \"is_error\": False, \"text\": \"a whole answer\", \"cwd\": os.getcwd()}))
0 and print(\"\".join";

#[test]
fn rules_of_init_accept_the_same_records_and_no_others() {
    needs_program!("/usr/bin/python3");
    let made = project(END, RECORDS);
    let output = init(&made, &["/usr/bin/python3", "agent.py", "hello"]);
    assert_eq!(output.status.code(), Some(0));
    let case = fs::read_to_string(made.path().join("made.toml")).unwrap();
    for line in [
        "format = \"json-lines\"\norder = \"listed\"",
        "where = { \"/type\" = \"result\" }\ncount = { from = 1, to = 1 }",
        "fields = { \"/session\" = \"{uuid}\", \"/tools\" = [] }",
        "fields = { \"/cwd\" = { type = \"string\" }, \"/is_error\" = false, \"/text\" = { type = \"string\" } }",
    ] {
        assert!(case.contains(line), "no {line} in\n{case}");
    }
    assert!(!case.contains(&*made.path().to_string_lossy()), "{case}");
    run_made(&made).assert_passed();
    let agent = made.path().join("agent.py");
    let text = fs::read_to_string(&agent).unwrap();
    for (part, other) in [
        ("\"is_error\": False", "\"is_error\": True"),
        ("\"text\": \"a whole answer\"", "\"text\": None"),
        ("\"cwd\": os.getcwd()", "\"c\": 1"),
        ("str(uuid.uuid4()), ", "\"fixed\", "),
        ("\"tools\": []", "\"tools\": [\"bash\"]"),
        ("\"type\": \"start\"", "\"type\": \"begin\""),
        ("0 and print", "print(\"{}\") and print"),
    ] {
        assert!(text.contains(part), "{part}");
        fs::write(&agent, text.replace(part, other)).unwrap();
        let done = run_made(&made);
        assert_eq!(done.checks("failed"), ["records/rules"], "{other}");
        done.assert_verdict(1, "failed");
    }
}

#[test]
fn init_says_why_records_have_no_rule() {
    needs_program!("/usr/bin/python3");
    let made = project("", "");
    init(&made, &["/usr/bin/python3", "agent.py", "hello"]);
    let case = fs::read_to_string(made.path().join("made.toml")).unwrap();
    let why = "# Standard output is not judged: it is not one JSON object on each line.\n\
        format = \"none\"";
    assert!(case.contains(why), "{case}");
}
