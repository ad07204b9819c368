//! Lines of the keys of a TOML document. The build script compiles this file as well.

use std::collections::BTreeMap;

use toml::de::{DeTable, DeValue};

/// Returns the line of each key, from 1, by its dotted path. A key in an array of tables has its first line.
pub(crate) fn lines(text: &str, document: &DeTable<'_>) -> BTreeMap<String, usize> {
    let line_feeds = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
    let line_feeds: Vec<usize> = line_feeds.map(|(at, _)| at).collect();
    let line_of = |offset| line_feeds.partition_point(|at| *at < offset) + 1;
    let mut lines = BTreeMap::new();
    let mut open = vec![(String::new(), document)];
    while let Some((prefix, table)) = open.pop() {
        for (key, value) in table {
            let path = format!("{prefix}{}", key.get_ref());
            let line = line_of(key.span().start);
            let first = lines.entry(path.clone()).or_insert(line);
            *first = line.min(*first);
            push_tables(&mut open, format!("{path}."), value.get_ref());
        }
    }
    lines
}

/// Adds the table that a value is, or the tables in an array.
pub(crate) fn push_tables<'t, 'i>(
    open: &mut Vec<(String, &'t DeTable<'i>)>,
    path: String,
    value: &'t DeValue<'i>,
) {
    match value {
        DeValue::Table(table) => open.push((path, table)),
        DeValue::Array(items) => {
            for item in items.iter() {
                push_tables(open, path.clone(), item.get_ref());
            }
        }
        DeValue::String(_)
        | DeValue::Integer(_)
        | DeValue::Float(_)
        | DeValue::Boolean(_)
        | DeValue::Datetime(_) => {}
    }
}
