//! Real queries, hostile queries, and arbitrary bytes.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// Query with these bytes as its questions, and `count` in its header.
fn datagram(count: u16, section: &[u8]) -> Vec<u8> {
    let [high, low] = count.to_be_bytes();
    let header = [0xAB, 0xCD, 0x01, 0x20, high, low, 0, 0, 0, 0, 0, 0];
    [&header, section].concat()
}

fn encoded(labels: &[Vec<u8>], kind: u16) -> Vec<u8> {
    let mut bytes = Vec::new();
    for label in labels {
        bytes.push(label.len() as u8);
        bytes.extend(label);
    }
    bytes.push(0);
    bytes.extend(kind.to_be_bytes());
    bytes.extend([0, 1]);
    bytes
}

fn labels(name: &str) -> Vec<Vec<u8>> {
    name.split('.').map(|label| label.into()).collect()
}

fn asked(datagram: &[u8]) -> Vec<(String, String)> {
    let questions = parse(datagram).unwrap().questions;
    let pair = |asked: Asked| (asked.name, asked.kind);
    questions.into_iter().map(pair).collect()
}

fn is_malformed(datagram: &[u8]) -> bool {
    parse(datagram) == Err(NoQuery::Malformed)
}

#[test]
fn a_query_is_read_and_answered_with_no_such_name() {
    // A query of glibc: recursion desired, and an OPT record after the question.
    let section = encoded(&labels("api.example.com"), 28);
    let mut query = datagram(1, &section);
    query[11] = 1;
    query.extend([0, 0, 41, 4, 176, 0, 0, 0, 0, 0, 0]);
    assert_eq!(asked(&query), [("api.example.com".into(), "AAAA".into())]);
    let header = [0xAB, 0xCD, 0x81, 0x83, 0, 1, 0, 0, 0, 0, 0, 0];
    let expected = [&header[..], &section].concat();
    assert_eq!(answer(&query, &parse(&query)), Some(expected));
}

#[test]
fn localhost_has_its_address_and_no_other_name_has_one() {
    let ask = |name: &str, kind| {
        let datagram = datagram(1, &encoded(&labels(name), kind));
        let query = parse(&datagram).unwrap();
        of_localhost(&datagram, &query)
            .map(|answer| (answer[3], answer[7], answer[datagram.len()..].to_vec()))
    };
    let record = vec![0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 127, 0, 0, 1];
    assert_eq!(ask("localhost", 1), Some((0x80, 1, record)));
    assert_eq!(ask("localhost", 28), Some((0x80, 0, Vec::new())));
    for (name, kind) in [
        ("localhost", 16),
        ("LocalHost", 1),
        ("a.localhost", 1),
        ("localhosts", 1),
    ] {
        assert_eq!(ask(name, kind), None, "{name}");
    }
    let two = [encoded(&labels("localhost"), 1), encoded(&labels("b"), 1)].concat();
    let two = datagram(2, &two);
    assert_eq!(of_localhost(&two, &parse(&two).unwrap()), None);
}

#[test]
fn other_bytes_of_a_name_are_escaped_and_unknown_types_numbered() {
    let name = [b"a.b\\".to_vec(), b"\x00 \xFF".to_vec(), b"Co_m".to_vec()];
    let query = datagram(1, &encoded(&name, 65));
    let expected = (r"a\.b\\.\000\032\255.Co_m".into(), "TYPE65".into());
    assert_eq!(asked(&query), [expected]);
    assert_eq!(asked(&datagram(1, &encoded(&[], 2)))[0].0, ".");
}

#[test]
fn several_questions_are_read_with_pointers_backwards() {
    let mut section = encoded(&labels("example.com"), 1);
    section.extend([3, b'w', b'w', b'w', 0xC0, 12, 0, 15, 0, 1]);
    let query = datagram(2, &section);
    let names: Vec<_> = asked(&query).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["example.com", "www.example.com"]);
    let answer = answer(&query, &parse(&query)).unwrap();
    assert_eq!(answer[12..], section);
}

