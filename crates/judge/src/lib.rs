//! Judges a run: its evidence against a case, its behaviour against a lock file or another run.
//!
//! Everything here is pure: no file, no process, no clock. [`check`] makes one finding for each stable id;
//! [`behaviour`] reduces a report to comparable facts; [`lock`] reads and writes the lock file's text.

pub mod check;
pub mod facts;
#[cfg(any(test, feature = "fixture"))]
pub mod fixture;
pub mod lock;
