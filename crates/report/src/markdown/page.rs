//! Markdown of the report: headings, tables, lists, size budgets, and code spans for text of the client.

use std::fmt::{self, Write as _};

use model::escape;

use crate::phrases::cut;

/// Maximum size of one table or list of client data, in bytes.
///
/// GitHub drops the summary of a job's step above 1 MiB. Eleven tables of this size leave room for our own text and for
/// other reports of the step.
const MAX_BYTES: usize = 64 * 1024;
/// Maximum number of rows or entries of such a table or list.
const MAX_ROWS: usize = 100;
/// Maximum length of one text of the client, in characters.
const MAX_TEXT_CHARS: usize = 300;

/// Origin of the entries of a table or list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    /// Our own entries, never cut.
    Ours,
    /// Entries of the client or of a policy, cut at [`MAX_BYTES`] and [`MAX_ROWS`].
    Theirs,
}

impl Length {
    /// Returns the maximum of bytes, and of rows or entries.
    fn limits(self) -> (usize, usize) {
        match self {
            Self::Ours => (usize::MAX, usize::MAX),
            Self::Theirs => (MAX_BYTES, MAX_ROWS),
        }
    }
}

/// Markdown text written so far.
#[derive(Debug, Default)]
pub(super) struct Page {
    out: String,
}

impl Page {
    pub(super) fn finish(self) -> String {
        self.out
    }

    pub(super) fn title(&mut self, word: &str, subject: &str) -> fmt::Result {
        writeln!(self.out, "## {word}: {}", code(subject))
    }

    pub(super) fn heading(&mut self, title: &str) -> fmt::Result {
        writeln!(self.out, "\n### {title}\n")
    }

    /// Writes a paragraph; client text in it must come from [`code`].
    pub(super) fn paragraph(&mut self, text: &str) -> fmt::Result {
        writeln!(self.out, "\n{text}")
    }

    /// Writes a list; client text in it must come from [`code`].
    pub(super) fn list(&mut self, length: Length, entries: &[String]) -> fmt::Result {
        let lines = entries.iter().map(|entry| format!("- {entry}\n"));
        self.lines(length, lines.collect(), ["entry", "entries"])
    }

    /// Writes a heading and a table. Without rows, writes `none` below the heading, or omits both.
    pub(super) fn table<const N: usize>(
        &mut self,
        length: Length,
        title: &str,
        head: [&str; N],
        rows: impl Iterator<Item = [String; N]>,
        none: Option<&str>,
    ) -> fmt::Result {
        let lines: Vec<_> = rows
            .map(|row| format!("| {} |\n", row.join(" | ")))
            .collect();
        if lines.is_empty() {
            return none.map_or(Ok(()), |none| {
                self.heading(title)?;
                writeln!(self.out, "{none}")
            });
        }
        self.heading(title)?;
        writeln!(self.out, "| {} |", head.join(" | "))?;
        writeln!(self.out, "|{}", "---|".repeat(N))?;
        self.lines(length, lines, ["row", "rows"])
    }

    /// Writes the lines that fit, then the number of lines left out.
    fn lines(
        &mut self,
        length: Length,
        lines: Vec<String>,
        [one, several]: [&str; 2],
    ) -> fmt::Result {
        let (mut left, max_rows) = length.limits();
        let fitting = lines.iter().take(max_rows).map_while(|line| {
            left = left.checked_sub(line.len())?;
            Some(line)
        });
        let shown = fitting.map(|line| self.out.push_str(line)).count();
        match lines.len() - shown {
            0 => Ok(()),
            1 => writeln!(self.out, "\nCut: 1 more {one} of {}.", lines.len()),
            more => writeln!(self.out, "\nCut: {more} more {several} of {}.", lines.len()),
        }
    }
}

/// Returns a code span for any text (CommonMark, section 6.1).
///
/// Pipes are escaped, because they would end a table cell (GitHub Flavored Markdown, section 4.10).
pub(super) fn code(text: &str) -> String {
    let text = cut(&unlinked(&escape::visible(text)), MAX_TEXT_CHARS);
    if text.is_empty() {
        return String::new();
    }
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    // A table cell reads `\|` as a pipe, and a code span loses one blank at each end.
    format!("{fence} {} {fence}", text.replace('|', "\\|"))
}

/// Removes the link syntax, for readers that parse a single line and so may miss the code span.
fn unlinked(text: &str) -> String {
    text.replace("](", r"]\u{28}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_span_has_a_longer_fence_than_any_that_its_text_has() {
        assert_eq!(code("a"), "` a `");
        assert_eq!(code("`a``b"), "``` `a``b ```");
        assert_eq!(code(""), "");
    }

    #[test]
    fn what_would_end_a_cell_or_make_a_link_does_not() {
        assert_eq!(code("a|b\nc"), r"` a\|b\nc `");
        assert_eq!(code("[a](b)"), r"` [a]\u{28}b) `");
    }

    #[test]
    fn what_is_cut_is_counted() {
        assert_eq!(
            code(&"x".repeat(MAX_TEXT_CHARS)),
            format!("` {} `", "x".repeat(MAX_TEXT_CHARS))
        );
        let long = code(&"é".repeat(MAX_TEXT_CHARS + 12));
        assert!(long.ends_with("é… (cut: 12 more characters) `"), "{long}");
    }

    #[test]
    fn lines_that_are_left_out_are_counted() {
        let mut page = Page::default();
        page.list(Length::Theirs, &vec![code("x"); MAX_ROWS + 1])
            .unwrap();
        assert!(page.finish().ends_with("\nCut: 1 more entry of 101.\n"));
    }

    #[test]
    fn a_table_that_is_full_takes_no_more_lines_and_leaves_the_next_its_own() {
        let mut page = Page::default();
        let rows = || (0..MAX_ROWS).map(|_| ["x".repeat(MAX_BYTES / MAX_ROWS)]);
        for _ in 0..3 {
            page.table(Length::Theirs, "t", ["x"], rows(), None)
                .unwrap();
        }
        let text = page.finish();
        assert!(text.len() < 3 * (MAX_BYTES + 1024), "{}", text.len());
        assert_eq!(text.matches(" of 100.\n").count(), 3);
    }

    #[test]
    fn what_is_ours_stands_there_whole() {
        let mut page = Page::default();
        let entries = vec!["x".repeat(MAX_BYTES / MAX_ROWS); MAX_ROWS + 1];
        page.list(Length::Ours, &entries).unwrap();
        let text = page.finish();
        assert_eq!(text.lines().count(), MAX_ROWS + 1);
        assert!(!text.contains("Cut"));
    }
}
