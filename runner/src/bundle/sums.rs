//! `SHA256SUMS`: the SHA-256 of each other file of a bundle, in the form of sha256sum(1).

use std::collections::BTreeMap;

use model::escape::visible;
use model::text::truncated;
use thiserror::Error;

/// Name of the file. A bundle with this file is complete.
pub(crate) const NAME: &str = "SHA256SUMS";
/// Largest file, in bytes; a run writes a line for each of about a dozen files.
pub(crate) const MAX_BYTES: u64 = 64 * 1024;
/// Largest number of characters shown of an untrusted text.
const MAX_SHOWN: usize = 1_000;

/// Digests by file name.
pub(crate) type Sums = BTreeMap<String, String>;

/// Line that no run writes.
#[derive(Debug, Error)]
#[error(
    "line {line}: expected 64 lower-case hex digits, two spaces and the name of another file, found {found}"
)]
pub(crate) struct SumsError {
    line: usize,
    found: String,
}

/// Encodes the digests, sorted by name.
pub(super) fn document(sums: &Sums) -> String {
    sums.iter()
        .map(|(name, sha256)| format!("{sha256}  {name}\n"))
        .collect()
}

/// Parses an untrusted document.
///
/// # Errors
/// Returns the first line that no run writes.
pub(crate) fn parse(document: &[u8]) -> Result<Sums, SumsError> {
    let mut sums = Sums::new();
    for (index, line) in String::from_utf8_lossy(document)
        .split_terminator('\n')
        .enumerate()
    {
        let pair = line
            .split_once("  ")
            .filter(|(sha256, name)| is_digest(sha256) && is_name(name));
        let is_new = pair.is_some_and(|(sha256, name)| {
            sums.insert(name.to_owned(), sha256.to_owned()).is_none()
        });
        if !is_new {
            let (line, found) = (index + 1, shown(line));
            return Err(SumsError { line, found });
        }
    }
    Ok(sums)
}

fn is_digest(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// Tests for a name without a directory, which sha256sum(1) writes unescaped.
fn is_name(text: &str) -> bool {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
    text.bytes().all(is_plain) && !text.is_empty() && !text.starts_with(['.', '-']) && text != NAME
}

/// Returns text of an untrusted document for messages: escaped and of bounded length.
pub(super) fn shown(text: &str) -> String {
    match truncated(text, MAX_SHOWN) {
        whole if whole == text => visible(text),
        start => format!("{} ({} bytes)", visible(&start), text.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_read_back_as_written() {
        let sums = Sums::from(["a", "b-1.txt"].map(|name| (name.to_owned(), "0".repeat(64))));
        assert_eq!(parse(document(&sums).as_bytes()).unwrap(), sums);
    }

    #[test]
    fn line_that_no_run_writes_is_refused() {
        let digest = "a".repeat(64);
        for line in [
            String::new(),
            "x".repeat(70_000),
            format!("{digest} a"),
            format!("{digest} *a"),
            format!("{digest}   a"),
            format!("\\{digest}  a"),
            format!("{}  a", "A".repeat(64)),
            format!("{digest}  "),
            format!("{digest}  .."),
            format!("{digest}  .hidden"),
            format!("{digest}  -rf"),
            format!("{digest}  a/b"),
            format!("{digest}  a\r"),
            format!("{digest}  \u{1b}[2J\u{202e}"),
            format!("{digest}  {NAME}"),
            format!("{digest}  first"),
        ] {
            let document = format!("{digest}  first\n{line}\n");
            let error = parse(document.as_bytes()).unwrap_err().to_string();
            assert!(error.starts_with("line 2: expected 64 "), "{line}: {error}");
            assert!(error.len() < 2_000 && !error.contains(['\r', '\u{1b}', '\u{202e}']));
        }
    }
}
