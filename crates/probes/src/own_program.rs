//! The executable of the hostile client, for probes that start it again.

use std::path::{Path, PathBuf};

use sys::process::{OWN_FILE, executed_path};

/// Hidden first argument that makes the runner's executable the hostile client.
pub const HOSTILE_ARGUMENT: &str = "__hostile";

/// Option that aborts.
pub(crate) const CRASH: &str = "--crash";
/// Option that exits with success.
pub(crate) const NOTHING_TO_DO: &str = "--nothing";

/// File of this program: /proc/self/exe, or the path by which the program was executed. If a container covers parts of
/// /proc, the sandbox has no /proc (see `sandbox::root`).
pub(crate) fn own_file() -> PathBuf {
    let own = Path::new(OWN_FILE);
    executed_path()
        .filter(|_| own.symlink_metadata().is_err())
        .unwrap_or_else(|| own.to_owned())
}
