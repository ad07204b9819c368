//! The `runner` executable: the runner, and under hidden first arguments the stage and the reference client.

use std::process::ExitCode;

fn main() -> ExitCode {
    runner::main()
}
