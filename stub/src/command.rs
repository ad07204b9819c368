//! The stub as a program: its command line, its files, its signals.
//!
//! Owns all access to the file system and the standard streams, which ends before the run starts.

use std::ffi::OsString;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::ExitCode;
use std::task::{Context, Poll};

use clap::Parser;
use model::secret::Belongs;
use nix::libc;
use scenario::Scenario;
use tokio::io::AsyncWrite;
use tokio::signal::unix::{SignalKind, signal};

use crate::limits::Limits;
use crate::serve::{ServeError, Setup, serve_until};

/// Address of the second host.
const ELSEWHERE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// Longest scenario file, in bytes.
const MAX_SCENARIO_BYTES: u64 = 1 << 20;

/// Exit code for a wrong command line, or a file or address that cannot be used.
const USAGE: u8 = 2;
/// Exit code for a run that lost evidence.
const ERRORED: u8 = 3;

/// A loopback Messages provider that journals what each connection carried.
///
/// Prints its base URL. If the scenario redirects to the second host, prints that host's URL on a second line.
/// Serves until SIGINT or SIGTERM.
#[derive(Debug, Parser)]
#[command(name = "stub", version)]
struct Arguments {
    /// `None` only together with `--list-scenarios`.
    #[command(flatten)]
    run: Option<RunArguments>,
    /// List the built-in scenarios and end
    #[arg(long, exclusive = true)]
    list_scenarios: bool,
}

/// Arguments of a run.
#[derive(Debug, clap::Args)]
struct RunArguments {
    /// Loopback address and port to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = loopback)]
    listen: SocketAddr,
    /// File that receives the journal, one JSON object a line; overwritten
    #[arg(long, value_name = "FILE")]
    journal: PathBuf,
    /// Scenario of the answers: a built-in name, or a TOML file with a [stub] table, such as a case
    ///
    /// A word without dots and slashes is a name; write ./NAME for a file with such a name.
    #[arg(long, value_name = "NAME|FILE")]
    scenario: Option<PathBuf>,
}

/// Error that ends the program.
#[derive(Debug, thiserror::Error)]
enum CommandError {
    #[error("no built-in scenario is named `{name}`; `stub --list-scenarios` lists them")]
    NoScenario { name: String },
    #[error("cannot read the scenario {}", path.display())]
    ReadScenario { path: PathBuf, source: io::Error },
    #[error("cannot parse the scenario {}", path.display())]
    Scenario {
        path: PathBuf,
        source: toml::de::Error,
    },
    #[error("cannot open the journal {}", path.display())]
    Journal { path: PathBuf, source: io::Error },
    #[error("cannot listen on {address}")]
    Listen {
        address: SocketAddr,
        source: io::Error,
    },
    #[error("cannot start the event loop")]
    Runtime(#[source] io::Error),
    #[error("cannot write to standard output")]
    Print(#[source] io::Error),
    #[error("cannot complete the run")]
    Serve(#[source] ServeError),
}

/// Runs the program; the first of `args` is the program's name. Exits with 0 after a signal, with 2 if the command
/// line, a file or the address cannot be used, and with 3 if evidence was lost.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments = match Arguments::try_parse_from(args) {
        Ok(arguments) => arguments,
        Err(error) => {
            // If the standard streams are closed, the message has no reader.
            let _ = error.print();
            return if error.use_stderr() {
                ExitCode::from(USAGE)
            } else {
                ExitCode::SUCCESS
            };
        }
    };
    let outcome = match &arguments.run {
        Some(arguments) => run(arguments),
        None => list_scenarios().map_err(CommandError::Print),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report(&error);
            ExitCode::from(if matches!(error, CommandError::Serve(_)) {
                ERRORED
            } else {
                USAGE
            })
        }
    }
}

fn run(arguments: &RunArguments) -> Result<(), CommandError> {
    let scenario = arguments
        .scenario
        .as_deref()
        .map_or_else(|| Ok(Scenario::default()), read_scenario)?;
    let journal = open_journal(&arguments.journal)?;
    let (listener, address) = listen(arguments.listen)?;
    let elsewhere = scenario
        .needs_elsewhere()
        .then(|| listen(SocketAddr::from((ELSEWHERE, 0))))
        .transpose()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(CommandError::Runtime)?;
    runtime.block_on(async {
        // Installed before the URL is printed, because a reader of the URL may send a signal at once.
        let mut interrupt = signal(SignalKind::interrupt()).map_err(CommandError::Runtime)?;
        let mut terminate = signal(SignalKind::terminate()).map_err(CommandError::Runtime)?;
        let (elsewhere, other) = elsewhere.unzip();
        announce(address, other).map_err(CommandError::Print)?;
        let setup = Setup {
            listener,
            elsewhere,
            scenario,
            credential: None,
            belongs: Belongs::default(),
            limits: Limits::default(),
            sockets: None,
        };
        let stop = async {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        };
        serve_until(setup, JournalFile(journal), stop)
            .await
            .map_err(CommandError::Serve)
    })
}

