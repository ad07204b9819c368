//! A directory to try things in, removed with its holder; that of a trial which came to no end, by the doctor, who
//! has given it its name.

use std::fs;
use std::path::{Path, PathBuf};

use nix::mount::MsFlags;
use nix::sched::CloneFlags;
use sandbox::{guard, identity, root};

use super::namespaces;
use crate::doctor::trial::{Doctor, Doing as _, Observation};

/// The directory.
pub(super) struct Directory(PathBuf);

impl Directory {
    fn make_in(parent: &Path, doctor: &Doctor) -> Result<Self, Observation> {
        let path = parent.join(doctor.directory());
        fs::create_dir(&path).doing(&format!("make a directory in {}", parent.display()))?;
        Ok(Self(path))
    }

    /// One where a run of tier `inherited` makes its own; the first refusal where it can make none.
    pub(super) fn make_where_a_run_does(doctor: &Doctor) -> Result<Self, Observation> {
        let mut refusal = None;
        for parent in guard::candidates() {
            match Self::make_in(&parent, doctor) {
                Ok(directory) => return Ok(directory),
                Err(observation) => refusal = refusal.or(Some(observation)),
            }
        }
        Err(refusal.unwrap_or_else(|| Observation::Untried("there is no place for it".to_owned())))
    }

    /// The same; where there is none, on a tmpfs in namespaces, as those of tier `namespace` are.
    pub(super) fn make(doctor: &Doctor) -> Result<Self, Observation> {
        Self::make_where_a_run_does(doctor)
            .or_else(|_| on_tmpfs(doctor))
            .map_err(|_| {
                Observation::Untried("there is no writable directory to try it in".to_owned())
            })
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

/// Removes the directory of this name wherever a trial may have left it.
pub(in crate::doctor) fn remove_left(name: &str) {
    for parent in guard::candidates() {
        // Mostly it is not there: its holder has removed it, or never made one.
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
