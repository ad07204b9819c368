//! Values parsed from valid profiles, key by key.

use model::case::{Device, Presence, Root, Source};
use model::profile::{Cases, ClientOption, Profile};

use super::built_in;
use crate::document::Document;
use crate::{PolicyError, profile, text};

/// Parses the reference profile with additional tables.
fn with(tables: &str) -> Result<Profile, PolicyError> {
    let source = Source::File("x.toml".into());
    let text = format!("{}\n{tables}", text("reference").unwrap());
    Document::from_bytes("x.toml".into(), source, text.into())?.profile()
}

#[test]
fn the_placeholders_of_the_reference_profile_are_replaced_on_parsing() {
    let profile = profile(&built_in("reference")).unwrap();
    assert_eq!(profile.files.state.unwrap(), ".agent/.agent.json");
    assert_eq!(
        profile.files.backup_prefix.unwrap(),
        ".agent/backups/.agent.json.backup."
    );
    assert!(profile.headers.message.contains(&"agent-beta".to_owned()));
    assert_eq!(profile.headers.beta_families[0].prefix, "agent-cli-");
    assert_eq!(profile.records.version_field, "agent_version");
    assert!(
        profile
            .records
            .init_fields
            .contains(&"agent_version".to_owned())
    );
    assert_eq!(profile.environment[0].value, "{base_url}");
    assert_eq!(profile.paths, []);
}

#[test]
fn every_option_of_a_profile_has_one_word() {
    let mut words: Vec<_> = ClientOption::ALL
        .iter()
        .map(|option| option.word())
        .collect();
    words.sort_unstable();
    words.dedup();
    assert_eq!(words.len(), ClientOption::ALL.len());
}

#[test]
fn expected_attempts_are_read_with_their_reasons_and_placeholders() {
    let parsed =
        with("[[attempts]]\ndestination = \"unix:/tmp/{app}.sock\"\nreason = \"its own helper\"\n");
    let [attempt] = <[_; 1]>::try_from(parsed.unwrap().attempts).unwrap();
    assert_eq!(attempt.destination.to_string(), "unix:/tmp/agent.sock");
    assert_eq!(attempt.reason, "its own helper");
    assert_eq!(profile(&built_in("reference")).unwrap().attempts, []);
}

#[test]
fn a_variable_may_have_a_value_for_each_case() {
    let variable = |case: &str, value: &str| {
        format!(
            "[[environment]]\nname = \"A\"\nvalue = \"{value}\"\ncases = [{case}]\nreason = \"x\"\n"
        )
    };
    let tables = [
        variable("\"case-a\", \"mine\"", "1"),
        variable("\"case-b\"", "2"),
    ];
    let environment = with(&tables.concat()).unwrap().environment;
    let cases: Vec<_> = environment.iter().map(|variable| &variable.cases).collect();
    let only = |names: &[&str]| Cases::Only(names.iter().map(|name| (*name).to_owned()).collect());
    let (a, b) = (only(&["case-a", "mine"]), only(&["case-b"]));
    assert_eq!(cases[..4], [&Cases::Every; 4]);
    assert_eq!(cases[4..], [&a, &b]);
}

#[test]
fn a_path_of_one_layout_may_be_absent_and_any_other_may_not() {
    let rule = |path: &str, more: &str| {
        format!("[[paths]]\npath = \"{path}\"\naccess = \"read\"\n{more}reason = \"x\"\n")
    };
    let tables = [
        rule("/opt/a", ""),
        rule("/opt/b", "if_present = false\n"),
        rule("/opt/c", "if_present = true\n"),
    ];
    let paths = with(&tables.concat()).unwrap().paths;
    let presence: Vec<_> = paths.iter().map(|rule| rule.presence).collect();
    let [required, of_one_layout] = [Presence::Required, Presence::IfPresent];
    assert_eq!(presence, [required, required, of_one_layout]);
}

#[test]
fn files_are_read_with_their_tree_and_their_placeholders() {
    let file = |list: &str, root: &str, path: &str| {
        format!("[[files.{list}]]\nin = \"{root}\"\npath = \"{path}\"\nreason = \"known\"\n")
    };
    let tables = [
        file("expected", "tmp", "{app}-{uid}"),
        // Equal paths in different directories are different files.
        file("expected", "home", "{app}-{uid}"),
        file("transient", "home", ".{app}/tmp.{pid}.{hex}"),
    ];
    let files = with(&tables.concat()).unwrap().files;
    let [tmp, home] = <[_; 2]>::try_from(files.expected).unwrap();
    assert_eq!((tmp.root, home.root), (Root::Tmp, Root::Home));
    assert!(tmp.path.matches("agent-1000"));
    // The first two are those of the reference client.
    let [_, _, transient] = <[_; 3]>::try_from(files.transient).unwrap();
    assert_eq!(transient.path.to_string(), ".agent/tmp.{pid}.{hex}");
    assert!(transient.path.matches(".agent/tmp.2.0a1b"));
    assert_eq!(transient.reason, "known");
}

#[test]
fn side_requests_are_read_with_their_keys() {
    let tables = "[[side_requests]]\nname = \"title\"\nmethod = \"POST\"\npath = \"/v1/{app}\"\n\
        with = [\"output_config.format\"]\nwithout = [\"tools\", \"stream\"]\nexpected = true\n\
        reason = \"known\"\n";
    let [title] = <[_; 1]>::try_from(with(tables).unwrap().side_requests).unwrap();
    assert_eq!(
        (title.name.as_str(), title.path.as_str()),
        ("title", "/v1/agent")
    );
    assert_eq!((title.method.as_str(), title.expected), ("POST", true));
    assert_eq!(title.with, ["output_config.format".parse().unwrap()]);
    assert_eq!(title.without.len(), 2);
}

#[test]
fn the_real_client_is_given_one_device_and_settings_that_plain_leaves_out() {
    let profile = profile(&built_in("claude-code")).unwrap();
    assert_eq!(profile.devices, [Device::Urandom]);
    let settings = |case: &str| {
        let variables = profile.environment.iter();
        let of_case = variables
            .filter(|variable| variable.cases != Cases::Every && variable.cases.include(case));
        Vec::from_iter(of_case.map(|variable| variable.name.as_str()))
    };
    let both = [
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
        "CLAUDE_CONFIG_DIR",
    ];
    assert_eq!(
        settings("case-a"),
        [&both[..], &["ANTHROPIC_MODEL"]].concat()
    );
    assert_eq!(
        settings("case-b"),
        [&both[..], &["HTTP_PROXY", "NO_PROXY"]].concat()
    );
    assert_eq!(settings("mine"), [""; 0]);
}

#[test]
fn the_real_client_is_excused_for_two_directories_and_for_nothing_that_it_sends_or_tries() {
    let profile = profile(&built_in("claude-code")).unwrap();
    let paths = profile.files.expected.iter();
    let paths: Vec<_> = paths
        .map(|file| (file.root, file.path.to_string()))
        .collect();
    let expected = [
        (Root::Home, ".claude/sessions".to_owned()),
        (Root::Tmp, "claude-{uid}".to_owned()),
    ];
    assert_eq!(paths, expected);
    assert!(
        profile
            .side_requests
            .iter()
            .all(|request| !request.expected)
    );
    assert_eq!(profile.attempts, []);
    let mut paths = profile.paths.iter();
    assert!(paths.all(|rule| rule.presence == Presence::IfPresent));
}
