//! Reads from the workspace's `Cargo.lock` which version of the HTTP library is linked.
//!
//! The preflight names that library in its user agent, and reqwest does not export its version.
//! The lock file is what cargo itself resolved, so the name cannot lag behind an update.

use std::{env, error::Error, fs, path::Path};

fn main() -> Result<(), Box<dyn Error>> {
    let manifest = env::var("CARGO_MANIFEST_DIR")?;
    let lock = Path::new(&manifest).join("../Cargo.lock");
    println!("cargo::rerun-if-changed={}", lock.display());
    let version = locked_version(&fs::read_to_string(&lock)?, "reqwest")
        .ok_or("Cargo.lock does not name exactly one version of reqwest")?;
    println!("cargo::rustc-env=REQWEST_VERSION={version}");
    Ok(())
}

/// The version of `package`, if the lock file has it exactly once.
fn locked_version(lock: &str, package: &str) -> Option<String> {
    let name = format!("name = \"{package}\"");
    let mut versions = lock
        .split("[[package]]")
        .filter(|entry| entry.lines().any(|line| line == name))
        .filter_map(|entry| {
            entry
                .lines()
                .find_map(|line| line.strip_prefix("version = "))
        });
    let version = versions.next()?.trim_matches('"').to_owned();
    versions.next().is_none().then_some(version)
}
