//! A directory to try things in, removed with its holder.

use std::fs;
use std::path::{Path, PathBuf};

use nix::mount::MsFlags;
use nix::sched::CloneFlags;

use super::namespaces;
use crate::doctor::trial::{Doctor, Doing as _, Observation};
use crate::random;
use crate::sandbox::{identity, root};

/// Places for it beside the temporary directory, in which alone a run makes one.
const OTHERS: [&str; 3] = ["/dev/shm", "/var/tmp", "/run"];

/// The directory.
pub(super) struct Directory(PathBuf);

impl Directory {
    /// One in `parent`.
    pub(super) fn make_in(parent: &Path) -> Result<Self, Observation> {
        let path = parent.join(format!("runner-doctor-{}", random::token()));
        fs::create_dir(&path).doing(&format!("make a directory in {}", parent.display()))?;
        Ok(Self(path))
    }

    /// One wherever the user may write; where that is nowhere, on a tmpfs in namespaces, as a run's own are.
    pub(super) fn make(doctor: &Doctor) -> Result<Self, Observation> {
        let others = OTHERS.iter().map(PathBuf::from);
        let mut parents = [std::env::temp_dir()].into_iter().chain(others);
        match parents.find_map(|parent| Self::make_in(&parent).ok()) {
            Some(directory) => Ok(directory),
            None => on_tmpfs(doctor).map_err(|_| {
                Observation::Untried("there is no writable directory to try it in".to_owned())
            }),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // What cannot be removed lies in a temporary directory.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn on_tmpfs(doctor: &Doctor) -> Result<Directory, Observation> {
    let identity = namespaces::enter(doctor, CloneFlags::CLONE_NEWNS)?;
    root::make_private()?;
    identity::become_inside_user(identity)?;
    let base = root::staging()?;
    root::tmpfs(base, "mode=0755,size=1m,nr_inodes=64", MsFlags::empty())?;
    Directory::make_in(base)
}
