//! The stub as a standalone program.

use std::process::ExitCode;

fn main() -> ExitCode {
    stub::main(std::env::args_os())
}
