//! Text of the page: client text, escaped and cut, and the formats of numbers and times.

use maud::{Markup, Render, html};
use model::digest::short;
use model::escape;

use crate::phrases::{cut, grouped};

/// Maximum length of one text of the client, in characters.
const MAX_TEXT_CHARS: usize = 1_000;
/// Maximum length of a tooltip, in characters.
const MAX_HINT_CHARS: usize = 250;

/// Text that may come from the client: escaped for people, cut, then escaped as HTML.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClientText<'a>(pub(super) &'a str);

impl Render for ClientText<'_> {
    fn render_to(&self, page: &mut String) {
        cut(&escape::visible(self.0), MAX_TEXT_CHARS)
            .as_str()
            .render_to(page);
    }
}

/// Client text in a tooltip. The limit is lower, because a drawing has hundreds of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hint<'a>(pub(super) &'a str);

impl Render for Hint<'_> {
    fn render_to(&self, page: &mut String) {
        cut(&escape::visible(self.0), MAX_HINT_CHARS)
            .as_str()
            .render_to(page);
    }
}

/// Draws client text as code, isolated from the text direction around it.
pub(super) fn code(text: &str) -> Markup {
    html! { code { (ClientText(text)) } }
}

/// Draws client text as code, if there is any.
pub(super) fn code_if(text: Option<&str>) -> Markup {
    html! { @if let Some(text) = text { (code(text)) } }
}

/// Draws the beginning of a digest, with the whole one as a tooltip.
pub(super) fn digest(digest: &str) -> Markup {
    html! { code.digest title=(ClientText(digest)) { (ClientText(&short(digest))) } }
}

/// Returns a number with its noun: `1 request`, `12,345 requests`.
pub(super) fn number_of(number: u64, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        _ => format!("{} {noun}s", grouped(number)),
    }
}

pub(super) fn bytes(number: u64) -> String {
    number_of(number, "byte")
}

/// Returns microseconds as milliseconds, `12.3 ms`, or from ten seconds on as seconds.
pub(super) fn duration(us: u64) -> String {
    if us < 10_000_000 {
        format!("{}.{} ms", grouped(us / 1_000), us / 100 % 10)
    } else {
        format!("{}.{:02} s", grouped(us / 1_000_000), us / 10_000 % 100)
    }
}

/// Returns a time on the clock of the run: `+12.3 ms`.
pub(super) fn at(us: u64) -> String {
    format!("+{}", duration(us))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_the_client_is_escaped_for_people_and_for_html() {
        let text = "<b title=\"x\">&amp;\u{202e}\n</b>";
        let shown = r"<code>&lt;b title=&quot;x&quot;&gt;&amp;amp;\u{202e}\n&lt;/b&gt;</code>";
        assert_eq!(code(text).into_string(), shown);
    }

    #[test]
    fn what_is_cut_is_counted() {
        let whole = "x".repeat(MAX_TEXT_CHARS);
        assert_eq!(ClientText(&whole).render().into_string(), whole);
        let long = ClientText(&"é".repeat(MAX_TEXT_CHARS + 12))
            .render()
            .into_string();
        assert!(long.ends_with("é… (cut: 12 more characters)"), "{long}");
        let hint = Hint(&"é".repeat(MAX_HINT_CHARS + 12))
            .render()
            .into_string();
        assert!(hint.ends_with("é… (cut: 12 more characters)"), "{hint}");
    }

    #[test]
    fn times_are_milliseconds_until_seconds_are_enough() {
        assert_eq!(at(0), "+0.0 ms");
        assert_eq!(at(12_345), "+12.3 ms");
        assert_eq!(at(1_204_999), "+1,204.9 ms");
        assert_eq!(at(61_239_000), "+61.23 s");
    }
}
