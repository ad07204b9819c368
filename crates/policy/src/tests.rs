//! Built-in policies, and references that are not a policy of the wanted kind.

mod command_line;
mod deviations;
mod embedded;
mod init;
mod outline;
mod profiles;
mod properties;
mod reading;
mod reference;
mod schema;
mod write;

use std::time::Duration;

use model::case::expect::{CacheControl, JsonKind};
use model::case::{Source, Switch, Tier};

use super::document::Document;
use super::*;

fn built_in(name: &str) -> Reference {
    Reference::BuiltIn(name.into())
}

fn parse(text: &str) -> Result<Entry, PolicyError> {
    let source = Source::File("x.toml".into());
    Document::from_bytes("x.toml".into(), source, text.into())?.entry()
}

#[test]
fn every_built_in_parses_under_its_own_name_and_kind() {
    let entries = list().unwrap();
    assert_eq!(entries.len(), builtin::ALL.len());
    for (entry, builtin) in entries.iter().zip(builtin::ALL) {
        assert_eq!(
            (entry.name.as_str(), entry.kind),
            (builtin.name, builtin.kind)
        );
        assert!(!entry.summary.is_empty());
        assert_eq!(entry.sha256.len(), 64);
    }
}

#[test]
fn case_a_is_the_core_smoke_test() {
    let case = case(&built_in("case-a")).unwrap();
    assert_eq!(case.origin.source, Source::BuiltIn);
    assert_eq!(case.invocation.switches, Switch::ALL[..6]);
    assert_eq!(
        (case.invocation.system_prompt, case.invocation.model),
        (None, None)
    );
    assert_eq!(
        case.stub,
        toml::from_str("text = \"This is a synthetic answer.\"").unwrap()
    );
    let requests = case.expect.requests.unwrap();
    let [preflight, message] = requests.rules.as_slice() else {
        panic!("two rules");
    };
    assert_eq!(preflight.count.words(), "at most once");
    assert_eq!(message.body.cache_control, None);
    let fields = message.body.fields.as_ref().unwrap();
    assert!(!fields.iter().any(|field| field.name == "output_config"));
}

#[test]
fn case_b_adds_safe_mode_a_system_prompt_and_the_marks() {
    let (a, b) = (
        case(&built_in("case-a")).unwrap(),
        case(&built_in("case-b")).unwrap(),
    );
    assert_eq!(b.invocation.switches, Switch::ALL);
    assert_eq!(b.invocation.prompt, a.invocation.prompt);
    assert!(b.invocation.system_prompt.is_some());
    assert_eq!(b.sandbox, a.sandbox);
    let [a, b] = [a, b].map(|case| case.expect.requests.unwrap().rules);
    assert_eq!(b[0].count.words(), "never");
    let marks = CacheControl {
        system_count: 2,
        user: vec![2],
    };
    assert_eq!(b[1].body.cache_control, Some(marks));
    let [expected, mut fields] = [&a, &b].map(|rules| rules[1].body.fields.clone().unwrap());
    let own = ("output_config", Some(JsonKind::Object));
    fields.retain(|field| (field.name.as_str(), field.kind) != own);
    assert_eq!(fields, expected);
}

#[test]
fn the_limits_of_the_built_in_cases_are_the_agreed_ones() {
    let rules = case(&built_in("case-b")).unwrap().sandbox;
    assert_eq!(rules.tiers, Tier::ALL);
    let limits = rules.limits;
    assert_eq!(
        (limits.timeout, limits.cpu),
        (Duration::from_secs(60), Duration::from_secs(60))
    );
    assert_eq!((limits.home_bytes, limits.home_files), (256 << 20, 20_000));
    assert_eq!((limits.memory_bytes, limits.processes), (4 << 30, 512));
    assert_eq!((limits.open_files, limits.file_bytes), (4096, 64 << 20));
    assert_eq!(
        (limits.output_bytes, limits.body_bytes),
        (16 << 20, 8 << 20)
    );
    assert_eq!((limits.requests, limits.connections), (1000, 1000));
}

#[test]
fn host_paths_are_absolute_plain_and_none_that_is_never_shown() {
    let rule = |path: &str| {
        let rule = format!(
            "[[sandbox.paths]]\npath = \"{path}\"\naccess = \"read\"\nreason = \"test\"\n\n[stub]"
        );
        parse(&text("case-a").unwrap().replacen("[stub]", &rule, 1))
    };
    rule("/usr/lib/node").unwrap();
    for path in ["usr", "", "/usr/", "/usr//lib", "/usr/../etc", "/./usr"] {
        let error = rule(path).unwrap_err().to_string();
        assert!(
            error.contains("`sandbox.paths.path`: expected an absolute path"),
            "{error}"
        );
    }
    for path in [
        "/",
        "/proc/self",
        "/sys",
        "/dev/null",
        "/run/docker.sock",
        "/var/run/x",
        "/tmp",
    ] {
        let error = rule(path).unwrap_err().to_string();
        assert!(
            error.contains("expected a path that may be shown to the client"),
            "{error}"
        );
    }
}

#[test]
fn a_name_or_kind_that_is_not_there_is_said_with_what_is() {
    let error = case(&built_in("case-c")).unwrap_err();
    assert_eq!(error.to_string(), "no built-in case is named `case-c`");
    assert!(
        error.hint().contains("`case-a`, `case-b`") && !error.hint().contains("reference"),
        "{}",
        error.hint()
    );
    assert_eq!(
        text("x\u{1b}").unwrap_err().to_string(),
        r"no built-in policy is named `x\u{1b}`"
    );
}

#[test]
fn names_and_files_are_told_apart_by_their_looks() {
    assert_eq!(
        Reference::parse("reference".as_ref()),
        built_in("reference")
    );
    for file in ["./reference", "mine.toml", "/a/b"] {
        assert_eq!(
            Reference::parse(file.as_ref()),
            Reference::File(file.into())
        );
    }
}

#[test]
fn hidden_tree_is_known_by_each_spelling() {
    for hidden in [
        "/",
        "//",
        "/proc",
        "/proc/1",
        "//proc/1",
        "/./proc",
        "/proc/",
        "/home",
        "/home/",
        "/etc",
        "/home/sandbox",
        "/home/sandbox/x",
        "/tmp",
    ] {
        assert!(!crate::may_be_shown(Path::new(hidden)), "{hidden}");
    }
    for shown in [
        "/usr",
        "/proc2",
        "/procs/1",
        "/etc/ssl",
        "/home/me",
        "/tmp/x",
        "/home/sandbox2",
    ] {
        assert!(crate::may_be_shown(Path::new(shown)), "{shown}");
    }
}
