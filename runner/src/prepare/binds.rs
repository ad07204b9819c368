//! What of the host the sandbox shows: each rule resolved to one object, which is mounted only if it is still the
//! same then.
//!
//! Owns what no rule may lead to. Must not know how anything is mounted.

use std::ffi::OsStr;
use std::fs::{self, File, FileType, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};

use super::PrepareError;
use crate::audit::Place;
use crate::case::{Access, PathRule, Presence};
use crate::cli::RunRequest;
use crate::policy::shown_path;
use crate::sandbox::identity;
use crate::sandbox::plan::{Bind, BindKind, Identity, PROGRAM_DIRECTORY};
use crate::subject::Subject;

/// Trees that no path rule may lead into: they are the kernel's or hold other programs' sockets.
pub(crate) const FORBIDDEN: [&str; 4] = ["/proc", "/sys", "/dev", "/run"];

/// Where the program lies inside.
pub(super) struct Placed {
    /// Its file.
    pub(super) file: PathBuf,
    /// What is given to execve(2): the file, or a link to it.
    pub(super) path: PathBuf,
}

impl Placed {
    pub(super) fn of(subject: &Subject, file: &Path) -> Self {
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

    /// Where no root of its own is made, it lies where it is. A path that its user chose stays.
    pub(super) fn in_place(self, file: &Path) -> Self {
        let path = if self.path.starts_with(PROGRAM_DIRECTORY) {
            file.into()
        } else {
            self.path
        };
        Self {
            file: file.into(),
            path,
        }
    }

    fn at(path: PathBuf) -> Self {
        Self {
            file: path.clone(),
            path,
        }
    }
}

/// The program itself.
pub(super) fn of_program(program: &File, path: &Path, inside: &Path) -> Result<Bind, PrepareError> {
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
pub(super) fn of_rule(
    rule: &PathRule,
    request: &RunRequest,
    identity: Identity,
) -> Result<Option<Bind>, PrepareError> {
    let failed = |source| PrepareError::Rule {
        path: shown_path(&rule.path),
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
    may_lead(rule, &resolved, status.file_type(), request)?;
    has_right(rule, &resolved, &status, identity)?;
    Ok(Some(Bind {
        source: resolved.into(),
        target: rule.path.clone().into(),
        device: status.dev(),
        inode: status.ino(),
        kind: if status.is_dir() {
            BindKind::Directory
        } else {
            BindKind::File
        },
        access: rule.access,
    }))
}

/// Refuses what is the kernel's, another program's, or this run's own.
fn may_lead(
    rule: &PathRule,
    resolved: &Path,
    kind: FileType,
    request: &RunRequest,
) -> Result<(), PrepareError> {
    let forbidden = FORBIDDEN.iter().any(|tree| resolved.starts_with(tree));
    let what = match () {
        () if forbidden => "below /proc, /sys, /dev or /run",
        () if kind.is_socket() => "a socket",
        () if !kind.is_file() && !kind.is_dir() => "neither a file nor a directory",
        () if writes_below(request, resolved) => "where this run writes a report",
        () => return Ok(()),
    };
    Err(PrepareError::ForbiddenRule {
        path: shown_path(&rule.path),
        resolved: shown_path(resolved),
        what,
    })
}

/// Whether the program's user may do there what the rule says: everybody must, where that is a user whom nobody
/// knows. What lies below is for the kernel to say.
fn has_right(
    rule: &PathRule,
    resolved: &Path,
    status: &Metadata,
    identity: Identity,
) -> Result<(), PrepareError> {
    let (what, flag, bits) = match rule.access {
        Access::Read | Access::ReadExecute => ("read", AccessFlags::R_OK, 0o004),
        Access::Write => ("write", AccessFlags::W_OK, 0o002),
    };
    let may_enter = AccessFlags::X_OK;
    let allowed = match identity {
        Identity::Own { .. } | Identity::Unmapped { .. } => {
            access(resolved, flag).is_ok()
                || (flag == AccessFlags::R_OK && access(resolved, may_enter).is_ok())
        }
        // What cannot be listed or read may still be entered or run.
        Identity::Mapped { .. } => {
            let bits = if flag == AccessFlags::R_OK {
                bits | 0o001
            } else {
                bits
            };
            status.mode() & bits != 0
        }
    };
    if allowed {
        return Ok(());
    }
    let (user, _) = identity::host_ids(identity);
    Err(PrepareError::NoRight {
        path: shown_path(&rule.path),
        what,
        user,
    })
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
