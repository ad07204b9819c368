//! The `runner` executable. A hidden first argument selects another role, such as stage or reference client.

use std::process::ExitCode;

fn main() -> ExitCode {
    runner::main()
}
