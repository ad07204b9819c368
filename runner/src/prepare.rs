//! From a run's request to the sandbox's plan: everything that can be resolved before a namespace exists.
//!
//! Paths are resolved and identified here, the credential is made here, the two canary targets outside are
//! chosen here. Nothing in here makes a process.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::unistd::{AccessFlags, access};
use stub::Needle;
use thiserror::Error;

use crate::audit::Place;
use crate::case::{Access, Limits, PathRule, Presence};
use crate::cli::{ClientProgram, RunRequest};
use crate::profile::{Surroundings, Unspelt, filled};
use crate::random;
use crate::report::Purpose;
use crate::sandbox::identity;
use crate::sandbox::limits::CORE_BYTES;
use crate::sandbox::plan::{
    BASE_URL, Bind, BindKind, ClientPlan, HOME, Identity, PROGRAM_DIRECTORY, Plan, ProbePlan,
    ResourceLimits, RootPlan, StubPlan, TMP,
};
use crate::sandbox::spawn::OWN_FILE;
use crate::subject::Subject;

/// Hidden first argument with which our own file is the reference client.
pub(crate) const CLIENT_ARGUMENT: &str = "__client";

/// Open files that the runner needs for itself: its sockets and pipes, and a directory for each level of a walk.
const FEWEST_FILES: u64 = 256;

/// Trees that no path rule may lead into: they are the kernel's or hold other programs' sockets.
pub(crate) const FORBIDDEN: [&str; 4] = ["/proc", "/sys", "/dev", "/run"];

/// What a run is made of.
pub(crate) struct Prepared {
    pub(crate) plan: Plan,
    /// The credential of this run, to be searched for.
    pub(crate) needle: Needle,
    /// The client's program, opened, to be hashed beside the run.
    pub(crate) program: File,
    /// As the report names it; `None` for the client that this executable carries.
    pub(crate) program_path: Option<PathBuf>,
    /// A live target in our own network namespace; it listens as long as this is held, and nobody is served.
    _outside_socket: UnixListener,
}

impl Prepared {
    /// The client is the one that this executable carries.
    pub(crate) fn is_own_file(&self) -> bool {
        self.program_path.is_none()
    }
}

/// Why a run cannot be prepared.
#[derive(Debug, Error)]
pub(crate) enum PrepareError {
    #[error("cannot open the program {path}")]
    Program {
        path: String,
        source: std::io::Error,
    },
    #[error("cannot resolve {path}, which is to be shown")]
    Rule {
        path: String,
        source: std::io::Error,
    },
    #[error("the path rule {path} leads to {resolved}, which is {what}")]
    ForbiddenRule {
        path: String,
        resolved: String,
        what: &'static str,
    },
    #[error(
        "{path} is to be writable, and user {user}, as whom the program runs, may not write there"
    )]
    NotWritable { path: String, user: u32 },
    #[error("no directory of the host can serve as the canary for host paths")]
    NoOutsideDirectory,
    #[error("cannot listen on an abstract socket, the canary for the host's sockets")]
    OutsideSocket { source: std::io::Error },
    #[error("no more than {hard} open files are allowed here, and a run needs {FEWEST_FILES}")]
    FewFiles { hard: u64 },
    #[error("cannot make a credential")]
    Credential,
    #[error(transparent)]
    Unspelt(#[from] Unspelt),
}

impl PrepareError {
    /// Whether the user's policy or command line is at fault, and not the host.
    pub(crate) fn is_policy(&self) -> bool {
        match self {
            Self::Program { .. }
            | Self::Rule { .. }
            | Self::ForbiddenRule { .. }
            | Self::NotWritable { .. }
            | Self::Unspelt(_) => true,
            Self::NoOutsideDirectory
            | Self::OutsideSocket { .. }
            | Self::Credential
            | Self::FewFiles { .. } => false,
        }
    }
}

/// Resolves everything that `request` names.
///
/// # Errors
/// What could not be resolved, with its path.
pub(crate) fn prepare(request: &RunRequest) -> Result<Prepared, PrepareError> {
    open_enough_files()?;
    let credential = format!("runner-key-{}", random::token());
    let needle = Needle::new(&credential).map_err(|_| PrepareError::Credential)?;
    let (program, program_path) = open_program(&request.client)?;
    let subject = &request.subject;
    let identity = identity::for_caller();
    let placed = Placed::of(subject, &program_path);
    let mut binds = vec![program_bind(&program, &program_path, &placed.file)?];
    for rule in subject.path_rules() {
        binds.extend(rule_bind(rule, request, identity)?);
    }
    // A directory before what lies in it: the one mount would hide the other.
    binds.sort_by(|one, other| one.target.cmp(&other.target));
    let (outside_socket, outside_name) = listen_outside()?;
    let outside_directory = outside_directory(&binds)?;
    let limits = &subject.sandbox().limits;
    let plan = Plan {
        runner_pid: i32::try_from(std::process::id()).unwrap_or(0),
        identity,
        stub: StubPlan {
            scenario: subject.scenario(),
            is_known: subject.knows_stub(),
            credential: credential.clone(),
            body_bytes: limits.body_bytes,
            requests: limits.requests,
            connections: limits.connections,
        },
        root: RootPlan {
            bytes: limits.home_bytes,
            files: limits.home_files,
            binds,
            devices: subject.devices(),
        },
        client: client_plan(request, placed, &credential)?,
        limits: resource_limits(limits),
        probe: ProbePlan {
            outside_socket: outside_name,
            outside_directory,
        },
        lookups: subject.purpose() == Purpose::Audit,
        #[cfg(feature = "weaken")]
        weakened: crate::sandbox::weaken::asked(),
    };
    let program_path = (request.client != ClientProgram::Reference).then_some(program_path);
    Ok(Prepared {
        plan,
        needle,
        program,
        program_path,
        _outside_socket: outside_socket,
    })
}

