//! The structure of the workspace: permitted dependencies of each crate, and no import cycle inside any of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Each crate, with all workspace crates that it uses. ARCHITECTURE.md draws them.
const EDGES: &[(&str, &[&str])] = &[
    ("client", &[]),
    ("crates/judge", &["model"]),
    ("crates/model", &["scenario"]),
    ("crates/policy", &["model", "scenario", "sys"]),
    ("crates/probes", &["model", "sys"]),
    ("crates/report", &["model"]),
    ("crates/sandbox", &["model", "probes", "sys"]),
    ("crates/scenario", &[]),
    ("crates/sys", &["model"]),
    (
        "runner",
        &[
            "client", "judge", "model", "policy", "probes", "report", "sandbox", "scenario",
            "stub", "sys",
        ],
    ),
    ("stub", &["model", "scenario"]),
];

/// External crates that only these may use.
const GUARDED: &[(&str, &[&str])] = &[
    ("axum", &["stub"]),
    ("caps", &["crates/probes", "crates/sandbox", "runner"]),
    ("clap", &["client", "runner", "stub"]),
    ("hyper", &[]),
    ("landlock", &["crates/sandbox", "runner"]),
    ("maud", &["crates/report"]),
    ("object", &["crates/policy"]),
    ("reqwest", &["client"]),
    (
        "tokio",
        &["client", "crates/sandbox", "crates/sys", "runner", "stub"],
    ),
];

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Names under `[dependencies]` of a crate's manifest.
fn dependencies(directory: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(workspace().join(directory).join("Cargo.toml")).unwrap();
    let manifest: toml::Table = text.parse().unwrap();
    let table = manifest["dependencies"].as_table().unwrap();
    table.keys().cloned().collect()
}

/// Directories of the workspace that hold a crate.
fn members() -> BTreeSet<String> {
    let below = |directory: &str| -> Vec<String> {
        let entries = fs::read_dir(workspace().join(directory)).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        let crates = paths.filter(|path| path.join("Cargo.toml").is_file());
        let name = |path: PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
        crates.map(name).collect()
    };
    let libraries = below("crates");
    let libraries = libraries.iter().map(|name| format!("crates/{name}"));
    below("").into_iter().chain(libraries).collect()
}

#[test]
fn crates_use_only_the_crates_below_them() {
    let named: BTreeSet<String> = EDGES.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(members(), named, "every crate has a line in EDGES");
    let own = |name: &String| {
        named
            .iter()
            .any(|path| path.rsplit('/').next() == Some(name))
    };
    for (directory, expected) in EDGES {
        let used: Vec<String> = dependencies(directory).into_iter().filter(own).collect();
        assert_eq!(used, *expected, "{directory}");
    }
}

#[test]
fn guarded_crates_stay_behind_their_own() {
    for (guarded, users) in GUARDED {
        let used = |directory: &String| dependencies(directory).contains(*guarded);
        let found: Vec<String> = members().into_iter().filter(used).collect();
        assert_eq!(found, *users, "{guarded}");
    }
}

/// Crates of values and pure functions: no file, process, environment, socket, thread or clock.
#[test]
fn pure_crates_use_no_system() {
    const SYSTEM: &[&str] = &[
        "std::fs",
        "std::process",
        "std::env",
        "std::thread",
        "Instant",
        "SystemTime::now",
        "TcpStream",
        "TcpListener",
        "UdpSocket",
        "nix::unistd",
        "nix::sys",
        "nix::fcntl",
        "libc::",
    ];
    for name in ["model", "judge", "report", "scenario"] {
        let source = workspace().join("crates").join(name).join("src");
        let mut files = BTreeMap::new();
        collect(&source, &source, &mut files);
        assert!(files.len() > 10, "{name}");
        for (file, code) in files {
            let used: Vec<_> = SYSTEM.iter().filter(|word| code.contains(*word)).collect();
            assert!(used.is_empty(), "{name}/{file}: {used:?}");
        }
    }
}

