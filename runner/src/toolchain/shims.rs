//! Shims of version managers: small programs in PATH that start the program of a selected version.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Machine, in_path, is_executable};
use crate::shebang::small_text;

/// Version managers with a directory of shims beside a directory of versions, each with its language.
const MANAGERS: [(&str, &str); 3] = [("pyenv", "python"), ("rbenv", "ruby"), ("nodenv", "node")];
/// Selects the program of the system.
const SYSTEM: &str = "system";

/// Returns the program that a shim starts; `None` for any other file.
pub(super) fn behind(file: &Path, machine: &Machine<'_>) -> Option<PathBuf> {
    let name = file.file_name()?;
    let directory = file.parent()?;
    if directory.ends_with("shims") {
        return of_manager(directory, name, machine);
    }
    let real = fs::canonicalize(file).ok()?;
    let is_volta = real.file_name() == Some(OsStr::new("volta-shim"));
    is_volta.then(|| of_volta(directory.parent()?, name, machine))?
}

fn of_manager(shims: &Path, name: &OsStr, machine: &Machine<'_>) -> Option<PathBuf> {
    let root = shims.parent()?;
    let tool = root.file_name()?.to_str()?.trim_start_matches('.');
    let (_, language) = MANAGERS.into_iter().find(|(known, _)| *known == tool)?;
    let variable = format!("{}_VERSION", tool.to_uppercase());
    let local = format!(".{language}-version");
    let files = machine
        .directory
        .ancestors()
        .map(|above| above.join(&local));
    let files = files.chain([root.join("version")]);
    let selected = (machine.variable)(&variable)
        .and_then(|value| value.into_string().ok())
        .or_else(|| files.filter_map(|file| small_text(&file).ok()).next())
        .unwrap_or_else(|| SYSTEM.to_owned());
    let lines = selected
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'));
    let mut versions = lines.flat_map(|line| line.split([':', ' ', '\t']));
    versions.find_map(|version| match version.trim() {
        "" => None,
        SYSTEM => in_path_beside(shims, name, machine),
        version => of_version(&root.join("versions"), version, name),
    })
}

/// Finds the program of a version, or of the latest one that begins with `version`, as in `3.12`.
fn of_version(versions: &Path, version: &str, name: &OsStr) -> Option<PathBuf> {
    let at = |version: &OsStr| versions.join(version).join("bin").join(name);
    let is_plain = |version: &str| !version.contains('/') && version != "..";
    let exact =
        Some(at(OsStr::new(version))).filter(|file| is_plain(version) && is_executable(file));
    exact.or_else(|| {
        let entries = fs::read_dir(versions).ok()?;
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let start = format!("{version}.");
        let fitting = names.filter(|name| name.starts_with(&start));
        let latest = fitting.max_by_key(|name| numbers(name))?;
        Some(at(OsStr::new(&latest))).filter(|file| is_executable(file))
    })
}

/// Numbers of a version, for comparison.
fn numbers(version: &str) -> Vec<u64> {
    let parts = version.split('.');
    parts.map(|part| part.parse().unwrap_or(0)).collect()
}

/// Finds a program of the system: in PATH without the shims.
fn in_path_beside(shims: &Path, name: &OsStr, machine: &Machine<'_>) -> Option<PathBuf> {
    let directories = machine
        .search_path
        .into_iter()
        .flat_map(std::env::split_paths);
    let others = directories.filter(|directory| directory != shims);
    let others = std::env::join_paths(others).ok()?;
    in_path(name, Some(&others))
}

/// Finds the program of Node that Volta starts: that of the project, or the default one.
fn of_volta(root: &Path, name: &OsStr, machine: &Machine<'_>) -> Option<PathBuf> {
    if !["node", "npm", "npx"]
        .into_iter()
        .any(|known| name == known)
    {
        return None;
    }
    let json =
        |file: PathBuf| -> Option<Value> { serde_json::from_str(&small_text(&file).ok()?).ok() };
    let mut manifests = machine.directory.ancestors();
    let of_project = manifests.find_map(|above| {
        let manifest = json(above.join("package.json"))?;
        Some(manifest["volta"]["node"].as_str()?.to_owned())
    });
    let platform = || json(root.join("tools/user/platform.json"));
    let version =
        of_project.or_else(|| Some(platform()?["node"]["runtime"].as_str()?.to_owned()))?;
    of_version(&root.join("tools/image/node"), &version, name)
}