fn open_program(client: &ClientProgram) -> Result<(File, PathBuf), PrepareError> {
    let failed = |path: &Path| {
        let path = path.display().to_string();
        |source| PrepareError::Program { path, source }
    };
    match client {
        ClientProgram::Reference => {
            let own = Path::new(OWN_FILE);
            let path = fs::read_link(own).map_err(failed(own))?;
            Ok((File::open(own).map_err(failed(own))?, path))
        }
        ClientProgram::File(path) => {
            let resolved = fs::canonicalize(path).map_err(failed(path))?;
            Ok((File::open(&resolved).map_err(failed(&resolved))?, resolved))
        }
    }
}

/// Where the program lies inside.
struct Placed {
    /// Its file.
    file: PathBuf,
    /// What is given to execve(2): the file, or a link to it.
    path: PathBuf,
}

impl Placed {
    fn of(subject: &Subject, file: &Path) -> Self {
        let own = |name: &OsStr| Path::new(PROGRAM_DIRECTORY).join(name);
        match subject {
            Subject::Client { profile, .. } => Self::at(own(profile.names.program.as_ref())),
            Subject::Program(audit) => match &audit.place {
                Place::Own { path } => Self {
                    file: file.into(),
                    path: path.clone(),
                },
                Place::Alone => Self::at(own(file.file_name().unwrap_or_default())),
            },
        }
    }

    fn at(path: PathBuf) -> Self {
        Self {
            file: path.clone(),
            path,
        }
    }
}

fn program_bind(program: &File, path: &Path, inside: &Path) -> Result<Bind, PrepareError> {
    let status = program.metadata().map_err(|source| PrepareError::Program {
        path: path.display().to_string(),
        source,
    })?;
    Ok(Bind {
        source: path.into(),
        target: inside.into(),
        device: status.dev(),
        inode: status.ino(),
        kind: BindKind::File,
        access: Access::ReadExecute,
    })
}

/// What a rule shows; `None` where it is for other hosts than this one.
fn rule_bind(
    rule: &PathRule,
    request: &RunRequest,
    identity: Identity,
) -> Result<Option<Bind>, PrepareError> {
    let path = rule.path.display().to_string();
    let failed = |source| PrepareError::Rule {
        path: path.clone(),
        source,
    };
    let resolved = match fs::canonicalize(&rule.path) {
        Err(error)
            if rule.presence == Presence::IfPresent && error.kind() == ErrorKind::NotFound =>
        {
            return Ok(None);
        }
        resolved => resolved.map_err(failed)?,
    };
    let handle = fs::OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_PATH)
        .open(&resolved)
        .map_err(failed)?;
    let status = handle.metadata().map_err(failed)?;
    let kind = status.file_type();
    let forbidden = FORBIDDEN.iter().any(|tree| resolved.starts_with(tree));
    let what = match () {
        () if forbidden => Some("below /proc, /sys, /dev or /run"),
        () if kind.is_socket() => Some("a socket"),
        () if !kind.is_file() && !kind.is_dir() => Some("neither a file nor a directory"),
        () if writes_below(request, &resolved) => Some("where this run writes a report"),
        () => None,
    };
    if let Some(what) = what {
        let resolved = resolved.display().to_string();
        return Err(PrepareError::ForbiddenRule {
            path,
            resolved,
            what,
        });
    }
    if rule.access == Access::Write && !may_write(&resolved, &status, identity) {
        let (user, _) = identity::host_ids(identity);
        return Err(PrepareError::NotWritable { path, user });
    }
    Ok(Some(Bind {
        source: resolved.into(),
        target: rule.path.clone().into(),
        device: status.dev(),
        inode: status.ino(),
        kind: if kind.is_dir() {
            BindKind::Directory
        } else {
            BindKind::File
        },
        access: rule.access,
    }))
}

