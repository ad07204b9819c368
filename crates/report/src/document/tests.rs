//! Snapshots of the documents of fixed reports, and of one example in each medium.

use std::fmt::Write as _;

use super::timeline::{Lane, Moment, Sign};
use model::escape;

use super::*;
use crate::claims::Strength;
use crate::human::Colour;
use crate::tests::ci::audit;
use crate::tests::{broken, hostile};

/// Writes a document line by line: `‹client›`, `«name»`, `#digest`, `[status]`.
fn outline(document: &Document) -> String {
    let Headline { tone, .. } = document.headline;
    let line = document.headline.line();
    let mut out = format!("{}: {tone:?} {line}\n", document.kind);
    facts(&mut out, &document.identity);
    for section in &document.sections {
        let Section {
            id,
            title,
            note,
            media,
            ..
        } = section;
        writeln!(out, "\n#{id} {title} ({note}) {media:?}").unwrap();
        blocks(&mut out, &section.blocks);
    }
    out
}

fn facts(out: &mut String, facts: &[Fact]) {
    for Fact { label, tone, value } in facts {
        writeln!(out, "- {tone:?} {label}: {}", spans(value)).unwrap();
    }
}

fn blocks(out: &mut String, all: &[Block]) {
    for block in all {
        match block {
            Block::Facts(budget, all) => {
                writeln!(out, "{budget:?}").unwrap();
                facts(out, all);
            }
            Block::Claims(all) => {
                for claim in all {
                    writeln!(out, "- {:?}: {}", claim.strength, claim.text).unwrap();
                }
            }
            Block::Table(table) => self::table(out, table),
            Block::Entries(all) => {
                for Entry {
                    tone,
                    word,
                    id,
                    message,
                    asked_by,
                    facts,
                    accept,
                } in all
                {
                    let message = spans(message);
                    writeln!(out, "* {tone:?} {word} {id} ({asked_by}): {message}").unwrap();
                    self::facts(out, facts);
                    accept
                        .iter()
                        .for_each(|line| writeln!(out, "  > {line}").unwrap());
                }
            }
            Block::Drift(drift) => self::table(out, &drift.table()),
            Block::Lines(table) => self::table(out, table),
            Block::Folds(budget, all) => {
                for Fold {
                    summary,
                    is_open,
                    blocks,
                } in all
                {
                    let sign = if *is_open { "v" } else { ">" };
                    writeln!(out, "{budget:?} {sign} {}", spans(summary)).unwrap();
                    self::blocks(out, blocks);
                }
            }
            Block::Timeline(timeline) => {
                writeln!(out, "{} of {:?}", timeline.total_us, timeline.released_us).unwrap();
                for Lane {
                    name,
                    note,
                    span,
                    moments,
                } in &timeline.lanes
                {
                    writeln!(out, "{name} ({note}) {span:?}").unwrap();
                    for Moment { at_us, sign, text } in moments {
                        writeln!(out, "  {at_us} {sign:?} {}", escape::visible(text)).unwrap();
                    }
                }
            }
        }
    }
}

fn table(out: &mut String, table: &Table) {
    let heading = |one: &Column| format!("{:?} {}{}", one.kind, one.lead, one.heading);
    let headings: Vec<_> = table.columns.iter().map(heading).collect();
    writeln!(
        out,
        "{:?} {}: {}",
        table.budget,
        table.all,
        headings.join(" | ")
    )
    .unwrap();
    for Row { id, cells } in &table.rows {
        let cells: Vec<_> = cells.iter().map(spans).collect();
        let id = id.as_ref().map(|id| format!("#{id} ")).unwrap_or_default();
        writeln!(out, "{id}| {}", cells.join(" | ")).unwrap();
    }
}

fn spans(text: &Text) -> String {
    let spans = text.shown(usize::MAX).into_iter();
    spans
        .map(|(span, text)| match span {
            Span::Own(_) => text,
            Span::Name(_) => format!("«{text}»"),
            Span::Client(_) => format!("‹{text}›"),
            Span::Digest(_) => format!("#{text}"),
            Span::Mark(tone, _) => format!("[{tone:?} {text}]"),
        })
        .collect()
}

