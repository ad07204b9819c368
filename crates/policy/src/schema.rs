//! Values of policy files as JSON Schema describes them.
//!
//! A schema accepts every file that the parser accepts. The parser checks more: placeholders, cross references, and
//! bounds of sizes and times. Patterns of texts with placeholders accept any brace.

use std::fmt::Display;
use std::ops::RangeInclusive;

use model::schema::values::value;
use schemars::Schema;

use super::quantity::{self, duration_units, size_units};

/// Maximum length of a sentence, in characters.
pub(super) const MAX_SENTENCE_CHARS: usize = 300;
/// Maximum length of a name, in characters.
pub(super) const MAX_NAME_CHARS: usize = 64;

/// Directories of the host that are never shown, because they hold sockets, devices or files of the kernel.
pub(super) const NEVER_SHOWN: [&str; 5] = ["/proc", "/sys", "/dev", "/run", "/var/run"];

value! {
    /// Name: letters, digits, `.`, `_` and `-`, but not dots alone.
    Name => {
        "type": "string",
        "pattern": "^[A-Za-z0-9._-]*[A-Za-z0-9_-][A-Za-z0-9._-]*$",
        "maxLength": MAX_NAME_CHARS,
    }

    /// One line of text.
    Sentence => {
        "type": "string",
        "pattern": r"^[^\x00-\x1f\x7f]*[^\x00-\x20\x7f][^\x00-\x1f\x7f]*$",
        "maxLength": MAX_SENTENCE_CHARS,
    }

    /// Text without NUL, because a NUL ends an argument of a program.
    Word => { "type": "string", "pattern": r"^[^\x00]*$" }

    /// Non-empty text without NUL.
    Text => { "type": "string", "pattern": r"^[^\x00]+$" }

    /// Size, a whole number and a unit: `256 MiB`.
    Size => {
        "type": "string",
        "pattern": quantity_pattern(size_units()),
        "examples": ["64 KiB", "256 MiB", "4 GiB"],
    }

    /// Time, a whole number and a unit: `60s`.
    Time => {
        "type": "string",
        "pattern": quantity_pattern(duration_units()),
        "examples": ["500ms", "60s", "5min", "1h"],
    }

    /// Absolute, plain path of the host, outside of the directories that are never shown.
    HostPath => {
        "type": "string",
        "pattern": r"^(/[^/\x00]+)+$",
        "not": { "pattern": never_shown_pattern() },
        "examples": ["/usr/lib/node"],
    }

    /// Way up from the directory of a file.
    Upwards => { "type": "string", "pattern": r"^\.\.(/\.\.)*$" }

    /// Path relative to the home, temporary or working directory.
    TreePath => {
        "type": "string",
        "pattern": r"^[^/\x00-\x1f\x7f]+(/[^/\x00-\x1f\x7f]+)*$",
        "examples": [".{app}/.{app}.json"],
    }

    /// Name of an environment variable.
    VariableName => { "type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$" }

    /// Name of a header, in lower case.
    HeaderName => {
        "type": "string",
        "pattern": "^[a-z0-9!#$%&'*+.^_`|~{}-]+$",
        "examples": ["user-agent", "{vendor}-beta"],
    }

    /// Prefix of a value of the beta header.
    Prefix => { "type": "string", "pattern": "^[A-Za-z0-9._{}-]+$" }

    /// Query, without the question mark.
    Query => {
        "type": "string",
        "pattern": "^[!\"$->@-~][!\"$-~]*$",
        "examples": ["beta=true"],
    }

    /// Method of a request.
    Method => { "type": "string", "pattern": "^[A-Z]+$", "examples": ["POST"] }

    /// Path of a request, without the query.
    RequestPath => {
        "type": "string",
        "pattern": "^/[!\"$->@-~]*$",
        "examples": ["/v1/messages/count_tokens"],
    }

    /// Key of a body, or keys of nested objects, separated by dots.
    BodyKey => {
        "type": "string",
        "pattern": r"^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$",
        "examples": ["tools", "output_config.format"],
    }

    /// Destination of an attempt. Each destination has one spelling.
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

/// Appends the bounds of a size to the description.
pub(super) fn sizes(bounds: &RangeInclusive<u64>) -> impl FnMut(&mut Schema) {
    append_bounds(bounds, |bytes| quantity::show_size(*bytes))
}

/// Appends the bounds of a time to the description.
pub(super) fn times(bounds: &RangeInclusive<std::time::Duration>) -> impl FnMut(&mut Schema) {
    append_bounds(bounds, |time| quantity::show_duration(*time))
}

fn append_bounds<T, W: Display>(
    bounds: &RangeInclusive<T>,
    show: impl Fn(&T) -> W,
) -> impl FnMut(&mut Schema) {
    let bounds = format!("{} to {}.", show(bounds.start()), show(bounds.end()));
    move |schema| {
        let description = schema.get("description").and_then(|text| text.as_str());
        let with_bounds = format!("{} {bounds}", description.unwrap_or_default());
        schema.insert("description".into(), with_bounds.trim().into());
    }
}
