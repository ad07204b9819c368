//! The guard process of a temporary directory on disk: makes the directory, and removes it when the runner ends.
//!
//! The directory holds the client's home, temporary and working directory in tier `inherited`, and the targets of a
//! selftest. A killed runner cannot clean up, so the guard is a separate process. The guard makes the directory itself,
//! so that a directory never exists without a process that will remove it. The runner holds one end of a socket; when
//! that closes, the guard removes the directory and ends.

mod removal;

use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;
use std::{env, fs};

use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::sys::stat::{Mode, umask};
use nix::unistd::{Pid, setsid};
use sys::fds::close_on_exec_from;
use sys::process::{OWN_FILE, ignore_terminal_signals, reset_child_signal, wait_within};
use sys::random;

use super::error::{AsErrno as _, At as _, SetupError, Step};
use super::plan::ClientPaths;
use super::reaper::Condition;
use removal::remove;

/// Hidden first argument that starts this executable as the guard.
pub const GUARD_ARGUMENT: &str = "__guard";

/// Parent directories that are tried in this order. /dev/shm is writable in a container with a read-only root.
const CANDIDATES: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];
/// Maximum time for the guard to make its directories.
const STARTING: Duration = Duration::from_secs(10);
/// Maximum time for the guard to remove its directories; after that the runner removes them.
const REMOVING: Duration = Duration::from_secs(2);

/// Names below the directory that the guard makes.
const HOME: &str = "home";
const TMP: &str = "tmp";
const WORK: &str = "work";
const UNRULED: &str = "unruled";
/// Name at which no file is made.
const NEW: &str = "new";

/// Contents of the guard's directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Contents {
    /// Home, temporary and working directory of a client, and the unruled file.
    Trees,
    Nothing,
}

impl Contents {
    const ALL: [Self; 2] = [Self::Trees, Self::Nothing];

    /// Returns the argument on the guard's command line.
    fn word(self) -> &'static str {
        match self {
            Self::Trees => "trees",
            Self::Nothing => "nothing",
        }
    }
}

/// A directory of mode 0700 with its guard. Dropping this value removes the directory.
#[derive(Debug)]
pub struct Guarded {
    base: PathBuf,
    /// Name of the directory, chosen by the runner, so that the runner can remove it if the guard ends early.
    name: String,
    /// The runner's end of the socket; `None` once closed.
    line: Option<UnixStream>,
    guard: Child,
}

/// Home, temporary and working directory of the client on disk. Dropping this value removes them.
#[derive(Debug)]
pub struct TemporaryTrees(Guarded);

impl TemporaryTrees {
    /// Starts a guard that makes the directories.
    ///
    /// # Errors
    /// The failed step; no directory is left then.
    pub fn make() -> Result<Self, SetupError> {
        Guarded::make("runner", Contents::Trees).map(Self)
    }

    /// Returns the paths for the client. Landlock closes the directory around them.
    pub fn client_paths(&self) -> ClientPaths {
        let base = self.0.path();
        ClientPaths {
            home: base.join(HOME),
            tmp: base.join(TMP),
            work: base.join(WORK),
            unruled_file: base.join(UNRULED),
            outside_file: base.join(NEW),
            closed_directory: Some(base.to_owned()),
        }
    }
}

impl Guarded {
    /// Starts a guard that makes an empty directory, whose name begins with `prefix`.
    ///
    /// # Errors
    /// The failed step; no directory is left then.
    pub fn empty(prefix: &str) -> Result<Self, SetupError> {
        Self::make(prefix, Contents::Nothing)
    }

    fn make(prefix: &str, contents: Contents) -> Result<Self, SetupError> {
        // The guard must not inherit descriptors of the caller.
        close_on_exec_from(3).at(Step::StartGuard)?;
        let (line, guard_socket) = UnixStream::pair().at(Step::StartGuard)?;
        reset_child_signal();
        let name = format!("{prefix}-{}", random::token());
        let guard = Command::new(OWN_FILE)
            .arg0("runner-guard")
            .args([GUARD_ARGUMENT, contents.word(), &name])
            .env_clear()
            .envs(env::var_os("TMPDIR").map(|directory| ("TMPDIR", directory)))
            .stdin(Stdio::from(OwnedFd::from(guard_socket)))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .at_object(Step::StartGuard, OWN_FILE)?;
        let mut made = Self {
            base: PathBuf::new(),
            name,
            line: Some(line),
            guard,
        };
        made.base = made.receive_path(STARTING)?;
        Ok(made)
    }

