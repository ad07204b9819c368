//! (being written)
pub mod case;
pub mod cli;
pub mod evidence;
pub mod policy;
pub mod policy_command;
pub mod profile;
mod sandbox;
mod sys;
pub mod verdict;
