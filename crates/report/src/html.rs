//! Report as one HTML page: the verdict, then all evidence.
//!
//! The page is one file without scripts. It loads no other file and links only to its own sections; a content security
//! policy makes the browser enforce both. Text of the client is always escaped. Each block of client data has its own
//! size budget, so that one block cannot displace another.

use maud::{Markup, PreEscaped, html};
use model::report::Report;

use super::RenderError;
use super::claims::Claim;
use super::document::{
    Block, Budget, Column, Document, Entry, Fact, Fold, Kind, Limit, Medium, Row, Span, Table, Text,
};
use super::tone::Tone;

mod drawing;
mod frame;

pub(super) use frame::lay_out;

/// Maximum length of one text, in characters.
const MAX_TEXT_CHARS: usize = 1_000;

/// Renders the report as one HTML document in UTF-8.
pub fn render(report: &Report) -> Result<Vec<u8>, RenderError> {
    Ok(lay_out(&Document::of(report, &[Medium::Html])).into_bytes())
}

/// Returns the size of a budget.
fn limit(budget: Budget) -> Limit {
    let (entries, bytes) = match budget {
        Budget::Ours | Budget::Policy => return Limit::NONE,
        Budget::Client => (1_000, 512 << 10),
        Budget::Bodies => (2_000, 2 << 20),
        Budget::Part => (1_000, 80 << 10),
    };
    Limit { entries, bytes }
}

/// Returns the entries that fit, and the note on the others.
fn fit<T>(budget: Budget, all: usize, entries: &[T], show: impl Fn(&T) -> Markup) -> [Markup; 2] {
    let entries = entries.iter().map(|entry| show(entry).into_string());
    let (shown, cut) = limit(budget).fit(all, entries);
    let cut = html! { @if let Some(cut) = cut { p.cut { (cut) } } };
    [PreEscaped(shown), cut]
}

fn blocks(blocks: &[Block]) -> Markup {
    html! { @for block in blocks { (self::block(block)) } }
}

fn block(block: &Block) -> Markup {
    match block {
        Block::Facts(budget, all) => facts(*budget, all),
        Block::Claims(all) => claims(all),
        Block::Table(table) => self::table(table),
        Block::Entries(all) => html! { @for one in all { (entry(one)) } },
        Block::Drift(drift) => self::table(&drift.table()),
        Block::Lines(table) => lines(table),
        Block::Folds(budget, all) => {
            let [shown, cut] = fit(*budget, all.len(), all, fold);
            html! { (shown) (cut) }
        }
        Block::Timeline(timeline) => drawing::figure(timeline),
    }
}

fn facts(budget: Budget, facts: &[Fact]) -> Markup {
    let [shown, cut] = fit(
        budget,
        facts.len(),
        facts,
        |Fact { label, value, .. }| {
            html! { dt { (text(&label.as_str().into())) } dd { (text(value)) } }
        },
    );
    html! { dl { (shown) } (cut) }
}

/// Draws the claims, a box for each strength.
fn claims(claims: &[Claim]) -> Markup {
    let groups = claims.chunk_by(|one, other| one.strength == other.strength);
    html! {
        div.claims {
            @for group in groups {
                @if let [first, ..] = group {
                    @let (word, tone) = first.strength.word();
                    div class=(class(tone)) {
                        h3 { (sign(tone)) " " (word) }
                        ul { @for claim in group { li { (text(&claim.text.as_str().into())) } } }
                    }
                }
            }
        }
    }
}

/// Draws a table. On a narrow page, each row becomes a list of named cells.
fn table(table: &Table) -> Markup {
    let [rows, cut] = fit(table.budget, table.all, &table.rows, |row| {
        self::row(table, row)
    });
    html! {
        table {
            thead { tr {
                @for (_, column) in table.columns(Medium::Html) { th scope="col" class=(kind(column)) { (column.heading) } }
            } }
            tbody { (rows) }
        }
        (cut)
    }
}

fn row(table: &Table, row: &Row) -> Markup {
    html! {
        tr id=[row.id.as_ref()] {
            @for ((_, column), cell) in table.columns(Medium::Html).zip(&row.cells) {
                // On a narrow page, the style sheet hides empty cells.
                @let class = if cell.is_some() { kind(column) } else { "empty" };
                td class=(class) data-label=(column.heading) { div { (text(cell)) } }
            }
        }
    }
}

fn kind(column: &Column) -> &'static str {
    match column.kind {
        Kind::Text => "text",
        Kind::Word => "word",
        Kind::Number => "number",
    }
}

fn entry(entry: &Entry) -> Markup {
    html! {
        article.finding.(class(entry.tone)) {
            h3 {
                (badge(entry.tone, entry.word)) " "
                a href={ "#check-" (entry.id) } { code { (entry.id) } }
            }
            p { (text(&entry.message)) }
            (facts(Budget::Ours, &entry.facts))
            @if !entry.accept.is_empty() {
                p { "To accept:" }
                pre { code { (entry.accept.join("\n")) } }
            }
            p.spec { (entry.asked_by) }
        }
    }
}

fn lines(table: &Table) -> Markup {
    let [shown, cut] = fit(table.budget, table.all, &table.rows, |row| {
        html! { li { @for cell in &row.cells { (text(cell)) } } }
    });
    html! { ol.lines { (shown) } (cut) }
}

fn fold(fold: &Fold) -> Markup {
    html! {
        details open[fold.is_open] {
            summary { (text(&fold.summary)) }
            (blocks(&fold.blocks))
        }
    }
}

/// Draws a text: names and client text as code, isolated from the text direction around it.
fn text(text: &Text) -> Markup {
    html! {
        @for (span, shown) in text.shown(MAX_TEXT_CHARS) {
            @match span {
                Span::Own(_) => (shown),
                Span::Name(_) | Span::Client(_) => code { (shown) },
                Span::Digest(sha256) => code.digest title=(model::escape::visible(sha256)) { (shown) },
                Span::Mark(tone, _) => (badge(*tone, &shown)),
            }
        }
    }
}

/// Draws a word with a sign, so that colour never carries the meaning alone.
fn badge(tone: Tone, word: &str) -> Markup {
    html! { span.status.(class(tone)) { (sign(tone)) " " (word) } }
}

fn sign(tone: Tone) -> Markup {
    let sign = match tone {
        Tone::Good => "✓",
        Tone::Seen => "•",
        Tone::Bad => "✕",
        Tone::Doubtful => "!",
        Tone::Quiet => "–",
    };
    html! { span.sign aria-hidden="true" { (sign) } }
}

/// Class in the style sheet.
fn class(tone: Tone) -> &'static str {
    match tone {
        Tone::Good => "good",
        Tone::Seen => "seen",
        Tone::Bad => "bad",
        Tone::Doubtful => "doubtful",
        Tone::Quiet => "plain",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_text_is_escaped_for_people_and_html() {
        let span = Span::Client("<b title=\"x\">&amp;\u{202e}\n</b>".to_owned());
        let shown = r"<code>&lt;b title=&quot;x&quot;&gt;&amp;amp;\u{202e}\n&lt;/b&gt;</code>";
        assert_eq!(text(&span.into()).into_string(), shown);
    }
}
