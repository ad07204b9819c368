//! A sandboxed runner with network isolation: it starts a command-line agent client and a loopback provider
//! stub inside a sealed sandbox and proves what the client sends, writes and tries.
//!
//! Who is trusted, what a hostile client may do and which layer supports which claim stands in SECURITY.md at
//! the top of the repository.
//!
//! # The pipeline
//!
//! ```text
//! argv ─► RunRequest ─► Prepared (with the sandbox's Plan) ─► Stage ─┬─ stub    in the network namespace
//!         cli, policy   prepare                     sandbox::spawn    └─ client  inside everything
//!
//! journal, output, ends ─► Capture ─► Evidence ─► Findings ─► Verdict ─► Report ─► bytes
//!                          collect    assemble    check       check      describe  report, output
//! ```
//!
//! [`run`](mod@run) is this picture as code, a line a step. What is known before a namespace exists is done
//! before one exists ([`prepare`]); evidence is collected outside the client, which cannot alter it afterwards
//! ([`collect`], [`assemble`]); judging is pure ([`check`]); every report shows the same value ([`report`]).
//!
//! # The rooms
//!
//! | room | owns | must not know |
//! |---|---|---|
//! | [`cli`] | what was typed, and what it means | how a run is made |
//! | [`policy_command`] | files printed, started and checked | any run |
//! | [`policy`], [`case`], [`profile`], [`audit`] | policy files, and the values that they become | the kernel |
//! | [`needs`] | the loader and libraries that an ELF program asks for | any policy |
//! | [`homes`] | the names of homes | what is shown |
//! | [`workload`] | what a run is about: a client under a case, or an audited program | how it is judged |
//! | [`prepare`] | paths resolved, the credential, the plan | processes |
//! | [`sandbox`] | namespaces, root, rules, filter, canaries | what a client should do |
//! | [`sys`] | the system calls that no crate wraps; the only `unsafe` | any policy |
//! | [`collect`] | the event loop of a run, output, names, files | what is expected |
//! | [`lookups`] | which paths a program missed, and the option that would show each | any judgement |
//! | [`dns`] | a query's questions, and the answer to it | sockets |
//! | [`evidence`] | what was collected | any judgement |
//! | [`check`], [`verdict`] | one finding for each stable id | how evidence came about |
//! | [`doctor`] | what this host lets a run have: each thing tried, causes and fixes | any policy |
//! | [`selftest`] | the hostile client, the ways out that it tries, and their twins outside | how a run is made |
//! | [`schema`] | JSON Schemas, made from the types that are read and written | any run |
//! | [`behaviour`] | what a run showed, as facts to compare, and the rules for what is not compared | files |
//! | [`diff`], [`baseline`] | two reports, or a run and its lock file, compared | how a run is made |
//! | [`report`], [`describe`], [`output`] | the one value, its renderings, where they go | any judgement |
//! | [`read`] | the user's files, read whole: regular ones, up to a limit | what stands in them |
//! | [`bundle`] | the evidence in a directory of its own, with a manifest, and its verification | how a run is made |
//!
//! The stub is our instrument, and its types are used here. The reference client is the workload: nothing but
//! its entry point is, or one fault could hide in both.

mod assemble;
mod audit;
mod baseline;
mod bundle;
mod cli;
mod collect;
mod describe;
pub mod diff;
pub mod doctor;
mod home_dirs;
mod lookups;
mod output;
mod policy_command;
mod prepare;
mod program;
mod provider;
mod request;
mod run;
#[cfg(test)]
mod schema_tests;
pub mod selftest;
mod workload;

pub use program::main;
