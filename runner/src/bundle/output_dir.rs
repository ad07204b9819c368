//! Output directory of a bundle: new or empty, and held open from before the run.
//!
//! When opened, the directory gets one file, the unfinished `SHA256SUMS`, which is renamed after all other files
//! exist. So a second run refuses the directory, and an unfinished bundle can be recognised. Objects are created
//! through the descriptor of the directory, under new names; no path is resolved a second time.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use model::escape::visible;
use model::evidence::FileKind;
use model::quote::shown_path;
use model::text::printable;
use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat, renameat};
use nix::sys::stat::{Mode, fstat, fstatat, lstat, mkdirat};
use nix::unistd::{UnlinkatFlags, unlinkat};
use sys::read::name_of;
use thiserror::Error;

use super::sums;
use crate::collect::copy::directory;
use crate::collect::files::kind;

/// Name of `SHA256SUMS` until all other files exist.
const UNFINISHED: &str = ".unfinished";
/// Name of a file until it has none.
const UNNAMED: &str = ".unnamed";

/// Error that prevents the run, because its evidence could not be stored.
#[derive(Debug, Error)]
pub(crate) enum OutputDirectoryError {
    #[error("cannot make the directory {path} for the evidence")]
    Open { path: String, source: io::Error },
    #[error(
        "cannot write the evidence to {path}: expected a new or an empty directory, found {found}"
    )]
    NoDirectory { path: String, found: &'static str },
    #[error(
        "cannot write the evidence to {path}: expected a new or an empty directory, found {entry} in it"
    )]
    NotEmpty { path: String, entry: String },
    #[error("cannot make a file in {path} for the client's output")]
    Spool { path: String, source: io::Error },
    #[error("another run is writing its evidence to {path}")]
    InUse { path: String },
    #[error("{other} would lie in the directory of the evidence, {path}")]
    HoldsOther { path: String, other: String },
}

impl OutputDirectoryError {
    pub(crate) fn hint(&self) -> &'static str {
        match self {
            Self::Open { .. } => {
                "`--out` makes the directory itself, but its parent must exist and be writable for you"
            }
            Self::Spool { .. } => "check its free space, and that you may write to it",
            Self::InUse { .. } => "name another directory, or wait for the end of that run",
            Self::NotEmpty { entry, .. } if entry == UNFINISHED => {
                "a run that ended early left it: remove the directory, or name another one"
            }
            Self::NoDirectory { .. } | Self::NotEmpty { .. } => {
                "name a directory that does not exist yet: `--out` makes it"
            }
            Self::HoldsOther { .. } => {
                "the evidence has every report anyway; choose another path for this file, or leave it out"
            }
        }
    }
}

/// Output directory.
#[derive(Debug)]
pub(crate) struct OutputDirectory {
    held: OwnedFd,
    /// Path with links resolved.
    path: PathBuf,
    /// Parent directory and name, if this run created the directory.
    made: Option<(OwnedFd, PathBuf)>,
    /// The unfinished `SHA256SUMS`, held open, because the owner of the directory may replace the file under its
    /// name.
    unfinished: Option<File>,
    state: State,
}

/// Objects to remove if the run is not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The directory, if this run created it and it is empty.
    Found,
    /// The unfinished `SHA256SUMS` as well.
    Marked,
    /// None: the directory holds evidence.
    Used,
}

/// Creates the directory for several bundles, or takes an empty one. Returns its path with links resolved.
///
/// # Errors
/// Errors of [`OutputDirectory::open`].
pub(crate) fn for_several(path: &Path) -> Result<PathBuf, OutputDirectoryError> {
    let mut output = OutputDirectory::empty(path)?;
    output.touch();
    Ok(output.path.clone())
}

