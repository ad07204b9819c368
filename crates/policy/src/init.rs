//! The files that `runner policy init` prints: right as they are, each key explained, what is optional commented out.

use std::path::{Path, PathBuf};

use model::quote::shown_path;

use super::values;
use crate::elf_deps::ElfDeps;

const CASE: &str = include_str!("init/case.toml");
const PROFILE: &str = include_str!("init/profile.toml");

/// What the templates are named.
const CASE_NAME: &str = "\"my-case\"";
const PROFILE_NAME: &str = "\"my-client\"";

/// What the profile names the program.
const PROGRAM: &str = "program = \"agent-cli\"";

/// The name of a policy, a client or a program: letters, digits, `.`, `_` and `-`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyName(String);

impl PolicyName {
    /// `None` where the text is no such name.
    pub fn parse(text: &str) -> Option<Self> {
        values::is_name(text).then(|| Self(text.to_owned()))
    }
}

/// A case of this name.
pub fn case(name: &PolicyName) -> String {
    CASE.replacen(CASE_NAME, &format!("\"{}\"", name.0), 1)
}

/// A profile of this name, with what its program needs where that is known.
pub fn profile(name: &PolicyName, needs: Option<&ElfDeps>) -> String {
    let mut text = PROFILE.replacen(PROFILE_NAME, &format!("\"{}\"", name.0), 1);
    if let Some(needs) = needs {
        if let Some(program) = needs.name().and_then(PolicyName::parse) {
            text = text.replacen(PROGRAM, &format!("program = \"{}\"", program.0), 1);
        }
        text.push('\n');
        text.push_str(&rules(needs));
    }
    text
}

/// The rules for what a program needs, each with its reason; what cannot be written as a rule is said in a comment.
fn rules(needs: &ElfDeps) -> String {
    let Some(loader) = &needs.loader else {
        return "# The program is static: it needs no path of the host to start.\n".to_owned();
    };
    let mut text = String::from(
        "# What the program's headers ask for. What it opens later stands in no header: a run shows it.\n",
    );
    text.push_str(&rule(loader, "the loader that the program names"));
    for library in &needs.libraries {
        text.push_str(&rule(
            &library.path,
            &format!("{} needs it", library.needed_by),
        ));
    }
    for missing in &needs.missing {
        text.push_str(&format!(
            "\n# Not found: {}, which {} needs.\n",
            missing.name, missing.needed_by
        ));
    }
    text.push_str(&library_path(&needs.directories));
    text
}

fn rule(path: &Path, reason: &str) -> String {
    match rule_text(path) {
        Some(path) => format!(
            "\n[[paths]]\npath = {path}\naccess = \"read-execute\"\nreason = {}\n",
            quoted(reason)
        ),
        None => format!(
            "\n# Not to be shown: {}. Copy it to another place. ({reason})\n",
            shown_path(path)
        ),
    }
}

/// The loader inside has no configuration: where the host's finds something by it, a variable says so.
fn library_path(directories: &[PathBuf]) -> String {
    let texts: Vec<&str> = directories
        .iter()
        .filter(|directory| rule_text(directory).is_some())
        .filter_map(|directory| directory.to_str())
        .collect();
    if texts.is_empty() {
        return String::new();
    }
    format!(
        "\n[[environment]]\nname = \"LD_LIBRARY_PATH\"\nvalue = {}\n\
         reason = \"the loader does not look there by itself\"\n",
        quoted(&texts.join(":"))
    )
}

/// The path as a TOML string, where a path rule may name it. Braces could be taken for a placeholder.
fn rule_text(path: &Path) -> Option<String> {
    let text = path.to_str()?;
    let plain = !text.contains(|c: char| c.is_control() || c == '{');
    (plain && values::is_host_path(text)).then(|| quoted(text))
}

/// A TOML basic string: JSON escapes the same characters in the same way, but for controls, which are not here.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
