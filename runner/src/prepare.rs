//! From a run's request to the sandbox's plan: everything that can be resolved before a namespace exists.
//!
//! Paths are resolved and identified here, the credential is made here, and so are the targets of the
//! canaries outside. Nothing in here makes a process.

pub(crate) mod binds;
mod overlaps;

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{self, Path, PathBuf};

use model::audit::{Audit, ProgramLocation};
use model::case::{Limits, Tier};
use model::layout::PROGRAM_DIRECTORY;
use model::profile::{Surroundings, Unspelt, filled};
use model::quote::shown_path;
use model::report::Purpose;
use model::secret::{Belongs, SecretScanner};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use probes::hostile::HOSTILE_ARGUMENT;
use sandbox::canary::targets::{Targets, TargetsError};
use sandbox::identity;
use sandbox::limits::{CORE_BYTES, QUEUE_BYTES};
use sandbox::plan::{
    BASE_URL, Bind, ClientPaths, ClientPlan, Plan, ResourceLimits, RootPlan, ServerPlan,
};
use sys::process::OWN_FILE;
use sys::random;
use thiserror::Error;

use crate::collect::copy::DEEPEST;
use crate::home_dirs::HomeDirs;
use crate::provider;
use crate::request::{ClientProgram, RunRequest};
use crate::workload::Workload;
use sys::read::name_of;

/// Hidden first argument with which our own file is the reference client.
pub(crate) const CLIENT_ARGUMENT: &str = "__client";

/// Open files that every run needs of the runner's own: its sockets and pipes, what it shows the client, and a directory
/// for each level of a walk.
pub(crate) const FEWEST_FILES: u64 = 256;
/// What of that is neither shown nor walked. Some twenty are open while the files are read; the rest is for what the
/// caller left open, since the limit is one on numbers.
const OWN_FILES: u64 = 96;
/// Directories that a walk holds at one time: the root, every level below it, and the one that is being listed.
const WALKED: u64 = DEEPEST as u64 + 2;

/// What a run is made of.
pub(crate) struct Prepared {
    pub(crate) plan: Plan,
    /// The credential of this run, to be searched for, and the values that no report shows.
    pub(crate) secrets: SecretScanner,
    /// The client's program, opened, to be hashed beside the run.
    pub(crate) program: File,
    /// As the report names it; `None` for the client that this executable carries.
    pub(crate) program_path: Option<PathBuf>,
    /// Connections that the stub holds at one time.
    pub(crate) connections: u64,
    /// What is shown: held until the sandbox has taken it, so that its device and inode are nobody else's.
    _shown: Vec<File>,
    /// Held for as long as the canaries aim at them.
    _targets: Targets,
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
    #[error("cannot open the runner's own file, {OWN_FILE}")]
    OwnFile { source: std::io::Error },
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
    #[error("user {user}, as whom the program runs, may not {what} {path}, which is to be shown")]
    NoRight {
        path: String,
        what: &'static str,
        user: u32,
    },
    #[error(
        "{writable} is to be writable, and {other} shows {same} of it read-only by another name or in a sandbox without mounts"
    )]
    Contradiction {
        writable: String,
        other: String,
        same: String,
    },
    #[error(
        "{path} is to be read-only in {writable}, which is writable, and leads through a link there that the program could replace"
    )]
    BehindLink {
        path: String,
        writable: String,
        /// Its name without the link.
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
    /// Whether the user's policy or command line is at fault, and not the host.
    pub(crate) fn is_policy(&self) -> bool {
        match self {
            Self::Program { .. }
            | Self::Rule { .. }
            | Self::ForbiddenRule { .. }
            | Self::Contradiction { .. }
            | Self::BehindLink { .. }
            | Self::NoRight { .. }
            | Self::Unspelt(_) => true,
            Self::OwnFile { .. }
            | Self::Targets(_)
            | Self::Credential
            | Self::Settings(_)
            | Self::FewFiles { .. } => false,
        }
    }
}

