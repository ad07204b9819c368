//! The client as a program, against a small hand-written server on loopback.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "the lints spare test functions, and this whole program is a test"
)]

mod errors;
mod files;
mod hostile;
mod kit;
mod requests;
mod retries;
mod streaming;
mod usage;
