//! One sealed run in one call, for a program of any kind: no server, no case, no report.
//!
//! [`Sandbox`] describes the program and its surroundings; [`Sandbox::run`] drives the set-up, the program and its end.

mod drive;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use model::case::{Access, Device, Tier};
use model::layout::PROGRAM_DIRECTORY;
use model::secret::SecretScanner;
use nix::errno::Errno;
use sys::clock::Clock;
use sys::random;
use thiserror::Error;
use tokio::io::AsyncReadExt as _;

use self::drive::Drive;
use super::canary::targets::{Targets, TargetsError};
use super::cgroup::Cgroup;
use super::error::SetupError;
use super::guard::{self, GUARD_ARGUMENT};
use super::identity;
use super::limits::{CORE_BYTES, QUEUE_BYTES};
use super::lines::LineCount;
use super::message::ExitStatus;
use super::plan::{
    Bind, BindKind, ClientPaths, ClientPlan, Plan, ResourceLimits, RootPlan, ServerPlan,
};
use super::set_up::SetUp;
use super::spawn::{STAGE_ARGUMENT, spawn};
use super::stage::{self, Inside};
use super::supervise::ledger::Ledger;
use super::verify::Isolation;
use crate::dns::Asked;

/// Bytes of each output; a program that writes more is ended.
const MAX_OUTPUT_BYTES: usize = 64 << 20;
/// Directories that the sandbox has itself.
const OWN_TREES: [&str; 5] = ["/tmp", "/home", "/proc", "/dev", PROGRAM_DIRECTORY];
/// Held during a run: children of one run would count as the other's.
static ONE_RUN: Mutex<()> = Mutex::new(());

/// Runs one of the sandbox's own processes, if this process was started as one, and returns its exit code.
///
/// The sandbox starts the executable of the caller again for its processes. So `main` must call this function first,
/// and end with the code that it returns. `serve` runs inside the sealed network; [`no_server`] accepts no connection.
pub fn reenter(serve: impl AsyncFnOnce(Inside) -> io::Result<()>) -> Option<ExitCode> {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let further = arguments.get(2..).unwrap_or_default();
    match arguments.get(1).and_then(|argument| argument.to_str()) {
        Some(STAGE_ARGUMENT) => Some(stage::main(further, serve)),
        Some(GUARD_ARGUMENT) => Some(guard::main(further)),
        Some(_) | None => None,
    }
}

/// Accepts no connection, and returns when the owner of the sandbox has ended.
///
/// # Errors
/// The error of reading the control socket.
pub async fn no_server(mut inside: Inside) -> io::Result<()> {
    inside.from_runner.read_to_end(&mut Vec::new()).await?;
    Ok(())
}

/// A program and its surroundings.
///
/// The program sees its own file, an empty home, working and temporary directory (256 MiB and 20,000 files each), /proc
/// with its own processes, the devices null, zero, full, random, urandom and ptmx, a few files of /etc made for it, and the
/// paths of [`show`](Self::show). Its network is a loopback with a resolver that knows no name. Standard input is
/// /dev/null. Limits: 60 s of processor time, 4 GiB of data, 64 MiB for one file, 1,024 open files, 512 processes.
#[derive(Clone, Debug)]
pub struct Sandbox {
    program: PathBuf,
    arguments: Vec<OsString>,
    environment: Vec<OsString>,
    shown: Vec<(PathBuf, Access)>,
    timeout: Duration,
}

/// Result of a sealed run.
#[derive(Debug)]
pub struct Ran {
    /// wait(2) status; `None` if the program was ended at its time limit.
    pub status: Option<ExitStatus>,
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: Vec<u8>,
    /// Layers as the kernel showed them, and probes of the canary, just before the program started.
    pub isolation: Isolation,
    /// Attempts of the program, and the programs that were started.
    pub ledger: Ledger,
    /// Questions to the resolver inside, each with its number.
    pub questions: Vec<(Asked, u64)>,
}

