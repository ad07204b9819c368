//! Judges a run: its evidence against a case, and its facts against a lock file or another run.
//!
//! All code is pure: no file, no process, no clock. [`check`] makes one finding for each id of [`model::finding::ids`];
//! [`facts`] reduces the JSON form of a report to comparable facts; [`lock`] reads and writes the text of the lock
//! file.

pub mod accept;
pub mod check;
pub mod facts;
#[cfg(any(test, feature = "fixture"))]
pub mod fixture;
pub mod gate;
pub mod lock;
pub mod observed;
