//! Binds: resolves each path rule to one object of the host. The sandbox mounts it only if it is still the same
//! object.
//!
//! Owns the list of forbidden targets. Must not know how objects are mounted.

use std::ffi::OsStr;
use std::fs::{self, File, FileType, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use model::audit::ProgramLocation;
use model::case::{Access, PathRule, Presence};
use model::layout::PROGRAM_DIRECTORY;
use model::quote::shown_path;
use nix::unistd::{AccessFlags, Uid, access};
use sandbox::identity;
use sandbox::plan::{Bind, BindKind, Identity};
use sys::read::name_of;

use super::PrepareError;
use crate::home_dirs::HomeDirs;
use crate::own_tmp::{self, Owner};
use crate::workload::Workload;

/// Trees that no path rule may lead into: they belong to the kernel or hold other programs' sockets.
pub(crate) const FORBIDDEN: [&str; 4] = ["/proc", "/sys", "/dev", "/run"];

/// Directories that no rule may show whole through a link, in addition to [`FORBIDDEN`]: they hold those trees,
/// all homes or objects of the sandbox's own.
const NEVER_WHOLE: [&str; 3] = ["/etc", "/home", "/tmp"];

/// Facts that every rule is checked against.
pub(super) struct Bounds<'a> {
    pub(super) home_dirs: HomeDirs,
    /// Files and directories that this run writes to, with links resolved.
    pub(super) written: &'a [PathBuf],
    /// The case's own file, with links resolved.
    pub(super) case_file: Option<PathBuf>,
    pub(super) identity: Identity,
}

/// An opened object of the host. While the handle is open, no other object gets its device and inode.
pub(super) struct Object {
    pub(super) handle: File,
    pub(super) status: Metadata,
    /// Path without links.
    pub(super) path: PathBuf,
}

impl Object {
    /// Opens `path` through links, then reads the path of the opened object, so that the checks see the same
    /// object.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let handle = fs::OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_PATH)
            .open(path)?;
        let status = handle.metadata()?;
        let path = name_of(&handle)?;
        let named = fs::symlink_metadata(&path)?;
        if (named.dev(), named.ino()) != (status.dev(), status.ino()) {
            return Err(io::Error::from_raw_os_error(libc::ESTALE));
        }
        Ok(Self {
            handle,
            status,
            path,
        })
    }

    pub(super) fn bind(&self, target: &Path, access: Access) -> Bind {
        Bind {
            source: self.path.clone().into(),
            target: target.into(),
            device: self.status.dev(),
            inode: self.status.ino(),
            kind: if self.status.is_dir() {
                BindKind::Directory
            } else {
                BindKind::File
            },
            access,
        }
    }
}

/// Paths of the program inside.
pub(super) struct ProgramPaths {
    /// Path of the file.
    pub(super) file: PathBuf,
    /// Path for execve(2): the file, or a link to it.
    pub(super) path: PathBuf,
}

impl ProgramPaths {
    pub(super) fn of(workload: &Workload, file: &Path) -> Self {
        let own = |name: &OsStr| Path::new(PROGRAM_DIRECTORY).join(name);
        match workload {
            Workload::Client { profile, .. } => Self::at(own(profile.names.program.as_ref())),
            Workload::Program(audit) | Workload::Inline { program: audit, .. } => {
                match &audit.place {
                    ProgramLocation::Own { path } => Self {
                        file: file.into(),
                        path: path.clone(),
                    },
                    // The program keeps the name that it was called by, because multi-call programs depend on it.
                    ProgramLocation::Alone => {
                        let called = audit.arguments.first().map(Path::new);
                        let called = called.and_then(Path::file_name).or(file.file_name());
                        Self::at(own(called.unwrap_or_default()))
                    }
                }
            }
        }
    }

