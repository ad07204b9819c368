//! The host: system calls that nix, caps and landlock do not wrap, one safe function per call. Also the few files,
//! clocks and random numbers that several crates need.
//!
//! This is the only crate with `unsafe`. It knows the interface of the kernel, and no policy, set-up order or message
//! of the sandbox. Errors are the errno of the kernel. [`attempt`] and [`test_network`] hold raw calls
//! of probes.

#![allow(unsafe_code)]

pub mod attempt;
pub mod build_id;
pub mod clock;
pub mod fds;
pub mod marks;
pub mod mount;
pub mod net;
pub mod notify;
pub mod priority;
pub mod process;
pub mod random;
pub mod read;
pub mod seccomp;
pub mod streams;
pub mod test_network;
