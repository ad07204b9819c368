use proptest::prelude::*;

use super::*;

const SECRET: &str = "sk-stub-3f/9+Zq_7Lm2Xc8V";

fn secrets() -> SecretScanner {
    SecretScanner::new(SECRET).unwrap()
}

/// Encodes base64 with padding, independently of the code under test.
fn base64(bytes: &[u8], last: &[u8; 2]) -> String {
    let symbol = |value: u32| match value {
        0..26 => char::from(b'A' + value as u8),
        26..52 => char::from(b'a' + (value - 26) as u8),
        52..62 => char::from(b'0' + (value - 52) as u8),
        other => char::from(last[other as usize - 62]),
    };
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let value = (0..3).fold(0u32, |value, at| {
            value << 8 | u32::from(group.get(at).copied().unwrap_or(0))
        });
        for at in 0..4 {
            let padding = at > group.len();
            text.push(if padding {
                '='
            } else {
                symbol(value >> (18 - 6 * at) & 63)
            });
        }
    }
    text
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn percent(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("%{byte:02x}")).collect()
}

#[test]
fn the_credential_is_found_as_written_and_nothing_else_is() {
    assert_eq!(
        secrets().find(format!("key={SECRET}&x").as_bytes()),
        Some(Form::AsWritten)
    );
    assert_eq!(secrets().find(&SECRET.as_bytes()[..23]), None);
    assert_eq!(secrets().find(b""), None);
}

#[test]
fn base64_is_found_at_every_alignment_in_both_alphabets() {
    for prefix in ["", "a", "ab", "user:", "user:a", "user:ab"] {
        for suffix in ["", "z", "zz"] {
            for last in [b"+/", b"-_"] {
                let text = base64(format!("{prefix}{SECRET}{suffix}").as_bytes(), last);
                assert_eq!(
                    secrets().find(text.as_bytes()),
                    Some(Form::Base64),
                    "{text}"
                );
            }
        }
    }
}

#[test]
fn hexadecimal_is_found_in_either_case() {
    let lower = hex(SECRET.as_bytes());
    assert_eq!(secrets().find(lower.as_bytes()), Some(Form::Hex));
    assert_eq!(
        secrets().find(lower.to_uppercase().as_bytes()),
        Some(Form::Hex)
    );
}

/// Wraps base64 into lines of `width`, each ended by `end`.
fn wrapped(text: &str, width: usize, end: &str) -> String {
    let lines = text.as_bytes().chunks(width);
    let lines: Vec<&str> = lines
        .map(|line| std::str::from_utf8(line).unwrap())
        .collect();
    lines.join(end)
}

fn wide(text: &str) -> [Vec<u8>; 2] {
    let units = || text.encode_utf16();
    [
        units().flat_map(u16::to_le_bytes).collect(),
        units().flat_map(u16::to_be_bytes).collect(),
    ]
}

/// Checks that a form is found and completely redacted, for pieces of any size.
#[track_caller]
fn assert_found_and_masked(writing: &[u8], form: Form) {
    let whole = [b"before ", writing, b"! after"].concat();
    assert_eq!(
        secrets().find(&whole),
        Some(form),
        "{}",
        whole.escape_ascii()
    );
    let left = secrets().redact_bytes(&whole);
    assert_eq!(secrets().find(&left), None);
    assert!(
        left.len() <= b"before <credential>! after".len() + 8,
        "{}",
        left.escape_ascii()
    );
    for size in [1, 7, 64] {
        let mut scanner = Scanner::new(&secrets());
        let pieces = whole.chunks(size);
        let found = pieces.filter_map(|piece| scanner.push(piece)).next();
        assert_eq!(found, Some(form), "pieces of {size}");
    }
}

#[test]
fn wide_text_is_found_in_both_byte_orders() {
    for text in wide(SECRET) {
        assert_found_and_masked(&text, Form::Wide);
        assert_found_and_masked(base64(&text, b"+/").as_bytes(), Form::Base64);
    }
    let utf32: Vec<u8> = SECRET.bytes().flat_map(|byte| [byte, 0, 0, 0]).collect();
    assert_found_and_masked(&utf32, Form::Wide);
    let escaped: Vec<String> = SECRET.chars().map(String::from).collect();
    assert_found_and_masked(escaped.join("\\u0000").as_bytes(), Form::Wide);
}

