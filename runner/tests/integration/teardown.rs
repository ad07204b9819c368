//! Whatever ends a run, nothing of it is left: no process, no mount, no directory.

pub(crate) mod watch;

mod endings;
mod kills;
mod losses;
mod stops;
