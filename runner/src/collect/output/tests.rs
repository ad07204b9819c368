//! Records of any pieces, limits, and what is kept of the streams.

use std::io::Read as _;

use proptest::prelude::*;

use super::*;

const SECRET: &str = "runner-key-0123456789abcdef";

fn secrets() -> SecretScanner {
    SecretScanner::new(SECRET).unwrap()
}

fn records(pieces: &[&str], post: usize) -> (Vec<Record>, Vec<Sighting>) {
    let mut output = Output::new(1024, 100, &secrets());
    for (index, piece) in pieces.iter().enumerate() {
        output.push(piece.as_bytes(), index as u64);
    }
    output.into_records(Boundaries { connect: 0, post }, 99)
}

#[test]
fn a_line_is_a_record_from_the_moment_its_line_feed_was_read() {
    let (records, _) = records(&["{\"a\":", "1}\n{\"b\":2}\n"], 1);
    assert_eq!(records.len(), 2);
    assert_eq!(
        (records[0].at_us, records[0].before, records[0].bytes),
        (1, Before::Post, 7)
    );
    assert_eq!((records[1].at_us, records[1].before), (1, Before::None));
    assert_eq!(records[1].line, Line::Record(serde_json::json!({"b": 2})));
}

#[test]
fn what_is_no_object_or_has_no_line_feed_is_no_record() {
    let (records, _) = records(&["[1]\nnonsense\n\n{\"a\":1}"], 0);
    assert_eq!(records.len(), 4);
    assert!(
        records
            .iter()
            .all(|record| matches!(record.line, Line::NotJson { .. }))
    );
}

#[test]
fn a_line_that_says_two_things_is_no_record() {
    let (records, _) = records(
        &["{\"is_error\":true,\"is_error\":false}\n{\"a\":{\"b\":1,\"b\":1}}\n"],
        0,
    );
    assert!(records.iter().all(
        |record| matches!(&record.line, Line::NotJson { reason } if reason.contains("duplicate key"))
    ));
}

#[test]
fn beyond_the_limit_nothing_is_kept_and_it_says_so() {
    let mut output = Output::new(4, 100, &secrets());
    output.push(b"ab\n", 0);
    assert_eq!(output.over(), None);
    output.push(b"cdef\n", 0);
    assert_eq!(output.over(), Some(Over::Bytes));
    assert_eq!(output.waiting, b"ab\nc");
}

#[test]
fn more_lines_than_are_kept_are_over_the_limit() {
    let mut output = Output::new(1 << 20, 100, &secrets());
    output.push(&[b'\n'; 99], 0);
    output.push(b"a\n", 0);
    assert_eq!(output.over(), None);
    output.push(b"b", 0);
    assert_eq!(output.over(), Some(Over::Lines));
    assert_eq!((output.lines(), output.waiting.len()), (100, 101));
    let mut output = Output::new(1 << 20, 100, &secrets());
    output.push(&[b'\n'; 101], 0);
    assert_eq!(output.over(), Some(Over::Lines));
    assert_eq!((output.lines(), output.waiting.len()), (100, 100));
}

#[test]
fn a_line_of_more_values_than_are_read_is_no_record() {
    let list = |count: usize| format!("{{\"a\":[0{}]}}\n", ",0".repeat(count));
    let mut output = Output::new(1 << 20, 100, &secrets());
    output.push(list(LINE_VALUES - 3).as_bytes(), 0);
    output.push(list(LINE_VALUES).as_bytes(), 0);
    // Each of these lines is within the limit of a line, but all together exceed the limit of all lines.
    (0..20).for_each(|_| output.push(list(LINE_VALUES - 3).as_bytes(), 0));
    let none = Boundaries {
        connect: 0,
        post: 0,
    };
    let (records, _) = output.into_records(none, 0);
    let read = |record: &Record| matches!(record.line, Line::Record(_));
    assert!(read(&records[0]) && !read(&records[1]));
    assert_eq!(records.iter().filter(|one| read(one)).count(), 19);
}

