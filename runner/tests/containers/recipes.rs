//! The recipes of the README, extracted from it: each is complete, and its commands work as documented.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use yaml_rust2::{Yaml, YamlLoader};

use crate::engine::IMAGE;
use crate::place::Place;
use crate::text::{blocks_of, section};

mod github;
mod gitlab;
mod kubernetes;
mod lock;
mod shell;

const SECTION: &str = "Containers and CI";
/// Unprivileged user id of CI jobs; the job's group is the engine's.
const JOB_USER: u32 = 60017;

/// The only recipe with this key at its top.
#[track_caller]
fn recipe(key: &str) -> Yaml {
    recipe_in(SECTION, key)
}

/// The only recipe of a section with this key at its top.
#[track_caller]
fn recipe_in(heading: &str, key: &str) -> Yaml {
    let mut found: Vec<Yaml> = blocks_of(section(heading), "yaml")
        .iter()
        .flat_map(|text| YamlLoader::load_from_str(text).unwrap())
        .filter(|recipe| !recipe[key].is_badvalue())
        .collect();
    assert_eq!(found.len(), 1, "recipes with {key}");
    found.remove(0)
}

/// The words of a list.
#[track_caller]
fn words(list: &Yaml) -> Vec<&str> {
    let list = list.as_vec().unwrap_or_else(|| panic!("no list: {list:?}"));
    list.iter().map(|word| word.as_str().unwrap()).collect()
}

/// The names in a mapping.
#[track_caller]
fn keys(mapping: &Yaml) -> Vec<&str> {
    let mapping = mapping
        .as_hash()
        .unwrap_or_else(|| panic!("no mapping: {mapping:?}"));
    mapping.keys().map(|key| key.as_str().unwrap()).collect()
}

/// A client that passes: the reference client as a separate program.
fn good_client() -> std::path::PathBuf {
    Path::new(env!("CARGO_BIN_EXE_runner")).with_file_name("agent-cli")
}

/// A client that fails: it does not speak the protocol.
fn bad_client() -> std::path::PathBuf {
    good_client().with_file_name("examples/outgoing-client")
}

/// A clone that belongs to the job's user and has this client in it.
fn clone_with(client: &Path) -> Place {
    let place = Place::new();
    fs::copy(client, place.path().join("my-client")).unwrap();
    place
}

/// Runs a recipe's script in a clone, with this shell and the locally built image.
fn script(shell: &[&str], script: &str, clone: &Place) -> Output {
    Command::new(shell[0])
        .args(&shell[1..])
        .arg(script)
        .current_dir(clone.path())
        .env("RUNNER_IMAGE", IMAGE)
        .env(
            "GITHUB_STEP_SUMMARY",
            clone.path().join("summary-of-the-job"),
        )
        .uid(JOB_USER)
        .gid(JOB_USER)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

#[test]
fn there_are_three_recipes() {
    assert_eq!(blocks_of(section(SECTION), "yaml").len(), 3);
    recipe("jobs");
    recipe("case-b");
    recipe("kind");
}
