//! Refuses to build an executable that is not static, and gives it the identity of its build: commit, target and
//! build id.
//!
//! The executable starts itself and the reference client in a root without libraries. `.cargo/config.toml` has the flag
//! for that. A `RUSTFLAGS` in the environment silently replaces the flags of that file: the executable would build, and
//! then fail in every run.

use std::path::{Path, PathBuf};
use std::{env, fs};

/// Variable with the commit, for builds without a repository.
const COMMIT: &str = "RUNNER_COMMIT";
/// Longest commit of that variable, in characters: a SHA-256 in hex.
const MAX_COMMIT: usize = 64;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=CARGO_ENCODED_RUSTFLAGS");
    println!("cargo::rerun-if-env-changed={COMMIT}");
    let cfg = |name: &str| env::var(format!("CARGO_CFG_{name}")).unwrap_or_default();
    let glibc = cfg("TARGET_OS") == "linux" && cfg("TARGET_ENV") == "gnu";
    let linked_statically = cfg("TARGET_FEATURE")
        .split(',')
        .any(|feature| feature == "crt-static");
    if glibc && !linked_statically {
        println!(
            "cargo::error=the executable would not be static: the flags of .cargo/config.toml are not in force"
        );
        println!("cargo::error={}", remedy());
    }
    // Some distributions of gcc and clang pass this by default. SHA-1 has the same length with each linker.
    println!("cargo::rustc-link-arg-bins=-Wl,--build-id=sha1");
    println!(
        "cargo::rustc-env=RUNNER_TARGET={}",
        env::var("TARGET").unwrap_or_default()
    );
    println!(
        "cargo::rustc-env={COMMIT}={}",
        commit().as_deref().unwrap_or("unknown")
    );
}

/// Commit of the sources: from the variable, else from the repository whose root is that of the workspace. Needs no
/// git program. Changes that are not committed are not looked for, because each edit would start this script again.
fn commit() -> Option<String> {
    if let Some(given) = env::var(COMMIT).ok().filter(|given| !given.is_empty()) {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._+-".contains(&byte);
        if given.len() <= MAX_COMMIT && given.bytes().all(is_plain) {
            return Some(given);
        }
        println!(
            "cargo::error=cannot use {COMMIT}: expected up to {MAX_COMMIT} letters, digits and `._+-`"
        );
        return None;
    }
    let root = Path::new(&env::var_os("CARGO_MANIFEST_DIR")?).join("..");
    let git = directory_of(&root.join(".git"))?;
    let head = watched(&git.join("HEAD"))?;
    // Each commit adds a line; a packed branch has no file of its own that could change.
    watched(&git.join("logs/HEAD"));
    let Some(branch) = head.strip_prefix("ref: ") else {
        return digits(&head);
    };
    // A worktree shares its branches with the main one (gitrepository-layout(5)).
    let common = fs::read_to_string(git.join("commondir"));
    let common = common.map_or_else(|_| git.clone(), |path| git.join(path.trim()));
    watched(&common.join(branch))
        .and_then(|commit| digits(&commit))
        .or_else(|| {
            let packed = watched(&common.join("packed-refs"))?;
            let mut lines = packed.lines().filter_map(|line| line.split_once(' '));
            lines
                .find(|(_, name)| *name == branch)
                .and_then(|(commit, _)| digits(commit))
        })
}

/// Directory of the repository: `.git`, or the path in that file (gitrepository-layout(5)).
fn directory_of(git: &Path) -> Option<PathBuf> {
    if git.is_dir() {
        return Some(git.to_owned());
    }
    let file = fs::read_to_string(git).ok()?;
    let path = file.strip_prefix("gitdir: ")?.trim_end();
    Some(git.parent()?.join(path))
}

/// Text of a file of the repository. The script runs again when it changes. cargo would always run the script again
/// for an absent file.
fn watched(file: &Path) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    println!("cargo::rerun-if-changed={}", file.display());
    Some(text.trim_end().to_owned())
}

/// A commit: SHA-1 or SHA-256 in hex.
fn digits(commit: &str) -> Option<String> {
    let is_commit =
        matches!(commit.len(), 40 | 64) && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_commit.then(|| commit.to_owned())
}

/// Remedy, for the most likely cause.
fn remedy() -> &'static str {
    if env::var_os("CARGO_ENCODED_RUSTFLAGS").is_some_and(|flags| !flags.is_empty()) {
        "RUSTFLAGS, or a setting like it, replaces them: run `unset RUSTFLAGS`, or add \
         `-C target-feature=+crt-static` to it"
    } else {
        "build inside the source tree, where cargo finds that file, and without --target or CARGO_BUILD_TARGET \
         for another kind of machine"
    }
}
