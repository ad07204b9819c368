//! Attempts to leave a sandbox, each with what must come of it.
//!
//! [`canary`] holds the attempts that every run makes inside, just before the client starts. [`hostile`] is the client
//! of `runner selftest`: it makes many more, and their positive twins outside.

pub mod canary;
pub mod hostile;
