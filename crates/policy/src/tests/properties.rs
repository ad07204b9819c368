//! Property tests: any input gives a policy or an error with a line.

use std::time::Duration;

use model::case::Source;
use proptest::prelude::*;

use super::super::document::Document;
use super::super::{MAX_FILE_BYTES, PolicyError, builtin, quantity, text};
use super::parse;

fn has_a_line(error: &PolicyError) -> bool {
    let text = error.to_string();
    let place = text
        .strip_prefix("x.toml:")
        .and_then(|rest| rest.split_once(':'));
    place.is_some_and(|(line, _)| line.parse::<usize>().is_ok_and(|line| line > 0))
        && !text.contains('\n')
}

#[test]
fn nesting_as_deep_as_a_file_can_be_is_an_error_and_no_overflow() {
    let depth = MAX_FILE_BYTES as usize / 2 - 1;
    let dots = vec!["a"; depth].join(".");
    let inline = "{a=".repeat(depth / 2);
    for text in [
        format!("a = {}", "[".repeat(depth)),
        format!("a = {inline}"),
        format!("{dots} = 1"),
        format!("[{dots}]"),
        format!("[[{dots}]]"),
    ] {
        let error = parse(&text).unwrap_err();
        assert!(has_a_line(&error), "{error}");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_a_policy_or_an_error_with_a_line(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let source = Source::File("x.toml".into());
        let result = Document::from_bytes("x.toml".into(), source, bytes).and_then(|document| document.entry());
        prop_assert!(result.as_ref().err().is_none_or(has_a_line), "{:?}", result);
    }

    #[test]
    fn a_damaged_policy_is_a_policy_or_an_error_with_a_line(
        which in 0..3usize,
        cut in any::<prop::sample::Index>(),
        length in 0..40usize,
        patch in "[a-z0-9 \\[\\]{}\"'=.,#\n\\\\\u{202e}é-]{0,8}",
    ) {
        let original = builtin::ALL[which].text;
        let start = original.floor_char_boundary(cut.index(original.len()));
        let end = original.floor_char_boundary((start + length).min(original.len()));
        let damaged = format!("{}{patch}{}", &original[..start], &original[end.max(start)..]);
        let result = parse(&damaged);
        prop_assert!(result.as_ref().err().is_none_or(has_a_line), "{:?}", result);
    }

    #[test]
    fn limits_are_read_as_they_are_written(timeout in 100..86_400_000u64, size in (64u64 << 10)..(64 << 30), count in 16..1_000_000u64) {
        let text = text("case-a").unwrap()
            .replacen("\"60s\"", &format!("{:?}", quantity::show_duration(Duration::from_millis(timeout))), 1)
            .replacen("\"256 MiB\"", &format!("{:?}", quantity::show_size(size)), 1)
            .replacen("home_files = 20000", &format!("home_files = {count}"), 1);
        let document = Document::from_bytes("x.toml".into(), Source::BuiltIn, text.into()).unwrap();
        let limits = document.case().unwrap().sandbox.limits;
        prop_assert_eq!((limits.timeout, limits.home_bytes, limits.home_files), (Duration::from_millis(timeout), size, count));
    }
}
