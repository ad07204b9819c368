//! Written cases and changes: each parses to the rules that it was written from.

use model::case::change::Change;
use model::case::client::{InlineClient, ToolchainRule};
use model::case::expect::{
    Auth, BodyField, CacheControl, ExpectedExit, FieldRule, JsonKind, Order, ProfileRequest,
    ProgramRule, RecordRule, RecordRules, Records, RequestRule, Requests, ValueRule,
};
use model::case::{Case, Count, Expectations, Root, Source, Tier};
use model::evidence::fixture::rule;
use model::profile::{ExpectedAttempt, ExpectedFile, Files};
use proptest::prelude::*;

use crate::Reference;

use super::super::document::Document;
use super::super::write::{self, NewCase};

const REASON: &str = "seen on 2026-11-30, not reviewed";

fn parse(text: &str) -> Case {
    let source = Source::File("x.toml".into());
    let document = Document::from_bytes("x.toml".into(), source, text.into()).unwrap();
    let case = document.case();
    case.unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn file(path: &str) -> ExpectedFile {
    ExpectedFile {
        root: Root::Work,
        path: path.parse().unwrap(),
        mode: Some(0o640),
        count: Count { from: 2, to: None },
        may_hold_credential: false,
        reason: REASON.to_owned(),
    }
}

fn program(path: &str) -> ProgramRule {
    ProgramRule {
        program: path.parse().unwrap(),
        reason: REASON.to_owned(),
    }
}

fn attempt(destination: &str) -> ExpectedAttempt {
    ExpectedAttempt {
        destination: destination.parse().unwrap(),
        reason: REASON.to_owned(),
    }
}

/// A rule with each key.
fn request() -> RequestRule {
    let mut request = rule("turn", "POST", "/v{digits}/messages");
    request.profile = Some(ProfileRequest::Message);
    request.queries = vec!["beta=true".to_owned()];
    request.auth = Auth::Header("x-api-key".to_owned());
    request.headers.allowed = Some(vec!["host".to_owned()]);
    request.headers.required = vec!["accept".to_owned()];
    request.headers.forbidden = vec!["cookie".to_owned()];
    request.user_agent = Some("{cli_name}/{version} (\"x\")".to_owned());
    let field = |kind| BodyField {
        name: "a key".to_owned(),
        kind,
    };
    request.body.fields = Some(vec![field(Some(JsonKind::Null))]);
    request.body.user_blocks = Some(2);
    request.body.system_blocks = Some(3);
    request.body.cache_control = Some(CacheControl {
        system_count: 1,
        user: vec![1, 2],
    });
    (request.body.no_tools, request.body.stream) = (true, true);
    request
}

/// A rule with each kind of value; many are a table of their own.
fn record(fields: usize) -> RecordRule {
    let field = |(pointer, value): (&str, ValueRule)| FieldRule {
        pointer: pointer.to_owned(),
        value,
    };
    let text = |text: &str| ValueRule::Text(text.parse().unwrap());
    let number = |number: f64| ValueRule::Number(serde_json::Number::from_f64(number).unwrap());
    let values = [
        ("/a~1b\u{202e}", text("\"{uuid}\"\\ \u{7f}\n##")),
        ("/n", number(-1.5)),
        ("/z", ValueRule::Boolean(false)),
        ("/zl", ValueRule::List(vec![text("x"), number(1e300)])),
        ("/zt", ValueRule::Kinds(vec![JsonKind::Null])),
        (
            "/zu",
            ValueRule::Kinds(vec![JsonKind::Null, JsonKind::Array]),
        ),
    ];
    RecordRule {
        conditions: vec![field(("/type", text("result")))],
        count: Count::ONCE,
        fields: values.into_iter().map(field).take(fields).collect(),
        reason: REASON.to_owned(),
    }
}

fn expectations() -> Expectations {
    let mut names = rule("get-1", "GET", "/");
    names.body.fields = Some(vec![BodyField {
        name: "model".to_owned(),
        kind: None,
    }]);
    Expectations {
        requests: Some(Requests {
            order: Order::Any,
            rules: vec![request(), names],
        }),
        records: Some(Records {
            stream: None,
            rules: Some(RecordRules {
                order: Order::Listed,
                rules: vec![record(0), record(2), record(6)],
            }),
        }),
        files: Some(Files {
            expected: vec![file("a \"{alnum}\"/\u{200b}")],
            ..Files::default()
        }),
        exit: Some(ExpectedExit::Code(3)),
        programs: Some(vec![program("/usr/bin/python3.{digits}")]),
        attempts: vec![attempt("name:api.example.com")],
        ..Expectations::default()
    }
}

#[test]
fn written_case_parses_to_its_expectations() {
    let client = InlineClient {
        program: "/bin/true".to_owned(),
        arguments: vec!["a\tb".to_owned()],
        prompt: None,
        cwd: None,
        project: Some("../..".to_owned()),
        stdin: Some("{project}/in".to_owned()),
        toolchain: Some(ToolchainRule::Follow),
        environment: Vec::new(),
        paths: Vec::new(),
    };
    let expect = expectations();
    let like = crate::case(&Reference::BuiltIn("case-b".to_owned())).unwrap();
    let mut limits = like.sandbox.limits;
    limits.processes = 7;
    let text = write::case(&NewCase {
        name: "mine",
        about: &[],
        client: &client,
        exec: &[Root::Tmp],
        scenario: Some("long-text"),
        tiers: &[Tier::Namespace],
        limits: &limits,
        expect: &expect,
        withheld: &Expectations::default(),
        refused: &["a\nb".to_owned()],
        records_not_judged: None,
    });
    let case = parse(&text);
    assert_eq!(case.expect, expect);
    assert_eq!(case.client, Some(client));
    let sandbox = &case.sandbox;
    assert_eq!(sandbox.limits, limits);
    assert_eq!(
        (&sandbox.exec[..], &sandbox.tiers[..]),
        (&[Root::Tmp][..], &[Tier::Namespace][..])
    );
    assert!(
        text.chars().all(|c| c == '\n' || !c.is_control()),
        "{text:?}"
    );
    assert!(!text.contains(['\u{202e}', '\u{200b}']), "{text:?}");
}

#[test]
fn changes_are_written_below_their_places() {
    let own = expectations();
    let written = |change: Change| write::changes(&own, &[change]).unwrap();
    for (change, comment) in [
        (
            Change::AddRequests(0, vec![request()]),
            "# Put before the rule \"turn\":",
        ),
        (
            Change::AddRequests(2, vec![request()]),
            "# Add at the end of the case:",
        ),
        (
            Change::ReplaceRequest(1, Box::new(request())),
            "# Put in place of the rule \"get-1\":",
        ),
        (
            Change::AddRecords(1, vec![record(6)]),
            "# Put before the rule with where = { \"/type\" = \"result\" }:",
        ),
        (
            Change::ReplaceRecord(0, record(2)),
            "# Put in place of the rule with where = { \"/type\" = \"result\" }:",
        ),
        (Change::AddFile(file("a")), "# Add at the end of the case:"),
        (
            Change::ReplaceFile(0, file("a")),
            "# Put in place of the rule for \"a \\\"{alnum}\\\"/\\U0000200b\" in work:",
        ),
        (
            Change::AddProgram(program("/bin/a")),
            "# Add at the end of the case:",
        ),
        (
            Change::AddAttempt(attempt("unix:/a")),
            "# Add at the end of the case:",
        ),
        (
            Change::ReplaceExit(ExpectedExit::Code(9)),
            "# Put in place of the table [expect.exit]:",
        ),
    ] {
        let text = written(change);
        let (first, rest) = text.split_once('\n').unwrap();
        assert_eq!(first, comment);
        assert!(rest.starts_with('['), "{text}");
    }
    let both = [
        Change::AddFile(file("a")),
        Change::AddProgram(program("/b")),
    ];
    let text = write::changes(&own, &both).unwrap();
    assert_eq!(text.matches('#').count(), 1, "{text}");
}

#[test]
fn change_that_no_case_can_have_is_not_written() {
    for path in ["a\nb", "../a", "/a", "a//b"] {
        let change = Change::AddFile(file(path));
        assert_eq!(write::changes(&expectations(), &[change]), None, "{path}");
    }
    let twice = [Change::AddFile(file("a")), Change::AddFile(file("a"))];
    assert_eq!(write::changes(&expectations(), &twice), None);
}

proptest! {
    /// Text of a client can end no string and begin no line.
    #[test]
    fn any_path_is_on_its_own_line(path in "[^{/]{1,20}") {
        let change = Change::AddFile(file(&path));
        if let Some(text) = write::changes(&Expectations::default(), &[change]) {
            prop_assert_eq!(text.lines().count(), 7, "{}", text);
            let escaped: Vec<String> = text.lines().map(model::escape::visible).collect();
            prop_assert_eq!(escaped.join("\n") + "\n", text);
        } else {
            prop_assert!(path.chars().any(char::is_control) || [".", ".."].contains(&&*path), "{:?}", path);
        }
    }
}