#[test]
fn wrapped_base64_is_found_in_lines_of_any_length() {
    for prefix in ["", "a", "ab"] {
        for end in [
            "\n", "\r\n", "\\n", "\\r\\n", "%0D%0A", "\\u000a", "\n\t    ", " ",
        ] {
            for width in [1, 4, 7, 64, 76] {
                let text = base64(format!("{prefix}{SECRET}").as_bytes(), b"-_");
                let text = wrapped(text.trim_end_matches('='), width, end);
                assert_eq!(
                    secrets().find(text.as_bytes()),
                    Some(Form::Base64),
                    "{text:?}"
                );
            }
        }
    }
    let long = format!("{}{SECRET}{}", "x".repeat(40), "y".repeat(90));
    for width in [64, 76] {
        let text = wrapped(&base64(long.as_bytes(), b"+/"), width, "\r\n");
        assert_eq!(
            secrets().find(text.as_bytes()),
            Some(Form::Base64),
            "{text}"
        );
        assert_eq!(secrets().find(secrets().redact(&text).as_bytes()), None);
    }
}

#[test]
fn separated_hexadecimal_is_found() {
    let pairs: Vec<String> = SECRET.bytes().map(|byte| format!("{byte:02X}")).collect();
    for between in [
        " ", ":", "-", ", ", ",0x", ", 0x", " 0X", "\\\\x", "\\\\u00", "\n", ",\n  0x", "\\n",
    ] {
        assert_found_and_masked(pairs.join(between).as_bytes(), Form::Hex);
    }
    let words = hex(SECRET.as_bytes());
    assert_found_and_masked(wrapped(&words, 4, " ").as_bytes(), Form::Hex);
}

#[test]
fn reversed_credential_is_found() {
    let text: String = SECRET.chars().rev().collect();
    assert_found_and_masked(text.as_bytes(), Form::Reversed);
}

#[test]
fn apart_digits_and_far_lines_are_not_the_credential() {
    let digits: Vec<String> = hex(SECRET.as_bytes()).chars().map(String::from).collect();
    assert_eq!(secrets().find(digits.join(" ").as_bytes()), None);
    let far = wrapped(&base64(SECRET.as_bytes(), b"+/"), 8, &" ".repeat(33));
    assert_eq!(secrets().find(far.as_bytes()), None);
}

/// A repeated beginning of the credential costs one comparison each.
#[test]
fn search_is_linear_in_what_begins_like_the_credential() {
    let begins = &base64(SECRET.as_bytes(), b"+/")[..16];
    let text = format!("{begins}\n").repeat(100_000);
    let start = std::time::Instant::now();
    assert_eq!(secrets().find(text.as_bytes()), None);
    assert!(start.elapsed().as_secs() < 20);
}

#[test]
fn percent_encoding_is_found_whole_partial_doubled_and_in_either_case() {
    let whole = percent(SECRET.as_bytes());
    for text in [
        whole.clone(),
        whole.to_uppercase(),
        whole.replace('%', "%25"),
        SECRET.replace('/', "%2F"),
        SECRET.replace('s', "%73"),
    ] {
        assert_eq!(
            secrets().find(format!("x{text}y").as_bytes()),
            Some(Form::Percent),
            "{text}"
        );
    }
}

#[test]
fn json_escapes_are_found() {
    let whole: String = SECRET
        .bytes()
        .map(|byte| format!("\\u{byte:04x}"))
        .collect();
    for text in [
        whole,
        SECRET.replace('/', "\\/"),
        SECRET.replace('k', "\\u006B"),
        SECRET.replace('k', "\\x6b"),
    ] {
        assert_eq!(
            secrets().find(text.as_bytes()),
            Some(Form::Escaped),
            "{text}"
        );
    }
}

#[test]
fn percent_encoded_base64_is_found() {
    let text = base64(SECRET.as_bytes(), b"+/")
        .replace('+', "%2B")
        .replace('/', "%2F");
    assert_eq!(secrets().find(text.as_bytes()), Some(Form::Base64));
}

#[test]
fn a_credential_with_escapes_in_it_is_found_as_written() {
    let secrets = SecretScanner::new("ab%25cd%41ef\\u0041").unwrap();
    assert_eq!(
        secrets.find(b"..ab%25cd%41ef\\u0041.."),
        Some(Form::AsWritten)
    );
}

