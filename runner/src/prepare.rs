//! Builds the sandbox's plan from a run's request: resolves everything that can be resolved before a namespace
//! exists.
//!
//! Resolves and identifies paths, creates the credential and the canary's targets outside. Starts no process.

pub(crate) mod binds;
mod overlaps;

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{self, Path, PathBuf};

use model::audit::{Audit, ProgramLocation};
use model::case::{Limits, Tier};
use model::layout::PROGRAM_DIRECTORY;
use model::profile::{Surroundings, Unspelt, filled};
use model::quote::shown_path;
use model::secret::{Belongs, SecretScanner};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::unistd::Pid;
use probes::hostile::HOSTILE_ARGUMENT;
use sandbox::canary::targets::{Targets, TargetsError};
use sandbox::identity;
use sandbox::limits::{CORE_BYTES, QUEUE_BYTES};
use sandbox::plan::{
    BASE_URL, Bind, ClientPaths, ClientPlan, Plan, ResourceLimits, RootPlan, ServerPlan,
};
use sys::process::OWN_FILE;
use sys::random;
use sys::read::name_of;
use thiserror::Error;

use crate::collect::copy::MAX_DEPTH;
use crate::home_dirs::HomeDirs;
use crate::program_digest::{CachePlace, PendingDigest, Permitted, permitted};
use crate::provider;
use crate::request::{ClientProgram, RunRequest, StdinChoice};
use crate::workload::Workload;

/// Hidden first argument that makes this executable the reference client.
pub(crate) const CLIENT_ARGUMENT: &str = "__client";

/// Open files that every run needs itself: its sockets and pipes, the shown objects, and a directory for each
/// level of a walk.
pub(crate) const MIN_OPEN_FILES: u64 = 256;
/// Part of them that is neither shown nor walked. About twenty are open while the files are read. The rest is a
/// reserve for descriptors inherited from the caller, since the limit applies to descriptor numbers.
const OWN_FILES: u64 = 96;
/// Directories that a walk holds at one time: the root, every level below it, and the one being listed.
const WALKED: u64 = MAX_DEPTH as u64 + 2;

/// Everything that a run needs, resolved.
pub(crate) struct Prepared {
    pub(crate) plan: Plan,
    /// Scanner for the credential of this run and the values that no report shows.
    pub(crate) secrets: SecretScanner,
    /// Digest of the client's program, which the run starts and waits for.
    pub(crate) digest: PendingDigest,
    /// Path in the report; `None` for the client inside this executable.
    pub(crate) program_path: Option<PathBuf>,
    /// Largest number of connections that the stub holds at one time.
    pub(crate) connections: u64,
    /// A rule shows the case's own file.
    pub(crate) shows_case: bool,
    /// Shown objects, held until the sandbox has mounted them, so that their inodes are not reused.
    _shown: Vec<File>,
    /// Targets of the canary, held while it runs.
    _targets: Targets,
}

