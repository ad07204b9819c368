//! Attempts to leave a sandbox, each with its expected result.
//!
//! [`canary`] holds the probes that every run makes inside, just before the client starts. [`hostile`] is the client of
//! `runner selftest`: it makes many more attempts inside, and their positive twins outside.

pub mod canary;
pub mod hostile;
