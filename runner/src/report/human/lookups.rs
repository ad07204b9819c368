//! The section of the human report about paths that were looked for: the option that would show each stands with it,
//! so that the first failure teaches what to type.

use std::fmt;

use crate::evidence::{Advice, Lookup};
use crate::report::{Report, words};

use super::ledger::times;
use super::page::{Align, Page, Row};

pub(super) fn lookups(page: &mut Page<String>, report: &Report) -> fmt::Result {
    let lookups = &report.evidence.lookups;
    if lookups.is_empty() {
        return Ok(());
    }
    page.heading("Paths that it looked for and did not get")?;
    page.table(
        [Align::Left, Align::Right],
        &lookups.iter().map(row).collect::<Vec<_>>(),
    )
}

fn row(lookup: &Lookup) -> Row<2> {
    let path = quoted(&lookup.path);
    let paths = match lookup.paths {
        1 => path,
        several => format!("{path} ({several} paths)"),
    };
    let advice = match &lookup.advice {
        Advice::Read(path) => format!("--read {}", quoted(path)),
        Advice::Write(path) => format!("--write {}", quoted(path)),
        Advice::Never(reason) => format!("({})", words::reason_in_full(*reason)),
    };
    Row {
        cells: [
            words::lookup_kind(lookup.kind).to_owned(),
            times(lookup.count),
        ],
        last: format!("{paths}   {advice}"),
    }
}

/// As a shell takes it for one word. A path of the program's choice is quoted as well, or it could look like an
/// option of ours.
fn quoted(path: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+:,@%=".contains(c);
    if !path.is_empty() && path.chars().all(is_plain) {
        return path.to_owned();
    }
    format!("'{}'", path.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_quoted_where_a_shell_would_read_more_than_one_word_in_it() {
        for (path, word) in [
            ("/usr/lib/python3.11", "/usr/lib/python3.11"),
            ("/srv/grün", "/srv/grün"),
            ("/srv/a b", "'/srv/a b'"),
            ("/srv/$(id)", "'/srv/$(id)'"),
            ("/srv/it's", r"'/srv/it'\''s'"),
            ("/srv/x   --read /root", "'/srv/x   --read /root'"),
            ("~", "'~'"),
            ("", "''"),
        ] {
            assert_eq!(quoted(path), word);
        }
    }
}