/// Resolves everything that `request` names, for a sandbox of this tier whose client has these places. `written` are
/// the files and the directory that the run writes to, free of links.
///
/// # Errors
/// What could not be resolved, with its path.
pub(crate) fn prepare(
    request: &RunRequest,
    written: &[PathBuf],
    tier: Tier,
    places: &ClientPaths,
) -> Result<Prepared, PrepareError> {
    let workload = &request.workload;
    let connections =
        open_enough_files(files_needed(request), workload.sandbox().limits.connections)?;
    let credential = format!("runner-key-{}", random::token());
    let secrets = SecretScanner::new(&credential).map_err(|_| PrepareError::Credential)?;
    let secrets = secrets.hiding(workload.asked_values());
    let (program, program_path) = open_program(&request.client)?;
    let identity = identity::for_caller(tier);
    let mut placed = binds::Placed::of(workload, &program_path);
    let bounds = binds::Bounds {
        homes: HomeDirs::known(std::env::var_os("HOME").as_deref().map(Path::new)),
        written,
        identity,
    };
    let of_program = binds::of_program(&program, &program_path, &placed.file)?;
    let (binds, shown) = shown(of_program, workload, &bounds, tier)?;
    if tier == Tier::Inherited {
        placed = placed.in_place(&program_path);
    }
    if let Some(closed) = &places.closed_directory {
        stays_closed(closed, &binds)?;
    }
    let targets = Targets::make(tier, &binds, places)?;
    let limits = &workload.sandbox().limits;
    let plan = Plan {
        runner_pid: i32::try_from(std::process::id()).unwrap_or(0),
        tier,
        identity,
        server: server_plan(workload, &credential, connections)?,
        root: RootPlan {
            home: places.home.clone().into(),
            tmp: places.tmp.clone().into(),
            work: places.work.clone().into(),
            bytes: limits.home_bytes,
            files: limits.home_files,
            binds,
            devices: workload.devices(),
        },
        client: client_plan(request, placed, &credential, places)?,
        limits: resource_limits(limits, tier),
        process_limit: limits.processes,
        probe: targets.plan(places),
        // They are told by paths of a root that is the client's own.
        lookups: workload.purpose() == Purpose::Audit && tier == Tier::Namespace,
        #[cfg(feature = "weaken")]
        weakened: sandbox::weaken::from_env(),
    };
    let is_own_file = hidden_argument(&request.client).is_some();
    Ok(Prepared {
        plan,
        secrets,
        program,
        program_path: (!is_own_file).then_some(program_path),
        connections,
        _shown: shown,
        _targets: targets,
    })
}

/// What the client sees of the host, its program first of all, in the order in which it is mounted; and what of it was
/// opened.
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
    // A directory before what lies in it: the one mount would hide the other.
    binds.sort_by(|one, other| one.target.cmp(&other.target));
    Ok((binds, handles))
}

fn server_plan(
    workload: &Workload,
    credential: &str,
    connections: u64,
) -> Result<ServerPlan, PrepareError> {
    let limits = &workload.sandbox().limits;
    let scenario = workload.scenario();
    let needs_elsewhere = scenario.needs_elsewhere();
    let settings = provider::Settings {
        scenario,
        belongs: match workload.credential_header() {
            Some(header) => Belongs::InHeaderOfMessage(header.to_owned()),
            // How a program sends its credential is its own affair, as long as it goes to its provider.
            None => Belongs::InAnyAuthHeader,
        },
        body_bytes: limits.body_bytes,
        requests: limits.requests,
        connections,
    };
    Ok(ServerPlan {
        settings: serde_json::to_string(&settings).map_err(PrepareError::Settings)?,
        needs_elsewhere,
        is_known: workload.knows_stub(),
        credential: credential.to_owned(),
    })
}

fn open_program(client: &ClientProgram) -> Result<(File, PathBuf), PrepareError> {
    let failed = |path: &Path| {
        let path = path.display().to_string();
        |source| PrepareError::Program { path, source }
    };
    match client {
        ClientProgram::Reference | ClientProgram::Hostile => {
            let failed = |source| PrepareError::OwnFile { source };
            let path = fs::read_link(OWN_FILE).map_err(failed)?;
            Ok((File::open(OWN_FILE).map_err(failed)?, path))
        }
        ClientProgram::File(path) => {
            // Its name is asked for once it is open. A FIFO that took its place is not waited for.
            let program = OpenOptions::new()
                .read(true)
                .custom_flags(libc::O_NONBLOCK)
                .open(path)
                .map_err(failed(path))?;
            let resolved = name_of(&program).map_err(failed(path))?;
            Ok((program, resolved))
        }
    }
}

