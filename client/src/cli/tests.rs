//! Tests of the arguments, the environment and the prompt.

use std::io::Cursor;

use super::*;

/// Standard input as a stream; `None` is a terminal.
type Stdin = Option<Cursor<Vec<u8>>>;

const TERMINAL: Stdin = None;

fn stdin(content: impl Into<Vec<u8>>) -> Stdin {
    Some(Cursor::new(content.into()))
}

fn environment() -> Environment {
    Environment {
        base_url: Some("http://127.0.0.1:8080".into()),
        key: Some("sk-test".into()),
        home: Some("/home/x".into()),
    }
}

fn parse_with(
    line: &[&str],
    environment: &Environment,
    stdin: Stdin,
) -> Result<Command, UsageError> {
    let arguments = ["agent-cli"].iter().chain(line).map(OsString::from);
    parse(arguments, environment, stdin)
}

fn turn_of(line: &[&str]) -> Invocation {
    match parse_with(line, &environment(), TERMINAL).unwrap() {
        Command::Turn(invocation) => invocation,
        Command::Show(text) => panic!("{text}"),
    }
}

fn error_of(line: &[&str]) -> String {
    parse_with(line, &environment(), TERMINAL)
        .unwrap_err()
        .to_string()
}

#[test]
fn the_flags_of_the_first_case_give_a_normal_turn_with_partial_messages() {
    let turn = turn_of(&[
        "--print",
        "--bare",
        "--output-format",
        "stream-json",
        "--include-partial-messages",
        "--no-session-persistence",
        "--tools",
        "",
        "hi",
    ]);
    assert_eq!(turn.mode, Mode::Normal);
    assert_eq!(turn.partial_messages, PartialMessages::Included);
    assert_eq!(turn.prompt, "hi");
    assert_eq!(turn.system_prompt, None);
    assert_eq!(
        (turn.model.as_str(), turn.max_tokens, turn.max_retries),
        (DEFAULT_MODEL, DEFAULT_MAX_TOKENS, 0)
    );
}

#[test]
fn each_option_is_taken_over() {
    let turn = turn_of(&[
        "--print",
        "--safe-mode",
        "--system-prompt",
        "be brief",
        "--model",
        "m",
        "--max-tokens",
        "5",
        "--max-retries",
        "2",
        "hi",
    ]);
    assert_eq!(turn.mode, Mode::Safe);
    assert_eq!(turn.partial_messages, PartialMessages::Omitted);
    assert_eq!(turn.system_prompt.as_deref(), Some("be brief"));
    assert_eq!(
        (turn.model.as_str(), turn.max_tokens, turn.max_retries),
        ("m", 5, 2)
    );
}

#[test]
fn without_print_there_is_no_mode_to_run_in() {
    assert_eq!(
        error_of(&["hi"]),
        "only print mode exists: --print is needed"
    );
}

#[test]
fn bad_arguments_give_an_error_of_one_line() {
    let cases: [(&[&str], &str); 8] = [
        (
            &["--print", "--nonsense", "hi"],
            "unexpected argument '--nonsense' found",
        ),
        (
            &["--print", "--tools", "Bash", "hi"],
            "no tool exists, only \"\" can be selected",
        ),
        (
            &["--print", "--output-format", "text", "hi"],
            "invalid value 'text' for '--output-format <FORMAT>'",
        ),
        (&["--print", "--max-tokens", "0", "hi"], "0 is not in 1.."),
        (
            &["--print", "--max-retries", "11", "hi"],
            "11 is not in 0..=10",
        ),
        (
            &["--print", "--model", "", "hi"],
            "a value is required for '--model <NAME>'",
        ),
        (
            &["--print", "--system-prompt", "", "hi"],
            "a value is required for '--system-prompt <TEXT>'",
        ),
        (
            &["--print", "one", "two"],
            "unexpected argument 'two' found",
        ),
    ];
    for (line, expected) in cases {
        let message = error_of(line);
        assert!(message.contains(expected), "{line:?}: {message}");
        assert!(
            !message.contains('\n') && !message.starts_with("error"),
            "{message:?}"
        );
    }
}

#[test]
fn help_and_version_are_shown_and_are_no_errors() {
    for (flag, expected) in [
        ("--help", "--safe-mode"),
        ("--version", "agent-cli 2.1.177"),
    ] {
        match parse_with(&[flag], &Environment::default(), TERMINAL).unwrap() {
            Command::Show(text) => assert!(text.contains(expected), "{text}"),
            Command::Turn(turn) => panic!("{turn:?}"),
        }
    }
}

#[test]
fn the_prompt_is_read_from_standard_input_if_it_is_no_argument() {
    let command = parse_with(&["--print"], &environment(), stdin("from stdin\n")).unwrap();
    let Command::Turn(turn) = command else {
        panic!()
    };
    assert_eq!(turn.prompt, "from stdin\n");
}

#[test]
fn a_prompt_that_is_missing_blank_too_long_or_not_text_is_a_usage_error() {
    let prompt_error =
        |input: Vec<u8>| parse_with(&["--print"], &environment(), stdin(input)).unwrap_err();
    assert!(matches!(prompt_error(Vec::new()), UsageError::NoPrompt));
    assert!(matches!(
        prompt_error(b" \n".to_vec()),
        UsageError::NoPrompt
    ));
    assert!(matches!(
        prompt_error(vec![b'x'; MAX_PROMPT_BYTES + 1]),
        UsageError::PromptTooLong
    ));
    assert!(matches!(
        prompt_error(vec![0xff]),
        UsageError::PromptNotUtf8
    ));
    assert_eq!(
        error_of(&["--print"]),
        "a prompt is needed, as an argument or on standard input"
    );
    assert_eq!(
        error_of(&["--print", ""]),
        "a prompt is needed, as an argument or on standard input"
    );
}

fn environment_error(change: impl FnOnce(&mut Environment)) -> UsageError {
    let mut environment = environment();
    change(&mut environment);
    parse_with(&["--print", "hi"], &environment, TERMINAL).unwrap_err()
}

#[test]
fn each_missing_variable_is_named() {
    assert!(matches!(
        environment_error(|env| env.base_url = None),
        UsageError::NoBaseUrl
    ));
    assert!(matches!(
        environment_error(|env| env.key = None),
        UsageError::NoKey
    ));
    assert!(matches!(
        environment_error(|env| env.home = None),
        UsageError::NoHome
    ));
}

#[test]
fn a_base_url_that_is_not_plain_http_is_malformed() {
    for malformed in [
        "",
        "127.0.0.1:80",
        "https://127.0.0.1",
        "http://",
        "http://user@h",
        "http://u:p@h",
        "http://h/?q",
        "http://h/#f",
        "ftp://h",
        "http://h:99999",
        " http://h",
        "http://h\n",
        "unix:/x",
    ] {
        let error = environment_error(|env| env.base_url = Some(malformed.into()));
        assert!(matches!(error, UsageError::BaseUrl), "{malformed:?}");
    }
}

#[test]
fn a_malformed_key_or_home_is_a_usage_error_that_does_not_show_it() {
    let error = environment_error(|env| env.key = Some("secret key".into()));
    assert!(matches!(error, UsageError::Key));
    assert!(!error.to_string().contains("secret"));
    for home in ["", "relative"] {
        assert!(matches!(
            environment_error(|env| env.home = Some(home.into())),
            UsageError::Home
        ));
    }
}
