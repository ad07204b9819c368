//! Why a policy could not be had, with the place, what was expected there, and what helps.
//!
//! A file is text from somewhere: what is quoted of it is escaped and cut, so that an error stays one line.

use std::fmt;
use std::io;
use std::ops::Range;
use std::path::Path;

use thiserror::Error;

use super::Kind;

/// The longest policy file that is read, in bytes.
pub const MAX_FILE_BYTES: u64 = 256 * 1024;

/// Longest quotation from a file, in characters.
const MAX_QUOTED_CHARS: usize = 60;

/// Why a policy could not be had. `file` is its name for messages: a path, escaped, or `built-in case-a`.
#[derive(Debug, Error)]
#[allow(
    missing_docs,
    reason = "`file`, `at`, `found` and `wanted` say the same in each variant"
)]
pub enum PolicyError {
    /// A name that is none of the built-in ones; `wanted` is `None` where either kind would do.
    #[error("no built-in {} is named {name}", wanted.map_or("policy", Kind::word))]
    UnknownName {
        wanted: Option<Kind>,
        name: String,
        hint: String,
    },
    /// open(2) failed.
    #[error("cannot open {file}")]
    Open {
        file: String,
        #[source]
        source: io::Error,
    },
    /// read(2) or fstat(2) failed.
    #[error("cannot read {file}")]
    Read {
        file: String,
        #[source]
        source: io::Error,
    },
    /// A directory, FIFO, socket or device.
    #[error("{file} is {found}, not a regular file")]
    NotAFile { file: String, found: &'static str },
    /// Longer than [`MAX_FILE_BYTES`].
    #[error("{file} is longer than {MAX_FILE_BYTES} bytes")]
    TooLarge { file: String },
    /// Not text.
    #[error("{file}:{at}: expected UTF-8 text, found the byte {byte:#04x}")]
    NotUtf8 {
        file: String,
        at: Position,
        byte: u8,
    },
    /// Text, but not TOML.
    #[error("{file}:{at}: not well-formed TOML: {message}, at {found}")]
    Syntax {
        file: String,
        at: Position,
        message: String,
        found: String,
    },
    /// TOML, but no policy.
    #[error("{0}")]
    Fault(Box<Fault>),
    /// A policy of the other kind.
    #[error("{file} is of the kind {found}, but a {wanted} is needed here", found = found.word(), wanted = wanted.word())]
    WrongKind {
        file: String,
        found: Kind,
        wanted: Kind,
    },
}

impl PolicyError {
    /// What the user can do about it, in one line.
    pub fn hint(&self) -> String {
        match self {
            Self::UnknownName { hint, .. } => hint.clone(),
            Self::Open { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                "a name with `/` or ending in `.toml` is a file; `runner policy list` shows the built-in ones".into()
            }
            Self::Open { .. } | Self::Read { .. } => "the file must be readable by the user who starts the runner".into(),
            Self::NotAFile { .. } => "name the policy file itself".into(),
            Self::TooLarge { .. } => "a policy is a short text; is this the right file?".into(),
            Self::NotUtf8 { .. } => "save the file as UTF-8".into(),
            Self::Syntax { .. } => "`runner policy show case-a` prints a well-formed file".into(),
            Self::Fault(fault) => fault.hint.clone(),
            Self::WrongKind { found: Kind::Profile, .. } => "give the profile with --profile".into(),
            Self::WrongKind { found: Kind::Audit, .. } => "the policy of audits is built in; `runner audit` uses it".into(),
            Self::WrongKind { found: Kind::Case, .. } => "run the case with `runner run CASE.toml`".into(),
        }
    }
}

/// A file that is well-formed TOML and yet no policy.
#[derive(Debug)]
pub struct Fault {
    /// Its name for messages.
    pub file: String,
    /// Where the fault begins.
    pub at: Position,
    /// Dotted path of the key, where there is one.
    pub key: Option<String>,
    /// `expected …, found …`
    pub problem: String,
    /// What helps.
    pub hint: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}: ", self.file, self.at)?;
        if let Some(key) = &self.key {
            write!(out, "`{key}`: ")?;
        }
        out.write_str(&self.problem)
    }
}

/// A place in a file, both numbers counted from 1; columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// Lines end at a line feed.
    pub line: usize,
    /// Characters, not bytes.
    pub column: usize,
}