#[test]
fn redaction_replaces_every_form_everywhere() {
    let text = format!(
        "é{SECRET}é {} {} {SECRET}",
        hex(SECRET.as_bytes()),
        percent(SECRET.as_bytes())
    );
    assert_eq!(
        secrets().redact(&text),
        "é<credential>é <credential> <credential> <credential>"
    );
    assert_eq!(
        secrets().redact_bytes(text.as_bytes()),
        secrets().redact(&text).as_bytes()
    );
    assert_eq!(secrets().redact("nothing here"), "nothing here");
}

#[test]
fn redaction_reaches_every_string_and_key_of_a_value() {
    let mut value = serde_json::json!({ "a": [1, format!("x{SECRET}")], SECRET: { "b": null } });
    secrets().redact_json(&mut value);
    assert_eq!(
        value,
        serde_json::json!({ "a": [1, "x<credential>"], "<credential>": { "b": null } })
    );
}

#[test]
fn redacted_base64_leaves_no_character_that_holds_bits_of_the_credential() {
    let text = base64(format!("a{SECRET}z").as_bytes(), b"+/");
    let left = secrets().redact(&text);
    assert_eq!(
        left,
        format!(
            "{}{REPLACEMENT}{}",
            &text[..1],
            &left[1 + REPLACEMENT.len()..]
        )
    );
    assert!(left.len() <= 1 + REPLACEMENT.len() + 2, "{left}");
}

#[test]
fn the_debug_form_does_not_show_the_credential() {
    let shown = format!("{:?} {:?}", secrets(), Scanner::new(&secrets()));
    assert!(!shown.contains("3f"), "{shown}");
}

#[test]
fn a_credential_that_could_be_found_by_chance_is_refused() {
    assert_eq!(
        SecretScanner::new("short").unwrap_err(),
        SecretError::Length { bytes: 5 }
    );
    assert_eq!(
        SecretScanner::new("with a space in it").unwrap_err(),
        SecretError::Character
    );
}

#[test]
fn a_scanner_reports_the_first_hit_once() {
    let mut scanner = Scanner::new(&secrets());
    assert_eq!(scanner.push(SECRET.as_bytes()), Some(Form::AsWritten));
    assert_eq!(scanner.push(SECRET.as_bytes()), None);
    assert_eq!(scanner.found(), Some(Form::AsWritten));
}

fn writing() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(SECRET.to_owned()),
        Just(hex(SECRET.as_bytes())),
        Just(percent(SECRET.as_bytes())),
        Just(base64(SECRET.as_bytes(), b"-_")),
        Just(
            SECRET
                .bytes()
                .map(|byte| format!("\\u{byte:04X}"))
                .collect()
        ),
    ]
}

proptest! {
    #[test]
    fn redaction_in_pieces_is_redaction_of_the_whole(texts in proptest::collection::vec((writing(), "[ -~]{0,300}", any::<bool>()), 0..12), size in 1usize..2000) {
        let secrets = secrets().hiding([("TOKEN", "of-its-users"), ("LONG", "of-its-users-and-more")]);
        let mut whole = String::new();
        for (text, between, is_hidden) in texts {
            whole += &between;
            whole += if is_hidden { "of-its-users-and-more" } else { &text };
        }
        let mut redactor = Redactor::new(&secrets);
        let mut joined = Vec::new();
        for piece in whole.as_bytes().chunks(size) {
            joined.extend(redactor.push(piece));
        }
        joined.extend(redactor.finish());
        let expected = secrets.redact_bytes(whole.as_bytes());
        prop_assert_eq!(redactor.has_replaced(), expected != whole.as_bytes());
        prop_assert_eq!(String::from_utf8(joined), String::from_utf8(expected));
    }

    #[test]
    fn redaction_in_pieces_holds_back_little(size in 1usize..5000) {
        let secrets = secrets();
        let mut redactor = Redactor::new(&secrets);
        let mut passed = 0;
        for _ in 0..20 {
            passed += redactor.push(&vec![b'x'; size]).len();
        }
        prop_assert!(20 * size - passed <= 2 * (secrets.longest() + 1));
    }

    #[test]
    fn a_hit_across_any_borders_is_found(before in "[ -~]{0,900}", text in writing(), after in "[ -~]{0,40}", size in 1usize..700) {
        let whole = format!("{before}{text}{after}");
        let mut scanner = Scanner::new(&secrets());
        for piece in whole.as_bytes().chunks(size) {
            scanner.push(piece);
        }
        prop_assert!(scanner.found().is_some());
        prop_assert_eq!(secrets().find(secrets().redact(&whole).as_bytes()), None);
    }

    #[test]
    fn bytes_without_the_credential_give_no_hit(bytes in proptest::collection::vec(any::<u8>(), 0..2000), size in 1usize..300) {
        let mut scanner = Scanner::new(&secrets());
        for piece in bytes.chunks(size) {
            prop_assert_eq!(scanner.push(piece), None);
        }
    }
}