/// The first argument with which our own file is this client; `None` where it is a file of its own.
fn hidden_argument(client: &ClientProgram) -> Option<&'static str> {
    match client {
        ClientProgram::Reference => Some(CLIENT_ARGUMENT),
        ClientProgram::Hostile => Some(HOSTILE_ARGUMENT),
        ClientProgram::File(_) => None,
    }
}

fn client_plan(
    request: &RunRequest,
    placed: binds::Placed,
    credential: &str,
    places: &ClientPaths,
) -> Result<ClientPlan, PrepareError> {
    let workload = &request.workload;
    let surroundings = Surroundings {
        base_url: BASE_URL,
        credential,
        home: &places.home,
        tmp: &places.tmp,
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
        arguments: arguments(request, &placed.path)?,
        program: placed.path.into(),
        environment: environment.collect(),
        directory: workload.directory().unwrap_or(&places.work).into(),
    })
}

/// A relative name is none where the program starts in another directory than its caller's: it is told its place.
fn called(audit: &Audit, place: &Path) -> Option<OsString> {
    let typed = Path::new(audit.arguments.first()?);
    let is_lost = audit.directory.is_none() && typed.is_relative() && typed.iter().count() > 1;
    if !is_lost {
        return None;
    }
    match audit.place {
        ProgramLocation::Alone if place.starts_with(PROGRAM_DIRECTORY) => Some(place.into()),
        ProgramLocation::Alone | ProgramLocation::Own { .. } => {
            path::absolute(typed).ok().map(PathBuf::into_os_string)
        }
    }
}

fn arguments(request: &RunRequest, place: &Path) -> Result<Vec<OsString>, PrepareError> {
    match &request.workload {
        Workload::Program(audit) => {
            let mut arguments = audit.arguments.clone();
            if let Some((first, called)) = arguments.first_mut().zip(called(audit, place)) {
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
            let told = profile.command_line(&case.invocation)?;
            arguments.extend(told.into_iter().map(OsString::from));
            arguments.extend(further.iter().cloned());
            Ok(arguments)
        }
    }
}

/// The case's limits, or ours where those are lower already.
fn resource_limits(limits: &Limits, tier: Tier) -> ResourceLimits {
    ResourceLimits {
        core_bytes: CORE_BYTES,
        data_bytes: limits.memory_bytes,
        processes: match tier {
            Tier::Namespace => limits.processes,
            // It would count whatever else the user has running.
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

/// A rule holds what it shows; a copy of the client's files holds a directory of its own beside each that is walked.
fn files_needed(request: &RunRequest) -> u64 {
    let is_copied = request.out.is_some() || request.keep_home;
    let walked = if is_copied { 2 * WALKED } else { WALKED };
    let shown = request.workload.path_rules().len() as u64;
    FEWEST_FILES.max(OWN_FILES + shown + walked)
}

/// Raises the soft limit to what is needed: with less, set-up would fail in places that cannot say why, and a client
/// could choose how deep its directories are, so that there is no evidence of it. The client has limits of its own,
/// which go by the hard one alone.
///
/// Returns how many connections the stub, which inherits the limit, may hold: all of the case, or as many as the hard
/// limit leaves.
fn open_enough_files(needed: u64, connections: u64) -> Result<u64, PrepareError> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap_or((0, 0));
    let few = || PrepareError::FewFiles { hard, needed };
    if hard < needed {
        return Err(few());
    }
    let wanted = needed.max(OWN_FILES.saturating_add(connections)).min(hard);
    if soft < wanted {
        setrlimit(Resource::RLIMIT_NOFILE, wanted, hard).map_err(|_| few())?;
    }
    Ok(connections.min(hard - OWN_FILES))
}

/// A rule that shows where the home lies would open what lies beside it.
fn stays_closed(closed: &Path, binds: &[Bind]) -> Result<(), PrepareError> {
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
