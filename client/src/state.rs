//! The state file and its backup under the home directory.
//!
//! ```text
//! HOME/.agent/                                     0700
//! HOME/.agent/.agent.json                          0600
//! HOME/.agent/backups/                             0700
//! HOME/.agent/backups/.agent.json.backup.EPOCH_MS  0600
//! ```
//!
//! The first run in a home creates both files. A home with a state file is not changed, so there is one backup for any
//! number of runs. The state file is written last: if it exists, the backup exists too.
//!
//! Each file is created under a temporary name in its own directory, with mode 0600, and then renamed, so no reader
//! sees a partial file. The files are not synced to disk: the next run recreates a state that a power failure lost. The
//! client never writes a transcript.
//!
//! Knows no prompt, answer or HTTP.

use std::{
    fs::{self, DirBuilder, Permissions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use serde::Serialize;
use tempfile::NamedTempFile;

use crate::cli::CLI_VERSION;

const APP_DIR: &str = ".agent";
const STATE_FILE: &str = ".agent.json";
const BACKUP_DIR: &str = "backups";

/// Reason why the state could not be written; the path is relative to the home.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StateError {
    #[error("cannot look for {path}")]
    Lookup {
        path: &'static str,
        source: io::Error,
    },
    #[error("cannot make the directory {path}")]
    MakeDirectory {
        path: &'static str,
        source: io::Error,
    },
    #[error("cannot write {path}")]
    Write { path: PathBuf, source: io::Error },
}

/// Content of the state file; it reveals no facts about the host, the user or the turn.
#[derive(Serialize)]
struct State {
    #[serde(rename = "firstStartTime")]
    first_start_ms: u64,
    #[serde(rename = "clientVersion")]
    version: &'static str,
}

/// Creates the state file and its backup, unless the home has a state file.
pub(crate) fn prepare(home: &Path) -> Result<(), StateError> {
    let app = home.join(APP_DIR);
    let found = fs::symlink_metadata(app.join(STATE_FILE));
    match found {
        Ok(_) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(source) => {
            return Err(StateError::Lookup {
                path: ".agent/.agent.json",
                source,
            });
        }
    }
    let now = epoch_ms();
    let state = State {
        first_start_ms: now,
        version: CLI_VERSION,
    };
    let json = serde_json::to_vec(&state).unwrap_or_default();
    let backups = app.join(BACKUP_DIR);
    make_private_directory(&app, ".agent")?;
    make_private_directory(&backups, ".agent/backups")?;
    write_private(home, &backups, &format!("{STATE_FILE}.backup.{now}"), &json)?;
    write_private(home, &app, STATE_FILE, &json)
}

fn epoch_ms() -> u64 {
    // A clock before 1970 gives 0; the suffix need not be correct.
    let elapsed = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)
}