/// Whether the program's user may write there: everybody must, where that is a user whom nobody knows.
fn may_write(path: &Path, status: &fs::Metadata, identity: Identity) -> bool {
    match identity {
        Identity::Own { .. } => access(path, AccessFlags::W_OK).is_ok(),
        Identity::Mapped { .. } => status.mode() & 0o002 != 0,
    }
}

/// A client that sees a report grow could read what the verdict will be.
fn writes_below(request: &RunRequest, tree: &Path) -> bool {
    request
        .reports
        .iter()
        .filter_map(|target| target.destination.file())
        .any(|file| {
            let directory = file
                .parent()
                .filter(|parent| !parent.as_os_str().is_empty())
                .unwrap_or(Path::new("."));
            fs::canonicalize(directory).is_ok_and(|directory| directory.starts_with(tree))
        })
}

fn client_plan(
    request: &RunRequest,
    placed: Placed,
    credential: &str,
) -> Result<ClientPlan, PrepareError> {
    let subject = &request.subject;
    let surroundings = Surroundings {
        base_url: BASE_URL,
        credential,
        home: Path::new(HOME),
        tmp: Path::new(TMP),
    };
    let environment = filled(subject.variables(), surroundings)
        .into_iter()
        .map(|(name, value)| {
            let mut variable = OsString::from(name);
            variable.push("=");
            variable.push(value);
            variable
        });
    Ok(ClientPlan {
        program: placed.path.into(),
        arguments: arguments(request)?,
        environment: environment.collect(),
        directory: subject.directory().unwrap_or(Path::new(HOME)).into(),
    })
}

fn arguments(request: &RunRequest) -> Result<Vec<OsString>, PrepareError> {
    match &request.subject {
        Subject::Program(audit) => Ok(audit.arguments.clone()),
        Subject::Client {
            case,
            profile,
            further,
            ..
        } => {
            let mut arguments: Vec<OsString> = vec![profile.names.program.clone().into()];
            if request.client == ClientProgram::Reference {
                arguments.push(CLIENT_ARGUMENT.into());
            }
            let told = profile.command_line(&case.invocation)?;
            arguments.extend(told.into_iter().map(OsString::from));
            arguments.extend(further.iter().cloned());
            Ok(arguments)
        }
    }
}

/// The case's limits, or ours where those are lower already: nobody can raise a hard limit.
fn resource_limits(limits: &Limits) -> ResourceLimits {
    let lower =
        |resource, wanted: u64| getrlimit(resource).map_or(wanted, |(_, hard)| wanted.min(hard));
    ResourceLimits {
        core_bytes: lower(Resource::RLIMIT_CORE, CORE_BYTES),
        data_bytes: lower(Resource::RLIMIT_DATA, limits.memory_bytes),
        processes: lower(Resource::RLIMIT_NPROC, limits.processes),
        cpu_seconds: lower(Resource::RLIMIT_CPU, limits.cpu.as_secs()),
        open_files: lower(Resource::RLIMIT_NOFILE, limits.open_files),
        file_bytes: lower(Resource::RLIMIT_FSIZE, limits.file_bytes),
    }
}

/// As many as the hard limit allows, and no fewer than a run needs: with less, set-up would fail in places that
/// cannot say why.
fn open_enough_files() -> Result<(), PrepareError> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap_or((0, 0));
    if hard < FEWEST_FILES {
        return Err(PrepareError::FewFiles { hard });
    }
    if soft < FEWEST_FILES {
        setrlimit(Resource::RLIMIT_NOFILE, FEWEST_FILES, hard)
            .map_err(|_| PrepareError::FewFiles { hard })?;
    }
    Ok(())
}

fn listen_outside() -> Result<(UnixListener, String), PrepareError> {
    let name = format!("runner-canary-{}", random::token());
    let listener = SocketAddr::from_abstract_name(name.as_bytes())
        .and_then(|address| UnixListener::bind_addr(&address))
        .map_err(|source| PrepareError::OutsideSocket { source })?;
    Ok((listener, name))
}

/// A directory that we can open and that is not among what the client sees: the caller's home at best, since
/// that is what a reviewer cares for most.
fn outside_directory(binds: &[Bind]) -> Result<OsString, PrepareError> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let current = std::env::current_dir().ok();
    home.into_iter()
        .chain(current)
        .chain(["/usr", "/var", "/lib", "/boot"].map(PathBuf::from))
        .find(|path| path.is_absolute() && fs::read_dir(path).is_ok() && !seen_inside(path, binds))
        .map(PathBuf::into_os_string)
        .ok_or(PrepareError::NoOutsideDirectory)
}

fn seen_inside(path: &Path, binds: &[Bind]) -> bool {
    let ours = [HOME, TMP, PROGRAM_DIRECTORY, "/etc", "/dev", "/proc"].map(Path::new);
    let bound = binds.iter().map(|bind| Path::new(&bind.target));
    ours.into_iter()
        .chain(bound)
        .any(|seen| seen.starts_with(path) || path.starts_with(seen))
        || path.as_os_str().as_bytes() == b"/"
}
