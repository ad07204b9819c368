//! Location of an output file: an open directory and a name. The file is written under a temporary name and renamed.

use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, OpenHow, ResolveFlag, openat, openat2, renameat};
use nix::sys::stat::{Mode, SFlag, fchmod, fstat, fstatat};
use nix::unistd::{Gid, Uid, UnlinkatFlags, fchown, geteuid, unlinkat};
use sys::random;
use sys::read::name_of;

/// A name in an open directory.
#[derive(Debug)]
pub(super) struct Location {
    directory: File,
    name: OsString,
    /// Path when the directory was opened, without links.
    path: PathBuf,
    /// True if the file is a mount point, such as a single file mounted into a container. A mount point cannot be
    /// replaced, so it is written in place.
    is_mount: bool,
}

/// Owner and permissions of a file.
#[derive(Clone, Copy, Debug)]
struct Ownership {
    user: Uid,
    group: Gid,
    mode: Mode,
}

impl Location {
    pub(super) fn open(target: &Path) -> io::Result<Self> {
        let name = target
            .file_name()
            .ok_or(io::ErrorKind::InvalidFilename)?
            .to_owned();
        let directory = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_PATH | libc::O_DIRECTORY)
            .open(directory(target))?;
        let path = name_of(&directory)?.join(&name);
        let within = OpenHow::new()
            .flags(OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC)
            .resolve(ResolveFlag::RESOLVE_NO_XDEV);
        let is_mount = matches!(
            openat2(&directory, name.as_os_str(), within),
            Err(Errno::EXDEV)
        );
        Ok(Self {
            directory,
            name,
            path,
            is_mount,
        })
    }

    /// Path without links.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the file that the report will replace. Fails if we may not write to it; `None` if it does not exist.
    pub(super) fn existing(&self) -> io::Result<Option<File>> {
        let flags = OFlag::O_WRONLY | OFlag::O_APPEND | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
        let flags = flags | OFlag::O_CLOEXEC;
        match openat(&self.directory, self.name.as_os_str(), flags, Mode::empty()) {
            Ok(file) => Ok(Some(file.into())),
            // A dangling link is replaced itself.
            Err(nix::Error::ENOENT | nix::Error::ELOOP) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Makes a temporary file in the directory and removes it, to test that the report can be written.
    ///
    /// # Errors
    /// The error of the file system. `EPERM` for another user's file in a directory with the sticky bit, which the
    /// rename would return (inode(7)).
    pub(super) fn test_write(&self) -> io::Result<()> {
        if self.is_mount {
            return Ok(());
        }
        let (name, _) = self.temporary()?;
        self.remove(&name)?;
        let (user, directory) = (geteuid(), fstat(&self.directory)?);
        let is_ours = |owner| user.is_root() || owner == user.as_raw();
        let is_sticky = directory.st_mode & Mode::S_ISVTX.bits() != 0;
        match self.ownership() {
            Some(existing)
                if is_sticky && !is_ours(directory.st_uid) && !is_ours(existing.user.as_raw()) =>
            {
                Err(Errno::EPERM.into())
            }
            _ => Ok(()),
        }
    }

    /// Makes a temporary file with the mode of a new file, so that the umask applies.
    fn temporary(&self) -> io::Result<(OsString, File)> {
        let name = OsString::from(format!(".runner-report-{}", random::token()));
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC;
        let mode = Mode::from_bits_truncate(0o666);
        let file = openat(&self.directory, name.as_os_str(), flags, mode)?;
        Ok((name, file.into()))
    }

    fn remove(&self, name: &OsStr) -> io::Result<()> {
        unlinkat(&self.directory, name, UnlinkatFlags::NoRemoveDir).map_err(Into::into)
    }

    /// Owner and permissions of the existing regular file; `None` if there is none.
    fn ownership(&self) -> Option<Ownership> {
        let flags = AtFlags::AT_SYMLINK_NOFOLLOW;
        let status = fstatat(&self.directory, self.name.as_os_str(), flags).ok()?;
        let kind = SFlag::from_bits_truncate(status.st_mode) & SFlag::S_IFMT;
        let permissions = Mode::S_IRWXU | Mode::S_IRWXG | Mode::S_IRWXO;
        (kind == SFlag::S_IFREG).then(|| Ownership {
            user: Uid::from_raw(status.st_uid),
            group: Gid::from_raw(status.st_gid),
            mode: Mode::from_bits_truncate(status.st_mode) & permissions,
        })
    }

    /// Writes the whole file. An existing file keeps its permissions, and its owner if root writes it.
    pub(super) fn replace(&self, content: &mut dyn Read) -> io::Result<()> {
        if self.is_mount {
            return self.write_in_place(content);
        }
        let (name, mut file) = self.temporary()?;
        let (from, to) = (name.as_os_str(), self.name.as_os_str());
        let made = self.ownership().map_or(Ok(()), |kept| kept.apply_to(&file));
        let written = made
            .and_then(|()| io::copy(content, &mut file))
            .and_then(|_| renameat(&self.directory, from, &self.directory, to).map_err(Into::into));
        // Report the first error, even if the removal fails too.
        written.inspect_err(|_| drop(self.remove(&name)))
    }

    fn write_in_place(&self, content: &mut dyn Read) -> io::Result<()> {
        let flags = OFlag::O_WRONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let file = openat(&self.directory, self.name.as_os_str(), flags, Mode::empty())?;
        let mut file = File::from(file);
        let written = io::copy(content, &mut file)?;
        file.set_len(written)
    }
}

impl Ownership {
    fn apply_to(self, file: &File) -> io::Result<()> {
        let made = file.metadata()?;
        if (made.uid(), made.gid()) != (self.user.as_raw(), self.group.as_raw()) {
            // Only root can change the owner. A file that another user replaces then belongs to that user, as with
            // git(1).
            match fchown(file, Some(self.user), Some(self.group)) {
                Ok(()) | Err(Errno::EPERM) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        fchmod(file, self.mode).map_err(Into::into)
    }
}

pub(super) fn directory(path: &Path) -> &Path {
    path.parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}
