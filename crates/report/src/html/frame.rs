//! Document around the sections: content security policy, verdict, list of sections.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
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
    let Headline {
        word,
        tone,
        joint,
        text,
    } = &document.headline;
    let word = match text.as_str() {
        "" => word.clone(),
        _ => format!("{word}{}", joint.trim_end()),
    };
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
    let style = STANDARD.encode(Sha256::digest(STYLE));
    format!("default-src 'none'; style-src 'sha256-{style}'; base-uri 'none'; form-action 'none'")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The browser hashes the bytes between the tags, so the page must not change them.
    #[test]
    fn the_style_sheet_is_what_it_was_when_its_digest_was_taken() {
        assert_eq!(escape::for_terminal(STYLE), STYLE);
        assert!(!STYLE.contains("</") && !STYLE.contains('\r'));
        assert!(!STYLE.contains("url(") && !STYLE.contains("@import"));
    }
}
