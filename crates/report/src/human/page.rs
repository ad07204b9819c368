//! Layout of the terminal report: columns, width, colours, and the prefix before text of the client.
//!
//! Every printed text passes through this module, which escapes it.

use std::fmt;

use model::escape;

/// Maximum width of a line, in columns.
pub const WIDTH: usize = 100;
/// Column at which texts begin, after their label.
const TEXT_COLUMN: usize = 14;
/// Prefix of a line of our own text.
const INDENT: &str = "  ";
/// Prefix of each line with text of the client.
const GUTTER: &str = "  | ";
/// Maximum length of one text of the client, in characters.
const MAX_TEXT_CHARS: usize = 400;
/// Maximum number of rows of one table.
const MAX_ROWS: usize = 40;

/// Use of escape sequences for colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// Plain text.
    Plain,
    /// ANSI colours (SGR), for a terminal.
    Ansi,
}

/// Meaning of a coloured word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Success, bold green.
    Good,
    /// Failure, bold red.
    Bad,
    /// Uncertain result, yellow.
    Doubtful,
    /// Heading, bold.
    Strong,
    /// Label, dim.
    Quiet,
}

/// Alignment of a table column.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// A row of a table.
pub(crate) struct Row<const N: usize> {
    /// Short words and numbers of our own.
    pub(crate) cells: [String; N],
    /// Text of the client.
    pub(crate) last: String,
}

/// Writer of a terminal report, line by line.
pub struct Page<W> {
    out: W,
    colour: Colour,
}

impl<W: fmt::Write> Page<W> {
    /// Starts a page on `out`.
    pub fn new(out: W, colour: Colour) -> Self {
        Page { out, colour }
    }

    /// Returns the writer.
    pub fn finish(self) -> W {
        self.out
    }

    /// Writes an empty line.
    pub fn blank(&mut self) -> fmt::Result {
        self.out.write_char('\n')
    }

    /// Writes an empty line and a title.
    pub fn heading(&mut self, title: &str) -> fmt::Result {
        let title = self.painted(title, Tone::Strong);
        writeln!(self.out, "\n{title}")
    }

    /// Writes a line that begins with a coloured word.
    pub fn headline(&mut self, word: &str, tone: Tone, text: &str) -> fmt::Result {
        let word = self.painted(word, tone);
        writeln!(self.out, "{word}  {}", escape::visible(text))
    }

    /// Writes a label and a text of our own, wrapped.
    pub fn say(&mut self, label: &str, tone: Tone, text: &str) -> fmt::Result {
        self.wrapped(INDENT, label, tone, &escape::visible(text))
    }

    /// Writes a label and a text of the client, wrapped and cut.
    pub fn quote(&mut self, label: &str, text: &str) -> fmt::Result {
        self.wrapped(GUTTER, label, Tone::Quiet, &cut(&escape::visible(text)))
    }

    /// Writes a text of the client on one line, neither cut nor wrapped, so that it can be copied and compared.
    pub(crate) fn whole(&mut self, text: &str) -> fmt::Result {
        let gutter = self.painted(GUTTER, Tone::Quiet);
        writeln!(self.out, "{gutter}{}", escape::visible(text))
    }

    /// Writes the first rows of a table: short cells in columns, then a text of the client of any length.
    pub(crate) fn table<const N: usize>(
        &mut self,
        columns: [Align; N],
        rows: &[Row<N>],
    ) -> fmt::Result {
        let widths = widths(rows);
        for Row { cells, last } in rows.iter().take(MAX_ROWS) {
            let cells = cells.iter().zip(widths).zip(columns);
            let head: String = cells
                .map(|((cell, width), align)| match align {
                    Align::Left => format!("{cell:<width$}  "),
                    Align::Right => format!("{cell:>width$}  "),
                })
                .collect();
            let indent = head.chars().count();
            let last = cut(&escape::visible(last));
            for (index, piece) in wrap(&last, WIDTH - GUTTER.len() - indent).enumerate() {
                let head = if index == 0 {
                    head.clone()
                } else {
                    " ".repeat(indent)
                };
                let gutter = self.painted(GUTTER, Tone::Quiet);
                writeln!(self.out, "{gutter}{}", format!("{head}{piece}").trim_end())?;
            }
        }
        match rows.len().checked_sub(MAX_ROWS) {
            None | Some(0) => Ok(()),
            Some(more) => self.say("", Tone::Quiet, &format!("and {more} more")),
        }
    }

    /// Writes `prefix` and a label, then the text, wrapped in a column of its own.
    fn wrapped(&mut self, prefix: &str, label: &str, tone: Tone, text: &str) -> fmt::Result {
        let label_width = TEXT_COLUMN - prefix.len();
        for (index, piece) in wrap(text, WIDTH - TEXT_COLUMN).enumerate() {
            let label = if index == 0 { label } else { "" };
            let prefix = self.painted(prefix, Tone::Quiet);
            let label = self.painted(&format!("{label:<label_width$}"), tone);
            writeln!(self.out, "{prefix}{}", format!("{label}{piece}").trim_end())?;
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

fn widths<const N: usize>(rows: &[Row<N>]) -> [usize; N] {
    let mut widths = [0; N];
    for row in rows.iter().take(MAX_ROWS) {
        for (width, cell) in widths.iter_mut().zip(&row.cells) {
            *width = cell.chars().count().max(*width);
        }
    }
    widths
}

/// Cuts a text at [`MAX_TEXT_CHARS`].
fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_TEXT_CHARS) {
        Some((end, _)) => format!("{}… (cut)", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Splits a text into pieces of at most `width` characters, at blanks if there are any.
///
/// An empty text gives one empty piece.
pub fn wrap(text: &str, width: usize) -> impl Iterator<Item = &str> {
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
        let row = Row {
            cells: ["1".to_owned()],
            last: "::error::".repeat(60),
        };
        page.table([Align::Right], &[row])
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