/// Error of a sealed run.
#[derive(Debug, Error)]
pub enum SealError {
    /// The program, or a path to show, cannot be opened.
    #[error("cannot open {path}")]
    Open {
        /// Path as given.
        path: String,
        /// Error of open(2).
        source: io::Error,
    },
    /// A path cannot be shown.
    #[error(
        "cannot show {path}: expected an absolute path outside of /tmp, /home, /proc, /dev and /client"
    )]
    Path {
        /// Path as given.
        path: String,
    },
    /// A probe of the canary has no target.
    #[error(transparent)]
    Targets(#[from] TargetsError),
    /// A step of set-up failed.
    #[error("cannot set up the sandbox")]
    SetUp(#[from] SetupError),
    /// A layer or a probe did not hold; the program was not started.
    #[error("the sandbox does not hold: {0}; the program was not started")]
    NotSealed(String),
    /// execve(2) failed.
    #[error("cannot execute the program inside the sandbox: {}", .0.desc())]
    NotExecuted(Errno),
    /// Set-up or the end took too long, or one of the sandbox's processes was lost.
    #[error("the sandbox was lost: last report: {last}; missing: {missing}")]
    Lost {
        /// Last report of set-up.
        last: &'static str,
        /// Reports still to come.
        missing: String,
    },
    /// The program wrote more than 64 MiB to one output.
    #[error("the program wrote more than {MAX_OUTPUT_BYTES} bytes to one output")]
    Output,
    /// The supervisor ended early, so there is no ledger.
    #[error("the supervisor was lost")]
    NoLedger,
    /// poll(2) or a read failed.
    #[error("cannot wait for the sandbox")]
    Wait(#[source] io::Error),
}

impl Sandbox {
    /// A program of the host, with its name as the only argument, an empty environment and a time limit of a minute.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            arguments: Vec::new(),
            environment: Vec::new(),
            shown: Vec::new(),
            timeout: Duration::from_secs(60),
        }
    }

    /// Adds arguments behind the program's name.
    pub fn arguments(mut self, words: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.arguments.extend(words.into_iter().map(Into::into));
        self
    }

    /// Adds a variable to the environment.
    pub fn variable(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        let mut variable = OsString::from(name);
        variable.push("=");
        variable.push(value);
        self.environment.push(variable);
        self
    }

    /// Shows a file or directory of the host at the same path, read-only; programs in it can be run. The path must be
    /// absolute, and outside of the directories that the sandbox has itself: /tmp, /home, /proc, /dev and /client.
    pub fn show(mut self, path: impl Into<PathBuf>) -> Self {
        self.shown.push((path.into(), Access::ReadExecute));
        self
    }

    /// Sets the time limit, counted from the exec.
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Seals the program, runs it to its end and ends all of its processes.
    ///
    /// The calling process must have called [`reenter`] first. It must start no other child until this function
    /// returns: each new child counts as the sandbox's, and is ended and reaped with it. Calls from several threads
    /// wait for each other. The process becomes a child subreaper (prctl(2)), resets SIGCHLD, and marks its descriptors
    /// above 2 close-on-exec.
    ///
    /// # Errors
    /// The program is never started unless every required layer and every probe holds.
    pub fn run(&self) -> Result<Ran, SealError> {
        let _alone = ONE_RUN.lock().unwrap_or_else(PoisonError::into_inner);
        let clock = Clock::start();
        let mut held = Vec::new();
        let (plan, targets) = self.plan(&mut held)?;
        let secrets = SecretScanner::new(&plan.server.credential)
            .map_err(|error| SealError::Wait(io::Error::other(error)))?;
        let stage = spawn(&plan)?;
        let cgroup = stage.cgroup.as_ref();
        let cgroup = cgroup.map(Cgroup::describe).map_err(String::clone);
        let lines = LineCount::none();
        let set_up = SetUp::new(
            (&plan, &secrets),
            (stage.pid(), stage.processors),
            cgroup,
            clock,
            lines,
        );
        let mut run = Drive::new(stage, set_up)?;
        let ended = run.drive(self.timeout);
        drop((held, targets));
        run.finish(ended?)
    }

    fn plan(&self, held: &mut Vec<File>) -> Result<(Plan, Targets), SealError> {
        for (path, _) in &self.shown {
            let is_own = OWN_TREES.iter().any(|own| path.starts_with(own));
            if !path.is_absolute() || is_own || path.parent().is_none() {
                return Err(SealError::Path {
                    path: model::quote::shown_path(path),
                });
            }
        }
        let tier = Tier::Namespace;
        let identity = identity::for_caller(tier);
        let paths = ClientPaths::in_own_root();
        let mut binds = Vec::new();
        for (path, access) in &self.shown {
            binds.push(bind(path, path, *access, held)?);
        }
        let is_shown = self
            .shown
            .iter()
            .any(|(path, _)| self.program.starts_with(path));
        let program = if is_shown {
            self.program.clone()
        } else {
            let name = self.program.file_name().unwrap_or_default();
            let inside = Path::new(PROGRAM_DIRECTORY).join(name);
            let access = Access::ReadExecute;
            binds.push(bind(&self.program, &inside, access, held)?);
            inside
        };
        // A directory before what lies in it: the one mount would hide the other.
        binds.sort_by(|one, other| one.target.cmp(&other.target));
        let targets = Targets::make(tier, &binds, &paths)?;
        let probe = targets.plan(&paths);
        let mut arguments = vec![self.program.clone().into_os_string()];
        arguments.extend(self.arguments.iter().cloned());
        let plan = Plan {
            runner_pid: i32::try_from(std::process::id()).unwrap_or(0),
            tier,
            identity,
            server: ServerPlan {
                settings: String::new(),
                needs_elsewhere: false,
                is_known: false,
                credential: random::token(),
            },
            root: RootPlan {
                home: paths.home.into(),
                tmp: paths.tmp.into(),
                work: paths.work.clone().into(),
                bytes: 256 << 20,
                files: 20_000,
                exec: Vec::new(),
                binds,
                devices: Device::ALL.to_vec(),
            },
            client: ClientPlan {
                program: program.into(),
                arguments,
                environment: self.environment.clone(),
                directory: paths.work.into(),
                reads_input: false,
            },
            limits: limits(),
            process_limit: MAX_PROCESSES,
            probe,
            lookups: false,
            #[cfg(feature = "weaken")]
            weakened: super::weaken::from_env(),
        };
        Ok((plan, targets))
    }
}

