//! A name in a directory, at which a file is written whole: beside it, and then put in its place.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, OpenHow, ResolveFlag, openat, openat2, renameat};
use nix::sys::stat::{Mode, SFlag, fchmod, fstat, fstatat};
use nix::unistd::{Gid, Uid, UnlinkatFlags, fchown, geteuid, unlinkat};
use sys::random;

/// A name in a directory that is held open.
#[derive(Debug)]
pub(super) struct Location {
    directory: File,
    name: OsString,
    /// Free of links when it was opened.
    path: PathBuf,
    /// The file is a mount of its own, as one that a container is given alone: nothing can take its place, and it is
    /// written as it lies there.
    is_mount: bool,
}

/// Whose a file is, and who may use it.
#[derive(Clone, Copy, Debug)]
struct Standing {
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

    /// Free of links.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The file that the report will replace, where there is one; it must be one that we may write.
    pub(super) fn existing(&self) -> io::Result<Option<File>> {
        let flags = OFlag::O_WRONLY | OFlag::O_APPEND | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
        let flags = flags | OFlag::O_CLOEXEC;
        match openat(&self.directory, self.name.as_os_str(), flags, Mode::empty()) {
            Ok(file) => Ok(Some(file.into())),
            // A link that leads nowhere is replaced itself.
            Err(nix::Error::ENOENT | nix::Error::ELOOP) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Makes a file there and removes it: so will the report be made.
    ///
    /// # Errors
    /// What the system says, or would say where the report takes its place: `EPERM` for somebody else's file in a
    /// directory with the sticky bit (inode(7)).
    pub(super) fn try_out(&self) -> io::Result<()> {
        if self.is_mount {
            return Ok(());
        }
        let (name, _) = self.temporary()?;
        self.remove(&name)?;
        let (user, around) = (geteuid(), fstat(&self.directory)?);
        let is_ours = |owner| user.is_root() || owner == user.as_raw();
        let is_sticky = around.st_mode & Mode::S_ISVTX.bits() != 0;
        match self.standing() {
            Some(there)
                if is_sticky && !is_ours(around.st_uid) && !is_ours(there.user.as_raw()) =>
            {
                Err(Errno::EPERM.into())
            }
            _ => Ok(()),
        }
    }

    /// Mode as any new file's: the umask takes away what it will.
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

    /// Owner and permissions of the file of that name; `None` where there is none.
    fn standing(&self) -> Option<Standing> {
        let flags = AtFlags::AT_SYMLINK_NOFOLLOW;
        let status = fstatat(&self.directory, self.name.as_os_str(), flags).ok()?;
        let kind = SFlag::from_bits_truncate(status.st_mode) & SFlag::S_IFMT;
        let permissions = Mode::S_IRWXU | Mode::S_IRWXG | Mode::S_IRWXO;
        (kind == SFlag::S_IFREG).then(|| Standing {
            user: Uid::from_raw(status.st_uid),
            group: Gid::from_raw(status.st_gid),
            mode: Mode::from_bits_truncate(status.st_mode) & permissions,
        })
    }

    /// Writes the whole file. One that is there keeps its permissions, and where root writes, its owner.
    pub(super) fn replace(&self, content: &[u8]) -> io::Result<()> {
        if self.is_mount {
            return self.write_over(content);
        }
        let (name, mut file) = self.temporary()?;
        let (from, to) = (name.as_os_str(), self.name.as_os_str());
        let made = self.standing().map_or(Ok(()), |kept| kept.give_to(&file));
        let written = made.and_then(|()| file.write_all(content)).and_then(|()| {
            renameat(&self.directory, from, &self.directory, to).map_err(Into::into)
        });
        // Where it cannot be removed either, the first error is the one that tells why.
        written.inspect_err(|_| drop(self.remove(&name)))
    }

    fn write_over(&self, content: &[u8]) -> io::Result<()> {
        let flags = OFlag::O_WRONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let file = openat(&self.directory, self.name.as_os_str(), flags, Mode::empty())?;
        let file = File::from(file);
        file.write_all_at(content, 0)?;
        file.set_len(content.len() as u64)
    }
}

impl Standing {
    fn give_to(self, file: &File) -> io::Result<()> {
        let made = file.metadata()?;
        if (made.uid(), made.gid()) != (self.user.as_raw(), self.group.as_raw()) {
            // Only root can give a file away: whoever else may replace one has it then, as with git(1).
            match fchown(file, Some(self.user), Some(self.group)) {
                Ok(()) | Err(Errno::EPERM) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        fchmod(file, self.mode).map_err(Into::into)
    }
}

/// Where an open file lies: free of links, whatever its path was.
///
/// # Errors
/// Of reading /proc/self/fd; `InvalidFilename` where the file has no name, or is not reached from the root.
pub(crate) fn name_of(file: &File) -> io::Result<PathBuf> {
    let name = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    if name.is_absolute() {
        Ok(name)
    } else {
        Err(io::ErrorKind::InvalidFilename.into())
    }
}

pub(super) fn directory(path: &Path) -> &Path {
    path.parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}
