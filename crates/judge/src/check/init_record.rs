//! Checks of the `system/init` record: its fields, and the permissions, extensions and tools that it grants.

use model::evidence::Record;
use model::profile::{InitField, InitList, RecordNames};
use model::text::count;
use serde_json::Value;

use super::outcome::{Deviation, JudgedRun, Outcome, absent, list, not_asked};
use super::records::name;

/// Optional fields of `system/init` that must be arrays.
const ARRAYS: [&str; 6] = [
    "tools",
    "mcp_servers",
    "slash_commands",
    "agents",
    "skills",
    "plugins",
];
/// Optional fields of `system/init` that must be strings.
const STRINGS: [&str; 7] = [
    "cwd",
    "session_id",
    "model",
    "permissionMode",
    "apiKeySource",
    "output_style",
    "uuid",
];

pub(super) fn init_fields(run: &JudgedRun) -> Outcome {
    let Some(names) = &run.agent_stream()?.names else {
        return not_asked("neither the case nor a profile names the fields of the init record");
    };
    let Some((record, init)) = init(run) else {
        return absent("there is no init record");
    };
    let missing = names
        .init_fields
        .iter()
        .filter(|field| init.get(field.as_str()).is_none());
    let mut faults: Vec<String> = missing.map(|field| format!("{field} is missing")).collect();
    let wrong = |fields: &[&str], fits: fn(&Value) -> bool, kind: &str| -> Vec<String> {
        let wrong = fields
            .iter()
            .filter(|field| init.get(**field).is_some_and(|value| !fits(value)));
        wrong.map(|field| format!("{field} is no {kind}")).collect()
    };
    faults.extend(wrong(&ARRAYS, Value::is_array, "array"));
    faults.extend(wrong(&STRINGS, Value::is_string, "string"));
    let version = init.get(&names.version_field);
    if version.is_some_and(|version| version.as_str().is_none_or(str::is_empty)) {
        faults.push(format!("{} is no version", names.version_field));
    }
    if !faults.is_empty() {
        return Deviation::new(
            "The init record lacks public fields, or has them with other types.",
        )
        .at(name(record))
        .expected(list(&names.init_fields))
        .found(list(faults))
        .failed();
    }
    let permissions = permission_faults(names, init);
    if !permissions.is_empty() {
        return Deviation::new("The init record grants the client more than the profile names.")
            .at(name(record))
            .expected(format!(
                "permissionMode {}; no MCP servers, slash commands, agents, skills or plugins but those that the \
                 profile names",
                names.permission_mode
            ))
            .found(list(permissions))
            .failed();
    }
    Ok(format!(
        "All {} fields of the init record, and no permission but those that the profile names.",
        names.init_fields.len()
    ))
}

/// Permissions and extensions of an init record that the profile does not name.
fn permission_faults(names: &RecordNames, init: &Value) -> Vec<String> {
    let mode = init.get("permissionMode").and_then(Value::as_str);
    let mode = mode.filter(|mode| *mode != names.permission_mode);
    let mut faults: Vec<String> = mode
        .map(|mode| format!("permissionMode {mode}"))
        .into_iter()
        .collect();
    for field in InitField::ALL {
        let entries = init.get(field.word()).and_then(Value::as_array);
        let mut rules = names.init_lists.iter();
        let known = match rules.find(|rule| rule.field == field) {
            None => &[][..],
            Some(InitList { names: None, .. }) => continue,
            Some(InitList {
                names: Some(names), ..
            }) => names,
        };
        let found = entries.into_iter().flatten().map(entry_name);
        let further = found.filter(|entry| !known.contains(entry));
        faults.extend(further.map(|entry| format!("{}: {entry}", field.word())));
    }
    faults
}

/// Name of a list entry: `name` of an object (MCP servers, plugins), the text itself, or else the JSON.
fn entry_name(entry: &Value) -> String {
    let name = entry.get("name").unwrap_or(entry);
    name.as_str()
        .map_or_else(|| entry.to_string(), str::to_owned)
}

pub(super) fn tools_empty(run: &JudgedRun) -> Outcome {
    if !run.agent_stream()?.no_tools {
        return not_asked("the case does not ask for an empty list of tools");
    }
    let Some((record, init)) = init(run) else {
        return absent("there is no init record");
    };
    match init.get("tools") {
        None => absent("the init record has no tools"),
        Some(Value::Array(tools)) if tools.is_empty() => {
            Ok("The init record's tool list is empty.".to_owned())
        }
        Some(tools) => Deviation::new("The init record's tool list is not empty.")
            .at(name(record))
            .expected("an empty array")
            .found(
                tools
                    .as_array()
                    .map_or("no array".to_owned(), |all| count(all.len(), "tool")),
            )
            .failed(),
    }
}

fn init<'a>(run: &JudgedRun<'a>) -> Option<(&'a Record, &'a Value)> {
    let record = run.evidence.init()?;
    record.json().map(|json| (record, json))
}