#[test]
fn document_of_a_failed_run_with_hostile_text() {
    insta::assert_snapshot!(outline(&Document::of(&hostile(), EVERY)));
}

#[test]
fn document_of_a_run_in_a_broken_sandbox() {
    insta::assert_snapshot!(outline(&Document::of(&broken(), EVERY)));
}

#[test]
fn document_of_an_audit() {
    insta::assert_snapshot!(outline(&Document::of(&audit(), EVERY)));
}

/// Document with each kind of block and span.
pub(crate) fn example() -> Document {
    let digest_of_it = model::digest::of_bytes(b"x");
    let rows = Table::of(Budget::Client, 0..2, |row| {
        [
            number("times", row * 1_000),
            word("outcome", mark(Tone::Bad, "denied")),
            text("path", client("a|b `c`")),
            led(": ", "reason", client("x")),
        ]
    });
    let wide = Table::of(Budget::Ours, [()], |()| {
        [word("in", "home").wide(), text("name", name("agent"))]
    });
    let claim = |strength, text: &str| Claim {
        strength,
        text: text.to_owned(),
    };
    let entry = Entry {
        tone: Tone::Bad,
        word: "failed",
        id: "process/exit-zero".to_owned(),
        message: own("The client did not exit with 0."),
        asked_by: "specification, section 1".to_owned(),
        facts: vec![fact("found", client("<exit code 7>"))],
        accept: vec!["[expect.exit]".to_owned(), "code = 7".to_owned()],
    };
    let lines = Table::of(Budget::Client, ["::error::x", "<x>"], |line| {
        [text("line", client(line))]
    });
    let fold = Fold {
        summary: own("Head: ") + client("HTTP/1.1"),
        is_open: true,
        blocks: wide.blocks(),
    };
    let lane = Lane {
        name: "Client",
        note: "4.0 ms".to_owned(),
        span: Some((1_000, 5_000)),
        moments: vec![Moment {
            at_us: 2_000,
            sign: Sign::Cross,
            text: "<x>".to_owned(),
        }],
    };
    let timeline = Timeline {
        lanes: vec![lane],
        total_us: 8_000,
        released_us: Some(1_000),
    };
    let claims = vec![
        claim(Strength::Proved, "One."),
        claim(Strength::NotProved, "Two."),
        claim(Strength::NotProved, "Three."),
    ];
    Document {
        kind: "Example",
        headline: Headline {
            word: "FAILED".to_owned(),
            tone: Tone::Bad,
            joint: "  ",
            text: "a: <b>".to_owned(),
        },
        identity: vec![
            fact(
                "client",
                name("agent") + ", sha256 " + digest(&digest_of_it),
            ),
            fact("arguments", client("--x")),
        ],
        sections: vec![
            Section::new("findings", "Findings", "1", [Block::Entries(vec![entry])]),
            Section::new("claims", "Claims", "", [Block::Claims(claims)]),
            Section::new("attempts", "Attempts", "2", rows.blocks()),
            Section::new("files", "Files", "none", []),
            Section::new("output", "Output", "", [Block::Lines(lines)]).only(LONG),
            Section::new(
                "heads",
                "Heads",
                "",
                [Block::Folds(Budget::Bodies, vec![fold])],
            )
            .only(PAGE),
            Section::new("timeline", "Timeline", "", [Block::Timeline(timeline)]).only(PAGE),
        ],
    }
}

