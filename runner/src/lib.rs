//! (being written)
pub mod case;
pub mod check;
pub mod cli;
mod clock;
mod collect;
mod digest;
pub mod evidence;
mod output;
pub mod policy;
pub mod policy_command;
mod prepare;
pub mod profile;
pub mod report;
mod run;
mod sandbox;
mod sys;
pub mod verdict;

/// Entry.
pub fn main() -> std::process::ExitCode {
    use clap::Parser as _;
    let arguments: Vec<std::ffi::OsString> = std::env::args_os().collect();
    match arguments.get(1).and_then(|a| a.to_str()) {
        Some("__stage") => return sandbox::stage::main(),
        Some("__client") => {
            let mut a = arguments;
            a.remove(1);
            return client::main(a);
        }
        _ => {}
    }
    let cli = cli::Cli::parse_from(arguments);
    match cli.resolve(std::env::var_os("PATH").as_deref()) {
        Ok(cli::Command::Run(request)) => std::process::ExitCode::from(run::run(&request) as u8),
        _ => std::process::ExitCode::from(2),
    }
}