impl OutputDirectory {
    /// Creates the directory, or opens an empty one.
    ///
    /// # Errors
    /// Returns the kind of another object at the path, or the error of creating the directory.
    pub(crate) fn open(path: &Path) -> Result<Self, OutputDirectoryError> {
        let mut output = Self::empty(path)?;
        match create(&output.held, UNFINISHED) {
            Ok(file) => {
                // The lock shows other runs that this one is still active; flock(2) ends with it. Some file
                // systems have no locks.
                let _ = file.try_lock();
                output.unfinished = Some(file);
                output.state = State::Marked;
            }
            // Another run created the file first.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(output.refusal(path, UNFINISHED.as_bytes()));
            }
            Err(source) => {
                return Err(OutputDirectoryError::Open {
                    path: shown_path(path),
                    source,
                });
            }
        }
        Ok(output)
    }

    /// Creates the directory, or takes an empty one.
    fn empty(path: &Path) -> Result<Self, OutputDirectoryError> {
        let failed = |source: io::Error| OutputDirectoryError::Open {
            path: shown_path(path),
            source,
        };
        let output = Self::take(path).map_err(|error| match error.raw_os_error() {
            Some(libc::ENOTDIR | libc::ELOOP) => {
                let found = kind_at(path);
                found.map_or_else(
                    || failed(error),
                    |found| OutputDirectoryError::NoDirectory {
                        path: shown_path(path),
                        found,
                    },
                )
            }
            _ => failed(error),
        })?;
        match output.first_entry().map_err(failed)? {
            Some(entry) => Err(output.refusal(path, &entry)),
            None => Ok(output),
        }
    }

    /// Error of a directory with an entry.
    fn refusal(&self, path: &Path, entry: &[u8]) -> OutputDirectoryError {
        let path = shown_path(path);
        match self.is_in_use() {
            true => OutputDirectoryError::InUse { path },
            false => OutputDirectoryError::NotEmpty {
                path,
                entry: visible(&printable(entry)),
            },
        }
    }

    fn take(path: &Path) -> io::Result<Self> {
        // `.` and `/` have no last name that could be created.
        let (holding, name) = match (path.parent(), path.file_name()) {
            (Some(parent), Some(name)) if !parent.as_os_str().is_empty() => (parent, name),
            (_, Some(name)) => (Path::new("."), name),
            (_, None) => (path, ".".as_ref()),
        };
        let holding = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_PATH | libc::O_DIRECTORY)
            .open(holding)
            .map(OwnedFd::from)?;
        let made = match mkdirat(&holding, name, Mode::S_IRWXU) {
            Ok(()) => true,
            Err(Errno::EEXIST) => false,
            Err(errno) => return Err(errno.into()),
        };
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let held = File::from(openat(&holding, name, flags, Mode::empty())?);
        let mut output = Self {
            path: PathBuf::new(),
            held: held.try_clone()?.into(),
            made: made.then(|| (holding, PathBuf::from(name))),
            unfinished: None,
            state: State::Found,
        };
        output.path = name_of(&held)?;
        Ok(output)
    }

    /// Checks whether the run that created the unfinished `SHA256SUMS` is still active.
    fn is_in_use(&self) -> bool {
        let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let begun = openat(&self.held, UNFINISHED, flags, Mode::empty());
        let tried = begun.map(|begun| File::from(begun).try_lock());
        matches!(tried, Ok(Err(TryLockError::WouldBlock)))
    }

    /// Returns any entry of the directory.
    fn first_entry(&self) -> io::Result<Option<Vec<u8>>> {
        for entry in Dir::from_fd(directory(&self.held, c".")?)?.iter() {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                return Ok(Some(name.to_vec()));
            }
        }
        Ok(None)
    }

    /// Returns the path, with links resolved.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Marks the directory as used: it stays, even if the run fails.
    pub(crate) fn touch(&mut self) {
        self.state = State::Used;
    }

    /// Creates a file that has no name and is gone with its descriptor.
    ///
    /// # Errors
    /// Returns the error of the system.
    pub(crate) fn unnamed(&self) -> io::Result<File> {
        // O_TMPFILE would need support by the file system.
        let file = create(&self.held, UNNAMED)?;
        remove(&self.held, UNNAMED)?;
        Ok(file)
    }

    /// Writes a complete file: the file gets its name only after `write` has written its content.
    ///
    /// # Errors
    /// Returns the first error of `write` or of the system. No file of that name exists then.
    pub(crate) fn put<T>(
        &self,
        name: &str,
        write: impl FnOnce(&File) -> io::Result<T>,
    ) -> io::Result<T> {
        let partial = format!(".{name}.part");
        let file = create(&self.held, &partial)?;
        let written = write(&file).and_then(|written| {
            renameat(&self.held, partial.as_str(), &self.held, name)?;
            Ok(written)
        });
        written.inspect_err(|_| drop(remove(&self.held, &partial)))
    }

    /// Writes `SHA256SUMS`, which completes the bundle.
    ///
    /// # Errors
    /// Returns the error of the system. No `SHA256SUMS` exists then.
    pub(crate) fn finish(mut self, document: &[u8]) -> io::Result<()> {
        let mut file = self.unfinished.take().ok_or(Errno::ESTALE)?;
        file.write_all(document)?;
        let (made, there) = (
            fstat(&file)?,
            fstatat(&self.held, UNFINISHED, AtFlags::AT_SYMLINK_NOFOLLOW)?,
        );
        if (made.st_dev, made.st_ino) != (there.st_dev, there.st_ino) {
            return Err(Errno::ESTALE.into());
        }
        renameat(&self.held, UNFINISHED, &self.held, sums::NAME).map_err(io::Error::from)
    }
}

impl Drop for OutputDirectory {
    /// Removes an unused directory that this run created. If that fails, an empty directory is left behind.
    fn drop(&mut self) {
        match self.state {
            State::Used => return,
            State::Found => {}
            State::Marked => drop(remove(&self.held, UNFINISHED)),
        }
        let Some((holding, name)) = &self.made else {
            return;
        };
        let status = fstatat(holding, name, AtFlags::AT_SYMLINK_NOFOLLOW);
        let is_ours = |held: nix::sys::stat::FileStat| {
            status.is_ok_and(|there| (there.st_dev, there.st_ino) == (held.st_dev, held.st_ino))
        };
        if fstat(&self.held).is_ok_and(is_ours) {
            let _ = unlinkat(holding, name, UnlinkatFlags::RemoveDir);
        }
    }
}

