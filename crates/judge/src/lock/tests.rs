//! Round trips of lock files, with hostile text too, and faults with their positions.

use model::difference::{Accept, Change};
use proptest::prelude::*;

use super::*;
use crate::facts::compare;

const GOOD: &str = "schema = \"runner.baseline/1\"\ncase = \"case-b\"\ntier = \"namespace\"\n";

fn lock(facts: impl IntoIterator<Item = (Area, String, String)>) -> Lock {
    let fact = |(area, key, value)| (Fact { area, key }, value);
    Lock {
        case: "case-b".to_owned(),
        tier: "namespace".to_owned(),
        made: Made {
            client: "agent".to_owned(),
            sha256: "00".to_owned(),
            runner: "0.1.0".to_owned(),
        },
        facts: facts.into_iter().map(fact).collect(),
    }
}

fn one(key: &str, value: &str) -> Lock {
    lock([(Area::Headers, key.to_owned(), value.to_owned())])
}

#[track_caller]
fn fault(text: &str) -> String {
    Lock::parse(text.as_bytes()).unwrap_err().to_string()
}

#[test]
fn the_file_is_as_documented() {
    let text = one(
        "POST /v1/messages \"x\"",
        "a\\b\nc \u{202e}##vso[x] žluť \u{1f600}",
    )
    .print();
    insta::assert_snapshot!(text);
}

#[test]
fn a_difference_lies_at_its_own_line_or_at_its_table() {
    let file = format!(
        "{GOOD}[headers]\r\n\"POST / \\\"x\\\"\" = \"1\"\n# žluť\n[body]\n\"$.a.b\" = \"1\"\n'$.c' = '''\n1'''\n"
    );
    Lock::parse(file.as_bytes()).unwrap();
    let of = |facts: &[(Area, &str)]| {
        let differences = facts.iter().map(|(area, key)| Difference {
            fact: Fact {
                area: *area,
                key: (*key).to_owned(),
            },
            change: Change::Removed("1".to_owned()),
        });
        lines(file.as_bytes(), differences.collect::<Vec<_>>().iter())
    };
    assert_eq!(of(&[(Area::Headers, "POST / \"x\"")]), [5]);
    assert_eq!(of(&[(Area::Body, "$.a.b"), (Area::Body, "$.c")]), [8, 9]);
    // The file lacks the table.
    assert_eq!(of(&[(Area::Body, "$.a"), (Area::Body, "$.d")]), [7]);
    assert_eq!(of(&[(Area::Files, "home x"), (Area::Body, "$.c")]), [9]);
    assert_eq!(lines(b"no TOML", [].iter()), [0; 0]);
}

#[test]
fn what_is_wrong_is_told_with_line_and_column() {
    let with = |rest: &str| fault(&format!("{GOOD}{rest}"));
    assert_eq!(fault(""), "1:1: expected the key `schema`, found none");
    assert_eq!(
        fault(&GOOD.replace("case = \"case-b\"\n", "")),
        "1:1: expected the key `case`, found none"
    );
    assert_eq!(
        fault(&GOOD.replace("baseline/1", "baseline/2")),
        "1:10: expected the schema `runner.baseline/1`, found `runner.baseline/2`"
    );
    assert!(
        with("[header]\n")
            .starts_with("4:2: expected a known key, found `header`: did you mean `headers`?")
    );
    assert_eq!(
        with("headers = 1\n"),
        "4:11: expected a table, found integer"
    );
    assert_eq!(
        with("[headers]\nx = 1\n"),
        "5:5: expected a string, found integer"
    );
    assert_eq!(
        with("[headers]\na.b = \"x\"\n"),
        "5:1: expected a string, found table"
    );
    assert!(with("[made]\nwho = \"x\"\n").starts_with("5:1: expected a known key"));
    let twice = with("[headers]\n\"x\" = \"1\"\n\"x\" = \"2\"\n");
    assert!(
        twice.starts_with("6:1: not well-formed TOML: `duplicate key"),
        "{twice}"
    );
    let table = with("[headers]\n[body]\n[headers]\n");
    assert!(table.starts_with("6:"), "{table}");
    let open = with("[headers]\n\"x = \"1\"\n");
    assert!(open.starts_with("5:"), "{open}");
    let bytes = Lock::parse(b"schema = \"\xff\"").unwrap_err();
    assert_eq!(
        bytes.to_string(),
        "1:11: expected UTF-8 text, found other bytes"
    );
}

