//! The stub as a program of its own.

use std::process::ExitCode;

fn main() -> ExitCode {
    stub::main(std::env::args_os())
}
