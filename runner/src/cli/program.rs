//! Resolution of `--client` to an executable file.

use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::os::unix::fs::PermissionsExt;
use std::path::{self, Component, Path, PathBuf};
use std::{env, io};

use model::quote::shown_path;

use super::UsageError;
use crate::request::ClientProgram;

impl ClientProgram {
    /// Finds a program. A name with `/` is a path; any other name is looked up in `search_path`, as execvp(3) does.
    pub(super) fn find(program: &Path, search_path: Option<&OsStr>) -> Result<Self, UsageError> {
        if program.as_os_str().as_encoded_bytes().contains(&b'/') {
            return Self::at(program);
        }
        let directories = search_path.into_iter().flat_map(env::split_paths);
        let candidates = directories.map(|directory| directory.join(program));
        let found = candidates
            .into_iter()
            .find(|file| fs::metadata(file).is_ok_and(|found| is_executable(&found)));
        match found {
            Some(file) => Self::at(&file),
            None => Err(UsageError::ClientNotFound {
                program: shown_path(program),
                source: None,
            }),
        }
    }

    /// Finds a program that keeps its path inside the sandbox. Returns its absolute path as found, and the file behind
    /// its links.
    pub(super) fn locate(
        program: &Path,
        search_path: Option<&OsStr>,
    ) -> Result<(PathBuf, PathBuf), UsageError> {
        let Self::File(path) = Self::find(program, search_path)? else {
            return Err(UsageError::ClientNotFound {
                program: shown_path(program),
                source: None,
            });
        };
        let file = fs::canonicalize(&path).map_err(|source| UsageError::ClientNotFound {
            program: shown_path(program),
            source: Some(source),
        })?;
        Ok((path, file))
    }

    fn at(file: &Path) -> Result<Self, UsageError> {
        let absent = |source: io::Error| UsageError::ClientNotFound {
            program: shown_path(file),
            source: Some(source),
        };
        if !is_executable(&fs::metadata(file).map_err(absent)?) {
            return Err(UsageError::ClientNotExecutable {
                program: shown_path(file),
            });
        }
        normalize(file).map(Self::File).map_err(absent)
    }
}

/// The absolute path without `.` and `..`. A link at its end stays, because a program may behave by its own name.
fn normalize(file: &Path) -> io::Result<PathBuf> {
    let whole: PathBuf = path::absolute(file)?.components().collect();
    let has_parent_dir = whole.components().any(|part| part == Component::ParentDir);
    match (whole.parent(), whole.file_name()) {
        // `..` after a link leaves the link's target, so only the kernel can resolve such a path.
        (Some(directory), Some(name)) if has_parent_dir => {
            Ok(fs::canonicalize(directory)?.join(name))
        }
        _ => Ok(whole),
    }
}

/// True if any user may execute the file. The client's own rights are tested inside the sandbox.
fn is_executable(found: &Metadata) -> bool {
    found.is_file() && found.permissions().mode() & 0o111 != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory_with(name: &str, mode: u32) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join(name);
        fs::write(&file, "").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        directory
    }

    #[test]
    fn a_bare_name_is_found_in_the_search_path_past_what_cannot_be_executed() {
        let (text, program) = (
            directory_with("agent", 0o600),
            directory_with("agent", 0o700),
        );
        let search = env::join_paths([text.path(), program.path()]).unwrap();
        let found = ClientProgram::find(Path::new("agent"), Some(&search)).unwrap();
        assert_eq!(found, ClientProgram::File(program.path().join("agent")));
    }

    #[test]
    fn a_path_that_climbs_is_found_where_it_leads_and_a_link_keeps_its_name() {
        let directory = directory_with("agent", 0o700);
        let at = |name: &str| directory.path().canonicalize().unwrap().join(name);
        fs::create_dir_all(at("deep/inner")).unwrap();
        std::os::unix::fs::symlink(at("deep/inner"), at("link")).unwrap();
        std::os::unix::fs::symlink(at("agent"), at("deep/name")).unwrap();
        for (typed, found) in [
            ("./deep/../agent", "agent"),
            ("link/../name", "deep/name"),
            ("deep/./name", "deep/name"),
        ] {
            let program = ClientProgram::find(&at(typed), None).unwrap();
            assert_eq!(program, ClientProgram::File(at(found)), "{typed}");
        }
    }

    #[test]
    fn a_path_is_not_looked_up() {
        let program = directory_with("agent", 0o700);
        let error = ClientProgram::find(
            Path::new("./no-such-agent"),
            Some(program.path().as_os_str()),
        )
        .unwrap_err();
        let UsageError::ClientNotFound {
            source: Some(source),
            ..
        } = error
        else {
            panic!("{error}")
        };
        assert_eq!(source.raw_os_error(), Some(libc::ENOENT));
    }

    #[test]
    fn directories_and_plain_files_are_no_programs() {
        let text = directory_with("agent", 0o600);
        for path in [text.path().join("agent"), text.path().to_owned()] {
            let error = ClientProgram::find(&path, None).unwrap_err();
            assert!(
                matches!(error, UsageError::ClientNotExecutable { .. }),
                "{error}"
            );
        }
    }
}
