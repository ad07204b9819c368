//! Ways out of a sandbox by the code of a fixture. The table of probes (`selftest`) has each single call with its errno,
//! layer, ledger entry and twin; here are arrivals outside, contents of the sandbox, and limits.

mod arrival;
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