#[test]
fn the_credential_is_named_by_line_and_replaced() {
    let line = format!("{{\"key\":\"{SECRET}\"}}\n");
    let (records, sightings) = records(&["{}\n", &line], 0);
    assert_eq!(sightings[0].place, "stdout line 2");
    assert_eq!(
        records[1].line,
        Line::Record(serde_json::json!({"key": "<credential>"}))
    );
}

#[test]
fn a_value_that_is_cut_by_the_beginning_of_the_tail_is_not_shown_in_part() {
    let value = "v".repeat(30) + "alue that is hidden";
    let secrets = secrets().hiding([("VALUE", value.as_str())]);
    for behind in [
        errors::TAIL_BYTES - 20,
        errors::TAIL_BYTES - 1,
        errors::TAIL_BYTES,
    ] {
        let mut errors = Errors::new(&secrets, None);
        errors.push(&b"x".repeat(50_000));
        errors.push(value.as_bytes());
        errors.push(&b"y".repeat(behind));
        let (stderr, sighting) = errors.into_stderr(&secrets);
        assert!(!stderr.tail.contains("hidden"), "{behind}");
        assert_eq!(sighting, None);
    }
}

#[test]
fn the_tail_of_standard_error_is_short_and_holds_no_credential() {
    let mut errors = Errors::new(&secrets(), None);
    for _ in 0..10_000 {
        errors.push(b"some words. ");
    }
    errors.push(SECRET.as_bytes());
    let (stderr, sighting) = errors.into_stderr(&secrets());
    assert_eq!(stderr.bytes, 120_000 + SECRET.len() as u64);
    assert!(stderr.tail.len() <= errors::TAIL_BYTES && stderr.tail.ends_with("<credential>"));
    assert_eq!(sighting.unwrap().place, "stderr");
}

/// Bytes and fidelity of a copy.
fn copied(shown: Option<std::io::Result<Shown>>) -> (Vec<u8>, Fidelity) {
    let mut shown = shown.unwrap().unwrap();
    let mut bytes = Vec::new();
    shown.file.read_to_end(&mut bytes).unwrap();
    (bytes, shown.fidelity)
}

fn spool(limit: u64) -> Option<Spool> {
    let file = tempfile::tempfile().unwrap();
    Some(Spool::new(file, limit, &secrets()))
}

#[test]
fn copy_that_is_cut_ends_before_a_cut_credential() {
    let secrets = secrets();
    let text = format!("begin {SECRET} middle ").repeat(40) + SECRET;
    for cut in 0..text.len() as u64 {
        let mut errors = Errors::new(&secrets, spool(cut));
        let mut output = Output::new(cut, 100, &secrets);
        output.copy_to(spool(cut));
        for piece in text.as_bytes().chunks(7) {
            errors.push(piece);
            output.push(piece, 0);
        }
        for shown in [errors.copied(), output.copied()] {
            let (bytes, fidelity) = copied(shown);
            let shown_text = String::from_utf8(bytes).unwrap();
            assert!(
                fidelity == Fidelity::Cut && !shown_text.contains("runner-"),
                "{cut}"
            );
        }
    }
    let mut errors = Errors::new(&secrets, spool(text.len() as u64));
    errors.push(text.as_bytes());
    let whole = text.replace(SECRET, "<credential>").into_bytes();
    assert_eq!(copied(errors.copied()), (whole, Fidelity::Redacted));
}

#[test]
fn copy_has_all_bytes_even_of_lines_that_are_dropped() {
    let mut output = Output::new(u64::MAX, 100, &secrets());
    output.copy_to(spool(u64::MAX));
    let piece = [b'x'; WAITING_BYTES];
    for _ in 0..=LINE_BYTES / WAITING_BYTES {
        output.push(&piece, 0);
        output.parse_waiting();
    }
    output.push(b"\nend", 0);
    let length = piece.len() * (LINE_BYTES / WAITING_BYTES + 1);
    let (bytes, fidelity) = copied(output.copied());
    assert_eq!((bytes.len(), fidelity), (length + 4, Fidelity::Exact));
    assert!(bytes.ends_with(b"x\nend"));
}

