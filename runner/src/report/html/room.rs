//! How much stands on a page: the tables and lists share one limit, whatever the client made of its evidence.

use std::cell::Cell;

use maud::{Markup, PreEscaped, html};

use crate::report::words::grouped;

/// Bytes of all tables and lists of one page together.
const LIMIT: usize = 8 << 20;
/// Rows of one table, and entries of one list.
const ROWS: usize = 1_000;

/// The room that is left.
#[derive(Debug)]
pub(super) struct Room {
    left: Cell<usize>,
}

impl Default for Room {
    fn default() -> Self {
        Self {
            left: Cell::new(LIMIT),
        }
    }
}

/// How a column is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    /// Text or code, which may be long.
    Text(&'static str),
    /// A word, a time or a digest, which is not broken.
    Word(&'static str),
    /// A number, aligned with the ones above it.
    Number(&'static str),
}

impl Column {
    fn label(self) -> &'static str {
        match self {
            Self::Text(label) | Self::Word(label) | Self::Number(label) => label,
        }
    }

    fn class(self) -> &'static str {
        match self {
            Self::Text(_) => "text",
            Self::Word(_) => "word",
            Self::Number(_) => "number",
        }
    }
}

impl Room {
    /// As many entries as there is room for, and how many are not among them.
    pub(super) fn entries<T>(
        &self,
        entries: &[T],
        mut show: impl FnMut(&T) -> Markup,
    ) -> (Markup, usize) {
        let mut shown = String::new();
        for (index, entry) in entries.iter().enumerate() {
            if index == ROWS {
                return (PreEscaped(shown), entries.len() - index);
            }
            let PreEscaped(entry) = show(entry);
            match self.left.get().checked_sub(entry.len()) {
                Some(left) => self.left.set(left),
                None => return (PreEscaped(shown), entries.len() - index),
            }
            shown.push_str(&entry);
        }
        (PreEscaped(shown), 0)
    }

    /// A list, and how many entries it lacks.
    pub(super) fn list<T>(&self, entries: &[T], show: impl Fn(&T) -> Markup) -> Markup {
        let (shown, cut) = self.entries(entries, |entry| html! { li { (show(entry)) } });
        html! {
            ul { (shown) }
            (missing(cut, entries.len()))
        }
    }

    /// A table, and how many rows it lacks. Where there is no room for its columns, a row is a list of named cells.
    pub(super) fn table<T, const N: usize>(
        &self,
        columns: [Column; N],
        rows: &[T],
        show: impl Fn(&T) -> [Markup; N],
    ) -> Markup {
        let (shown, cut) = self.entries(rows, |row| {
            html! { tr { (cells(columns, show(row))) } }
        });
        html! {
            table {
                (head(columns))
                tbody { (shown) }
            }
            (missing(cut, rows.len()))
        }
    }
}

pub(super) fn head<const N: usize>(columns: [Column; N]) -> Markup {
    html! {
        thead { tr {
            @for column in columns { th scope="col" class=(column.class()) { (column.label()) } }
        } }
    }
}

pub(super) fn cells<const N: usize>(columns: [Column; N], cells: [Markup; N]) -> Markup {
    html! {
        @for (column, cell) in columns.into_iter().zip(cells) {
            // On a narrow page an empty cell has no line.
            @let class = if cell.0.is_empty() { "empty" } else { column.class() };
            td class=(class) data-label=(column.label()) { div { (cell) } }
        }
    }
}

/// What is said where entries are missing.
pub(super) fn missing(cut: usize, all: usize) -> Markup {
    html! {
        @if cut > 0 {
            @let noun = if cut == 1 { "entry" } else { "entries" };
            p.cut { "Cut: " (grouped(cut as u64)) " more " (noun) " of " (grouped(all as u64)) "." }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_that_are_left_out_are_counted() {
        let list = Room::default().list(&vec!["x"; ROWS + 1], |x| html! { (x) });
        let PreEscaped(list) = list;
        assert_eq!(list.matches("<li>x</li>").count(), ROWS);
        assert!(list.ends_with("Cut: 1 more entry of 1,001.</p>"), "{list}");
    }

    #[test]
    fn a_page_that_is_full_takes_no_more_rows() {
        let room = Room::default();
        let wide = "x".repeat(LIMIT / ROWS);
        let rows = vec![(); ROWS];
        let table = || room.table([Column::Text("t")], &rows, |()| [html! { (wide) }]);
        let (PreEscaped(first), PreEscaped(second)) = (table(), table());
        assert!(first.len() <= LIMIT + 1_024, "{}", first.len());
        assert!(first.contains("more entries of 1,000."));
        assert!(second.ends_with("Cut: 1,000 more entries of 1,000.</p>"));
    }
}
