//! A word with its sign: nothing on the page is told by its colour alone.

use maud::{Markup, html};

/// `class` is the style sheet's.
pub(super) fn badge(class: &str, sign: &str, word: &str) -> Markup {
    html! { span.status.(class) { span.sign aria-hidden="true" { (sign) } " " (word) } }
}
