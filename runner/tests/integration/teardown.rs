//! Every kind of end of a run leaves no process, no mount and no directory.

pub(crate) mod watch;

mod endings;
mod kills;
mod losses;
mod stops;
