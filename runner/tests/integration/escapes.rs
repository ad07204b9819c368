//! Ways out of a sandbox, one class per test: the attempt inside, with the errno of the layer that refuses it, and its
//! positive twin outside, where the same attempt succeeds.

pub(crate) mod attempt;
mod files;
mod inheritance;
mod kernel;
mod kernel_memory;
mod limits;
mod mounts;
mod network;
mod processes;
mod sockets;
