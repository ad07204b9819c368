//! Templates of `runner policy init`: valid files with an explanation of each key; optional keys are commented out.

use std::path::{Path, PathBuf};

use model::quote::shown_path;

use super::schema::MAX_NAME_CHARS;
use super::values;
use crate::elf_deps::ElfDeps;

const CASE: &str = include_str!("init/case.toml");
const PROFILE: &str = include_str!("init/profile.toml");

/// Placeholder names in the templates.
const CASE_NAME: &str = "\"my-case\"";
const PROFILE_NAME: &str = "\"my-client\"";

/// Name of the program in the template of a profile.
const PROGRAM: &str = "program = \"agent-cli\"";

/// Name of a policy, a client or a program: 1 to 64 letters, digits, `.`, `_` and `-`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyName(String);

impl PolicyName {
    /// Parses a name. Returns `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        values::is_name(text).then(|| Self(text.to_owned()))
    }

    /// Makes a name of any text: `-` replaces other characters, and `my-case` a text that leaves no name.
    pub fn nearest(text: &str) -> Self {
        let fitting = |c| if values::is_in_names(c) { c } else { '-' };
        let name: String = text.chars().map(fitting).take(MAX_NAME_CHARS).collect();
        Self::parse(&name).unwrap_or_else(|| Self("my-case".to_owned()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Returns the text of a case with this name.
pub fn case(name: &PolicyName) -> String {
    CASE.replacen(CASE_NAME, &format!("\"{}\"", name.0), 1)
}

/// Returns the text of a profile with this name, and with path rules for the libraries of its program, if known.
pub fn profile(name: &PolicyName, deps: Option<&ElfDeps>) -> String {
    let mut text = PROFILE.replacen(PROFILE_NAME, &format!("\"{}\"", name.0), 1);
    if let Some(deps) = deps {
        if let Some(program) = deps.name().and_then(PolicyName::parse) {
            text = text.replacen(PROGRAM, &format!("program = \"{}\"", program.0), 1);
        }
        text.push('\n');
        text.push_str(&rules(deps));
    }
    text
}

/// Writes a path rule with a reason for each library, or a comment for a library that no rule can name.
fn rules(deps: &ElfDeps) -> String {
    let Some(loader) = &deps.loader else {
        return "# The program is static: it needs no path of the host to start.\n".to_owned();
    };
    let mut text = String::from(
        "# Libraries that the program's headers name. A run shows those that it opens later.\n",
    );
    text.push_str(&rule(loader, "the loader that the program names"));
    for library in &deps.libraries {
        text.push_str(&rule(
            &library.path,
            &format!("{} needs it", library.needed_by),
        ));
    }
    for missing in &deps.missing {
        text.push_str(&format!(
            "\n# Not found: {}, which {} needs.\n",
            missing.name, missing.needed_by
        ));
    }
    text.push_str(&library_path(&deps.directories));
    text
}

fn rule(path: &Path, reason: &str) -> String {
    match rule_text(path) {
        Some(path) => format!(
            "\n[[paths]]\npath = {path}\naccess = \"read-execute\"\nreason = {}\n",
            quoted(reason)
        ),
        None => format!(
            "\n# Cannot be shown: {}. Copy it to another place. ({reason})\n",
            shown_path(path)
        ),
    }
}

/// Sets LD_LIBRARY_PATH for directories of the host's loader configuration, because the sandbox has no such file.
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

/// Returns the path as a TOML string; `None` if a path rule cannot name it. Braces would be read as a placeholder.
fn rule_text(path: &Path) -> Option<String> {
    let text = path.to_str()?;
    let plain = !text.contains(|c: char| c.is_control() || c == '{');
    (plain && values::is_host_path(text)).then(|| quoted(text))
}

/// Writes a TOML basic string. JSON has the same escapes except for control characters, which the caller excludes.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
