//! Errors of files with one deviation each: position, message and hint, as listed in `deviations.txt`.

use super::super::error::Position;
use super::super::text;
use super::parse;

/// Mark before the position at which the fault must be reported.
const MARK: char = '§';

pub(super) struct Deviation<'t> {
    pub(super) file: &'t str,
    from: &'t str,
    to: &'t str,
    pub(super) says: &'t str,
    hint: &'t str,
}

pub(super) fn listed() -> Vec<Deviation<'static>> {
    let entries = include_str!("deviations.txt").split("\n\n").skip(1);
    let field = |entry: &'static str, name: &str| {
        let line = entry
            .lines()
            .find_map(|line| line.trim_start().strip_prefix(name));
        line.unwrap_or_else(|| panic!("{entry} has no {name}"))
            .trim()
    };
    let deviation = |entry: &'static str| Deviation {
        file: entry.lines().next().unwrap(),
        from: field(entry, "from"),
        to: field(entry, "to"),
        says: field(entry, "says"),
        hint: field(entry, "hint"),
    };
    entries.map(deviation).collect()
}

#[test]
fn each_deviation_is_an_error_at_its_place_with_a_hint() {
    let wrong: String = listed().iter().filter_map(unlike_listed).collect();
    assert!(wrong.is_empty(), "these are not as listed:\n\n{wrong}");
}

/// Returns the actual error as an entry of the list, if it differs from the listed one.
fn unlike_listed(listed: &Deviation<'_>) -> Option<String> {
    let Deviation {
        file,
        from,
        to,
        says,
        hint,
    } = listed;
    let marked = marked(listed);
    let error = parse(&marked.replace(MARK, "")).expect_err(to);
    let (place, said) = split_place(&error.to_string());
    let mark = marked
        .find(MARK)
        .map(|offset| Position::of(marked.as_bytes(), offset).to_string());
    let at_mark = mark.is_none_or(|mark| mark == place);
    let as_listed = at_mark && said == *says && error.hint() == *hint;
    let hint = error.hint();
    (!as_listed).then(|| {
        format!("{file} at {place}\n  from {from}\n  to   {to}\n  says {said}\n  hint {hint}\n\n")
    })
}

/// Returns the file with the deviation.
pub(super) fn deviating(listed: &Deviation<'_>) -> String {
    marked(listed).replace(MARK, "")
}

fn marked(listed: &Deviation<'_>) -> String {
    let [from, to] = [listed.from, listed.to].map(|text| text.replace('⏎', "\n"));
    let original = text(listed.file).unwrap();
    assert!(original.contains(&from), "{} has no {from}", listed.file);
    original.replacen(&from, &to, 1)
}

/// Splits `x.toml:3:8: what` into `3:8` and `what`.
fn split_place(error: &str) -> (String, String) {
    let rest = error.strip_prefix("x.toml:").unwrap();
    let (place, said) = rest.split_once(": ").unwrap();
    (place.to_owned(), said.to_owned())
}