#[test]
fn loops_and_pointers_elsewhere_are_malformed() {
    let to_itself = [0xC0, 12, 0, 1, 0, 1];
    let forwards = [0xC0, 14, 0, 0, 1, 0, 1];
    let into_the_header = [0xC0, 4, 0, 1, 0, 1];
    let round_and_round = [1, b'a', 0xC0, 12, 0, 1, 0, 1];
    let reserved = [0x80, 0, 0, 1, 0, 1];
    for section in [
        &to_itself[..],
        &forwards,
        &into_the_header,
        &round_and_round,
        &reserved,
    ] {
        assert!(is_malformed(&datagram(1, section)), "{section:?}");
    }
}

#[test]
fn a_name_has_at_most_255_bytes() {
    let longest = [vec![b'a'; 63], vec![b'b'; 63], vec![b'c'; 63]];
    let fits = [&longest[..], &[vec![b'd'; 61]]].concat();
    let over = [&longest[..], &[vec![b'd'; 62]]].concat();
    assert_eq!(asked(&datagram(1, &encoded(&fits, 1))).len(), 1);
    assert!(is_malformed(&datagram(1, &encoded(&over, 1))));
}

#[test]
fn what_cannot_be_read_is_a_format_error_without_an_echo() {
    let one = encoded(&labels("a"), 1);
    let cut = datagram(1, &one[..4]);
    let none = datagram(0, &one);
    let too_many = datagram(17, &one.repeat(17));
    for query in [cut, none, too_many] {
        assert!(is_malformed(&query));
        let expected = vec![0xAB, 0xCD, 0x81, 0x81, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(answer(&query, &parse(&query)), Some(expected));
    }
}

#[test]
fn answers_and_less_than_a_header_are_not_answered() {
    let mut response = datagram(1, &encoded(&labels("a"), 1));
    response[2] |= 0x80;
    for (query, why) in [
        (&response[..], NoQuery::Response),
        (&response[..11], NoQuery::Short),
    ] {
        assert_eq!(parse(query), Err(why));
        assert_eq!(answer(query, &parse(query)), None);
    }
}

/// Parses the text form of a name into its labels (RFC 1035, 5.1).
fn unescaped(text: &str) -> Vec<Vec<u8>> {
    let mut labels = vec![Vec::new()];
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        rest = behind;
        let byte = match (first, rest) {
            (b'.', _) => {
                labels.push(Vec::new());
                continue;
            }
            (b'\\', [digit, b, c, behind @ ..]) if digit.is_ascii_digit() => {
                rest = behind;
                let digits = [*digit, *b, *c];
                std::str::from_utf8(&digits).unwrap().parse().unwrap()
            }
            (b'\\', [escaped, behind @ ..]) => {
                rest = behind;
                *escaped
            }
            _ => *first,
        };
        labels.last_mut().unwrap().push(byte);
    }
    labels
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_a_panic_and_answered_no_longer(bytes in vec(any::<u8>(), 0..600)) {
        let parsed = parse(&bytes);
        if let Some(answer) = answer(&bytes, &parsed) {
            prop_assert!(answer.len() <= bytes.len());
            prop_assert_eq!(&answer[..2], &bytes[..2]);
            prop_assert_eq!(parse(&answer), Err(NoQuery::Response));
        }
    }

    #[test]
    fn any_section_behind_a_header_is_read_without_a_panic(count in 0..20_u16, bytes in vec(any::<u8>(), 0..300)) {
        let query = datagram(count, &bytes);
        if let Ok(parsed) = parse(&query) {
            prop_assert_eq!(parsed.questions.len(), usize::from(count));
        }
    }

    #[test]
    fn a_name_comes_back_from_its_text(name in vec(vec(any::<u8>(), 1..=63), 1..=3), kind: u16) {
        let query = datagram(1, &encoded(&name, kind));
        let parsed = parse(&query).unwrap();
        prop_assert_eq!(unescaped(&parsed.questions[0].name), name);
        prop_assert!(parsed.questions[0].name.bytes().all(|byte| byte.is_ascii_graphic()));
    }
}
