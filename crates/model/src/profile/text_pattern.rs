//! Patterns of one line of text, such as a user agent or the path of a request, with the placeholders of paths.

use std::fmt;
use std::str::FromStr;

use super::path_pattern::{Part, PatternError, Placeholder, parts};

/// A parsed text pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextPattern {
    text: String,
    parts: Vec<Part>,
}

impl TextPattern {
    /// Pattern that matches this text alone.
    pub fn literal(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            parts: vec![Part::Text(text.to_owned())],
        }
    }

    /// Returns true if the whole text matches.
    pub fn matches(&self, text: &str) -> bool {
        self.versions(text).is_some()
    }

    /// Returns what each `{version}` matches, in order; `None` if the text does not match.
    pub fn versions<'t>(&self, text: &'t str) -> Option<Vec<&'t str>> {
        let mut versions = Vec::new();
        let mut rest = text;
        for part in &self.parts {
            let after = match part {
                Part::Text(text) => rest.strip_prefix(text.as_str())?,
                Part::Placeholder(run) => run.strip(rest)?,
            };
            if *part == Part::Placeholder(Placeholder::Version) {
                versions.extend(rest.get(..rest.len() - after.len()));
            }
            rest = after;
        }
        rest.is_empty().then_some(versions)
    }
}

impl FromStr for TextPattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        Ok(Self {
            text: text.to_owned(),
            parts: parts(text)?,
        })
    }
}

impl fmt::Display for TextPattern {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> TextPattern {
        text.parse().unwrap()
    }

    #[test]
    fn text_without_placeholders_matches_itself_alone() {
        let path = pattern("/v1/messages");
        assert!(path.matches("/v1/messages"));
        for other in ["/v1/message", "/v1/messages/", "/V1/messages", ""] {
            assert!(!path.matches(other), "{other}");
        }
    }

    #[test]
    fn versions_are_whole_runs_of_their_characters() {
        let agent = pattern("agent-cli/{version} (external, sdk-cli)");
        let found = agent.versions("agent-cli/2.1.177-rc.1+b (external, sdk-cli)");
        assert_eq!(found, Some(vec!["2.1.177-rc.1+b"]));
        for other in [
            "agent-cli/ (external, sdk-cli)",
            "agent-cli/2.1 x (external, sdk-cli)",
            "agent-cli/2.1 (external, sdk-cli) ",
            "agent-cli/2.1",
        ] {
            assert_eq!(agent.versions(other), None, "{other}");
        }
    }

    #[test]
    fn unknown_placeholder_is_no_pattern() {
        let error = "x/{model}".parse::<TextPattern>();
        assert_eq!(error, Err(PatternError::Unknown("model".to_owned())));
    }
}
