//! Version, commit and build id of this executable.

use std::ffi::OsString;

use model::digest;
use model::report::{Runner, UNKNOWN};
use sys::build_id;

/// Returns the identity of this executable, for reports. No file is read.
pub(crate) fn of_this_executable() -> Runner {
    Runner {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: env!("RUNNER_COMMIT").to_owned(),
        build_id: build_id::of_this_executable()
            .map_or_else(|| UNKNOWN.to_owned(), |id| digest::hex(&id)),
    }
}

/// True for the arguments `--version --verbose`, short or long, in either order. clap would print one line at the first
/// of them.
pub(crate) fn is_asked_in_full(arguments: &[OsString]) -> bool {
    let (mut is_version, mut is_verbose) = (false, false);
    for argument in arguments {
        match argument.to_str() {
            Some("--version" | "-V") => is_version = true,
            Some("--verbose" | "-v") => is_verbose = true,
            Some("-Vv" | "-vV") => (is_version, is_verbose) = (true, true),
            Some(_) | None => return false,
        }
    }
    is_version && is_verbose
}

/// Returns the answer to `--version --verbose`.
pub(crate) fn in_full() -> String {
    let Runner {
        version,
        commit,
        build_id,
    } = of_this_executable();
    let features = if cfg!(feature = "weaken") {
        "weaken"
    } else {
        "none"
    };
    let target = env!("RUNNER_TARGET");
    format!(
        "runner {version}\ncommit: {commit}\nbuild id: {build_id}\ntarget: {target}\nfeatures: {features}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_flags_and_no_other_ask_in_full() {
        let asked = |line: &str| {
            let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
            is_asked_in_full(&words)
        };
        for line in [
            "--version --verbose",
            "-V -v",
            "-v -V",
            "-Vv",
            "-vV",
            "--verbose -V",
        ] {
            assert!(asked(line), "{line}");
        }
        for line in [
            "",
            "-V",
            "--version",
            "-v",
            "-V -v case-b",
            "case-b -V -v",
            "-Vvx",
        ] {
            assert!(!asked(line), "{line}");
        }
    }
}