#[test]
fn entries_that_are_left_out_are_counted() {
    let limit = Limit {
        entries: 2,
        bytes: 100,
    };
    let entries = |number: usize| (0..number).map(|_| "x".repeat(40));
    assert_eq!(limit.fit(2, entries(2)), ("x".repeat(80), None));
    let (shown, note) = limit.fit(1_000, entries(3));
    assert_eq!(shown.len(), 80);
    assert_eq!(
        note.as_deref(),
        Some("Cut: 998 more entries of 1,000. The JSON report has all.")
    );
    let narrow = Limit { bytes: 79, ..limit };
    let (shown, note) = narrow.fit(2, entries(2));
    assert_eq!(shown.len(), 40);
    assert_eq!(
        note.as_deref(),
        Some("Cut: 1 more entry of 2. The JSON report has all.")
    );
    assert_eq!(Limit::NONE.fit(9, entries(9)), ("x".repeat(360), None));
}

#[test]
fn table_without_values_in_a_column_lacks_it() {
    let table = Table::of(Budget::Client, ["", "x"], |path| {
        [
            word("in", "home"),
            word("kind", ""),
            text("path", client(path)),
        ]
    });
    let headings: Vec<_> = table.columns.iter().map(|one| one.heading).collect();
    assert_eq!(headings, ["in", "path"]);
    assert_eq!(table.rows[0].cells, [own("home"), Text::default()]);
}

#[test]
fn table_of_client_data_keeps_its_first_rows() {
    let kept = |budget| Table::of(budget, 0..2_000, |_| [text("x", "x")]);
    let (of_client, ours) = (kept(Budget::Client), kept(Budget::Ours));
    assert_eq!((of_client.rows.len(), of_client.all), (MAX_ENTRIES, 2_000));
    assert_eq!((ours.rows.len(), ours.all), (2_000, 2_000));
}

#[test]
fn text_is_cut_over_all_its_spans() {
    let text = own("ab") + client("\u{202e}") + name("cd");
    let texts = |max| {
        let spans = text.shown(max).into_iter();
        spans.map(|(_, text)| text).collect::<Vec<_>>()
    };
    assert_eq!(texts(99), ["ab", r"\u{202e}", "cd"]);
    assert_eq!(texts(4), ["ab", r"\u… (cut: 8 more characters)"]);
    assert_eq!(texts(2), ["ab", "… (cut: 10 more characters)"]);
}

#[test]
fn example_on_a_terminal() {
    insta::assert_snapshot!(crate::human::lay_out(&example(), Colour::Plain).unwrap());
}

#[test]
fn example_as_markdown() {
    insta::assert_snapshot!(crate::markdown::lay_out(&example()).unwrap());
}

/// The page without its style sheet, a line for each block.
#[test]
fn example_as_html() {
    let page = crate::html::lay_out(&example());
    let (_, page) = page.split_once("</style>").unwrap();
    let mut lines = page.to_owned();
    for block in [
        "<section", "<table", "<tr", "<p", "<div", "<dl", "<ol", "<li", "<svg", "</svg", "<fig",
        "<h", "<details",
    ] {
        lines = lines.replace(block, &format!("\n{block}"));
    }
    insta::assert_snapshot!(lines);
}

#[test]
fn equal_changes_are_shown_once_and_long_ones_by_reference() {
    let mut report = hostile();
    let long = "# ".to_owned() + &"x".repeat(9 << 10);
    let texts = ["[expect.exit]\ncode = 7", "[expect.exit]\ncode = 7", &long];
    let wrong = report.checks.iter_mut();
    let mut wrong = wrong.filter(|one| one.status == model::finding::Status::Failed);
    let mut ids = Vec::new();
    for text in texts {
        let finding = wrong.next().unwrap();
        finding.accept = Some(text.to_owned());
        ids.push(finding.id.to_string());
    }
    let text = outline(&Document::of(&report, &[Medium::Terminal]));
    assert_eq!(text.matches("  > [expect.exit]\n  > code = 7\n").count(), 1);
    assert!(
        text.contains(&format!("to accept: as for {}", ids[0])),
        "{text}"
    );
    assert!(
        text.contains("to accept: more rules than are shown here"),
        "{text}"
    );
    assert!(!text.contains("> # xxxx"), "{text}");
}
