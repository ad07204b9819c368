//! The runner as its users run it: the real executable on the real kernel.

mod basics;
mod escapes;
mod kit;
mod teardown;