/// Processes and threads of the program.
const MAX_PROCESSES: u64 = 512;

fn limits() -> ResourceLimits {
    ResourceLimits {
        core_bytes: CORE_BYTES,
        data_bytes: 4 << 30,
        processes: MAX_PROCESSES,
        cpu_seconds: 60,
        cpu_hard_seconds: 61,
        open_files: 1024,
        file_bytes: 64 << 20,
        queue_bytes: QUEUE_BYTES,
    }
    .within_hard_limits()
}

/// Opens the object, which keeps its device and inode its own until the sandbox has taken it.
fn bind(
    path: &Path,
    target: &Path,
    access: Access,
    held: &mut Vec<File>,
) -> Result<Bind, SealError> {
    let failed = |source| SealError::Open {
        path: model::quote::shown_path(path),
        source,
    };
    let handle = File::options()
        .read(true)
        .custom_flags(libc::O_PATH)
        .open(path)
        .map_err(failed)?;
    let status = handle.metadata().map_err(failed)?;
    let source = std::fs::canonicalize(path).map_err(failed)?;
    held.push(handle);
    Ok(Bind {
        source: source.into(),
        target: target.into(),
        device: status.dev(),
        inode: status.ino(),
        kind: if status.is_dir() {
            BindKind::Directory
        } else {
            BindKind::File
        },
        access,
    })
}
