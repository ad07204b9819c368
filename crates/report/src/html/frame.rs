//! Document around the sections: content security policy, verdict, list of sections.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use model::escape;
use model::finding::Verdict;
use model::report::{Purpose, Report};
use sha2::{Digest as _, Sha256};

use crate::headline::{Headline, headline};
use crate::html::text::ClientText;

const STYLE: &str = include_str!("style.css");

/// Section of the page, with an anchor.
#[derive(Debug)]
pub(super) struct Section {
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    /// Note after the title and in the list of sections: a number or a word.
    pub(super) note: Option<String>,
    pub(super) body: Markup,
}

impl Section {
    pub(super) fn new(id: &'static str, title: &'static str, body: Markup) -> Self {
        Self {
            id,
            title,
            note: None,
            body,
        }
    }

    pub(super) fn with_note(self, note: impl Into<String>) -> Self {
        Self {
            note: Some(note.into()),
            ..self
        }
    }
}

/// Builds the whole page. A final escape removes any dangerous character that an earlier step missed.
pub(super) fn document(
    report: &Report,
    [identity, reading]: [Markup; 2],
    sections: Vec<Section>,
) -> String {
    let Headline { word, text } = headline(report);
    let tone = Tone::of(report);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy());
                meta name="referrer" content="no-referrer";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (word) " " (ClientText(&text)) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header class=(tone.class()) {
                    p.kind { (kind(report)) }
                    h1 {
                        span.word { span.sign aria-hidden="true" { (tone.sign()) } " " (word) }
                        " "
                        span.headline { (ClientText(&text)) }
                    }
                    (identity)
                }
                nav aria-label="Sections" {
                    @for section in &sections {
                        a href={ "#" (section.id) } {
                            (section.title)
                            @if let Some(note) = &section.note { " " span.note { (ClientText(note)) } }
                        }
                    }
                }
                main {
                    @for section in &sections {
                        section id=(section.id) {
                            h2 {
                                a href={ "#" (section.id) } { (section.title) }
                                @if let Some(note) = &section.note { " " span.note { (ClientText(note)) } }
                            }
                            (section.body)
                        }
                    }
                }
                footer { (reading) }
            }
        }
    };
    escape::for_terminal(&page.into_string()) + "\n"
}

/// Content security policy that allows the style sheet only, by its digest.
fn policy() -> String {
    let style = base64(&Sha256::digest(STYLE));
    format!("default-src 'none'; style-src 'sha256-{style}'; base-uri 'none'; form-action 'none'")
}

fn kind(report: &Report) -> &'static str {
    match report.purpose {
        Purpose::Judge => "Sandboxed run of a client",
        Purpose::Audit => "Audit of a program in a sandbox",
    }
}

/// Appearance of the verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tone {
    Good,
    Bad,
    Doubtful,
    /// An audit with attempts: neutral, because an audit has no expectations.
    Plain,
}

impl Tone {
    fn of(report: &Report) -> Self {
        match (report.purpose, report.verdict) {
            (_, Verdict::Passed) => Self::Good,
            (Purpose::Judge, Verdict::Failed) => Self::Bad,
            (Purpose::Audit, Verdict::Failed) => Self::Plain,
            (_, Verdict::Errored) => Self::Doubtful,
        }
    }

    /// Class in the style sheet.
    fn class(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Bad => "bad",
            Self::Doubtful => "doubtful",
            Self::Plain => "plain",
        }
    }

    fn sign(self) -> &'static str {
        match self {
            Self::Good => "✓",
            Self::Bad => "✕",
            Self::Doubtful => "!",
            Self::Plain => "•",
        }
    }
}

/// Encodes bytes as base64 (RFC 4648, section 4).
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |index: usize| u32::from(group.get(index).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for position in 0..4 {
            let digit = (bits >> (18 - 6 * position)) & 63;
            let digit = DIGITS.get(digit as usize).copied().unwrap_or(b'=');
            text.push(char::from(if position > group.len() {
                b'='
            } else {
                digit
            }));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_standard() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }

    /// The browser hashes the bytes between the tags, so the page must not change them.
    #[test]
    fn the_style_sheet_is_what_it_was_when_its_digest_was_taken() {
        assert_eq!(escape::for_terminal(STYLE), STYLE);
        assert!(!STYLE.contains("</") && !STYLE.contains('\r'));
        assert!(!STYLE.contains("url(") && !STYLE.contains("@import"));
    }
}
