use std::os::unix::fs::symlink;

use super::*;

/// A machine in a temporary directory: a text beginning with `#!` makes a script, `->` a link, and any other text a file
/// that is executable as well.
struct Tree(tempfile::TempDir);

impl Tree {
    fn of(entries: &[(&str, &str)]) -> Self {
        // Not in /tmp, where programs of other users are not shown.
        let tree = Self(tempfile::tempdir_in("/var/tmp").unwrap());
        for (path, text) in entries {
            let path = tree.at(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            match text.strip_prefix("-> ") {
                Some(target) => symlink(tree.filled(target), path).unwrap(),
                None => {
                    fs::write(&path, tree.filled(text)).unwrap();
                    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
                }
            }
        }
        tree
    }

    fn at(&self, path: &str) -> PathBuf {
        let root = self.0.path().canonicalize().unwrap();
        root.components()
            .chain(Path::new(path).components())
            .collect()
    }

    fn filled(&self, text: &str) -> String {
        text.replace("ROOT", self.at("").to_str().unwrap())
    }

    fn below(&self, path: &Path) -> String {
        let below = path.strip_prefix(self.at("")).unwrap_or(path);
        below.to_str().unwrap().to_owned()
    }

    /// Follows a program in a project, with these directories in PATH. The project is shown.
    fn follow(&self, program: &str, search: &[&str], variable: Option<(&str, &str)>) -> Followed {
        let search = search.iter().map(|directory| self.at(directory));
        let search = std::env::join_paths(search).unwrap();
        let value = |name: &str| {
            let (_, value) = variable.filter(|(known, _)| *known == name)?;
            Some(value.into())
        };
        let machine = Machine {
            search_path: Some(&search),
            directory: &self.at("project"),
            home_dirs: HomeDirs::known(Some(&self.at("home"))),
            variable: &value,
        };
        let project = PathRule {
            path: self.at("project"),
            access: Access::ReadExecute,
            presence: Presence::Required,
            reason: String::new(),
        };
        let file = in_path(OsStr::new(program), Some(&search)).unwrap_or(self.at(program));
        let file = behind_shim(&file, &machine);
        let mut rules = policy::audit().unwrap().sandbox.paths;
        rules.push(project);
        let found = follow(&file, &rules, &machine);
        let names = |paths: Vec<PathBuf>| paths.iter().map(|path| self.below(path)).collect();
        Followed {
            program: self.below(&file),
            rules: names(found.rules.into_iter().map(|rule| rule.path).collect()),
            search: names(found.search),
            interpreters: names(found.interpreters),
            refused: found
                .refused
                .into_iter()
                .map(|one| (self.below(&one.directory), one.why))
                .collect(),
        }
    }
}

#[derive(Debug)]
struct Followed {
    program: String,
    rules: Vec<String>,
    search: Vec<String>,
    interpreters: Vec<String>,
    refused: Vec<(String, &'static str)>,
}

#[test]
fn environment_leads_to_its_base_by_link_and_file() {
    for config in [
        "home = ROOT/home/py/bin\n",
        "version = 3\nhome=ROOT/home/py/bin",
    ] {
        let tree = Tree::of(&[
            ("home/py/bin/python3.12", "elf"),
            ("home/py/bin/python3", "-> python3.12"),
            ("project/.venv/bin/python", "-> ROOT/home/py/bin/python3"),
            ("project/.venv/pyvenv.cfg", config),
            (
                "project/.venv/bin/tool",
                "#!ROOT/project/.venv/bin/python\n",
            ),
            ("project/.venv/bin/relocatable", "#!/bin/sh\n"),
        ]);
        for program in ["python", "tool", "relocatable"] {
            let found = tree.follow(&format!("project/.venv/bin/{program}"), &[], None);
            assert_eq!(found.rules, ["home/py"], "{program}");
            assert_eq!(found.interpreters, [""; 0]);
        }
    }
}

#[test]
fn environment_outside_of_the_project_is_shown_whole() {
    let tree = Tree::of(&[
        ("home/venvs/a/bin/python", "-> /usr/bin/env"),
        ("home/venvs/a/pyvenv.cfg", "home = /usr/bin\n"),
    ]);
    let found = tree.follow("home/venvs/a/bin/python", &[], None);
    assert_eq!(found.rules[0], "home/venvs/a");
}

#[test]
fn linked_directory_of_uv_is_shown_by_both_names() {
    let tree = Tree::of(&[
        ("home/uv/cpython-3.12.5/bin/python3.12", "elf"),
        ("home/uv/cpython-3.12.5/lib/python3.12/os.py", ""),
        ("home/uv/cpython-3.12", "-> cpython-3.12.5"),
        (
            "project/.venv/bin/python",
            "-> ROOT/home/uv/cpython-3.12/bin/python3.12",
        ),
        (
            "project/.venv/pyvenv.cfg",
            "home = ROOT/home/uv/cpython-3.12/bin\n",
        ),
    ]);
    let found = tree.follow("project/.venv/bin/python", &[], None);
    assert_eq!(
        found.rules,
        ["home/uv/cpython-3.12", "home/uv/cpython-3.12.5"]
    );
}

#[test]
fn env_of_a_script_is_followed_in_path() {
    let tree = Tree::of(&[
        ("home/.nvm/versions/node/v20/bin/node", "elf"),
        ("project/agent.js", "#!/usr/bin/env node\n"),
        ("project/agent.mjs", "#!/usr/bin/env -S node --flag\n"),
    ]);
    for program in ["project/agent.js", "project/agent.mjs"] {
        let found = tree.follow(program, &["none", "home/.nvm/versions/node/v20/bin"], None);
        assert_eq!(
            found.rules[..1],
            ["home/.nvm/versions/node/v20"],
            "{found:?}"
        );
        assert_eq!(found.search[0], "home/.nvm/versions/node/v20/bin");
        assert_eq!(
            found.interpreters[0],
            "home/.nvm/versions/node/v20/bin/node"
        );
    }
}

#[test]
fn launchers_of_packages_lead_to_package_and_node() {
    let node = [
        ("home/node/bin/node", "elf"),
        (
            "home/node/lib/node_modules/corepack/dist/pnpm.js",
            "#!/usr/bin/env node\n",
        ),
        (
            "home/node/bin/pnpm",
            "-> ../lib/node_modules/corepack/dist/pnpm.js",
        ),
        ("mono/node_modules/tool/cli.js", "#!/usr/bin/env node\n"),
        ("mono/node_modules/.bin/tool", "-> ../tool/cli.js"),
        (
            "mono/node_modules/.bin/shell",
            "#!/bin/sh\nexec node \"$basedir/../tool/cli.js\"\n",
        ),
        (
            "mono/node_modules/.pnpm/a/node_modules/a/cli.js",
            "#!/usr/bin/env node\n",
        ),
        (
            "mono/node_modules/.bin/a",
            "-> ../.pnpm/a/node_modules/a/cli.js",
        ),
    ];
    let tree = Tree::of(&node);
    for program in ["tool", "shell", "a"] {
        let program = format!("mono/node_modules/.bin/{program}");
        let found = tree.follow(&program, &["home/node/bin"], None);
        assert_eq!(found.rules, ["mono/node_modules", "home/node"], "{program}");
        assert_eq!(found.interpreters, ["home/node/bin/node"], "{program}");
    }
    let found = tree.follow("pnpm", &["home/node/bin"], None);
    assert_eq!(found.rules, ["home/node"]);
}

#[test]
fn shim_leads_to_the_selected_version() {
    let versions = |more: &[(&'static str, &'static str)]| {
        let mut all = vec![
            ("home/.pyenv/shims/python3", "#!/usr/bin/env bash\n"),
            ("home/.pyenv/versions/3.9.18/bin/python3", "elf"),
            ("home/.pyenv/versions/3.11.7/bin/python3", "elf"),
            ("home/.pyenv/versions/3.11.10/bin/python3", "elf"),
            ("home/.pyenv/version", "3.9.18\n"),
            ("system/python3", "elf"),
        ];
        all.extend_from_slice(more);
        Tree::of(&all)
    };
    let search = ["home/.pyenv/shims", "system"];
    let version = |number: &str| format!("home/.pyenv/versions/{number}/bin/python3");
    for (file, variable, expected) in [
        ("", None, version("3.9.18")),
        ("# mine\n3.11\n", None, version("3.11.10")),
        ("3.11.7", None, version("3.11.7")),
        ("missing 3.11.7", None, version("3.11.7")),
        (
            "3.11.7",
            Some(("PYENV_VERSION", "3.9.18")),
            version("3.9.18"),
        ),
        ("system", None, "system/python3".to_owned()),
        (
            "../../../system",
            None,
            "home/.pyenv/shims/python3".to_owned(),
        ),
    ] {
        let local = ("project/.python-version", file);
        let tree = versions(if file.is_empty() {
            &[]
        } else {
            std::slice::from_ref(&local)
        });
        let found = tree.follow("python3", &search, variable);
        assert_eq!(found.program, expected, "{file}");
    }
}

#[test]
fn volta_leads_to_the_pinned_node() {
    for (manifest, version) in [
        ("{\"volta\": {\"node\": \"20.1.0\"}}", "20.1.0"),
        ("{\"name\": \"x\"}", "18.0.0"),
        ("broken", "18.0.0"),
    ] {
        let tree = Tree::of(&[
            ("home/.volta/bin/volta-shim", "elf"),
            ("home/.volta/bin/node", "-> volta-shim"),
            ("home/.volta/tools/image/node/20.1.0/bin/node", "elf"),
            ("home/.volta/tools/image/node/18.0.0/bin/node", "elf"),
            (
                "home/.volta/tools/user/platform.json",
                "{\"node\": {\"runtime\": \"18.0.0\"}}",
            ),
            ("project/package.json", manifest),
            ("project/agent", "#!/usr/bin/env node\n"),
        ]);
        let found = tree.follow("project/agent", &["home/.volta/bin"], None);
        assert_eq!(
            found.rules,
            [format!("home/.volta/tools/image/node/{version}")]
        );
    }
}

#[test]
fn linked_directory_of_fnm_is_shown() {
    let tree = Tree::of(&[
        ("home/fnm/node-versions/v20/installation/bin/node", "elf"),
        (
            "home/fnm/aliases/default",
            "-> ROOT/home/fnm/node-versions/v20/installation",
        ),
        ("project/agent", "#!/usr/bin/env node\n"),
    ]);
    let found = tree.follow("project/agent", &["home/fnm/aliases/default/bin"], None);
    assert_eq!(
        found.rules,
        [
            "home/fnm/aliases/default",
            "home/fnm/node-versions/v20/installation"
        ]
    );
    assert_eq!(found.search, ["home/fnm/aliases/default/bin"]);
}

#[test]
fn wide_and_private_roots_are_narrowed_or_refused() {
    let tree = Tree::of(&[
        ("home/bin/python3", "elf"),
        ("home/python", "elf"),
        ("home/.local/bin/python3", "elf"),
        ("home/.aws/bin/python3", "elf"),
        ("tools/bin/python3", "elf"),
        ("tools/.ssh/id", "key"),
    ]);
    let homes = HomeDirs::known(Some(&tree.at("home")));
    let found = |path: &str| match root(&tree.at(path), &homes) {
        Ok(root) => Ok(tree.below(&root)),
        Err(refused) => Err(refused.why),
    };
    assert_eq!(found("home/bin/python3"), Ok("home/bin".to_owned()));
    assert_eq!(
        found("home/.local/bin/python3"),
        Ok("home/.local/bin".to_owned())
    );
    assert_eq!(found("tools/bin/python3"), Ok("tools/bin".to_owned()));
    assert_eq!(found("home/python"), Err("a whole home, or holds one"));
    let private = "a place of keys or personal data, or holds one";
    assert_eq!(found("home/.aws/bin/python3"), Err(private));
    for path in ["/opt/python3", "/python3"] {
        let refused = root(Path::new(path), &homes).unwrap_err();
        assert_eq!(
            refused.why, "a directory of the system, or the root",
            "{path}"
        );
    }
}

#[test]
fn interpreter_in_a_home_is_refused_and_named() {
    let tree = Tree::of(&[
        ("home/python", "elf"),
        ("project/agent", "#!ROOT/home/python\n"),
    ]);
    let found = tree.follow("project/agent", &[], None);
    assert_eq!(
        found.refused,
        [("home".to_owned(), "a whole home, or holds one")]
    );
    assert_eq!(found.rules, [""; 0]);
}

#[test]
fn circle_of_scripts_ends() {
    let tree = Tree::of(&[
        ("project/a", "#!ROOT/project/b\n"),
        ("project/b", "#!ROOT/project/a\n"),
        ("project/c", "-> c"),
    ]);
    for program in ["project/a", "project/c"] {
        assert_eq!(tree.follow(program, &[], None).rules, [""; 0]);
    }
}
