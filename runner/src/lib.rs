//! A sandboxed runner with network isolation: it starts a command-line agent client and a loopback provider
//! stub inside a sealed sandbox and reports what the client sends, writes and tries, and what of it is proved.
//!
//! SECURITY.md states whom the runner trusts and which layer supports which claim. ARCHITECTURE.md shows the crates
//! and the processes. This crate is the program: it joins the crates below it, and [`run`](mod@run) is the way of one
//! run, a line a step.
//!
//! | module | owns |
//! |---|---|
//! | [`cli`], [`request`] | options as typed, and the requests that they mean |
//! | [`version`] | version, commit and build id of the executable |
//! | [`program`] | entry point of each process, exit codes, messages on standard error |
//! | [`workload`], [`audit`], [`home_dirs`], [`own_tmp`] | a client under a case or an audited program, and the paths that it is shown |
//! | [`prepare`] | paths resolved, the credential made, the sandbox's plan |
//! | [`shebang`], [`toolchain`] | first lines of scripts, and the directories that the start of a program needs |
//! | [`startable`] | programs that cannot start inside, with the option that helps |
//! | [`provider`] | the stub inside the sandbox |
//! | [`run`](mod@run), [`collect`] | the pipeline, and its event loop |
//! | [`fleet`] | runs of several cases, and their common reports |
//! | [`program_digest`] | SHA-256 of the program, computed beside the run or known from an earlier one |
//! | [`build_evidence`], [`lookups`] | evidence from the capture; missed paths and the option that shows each |
//! | [`accept`] | changes of a case that accept the findings of a run |
//! | [`build_report`], [`output`] | the report, and its destinations |
//! | [`bundle`], [`baseline`], [`diff`] | evidence in a directory, lock files, two runs compared |
//! | [`error_text`] | errors with their causes |
//! | [`advice`] | causes and fixes of a failed set-up |
//! | [`doctor`], [`selftest`], [`policy_command`] | the other commands |
//!
//! The stub is an instrument, so this crate uses its types. The reference client is the subject of the tests: only its
//! entry point is used, because a shared type could hide the same fault in both.

mod accept;
mod advice;
mod audit;
mod baseline;
mod build_evidence;
mod build_report;
mod bundle;
mod cli;
mod client_input;
mod collect;
pub mod diff;
pub mod doctor;
mod error_text;
mod fleet;
mod home_dirs;
mod init;
mod lookups;
mod output;
mod own_tmp;
mod policy_command;
mod prepare;
mod program;
mod program_digest;
mod provider;
mod request;
mod run;
#[cfg(test)]
mod schema_tests;
pub mod selftest;
mod shebang;
mod startable;
mod toolchain;
mod version;
mod workload;

pub use program::main;
