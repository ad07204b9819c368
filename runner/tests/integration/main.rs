//! The runner as its users run it: the real executable on the real kernel.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "all of this is test code, the functions beside the tests too"
)]

mod abuse;
mod audits;
mod basics;
mod below_tmp;
mod browser;
mod bundle;
mod deviations;
mod doctor;
mod drift;
mod escapes;
mod examples;
mod failures;
mod folder;
mod help;
mod inherited;
mod inline;
mod killed;
mod kit;
mod lookups;
mod made;
mod names;
mod outside;
mod policies;
mod profiles;
mod program_digest;
mod readers;
mod readme;
mod real_client;
mod selftest;
mod structure;
mod teardown;
mod toolchains;
mod unseen;
