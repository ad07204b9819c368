//! Executable of the reference client.

use std::process::ExitCode;

fn main() -> ExitCode {
    client::main(std::env::args_os())
}