    /// Receives the path of the directory, or the errno of making it, from the guard.
    fn receive_path(&self, limit: Duration) -> Result<PathBuf, SetupError> {
        let line = self
            .line
            .as_ref()
            .ok_or(Errno::EPIPE)
            .at(Step::StartGuard)?;
        line.set_read_timeout(Some(limit)).at(Step::StartGuard)?;
        let mut answer = Vec::new();
        let read = BufReader::new(line).read_until(b'\0', &mut answer);
        // A read with SO_RCVTIMEO fails with EAGAIN at the limit (socket(7)).
        if read
            .as_ref()
            .is_err_and(|error| error.as_errno() == Errno::EAGAIN)
        {
            return Err(Errno::ETIMEDOUT).at_object(Step::StartGuard, self.timeout_message(limit));
        }
        read.at(Step::StartGuard)?;
        match answer.split_last() {
            Some((b'\0', path)) if path.starts_with(b"/") => {
                Ok(OsString::from_vec(path.to_vec()).into())
            }
            Some((b'\0', errno)) => {
                let errno = String::from_utf8_lossy(errno).parse();
                Err(Errno::from_raw(errno.unwrap_or(libc::EBADMSG)))
                    .at_object(Step::MakeTrees, candidates_text())
            }
            _ => Err(Errno::EPIPE).at(Step::StartGuard),
        }
    }

    /// Describes a guard that made no directory in time.
    fn timeout_message(&self, limit: Duration) -> String {
        let process = self.guard.id();
        let condition = i32::try_from(process).ok().map(Pid::from_raw);
        let stopped = match condition.and_then(Condition::of) {
            Some(Condition::Stopped) => " is stopped and",
            Some(Condition::Runs | Condition::Ended(_)) | None => "",
        };
        let limit = limit.as_secs();
        format!("process {process}{stopped} made no directory within {limit} s")
    }

    /// Returns the absolute path of the directory.
    pub fn path(&self) -> &Path {
        &self.base
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        self.line = None;
        let mut ended = wait_within(&mut self.guard, REMOVING);
        if let Ok(None) = ended {
            // Killed first, so that a stopped guard cannot resume during the removal below.
            let _ = self.guard.kill();
            ended = wait_within(&mut self.guard, REMOVING);
        }
        if !ended.is_ok_and(|status| status.is_some_and(|status| status.success())) {
            // A killed guard may have left the directory. A drop cannot report errors.
            for directory in candidates() {
                let _ = remove(&directory.join(&self.name));
            }
        }
    }
}

/// Lists the parent directories to try: TMPDIR if absolute, then [`CANDIDATES`].
fn candidates() -> impl Iterator<Item = PathBuf> {
    let own = env::var_os("TMPDIR").map(PathBuf::from);
    let absolute = own.filter(|path| path.is_absolute());
    absolute
        .into_iter()
        .chain(CANDIDATES.into_iter().map(PathBuf::from))
}

fn candidates_text() -> String {
    let all: Vec<String> = candidates()
        .map(|path| path.display().to_string())
        .collect();
    format!("tried {}", all.join(", "))
}

