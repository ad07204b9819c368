//! The report for people as one value: sections of facts, tables and entries, without a layout.
//!
//! Owns the words and the order of the sections, the same in each format. The back ends `human`, `markdown` and `html`
//! lay out and escape a [`Document`] for their medium, and add no words about the run.

use model::difference::{Accept, Difference};
use model::report::{Purpose, Report};
use model::text::grouped;

use super::claims::Claim;
use super::headline::{Headline, headline};
use super::tone::Tone;

mod checks;
mod files;
mod fleet;
mod hints;
mod isolation;
mod ledger;
mod output;
mod summary;
mod text;
pub(super) mod timeline;
mod traffic;

use text::{client, digest, mark, name, own};
use timeline::Timeline;

pub(super) use text::{Span, Text};

/// Maximum number of entries of a block in any format.
const MAX_ENTRIES: usize = 1_000;

/// Content of a report for people.
#[derive(Debug)]
pub(super) struct Document {
    /// Kind of run.
    pub(super) kind: &'static str,
    pub(super) headline: Headline,
    /// Facts on the program, the case and the machine.
    pub(super) identity: Vec<Fact>,
    sections: Vec<Section>,
}

impl Document {
    /// Builds the document of a report for these media.
    pub(super) fn of(report: &Report, media: &[Medium]) -> Self {
        Self {
            kind: match report.purpose {
                Purpose::Judge => "Sandboxed run of a client",
                Purpose::Audit => "Audit of a program in a sandbox",
            },
            headline: headline(report),
            identity: summary::identity(report),
            sections: match report.purpose {
                Purpose::Judge => judged(report, media),
                Purpose::Audit => audited(report, media),
            },
        }
    }

    /// Returns the sections of a medium.
    pub(super) fn sections(&self, medium: Medium) -> impl Iterator<Item = &Section> {
        let shown = move |section: &&Section| section.media.contains(&medium);
        self.sections.iter().filter(shown)
    }
}

fn judged(report: &Report, media: &[Medium]) -> Vec<Section> {
    let parts = [
        output::cause(report),
        checks::not_judged(report),
        summary::unsound(report),
        checks::findings(report),
        summary::drift(report),
        ledger::sensitive(report),
        Some(summary::claims(report)),
        Some(timeline::section(report)),
        traffic::requests(report),
        traffic::heads_and_bodies(report, media),
        traffic::connections(report),
        Some(ledger::attempts(report)),
        ledger::limits(report),
        ledger::names(report),
        ledger::lookups(report),
        Some(output::records(report)),
        Some(files::left(report)),
        files::transient(report),
        ledger::programs(report),
        ledger::refused(report),
        hints::section(report),
        ledger::survivors(report),
        output::stderr(report),
    ];
    let sandbox = isolation::sections(report).into_iter();
    let settings = [summary::settings(report), summary::wider_rules(report)];
    let all = parts.into_iter().chain(sandbox).chain(settings);
    let all = all.chain(checks::all(report));
    all.chain([Some(summary::digests(report))])
        .flatten()
        .collect()
}

/// Sections of an audit: its end, its findings, then the evidence, then the options that would show the program more.
///
/// The program's output is not shown, because an audit passes it through, but for the end of standard error.
fn audited(report: &Report, media: &[Medium]) -> Vec<Section> {
    let parts = [
        output::cause(report),
        checks::not_judged(report),
        hints::section(report),
        summary::unsound(report),
        summary::drift(report),
        checks::findings(report),
        ledger::sensitive(report),
        Some(ledger::attempts(report)),
        ledger::limits(report),
        ledger::names(report),
        Some(timeline::section(report)),
        traffic::requests(report),
        traffic::heads_and_bodies(report, media),
        traffic::connections(report),
        Some(files::left(report)),
        files::transient(report),
        ledger::programs(report),
        ledger::survivors(report),
        ledger::refused(report),
        ledger::lookups(report),
        Some(summary::not_judged()),
        Some(summary::claims(report)),
        summary::wider_rules(report),
    ];
    let sandbox = isolation::sections(report).into_iter();
    let all = parts.into_iter().chain(sandbox).chain(checks::all(report));
    let last = [summary::settings(report), Some(summary::digests(report))];
    all.chain(last).flatten().collect()
}

/// Format of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Medium {
    Terminal,
    Markdown,
    Html,
}

/// Media of most sections.
pub(super) const EVERY: &[Medium] = &[Medium::Terminal, Medium::Markdown, Medium::Html];
/// Media of long sections: a summary of a CI job is short, and shares 1 MiB with other reports of its step.
const LONG: &[Medium] = &[Medium::Terminal, Medium::Html];
/// Medium of drawings and full lists, which need folding, links and width.
const PAGE: &[Medium] = &[Medium::Html];
/// Media of short forms of sections for [`PAGE`].
const SHORT: &[Medium] = &[Medium::Terminal, Medium::Markdown];

