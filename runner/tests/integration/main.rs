//! The runner as its users run it: the real executable on the real kernel.
#![cfg(test)]

mod basics;
mod help;
#[allow(
    dead_code,
    unreachable_pub,
    clippy::wrong_self_convention,
    reason = "a kit offers more than each version of the tests uses, and a test program exports nothing"
)]
mod kit;
mod readme;
