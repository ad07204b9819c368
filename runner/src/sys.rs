//! The system calls that no crate of ours wraps, one safe function a call.
//!
//! This is the only place with `unsafe`. It knows the kernel's interface and nothing of the sandbox: no
//! policy, no order of steps, no message. Failures are the kernel's errno.

#![allow(unsafe_code)]

pub(crate) mod attempt;
pub(crate) mod fds;
pub(crate) mod marks;
pub(crate) mod mount;
pub(crate) mod net;
pub(crate) mod notify;
pub(crate) mod probe;
pub(crate) mod process;
pub(crate) mod seccomp;
pub(crate) mod streams;
pub(crate) mod world;