/// Part of a document.
#[derive(Debug)]
pub(super) struct Section {
    /// Anchor.
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    /// Number or words after the title; a section of `none` has no block.
    pub(super) note: String,
    pub(super) blocks: Vec<Block>,
    media: &'static [Medium],
}

impl Section {
    fn new(
        id: &'static str,
        title: &'static str,
        note: impl Into<String>,
        blocks: impl Into<Vec<Block>>,
    ) -> Self {
        Self {
            id,
            title,
            note: note.into(),
            blocks: blocks.into(),
            media: EVERY,
        }
    }

    /// Returns the section of facts; `None` without any.
    fn of_facts(
        id: &'static str,
        title: &'static str,
        budget: Budget,
        facts: Vec<Fact>,
    ) -> Option<Self> {
        let is_some = !facts.is_empty();
        is_some.then(|| Self::new(id, title, "", [Block::Facts(budget, facts)]))
    }

    fn only(self, media: &'static [Medium]) -> Self {
        Self { media, ..self }
    }
}

/// Content of a section.
#[derive(Debug)]
pub(super) enum Block {
    Facts(Budget, Vec<Fact>),
    Claims(Vec<Claim>),
    Table(Table),
    /// Findings; our own number.
    Entries(Vec<Entry>),
    Drift(Drift),
    /// Lines of output, of which the last ones matter, or of the shape of a body.
    Lines(Table),
    /// Blocks that a reader opens.
    Folds(Budget, Vec<Fold>),
    Timeline(Timeline),
}

/// Share of room of a block. The back ends choose its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Budget {
    /// Whole: no client decides the size.
    Ours,
    /// Entries of a policy file: cut in a job summary only.
    Policy,
    /// Client data, or data whose number depends on the client.
    Client,
    /// Heads and bodies of all requests.
    Bodies,
    /// Part of one entry, so that one entry cannot fill a list.
    Part,
}

/// Size of a [`Budget`] in one medium.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limit {
    pub(super) entries: usize,
    pub(super) bytes: usize,
}

impl Limit {
    /// Whole blocks.
    pub(super) const NONE: Self = Self {
        entries: usize::MAX,
        bytes: usize::MAX,
    };

    /// Joins the first rendered entries that fit, and returns the note on the others, with the number of `all`.
    pub(super) fn fit(
        self,
        all: usize,
        entries: impl Iterator<Item = String>,
    ) -> (String, Option<String>) {
        let (mut joined, mut shown) = (String::new(), 0);
        for entry in entries.take(self.entries) {
            if joined.len().saturating_add(entry.len()) > self.bytes {
                break;
            }
            joined.push_str(&entry);
            shown += 1;
        }
        (joined, cut_note(shown, all))
    }
}

/// Returns the note on entries that were cut, if there are any.
pub(super) fn cut_note(shown: usize, all: usize) -> Option<String> {
    let cut = all.checked_sub(shown).filter(|cut| *cut > 0)?;
    let noun = if cut == 1 { "entry" } else { "entries" };
    let [cut, all] = [cut, all].map(|number| grouped(number as u64));
    Some(format!(
        "Cut: {cut} more {noun} of {all}. The JSON report has all."
    ))
}

/// Labelled value.
#[derive(Debug)]
pub(super) struct Fact {
    pub(super) label: String,
    pub(super) tone: Tone,
    pub(super) value: Text,
}

fn fact(label: impl Into<String>, value: impl Into<Text>) -> Fact {
    toned(label, Tone::Quiet, value)
}

fn toned(label: impl Into<String>, tone: Tone, value: impl Into<Text>) -> Fact {
    Fact {
        label: label.into(),
        tone,
        value: value.into(),
    }
}

/// Rows under headings.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) budget: Budget,
    columns: Vec<Column>,
    pub(super) rows: Vec<Row>,
    /// Number of rows, of which [`Self::rows`] are the first.
    pub(super) all: usize,
}

/// Row of a table.
#[derive(Debug)]
pub(super) struct Row {
    /// Anchor.
    pub(super) id: Option<String>,
    pub(super) cells: Vec<Text>,
}

/// Column of a table. Columns of text come last, so that a medium can join them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) kind: Kind,
    pub(super) heading: &'static str,
    /// Text before a cell, if a medium joins it to the text before.
    pub(super) lead: &'static str,
    media: &'static [Medium],
}

/// Content of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Word, time or digest, never wrapped.
    Word,
    /// Number, right-aligned.
    Number,
    /// Text of any length.
    Text,
}

/// Cell with its column.
struct Cell(Column, Text);

impl Cell {
    /// Leaves the column to pages, because the other media are narrow.
    fn wide(self) -> Self {
        let media = PAGE;
        Self(Column { media, ..self.0 }, self.1)
    }
}