/// Error that prevents a run.
#[derive(Debug, Error)]
pub(crate) enum PrepareError {
    #[error("cannot open the program {path}")]
    Program { path: String, source: io::Error },
    #[error("cannot open the runner's own file, {OWN_FILE}")]
    OwnFile { source: io::Error },
    #[error("cannot use /proc: expected the pid namespace of the runner, found another one")]
    OtherProc,
    #[error("cannot resolve {path}, named by a path rule")]
    Rule { path: String, source: io::Error },
    #[error("the path rule {path} leads to {resolved}, which is {what}")]
    ForbiddenRule {
        path: String,
        resolved: String,
        what: &'static str,
    },
    #[error("cannot show {path}: below /tmp, user {user} must own it and each directory above it")]
    OthersTmp { path: String, user: u32 },
    #[error("user {user}, who runs the program, may not {what} {path}")]
    NoRight {
        path: String,
        what: &'static str,
        user: u32,
    },
    #[error(
        "cannot make {writable} writable: {other} shows {same} read-only, by another name or in a sandbox without mounts"
    )]
    Contradiction {
        writable: String,
        other: String,
        same: String,
    },
    #[error(
        "cannot keep {path} read-only in {writable}: its path has a link there, which the program could replace"
    )]
    BehindLink {
        path: String,
        writable: String,
        /// Path of the object without the link.
        real: String,
    },
    #[error(transparent)]
    Targets(#[from] TargetsError),
    #[error("no more than {hard} open files are allowed here, and this run needs {needed}")]
    FewFiles { hard: u64, needed: u64 },
    #[error("cannot make a credential")]
    Credential,
    #[error("cannot encode the settings of the stub")]
    Settings(#[source] serde_json::Error),
    #[error(transparent)]
    Unspelt(#[from] Unspelt),
}

impl PrepareError {
    /// Checks whether the user's policy or command line is at fault, not the host.
    pub(crate) fn is_policy(&self) -> bool {
        match self {
            Self::Program { .. }
            | Self::Rule { .. }
            | Self::ForbiddenRule { .. }
            | Self::OthersTmp { .. }
            | Self::Contradiction { .. }
            | Self::BehindLink { .. }
            | Self::NoRight { .. }
            | Self::Unspelt(_) => true,
            Self::OwnFile { .. }
            | Self::OtherProc
            | Self::Targets(_)
            | Self::Credential
            | Self::Settings(_)
            | Self::FewFiles { .. } => false,
        }
    }
}

/// Resolves everything in `request`, for a sandbox with this isolation and these client paths. `written` has the
/// files and the directory that the run writes, with links resolved.
///
/// # Errors
/// Returns the object that could not be resolved, with its path.
pub(crate) fn prepare(
    request: &RunRequest,
    written: &[PathBuf],
    tier: Tier,
    paths: &ClientPaths,
) -> Result<Prepared, PrepareError> {
    check_proc()?;
    let workload = &request.workload;
    let connections =
        open_enough_files(files_needed(request), workload.sandbox().limits.connections)?;
    let credential = format!("runner-key-{}", random::token());
    let secrets = SecretScanner::new(&credential).map_err(|_| PrepareError::Credential)?;
    let secrets = secrets.hiding(workload.asked_values());
    let (program, program_path) = open_program(&request.client)?;
    let identity = identity::for_caller(tier);
    let mut program_paths = binds::ProgramPaths::of(workload, &program_path);
    let bounds = binds::Bounds {
        home_dirs: HomeDirs::of_caller(),
        written,
        case_file: workload.case_file(),
        identity,
    };
    let of_program = binds::of_program(&program, &program_path, &program_paths.file)?;
    let (binds, shown) = shown(of_program, workload, &bounds, tier)?;
    let case_file = bounds.case_file.as_ref();
    let shows_case =
        case_file.is_some_and(|case| binds.iter().any(|bind| case.starts_with(&bind.source)));
    if tier == Tier::Inherited {
        program_paths = program_paths.in_place(&program_path);
    }
    if let Some(closed) = &paths.closed_directory {
        check_closed(closed, &binds)?;
    }
    let cache = cache(&binds)?.filter(|_| request.use_cache);
    let targets = Targets::make(tier, &binds, paths)?;
    let limits = &workload.sandbox().limits;
    let plan = Plan {
        runner_pid: i32::try_from(std::process::id()).unwrap_or(0),
        tier,
        identity,
        server: server_plan(workload, &credential, connections)?,
        root: RootPlan {
            home: paths.home.clone().into(),
            tmp: paths.tmp.clone().into(),
            work: paths.work.clone().into(),
            bytes: limits.home_bytes,
            files: limits.home_files,
            exec: workload.sandbox().exec.clone(),
            binds,
            devices: workload.devices(),
        },
        client: client_plan(request, program_paths, &credential, paths)?,
        limits: resource_limits(limits, tier),
        process_limit: limits.processes,
        probe: targets.plan(paths),
        // Lookups are reported by paths of a root that is the client's own.
        lookups: request.lookups && tier == Tier::Namespace,
        #[cfg(feature = "weaken")]
        weakened: sandbox::weaken::from_env(),
    };
    let is_own_file = hidden_argument(&request.client).is_some();
    let digest = if is_own_file {
        PendingDigest::built_in()
    } else {
        PendingDigest::of(program, cache).map_err(failed_to_open(&program_path))?
    };
    Ok(Prepared {
        plan,
        secrets,
        digest,
        program_path: (!is_own_file).then_some(program_path),
        connections,
        shows_case,
        _shown: shown,
        _targets: targets,
    })
}

/// Returns the parts of the host that the client sees, its program included, in the order of mounting; and the
/// handles opened for them.
fn shown(
    program: Bind,
    workload: &Workload,
    bounds: &binds::Bounds<'_>,
    tier: Tier,
) -> Result<(Vec<Bind>, Vec<File>), PrepareError> {
    let (mut binds, mut handles) = (vec![program], Vec::new());
    for rule in workload.path_rules() {
        if let Some((bind, handle)) = binds::of_rule(rule, bounds)? {
            binds.push(bind);
            handles.push(handle);
        }
    }
    handles.extend(overlaps::settle(&mut binds, tier)?);
    if tier == Tier::Inherited {
        for bind in &mut binds {
            bind.target.clone_from(&bind.source);
        }
    }
    // A directory is mounted before its content, because a later mount would hide an earlier one below it.
    binds.sort_by(|one, other| one.target.cmp(&other.target));
    Ok((binds, handles))
}

/// Refuses the /proc of another pid namespace: its numbers name other processes, whose id maps root would write.
fn check_proc() -> Result<(), PrepareError> {
    let failed = |source| PrepareError::OwnFile { source };
    let own = fs::read_link("/proc/self").map_err(failed)?;
    if own.to_str() == Some(&Pid::this().to_string()) {
        return Ok(());
    }
    Err(PrepareError::OtherProc)
}

fn server_plan(
    workload: &Workload,
    credential: &str,
    open_connections: u64,
) -> Result<ServerPlan, PrepareError> {
    let limits = &workload.sandbox().limits;
    let scenario = workload.scenario();
    let needs_elsewhere = scenario.needs_elsewhere();
    let settings = provider::Settings {
        scenario,
        belongs: match workload.credential_header() {
            Some(header) => Belongs::InHeaderOfMessage(header.to_owned()),
            // A program may send its credential in any authentication header, if only to its provider.
            None => Belongs::InAnyAuthHeader,
        },
        body_bytes: limits.body_bytes,
        requests: limits.requests,
        connections: limits.connections,
        open_connections,
    };
    Ok(ServerPlan {
        settings: serde_json::to_string(&settings).map_err(PrepareError::Settings)?,
        needs_elsewhere,
        is_known: workload.knows_stub(),
        credential: credential.to_owned(),
    })
}

fn open_program(client: &ClientProgram) -> Result<(File, PathBuf), PrepareError> {
    match client {
        ClientProgram::Reference | ClientProgram::Hostile => {
            let failed = |source| PrepareError::OwnFile { source };
            let path = fs::read_link(OWN_FILE).map_err(failed)?;
            Ok((File::open(OWN_FILE).map_err(failed)?, path))
        }
        ClientProgram::File(path) => {
            // The name is read from the opened file. O_NONBLOCK: if a FIFO has replaced the program, opening it
            // must not wait.
            let program = OpenOptions::new()
                .read(true)
                .custom_flags(libc::O_NONBLOCK)
                .open(path)
                .map_err(failed_to_open(path))?;
            let resolved = name_of(&program).map_err(failed_to_open(path))?;
            Ok((program, resolved))
        }
    }
}

fn failed_to_open(program: &Path) -> impl Fn(io::Error) -> PrepareError {
    let path = program.display().to_string();
    move |source| PrepareError::Program {
        path: path.clone(),
        source,
    }
}

/// Returns the first argument that makes this executable the client; `None` for a client in a file of its own.
fn hidden_argument(client: &ClientProgram) -> Option<&'static str> {
    match client {
        ClientProgram::Reference => Some(CLIENT_ARGUMENT),
        ClientProgram::Hostile => Some(HOSTILE_ARGUMENT),
        ClientProgram::File(_) => None,
    }
}

fn client_plan(
    request: &RunRequest,
    program_paths: binds::ProgramPaths,
    credential: &str,
    paths: &ClientPaths,
) -> Result<ClientPlan, PrepareError> {
    let workload = &request.workload;
    let surroundings = Surroundings {
        base_url: BASE_URL,
        credential,
        home: &paths.home,
        tmp: &paths.tmp,
    };
    let environment =
        filled(workload.variables(), surroundings)
            .into_iter()
            .map(|(name, value)| {
                let mut variable = OsString::from(name);
                variable.push("=");
                variable.push(value);
                variable
            });
    Ok(ClientPlan {
        arguments: arguments(request, &program_paths.path)?,
        program: program_paths.path.into(),
        environment: environment.collect(),
        directory: workload.directory().unwrap_or(&paths.work).into(),
        reads_input: request.stdin != StdinChoice::Nothing,
    })
}

/// Returns another argv[0], if the typed one is relative and the program starts in another directory than its
/// caller.
fn argv0(audit: &Audit, program: &Path) -> Option<OsString> {
    let typed = Path::new(audit.arguments.first()?);
    let is_lost = audit.directory.is_none() && typed.is_relative() && typed.iter().count() > 1;
    if !is_lost {
        return None;
    }
    match audit.place {
        ProgramLocation::Alone if program.starts_with(PROGRAM_DIRECTORY) => Some(program.into()),
        ProgramLocation::Alone | ProgramLocation::Own { .. } => {
            path::absolute(typed).ok().map(PathBuf::into_os_string)
        }
    }
}

fn arguments(request: &RunRequest, program: &Path) -> Result<Vec<OsString>, PrepareError> {
    match &request.workload {
        Workload::Program(audit) | Workload::Inline { program: audit, .. } => {
            let mut arguments = audit.arguments.clone();
            if let Some((first, called)) = arguments.first_mut().zip(argv0(audit, program)) {
                *first = called;
            }
            Ok(arguments)
        }
        Workload::Client {
            case,
            profile,
            further,
            ..
        } => {
            let mut arguments: Vec<OsString> = vec![profile.names.program.clone().into()];
            arguments.extend(hidden_argument(&request.client).map(OsString::from));
            let command_line = profile.command_line(&case.invocation)?;
            arguments.extend(command_line.into_iter().map(OsString::from));
            arguments.extend(further.iter().cloned());
            Ok(arguments)
        }
    }
}

/// Returns the case's limits, or the runner's own hard limits if lower: raising a hard limit needs privileges.
fn resource_limits(limits: &Limits, tier: Tier) -> ResourceLimits {
    ResourceLimits {
        core_bytes: CORE_BYTES,
        data_bytes: limits.memory_bytes,
        processes: match tier {
            Tier::Namespace => limits.processes,
            // Without a user namespace, RLIMIT_NPROC would count every process of the user.
            Tier::Inherited => u64::MAX,
        },
        cpu_seconds: limits.cpu.as_secs(),
        cpu_hard_seconds: limits.cpu.as_secs() + 1,
        open_files: limits.open_files,
        file_bytes: limits.file_bytes,
        queue_bytes: QUEUE_BYTES,
    }
    .within_hard_limits()
}

/// Returns the number of files that the run opens. A rule holds its object open. A copy of the client's files
/// holds a directory of its own for each walked one.
fn files_needed(request: &RunRequest) -> u64 {
    let is_copied = request.out.is_some() || request.keep_home;
    let walked = if is_copied { 2 * WALKED } else { WALKED };
    let shown = request.workload.path_rules().len() as u64;
    MIN_OPEN_FILES.max(OWN_FILES + shown + walked)
}

/// Raises the soft limit on open files to the necessary number. With less, set-up would fail in steps that cannot
/// name the cause, and a client could make its directories too deep for the walk. The client's own limits depend
/// only on the hard limit.
///
/// Returns the number of connections that the stub may hold, since it inherits the limit: the case's number, or
/// what the hard limit leaves.
pub(crate) fn open_enough_files(needed: u64, connections: u64) -> Result<u64, PrepareError> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap_or((0, 0));
    let too_few = || PrepareError::FewFiles { hard, needed };
    if hard < needed {
        return Err(too_few());
    }
    let wanted = needed.max(OWN_FILES.saturating_add(connections)).min(hard);
    if soft < wanted {
        setrlimit(Resource::RLIMIT_NOFILE, wanted, hard).map_err(|_| too_few())?;
    }
    Ok(connections.min(hard - OWN_FILES))
}

/// Returns the cache, if the client cannot see it. Refuses rules that let the client write there, even if this run does
/// without the cache.
fn cache(binds: &[Bind]) -> Result<Option<CachePlace>, PrepareError> {
    match permitted(binds) {
        Permitted::Use(place) => Ok(Some(place)),
        Permitted::Avoid => Ok(None),
        Permitted::Refuse(source) => Err(PrepareError::ForbiddenRule {
            path: shown_path(&source),
            resolved: shown_path(&source),
            what: "where the runner keeps digests that later runs trust, or holds that directory",
        }),
    }
}

/// Refuses rules that show the directory of the home, because they would also show the objects beside it.
fn check_closed(closed: &Path, binds: &[Bind]) -> Result<(), PrepareError> {
    let opened = binds.iter().map(|bind| Path::new(&bind.source));
    match opened.into_iter().find(|source| closed.starts_with(source)) {
        None => Ok(()),
        Some(source) => Err(PrepareError::ForbiddenRule {
            path: shown_path(source),
            resolved: shown_path(source),
            what: "where this run keeps the program's home: name another directory in TMPDIR",
        }),
    }
}
