//! The README as text: its sections and their fenced blocks.

pub(crate) const README: &str = include_str!("../../../../README.md");

/// The text below a heading, up to the next one.
pub(crate) fn section(heading: &str) -> &'static str {
    let start = format!("\n## {heading}\n");
    let (_, rest) = README.split_once(&start).unwrap();
    rest.split("\n## ").next().unwrap_or(rest)
}

/// Returns the contents of the fenced blocks in this language.
pub(crate) fn blocks_of(text: &str, language: &str) -> Vec<String> {
    let mut parts = text.split("\n```");
    parts.next();
    let mut found = Vec::new();
    while let (Some(block), Some(_)) = (parts.next(), parts.next()) {
        if let Some((_, content)) = block
            .split_once('\n')
            .filter(|(named, _)| *named == language)
        {
            found.push(format!("{content}\n"));
        }
    }
    found
}
