//! Values of policy files as JSON Schema describes them.
//!
//! A schema refuses nothing that the parser accepts. The parser knows more: placeholders, cross references, bounds of
//! sizes and times. Where a text may hold placeholders, its pattern lets every brace pass.

use std::fmt::Display;
use std::ops::RangeInclusive;

use model::schema::values::value;
use schemars::Schema;

use super::quantity::{self, duration_units, size_units};

/// Longest sentence, in characters.
pub(super) const MAX_SENTENCE_CHARS: usize = 300;
/// Longest name, in characters.
pub(super) const MAX_NAME_CHARS: usize = 64;

/// Directories of the host that are never shown: they hold sockets, devices or the kernel's own files.
pub(super) const NEVER_SHOWN: [&str; 6] = ["/proc", "/sys", "/dev", "/run", "/var/run", "/tmp"];

value! {
    /// Letters, digits, `.`, `_` and `-`, but not dots alone.
    Name => {
        "type": "string",
        "pattern": "^[A-Za-z0-9._-]*[A-Za-z0-9_-][A-Za-z0-9._-]*$",
        "maxLength": MAX_NAME_CHARS,
    }

    /// One line for people.
    Sentence => {
        "type": "string",
        "pattern": r"^[^\x00-\x1f\x7f]*[^\x00-\x20\x7f][^\x00-\x1f\x7f]*$",
        "maxLength": MAX_SENTENCE_CHARS,
    }

    /// Text without NUL, which no program can be given.
    Word => { "type": "string", "pattern": r"^[^\x00]*$" }

    /// Some text, without NUL.
    Text => { "type": "string", "pattern": r"^[^\x00]+$" }

    /// A whole number and a unit: `256 MiB`.
    Size => {
        "type": "string",
        "pattern": quantity_pattern(size_units()),
        "examples": ["64 KiB", "256 MiB", "4 GiB"],
    }

    /// A whole number and a unit: `60s`.
    Time => {
        "type": "string",
        "pattern": quantity_pattern(duration_units()),
        "examples": ["500ms", "60s", "5min", "1h"],
    }

    /// An absolute path of the host in its plain form, outside of the directories that are never shown.
    HostPath => {
        "type": "string",
        "pattern": r"^(/[^/\x00]+)+$",
        "not": { "pattern": never_shown_pattern() },
        "examples": ["/usr/lib/node"],
    }

    /// A path relative to home, temporary or working directory.
    TreePath => {
        "type": "string",
        "pattern": r"^[^/\x00-\x1f\x7f]+(/[^/\x00-\x1f\x7f]+)*$",
        "examples": [".{app}/.{app}.json"],
    }

    /// The name of an environment variable.
    VariableName => { "type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$" }

    /// The name of a header, in lower case.
    HeaderName => {
        "type": "string",
        "pattern": "^[a-z0-9!#$%&'*+.^_`|~{}-]+$",
        "examples": ["user-agent", "{vendor}-beta"],
    }

    /// How a value of the beta header begins.
    Prefix => { "type": "string", "pattern": "^[A-Za-z0-9._{}-]+$" }

    /// A query, as written after the question mark.
    Query => {
        "type": "string",
        "pattern": "^[!\"$->@-~][!\"$-~]*$",
        "examples": ["beta=true"],
    }

    /// The method of a request.
    Method => { "type": "string", "pattern": "^[A-Z]+$", "examples": ["POST"] }

    /// The path of a request, without the query.
    RequestPath => {
        "type": "string",
        "pattern": "^/[!\"$->@-~]*$",
        "examples": ["/v1/messages/count_tokens"],
    }

    /// A key of a body, or keys of the objects in it with dots between them.
    BodyKey => {
        "type": "string",
        "pattern": r"^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$",
        "examples": ["tools", "output_config.format"],
    }

    /// Where an attempt goes: one spelling for each destination.
    Destination => {
        "type": "string",
        "pattern": destination_pattern(),
        "examples": [
            "unix:/var/run/nscd/socket",
            "unix:@abstract-name",
            "inet:192.0.2.1:443",
            "inet:127.0.0.1:*",
            "inet6:[2001:db8::1]:443",
            "name:api.example.com",
        ],
    }
}

fn quantity_pattern(units: impl Iterator<Item = &'static str>) -> String {
    let units: Vec<_> = units.collect();
    format!("^[0-9]+ ?({})$", units.join("|"))
}

fn never_shown_pattern() -> String {
    let trees = NEVER_SHOWN.join("|");
    format!("^({trees})(/|$)")
}

fn destination_pattern() -> String {
    let port = r"(\*|[1-9][0-9]{0,4})";
    let kinds = [
        "unix:[/@].+".to_owned(),
        format!("inet:[0-9.]+:{port}"),
        format!(r"inet6:\[[0-9a-f:.]+\]:{port}"),
        r"name:[a-z0-9_-]+(\.[a-z0-9_-]+)*".to_owned(),
        r".*\{.*".to_owned(),
    ];
    format!("^({})$", kinds.join("|"))
}

/// Says the bounds of a size at the end of the description.
pub(super) fn sizes(bounds: &RangeInclusive<u64>) -> impl FnMut(&mut Schema) {
    told(bounds, |bytes| quantity::show_size(*bytes))
}

/// Says the bounds of a time at the end of the description.
pub(super) fn times(bounds: &RangeInclusive<std::time::Duration>) -> impl FnMut(&mut Schema) {
    told(bounds, |time| quantity::show_duration(*time))
}

fn told<T, W: Display>(
    bounds: &RangeInclusive<T>,
    show: impl Fn(&T) -> W,
) -> impl FnMut(&mut Schema) {
    let bounds = format!("{} to {}.", show(bounds.start()), show(bounds.end()));
    move |schema| {
        let description = schema.get("description").and_then(|text| text.as_str());
        let told = format!("{} {bounds}", description.unwrap_or_default());
        schema.insert("description".into(), told.trim().into());
    }
}