/// Modules of one crate, each with the modules that it imports. A module is its path without the suffix.
struct Modules {
    uses: BTreeMap<String, BTreeSet<String>>,
}

impl Modules {
    fn of(source: &Path) -> Self {
        let mut files = BTreeMap::new();
        collect(source, source, &mut files);
        let names: BTreeSet<String> = files.keys().cloned().collect();
        let uses = files.iter().map(|(name, text)| {
            let targets = paths(text);
            let resolved = targets
                .iter()
                .filter_map(|path| resolve(name, path, &names));
            let others = resolved.filter(|target| target != name);
            (name.clone(), others.collect())
        });
        Self {
            uses: uses.collect(),
        }
    }

    /// Returns cycles among sibling modules; a module and its own children count as one.
    fn circles(&self) -> Vec<Vec<String>> {
        let mut levels: BTreeMap<String, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
        for (from, targets) in &self.uses {
            for to in targets {
                let (from, to): (Vec<&str>, Vec<&str>) =
                    (from.split('/').collect(), to.split('/').collect());
                let shared = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
                // One module contains the other.
                let (Some(a), Some(b)) = (from.get(shared), to.get(shared)) else {
                    continue;
                };
                let parent = from[..shared].join("/");
                let level = levels.entry(parent).or_default();
                level
                    .entry((*a).to_owned())
                    .or_default()
                    .insert((*b).to_owned());
            }
        }
        levels
            .into_values()
            .filter_map(|level| circle(&level))
            .collect()
    }
}

fn collect(root: &Path, directory: &Path, files: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_str().unwrap();
        if ["tests", "fixture", "schema_tests"].contains(&stem) {
            continue;
        }
        if path.is_dir() {
            collect(root, &path, files);
        } else if path.extension().is_some_and(|suffix| suffix == "rs")
            && !["lib", "main"].contains(&stem)
        {
            let name = path.strip_prefix(root).unwrap().with_extension("");
            let text = fs::read_to_string(&path).unwrap();
            files.insert(name.to_str().unwrap().to_owned(), code(&text));
        }
    }
}

/// Returns the code of a file, without comments, strings and test modules.
fn code(text: &str) -> String {
    let without_tests = text.split("\n#[cfg(test)]\nmod ").next().unwrap();
    let lines = without_tests
        .lines()
        .map(|line| line.split("//").next().unwrap());
    let mut code = String::new();
    for line in lines {
        // Every second part is a string literal.
        let outside = line.split('"').step_by(2);
        code.extend(outside.flat_map(|part| [part, " "]));
        code.push('\n');
    }
    code
}

/// Returns every path that begins with `crate`, `super` or `self`, with groups expanded.
fn paths(code: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for root in ["crate::", "super::", "self::"] {
        for (at, _) in code.match_indices(root) {
            let before = code[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || "_:".contains(c)) {
                continue;
            }
            spell_out(&code[at..], Vec::new(), &mut found);
        }
    }
    found
}

/// Reads one use tree and returns the rest of the text behind it.
fn spell_out<'c>(tree: &'c str, mut prefix: Vec<String>, found: &mut Vec<Vec<String>>) -> &'c str {
    let mut rest = tree.trim_start();
    loop {
        if let Some(group) = rest.strip_prefix('{') {
            rest = group;
            loop {
                rest = spell_out(rest, prefix.clone(), found).trim_start();
                match rest.strip_prefix(',') {
                    Some(next) => rest = next,
                    None => return rest.strip_prefix('}').unwrap_or(rest),
                }
            }
        }
        let end = rest
            .find(|c: char| !c.is_alphanumeric() && c != '_')
            .unwrap_or(rest.len());
        if end > 0 {
            prefix.push(rest[..end].to_owned());
        }
        rest = &rest[end..];
        match rest.strip_prefix("::") {
            Some(next) => rest = next.trim_start(),
            None => {
                found.push(prefix);
                return rest;
            }
        }
    }
}