/// Runs the guard's process. The arguments are the contents and the name of the directory.
pub fn main(arguments: &[OsString]) -> ExitCode {
    let [contents, name] = arguments else {
        return ExitCode::FAILURE;
    };
    let contents = Contents::ALL
        .into_iter()
        .find(|known| contents == known.word());
    let Some(contents) = contents else {
        return ExitCode::FAILURE;
    };
    let Ok(mut line) = io::stdin()
        .as_fd()
        .try_clone_to_owned()
        .map(UnixStream::from)
    else {
        return ExitCode::FAILURE;
    };
    // With another umask the guard could not enter its own directories.
    umask(Mode::from_bits_truncate(0o077));
    // The terminal sends Ctrl-C to the whole foreground group, but only the runner handles it.
    let _ = setsid();
    ignore_terminal_signals();
    // SIGCONT resumes a stopped guard when the runner ends, so that the guard reads the end of its socket.
    let _ = prctl::set_pdeathsig(Signal::SIGCONT);
    let _ = prctl::set_dumpable(false);
    let base = match make_in_first(candidates(), name, contents) {
        Ok(base) => base,
        Err(errno) => {
            // Writing fails only if the runner has ended.
            let _ = line.write_all(format!("{}\0", errno as i32).as_bytes());
            return ExitCode::FAILURE;
        }
    };
    let mut answer = base.as_os_str().as_bytes().to_vec();
    answer.push(b'\0');
    // Writing fails only if the runner has ended, which the read below finds.
    let _ = line.write_all(&answer);
    // The runner sends no bytes, so the read returns when the runner closes its end.
    let _ = line.read_to_end(&mut Vec::new());
    match remove(&base) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Makes the directory in the first possible parent. If all fail, returns the errno of the first one.
fn make_in_first(
    directories: impl Iterator<Item = PathBuf>,
    name: &OsStr,
    contents: Contents,
) -> Result<PathBuf, Errno> {
    let mut first = None;
    for directory in directories {
        match make(&directory.join(name), contents) {
            Ok(base) => return Ok(base),
            Err(error) => {
                first.get_or_insert(error.as_errno());
            }
        }
    }
    Err(first.unwrap_or(Errno::ENOENT))
}

/// Makes a directory with its contents. Removes the directory if a part fails.
fn make(directory: &Path, contents: Contents) -> io::Result<PathBuf> {
    make_private(directory)?;
    let filled = || {
        let base = fs::canonicalize(directory)?;
        if contents == Contents::Nothing {
            return Ok(base);
        }
        make_private(&base.join(HOME))?;
        make_private(&base.join(TMP))?;
        make_private(&base.join(WORK))?;
        fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o644)
            .open(base.join(UNRULED))?;
        Ok(base)
    };
    let made = filled();
    if made.is_err() {
        let _ = remove(directory);
    }
    made
}

