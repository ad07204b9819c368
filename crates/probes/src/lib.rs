//! Attempts to leave a sandbox, each with its expected result.
//!
//! [`table`] holds all probes: id, call, targets, expected errno by kind of sandbox, layer, ledger entry, and positive
//! twin. [`canary`] is the part that every run makes inside, just before the client starts. [`hostile`] is the client of
//! `runner selftest`: it makes all probes inside, and their twins outside.

pub mod canary;
pub mod hostile;
mod own_program;
pub mod probe;
pub mod reply;
pub mod table;
mod twin_env;
