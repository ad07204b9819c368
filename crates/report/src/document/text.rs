//! Texts of a document: spans by origin, so that each medium marks and escapes client text.

use std::borrow::Cow;
use std::ops::Add;

use model::digest::short;
use model::escape;

use crate::phrases::cut;
use crate::tone::Tone;

/// Part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Span {
    /// Our own words.
    Own(String),
    /// Name or path that the user or a file gave.
    Name(String),
    /// Text of the client or of a policy file.
    Client(String),
    /// SHA-256, commit or build id in hex, shown by its beginning.
    Digest(String),
    /// Status.
    Mark(Tone, String),
}

impl Span {
    /// Returns the shown characters.
    pub(crate) fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Own(text) | Self::Name(text) | Self::Client(text) | Self::Mark(_, text) => {
                text.into()
            }
            Self::Digest(sha256) => short(sha256).into(),
        }
    }
}

/// Text of spans.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Text(pub(crate) Vec<Span>);

impl Text {
    /// Returns true for a text that is not empty.
    pub(crate) fn is_some(&self) -> bool {
        !self.0.is_empty()
    }

    /// Returns the spans with their escaped characters, cut after `max_chars` characters of all spans together.
    pub(crate) fn shown(&self, max_chars: usize) -> Vec<(&Span, String)> {
        let texts = self.0.iter().map(|span| escape::visible(&span.text()));
        let texts: Vec<String> = texts.collect();
        let (mut left, mut spans) = (max_chars, Vec::new());
        for (index, (span, text)) in self.0.iter().zip(&texts).enumerate() {
            let Some(rest) = left.checked_sub(text.chars().count()) else {
                let tail = texts.get(index..).unwrap_or_default().concat();
                spans.push((span, cut(&tail, left)));
                break;
            };
            spans.push((span, text.clone()));
            left = rest;
        }
        spans
    }

    /// Returns true for a text with a part of the client.
    pub(crate) fn is_hostile(&self) -> bool {
        self.0.iter().any(|span| matches!(span, Span::Client(_)))
    }
}

impl From<Span> for Text {
    fn from(span: Span) -> Self {
        let is_empty = span.text().is_empty();
        Self(if is_empty { Vec::new() } else { vec![span] })
    }
}

impl From<&str> for Text {
    fn from(words: &str) -> Self {
        own(words)
    }
}

impl From<String> for Text {
    fn from(words: String) -> Self {
        own(words)
    }
}

impl From<Option<Self>> for Text {
    fn from(text: Option<Self>) -> Self {
        text.unwrap_or_default()
    }
}

impl<T: Into<Self>> Add<T> for Text {
    type Output = Self;

    fn add(mut self, more: T) -> Self {
        self.0.extend(more.into().0);
        self
    }
}

pub(super) fn own(words: impl Into<String>) -> Text {
    Span::Own(words.into()).into()
}

pub(super) fn name(text: impl Into<String>) -> Text {
    Span::Name(text.into()).into()
}

pub(super) fn client(text: impl Into<String>) -> Text {
    Span::Client(text.into()).into()
}

pub(super) fn digest(sha256: &str) -> Text {
    Span::Digest(sha256.to_owned()).into()
}

pub(super) fn mark(tone: Tone, word: impl Into<String>) -> Text {
    Span::Mark(tone, word.into()).into()
}
