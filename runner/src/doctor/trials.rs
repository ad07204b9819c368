//! Attempts of the probes. Each function makes one attempt with the functions that a run uses, in a process of its
//! own, and returns the observation. The functions do not know the isolation that needs the feature, or the meaning of
//! a failure.

use nix::errno::Errno;

use super::trial::{Doing, Observation, Outcome};

pub(super) mod directory;
pub(super) mod landlock;
pub(super) mod mounts;
pub(super) mod namespaces;
pub(super) mod process;
pub(super) mod seccomp;

/// Succeeds if the kernel refused with exactly the expected errno.
fn must_refuse<T>(
    operation: &str,
    expected: Errno,
    found: Result<T, Errno>,
) -> Result<(), Observation> {
    match found {
        Err(errno) if errno == expected => Ok(()),
        Err(errno) => Err(Observation::Wrong(format!(
            "{operation} failed with {errno:?} and not with {expected:?}"
        ))),
        Ok(_) => Err(Observation::Wrong(format!("{operation} was not refused"))),
    }
}

/// Positive twin of a denial: the same attempt before the restriction must work.
fn must_work<T>(operation: &str, found: Result<T, Errno>) -> Result<T, Observation> {
    found.map_err(|errno| {
        Observation::Untried(format!(
            "{operation} fails with {errno:?} without a restriction too"
        ))
    })
}

/// The trial itself: the process was started and can report.
pub(super) fn own_file(_: &super::trial::Doctor) -> Outcome {
    std::fs::File::open(sys::process::OWN_FILE).doing("open our own file")?;
    Ok("started again from /proc/self/exe".to_owned())
}
