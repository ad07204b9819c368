//! Markdown report for the summary page of a CI job on GitHub or GitLab, always below 1 MiB.
//!
//! Text of the client appears in code spans only, because they cannot contain links, mentions, HTML or markers. No line
//! begins with it.

use std::fmt::{self, Write as _};

use model::escape;
use model::report::Report;

use super::RenderError;
use super::document::{Block, Budget, Document, Entry, Fact, Limit, Medium, Span, Table, Text};
use super::headline::Headline;
use super::phrases::cut;

/// Maximum length of one text, in characters.
const MAX_TEXT_CHARS: usize = 300;

/// Returns the size of a budget.
///
/// GitHub drops the summary of a job's step above 1 MiB. Thirteen blocks of client data leave room for our own text and
/// for other reports of the step.
fn limit(budget: Budget) -> Limit {
    match budget {
        Budget::Ours => Limit::NONE,
        Budget::Policy | Budget::Client | Budget::Bodies | Budget::Part => Limit {
            entries: 100,
            bytes: 48 << 10,
        },
    }
}

/// Renders the report as UTF-8 Markdown.
pub fn render(report: &Report) -> Result<Vec<u8>, RenderError> {
    Ok(lay_out(&Document::of(report, &[Medium::Markdown]))?.into_bytes())
}

/// Lays out a document.
pub(super) fn lay_out(document: &Document) -> Result<String, fmt::Error> {
    let Headline { word, text, .. } = &document.headline;
    let mut out = match text.as_str() {
        "" => format!("## {word}\n"),
        text => format!("## {word}: {}\n", code(text, MAX_TEXT_CHARS)),
    };
    facts(&mut out, Budget::Ours, &document.identity)?;
    for section in document.sections(Medium::Markdown) {
        let colon = if section.note.is_empty() { "" } else { ": " };
        writeln!(out, "\n### {}{colon}{}", section.title, section.note)?;
        for block in &section.blocks {
            self::block(&mut out, block)?;
        }
    }
    Ok(out)
}

fn block(out: &mut String, block: &Block) -> fmt::Result {
    match block {
        Block::Facts(budget, all) => facts(out, *budget, all),
        Block::Claims(claims) => {
            let lines = claims.iter();
            let lines =
                lines.map(|claim| item(claim.strength.word().0, &claim.text.as_str().into()));
            entries(out, Budget::Ours, claims.len(), lines)
        }
        Block::Table(table) => self::table(out, table),
        Block::Entries(all) => entries(out, Budget::Ours, all.len(), all.iter().map(entry)),
        Block::Drift(drift) => self::table(out, &drift.table()),
        // Sections with these blocks are for HTML only.
        Block::Lines(_) | Block::Folds(..) | Block::Timeline(_) => Ok(()),
    }
}

fn facts(out: &mut String, budget: Budget, facts: &[Fact]) -> fmt::Result {
    let lines = facts.iter().map(|fact| item(&fact.label, &fact.value));
    entries(out, budget, facts.len(), lines)
}

fn item(label: &str, value: &Text) -> String {
    let colon = if label.is_empty() { "" } else { ": " };
    format!("- {label}{colon}{}\n", shown(value))
}

fn entry(entry: &Entry) -> String {
    let (id, message) = (code(&entry.id, MAX_TEXT_CHARS), shown(&entry.message));
    let facts = entry.facts.iter();
    let facts = facts.map(|fact| format!("  {}", item(&fact.label, &fact.value)));
    let head = format!("- {} {id}, {}: {message}\n", entry.word, entry.asked_by);
    // No line of the text begins a fence: each begins with a key, a table or a comment.
    let accept = entry.accept.iter().map(|line| format!("    {line}\n"));
    let accept: String = accept.collect();
    let accept = if accept.is_empty() {
        accept
    } else {
        format!("  - to accept:\n\n    ```toml\n{accept}    ```\n")
    };
    head + &facts.collect::<String>() + &accept
}

