//! Usage errors: exit code 2, one sentence on standard error, no file written and no request sent.

use crate::kit::{Client, KEY, Run, Server};

const GOOD_URL: &str = "http://127.0.0.1:1";

fn client(arguments: &[&str]) -> Client {
    Client::bare(arguments)
        .env("AGENT_BASE_URL", GOOD_URL)
        .env("AGENT_API_KEY", KEY)
}

/// Runs the client, checks the common parts of all usage errors, and returns the message.
fn refused(client: Client) -> String {
    let run: Run = client.output();
    assert_eq!(run.code, Some(2), "{run:?}");
    assert_eq!(run.stdout, "");
    assert_eq!(
        run.home.path().read_dir().unwrap().count(),
        0,
        "a file was made"
    );
    assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
    run.stderr
        .strip_prefix("error: ")
        .unwrap()
        .trim_end()
        .to_owned()
}

#[test]
fn each_missing_variable_is_a_usage_error() {
    for variable in ["AGENT_BASE_URL", "AGENT_API_KEY", "HOME"] {
        let sentence = refused(client(&["--print", "hi"]).without(variable));
        assert_eq!(sentence, format!("{variable} is not set"));
    }
}

#[test]
fn each_malformed_variable_is_a_usage_error_that_does_not_repeat_it() {
    for (variable, value) in [
        ("AGENT_BASE_URL", "https://127.0.0.1"),
        ("AGENT_BASE_URL", "127.0.0.1:80"),
        ("AGENT_BASE_URL", "http://user:pass@127.0.0.1"),
        ("AGENT_API_KEY", "two words"),
        ("AGENT_API_KEY", ""),
        ("HOME", "relative/path"),
    ] {
        let sentence = refused(client(&["--print", "hi"]).env(variable, value));
        assert!(
            sentence.starts_with(&format!("{variable} is malformed: ")),
            "{sentence}"
        );
        assert!(value.is_empty() || !sentence.contains(value), "{sentence}");
    }
}

#[test]
fn a_missing_mode_a_missing_prompt_and_bad_flags_are_usage_errors() {
    let cases: [(&[&str], &str); 7] = [
        (&["hi"], "only print mode exists"),
        (&[], "only print mode exists"),
        (&["--print"], "a prompt is needed"),
        (
            &["--print", "--tools", "Bash", "hi"],
            "invalid value 'Bash' for '--tools <NAMES>'",
        ),
        (
            &["--print", "--output-format", "text", "hi"],
            "invalid value 'text'",
        ),
        (
            &["--print", "--print", "hi"],
            "the argument '--print' cannot be used multiple times",
        ),
        (
            &["--print", "--max-tokens", "many", "hi"],
            "invalid value 'many'",
        ),
    ];
    for (arguments, expected) in cases {
        let sentence = refused(client(arguments));
        assert!(sentence.starts_with(expected), "{sentence}");
    }
}

#[test]
fn a_key_typed_as_an_argument_does_not_show_in_the_sentence() {
    let sentence = refused(client(&["--print", "--max-tokens", KEY, "hi"]));
    assert!(sentence.contains("[key]"), "{sentence}");
}

#[test]
fn help_and_version_go_to_standard_output() {
    for (flag, expected) in [
        ("--help", "--include-partial-messages"),
        ("--version", "2.1.177"),
    ] {
        let run = Client::bare(&[flag]).output();
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
        assert!(run.stdout.contains(expected));
    }
}

#[test]
fn a_usage_error_sends_nothing() {
    let server = Server::start(Vec::new());
    let url = format!("http://{}", server.address);
    refused(client(&["--print", "--nonsense", "hi"]).env("AGENT_BASE_URL", &url));
    assert_eq!(server.requests().len(), 0);
}
