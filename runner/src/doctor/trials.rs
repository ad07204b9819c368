//! What is tried. Each function makes one attempt with the functions that a run uses, in a process that does nothing
//! else, and says what it saw. None knows which tier needs it, or what a failure means.

use nix::errno::Errno;

use super::trial::{Doing, Observation, Outcome};

pub(super) mod directory;
pub(super) mod landlock;
pub(super) mod mounts;
pub(super) mod namespaces;
pub(super) mod process;
pub(super) mod seccomp;

/// A denial: the errno with which the kernel must refuse, and nothing else.
fn must_refuse<T>(what: &str, expected: Errno, found: Result<T, Errno>) -> Result<(), Observation> {
    match found {
        Err(errno) if errno == expected => Ok(()),
        Err(errno) => Err(Observation::Wrong(format!(
            "{what} failed with {errno:?} and not with {expected:?}"
        ))),
        Ok(_) => Err(Observation::Wrong(format!("{what} was not refused"))),
    }
}

/// Its positive twin, from before the restriction.
fn must_work<T>(what: &str, found: Result<T, Errno>) -> Result<T, Observation> {
    found.map_err(|errno| {
        Observation::Untried(format!(
            "{what} fails with {errno:?} without a restriction as well"
        ))
    })
}

/// The trial itself: this process was started, and says so.
pub(super) fn own_file(_: &super::trial::Doctor) -> Outcome {
    std::fs::File::open(sys::process::OWN_FILE).doing("open our own file")?;
    Ok("started again from /proc/self/exe".to_owned())
}