fn cell(kind: Kind, heading: &'static str, lead: &'static str, text: Text) -> Cell {
    let media = EVERY;
    let column = Column {
        kind,
        heading,
        lead,
        media,
    };
    Cell(column, text)
}

fn word(heading: &'static str, word: impl Into<Text>) -> Cell {
    cell(Kind::Word, heading, "", word.into())
}

fn number(heading: &'static str, number: u64) -> Cell {
    cell(Kind::Number, heading, "", own(grouped(number)))
}

fn text(heading: &'static str, text: impl Into<Text>) -> Cell {
    led(", ", heading, text)
}

fn led(lead: &'static str, heading: &'static str, text: impl Into<Text>) -> Cell {
    cell(Kind::Text, heading, lead, text.into())
}

impl Table {
    /// Builds a table, without the columns that are empty in each row.
    fn of<T, const N: usize>(
        budget: Budget,
        entries: impl IntoIterator<Item = T>,
        row: impl Fn(T) -> [Cell; N],
    ) -> Self {
        let mut entries = entries.into_iter();
        let most = match budget {
            Budget::Ours | Budget::Policy => usize::MAX,
            Budget::Client | Budget::Bodies | Budget::Part => MAX_ENTRIES,
        };
        let rows: Vec<[Cell; N]> = entries.by_ref().take(most).map(row).collect();
        let all = rows.len() + entries.count();
        let mut is_used = [false; N];
        for row in &rows {
            let cells = is_used.iter_mut().zip(row);
            cells.for_each(|(is_used, cell)| *is_used |= cell.1.is_some());
        }
        let used = |row: [Cell; N]| {
            let cells = row.into_iter().zip(is_used);
            cells.filter_map(|(cell, is_used)| is_used.then_some(cell))
        };
        let mut columns = Vec::new();
        let rows = rows.into_iter().map(|row| {
            let (row_columns, cells) = used(row).map(|Cell(column, text)| (column, text)).unzip();
            columns = row_columns;
            Row { id: None, cells }
        });
        let rows = rows.collect();
        Self {
            budget,
            columns,
            rows,
            all,
        }
    }

    /// Returns the columns of a medium with their indexes.
    pub(super) fn columns(&self, medium: Medium) -> impl Iterator<Item = (usize, &Column)> {
        let columns = self.columns.iter().enumerate();
        columns.filter(move |(_, column)| column.media.contains(&medium))
    }

    /// Gives each row an anchor.
    fn with_ids(mut self, ids: impl Iterator<Item = String>) -> Self {
        for (row, id) in self.rows.iter_mut().zip(ids) {
            row.id = Some(id);
        }
        self
    }

    /// Block of the table; none without rows.
    fn blocks(self) -> Vec<Block> {
        let is_some = self.all > 0;
        is_some.then_some(Block::Table(self)).into_iter().collect()
    }

    /// Section of the table with the number of its rows; `None` without rows.
    fn section(self, id: &'static str, title: &'static str) -> Option<Section> {
        (self.all > 0).then(|| self.section_or_none(id, title))
    }

    /// Section of the table with the number of its rows, or with the note that there are none.
    fn section_or_none(self, id: &'static str, title: &'static str) -> Section {
        let note = match self.all {
            0 => "none".to_owned(),
            all => grouped(all as u64),
        };
        Section::new(id, title, note, self.blocks())
    }
}

/// Finding of a check.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) tone: Tone,
    /// Status.
    pub(super) word: &'static str,
    /// Id of the check; [`PAGE`] has its row at the anchor `check-ID`.
    pub(super) id: String,
    pub(super) message: Text,
    pub(super) asked_by: String,
    pub(super) facts: Vec<Fact>,
    /// Lines of TOML that accept the finding.
    pub(super) accept: Vec<String>,
}

/// Differences between two runs, each with the edit of the lock file that accepts it.
#[derive(Debug)]
pub(super) struct Drift(pub(super) Vec<(Difference, Option<Accept>)>);

impl Drift {
    /// Returns the differences as a table, for media without lines to copy.
    pub(super) fn table(&self) -> Table {
        Table::of(Budget::Client, &self.0, |(found, accept)| {
            let accept = accept
                .as_ref()
                .map(|Accept { verb, line }| own(format!("{verb} ")) + client(line));
            [
                word("area", found.fact.area.word()),
                text("fact", client(&found.fact.key)),
                text("before", found.change.before().map(client)),
                text("now", found.change.now().map(client)),
                text("to accept", accept),
            ]
        })
    }
}

/// Folded blocks below a summary.
#[derive(Debug)]
pub(super) struct Fold {
    pub(super) summary: Text,
    pub(super) is_open: bool,
    pub(super) blocks: Vec<Block>,
}

#[cfg(test)]
pub(crate) mod tests;
