//! Single values of policy files: words of a closed set, names, paths, sentences.
//!
//! Each function takes a value with its span and gives the domain's type or a flaw at that span.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use model::case::{Access, PathRule, Presence};
use model::layout::{HOME, PROGRAM_DIRECTORY};
use model::quote::{known_words, quoted};
use schemars::JsonSchema;
use serde::Deserialize;
use toml::Spanned;

use super::error::Flaw;
use super::schema::{HostPath, MAX_NAME_CHARS, MAX_SENTENCE_CHARS, NEVER_SHOWN, Sentence};

/// A path of the host that the client sees, read-only.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "PathRule")]
pub(super) struct PathRuleFile {
    /// The path, inside as on the host.
    #[schemars(with = "HostPath")]
    path: Spanned<String>,
    /// What the client may do below it.
    #[schemars(with = "Access")]
    access: Spanned<String>,
    /// On a host without the path the rule says nothing; else that is an error.
    #[serde(default)]
    if_present: bool,
    /// Why the client needs it.
    #[schemars(with = "Sentence")]
    reason: Spanned<String>,
}

/// Path rules; each path once. `replace` fills placeholders.
pub(super) fn path_rules(
    rules: Vec<PathRuleFile>,
    replace: impl Fn(Spanned<String>) -> Result<Spanned<String>, Flaw>,
) -> Result<Vec<PathRule>, Flaw> {
    let mut seen = BTreeSet::new();
    let mut parsed = Vec::new();
    for rule in rules {
        let path = replace(rule.path)?;
        once(&mut seen, &path, "a path that no other rule names")?;
        parsed.push(PathRule {
            path: host_path(path)?,
            access: one_of(&rule.access, &Access::IN_POLICIES, Access::word)?,
            presence: if rule.if_present {
                Presence::IfPresent
            } else {
                Presence::Required
            },
            reason: sentence(rule.reason)?,
        });
    }
    Ok(parsed)
}

/// A word of a closed set.
pub(super) fn one_of<T: Copy>(
    value: &Spanned<String>,
    all: &[T],
    word: fn(T) -> &'static str,
) -> Result<T, Flaw> {
    let found = value.get_ref();
    all.iter()
        .copied()
        .find(|item| word(*item) == found)
        .ok_or_else(|| {
            let known = known_words(found, all.iter().map(|item| word(*item)));
            Flaw::new(value.span(), "a known word", quoted(found), known)
        })
}

/// Each value once.
pub(super) fn once(
    seen: &mut BTreeSet<String>,
    value: &Spanned<String>,
    expected: &str,
) -> Result<(), Flaw> {
    if seen.insert(value.get_ref().clone()) {
        return Ok(());
    }
    Err(Flaw::new(
        value.span(),
        expected,
        format!("{} a second time", quoted(value.get_ref())),
        "remove one of the two",
    ))
}

/// A non-empty line of text without control characters: a summary or a reason.
pub(super) fn sentence(value: Spanned<String>) -> Result<String, Flaw> {
    let text = value.get_ref();
    let long = text.chars().count() > MAX_SENTENCE_CHARS;
    if text.trim().is_empty() || long || text.chars().any(char::is_control) {
        let expected = format!("one line of 1 to {MAX_SENTENCE_CHARS} characters");
        return Err(Flaw::new(
            value.span(),
            expected,
            quoted(text),
            "say in a few words why this is here",
        ));
    }
    Ok(value.into_inner())
}

/// A name made of ASCII letters, digits, `.`, `_` and `-`; nothing that a path, a header or a placeholder could trip over.
pub(super) fn name(value: Spanned<String>) -> Result<String, Flaw> {
    let text = value.get_ref();
    if !is_name(text) {
        let hint = format!("use at most {MAX_NAME_CHARS} of: a-z A-Z 0-9 . _ -");
        return Err(Flaw::new(value.span(), "a name", quoted(text), hint));
    }
    Ok(value.into_inner())
}

pub(super) fn is_name(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let dots_only = text.chars().all(|c| c == '.');
    !dots_only && text.len() <= MAX_NAME_CHARS && text.chars().all(fits)
}

/// Whether this can name a variable of the environment in every shell.
pub fn is_variable_name(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !text.is_empty() && !text.starts_with(|c: char| c.is_ascii_digit()) && text.chars().all(fits)
}

/// Text that can be an argument or an environment value: no NUL.
pub(super) fn word(value: Spanned<String>) -> Result<String, Flaw> {
    if value.get_ref().contains('\0') {
        let found = quoted(value.get_ref());
        return Err(Flaw::new(
            value.span(),
            "text without NUL",
            found,
            "a program cannot be given a NUL character",
        ));
    }
    Ok(value.into_inner())
}

/// A path below home, temporary or working directory: relative, no `.` or `..`, nothing empty.
pub(super) fn tree_path(value: Spanned<String>) -> Result<Spanned<String>, Flaw> {
    let parts_fit = value
        .get_ref()
        .split('/')
        .all(|part| !matches!(part, "" | "." | ".."));
    if !parts_fit || value.get_ref().chars().any(char::is_control) {
        let found = quoted(value.get_ref());
        return Err(Flaw::new(
            value.span(),
            "a relative path",
            found,
            "write it as .agent/.agent.json",
        ));
    }
    Ok(value)
}

/// Whether a path rule may name this path.
pub(super) fn is_host_path(path: &str) -> bool {
    host_path(Spanned::new(0..0, path.to_owned())).is_ok()
}

/// What is never shown, for people.
pub fn never_shown() -> String {
    format!(
        "never shown: {}, and as a whole /, /etc and /home",
        NEVER_SHOWN.join(", ")
    )
}

/// Whether a host path may be shown at all. What it leads to is looked at when a run is prepared.
pub fn may_be_shown(path: &Path) -> bool {
    let own = [HOME, PROGRAM_DIRECTORY];
    let mut never = NEVER_SHOWN.iter().chain(&own);
    // What is shown there would hide what the sandbox has of its own.
    let mut hidden = own.iter().chain(&["/etc"]);
    !never.any(|tree| path.starts_with(tree))
        && !hidden.any(|tree| Path::new(tree).starts_with(path))
}

/// A host path that may be shown: absolute, in its plain form, outside the directories that never are.
fn host_path(value: Spanned<String>) -> Result<PathBuf, Flaw> {
    let path = Path::new(value.get_ref());
    let plain: PathBuf = path.components().collect();
    let climbs = path
        .components()
        .any(|part| matches!(part, Component::ParentDir | Component::CurDir));
    let odd = climbs || plain.as_os_str() != path.as_os_str() || value.get_ref().contains('\0');
    let found = || quoted(value.get_ref());
    if !path.is_absolute() || odd {
        let hint = "write it from the root, without `.`, `..`, `//` or a slash at the end";
        return Err(Flaw::new(value.span(), "an absolute path", found(), hint));
    }
    if !may_be_shown(path) {
        let hint = never_shown();
        return Err(Flaw::new(
            value.span(),
            "a path that may be shown to the client",
            found(),
            hint,
        ));
    }
    Ok(plain)
}
