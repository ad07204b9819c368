//! Text on the page: the client's, harmless and cut to a length, and numbers and times as they are read.

use maud::{Markup, Render, html};
use model::digest::short;
use model::escape;

use crate::phrases::{cut, grouped};

/// Characters of one piece of the client's text.
const CUT: usize = 1_000;
/// The same in a hint.
const HINT_CUT: usize = 250;

/// Text that the client may have written, or that may hold some of it: escaped for people, cut, then escaped as HTML.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClientText<'a>(pub(super) &'a str);

impl Render for ClientText<'_> {
    fn render_to(&self, page: &mut String) {
        cut(&escape::visible(self.0), CUT).as_str().render_to(page);
    }
}

/// The same where a pointer rests, and a drawing has hundreds of such places.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hint<'a>(pub(super) &'a str);

impl Render for Hint<'_> {
    fn render_to(&self, page: &mut String) {
        cut(&escape::visible(self.0), HINT_CUT)
            .as_str()
            .render_to(page);
    }
}

/// The client's text as what it is: letters of a machine, in an order that nothing around it changes.
pub(super) fn code(text: &str) -> Markup {
    html! { code { (ClientText(text)) } }
}

/// The same, or nothing.
pub(super) fn code_if(text: Option<&str>) -> Markup {
    html! { @if let Some(text) = text { (code(text)) } }
}

/// The beginning of a digest; the whole of it where a pointer rests.
pub(super) fn digest(digest: &str) -> Markup {
    html! { code.digest title=(ClientText(digest)) { (ClientText(&short(digest))) } }
}

/// `1 request`, `12,345 requests`
pub(super) fn number_of(number: u64, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        _ => format!("{} {noun}s", grouped(number)),
    }
}

pub(super) fn bytes(number: u64) -> String {
    number_of(number, "byte")
}

/// Microseconds as milliseconds: `12.3 ms`, and from ten seconds on as seconds.
pub(super) fn duration(us: u64) -> String {
    if us < 10_000_000 {
        format!("{}.{} ms", grouped(us / 1_000), us / 100 % 10)
    } else {
        format!("{}.{:02} s", grouped(us / 1_000_000), us / 10_000 % 100)
    }
}

/// A point of the run's clock.
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
        let whole = "x".repeat(CUT);
        assert_eq!(ClientText(&whole).render().into_string(), whole);
        let long = ClientText(&"é".repeat(CUT + 12)).render().into_string();
        assert!(long.ends_with("é… (cut: 12 more characters)"), "{long}");
        let hint = Hint(&"é".repeat(HINT_CUT + 12)).render().into_string();
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
