//! What was left behind.

use model::difference::Area;

use super::form::File;
use super::{Facts, Rule};

/// Ends of names under which programs keep what changes by itself.
const STATE: [&str; 9] = [
    ".json", ".jsonl", ".log", ".lock", ".pid", ".db", ".sqlite", ".tmp", ".pyc",
];

pub(super) fn read(files: &[File], facts: &mut Facts) {
    let mut left: Vec<(String, String)> = Vec::new();
    for file in files {
        if file.transient {
            facts.apply(Rule::TransientFiles);
        } else {
            left.push(fact(file, facts));
        }
    }
    // Two whose names are alike now are told apart by what they are, whichever came first.
    left.sort();
    for (key, value) in left {
        facts.insert(Area::Files, &key, &value);
    }
}

fn fact(file: &File, facts: &mut Facts) -> (String, String) {
    // The rule for names of temporary files goes by the directory.
    let path = match file.root.as_str() {
        "tmp" => {
            let path = facts.text(&format!("/tmp/{}", file.path));
            path.strip_prefix("/tmp/")
                .map(str::to_owned)
                .unwrap_or(path)
        }
        _ => facts.text(&file.path),
    };
    let mut value = format!("{} {}", file.kind, file.mode);
    if let Some(target) = &file.target {
        value.push_str(&format!(" to {}", facts.text(target)));
    }
    if let Some(sha256) = &file.sha256 {
        facts.apply(Rule::Lengths);
        match unstable(file, path != file.path) {
            Some(rule) => facts.apply(rule),
            None => value.push_str(&format!(", sha256 {sha256}")),
        }
    }
    (format!("{} {path}", file.root), value)
}

/// Why its content is not compared.
fn unstable(file: &File, has_id: bool) -> Option<Rule> {
    if file.expected.is_some() {
        Some(Rule::KnownFiles)
    } else if has_id || STATE.iter().any(|end| file.path.ends_with(end)) {
        Some(Rule::StateFiles)
    } else {
        None
    }
}
