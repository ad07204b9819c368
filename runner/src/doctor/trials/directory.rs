//! Directories for trials, removed on drop. The doctor chooses the name, so it can remove the directory of a killed
//! trial.

use std::fs;
use std::path::{Path, PathBuf};

use nix::mount::MsFlags;
use nix::sched::CloneFlags;
use sandbox::{guard, identity, root};

use super::namespaces;
use crate::doctor::trial::{Doctor, Doing as _, Observation};

/// A directory of a trial.
pub(super) struct Directory(PathBuf);

impl Directory {
    fn make_in(parent: &Path, doctor: &Doctor) -> Result<Self, Observation> {
        let path = parent.join(doctor.directory());
        fs::create_dir(&path).doing(&format!("make a directory in {}", parent.display()))?;
        Ok(Self(path))
    }

    /// Makes a directory where a run with isolation `inherited` makes its own. Returns the first refusal if no parent
    /// works.
    pub(super) fn make_where_a_run_does(doctor: &Doctor) -> Result<Self, Observation> {
        let mut refusal = None;
        for parent in guard::candidates() {
            match Self::make_in(&parent, doctor) {
                Ok(directory) => return Ok(directory),
                Err(observation) => refusal = refusal.or(Some(observation)),
            }
        }
        Err(refusal.unwrap_or_else(|| {
            Observation::Untried("there is no directory to make it in".to_owned())
        }))
    }

    /// Makes a directory on disk or, failing that, on a tmpfs in new namespaces, as isolation `namespace` does.
    pub(super) fn make(doctor: &Doctor) -> Result<Self, Observation> {
        Self::make_where_a_run_does(doctor)
            .or_else(|_| on_tmpfs(doctor))
            .map_err(|_| {
                Observation::Untried("there is no writable directory for the test".to_owned())
            })
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // If the removal fails, the rest stays in a temporary directory.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Removes the directory of this name from each parent in which a trial may have left it.
pub(in crate::doctor) fn remove_left(name: &str) {
    for parent in guard::candidates() {
        // Usually absent: the trial has removed it, or never made one.
        let _ = fs::remove_dir_all(parent.join(name));
    }
}

fn on_tmpfs(doctor: &Doctor) -> Result<Directory, Observation> {
    let identity = namespaces::enter(doctor, CloneFlags::CLONE_NEWNS)?;
    root::make_private()?;
    identity::become_inside_user(identity)?;
    let base = root::staging()?;
    root::tmpfs(base, "mode=0755,size=1m,nr_inodes=64", MsFlags::empty())?;
    Directory::make_in(base, doctor)
}