fn table(out: &mut String, table: &Table) -> fmt::Result {
    let columns: Vec<_> = table.columns(Medium::Markdown).collect();
    let row = |cells: &mut dyn Iterator<Item = String>| {
        let cells: Vec<_> = cells.collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let headings = row(&mut columns.iter().map(|(_, column)| column.heading.to_owned()));
    write!(out, "\n{headings}|{}", "---|".repeat(columns.len()))?;
    let rows = table.rows.iter().map(|one| {
        row(&mut columns
            .iter()
            .map(|(index, _)| one.cells.get(*index).map_or_else(String::new, shown)))
    });
    entries(out, table.budget, table.all, rows)
}

/// Writes the lines that fit, then the note on the others.
fn entries(
    out: &mut String,
    budget: Budget,
    all: usize,
    lines: impl Iterator<Item = String>,
) -> fmt::Result {
    let (lines, cut) = limit(budget).fit(all, lines);
    write!(out, "\n{lines}")?;
    cut.map_or(Ok(()), |cut| writeln!(out, "\n{cut}"))
}

/// Returns a text with code spans for all but our own words. Adjacent code shares a span, because its fences would join.
fn shown(text: &Text) -> String {
    let spans = text.shown(MAX_TEXT_CHARS).into_iter().map(|(span, text)| {
        let is_own = matches!(span, Span::Own(_) | Span::Mark(..));
        (is_own && is_plain(&text), text)
    });
    let spans: Vec<_> = spans.collect();
    let runs = spans.chunk_by(|(one, _), (other, _)| one == other);
    let runs = runs.map(|run| {
        let text: String = run.iter().map(|(_, text)| text.as_str()).collect();
        let is_own = run.first().is_some_and(|(is_own, _)| *is_own);
        if is_own {
            text
        } else {
            code(&text, usize::MAX)
        }
    });
    runs.collect()
}

/// Returns true for text that is the same as Markdown.
fn is_plain(text: &str) -> bool {
    !text.contains(|c: char| r"\`*_[]<>|&~@#{}$".contains(c))
        && !["://", "www."].iter().any(|link| text.contains(link))
}

/// Returns a code span for any text (CommonMark, section 6.1).
///
/// Pipes are escaped, because they would end a table cell (GitHub Flavored Markdown, section 4.10); behind a
/// backslash of the text, `\\|` would end it too.
fn code(text: &str, max_chars: usize) -> String {
    let text = cut(&unlinked(&escape::visible(text)), max_chars);
    if text.is_empty() {
        return String::new();
    }
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    // A code span loses one blank at each end.
    format!("{fence} {} {fence}", text.replace('|', "\\u{7c}"))
}

/// Removes the link syntax, for readers that parse a single line and so may miss the code span.
fn unlinked(text: &str) -> String {
    text.replace("](", r"]\u{28}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_span_has_a_longer_fence_than_its_text() {
        assert_eq!(code("a", 9), "` a `");
        assert_eq!(code("`a``b", 9), "``` `a``b ```");
        assert_eq!(code("", 9), "");
    }

    #[test]
    fn end_of_a_cell_and_link_are_escaped() {
        assert_eq!(code("a|b\nc", 9), r"` a\u{7c}b\nc `");
        assert_eq!(code("[a](b)", 99), r"` [a]\u{28}b) `");
    }

    #[test]
    fn own_words_with_syntax_become_code() {
        for (text, markdown) in [
            ("exit code 0, 12:30", "exit code 0, 12:30"),
            ("a_b_c", "` a_b_c `"),
            ("see http://x", "` see http://x `"),
            ("@x", "` @x `"),
        ] {
            assert_eq!(shown(&text.into()), markdown);
        }
    }

    #[test]
    fn adjacent_code_shares_a_span() {
        let text = Text(vec![
            Span::Own("<".to_owned()),
            Span::Client("a".to_owned()),
            Span::Own(": b".to_owned()),
        ]);
        assert_eq!(shown(&text), "` <a `: b");
    }
}
