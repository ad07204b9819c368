//! Variables that a profile sets only in some cases, and a run that omits them.

use serde_json::{Value, json};

use crate::kit::{Done, Run};
use crate::needs_sandbox;

/// A variable with two values, each in one case.
const MODEL: &str = r#"
[[environment]]
name = "AGENT_MODEL"
value = "small"
cases = ["case-a"]
reason = "as in case A"
[[environment]]
name = "AGENT_MODEL"
value = "{home}/large"
cases = ["case-b"]
reason = "as in case B"
"#;

fn run(run: Run) -> Run {
    run.knowing(MODEL).deviating("tell-surroundings")
}

/// Returns the value of the variable, as the client printed it.
fn model(done: &Done) -> Option<&str> {
    done.assert_passed();
    let told = done.report["evidence"]["stderr"]["tail"].as_str().unwrap();
    let mut lines = told.lines();
    lines.find_map(|line| line.strip_prefix("variable AGENT_MODEL="))
}

#[test]
fn a_variable_is_set_in_its_cases_and_plain_leaves_it_out() {
    needs_sandbox!();
    assert_eq!(model(&run(Run::case_a()).json()), Some("small"));
    let large = Some("/home/sandbox/large");
    assert_eq!(model(&run(Run::case_b()).json()), large);
    assert_eq!(model(&run(Run::case_a()).argument("--plain").json()), None);
    assert_eq!(model(&run(Run::case_b()).argument("--plain").json()), None);
}

#[test]
fn renamed_copy_keeps_the_settings_of_its_case() {
    needs_sandbox!();
    let renamed = || Run::changed_case("case-b", "name = \"case-b\"", "name = \"mine\"");
    let large = Some("/home/sandbox/large");
    assert_eq!(model(&run(renamed()).json()), large);
    assert_eq!(model(&run(renamed()).argument("--plain").json()), None);
}

#[test]
fn case_that_no_setting_means_is_refused() {
    let head = "name = \"case-b\"\n# Profile settings for this case also apply to a copy under another name.\nlike = \"case-b\"";
    let alone = || run(Run::changed_case("case-b", head, "name = \"mine\""));
    let refused = alone().output();
    assert_eq!(refused.status.code(), Some(2));
    let said = String::from_utf8(refused.stderr).unwrap();
    let wanted = "the profile `reference` has settings for other cases, not for `mine`";
    assert!(said.contains(wanted), "{said}");
    let hint = "add like = \"case-a\" or like = \"case-b\" to the case, or run with --plain";
    assert!(said.contains(hint), "{said}");
    needs_sandbox!();
    assert_eq!(model(&alone().argument("--plain").json()), None);
}

/// `[name, value, scope]` of the settings under `key`.
fn settings(done: &Done, key: &str) -> Vec<Value> {
    let settings = done.report["client"][key].as_array().unwrap();
    let row = |one: &Value| json!([one["name"], one["value"], one["scope"]]);
    settings.iter().map(row).collect()
}

#[test]
fn settings_are_reported_as_the_profile_spells_them_and_those_left_out_apart() {
    needs_sandbox!();
    let always = [
        json!(["AGENT_BASE_URL", "{base_url}", "always"]),
        json!(["AGENT_API_KEY", "{credential}", "always"]),
        json!(["HOME", "{home}", "always"]),
        json!(["TMPDIR", "{tmp}", "always"]),
    ];
    let of_case = [json!(["AGENT_MODEL", "{home}/large", "case"])];
    let done = run(Run::case_b()).json();
    assert_eq!(settings(&done, "settings")[..4], always);
    assert_eq!(settings(&done, "settings")[4..], of_case);
    assert_eq!(settings(&done, "left_out"), [Value::Null; 0]);
    let names = done.report["client"]["env_names"].as_array().unwrap();
    assert_eq!(names.last().unwrap(), "AGENT_MODEL");
    let plain = run(Run::case_b()).argument("--plain").json();
    assert_eq!(settings(&plain, "settings"), always);
    assert_eq!(settings(&plain, "left_out"), of_case);
}

#[test]
fn people_are_told_of_the_settings_and_of_those_left_out() {
    needs_sandbox!();
    let told = |run: Run| String::from_utf8(run.output().stdout).unwrap();
    let with = told(run(Run::case_b()));
    let line = "  | this case  AGENT_MODEL={home}/large: as in case B";
    assert!(with.lines().any(|one| one == line), "{with}");
    let plain = told(run(Run::case_b()).argument("--plain"));
    let line = "  | left out by --plain  AGENT_MODEL={home}/large: as in case B";
    assert!(plain.lines().any(|one| one == line), "{plain}");
    assert!(!plain.contains("this case"), "{plain}");
}