/// Creates a directory with mode 0700. An existing directory keeps its mode.
fn make_private_directory(path: &Path, shown: &'static str) -> Result<(), StateError> {
    let created = DirBuilder::new().mode(0o700).create(path);
    match created {
        // mkdir(2) clears the bits of the umask, which may include the owner's.
        Ok(()) => fs::set_permissions(path, Permissions::from_mode(0o700)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(error) => Err(error),
    }
    .map_err(|source| StateError::MakeDirectory {
        path: shown,
        source,
    })
}

fn write_private(
    home: &Path,
    directory: &Path,
    name: &str,
    bytes: &[u8],
) -> Result<(), StateError> {
    let path = directory.join(name);
    let written = || -> io::Result<()> {
        let mut file = create_private(directory)?;
        // open(2) cleared the bits of the umask: the mode was never wider, but may be too narrow.
        file.as_file()
            .set_permissions(Permissions::from_mode(0o600))?;
        file.write_all(bytes)?;
        file.persist(&path).map(drop).map_err(|error| error.error)
    };
    written().map_err(|source| StateError::Write {
        path: path.strip_prefix(home).unwrap_or(&path).to_owned(),
        source,
    })
}

/// Creates a file under a temporary name, which is removed unless it is persisted. Its mode excludes other users from
/// the start.
fn create_private(directory: &Path) -> io::Result<NamedTempFile> {
    tempfile::Builder::new()
        .prefix(".agent.json.tmp.")
        .permissions(Permissions::from_mode(0o600))
        .tempfile_in(directory)
}

#[cfg(test)]
mod tests {
    use std::{error::Error, os::unix::fs::symlink};

    use serde_json::Value;

    use super::*;

    /// Lists each path under `home` with its mode.
    fn tree(home: &Path) -> Vec<(String, u32)> {
        let mut found = Vec::new();
        let mut waiting = vec![home.to_owned()];
        while let Some(directory) = waiting.pop() {
            for entry in fs::read_dir(directory).unwrap() {
                let entry = entry.unwrap();
                let path = entry
                    .path()
                    .strip_prefix(home)
                    .unwrap()
                    .to_string_lossy()
                    .into_owned();
                found.push((
                    path,
                    entry.metadata().unwrap().permissions().mode() & 0o7777,
                ));
                if entry.file_type().unwrap().is_dir() {
                    waiting.push(entry.path());
                }
            }
        }
        found.sort();
        found
    }

    #[test]
    fn the_first_run_makes_two_private_files_in_two_private_directories() {
        let home = tempfile::tempdir().unwrap();
        prepare(home.path()).unwrap();
        let tree = tree(home.path());
        let modes: Vec<u32> = tree.iter().map(|(_, mode)| *mode).collect();
        assert_eq!(modes, [0o700, 0o600, 0o700, 0o600]);
        assert_eq!(tree[1].0, ".agent/.agent.json");
        let suffix = tree[3]
            .0
            .strip_prefix(".agent/backups/.agent.json.backup.")
            .unwrap();
        assert!(
            suffix.len() == 13 && suffix.bytes().all(|byte| byte.is_ascii_digit()),
            "{suffix}"
        );
    }

    #[test]
    fn a_file_is_private_from_its_creation_on() {
        let home = tempfile::tempdir().unwrap();
        let file = create_private(home.path()).unwrap();
        let mode = file.as_file().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o7077, 0, "{mode:o}");
    }

    #[test]
    fn the_state_is_a_json_object() {
        let home = tempfile::tempdir().unwrap();
        prepare(home.path()).unwrap();
        let bytes = fs::read(home.path().join(".agent/.agent.json")).unwrap();
        assert!(serde_json::from_slice::<Value>(&bytes).unwrap().is_object());
    }

    #[test]
    fn a_second_run_in_the_same_home_changes_nothing() {
        let home = tempfile::tempdir().unwrap();
        prepare(home.path()).unwrap();
        let state = home.path().join(".agent/.agent.json");
        let (before, content) = (tree(home.path()), fs::read(&state).unwrap());
        prepare(home.path()).unwrap();
        assert_eq!(tree(home.path()), before);
        assert_eq!(fs::read(&state).unwrap(), content);
    }

    #[test]
    fn an_existing_directory_is_used_as_it_is() {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join(".agent")).unwrap();
        prepare(home.path()).unwrap();
        assert_eq!(tree(home.path()).len(), 4);
    }

    #[test]
    fn a_home_that_is_not_there_is_an_error_with_its_cause() {
        let home = tempfile::tempdir().unwrap();
        let error = prepare(&home.path().join("missing")).unwrap_err();
        assert_eq!(error.to_string(), "cannot make the directory .agent");
        assert!(error.source().unwrap().to_string().contains("os error 2"));
    }

    #[test]
    fn a_file_in_the_place_of_a_directory_is_an_error() {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join(".agent"), "").unwrap();
        assert!(matches!(
            prepare(home.path()),
            Err(StateError::Lookup { .. })
        ));
    }

    #[test]
    fn a_link_to_nowhere_counts_as_a_state_file_and_is_not_followed() {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join(".agent")).unwrap();
        symlink("/nowhere", home.path().join(".agent/.agent.json")).unwrap();
        prepare(home.path()).unwrap();
        assert_eq!(tree(home.path()).len(), 2);
    }
}
