//! (being written)
mod assemble;
pub mod case;
pub mod check;
pub mod cli;
mod clock;
mod collect;
mod describe;
mod digest;
pub mod evidence;
mod output;
pub mod policy;
pub mod policy_command;
mod prepare;
pub mod profile;
mod program;
pub mod report;
mod run;
mod sandbox;
mod sys;
pub mod verdict;

pub use program::main;
