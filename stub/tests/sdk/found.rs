//! Result of an SDK for one answer, as a line of the table.

use serde_json::Value;

/// Longest text that a line shows in full, in characters.
const SHOWN: usize = 48;

/// Result of one SDK for one scenario in one mode.
#[derive(Debug)]
pub(crate) struct Found {
    scenario: String,
    mode: String,
    outcome: String,
}

impl Found {
    pub(crate) fn new(answer: &Value, requests: usize) -> Self {
        let word = |key: &str| answer[key].as_str().unwrap().to_owned();
        let items = |key: &str| answer[key].as_array().unwrap().iter();
        let events: String = items("events").map(sign).collect();
        let events = shortened(&events);
        let texts: Vec<_> = items("text").map(|text| text.as_str().unwrap()).collect();
        let parts = [
            format!("{requests}x"),
            events,
            quoted(&texts.join("|")),
            error(&answer["error"]),
        ];
        let mut parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        if parts.len() == 1 {
            parts.push("nothing".to_owned());
        }
        Self {
            scenario: word("scenario"),
            mode: word("mode"),
            outcome: parts.join(" "),
        }
    }
}

/// Returns one sign for each event, so that a stream is one word.
fn sign(event: &Value) -> &'static str {
    match event.as_str() {
        Some("message_start") => "<",
        Some("content_block_start") => "[",
        Some("content_block_delta") => ".",
        Some("content_block_stop") => "]",
        Some("message_delta") => "=",
        Some("message_stop") => ">",
        Some("stub_notice") => "!",
        Some(_) => "*",
        None => "?",
    }
}

/// Replaces ten or more deltas by their number.
fn shortened(events: &str) -> String {
    let deltas = events.matches('.').count();
    if deltas < 10 {
        return events.to_owned();
    }
    events.replace(&".".repeat(deltas), &format!(".{deltas}"))
}

fn quoted(text: &str) -> String {
    match text.chars().count() {
        0 => String::new(),
        1..=SHOWN => format!("{text:?}"),
        characters => format!("{characters} characters"),
    }
}

fn error(error: &Value) -> String {
    if error.is_null() {
        return String::new();
    }
    let part = |key: &str| {
        let value = &error[key];
        let word = value.as_str().map(str::to_owned);
        word.unwrap_or_else(|| {
            value
                .as_u64()
                .map_or_else(String::new, |number| number.to_string())
        })
    };
    let parts = ["class", "status", "type"].map(part);
    let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join(" ")
}

/// Returns the lines of the table: one for each scenario and mode. Modes with equal results share a line.
pub(crate) fn table(python: &[Found], typescript: &[Found]) -> Vec<String> {
    let mut rows: Vec<(&str, Vec<&str>, String)> = Vec::new();
    for (python, typescript) in python.iter().zip(typescript) {
        assert_eq!(
            (&python.scenario, &python.mode),
            (&typescript.scenario, &typescript.mode)
        );
        let outcome = if python.outcome == typescript.outcome {
            python.outcome.clone()
        } else {
            format!("{} / {}", python.outcome, typescript.outcome)
        };
        match rows.last_mut() {
            Some((scenario, modes, last)) if *scenario == python.scenario && *last == outcome => {
                modes.push(&python.mode);
            }
            _ => rows.push((&python.scenario, vec![&python.mode], outcome)),
        }
    }
    let line = |(scenario, modes, outcome): &(&str, Vec<&str>, String)| {
        format!("{scenario:<30} {:<18} {outcome}", modes.join(" "))
    };
    rows.iter().map(line).collect()
}