    /// Returns the paths for a sandbox without its own root: the program stays in its place, and so does a path
    /// that the user chose.
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

/// Builds the bind of the program itself.
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

/// Builds the bind of a rule; `None` for an optional path that this host does not have.
pub(super) fn of_rule(
    rule: &PathRule,
    bounds: &Bounds<'_>,
) -> Result<Option<(Bind, File)>, PrepareError> {
    let object = match Object::open(&rule.path) {
        Err(error)
            if rule.presence == Presence::IfPresent && error.kind() == ErrorKind::NotFound =>
        {
            return Ok(None);
        }
        opened => opened.map_err(|source| PrepareError::Rule {
            path: shown_path(&rule.path),
            source,
        })?,
    };
    check_target(rule, &object.path, object.status.file_type(), bounds)?;
    check_owner(&rule.path, &object)?;
    check_permission(rule, &object.path, &object.status, bounds.identity)?;
    let bind = object.bind(&rule.path, rule.access);
    Ok(Some((bind, object.handle)))
}

/// Refuses targets that belong to the kernel, to other programs or to this run. Through a link, refuses also
/// targets that a user cannot mean by the link's name.
fn check_target(
    rule: &PathRule,
    resolved: &Path,
    kind: FileType,
    bounds: &Bounds<'_>,
) -> Result<(), PrepareError> {
    let holds = |trees: &[&str]| {
        let mut trees = trees.iter().map(Path::new);
        trees.any(|tree| tree.starts_with(resolved))
    };
    let named = rule.path.as_path();
    let is_link = named != resolved;
    let forbidden = FORBIDDEN.iter().any(|tree| resolved.starts_with(tree));
    // A client that can read its case may also read the lock file and earlier reports beside it; the report says so.
    let reads_its_case = rule.access != Access::Write
        && (bounds.case_file.as_ref()).is_some_and(|case| case.starts_with(resolved));
    let writes_below =
        || !reads_its_case && bounds.written.iter().any(|file| file.starts_with(resolved));
    let what = match () {
        () if forbidden => "below /proc, /sys, /dev or /run",
        () if is_link && (holds(&FORBIDDEN) || holds(&NEVER_WHOLE)) => {
            "one of /, /etc, /home and /tmp, or holds one"
        }
        () if is_link && !bounds.home_dirs.has_name(named) && bounds.home_dirs.are_in(resolved) => {
            "a whole home, or holds one"
        }
        () if kind.is_socket() => "a socket",
        () if !kind.is_file() && !kind.is_dir() => "neither a file nor a directory",
        // A client that sees a report grow could learn the verdict, and from a lock file the expected
        // behaviour.
        () if writes_below() => {
            "where this run writes a report or its evidence, or has its lock file"
        }
        () => return Ok(()),
    };
    Err(PrepareError::ForbiddenRule {
        path: shown_path(named),
        resolved: shown_path(resolved),
        what,
    })
}

/// Refuses what other users own or could replace below /tmp, by the rule's name and without links.
fn check_owner(named: &Path, object: &Object) -> Result<(), PrepareError> {
    for path in [named, &object.path] {
        let owner = own_tmp::owner(path).map_err(|errno| PrepareError::Rule {
            path: shown_path(named),
            source: errno.into(),
        })?;
        let is_own = match owner {
            Owner::Elsewhere => true,
            Owner::Caller(device, inode) => {
                path != object.path || (device, inode) == (object.status.dev(), object.status.ino())
            }
            Owner::Other => false,
        };
        if !is_own {
            return Err(PrepareError::OthersTmp {
                path: shown_path(path),
                user: Uid::effective().as_raw(),
            });
        }
    }
    Ok(())
}

/// Checks the permission of the program's user for the rule's access. An unused user id needs the permission of
/// others. Objects below the path are left to the kernel.
fn check_permission(
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
        // A directory that cannot be listed may still be entered, and a file that cannot be read may still be
        // executed.
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn rule(path: &Path) -> PathRule {
        PathRule {
            path: path.into(),
            access: Access::ReadExecute,
            presence: Presence::Required,
            reason: String::new(),
        }
    }

    fn bounds<'a>(home: &Path, reports: &'a [PathBuf]) -> Bounds<'a> {
        Bounds {
            home_dirs: HomeDirs::known(Some(home)),
            written: reports,
            case_file: None,
            identity: Identity::Unmapped { uid: 0, gid: 0 },
        }
    }

    /// Returns the message of a rejected rule.
    #[track_caller]
    fn refused(path: &Path, bounds: &Bounds<'_>) -> &'static str {
        match of_rule(&rule(path), bounds) {
            Err(PrepareError::ForbiddenRule { what, .. }) => what,
            Err(error) => panic!("{}: {error}", path.display()),
            Ok(_) => panic!("{} is shown", path.display()),
        }
    }

    #[test]
    fn a_link_to_what_is_never_shown_whole_is_refused_and_one_to_a_part_of_it_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let bounds = bounds(Path::new("/nonexistent"), &[]);
        for target in ["/", "/etc", "/home", "/tmp", "/proc/self/root"] {
            let link = root.join("link");
            symlink(target, &link).unwrap();
            let what = refused(&link, &bounds);
            assert_eq!(
                what, "one of /, /etc, /home and /tmp, or holds one",
                "{target}"
            );
            fs::remove_file(&link).unwrap();
        }
        for target in ["/proc", "/sys", "/dev"] {
            let link = root.join("link");
            symlink(target, &link).unwrap();
            assert_eq!(
                refused(&link, &bounds),
                "below /proc, /sys, /dev or /run",
                "{target}"
            );
            fs::remove_file(&link).unwrap();
        }
        let (part, link) = (root.join("part"), root.join("link"));
        fs::create_dir(&part).unwrap();
        symlink(&part, &link).unwrap();
        let (bind, handle) = of_rule(&rule(&link), &bounds).unwrap().unwrap();
        assert_eq!((bind.source, bind.target), (part.into(), link.into()));
        assert_eq!(handle.metadata().unwrap().ino(), bind.inode);
    }

    #[test]
    fn a_home_is_shown_whole_by_its_own_name_and_by_no_other() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().canonicalize().unwrap().join(name);
        fs::create_dir_all(at("homes/me")).unwrap();
        for (target, link) in [
            ("homes/me", "home"),
            ("homes/me", "other"),
            ("homes", "all"),
        ] {
            symlink(at(target), at(link)).unwrap();
        }
        let bounds = bounds(&at("home"), &[]);
        for name in ["home", "homes/me"] {
            assert!(
                of_rule(&rule(&at(name)), &bounds).unwrap().is_some(),
                "{name}"
            );
        }
        for name in ["other", "all", "all/me"] {
            assert_eq!(
                refused(&at(name), &bounds),
                "a whole home, or holds one",
                "{name}"
            );
        }
    }

    #[test]
    fn nothing_is_shown_that_holds_a_report_or_is_one() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let reports = [root.join("out/report.json")];
        fs::create_dir(root.join("out")).unwrap();
        fs::create_dir(root.join("other")).unwrap();
        fs::write(&reports[0], "").unwrap();
        let bounds = bounds(Path::new("/nonexistent"), &reports);
        for path in [&root, &root.join("out"), &reports[0]] {
            assert_eq!(
                refused(path, &bounds),
                "where this run writes a report or its evidence, or has its lock file"
            );
        }
        assert!(
            of_rule(&rule(&root.join("other")), &bounds)
                .unwrap()
                .is_some()
        );
    }

    #[test]
    fn what_is_not_there_is_an_error_unless_it_is_for_other_hosts() {
        let bounds = bounds(Path::new("/nonexistent"), &[]);
        let mut absent = rule(Path::new("/no/such/path"));
        let error = of_rule(&absent, &bounds).unwrap_err();
        assert!(matches!(error, PrepareError::Rule { .. }), "{error}");
        absent.presence = Presence::IfPresent;
        assert!(of_rule(&absent, &bounds).unwrap().is_none());
    }
}
