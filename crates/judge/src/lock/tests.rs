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
fn difference_has_its_own_line_or_that_of_facts() {
    let file = format!(
        "{GOOD}[facts]\r\n\"headers POST / \\\"x\\\"\" = \"1\"\n# žluť\n\"body $.a.b\" = \"1\"\n'body $.c' = '''\n1'''\n"
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
    assert_eq!(of(&[(Area::Body, "$.a.b"), (Area::Body, "$.c")]), [7, 8]);
    // The file lacks these lines.
    assert_eq!(of(&[(Area::Files, "home x"), (Area::Body, "$.d")]), [4]);
    assert_eq!(lines(b"no TOML", [].iter()), [0; 0]);
}

#[test]
fn fault_has_its_line_and_column() {
    let with = |rest: &str| fault(&format!("{GOOD}{rest}"));
    assert_eq!(fault(""), "1:1: missing field `schema`");
    assert_eq!(
        fault(&GOOD.replace("case = \"case-b\"\n", "")),
        "1:1: missing field `case`"
    );
    assert_eq!(
        fault(&GOOD.replace("baseline/1", "baseline/2")),
        "1:10: expected the schema `runner.baseline/1`, found `runner.baseline/2`"
    );
    assert_eq!(
        with("[headers]\n"),
        "4:2: unknown field `headers`, expected one of `schema`, `case`, `tier`, `made`, `facts`"
    );
    assert_eq!(
        with("facts = 1\n"),
        "4:9: invalid type: integer `1`, expected a map"
    );
    let with_fact = |line: &str| with(&format!("[facts]\n{line}\n"));
    assert_eq!(
        with_fact("\"body x\" = 1"),
        "5:12: invalid type: integer `1`, expected a string"
    );
    let area = with_fact("\"header x\" = \"1\"");
    let said = "5:1: expected an area and a key, found `header x`: did you mean `headers`?";
    assert!(area.starts_with(said), "{area}");
    assert!(with_fact("headers = \"1\"").starts_with("5:1: expected an area and a key"));
    assert!(with("[made]\nwho = \"x\"\n").starts_with("5:1: unknown field `who`"));
    let twice = with_fact("\"body x\" = \"1\"\n\"body x\" = \"2\"");
    assert_eq!(twice, "6:1: duplicate key");
    let open = with_fact("\"body x = \"1\"");
    assert!(open.starts_with("5:"), "{open}");
    let long = with(&format!("{} = 1", "x".repeat(5000)));
    assert!(long.chars().count() < 300, "{long}");
    let bytes = Lock::parse(b"schema = \"\xff\"").unwrap_err();
    assert_eq!(
        bytes.to_string(),
        "1:11: expected UTF-8 text, found other bytes"
    );
}

#[test]
fn a_comment_and_another_order_change_nothing() {
    let text = format!(
        "# mine\n{GOOD}[facts]\n\"files b\" = \"1\" # why\n'files a' = '2'\n\"body $\" = \"3\"\n"
    );
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
        let Accept { verb, line } = Accept::of(&difference);
        let key = format!("{} = ", string(&difference.fact.to_string()));
        let place = lines.iter().position(|line| line.starts_with(&key));
        match (&*verb, place) {
            ("add", None) => lines.push(line),
            ("change", Some(at)) => lines[at] = line,
            ("delete", Some(at)) => assert_eq!(lines.remove(at), line),
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
        let (_, behind) = text.split_once("\n[facts]\n").unwrap();
        let quoted = behind.lines().filter(|line| line.starts_with('"')).count();
        prop_assert_eq!(quoted, lock.facts().len());
        let headings = behind.lines().filter(|line| line.starts_with('[')).count();
        prop_assert_eq!(headings, 0);
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
