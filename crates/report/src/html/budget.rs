//! Size budgets: each table or list of client data has its own limit. Our own data is never cut.

use maud::{Markup, PreEscaped, html};

use crate::phrases::grouped;

/// Maximum size of one table or list. Content nested in an entry counts for the entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    bytes: usize,
    entries: usize,
}

/// Column of a table, with its heading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    /// Text or code of any length.
    Text(&'static str),
    /// Word, time or digest, never wrapped.
    Word(&'static str),
    /// Number, right-aligned.
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

impl Budget {
    /// Unlimited, for our own data, because no client decides its size.
    pub(super) const OURS: Self = Self {
        bytes: usize::MAX,
        entries: usize::MAX,
    };
    /// Limit for client data, and for data whose number depends on the client.
    pub(super) const CLIENT: Self = Self {
        bytes: 512 << 10,
        entries: 1_000,
    };
    /// Limit for a part of one entry, so that one entry cannot fill a list.
    pub(super) const PART: Self = Self {
        bytes: 80 << 10,
        entries: 1_000,
    };

    /// Returns the first entries that fit.
    pub(super) fn first<T>(self, entries: &[T], show: impl FnMut(&T) -> Markup) -> Vec<Markup> {
        let mut left = self.bytes;
        let shown = entries.iter().take(self.entries).map(show);
        let fitting = shown.map_while(|entry| {
            left = left.checked_sub(entry.0.len())?;
            Some(entry)
        });
        fitting.collect()
    }

    /// Returns the first entries that fit, and the number of the others.
    pub(super) fn entries<T>(
        self,
        entries: &[T],
        show: impl FnMut(&T) -> Markup,
    ) -> (Markup, usize) {
        let shown = self.first(entries, show);
        let cut = entries.len() - shown.len();
        let shown = shown.into_iter().map(|entry| entry.0).collect();
        (PreEscaped(shown), cut)
    }

    /// Draws a list and counts the entries that it cuts.
    pub(super) fn list<T>(self, entries: &[T], show: impl Fn(&T) -> Markup) -> Markup {
        let (shown, cut) = self.entries(entries, |entry| html! { li { (show(entry)) } });
        html! {
            ul { (shown) }
            (missing(cut, entries.len()))
        }
    }

    /// Draws a table and counts the rows that it cuts.
    ///
    /// On a narrow page, each row becomes a list of named cells.
    pub(super) fn table<T, const N: usize>(
        self,
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
            // On a narrow page, the style sheet hides empty cells.
            @let class = if cell.0.is_empty() { "empty" } else { column.class() };
            td class=(class) data-label=(column.label()) { div { (cell) } }
        }
    }
}

/// Draws the note on entries that were cut.
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
        let max = Budget::CLIENT.entries;
        let PreEscaped(list) = Budget::CLIENT.list(&vec!["x"; max + 1], |x| html! { (x) });
        assert_eq!(list.matches("<li>x</li>").count(), max);
        assert!(list.ends_with("Cut: 1 more entry of 1,001.</p>"), "{list}");
    }

    #[test]
    fn a_table_that_is_full_takes_no_more_rows_and_leaves_the_next_its_own() {
        let Budget { bytes, entries } = Budget::CLIENT;
        let wide = "x".repeat(bytes / entries);
        let table = |rows: usize| {
            let columns = [Column::Text("t")];
            let PreEscaped(table) =
                Budget::CLIENT.table(columns, &vec![(); rows], |()| [html! { (wide) }]);
            table
        };
        let (full, next) = (table(entries), table(1));
        assert!(full.len() <= bytes + 1_024, "{}", full.len());
        assert!(full.contains("more entries of 1,000."));
        assert!(next.contains(&wide) && !next.contains("Cut"), "{next}");
    }

    #[test]
    fn what_is_ours_is_drawn_whole() {
        let wide = "x".repeat(Budget::CLIENT.bytes);
        let PreEscaped(list) = Budget::OURS.list(&[(); 3], |()| html! { (wide) });
        assert_eq!(list.matches("<li>").count(), 3);
        assert!(!list.contains("Cut"));
    }
}
