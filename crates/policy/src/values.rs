//! Single values of policy files: closed-set words, names, paths, sentences.
//!
//! Each function takes a value with its span, and returns the type of the model or a flaw at that span.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use model::case::{Access, PathRule, Presence};
use model::layout::{HOME, PROGRAM_DIRECTORY, TMP};
use model::quote::{known_words, quoted};
use model::schema::values::one_of as one_of_words;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use toml::Spanned;

use super::error::Flaw;
use super::schema::{HostPath, MAX_NAME_CHARS, MAX_SENTENCE_CHARS, NEVER_SHOWN, Sentence};

/// Path of the host that the client sees, read-only.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "PathRule")]
pub(super) struct PathRuleFile {
    /// Path, the same inside the sandbox and on the host.
    #[schemars(with = "HostPath")]
    pub(super) path: Spanned<String>,
    /// Access of the client below the path.
    #[schemars(schema_with = "access_in_policies")]
    pub(super) access: Spanned<String>,
    /// True if a host may lack the path; otherwise a missing path is an error.
    #[serde(default)]
    pub(super) if_present: bool,
    /// Reason why the client needs the path.
    #[schemars(with = "Sentence")]
    pub(super) reason: Spanned<String>,
}

/// Schema of the rights that a policy file can grant.
pub(super) fn access_in_policies(_: &mut SchemaGenerator) -> Schema {
    one_of_words(&Access::IN_POLICIES.map(Access::word))
}

/// Parses path rules, each path once. `parse` fills in placeholders and checks a path.
pub(super) fn path_rules(
    rules: impl IntoIterator<Item = PathRuleFile>,
    parse: impl Fn(Spanned<String>) -> Result<Spanned<String>, Flaw>,
) -> Result<Vec<PathRule>, Flaw> {
    let mut seen = BTreeSet::new();
    let mut parsed = Vec::new();
    for rule in rules {
        let path = parse(rule.path)?;
        reject_repeated(&mut seen, &path, "a path that no other rule names")?;
        parsed.push(PathRule {
            path: path.into_inner().into(),
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

/// Parses a word of a closed set.
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

/// Rejects a value that was seen before.
pub(super) fn reject_repeated(
    seen: &mut BTreeSet<String>,
    value: &Spanned<impl AsRef<str>>,
    expected: &str,
) -> Result<(), Flaw> {
    let text = value.get_ref().as_ref();
    if seen.insert(text.to_owned()) {
        return Ok(());
    }
    Err(Flaw::new(
        value.span(),
        expected,
        format!("{} a second time", quoted(text)),
        "remove one of the two",
    ))
}

/// Parses a non-empty line of text without control characters: a summary or a reason.
pub(super) fn sentence(value: Spanned<String>) -> Result<String, Flaw> {
    let text = value.get_ref();
    let is_long = text.chars().count() > MAX_SENTENCE_CHARS;
    if text.trim().is_empty() || is_long || text.chars().any(char::is_control) {
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

/// Parses a name of ASCII letters, digits, `.`, `_` and `-`, which is safe in paths, headers and placeholders.
pub(super) fn name(value: Spanned<String>) -> Result<String, Flaw> {
    let text = value.get_ref();
    if !is_name(text) {
        let hint = format!("use at most {MAX_NAME_CHARS} of: a-z A-Z 0-9 . _ -");
        return Err(Flaw::new(value.span(), "a name", quoted(text), hint));
    }
    Ok(value.into_inner())
}

/// Returns true for a valid name.
pub(super) fn is_name(text: &str) -> bool {
    let dots_only = text.chars().all(|c| c == '.');
    !dots_only && text.len() <= MAX_NAME_CHARS && text.chars().all(is_in_names)
}

/// Returns true for a character of names.
pub(super) fn is_in_names(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')
}

/// Parses the name of an environment variable.
pub(super) fn check_variable_name(variable: &Spanned<String>) -> Result<(), Flaw> {
    let name = variable.get_ref();
    if !is_variable_name(name) {
        let hint = "use letters, digits and `_`, not beginning with a digit";
        return Err(Flaw::new(
            variable.span(),
            "a variable's name",
            quoted(name),
            hint,
        ));
    }
    Ok(())
}

/// Returns true for a name that every shell accepts for an environment variable.
pub fn is_variable_name(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !text.is_empty() && !text.starts_with(|c: char| c.is_ascii_digit()) && text.chars().all(fits)
}

/// Returns true for a variable whose name says that its value is a secret.
pub fn is_private_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let words = [
        "KEY",
        "TOKEN",
        "SECRET",
        "PASSWORD",
        "PASSWD",
        "CREDENTIAL",
        "AUTH",
    ];
    words.iter().any(|word| name.contains(word))
}

/// Parses text for an argument or an environment value, which must not contain NUL.
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

/// Parses a path below the home, temporary or working directory: relative, without `.`, `..` or empty parts.
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

/// Returns true if a path rule may name this path.
pub(super) fn is_host_path(path: &str) -> bool {
    host_path(Spanned::new(0..0, path.to_owned())).is_ok()
}

/// Returns the list of paths that are never shown, for messages.
pub fn never_shown() -> String {
    format!(
        "never shown: {}, and as a whole /, /etc, /home and /tmp",
        NEVER_SHOWN.join(", ")
    )
}

/// Returns true if a host path may be shown. Symbolic links, and owners below /tmp, are checked later, when a run is
/// prepared.
pub fn may_be_shown(path: &Path) -> bool {
    let plain: PathBuf = path.components().collect();
    let plain = plain.as_os_str().as_encoded_bytes();
    let own = [HOME, PROGRAM_DIRECTORY];
    let mut never = NEVER_SHOWN.iter().chain(&own);
    // A path shown there would hide the sandbox's own directories.
    let mut hidden = own.iter().chain(&["/etc", TMP]);
    !never.any(|tree| is_at_or_below(plain, tree.as_bytes()))
        && !hidden.any(|tree| is_at_or_below(tree.as_bytes(), plain))
}

/// Compares plain paths: [`Path::starts_with`] would parse both again for each of a long list.
fn is_at_or_below(path: &[u8], tree: &[u8]) -> bool {
    let rest = path.strip_prefix(tree);
    rest.is_some_and(|rest| tree == b"/" || matches!(rest, [] | [b'/', ..]))
}

/// Parses a host path: absolute, plain, and outside of the directories that are never shown.
pub(super) fn host_path(value: Spanned<String>) -> Result<Spanned<String>, Flaw> {
    let path = Path::new(value.get_ref());
    let plain: PathBuf = path.components().collect();
    let has_dots = path
        .components()
        .any(|part| matches!(part, Component::ParentDir | Component::CurDir));
    let is_unusual =
        has_dots || plain.as_os_str() != path.as_os_str() || value.get_ref().contains('\0');
    let found = || quoted(value.get_ref());
    if !path.is_absolute() || is_unusual {
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
    Ok(value)
}
