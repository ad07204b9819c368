//! Status badges: a word with a sign, so that colour never carries the meaning alone.

use maud::{Markup, html};

/// Draws a badge; `class` is a class of the style sheet.
pub(super) fn badge(class: &str, sign: &str, word: &str) -> Markup {
    html! { span.status.(class) { span.sign aria-hidden="true" { (sign) } " " (word) } }
}