#[test]
fn copy_that_could_not_be_written_is_an_error() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full");
    let mut errors = Errors::new(&secrets(), Some(Spool::new(full.unwrap(), 100, &secrets())));
    errors.push(b"text");
    let error = errors.copied().unwrap().unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
}

/// Pushes the text in pieces and parses after each one. Returns the most bytes that waited, and the result.
fn streamed(text: &[u8], size: usize) -> (usize, Vec<Record>, Vec<Sighting>) {
    let mut output = Output::new(u64::MAX, 1_000_000, &secrets());
    let mut most = 0;
    for piece in text.chunks(size) {
        output.push(piece, 7);
        most = most.max(output.waiting.capacity());
        output.parse_waiting();
    }
    let none = Boundaries {
        connect: 0,
        post: 0,
    };
    let (records, sightings) = output.into_records(none, 7);
    (most, records, sightings)
}

/// Length of a line with this content around a text of `length` letters.
fn line_of(length: usize) -> Vec<u8> {
    let around = r#"{"a":""}"#.len();
    format!("{{\"a\":\"{}\"}}", "x".repeat(length - around)).into_bytes()
}

fn reason(record: &Record) -> &str {
    match &record.line {
        Line::NotJson { reason } => reason,
        Line::Record(_) => "",
    }
}

#[test]
fn line_longer_than_the_limit_is_counted_but_no_record() {
    let longest = line_of(LINE_BYTES);
    let longer = line_of(LINE_BYTES + 1);
    let text = [
        &longest[..],
        &longer,
        &line_of(3 * LINE_BYTES),
        b"{}",
        &longer,
    ]
    .join(&b'\n');
    for size in [16 * 1024, text.len()] {
        let (_, records, _) = streamed(&text, size);
        let reasons: Vec<_> = records.iter().map(reason).collect();
        assert_eq!(
            reasons,
            ["", "longer than 4 MiB", "longer than 4 MiB", "", UNFINISHED]
        );
        let lengths = records.iter().map(|record| record.bytes as usize);
        let expected = [
            LINE_BYTES,
            LINE_BYTES + 1,
            3 * LINE_BYTES,
            2,
            LINE_BYTES + 1,
        ];
        assert!(lengths.eq(expected));
    }
}

#[test]
fn waiting_bytes_do_not_grow_with_the_output() {
    let text = vec![b'x'; 8 * LINE_BYTES];
    let (most, records, _) = streamed(&text, 16 * 1024);
    assert!(most <= 2 * LINE_BYTES, "{most}");
    assert_eq!(records[0].bytes, text.len() as u64);
    let lines = b"{\"a\":1}\n".repeat(65_536);
    let (most, records, _) = streamed(&lines, 16 * 1024);
    assert!(most <= 3 * WAITING_BYTES, "{most}");
    assert!(records.iter().all(|record| reason(record).is_empty()));
}

#[test]
fn records_together_have_a_limit() {
    let line = line_of(1 << 20);
    let text = [&line[..], b"\n"].concat().repeat(18);
    let (_, records, _) = streamed(&[&text[..], b"{}\n"].concat(), 100_000);
    let reasons: Vec<_> = records.iter().map(reason).collect();
    let beyond = "more than 16 MiB of records together";
    assert_eq!(reasons[..17], [[""; 16].as_slice(), &[beyond]].concat());
    assert_eq!(reasons[17], beyond);
    assert!(
        records
            .iter()
            .all(|record| record.bytes == 1 << 20 || record.bytes == 2)
    );
}

#[test]
fn long_reasons_count_towards_the_limit_of_records() {
    let key = "{\" \":".repeat(100);
    let line = format!("{key}{{\"b\":1,\"b\":1}}{}\n", "}".repeat(100));
    let (_, records, _) = streamed(line.repeat(10_000).as_bytes(), 100_000);
    let kept: usize = records.iter().map(|record| reason(record).len()).sum();
    assert!(kept < MAX_BYTES + 10_000 * 60, "{kept}");
    assert!(reason(&records[0]).starts_with("duplicate key"));
}

