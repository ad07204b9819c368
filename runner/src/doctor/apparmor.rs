//! AppArmor profile that allows this program to make user namespaces on Ubuntu.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::{fs, io};

use sys::process::OWN_FILE;

/// Profile in the repository, for a runner at its usual path.
const PROFILE: &[u8] = include_bytes!("../../../policies/apparmor/runner");
const USUAL_PATH: &[u8] = b"\"/usr/local/bin/runner\"";

/// The profile for this executable.
///
/// # Errors
/// The executable's path cannot be read, or is not valid in a profile.
pub(super) fn profile() -> io::Result<Vec<u8>> {
    for_path(&fs::read_link(OWN_FILE)?)
}

fn for_path(path: &Path) -> io::Result<Vec<u8>> {
    let quoted = quoted(path.as_os_str().as_bytes())?;
    let mut profile = Vec::new();
    let mut rest = PROFILE;
    while let Some(first) = rest.first() {
        match rest.strip_prefix(USUAL_PATH) {
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

/// Quotes a path as in apparmor.d(5), with a backslash before each special character.
fn quoted(path: &[u8]) -> io::Result<Vec<u8>> {
    if path.iter().any(u8::is_ascii_control) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "the path of this program holds a control character, which is not valid in a profile",
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
