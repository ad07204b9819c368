//! The AppArmor profile with which this program may make user namespaces on Ubuntu.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::{fs, io};

use sys::process::OWN_FILE;

/// As it stands in the repository, for a runner in its usual place.
const PROFILE: &[u8] = include_bytes!("../../../policies/apparmor/runner");
const USUAL_PLACE: &[u8] = b"\"/usr/local/bin/runner\"";

/// The profile for this executable.
///
/// # Errors
/// Its own path cannot be had, or cannot stand in a profile.
pub(super) fn profile() -> io::Result<Vec<u8>> {
    for_path(&fs::read_link(OWN_FILE)?)
}

fn for_path(path: &Path) -> io::Result<Vec<u8>> {
    let quoted = quoted(path.as_os_str().as_bytes())?;
    let mut profile = Vec::new();
    let mut rest = PROFILE;
    while let Some(first) = rest.first() {
        match rest.strip_prefix(USUAL_PLACE) {
            Some(after) => {
                profile.extend_from_slice(&quoted);
                rest = after;
            }
            None => {
                profile.push(*first);
                rest = rest.get(1..).unwrap_or_default();
            }
        }
    }
    Ok(profile)
}

/// apparmor.d(5): in quotes, with a backslash before whatever means something in a path there.
fn quoted(path: &[u8]) -> io::Result<Vec<u8>> {
    if path.iter().any(u8::is_ascii_control) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "the path of this program holds a control character, which no profile can",
        ));
    }
    let mut quoted = vec![b'"'];
    for byte in path {
        if b"\"\\*?[]{}^@,".contains(byte) {
            quoted.push(b'\\');
        }
        quoted.push(*byte);
    }
    quoted.push(b'"');
    Ok(quoted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(path: &str) -> String {
        let profile = String::from_utf8(for_path(Path::new(path)).unwrap()).unwrap();
        let lines: Vec<_> = profile
            .lines()
            .filter(|line| line.starts_with("profile "))
            .collect();
        assert_eq!(lines.len(), 1, "{profile}");
        assert!(profile.contains("\n  userns,\n"));
        lines[0].to_owned()
    }

    #[test]
    fn the_profile_names_this_executable() {
        assert_eq!(
            line("/opt/a b/runner"),
            "profile runner \"/opt/a b/runner\" flags=(unconfined) {"
        );
    }

    #[test]
    fn what_would_be_a_pattern_stands_for_itself() {
        assert_eq!(
            line("/opt/{a,b}*/\"runner\"[1]"),
            r#"profile runner "/opt/\{a\,b\}\*/\"runner\"\[1\]" flags=(unconfined) {"#
        );
    }

    #[test]
    fn a_path_that_would_break_the_line_is_refused() {
        assert!(for_path(Path::new("/opt/a\n}/runner")).is_err());
    }
}
