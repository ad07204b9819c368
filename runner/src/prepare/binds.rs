//! What of the host the sandbox shows: each rule resolved to one object, which is mounted only if it is still the
//! same then.
//!
//! Owns what no rule may lead to. Must not know how anything is mounted.

use std::ffi::OsStr;
use std::fs::{self, File, FileType, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use model::audit::ProgramLocation;
use model::case::{Access, PathRule, Presence};
use model::layout::PROGRAM_DIRECTORY;
use model::quote::shown_path;
use nix::unistd::{AccessFlags, access};
use sandbox::identity;
use sandbox::plan::{Bind, BindKind, Identity};
use sys::read::name_of;

use super::PrepareError;
use crate::home_dirs::HomeDirs;
use crate::workload::Workload;

/// Trees that no path rule may lead into: they are the kernel's or hold other programs' sockets.
pub(crate) const FORBIDDEN: [&str; 4] = ["/proc", "/sys", "/dev", "/run"];

/// What no rule may show whole by a link, beside these: it holds them, everybody's homes, or what the sandbox has of
/// its own.
const WHOLE: [&str; 3] = ["/etc", "/home", "/tmp"];

/// What every rule is held against.
pub(super) struct Bounds<'a> {
    pub(super) homes: HomeDirs,
    /// Files and directories that this run writes to, free of links.
    pub(super) written: &'a [PathBuf],
    pub(super) identity: Identity,
}

/// An object of the host, opened. As long as it is held nothing else gets its device and inode, by which it is known.
pub(super) struct Object {
    pub(super) handle: File,
    pub(super) status: Metadata,
    /// Its name, free of links.
    pub(super) path: PathBuf,
}

impl Object {
    /// Opens `path` through links, and asks for its name only then: what is judged is what was opened.
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

/// Where the program lies inside.
pub(super) struct Placed {
    /// Its file.
    pub(super) file: PathBuf,
    /// What is given to execve(2): the file, or a link to it.
    pub(super) path: PathBuf,
}

impl Placed {
    pub(super) fn of(workload: &Workload, file: &Path) -> Self {
        let own = |name: &OsStr| Path::new(PROGRAM_DIRECTORY).join(name);
        match workload {
            Workload::Client { profile, .. } => Self::at(own(profile.names.program.as_ref())),
            Workload::Program(audit) => match &audit.place {
                ProgramLocation::Own { path } => Self {
                    file: file.into(),
                    path: path.clone(),
                },
                // By the name that it was called by: some programs are many, and go by it.
                ProgramLocation::Alone => {
                    let called = audit.arguments.first().map(Path::new);
                    let called = called.and_then(Path::file_name).or(file.file_name());
                    Self::at(own(called.unwrap_or_default()))
                }
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
    may_lead(&rule.path, &object.path, object.status.file_type(), bounds)?;
    has_right(rule, &object.path, &object.status, bounds.identity)?;
    let bind = object.bind(&rule.path, rule.access);
    Ok(Some((bind, object.handle)))
}

/// Refuses what is the kernel's, another program's, or this run's own, and by a link what nobody may mean by its name.
fn may_lead(
    named: &Path,
    resolved: &Path,
    kind: FileType,
    bounds: &Bounds<'_>,
) -> Result<(), PrepareError> {
    let holds = |trees: &[&str]| {
        let mut trees = trees.iter().map(Path::new);
        trees.any(|tree| tree.starts_with(resolved))
    };
    let is_link = named != resolved;
    let forbidden = FORBIDDEN.iter().any(|tree| resolved.starts_with(tree));
    let writes_below = || bounds.written.iter().any(|file| file.starts_with(resolved));
    let what = match () {
        () if forbidden => "below /proc, /sys, /dev or /run",
        () if is_link && (holds(&FORBIDDEN) || holds(&WHOLE)) => {
            "one of /, /etc, /home and /tmp, or holds one"
        }
        () if is_link && !bounds.homes.has_name(named) && bounds.homes.are_in(resolved) => {
            "a whole home, or holds one"
        }
        () if kind.is_socket() => "a socket",
        () if !kind.is_file() && !kind.is_dir() => "neither a file nor a directory",
        // A client that sees a report grow could read what the verdict will be, and in a lock file what to show.
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
            homes: HomeDirs::known(Some(home)),
            written: reports,
            identity: Identity::Unmapped { uid: 0, gid: 0 },
        }
    }

    /// What is said of a rule that is refused.
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
