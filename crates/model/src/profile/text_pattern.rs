//! Patterns of one line of text, such as a user agent or the path of a request, with the placeholders of paths.

use std::fmt;
use std::str::FromStr;

use super::path_pattern::{Part, PatternError, Placeholder, parts};

/// Beginning of a path in the project of a case, which each run replaces.
const IN_PROJECT: &str = "{project}/";

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

    /// Parses the path of a program, which may begin with `{project}/`.
    ///
    /// # Errors
    /// As [`str::parse`].
    pub fn of_program(text: &str) -> Result<Self, PatternError> {
        let below = text.strip_prefix(IN_PROJECT);
        let mut pattern: Self = below.unwrap_or(text).parse()?;
        if below.is_some() {
            text.clone_into(&mut pattern.text);
            pattern.parts.insert(0, Part::Text(IN_PROJECT.to_owned()));
        }
        Ok(pattern)
    }

    /// Returns the pattern of a program for a run with this project.
    pub fn filled(&self, project: &str) -> Self {
        let mut pattern = self.clone();
        if let Some(Part::Text(first)) = pattern.parts.first_mut()
            && first == IN_PROJECT
        {
            *first = format!("{project}/");
        }
        pattern
    }

    /// Returns the pattern of a program without the path of the project.
    pub fn without(&self, project: &str) -> Self {
        let below = self.text.strip_prefix(project);
        let below = below.and_then(|below| below.strip_prefix('/'));
        let pattern = below.map(|below| Self::of_program(&format!("{IN_PROJECT}{below}")));
        pattern.and_then(Result::ok).unwrap_or_else(|| self.clone())
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
    fn program_in_the_project_matches_in_that_of_the_run() {
        let program = TextPattern::of_program("{project}/bin/tool-{digits}").unwrap();
        let here = program.filled("/srv/a");
        assert!(here.matches("/srv/a/bin/tool-7"));
        assert_eq!(here.to_string(), "{project}/bin/tool-{digits}");
        for other in [
            "/srv/b/bin/tool-7",
            "/srv/a/bin/tool",
            "{project}/bin/tool-7",
        ] {
            assert!(!here.matches(other), "{other}");
        }
        let seen = pattern("/srv/a/bin/tool-{digits}");
        assert_eq!(seen.without("/srv/a"), program);
        assert_eq!(seen.without("/srv/a/bi"), seen);
        let elsewhere = TextPattern::of_program("/usr/bin/git").unwrap();
        assert_eq!(elsewhere.filled("/srv/a"), pattern("/usr/bin/git"));
        assert!(TextPattern::of_program("/x/{project}").is_err());
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
