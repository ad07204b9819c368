//! (being written)
pub mod case;
pub mod evidence;
pub mod profile;
mod sandbox;
mod sys;
pub mod verdict;
