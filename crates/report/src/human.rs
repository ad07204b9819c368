//! Report for a terminal of 100 columns. The verdict is the first and the last line.
//!
//! Lays out a document; [`page`] owns the layout of a line.

use std::fmt;

use model::report::Report;

use super::RenderError;
use super::document::{Block, Document, Drift, Entry, Fact, Medium, Table};

pub mod drift;
pub mod page;

use page::{Page, Tone, plain};

pub use page::Colour;

/// Maximum number of lines shown of standard error, its last ones.
const MAX_LINES: usize = 10;
/// Maximum number of differences shown; the JSON report has all.
const MAX_DIFFERENCES: usize = 500;

/// Renders the report as UTF-8 text. The caller chooses `colour` by `NO_COLOR` and the terminal.
pub fn render(report: &Report, colour: Colour) -> Result<Vec<u8>, RenderError> {
    let text = lay_out(&Document::of(report, &[Medium::Terminal]), colour)?;
    Ok(text.into_bytes())
}

/// Lays out a document.
pub(super) fn lay_out(document: &Document, colour: Colour) -> Result<String, fmt::Error> {
    let mut page = Page::new(String::new(), colour);
    let headline = &document.headline;
    let (word, tone, rest) = (&headline.word, headline.tone, headline.rest());
    page.headline(word, tone, &rest)?;
    page.blank()?;
    facts(&mut page, usize::MAX, &document.identity)?;
    for section in document.sections(Medium::Terminal) {
        match section.note.as_str() {
            "" => page.heading(section.title)?,
            note => page.heading(&format!("{}: {note}", section.title))?,
        }
        for block in &section.blocks {
            self::block(&mut page, block)?;
        }
    }
    page.blank()?;
    page.headline(word, tone, &rest)?;
    Ok(page.finish())
}

fn block(page: &mut Page<String>, block: &Block) -> fmt::Result {
    match block {
        Block::Facts(budget, all) => facts(page, page::max_entries(*budget), all),
        Block::Claims(claims) => claims.iter().try_for_each(|claim| {
            let (word, tone) = claim.strength.word();
            page.say(word, tone, &claim.text)
        }),
        Block::Table(table) => page.table(table),
        Block::Entries(entries) => self::entries(page, entries),
        Block::Drift(drift) => differences(page, drift),
        Block::Lines(lines) => self::lines(page, lines),
        // Sections with these blocks are for HTML only.
        Block::Folds(..) | Block::Timeline(_) => Ok(()),
    }
}

fn facts(page: &mut Page<String>, most: usize, facts: &[Fact]) -> fmt::Result {
    for Fact { label, tone, value } in facts.iter().take(most) {
        if value.is_hostile() {
            page.quote(label, &plain(value))?;
        } else {
            page.say(label, *tone, &plain(value))?;
        }
    }
    page.cut(most, facts.len())
}

fn entries(page: &mut Page<String>, entries: &[Entry]) -> fmt::Result {
    for (index, entry) in entries.iter().enumerate() {
        if index > 0 {
            page.blank()?;
        }
        let text = format!("{:<34}{}", entry.id, entry.asked_by);
        page.say(entry.word, entry.tone, &text)?;
        page.say("", Tone::Quiet, &plain(&entry.message))?;
        facts(page, usize::MAX, &entry.facts)?;
        page.copyable("to accept", &entry.accept)?;
    }
    Ok(())
}

fn differences(page: &mut Page<String>, Drift(all): &Drift) -> fmt::Result {
    for (found, accept) in all.iter().take(MAX_DIFFERENCES) {
        drift::difference(page, found)?;
        if let Some(accept) = accept {
            page.whole(&format!("      {} {}", accept.verb, accept.line))?;
        }
    }
    page.cut(MAX_DIFFERENCES, all.len())
}

fn lines(page: &mut Page<String>, lines: &Table) -> fmt::Result {
    let left_out = lines.rows.len().saturating_sub(MAX_LINES);
    let last = lines.rows.iter().skip(left_out).flat_map(|row| &row.cells);
    last.map(plain).try_for_each(|line| page.row("", &line))
}
