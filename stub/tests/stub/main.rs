//! Tests of the stub over real loopback sockets, with raw bytes.
#![cfg(test)]

mod barrier;
mod chunks;
mod connections;
mod faults;
mod held;
mod kit;
mod program;
mod provider;
mod sealed;
