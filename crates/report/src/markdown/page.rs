//! The page of the Markdown report: its headings, tables and lists, its limits, and how text of the client is kept
//! from meaning anything.

use std::fmt::{self, Write as _};

use model::escape;

use crate::phrases::cut;

/// Bytes of one table or list of what the client made. There are eleven at most: GitHub drops a summary of more than
/// 1 MiB, one of all reports of a job's step, and what is ours has to fit as well, with some left for others.
const SHARE: usize = 64 * 1024;
/// Its rows or entries.
const ROWS: usize = 100;
/// Characters of one piece of the client's text.
const CUT: usize = 300;

/// Who decides how long a table or list is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    /// We do: it stands there whole.
    Ours,
    /// The client does, or who wrote a policy: it has a share of its own, and takes none of what comes behind it.
    Theirs,
}

impl Length {
    /// Bytes, and rows or entries.
    fn most(self) -> (usize, usize) {
        match self {
            Self::Ours => (usize::MAX, usize::MAX),
            Self::Theirs => (SHARE, ROWS),
        }
    }
}

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
    pub(super) fn list(&mut self, length: Length, entries: &[String]) -> fmt::Result {
        let lines = entries.iter().map(|entry| format!("- {entry}\n"));
        self.lines(length, lines.collect(), ["entry", "entries"])
    }

    /// A table below a heading; without rows `none`, or nothing at all.
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

    /// As many lines as there is room for, and how many are left out.
    fn lines(
        &mut self,
        length: Length,
        lines: Vec<String>,
        [one, several]: [&str; 2],
    ) -> fmt::Result {
        let (mut left, most) = length.most();
        let fitting = lines.iter().take(most).map_while(|line| {
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
        page.list(Length::Theirs, &vec![code("x"); ROWS + 1])
            .unwrap();
        assert!(page.finish().ends_with("\nCut: 1 more entry of 101.\n"));
    }

    #[test]
    fn a_table_that_is_full_takes_no_more_lines_and_leaves_the_next_its_own() {
        let mut page = Page::default();
        let rows = || (0..ROWS).map(|_| ["x".repeat(SHARE / ROWS)]);
        for _ in 0..3 {
            page.table(Length::Theirs, "t", ["x"], rows(), None)
                .unwrap();
        }
        let text = page.finish();
        assert!(text.len() < 3 * (SHARE + 1024), "{}", text.len());
        assert_eq!(text.matches(" of 100.\n").count(), 3);
    }

    #[test]
    fn what_is_ours_stands_there_whole() {
        let mut page = Page::default();
        let entries = vec!["x".repeat(SHARE / ROWS); ROWS + 1];
        page.list(Length::Ours, &entries).unwrap();
        let text = page.finish();
        assert_eq!(text.lines().count(), ROWS + 1);
        assert!(!text.contains("Cut"));
    }
}
