//! The page of the Markdown report: its headings, tables and lists, its limits, and how text of the client is kept
//! from meaning anything.

use std::fmt::{self, Write as _};

use crate::report::escape;
use crate::report::words::cut;

/// GitHub drops a summary of more than 1 MiB, one of all reports of a job's step; some is left for others.
const LIMIT: usize = 900 * 1024;
/// Rows of one table, and entries of one list.
const ROWS: usize = 100;
/// Characters of one piece of the client's text.
const CUT: usize = 300;

/// The text so far.
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

    /// Our own text, with cells from [`code`] in it.
    pub(super) fn paragraph(&mut self, text: &str) -> fmt::Result {
        writeln!(self.out, "\n{text}")
    }

    /// A list of our own text, with cells from [`code`] in it.
    pub(super) fn list(&mut self, entries: &[String]) -> fmt::Result {
        let lines = entries.iter().map(|entry| format!("- {entry}\n"));
        self.lines(lines.collect(), "entry", "entries")
    }

    /// A table below a heading; without rows `none`, or nothing at all.
    pub(super) fn table<const N: usize>(
        &mut self,
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
        self.lines(lines, "row", "rows")
    }

    /// As many lines as there is room for, and how many are left out.
    fn lines(&mut self, lines: Vec<String>, one: &str, several: &str) -> fmt::Result {
        let mut shown = 0;
        for line in lines.iter().take(ROWS) {
            if self.out.len() + line.len() > LIMIT {
                break;
            }
            self.out.push_str(line);
            shown += 1;
        }
        match lines.len() - shown {
            0 => Ok(()),
            1 => writeln!(self.out, "\nCut: 1 more {one} of {}.", lines.len()),
            more => writeln!(self.out, "\nCut: {more} more {several} of {}.", lines.len()),
        }
    }
}

/// A code span that holds the text whatever stands in it (CommonMark, section 6.1), in a cell of a table as well,
/// where a pipe would end it (GitHub Flavored Markdown, section 4.10).
pub(super) fn code(text: &str) -> String {
    let text = cut(&unlinked(&escape::visible(text)), CUT);
    if text.is_empty() {
        return String::new();
    }
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    // A backslash before a pipe would be read as its escape, and a blank at both ends is taken away.
    format!("{fence} {} {fence}", text.replace('|', "\\|"))
}

/// A code span has no links; for readers that take one line by itself there is none either.
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
        assert_eq!(code(&"x".repeat(CUT)), format!("` {} `", "x".repeat(CUT)));
        let long = code(&"é".repeat(CUT + 12));
        assert!(long.ends_with("é… (cut: 12 more characters) `"), "{long}");
    }

    #[test]
    fn lines_that_are_left_out_are_counted() {
        let mut page = Page::default();
        page.list(&vec![code("x"); ROWS + 1]).unwrap();
        assert!(page.finish().ends_with("\nCut: 1 more entry of 101.\n"));
    }

    #[test]
    fn a_page_that_is_full_takes_no_more_lines() {
        let mut page = Page::default();
        let rows = || (0..ROWS).map(|_| ["x".repeat(LIMIT / ROWS)]);
        for _ in 0..3 {
            page.table("t", ["x"], rows(), None).unwrap();
        }
        let text = page.finish();
        assert!(text.len() < LIMIT + 1024, "{}", text.len());
        assert!(text.ends_with("Cut: 100 more rows of 100.\n"));
    }
}