/// Makes a directory of mode 0700.
fn make_private(directory: &Path) -> io::Result<()> {
    fs::DirBuilder::new().mode(0o700).create(directory)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use nix::fcntl::{OFlag, openat};

    use super::*;

    #[test]
    fn made_directories_are_0700_and_the_file_0644() {
        let parent = tempfile::tempdir().unwrap();
        let base = make(&parent.path().join("base"), Contents::Trees).unwrap();
        let mode = |name: &str| {
            let path = base.join(name);
            fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
        };
        assert_eq!(mode("."), 0o700);
        assert_eq!(
            (mode(HOME), mode(TMP), mode(UNRULED)),
            (0o700, 0o700, 0o644)
        );
        remove(&base).unwrap();
        assert!(!base.exists());
    }

    /// Starts a guard that stops itself at once.
    fn stopped(name: &str) -> (Guarded, UnixStream) {
        let (line, guard_socket) = UnixStream::pair().unwrap();
        let script = "kill -STOP $$; exit 0";
        let guard = Command::new("/bin/sh")
            .args(["-c", script])
            .spawn()
            .unwrap();
        let process = Pid::from_raw(i32::try_from(guard.id()).unwrap());
        while Condition::of(process) != Some(Condition::Stopped) {
            std::thread::yield_now();
        }
        let guarded = Guarded {
            base: PathBuf::new(),
            name: name.to_owned(),
            line: Some(line),
            guard,
        };
        (guarded, guard_socket)
    }

    #[test]
    fn stopped_guard_is_named_at_the_limit() {
        let (guarded, _guard_socket) = stopped("runner-test-of-silence");
        let error = guarded.receive_path(Duration::from_millis(1)).unwrap_err();
        assert_eq!(
            (error.step, error.errno),
            (Step::StartGuard, Errno::ETIMEDOUT as i32)
        );
        let object = format!(
            "process {} is stopped and made no directory within 0 s",
            guarded.guard.id()
        );
        assert_eq!(error.object, object);
    }

    #[test]
    fn stopped_guard_is_killed_and_replaced() {
        let name = format!("runner-test-{}", random::token());
        let directory = candidates().next().unwrap().join(&name);
        make(&directory, Contents::Trees).unwrap();
        let (guarded, _guard_socket) = stopped(&name);
        let process = Pid::from_raw(i32::try_from(guarded.guard.id()).unwrap());
        drop(guarded);
        assert!(!directory.exists());
        assert_eq!(Condition::of(process), None);
    }

    #[test]
    fn unwritable_parent_is_an_error() {
        assert!(make(Path::new("/proc/new"), Contents::Trees).is_err());
    }

    #[test]
    fn first_writable_parent_or_first_errno_is_returned() {
        let writable = tempfile::tempdir().unwrap();
        let name = OsStr::new("base");
        let two = ["/proc".into(), writable.path().to_owned()];
        let made = make_in_first(two.into_iter(), name, Contents::Trees).unwrap();
        assert!(made.ends_with("base"));
        remove(&made).unwrap();
        let none = ["/no/such/directory", "/proc"].map(PathBuf::from);
        assert_eq!(
            make_in_first(none.into_iter(), name, Contents::Nothing),
            Err(Errno::ENOENT)
        );
    }

    #[test]
    fn removal_reaches_mode_0_and_deep_directories() {
        let parent = tempfile::tempdir().unwrap();
        let base = make(&parent.path().join("base"), Contents::Trees).unwrap();
        let mut at = fs::File::open(base.join(HOME)).map(OwnedFd::from).unwrap();
        for _ in 0..3000 {
            nix::sys::stat::mkdirat(&at, "d", Mode::S_IRWXU).unwrap();
            let flags = OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
            at = openat(&at, "d", flags, Mode::empty()).unwrap();
        }
        let shut = base.join(TMP).join("shut");
        fs::create_dir(&shut).unwrap();
        fs::write(shut.join("file"), "").unwrap();
        fs::set_permissions(&shut, fs::Permissions::from_mode(0o000)).unwrap();
        remove(&base).unwrap();
        assert!(!base.exists());
    }

    #[test]
    fn removal_does_not_follow_links() {
        let outside = tempfile::tempdir().unwrap();
        let kept = outside.path().join("kept");
        fs::write(&kept, "").unwrap();
        fs::set_permissions(&kept, fs::Permissions::from_mode(0o604)).unwrap();
        let parent = tempfile::tempdir().unwrap();
        let base = make(&parent.path().join("base"), Contents::Trees).unwrap();
        std::os::unix::fs::symlink(outside.path(), base.join(HOME).join("link")).unwrap();
        std::os::unix::fs::symlink(outside.path(), base.join("moved-1")).unwrap();
        std::os::unix::fs::symlink(outside.path().join("kept"), base.join("file")).unwrap();
        remove(&base).unwrap();
        assert!(!base.exists());
        let kept = fs::metadata(outside.path().join("kept")).unwrap();
        assert_eq!(kept.permissions().mode() & 0o7777, 0o604);
    }

    #[test]
    fn removal_avoids_existing_moved_names() {
        let parent = tempfile::tempdir().unwrap();
        let base = make(&parent.path().join("base"), Contents::Trees).unwrap();
        for name in ["moved-1/a/b", "moved-2", "home/d/e", "home/f/g"] {
            fs::create_dir_all(base.join(name)).unwrap();
        }
        fs::write(base.join("moved-3"), "").unwrap();
        remove(&base).unwrap();
        assert!(!base.exists());
    }

    /// A client that has not ended yet may still make directories.
    #[test]
    fn removal_repeats_while_entries_are_made() {
        let parent = tempfile::tempdir().unwrap();
        let base = make(&parent.path().join("base"), Contents::Trees).unwrap();
        for number in 0..60 {
            fs::create_dir_all(base.join(format!("home/s{number}/a/b"))).unwrap();
        }
        let home = base.join(HOME);
        let busy = std::thread::spawn(move || {
            for _ in 0..2000 {
                let _ = fs::create_dir_all(home.join("q/q/q"));
            }
        });
        remove(&base).unwrap();
        busy.join().unwrap();
        // The other thread may have made a directory below a moved home.
        let _ = remove(&base);
        assert!(!base.exists());
    }
}