impl Position {
    /// The place of a byte; past the end, the end.
    pub(crate) fn of(text: &[u8], offset: usize) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let line_start = before
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |newline| newline + 1);
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        let column = String::from_utf8_lossy(before.get(line_start..).unwrap_or_default())
            .chars()
            .count()
            + 1;
        Self { line, column }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.line, self.column)
    }
}

/// A fault found in a value, before its place in the file is worked out.
#[derive(Debug)]
pub(super) struct Flaw {
    pub(super) span: Range<usize>,
    pub(super) problem: String,
    pub(super) hint: String,
}

impl Flaw {
    pub(super) fn new(
        span: Range<usize>,
        expected: impl fmt::Display,
        found: impl fmt::Display,
        hint: impl Into<String>,
    ) -> Self {
        Self {
            span,
            problem: format!("expected {expected}, found {found}"),
            hint: hint.into(),
        }
    }
}

/// Foreign text between backticks: control, bidi and invisible characters escaped, long text cut.
pub(crate) fn quoted(text: &str) -> String {
    let mut shown = visible(text.chars().take(MAX_QUOTED_CHARS));
    if text.chars().nth(MAX_QUOTED_CHARS).is_some() {
        shown.push('…');
    }
    format!("`{shown}`")
}

/// A path for messages; bytes that are no UTF-8 as `\xNN`, and a backslash as `\\`.
pub(crate) fn shown_path(path: &Path) -> String {
    let mut shown = String::new();
    for chunk in path.as_os_str().as_encoded_bytes().utf8_chunks() {
        shown.push_str(&visible(chunk.valid().replace('\\', r"\\").chars()));
        for byte in chunk.invalid() {
            shown.push_str(&format!("\\x{byte:02x}"));
        }
    }
    shown
}

pub(super) fn visible(text: impl Iterator<Item = char>) -> String {
    let mut shown = String::new();
    for character in text {
        match character {
            '"' | '\'' | '\\' => shown.push(character),
            other => shown.extend(other.escape_debug()),
        }
    }
    shown
}

/// `did you mean …?` if one word is near, and the known words.
pub(crate) fn known_words<'a>(found: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    let list: Vec<String> = known.iter().map(|word| format!("`{word}`")).collect();
    let all = format!("known here: {}", list.join(", "));
    with_nearest(found, known, &all)
}

/// `did you mean …?` if one word is near, and where all of them are told.
pub(crate) fn with_nearest<'a>(
    found: &str,
    known: impl IntoIterator<Item = &'a str>,
    all: &str,
) -> String {
    let scored = known
        .into_iter()
        .map(|word| (strsim::jaro_winkler(found, word), word));
    let nearest = scored
        .filter(|(score, _)| *score > 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0));
    match nearest {
        Some((_, word)) => format!("did you mean `{word}`? {all}"),
        None => all.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn positions_count_lines_and_characters_from_one() {
        let text = "a\nžlutý = 1\n".as_bytes();
        assert_eq!(Position::of(text, 0), Position { line: 1, column: 1 });
        assert_eq!(Position::of(text, 2), Position { line: 2, column: 1 });
        assert_eq!(Position::of(text, 4), Position { line: 2, column: 2 });
        assert_eq!(Position::of(text, 1000), Position { line: 3, column: 1 });
    }

    #[test]
    fn quotations_cannot_move_the_cursor_or_reorder_a_line() {
        assert_eq!(
            quoted("a\u{1b}[31m\nb\u{202e}"),
            r"`a\u{1b}[31m\nb\u{202e}`"
        );
    }

    #[test]
    fn long_quotations_are_cut() {
        assert_eq!(quoted(&"x".repeat(100)), format!("`{}…`", "x".repeat(60)));
    }

    #[test]
    fn path_with_text_of_an_escape_differs_from_its_byte() {
        assert_eq!(shown_path(Path::new(r"a\xffb")), r"a\\xffb");
    }

    #[test]
    fn paths_show_bytes_that_are_no_text() {
        assert_eq!(
            shown_path(Path::new(OsStr::from_bytes(b"a\xffb\n"))),
            r"a\xffb\n"
        );
    }

    #[test]
    fn the_nearest_known_word_comes_first() {
        assert_eq!(
            known_words("timout", ["memory", "timeout"]),
            "did you mean `timeout`? known here: `memory`, `timeout`"
        );
        assert_eq!(known_words("xyz", ["memory"]), "known here: `memory`");
    }
}