/// Creates a file that must not exist. The mode 0644 is safe, because access to the bundle's directory governs
/// it.
///
/// # Errors
/// Returns the error of openat(2).
fn create(at: impl AsFd, name: &str) -> io::Result<File> {
    let flags = OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_EXCL;
    let flags = flags | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let mode = Mode::from_bits_truncate(0o644);
    openat(at, name, flags, mode)
        .map(File::from)
        .map_err(Into::into)
}

/// Removes a file.
fn remove(at: impl AsFd, name: &str) -> io::Result<()> {
    unlinkat(at, name, UnlinkatFlags::NoRemoveDir).map_err(Into::into)
}

/// Returns the kind of object at a path, for messages; `None` for a directory or a missing object.
fn kind_at(path: &Path) -> Option<&'static str> {
    // A slash at the end would make the system follow a link.
    let bare: PathBuf = path.components().collect();
    let kind = kind(&lstat(&bare).ok()?);
    (kind != FileKind::Directory).then(|| kind.with_article())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, symlink};

    use super::*;

    fn entries(directory: &Path) -> usize {
        fs::read_dir(directory).unwrap().count()
    }

    #[test]
    fn a_new_directory_is_its_users_alone_and_is_gone_where_it_was_not_used() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("new");
        let output = OutputDirectory::open(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o700);
        assert_eq!(output.path(), path.canonicalize().unwrap());
        drop(output);
        assert!(!path.exists());
    }

    #[test]
    fn an_empty_directory_is_taken_and_left_empty_where_it_was_not_used() {
        let directory = tempfile::tempdir().unwrap();
        drop(OutputDirectory::open(directory.path()).unwrap());
        assert_eq!(entries(directory.path()), 0);
        let mut output = OutputDirectory::open(directory.path()).unwrap();
        output.touch();
        drop(output);
        assert_eq!(entries(directory.path()), 1);
    }

    #[test]
    fn a_directory_is_taken_once() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("new");
        let output = OutputDirectory::open(&path).unwrap();
        let error = OutputDirectory::open(&path).unwrap_err();
        assert!(
            matches!(error, OutputDirectoryError::InUse { .. }),
            "{error}"
        );
        drop(output);
        drop(OutputDirectory::open(&path).unwrap());
    }

    #[test]
    fn what_a_run_left_that_was_ended_is_told_from_one_that_goes_on() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join(UNFINISHED), "").unwrap();
        let error = OutputDirectory::open(directory.path()).unwrap_err();
        assert!(
            matches!(error, OutputDirectoryError::NotEmpty { .. }),
            "{error}"
        );
        assert!(error.hint().contains("remove the directory"));
    }

    #[test]
    fn what_is_no_empty_directory_is_refused_by_what_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at("file"), "").unwrap();
        fs::create_dir_all(at("full/inside")).unwrap();
        fs::create_dir(at("empty")).unwrap();
        symlink(at("empty"), at("link")).unwrap();
        nix::unistd::mkfifo(&at("fifo"), Mode::S_IRWXU).unwrap();
        for (name, told) in [
            ("file", "found a file"),
            ("file/below", "cannot make the directory"),
            ("link", "found a symbolic link"),
            ("link/", "found a symbolic link"),
            ("fifo", "found a FIFO"),
            ("full", "found inside in it"),
            ("absent/below", "cannot make the directory"),
        ] {
            let error = OutputDirectory::open(&at(name)).unwrap_err().to_string();
            assert!(error.contains(told), "{name}: {error}");
        }
        assert_eq!(entries(&at("empty")), 0);
    }

    #[test]
    fn a_file_that_is_there_is_never_written() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let output = OutputDirectory::open(&at("new")).unwrap();
        fs::write(at("victim"), "precious").unwrap();
        symlink(at("victim"), at("new/.report.txt.part")).unwrap();
        let error = output
            .put("report.txt", |mut file| file.write_all(b"x"))
            .unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        output.put("report.json", |_| Ok(())).unwrap();
        output.finish(b"{}").unwrap();
        assert_eq!(fs::read(at("victim")).unwrap(), b"precious");
        assert_eq!(fs::read(at("new/SHA256SUMS")).unwrap(), b"{}");
        assert!(!at("new").join(UNFINISHED).exists());
    }

    #[test]
    fn replaced_sums_file_is_never_written() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at("victim"), "precious").unwrap();
        let swaps: [fn(&Path, &Path); 3] = [
            |victim, name| fs::hard_link(victim, name).unwrap(),
            |victim, name| symlink(victim, name).unwrap(),
            |_, name| nix::unistd::mkfifo(name, Mode::S_IRWXU).unwrap(),
        ];
        for (number, swap) in swaps.into_iter().enumerate() {
            let path = at(&number.to_string());
            let mut output = OutputDirectory::open(&path).unwrap();
            output.touch();
            fs::remove_file(path.join(UNFINISHED)).unwrap();
            swap(&at("victim"), &path.join(UNFINISHED));
            let error = output.finish(b"{}").unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::ESTALE));
            assert_eq!(fs::read(at("victim")).unwrap(), b"precious");
            assert!(!path.join(sums::NAME).exists());
        }
    }
}
