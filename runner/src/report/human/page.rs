//! The page of the human report: its columns, its width, its colours, and the prefix before text of the client.
//!
//! Everything that is printed passes through here, and is escaped here.

use std::fmt;

use crate::report::escape;

/// Width of a terminal that every line fits into.
const WIDTH: usize = 100;
/// Width of the column of labels.
const LABEL: usize = 10;
/// What every line with text of the client begins with.
const GUTTER: &str = "  | ";
/// Longest text of the client that is shown at one place, in characters.
const CUT: usize = 400;
/// Most rows of one table.
const ROWS: usize = 40;

/// Whether the report may hold escape sequences for colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// Plain text.
    Plain,
    /// ANSI colours (SGR), for a terminal.
    Ansi,
}

/// What a coloured word says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tone {
    Good,
    Bad,
    Doubtful,
    Strong,
    Quiet,
}

/// How a column of a table stands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Align {
    Left,
    Right,
}

/// A page that grows line by line.
pub(super) struct Page<W> {
    out: W,
    colour: Colour,
}

impl<W: fmt::Write> Page<W> {
    pub(super) fn new(out: W, colour: Colour) -> Self {
        Page { out, colour }
    }

    pub(super) fn finish(self) -> W {
        self.out
    }

    pub(super) fn blank(&mut self) -> fmt::Result {
        self.out.write_char('\n')
    }

    /// An empty line, and a title.
    pub(super) fn heading(&mut self, title: &str) -> fmt::Result {
        let title = self.painted(title, Tone::Strong);
        writeln!(self.out, "\n{title}")
    }

    /// A line that begins with a coloured word.
    pub(super) fn headline(&mut self, word: &str, tone: Tone, text: &str) -> fmt::Result {
        let word = self.painted(word, tone);
        writeln!(self.out, "{word}  {}", escape::visible(text))
    }

    /// A label and our own text.
    pub(super) fn say(&mut self, label: &str, tone: Tone, text: &str) -> fmt::Result {
        let text = escape::visible(text);
        self.wrapped("  ", "", label, tone, &text)
    }

    /// A label and text of the client, on lines of their own.
    pub(super) fn quote(&mut self, label: &str, text: &str) -> fmt::Result {
        let gutter = self.painted(GUTTER, Tone::Quiet);
        let text = cut(&escape::visible(text));
        // The gutter is two characters wider than the indent of our own lines: the texts stand in one column.
        self.wrapped(&gutter, GUTTER, label, Tone::Quiet, &text)
    }

    /// Rows of the client's text in columns, the first ones.
    pub(super) fn table<const N: usize>(
        &mut self,
        columns: [Align; N],
        rows: &[[String; N]],
    ) -> fmt::Result {
        let shown: Vec<[String; N]> = rows
            .iter()
            .take(ROWS)
            .map(|row| row.clone().map(|cell| cut(&escape::visible(&cell))))
            .collect();
        let widths = columns_of(&shown);
        let gutter = self.painted(GUTTER, Tone::Quiet);
        for row in &shown {
            let cells =
                row.iter()
                    .zip(widths)
                    .zip(columns)
                    .map(|((cell, width), align)| match align {
                        Align::Left => format!("{cell:<width$}"),
                        Align::Right => format!("{cell:>width$}"),
                    });
            let line = cells.collect::<Vec<_>>().join("  ");
            for piece in wrap(line.trim_end(), WIDTH - GUTTER.len()) {
                writeln!(self.out, "{gutter}{piece}")?;
            }
        }
        match rows.len().checked_sub(ROWS) {
            None | Some(0) => Ok(()),
            Some(more) => self.say("", Tone::Quiet, &format!("and {more} more")),
        }
    }

    /// `prefix` is what is written, `shown` how it looks without colours; empty: the same.
    fn wrapped(
        &mut self,
        prefix: &str,
        shown: &str,
        label: &str,
        tone: Tone,
        text: &str,
    ) -> fmt::Result {
        let indent = if shown.is_empty() {
            prefix.len()
        } else {
            shown.len()
        };
        let label_width = (LABEL + 4) - indent;
        let width = WIDTH - LABEL - 4;
        for (index, piece) in wrap(text, width).enumerate() {
            let label = if index == 0 {
                format!("{label:<label_width$}")
            } else {
                " ".repeat(label_width)
            };
            let line = format!("{}{piece}", self.painted(&label, tone));
            writeln!(self.out, "{prefix}{}", line.trim_end())?;
        }
        Ok(())
    }

    fn painted(&self, text: &str, tone: Tone) -> String {
        let code = match tone {
            Tone::Good => "1;32",
            Tone::Bad => "1;31",
            Tone::Doubtful => "33",
            Tone::Strong => "1",
            Tone::Quiet => "2",
        };
        match self.colour {
            Colour::Ansi if !text.trim().is_empty() => format!("\x1b[{code}m{text}\x1b[0m"),
            Colour::Ansi | Colour::Plain => text.to_owned(),
        }
    }
}

fn columns_of<const N: usize>(rows: &[[String; N]]) -> [usize; N] {
    let mut widths = [0; N];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    widths
}

/// The text, cut at the limit.
fn cut(text: &str) -> String {
    match text.char_indices().nth(CUT) {
        Some((end, _)) => format!("{}… (cut)", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Pieces of at most `width` characters, broken at blanks where there are any; one empty piece for an empty text.
fn wrap(text: &str, width: usize) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let Some((limit, _)) = text.char_indices().nth(width) else {
            rest = None;
            return Some(text);
        };
        let (head, _) = text.split_at(limit);
        let fits = text.get(limit..).is_some_and(|tail| tail.starts_with(' '));
        let end = if fits {
            limit
        } else {
            head.trim_end().rfind(' ').unwrap_or(limit)
        };
        let (piece, tail) = text.split_at(if end == 0 { limit } else { end });
        rest = Some(tail.trim_start()).filter(|tail| !tail.is_empty());
        Some(piece.trim_end())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_broken_at_blanks_and_words_only_where_they_are_too_long() {
        assert_eq!(
            wrap("one two three", 7).collect::<Vec<_>>(),
            ["one two", "three"]
        );
        assert_eq!(
            wrap("abcdefghij", 4).collect::<Vec<_>>(),
            ["abcd", "efgh", "ij"]
        );
        assert_eq!(
            wrap("a bcdefghij", 4).collect::<Vec<_>>(),
            ["a", "bcde", "fghi", "j"]
        );
        assert_eq!(wrap("", 4).collect::<Vec<_>>(), [""]);
        assert_eq!(wrap("grün grün", 5).collect::<Vec<_>>(), ["grün", "grün"]);
    }

    #[test]
    fn every_line_of_the_clients_text_begins_with_the_gutter() {
        let mut page = Page::new(String::new(), Colour::Plain);
        page.quote("found", &"::error::x ".repeat(40))
            .expect("a string takes everything");
        page.table([Align::Left], &[["::error::".repeat(60)]])
            .expect("a string takes everything");
        let text = page.finish();
        assert!(text.lines().all(|line| line.starts_with(GUTTER)), "{text}");
        assert!(
            text.lines().all(|line| line.chars().count() <= WIDTH),
            "{text}"
        );
        assert!(text.contains("(cut)"), "{text}");
    }
}