#[test]
fn a_comment_and_another_order_change_nothing() {
    let text =
        format!("# mine\n{GOOD}[files]\n\"b\" = \"1\" # why\n\"a\" = '2'\n[body]\nplain = \"3\"\n");
    let lock = Lock::parse(text.as_bytes()).unwrap();
    assert_eq!(lock.facts().len(), 3);
    let again = Lock::parse(lock.print().as_bytes()).unwrap();
    assert_eq!(again, lock);
}

#[test]
fn a_star_accepts_any_value_and_none() {
    let lock = one("a", ANY);
    for found in [one("a", "1"), one("a", "2"), self::lock([])] {
        let (expected, found) = lock.comparable(found.facts());
        assert_eq!(compare(&expected, &found), []);
    }
    let (expected, found) = lock.comparable(one("b", "1").facts());
    assert_eq!(compare(&expected, &found).len(), 1);
}

/// Applies the advice of each difference to the file, line by line.
fn accepted(old: &Lock, new: &Lock) -> Lock {
    let mut lines: Vec<String> = old.print().lines().map(str::to_owned).collect();
    for difference in compare(old.facts(), new.facts()) {
        let Accept { verb, table, line } = Accept::of(&difference);
        let key = string(&difference.fact.key);
        let begin = lines.iter().position(|line| *line == table).unwrap();
        let mut inside = lines
            .iter()
            .skip(begin + 1)
            .take_while(|line| !line.is_empty());
        let place = inside.position(|line| line.starts_with(&format!("{key} = ")));
        match (&*verb, place) {
            ("add", None) => lines.insert(begin + 1, line),
            ("change", Some(at)) => lines[begin + 1 + at] = line,
            ("delete", Some(at)) => {
                assert_eq!(lines.remove(begin + 1 + at), line);
            }
            other => panic!("{other:?}"),
        }
    }
    Lock::parse(format!("{}\n", lines.join("\n")).as_bytes()).unwrap()
}

fn facts() -> impl Strategy<Value = Vec<(Area, String, String)>> {
    let area = proptest::sample::select(Area::ALL.to_vec());
    let text = || {
        prop_oneof![
            any::<String>(),
            "[\"'=\\[\\]#\\\\\n\r\t .a:]{0,12}",
            Just("[headers]".to_owned()),
            Just("::error::x\n##vso[a]".to_owned()),
        ]
    };
    proptest::collection::vec((area, text(), text()), 0..12)
}

proptest! {
    #[test]
    fn whatever_a_client_says_is_read_back_as_it_was(facts in facts()) {
        let lock = lock(facts);
        let text = lock.print();
        let read = Lock::parse(text.as_bytes());
        prop_assert_eq!(read.as_ref(), Ok(&lock));
    }

    #[test]
    fn every_line_is_one_fact_in_plain_ascii(facts in facts()) {
        let lock = lock(facts);
        let text = lock.print();
        prop_assert!(text.bytes().all(|byte| byte == b'\n' || (b' '..=b'~').contains(&byte)));
        prop_assert!(!text.contains("##"));
        let (_, behind) = text.split_once("[requests]").unwrap();
        let quoted = behind.lines().filter(|line| line.starts_with('"')).count();
        prop_assert_eq!(quoted, lock.facts().len());
        let headings = behind.lines().filter(|line| line.starts_with('[')).count();
        prop_assert_eq!(headings, Area::ALL.len() - 1);
    }

    #[test]
    fn the_advice_of_every_difference_makes_the_file_accept_the_run(old in facts(), new in facts()) {
        let (old, new) = (lock(old), lock(new));
        let accepted = accepted(&old, &new);
        prop_assert_eq!(accepted.facts(), new.facts());
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in any::<Vec<u8>>()) {
        let _ = Lock::parse(&bytes);
    }
}
