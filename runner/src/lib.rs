//! (being written)
pub mod case;
pub mod check;
pub mod evidence;
pub mod profile;
pub mod report;
pub mod verdict;
