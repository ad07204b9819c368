//! Command lines of the reference client in the built-in cases.

use std::ffi::OsString;
use std::path::Path;

use model::case::{Invocation, Switch};
use model::profile::{Cases, ClientOption, Profile, Settings, Surroundings, Variable, filled};

use crate::{Reference, case, profile};

fn reference() -> Profile {
    profile(&Reference::BuiltIn("reference".into())).unwrap()
}

fn invocation(name: &str) -> Invocation {
    case(&Reference::BuiltIn(name.into())).unwrap().invocation
}

#[test]
fn case_b_is_spelt_in_the_profiles_order() {
    let words = reference().command_line(&invocation("case-b")).unwrap();
    let expected = [
        "--print",
        "--bare",
        "--output-format",
        "stream-json",
        "--include-partial-messages",
        "--no-session-persistence",
        "--tools",
        "",
        "--safe-mode",
        "--system-prompt",
        "You are a synthetic test agent. Answer in plain text.",
        "Reply with one short sentence.",
    ];
    assert_eq!(words, expected);
}

#[test]
fn what_the_case_does_not_ask_for_is_not_said() {
    let words = reference().command_line(&invocation("case-a")).unwrap();
    assert!(
        !words
            .iter()
            .any(|word| word == "--safe-mode" || word == "--system-prompt" || word == "--model")
    );
}

#[test]
fn a_prompt_that_looks_like_a_placeholder_is_passed_as_it_is() {
    let mut invocation = invocation("case-a");
    invocation.prompt = "{value} {home}".into();
    assert_eq!(
        reference()
            .command_line(&invocation)
            .unwrap()
            .last()
            .unwrap(),
        "{value} {home}"
    );
}

#[test]
fn an_option_without_words_is_an_error_by_name() {
    let mut profile = reference();
    profile
        .arguments
        .retain(|argument| argument.option != ClientOption::Switch(Switch::SafeMode));
    let error = profile.command_line(&invocation("case-b")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the profile `reference` has no words for `safe-mode`"
    );
    profile.command_line(&invocation("case-a")).unwrap();
}

fn surroundings() -> Surroundings<'static> {
    Surroundings {
        base_url: "http://127.0.0.1:1",
        credential: "secret",
        home: Path::new("/home/agent"),
        tmp: Path::new("/scratch"),
    }
}

#[test]
fn the_environment_is_the_profiles_and_nothing_else() {
    let profile = reference();
    let variables = profile.variables(["case-b"; 2], Settings::OfCase);
    let environment = filled(variables, surroundings());
    let pairs: Vec<_> = environment
        .iter()
        .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
        .collect();
    let expected = [
        ("AGENT_BASE_URL", "http://127.0.0.1:1"),
        ("AGENT_API_KEY", "secret"),
        ("HOME", "/home/agent"),
        ("TMPDIR", "/scratch"),
    ];
    assert_eq!(pairs, expected);
}

/// Reference profile with one more variable for some cases.
fn with_setting(cases: &[&str]) -> Profile {
    let mut profile = reference();
    profile.environment.push(Variable {
        name: "MODEL".to_owned(),
        value: "{home}/small".to_owned(),
        cases: Cases::Only(cases.iter().map(|case| (*case).to_owned()).collect()),
        reason: "as observed".to_owned(),
    });
    profile
}

#[test]
fn a_setting_is_in_force_in_its_cases_and_in_no_other() {
    let value = |case, settings| {
        let profile = with_setting(&["case-a", "mine"]);
        let environment = filled(profile.variables([case; 2], settings), surroundings());
        let found = environment.into_iter().find(|(name, _)| name == "MODEL");
        found.map(|(_, value)| value)
    };
    for case in ["case-a", "mine"] {
        let expected = Some(OsString::from("/home/agent/small"));
        assert_eq!(value(case, Settings::OfCase), expected, "{case}");
        assert_eq!(value(case, Settings::Plain), None, "{case}");
    }
    assert_eq!(value("case-b", Settings::OfCase), None);
}

#[test]
fn plain_leaves_out_the_settings_of_the_case_and_names_them() {
    let profile = with_setting(&["case-a"]);
    let names = |case, settings| {
        let left_out = profile.left_out([case; 2], settings);
        Vec::from_iter(left_out.map(|variable| variable.name.as_str()))
    };
    assert_eq!(names("case-a", Settings::Plain), ["MODEL"]);
    assert_eq!(names("case-a", Settings::OfCase), [""; 0]);
    assert_eq!(names("case-b", Settings::Plain), [""; 0]);
    assert_eq!(profile.variables(["case-a"; 2], Settings::Plain).count(), 4);
}

#[test]
fn copy_has_the_settings_of_its_case_but_for_its_own() {
    let mut profile = with_setting(&["case-a"]);
    let values = |profile: &Profile, names| {
        let set = profile.variables(names, Settings::OfCase);
        let settings = set.filter(|variable| variable.name == "MODEL");
        Vec::from_iter(settings.map(|variable| variable.value.clone()))
    };
    let copy = ["mine", "case-a"];
    assert_eq!(values(&profile, copy), ["{home}/small"]);
    let own = Variable {
        value: "large".to_owned(),
        cases: Cases::Only(vec!["mine".to_owned()]),
        ..profile.environment[4].clone()
    };
    profile.environment.push(own);
    assert_eq!(values(&profile, copy), ["large"]);
    assert_eq!(values(&profile, ["case-a"; 2]), ["{home}/small"]);
    let known = profile.cases_with_settings();
    assert_eq!(Vec::from_iter(known), ["case-a", "mine"]);
}
