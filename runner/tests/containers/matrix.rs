//! Every way to start the image that the table beside this file lists, with the result of each.

use std::fmt::Write as _;
use std::process::Output;

use serde_json::Value;

use crate::engine::{Engine, IMAGE, SLIM};

const TABLE: &str = include_str!("matrix.tsv");
/// Both images must give the same result.
const IMAGES: [&str; 2] = [IMAGE, SLIM];

/// One line of the table.
struct Row {
    engine: Engine,
    flags: Vec<&'static str>,
    expected: Outcome<&'static str>,
    /// Part of the message on standard error.
    says: Option<&'static str>,
}

/// Result of a run: the report's words, or `-` without a report.
#[derive(PartialEq, Eq)]
struct Outcome<Word> {
    tier: Word,
    verdict: Word,
    code: Option<i32>,
}

impl Row {
    fn all() -> Vec<Self> {
        TABLE
            .lines()
            .filter(|line| !line.starts_with('#'))
            .map(Self::read)
            .collect()
    }

    #[track_caller]
    fn read(line: &'static str) -> Self {
        let cells: Vec<_> = line.split('\t').collect();
        let [engine, flags, tier, verdict, code, says] = cells[..] else {
            panic!("not six cells: {line}");
        };
        Self {
            engine: Engine::named(engine).unwrap_or_else(|| panic!("no engine: {engine}")),
            flags: flags.split(' ').collect(),
            expected: Outcome {
                tier,
                verdict,
                code: Some(code.parse().unwrap()),
            },
            says: (says != "-").then_some(says),
        }
    }
}

impl Outcome<String> {
    fn of(output: &Output) -> Self {
        let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let word = |key: &str| report[key].as_str().unwrap_or("-").to_owned();
        Self {
            tier: word("tier"),
            verdict: word("verdict"),
            code: output.status.code(),
        }
    }
}

impl<Word: AsRef<str>> Outcome<Word> {
    fn words(&self) -> String {
        let code = self
            .code
            .map_or_else(|| "-".to_owned(), |code| code.to_string());
        format!(
            "{:<9} {:<7} {code}",
            self.tier.as_ref(),
            self.verdict.as_ref()
        )
    }
}

#[test]
#[ignore = "needs container engines: .ci/containers"]
fn each_way_to_start_the_image_comes_to_what_the_table_says() {
    let mut shown = format!("{:<20} {:<20} how\n", "expected", "found");
    let mut differences = String::new();
    for row in Row::all() {
        for image in IMAGES {
            let output = row
                .engine
                .run(&row.flags, image, &["case-b", "--report", "json"]);
            let found = Outcome::of(&output);
            let said = String::from_utf8_lossy(&output.stderr);
            let as_expected = found.words() == row.expected.words()
                && row.says.is_none_or(|says| said.contains(says));
            let line = format!(
                "{:<20} {:<20} {} run {} {image}{}",
                row.expected.words(),
                found.words(),
                row.engine.program(),
                row.flags.join(" "),
                if as_expected { "" } else { "   <- differs" },
            );
            writeln!(shown, "{line}").unwrap();
            if !as_expected {
                let wanted = row
                    .says
                    .map(|says| format!("expected to say: {says}\n"))
                    .unwrap_or_default();
                writeln!(differences, "{line}\n{wanted}{said}").unwrap();
            }
        }
    }
    println!("{shown}");
    assert!(differences.is_empty(), "\n{differences}");
}

#[test]
fn the_table_has_every_engine_and_every_tier() {
    let rows = Row::all();
    for engine in Engine::ALL {
        for tier in ["namespace", "inherited"] {
            let has = |row: &Row| row.engine == engine && row.expected.tier == tier;
            assert!(rows.iter().any(has), "{engine:?} {tier}");
        }
    }
}