#[test]
fn credential_in_a_dropped_line_is_named_by_line() {
    let long = "x".repeat(LINE_BYTES);
    let text = format!("{{}}\n{long}{SECRET}{long}\n{{}}\n");
    let (_, _, sightings) = streamed(text.as_bytes(), 16 * 1024);
    assert_eq!(sightings.len(), 1);
    assert_eq!(sightings[0].place, "stdout line 2");
    let (_, _, sightings) = streamed(text.replace(SECRET, "other").as_bytes(), 16 * 1024);
    assert_eq!(sightings, []);
}

#[test]
fn credential_across_lines_is_found_between_dropped_bytes() {
    let (first, second) = SECRET.split_at(9);
    let encoded = |text: &str| text.bytes().map(|byte| format!("{byte:02x}")).collect();
    let (first, second): (String, String) = (encoded(first), encoded(second));
    let long = "x".repeat(2 * LINE_BYTES);
    let text = format!("{long}{first}\n{second}{long}\n");
    let (_, _, sightings) = streamed(text.as_bytes(), 16 * 1024);
    assert_eq!(sightings.len(), 1);
    assert_eq!(sightings[0].place, "stdout");
}

#[test]
fn parsed_lines_count_for_the_boundaries() {
    let mut output = Output::new(u64::MAX, 1000, &secrets());
    output.push(&b"{}\n".repeat(10), 5);
    output.push(&vec![b'x'; WAITING_BYTES], 6);
    output.push(b"\n", 7);
    let counts = |output: &Output| {
        let before = [5, 6, 7, 8].map(|at_us| output.lines_before(at_us));
        (output.lines(), before)
    };
    let before = counts(&output);
    assert_eq!(before, (11, [0, 10, 10, 11]));
    output.parse_waiting();
    assert_eq!(output.records.len(), 11);
    assert_eq!(counts(&output), before);
    output.push(b"{}\n", 8);
    assert_eq!((output.lines(), output.lines_before(9)), (12, 12));
    let post = Boundaries {
        connect: 2,
        post: 11,
    };
    let (records, _) = output.into_records(post, 9);
    let before: Vec<_> = records.iter().map(|record| record.before).collect();
    assert_eq!(before[..2], [Before::Connect; 2]);
    assert_eq!(before[2..11], [Before::Post; 9]);
    assert_eq!(before[11..], [Before::None]);
}

/// Texts of lines: records, other JSON, no JSON, the credential whole and in parts.
fn texts() -> impl Strategy<Value = Vec<u8>> {
    let (first, second) = SECRET.split_at(11);
    let part = prop_oneof![
        "[ -~]{0,60}".prop_map(String::into_bytes),
        Just(b"\n".to_vec()),
        Just(b"{\"a\":[1,\"b\",{}]}\n".to_vec()),
        Just(b"{\"a\":1,\"a\":2}\n".to_vec()),
        Just(b"[1]\n\xff\n".to_vec()),
        Just(vec![b'y'; 30_000]),
        Just(SECRET.as_bytes().to_vec()),
        Just(format!("{first}\n{second}").into_bytes()),
        Just(first.as_bytes().to_vec()),
        Just(second.as_bytes().to_vec()),
    ];
    proptest::collection::vec(part, 0..40).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_pieces_of_the_same_bytes_are_the_same_records(text in texts(), size in 1usize..100_000, limit in 0u64..500_000, lines in 1u64..60) {
        let run = |size: usize, parses: bool| {
            let mut output = Output::new(limit, lines, &secrets());
            output.copy_to(spool(limit));
            for piece in text.chunks(size) {
                output.push(piece, 7);
                if parses {
                    output.parse();
                }
            }
            let (over, lines, copy) = (output.over(), output.lines(), copied(output.copied()));
            let post = Boundaries { connect: 3, post: 9 };
            (over, lines, copy, output.into_records(post, 9))
        };
        let whole = run(text.len().max(1), false);
        let within = &text[..text.len().min(usize::try_from(limit).unwrap())];
        prop_assert!(whole.0.is_some() || within.len() == text.len());
        prop_assert_eq!(&run(size, true), &whole);
        prop_assert_eq!(&run(size, false), &whole);
    }
}
