//! (being written)
pub mod case;
pub mod evidence;
pub mod profile;
pub mod verdict;
