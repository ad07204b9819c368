//! The reference client as a program of its own.

use std::process::ExitCode;

fn main() -> ExitCode {
    client::main(std::env::args_os())
}
