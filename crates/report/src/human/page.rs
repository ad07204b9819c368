//! Layout of the terminal report: columns, width, colours, and the prefix before text of the client.
//!
//! Every printed text passes through this module, which escapes it.

use std::fmt;

use model::escape;

use crate::document::{Budget, Column, Kind, Medium, Row, Table, Text, cut_note};
use crate::phrases::cut;

pub use crate::tone::Tone;

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
/// Maximum number of rows of one table of client data.
const MAX_ROWS: usize = 40;
/// Minimum width of the last column of a table, in columns.
const MIN_WIDTH: usize = 20;

/// Use of escape sequences for colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// Plain text.
    Plain,
    /// ANSI colours (SGR), for a terminal.
    Ansi,
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
        let title = self.coded(title, "1");
        writeln!(self.out, "\n{title}")
    }

    /// Writes a line that begins with a coloured word. `rest` begins with its own blanks or punctuation.
    pub fn headline(&mut self, word: &str, tone: Tone, rest: &str) -> fmt::Result {
        let word = self.painted(word, tone);
        writeln!(self.out, "{word}{}", escape::visible(rest))
    }

    /// Writes a label and a text of our own, wrapped.
    pub fn say(&mut self, label: &str, tone: Tone, text: &str) -> fmt::Result {
        self.wrapped(INDENT, label, tone, &escape::visible(text))
    }

    /// Writes a label and a text of the client, wrapped and cut.
    pub fn quote(&mut self, label: &str, text: &str) -> fmt::Result {
        self.wrapped(
            GUTTER,
            label,
            Tone::Quiet,
            &cut(&escape::visible(text), MAX_TEXT_CHARS),
        )
    }

    /// Writes a text of the client on one line, neither cut nor wrapped, so that it can be copied and compared.
    pub(crate) fn whole(&mut self, text: &str) -> fmt::Result {
        let gutter = self.painted(GUTTER, Tone::Quiet);
        writeln!(self.out, "{gutter}{}", escape::visible(text))
    }

    /// Writes lines of our own text below a label, neither cut nor wrapped, so that they can be copied.
    pub(crate) fn copyable(&mut self, label: &str, lines: &[String]) -> fmt::Result {
        if !lines.is_empty() {
            self.say(label, Tone::Quiet, "")?;
        }
        lines.iter().try_for_each(|line| match line.as_str() {
            "" => writeln!(self.out),
            line => writeln!(self.out, "      {line}"),
        })
    }

    /// Writes the headings and the first rows of a table: short cells in columns, then the texts, joined.
    pub(crate) fn table(&mut self, table: &Table) -> fmt::Result {
        let most = max_entries(table.budget);
        let (texts, columns): (Vec<_>, Vec<_>) = table
            .columns(Medium::Terminal)
            .partition(|(_, column)| column.kind == Kind::Text);
        let cells = |row: &Row, index: usize| row.cells.get(index).map_or_else(String::new, plain);
        let columns = columns.into_iter().map(|(index, column)| {
            let rows = table.rows.iter().take(most);
            let cells: Vec<_> = rows
                .map(|row| escape::visible(&cells(row, index)))
                .collect();
            let all = cells.iter().map(String::as_str).chain([column.heading]);
            let width = all.map(|cell| cell.chars().count()).max().unwrap_or(0);
            (column, width, cells)
        });
        let columns: Vec<(&Column, usize, Vec<String>)> = columns.collect();
        let aligned = |(column, width, cell): (&Column, usize, &str)| match column.kind {
            Kind::Number => format!("{cell:>width$}  "),
            Kind::Word | Kind::Text => format!("{cell:<width$}  "),
        };
        let joined = |cells: &mut dyn Iterator<Item = (&'static str, String)>| {
            let cells = cells.filter(|(_, cell)| !cell.is_empty()).enumerate();
            let cells = cells.map(|(index, (lead, cell))| match index {
                0 => cell,
                _ => format!("{lead}{cell}"),
            });
            cells.collect::<String>()
        };
        let headings = columns
            .iter()
            .map(|(column, width, _)| aligned((column, *width, column.heading)));
        let text = joined(
            &mut texts
                .iter()
                .map(|(_, one)| (one.lead, one.heading.to_owned())),
        );
        let line = format!("{:4}{}{text}", "", headings.collect::<String>());
        let line = self.painted(line.trim_end(), Tone::Quiet);
        writeln!(self.out, "{line}")?;
        for (number, row) in table.rows.iter().take(most).enumerate() {
            let head = columns.iter().map(|(column, width, cells)| {
                aligned((column, *width, cells.get(number).map_or("", String::as_str)))
            });
            let texts = &mut texts
                .iter()
                .map(|(index, one)| (one.lead, cells(row, *index)));
            self.row(&head.collect::<String>(), &joined(texts))?;
        }
        self.cut(most, table.all)
    }

    /// Writes our own words, then a text of the client, cut, and wrapped in a column of its own.
    pub(crate) fn row(&mut self, head: &str, text: &str) -> fmt::Result {
        let text = cut(&escape::visible(text), MAX_TEXT_CHARS);
        let indent = head.chars().count();
        let width = (WIDTH - GUTTER.len()).saturating_sub(indent);
        for (index, piece) in wrap(&text, width.max(MIN_WIDTH)).enumerate() {
            let head = if index == 0 {
                head
            } else {
                &" ".repeat(indent)
            };
            let gutter = self.painted(GUTTER, Tone::Quiet);
            writeln!(self.out, "{gutter}{}", format!("{head}{piece}").trim_end())?;
        }
        Ok(())
    }

    /// Writes a note if there are more entries than shown.
    pub(crate) fn cut(&mut self, most: usize, all: usize) -> fmt::Result {
        cut_note(most, all).map_or(Ok(()), |note| self.say("", Tone::Quiet, &note))
    }

    /// Writes `prefix` and a label, then the text, wrapped in a column of its own.
    fn wrapped(&mut self, prefix: &str, label: &str, tone: Tone, text: &str) -> fmt::Result {
        // A blank follows a label that is longer than its column.
        let label_width = TEXT_COLUMN - prefix.len();
        let is_long = label.chars().count() >= label_width;
        let label = if is_long {
            format!("{label} ")
        } else {
            label.to_owned()
        };
        for (index, piece) in wrap(text, WIDTH - TEXT_COLUMN).enumerate() {
            let label = if index == 0 { &label } else { "" };
            let prefix = self.painted(prefix, Tone::Quiet);
            let label = self.painted(&format!("{label:<label_width$}"), tone);
            writeln!(self.out, "{prefix}{}", format!("{label}{piece}").trim_end())?;
        }
        Ok(())
    }

    fn painted(&self, text: &str, tone: Tone) -> String {
        self.coded(
            text,
            match tone {
                Tone::Good => "1;32",
                Tone::Seen => "1;34",
                Tone::Bad => "1;31",
                Tone::Doubtful => "33",
                Tone::Quiet => "2",
            },
        )
    }

    /// Paints a text by a code of SGR (ECMA-48).
    fn coded(&self, text: &str, code: &str) -> String {
        match self.colour {
            Colour::Ansi if !text.trim().is_empty() => format!("\x1b[{code}m{text}\x1b[0m"),
            Colour::Ansi | Colour::Plain => text.to_owned(),
        }
    }
}

/// Maximum number of entries of a budget.
pub(crate) fn max_entries(budget: Budget) -> usize {
    match budget {
        Budget::Ours | Budget::Policy => usize::MAX,
        Budget::Client | Budget::Bodies | Budget::Part => MAX_ROWS,
    }
}

/// Returns the characters of a text.
pub(crate) fn plain(text: &Text) -> String {
    text.0.iter().map(|span| span.text()).collect()
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
        page.row("1  ", &"::error::".repeat(60))
            .expect("a string takes everything");
        let text = page.finish();
        assert!(text.lines().all(|line| line.starts_with(GUTTER)), "{text}");
        assert!(
            text.lines().all(|line| line.chars().count() <= WIDTH),
            "{text}"
        );
        assert!(text.contains("(cut: "), "{text}");
    }
}