fn listen(wanted: SocketAddr) -> Result<(TcpListener, SocketAddr), CommandError> {
    let failed = |source| CommandError::Listen {
        address: wanted,
        source,
    };
    let listener = TcpListener::bind(wanted).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, address))
}

fn loopback(text: &str) -> Result<SocketAddr, String> {
    let address: SocketAddr = text
        .parse()
        .map_err(|_| "expected ADDRESS:PORT, such as 127.0.0.1:8080".to_owned())?;
    if address.ip().is_loopback() {
        Ok(address)
    } else {
        Err(format!(
            "expected a loopback address, found {}; the stub serves this host only",
            address.ip()
        ))
    }
}

fn read_scenario(path: &Path) -> Result<Scenario, CommandError> {
    /// The tables of a case file that the stub reads.
    #[derive(serde::Deserialize)]
    struct Tables {
        stub: Scenario,
    }
    if let Some(name) = path.to_str().filter(|name| !name.contains(['.', '/'])) {
        let unknown = || CommandError::NoScenario {
            name: name.to_owned(),
        };
        return Scenario::named(name).ok_or_else(unknown);
    }
    let text = read(path).map_err(|source| CommandError::ReadScenario {
        path: path.to_owned(),
        source,
    })?;
    let tables: Tables = toml::from_str(&text).map_err(|source| CommandError::Scenario {
        path: path.to_owned(),
        source,
    })?;
    Ok(tables.stub)
}

fn read(path: &Path) -> io::Result<String> {
    let file = opened(OpenOptions::new().read(true), path)?;
    let mut text = String::new();
    file.take(MAX_SCENARIO_BYTES + 1)
        .read_to_string(&mut text)?;
    if text.len() as u64 > MAX_SCENARIO_BYTES {
        let cause = format!("the file is longer than {MAX_SCENARIO_BYTES} bytes");
        return Err(io::Error::other(cause));
    }
    Ok(text)
}

/// Opens the journal with mode 0600, also if the file existed before.
fn open_journal(path: &Path) -> Result<File, CommandError> {
    let open = || {
        let mut options = OpenOptions::new();
        let options = options.write(true).create(true).truncate(true).mode(0o600);
        let file = opened(options, path)?;
        file.set_permissions(Permissions::from_mode(0o600))?;
        Ok(file)
    };
    open().map_err(|source| CommandError::Journal {
        path: path.to_owned(),
        source,
    })
}

/// Opens a regular file or a device. Without `O_NONBLOCK`, opening a FIFO would wait for its other end
/// (fifo(7)).
fn opened(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let refused =
        || io::Error::other("expected a regular file or a device, found a FIFO or a socket");
    let file = options
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path);
    let file = file.map_err(|error| match error.raw_os_error() {
        Some(libc::ENXIO) => refused(),
        _ => error,
    })?;
    let kind = file.metadata()?.file_type();
    if kind.is_fifo() || kind.is_socket() {
        return Err(refused());
    }
    Ok(file)
}

fn announce(address: SocketAddr, elsewhere: Option<SocketAddr>) -> io::Result<()> {
    let mut urls = format!("http://{address}\n");
    if let Some(elsewhere) = elsewhere {
        urls.push_str(&format!("http://{elsewhere}\n"));
    }
    // Both URLs go out in one write, because a reader may stop after the first line.
    let mut stdout = io::stdout().lock();
    stdout.write_all(urls.as_bytes())?;
    stdout.flush()
}

fn list_scenarios() -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    for scenario in Scenario::names() {
        writeln!(stdout, "{:<30} {}", scenario.name, scenario.summary)?;
    }
    stdout.flush()
}

fn report(error: &CommandError) {
    let mut stderr = io::stderr().lock();
    // If standard error is closed, the message has no reader.
    let _ = writeln!(stderr, "error: {error}");
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        let _ = writeln!(stderr, "caused by: {inner}");
        cause = inner.source();
    }
}

/// Journal writer for a file. Its writes never wait, because a regular file is always ready (poll(2)).
struct JournalFile(File);

impl AsyncWrite for JournalFile {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(self.0.write(bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_addresses_are_accepted() {
        assert!(loopback("127.0.0.1:0").is_ok());
        assert!(loopback("[::1]:8080").is_ok());
        assert!(
            loopback("0.0.0.0:8080")
                .unwrap_err()
                .contains("expected a loopback address")
        );
        assert!(
            loopback("localhost:8080")
                .unwrap_err()
                .contains("expected ADDRESS:PORT")
        );
    }

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory as _;
        Arguments::command().debug_assert();
    }
}
