//! Ordinary queries, queries with one deviation, and arbitrary bytes.

use proptest::collection::vec;
use proptest::prelude::*;

use super::super::parse;
use super::*;

/// Question for `a.example`, type A, class IN.
const QUESTION: [u8; 15] = *b"\x01a\x07example\0\0\x01\0\x01";
/// OPT with a UDP size of 1232.
const PLAIN_OPT: [u8; 11] = [0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0];

fn query(counts: [u8; 4], rest: &[u8]) -> Vec<u8> {
    let [questions, answers, authorities, additional] = counts;
    let header = [
        0xAB,
        0xCD,
        1,
        0,
        0,
        questions,
        0,
        answers,
        0,
        authorities,
        0,
        additional,
    ];
    [&header[..], rest].concat()
}

fn with_opt(change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut opt = PLAIN_OPT.to_vec();
    change(&mut opt);
    query([1, 0, 0, 1], &[&QUESTION[..], &opt].concat())
}

fn oddness(datagram: &[u8]) -> Option<String> {
    odd(datagram, &parse(datagram))
}

#[test]
fn queries_of_ordinary_resolvers_are_not_odd() {
    let plain = query([1, 0, 0, 0], &QUESTION);
    assert_eq!(oddness(&plain), None);
    let mut trusting = plain.clone();
    trusting[3] = 0x20;
    assert_eq!(oddness(&trusting), None, "AD, as glibc's trust-ad sets it");
    let mut iterative = plain;
    iterative[2] = 0;
    assert_eq!(oddness(&iterative), None);
    assert_eq!(oddness(&with_opt(|_| ())), None);
    assert_eq!(oddness(&with_opt(|opt| opt[7] = 0x80)), None, "DO");
}

#[test]
fn each_deviation_of_the_header_is_named() {
    for (at, bits, named) in [
        (2, 0x10, "opcode 2"),
        (2, 0x78, "opcode 15"),
        (2, 0x04, "authoritative-answer bit"),
        (2, 0x02, "truncation bit"),
        (3, 0x80, "recursion-available bit"),
        (3, 0x40, "reserved bit"),
        (3, 0x10, "checking-disabled bit"),
        (3, 0x03, "response code 3"),
        (7, 2, "2 answer records"),
        (9, 1, "1 authority records"),
    ] {
        let mut datagram = query([1, 0, 0, 0], &QUESTION);
        datagram[at] |= bits;
        assert_eq!(oddness(&datagram), Some(format!("{named}, 27 bytes")));
    }
}

#[test]
fn what_is_no_query_is_named_with_its_length() {
    let mut response = query([1, 0, 0, 0], &QUESTION);
    response[2] |= 0x80;
    for (datagram, named) in [
        (&b"hello"[..], "shorter than a DNS header, 5 bytes"),
        (&response, "a DNS response, 27 bytes"),
        (&query([0, 0, 0, 0], b""), "no DNS query, 12 bytes"),
        (&query([1, 0, 0, 0], b"\x3f"), "no DNS query, 13 bytes"),
    ] {
        assert_eq!(oddness(datagram).as_deref(), Some(named));
    }
}

#[test]
fn questions_other_than_one_of_class_in_are_odd() {
    let mut chaos = QUESTION;
    chaos[14] = 3;
    assert_eq!(
        oddness(&query([1, 0, 0, 0], &chaos)).as_deref(),
        Some("class 3, 27 bytes")
    );
    let two = [QUESTION, QUESTION].concat();
    assert_eq!(
        oddness(&query([2, 0, 0, 0], &two)).as_deref(),
        Some("2 questions, 42 bytes")
    );
    let pointing = [&QUESTION[..], &[0xC0, 12, 0, 1, 0, 1]].concat();
    assert!(oddness(&query([2, 0, 0, 0], &pointing)).is_some());
}

#[test]
fn bytes_behind_the_question_are_odd_unless_they_are_a_plain_opt() {
    let behind = |counts: [u8; 4], rest: &[u8]| {
        oddness(&query(counts, &[&QUESTION[..], rest].concat())).unwrap()
    };
    assert_eq!(
        behind([1, 0, 0, 0], b"x"),
        "1 bytes after the question, 28 bytes"
    );
    assert_eq!(
        behind([1, 0, 0, 0], &PLAIN_OPT),
        "11 bytes after the question, 38 bytes"
    );
    assert_eq!(
        behind([1, 0, 0, 1], &PLAIN_OPT[..10]),
        "an additional record other than OPT, 10 bytes after the question, 37 bytes"
    );
    assert_eq!(
        behind([1, 0, 0, 1], b""),
        "an additional record other than OPT, 27 bytes"
    );
    assert_eq!(
        behind([1, 0, 0, 2], &[PLAIN_OPT, PLAIN_OPT].concat()),
        "2 additional records, 22 bytes after the question, 49 bytes"
    );
}

#[test]
fn options_versions_flags_and_bytes_behind_opt_are_odd() {
    let starts = |datagram: Vec<u8>, named: &str| {
        let found = oddness(&datagram).unwrap();
        assert_eq!(found, format!("{named}, {} bytes", datagram.len()));
    };
    starts(with_opt(|opt| opt[5] = 1), "extended response code 1");
    starts(with_opt(|opt| opt[6] = 1), "EDNS version 1");
    starts(with_opt(|opt| opt[8] = 1), "EDNS flags 0x0001");
    starts(with_opt(|opt| opt.push(0)), "1 bytes after OPT");
    starts(with_opt(|opt| opt[10] = 9), "0 bytes of EDNS options");
    let cookie = |opt: &mut Vec<u8>| {
        opt[10] = 12;
        opt.extend(*b"\0\x0a\0\x08 cookie ");
    };
    starts(with_opt(cookie), "12 bytes of EDNS options");
}

proptest! {
    #[test]
    fn any_bytes_are_judged_without_a_panic(bytes in vec(any::<u8>(), 0..600)) {
        let _ = oddness(&bytes);
    }

    #[test]
    fn any_bytes_behind_an_ordinary_query_are_odd(bytes in vec(any::<u8>(), 1..300)) {
        prop_assert!(oddness(&query([1, 0, 0, 0], &[&QUESTION[..], &bytes].concat())).is_some());
        prop_assert!(oddness(&with_opt(|opt| opt.extend(&bytes))).is_some());
    }

    #[test]
    fn any_bytes_behind_a_header_are_judged_without_a_panic(counts in any::<[u8; 4]>(), bytes in vec(any::<u8>(), 0..300)) {
        let _ = oddness(&query(counts, &bytes));
    }
}
