//! The sandbox: three processes, one order of steps.
//!
//! (docs follow)

pub(crate) mod canary;
pub(crate) mod error;
mod filter;
pub(crate) mod identity;
mod init;
mod landlock;
mod launch;
mod limits;
pub(crate) mod message;
pub(crate) mod plan;
mod privilege;
pub(crate) mod probe;
pub(crate) mod readback;
mod root;
pub(crate) mod silence;
pub(crate) mod stage;
