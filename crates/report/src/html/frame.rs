//! Document around the sections: content security policy, verdict, list of sections.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use model::escape;
use sha2::{Digest as _, Sha256};

use super::{MAX_TEXT_CHARS, blocks, class, facts, sign};
use crate::document::{Budget, Document, Medium, Section};
use crate::headline::Headline;
use crate::phrases::cut;

const STYLE: &str = include_str!("style.css");
/// Notes on reading the page, around an escape.
const READING: &str = "Times are milliseconds on one monotonic clock, from the start of the run. Text of the client is \
    shown unchanged, except characters that move, hide or turn text: those are shown as ";
const WITHOUT: &str =
    ". Credentials and prompts are never shown. This page has no script and loads no file.";

/// Lays out a document as a whole page. A final escape removes any dangerous character that an earlier step missed.
pub(crate) fn lay_out(document: &Document) -> String {
    let Headline { word, tone, text } = &document.headline;
    let text = cut(&escape::visible(text), MAX_TEXT_CHARS);
    let sections: Vec<&Section> = document.sections(Medium::Html).collect();
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy());
                meta name="referrer" content="no-referrer";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (word) " " (text) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header class=(class(*tone)) {
                    p.kind { (document.kind) }
                    h1 { span.word { (sign(*tone)) " " (word) } " " span.headline { (text) } }
                    (facts(Budget::Ours, &document.identity))
                }
                nav aria-label="Sections" { @for section in &sections { (title(section)) } }
                main {
                    @for section in &sections {
                        section id=(section.id) {
                            h2 { (title(section)) }
                            (blocks(&section.blocks))
                        }
                    }
                }
                footer { p { (READING) code { "\\u{…}" } (WITHOUT) } }
            }
        }
    };
    escape::for_terminal(&page.into_string()) + "\n"
}

/// Draws a link to a section with its note.
fn title(section: &Section) -> Markup {
    html! {
        a href={ "#" (section.id) } {
            (section.title)
            @if !section.note.is_empty() { " " span.note { (section.note) } }
        }
    }
}

/// Content security policy that allows the style sheet only, by its digest.
fn policy() -> String {
    let style = base64(&Sha256::digest(STYLE));
    format!("default-src 'none'; style-src 'sha256-{style}'; base-uri 'none'; form-action 'none'")
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