/// Returns the module that a path refers to, seen from the module that contains the path.
fn resolve(from: &str, path: &[String], names: &BTreeSet<String>) -> Option<String> {
    let mut at: Vec<&str> = from.split('/').collect();
    let mut words = path.iter().map(String::as_str).peekable();
    match words.next()? {
        "crate" => at.clear(),
        "self" => {}
        _ => {
            at.pop();
        }
    }
    while words.next_if_eq(&"super").is_some() {
        at.pop();
    }
    at.extend(words);
    while !at.is_empty() && !names.contains(&at.join("/")) {
        at.pop();
    }
    (!at.is_empty()).then(|| at.join("/"))
}

/// Returns the modules of a cycle, if there is one. Modules without an import, and modules that no other one imports,
/// are removed repeatedly; the rest is the cycle.
fn circle(level: &BTreeMap<String, BTreeSet<String>>) -> Option<Vec<String>> {
    let mut left = level.clone();
    loop {
        let rest: BTreeSet<String> = left.keys().cloned().collect();
        left.values_mut()
            .for_each(|targets| targets.retain(|target| rest.contains(target)));
        let imported: BTreeSet<String> = left.values().flatten().cloned().collect();
        let before = left.len();
        left.retain(|name, targets| !targets.is_empty() && imported.contains(name));
        if left.len() == before {
            break;
        }
    }
    (!left.is_empty()).then(|| left.into_keys().collect())
}

#[test]
fn no_modules_import_each_other_in_a_circle() {
    let (mut found, mut imports) = (Vec::new(), 0);
    for directory in members() {
        let modules = Modules::of(&workspace().join(&directory).join("src"));
        imports += modules.uses.values().map(BTreeSet::len).sum::<usize>();
        let circles = modules.circles();
        let circles = circles.into_iter();
        found.extend(circles.map(|circle| format!("{directory}: {}", circle.join(", "))));
    }
    assert!(imports > 300, "only {imports} imports were read");
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn circle_is_found_through_groups_and_parents() {
    let text = "use super::{b::{self, X}, c};\nfn f() { crate::a::b::g() }\n";
    let spelt: Vec<String> = paths(&code(text))
        .iter()
        .map(|path| path.join("::"))
        .collect();
    assert_eq!(
        spelt,
        [
            "crate::a::b::g",
            "super::b::self",
            "super::b::X",
            "super::c"
        ]
    );
    let names = ["a", "a/b", "a/c", "d"].map(str::to_owned).into();
    let to = |path: &str| {
        let path: Vec<String> = path.split("::").map(str::to_owned).collect();
        resolve("a/c", &path, &names)
    };
    assert_eq!(to("super::b::X").as_deref(), Some("a/b"));
    assert_eq!(to("super::super::d").as_deref(), Some("d"));
    assert_eq!(to("crate::a::b").as_deref(), Some("a/b"));
    let edge = |from: &str, to: &str| (from.to_owned(), BTreeSet::from([to.to_owned()]));
    assert_eq!(circle(&[edge("a", "b"), edge("b", "c")].into()), None);
    let turned = circle(&[edge("a", "b"), edge("b", "a"), edge("c", "a")].into());
    assert_eq!(turned, Some(["a", "b"].map(str::to_owned).into()));
}

/// Paths of all files and directories below a directory of the workspace, without build results.
fn tree(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
            tree(&path, found);
        }
        found.push(path);
    }
}

#[test]
fn architecture_page_names_files_that_exist() {
    let page = fs::read_to_string(workspace().join("ARCHITECTURE.md")).unwrap();
    let mut known = Vec::new();
    for directory in ["client", "crates", "policies", "runner", "stub"] {
        let root = workspace().join(directory);
        tree(&root, &mut known);
        known.push(root);
    }
    let quoted = page.split('`').skip(1).step_by(2);
    let paths: Vec<&str> = quoted
        .filter(|word| !word.contains(' ') && (word.ends_with('/') || word.ends_with(".rs")))
        .collect();
    for path in &paths {
        let is_there = known.iter().any(|known| known.ends_with(path));
        assert!(is_there, "ARCHITECTURE.md names `{path}`");
    }
    assert!(paths.len() > 30, "only {} paths were read", paths.len());
}
