//! Facts of the files that the client left.

use model::difference::Area;

use super::form::File;
use super::{Facts, Rule};

/// Suffixes of files in which programs keep changing state.
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
    // Placeholders can make names equal. Sorting by value makes the order of such files independent of the run.
    left.sort();
    for (key, value) in left {
        facts.insert(Area::Files, &key, &value);
    }
}

fn fact(file: &File, facts: &mut Facts) -> (String, String) {
    // The rule for random names depends on the directory.
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

/// Rule that leaves out the content of a file.
fn unstable(file: &File, has_id: bool) -> Option<Rule> {
    if file.expected.is_some() {
        Some(Rule::KnownFiles)
    } else if has_id || STATE.iter().any(|end| file.path.ends_with(end)) {
        Some(Rule::StateFiles)
    } else {
        None
    }
}
