//! (being written)
pub mod case;
pub mod evidence;
pub mod policy;
pub mod profile;
pub mod verdict;