#[test]
fn other_values_are_replaced_by_their_names_in_every_form() {
    let token = "gr\u{fc}n-\"s3cret\" 42";
    let key = "-----BEGIN KEY-----\nAAAABBBBCCCC\nshort\n-----END KEY-----";
    let hiding = secrets().hiding([("TOKEN", token), ("KEY", key), ("SHORT", "1234567")]);
    let all = |text: &str| format!("a {text} b {SECRET} c");
    for form in [
        token.to_owned(),
        hex(token.as_bytes()),
        hex(token.as_bytes()).to_uppercase(),
        percent(token.as_bytes()),
        base64(token.as_bytes(), b"+/"),
        token.replace('"', "\\\""),
    ] {
        let shown = hiding.redact(&all(&form));
        assert!(shown.starts_with("a <value of TOKEN>"), "{form}: {shown}");
        assert!(shown.ends_with("b <credential> c"), "{form}: {shown}");
        assert_eq!(hiding.redact_bytes(all(&form).as_bytes()), shown.as_bytes());
        assert_eq!(hiding.find(form.as_bytes()), None, "{form}");
    }
    assert_eq!(hiding.redact(key), "<value of KEY>");
    assert_eq!(hiding.redact("x AAAABBBBCCCC y"), "x <value of KEY> y");
    assert_eq!(hiding.redact("1234567 short"), "1234567 short");
    let mut value = serde_json::json!({"a": [token], "AAAABBBBCCCC": 1});
    hiding.redact_json(&mut value);
    let expected = serde_json::json!({"a": ["<value of TOKEN>"], "<value of KEY>": 1});
    assert_eq!(value, expected);
    assert_eq!(secrets().redact(token), token, "nobody asked for it");
}

#[test]
fn a_value_that_contains_another_is_replaced_first() {
    let hiding = secrets().hiding([("PART", "abcdefgh"), ("WHOLE", "12abcdefgh34")]);
    let shown = hiding.redact("12abcdefgh34 abcdefgh");
    assert_eq!(shown, "<value of WHOLE> <value of PART>");
    let small = secrets().hiding([("HOST", "ABCDEFGH")]).in_lower_case();
    assert_eq!(small.redact("abcdefgh.example"), "<value of HOST>.example");
}

#[test]
fn a_hidden_value_is_found_across_pieces() {
    let secrets = secrets().hiding([("TOKEN", "of-its-users"), ("SHORT", "seven77")]);
    assert_eq!(secrets.find_hidden(SECRET.as_bytes()), None);
    assert_eq!(secrets.find_hidden(b"seven77"), None);
    for written in [
        "of-its-users".to_owned(),
        hex(b"of-its-users"),
        percent(b"of-its-users"),
    ] {
        let text = format!("{}{written}{}", "x".repeat(50), "y".repeat(50));
        assert_eq!(secrets.find_hidden(text.as_bytes()), Some("TOKEN"));
        for size in 1..text.len() {
            let mut scanner = HiddenScanner::new(&secrets);
            let pieces = text.as_bytes().chunks(size);
            let last = pieces.map(|piece| scanner.push(piece)).last();
            assert_eq!(last, Some(Some("TOKEN")), "{written} in pieces of {size}");
        }
    }
    let mut scanner = HiddenScanner::new(&secrets);
    assert_eq!(scanner.push(b"of-its-"), None);
    scanner.skip_zeros();
    assert_eq!(scanner.push(b"users"), None);
}
