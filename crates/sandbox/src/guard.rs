//! The guard of a temporary directory on disk: makes it, and removes it when the runner lets go of it, however the
//! runner ends. In tier `inherited` it holds the client's home and temporary directory; of a selftest, the targets.
//!
//! A process of its own, since a runner that is killed removes nothing. It makes the directories itself, so that
//! there is no moment in which they exist and nobody would remove them. The runner holds one end of a socket; the
//! guard waits for its end.

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
use nix::unistd::{Pid, setsid};
use sys::fds::close_on_exec_from;
use sys::process::{OWN_FILE, ignore_terminal_signals, reset_child_signal, wait_within};
use sys::random;

use super::error::{AsErrno as _, At as _, SetupError, Step};
use super::plan::ClientPaths;
use super::reaper::Condition;
use removal::remove;

/// Hidden first argument with which our own file is the guard.
pub const GUARD_ARGUMENT: &str = "__guard";

/// Where the directories are made: the first in which one can be. /dev/shm is writable in a container with a
/// read-only root.
const CANDIDATES: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];
/// The guard makes its directories in this time.
const STARTING: Duration = Duration::from_secs(10);
/// The guard removes its directories in this time, or the runner does.
const REMOVING: Duration = Duration::from_secs(2);

/// Names below the directory that the guard makes.
const HOME: &str = "home";
const TMP: &str = "tmp";
const WORK: &str = "work";
const UNRULED: &str = "unruled";
/// Never made.
const NEW: &str = "new";

/// What the guard makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Contents {
    /// What a client has of it.
    Trees,
    Nothing,
}

impl Contents {
    const ALL: [Self; 2] = [Self::Trees, Self::Nothing];

    /// The word for it on the guard's command line.
    fn word(self) -> &'static str {
        match self {
            Self::Trees => "trees",
            Self::Nothing => "nothing",
        }
    }
}

/// A directory that only its user may enter. It is removed when this is dropped.
#[derive(Debug)]
pub struct Guarded {
    base: PathBuf,
    /// Known before the directory is made, so that it is removed also where the guard is lost before it tells.
    name: String,
    /// `None` once it has been let go.
    line: Option<UnixStream>,
    guard: Child,
}

/// Home and temporary directory of the client. They are removed when this is dropped.
#[derive(Debug)]
pub struct TemporaryTrees(Guarded);

impl TemporaryTrees {
    /// Starts a guard that makes them.
    ///
    /// # Errors
    /// The step that failed; nothing is left then.
    pub fn make() -> Result<Self, SetupError> {
        Guarded::make("runner", Contents::Trees).map(Self)
    }

    /// What the client has of them. The directory around them is closed to it.
    pub fn places(&self) -> ClientPaths {
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
    /// Starts a guard that makes one with nothing in it, whose name begins so.
    ///
    /// # Errors
    /// The step that failed; nothing is left then.
    pub fn empty(prefix: &str) -> Result<Self, SetupError> {
        Self::make(prefix, Contents::Nothing)
    }

    fn make(prefix: &str, contents: Contents) -> Result<Self, SetupError> {
        // Whatever our caller left open is nothing to the guard.
        close_on_exec_from(3).at(Step::StartGuard)?;
        let (line, theirs) = UnixStream::pair().at(Step::StartGuard)?;
        reset_child_signal();
        let name = format!("{prefix}-{}", random::token());
        let guard = Command::new(OWN_FILE)
            .arg0("runner-guard")
            .args([GUARD_ARGUMENT, contents.word(), &name])
            .env_clear()
            .envs(env::var_os("TMPDIR").map(|directory| ("TMPDIR", directory)))
            .stdin(Stdio::from(OwnedFd::from(theirs)))
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
        made.base = made.told(STARTING)?;
        Ok(made)
    }

    /// The directory, or why there is none.
    fn told(&self, limit: Duration) -> Result<PathBuf, SetupError> {
        let line = self
            .line
            .as_ref()
            .ok_or(Errno::EPIPE)
            .at(Step::StartGuard)?;
        line.set_read_timeout(Some(limit)).at(Step::StartGuard)?;
        let mut told = Vec::new();
        let read = BufReader::new(line).read_until(b'\0', &mut told);
        // The kernel's errno at the limit (socket(7)).
        if read
            .as_ref()
            .is_err_and(|error| error.as_errno() == Errno::EAGAIN)
        {
            return Err(Errno::ETIMEDOUT).at_object(Step::StartGuard, self.timeout_message(limit));
        }
        read.at(Step::StartGuard)?;
        match told.split_last() {
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

    /// Message about a guard that made no directory in time.
    fn timeout_message(&self, limit: Duration) -> String {
        let process = self.guard.id();
        let condition = i32::try_from(process).ok().map(Pid::from_raw);
        let stopped = match condition.and_then(Condition::of) {
            Some(Condition::Stopped) => " is stopped, and",
            Some(Condition::Runs | Condition::Ended(_)) | None => "",
        };
        let limit = limit.as_secs();
        format!("process {process}{stopped} made none within {limit} s")
    }

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
            // A killed guard has removed no directory; errors have no reader any more.
            for directory in candidates() {
                let _ = remove(&directory.join(&self.name));
            }
        }
    }
}

/// The parents that are tried, the user's own choice first.
pub fn candidates() -> impl Iterator<Item = PathBuf> {
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

/// Entry of the guard's process, which is told what to make, and the name of the directory.
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
    // Ctrl-C goes to the whole foreground group; it is the runner's to answer.
    let _ = setsid();
    ignore_terminal_signals();
    // A stopped guard does not read the end of its line.
    let _ = prctl::set_pdeathsig(Signal::SIGCONT);
    let _ = prctl::set_dumpable(false);
    let base = match make_in_first(candidates(), name, contents) {
        Ok(base) => base,
        Err(errno) => {
            // The runner waits for this; where it is gone, nobody does.
            let _ = line.write_all(format!("{}\0", errno as i32).as_bytes());
            return ExitCode::FAILURE;
        }
    };
    let mut told = base.as_os_str().as_bytes().to_vec();
    told.push(b'\0');
    // Where this fails the runner is gone, and its end is read below.
    let _ = line.write_all(&told);
    // Nothing is ever sent: this returns when the other end is closed.
    let _ = line.read_to_end(&mut Vec::new());
    match remove(&base) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// In the first directory where it can be made; where there is none, why not in the one that comes first.
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

/// Makes a directory and everything in it; nothing where a part of it fails.
fn make(directory: &Path, contents: Contents) -> io::Result<PathBuf> {
    private(directory)?;
    let filled = || {
        let base = fs::canonicalize(directory)?;
        if contents == Contents::Nothing {
            return Ok(base);
        }
        private(&base.join(HOME))?;
        private(&base.join(TMP))?;
        private(&base.join(WORK))?;
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

/// A new directory that only its user may enter.
fn private(directory: &Path) -> io::Result<()> {
    fs::DirBuilder::new().mode(0o700).create(directory)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use nix::fcntl::{OFlag, openat};
    use nix::sys::stat::Mode;

    use super::*;

    #[test]
    fn what_is_made_has_closed_directories_and_an_open_file() {
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

    /// A guard that is stopped before it does anything.
    fn stopped(name: &str) -> (Guarded, UnixStream) {
        let (line, theirs) = UnixStream::pair().unwrap();
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
        (guarded, theirs)
    }

    #[test]
    fn stopped_guard_is_named_at_the_limit() {
        let (guarded, _theirs) = stopped("runner-test-of-silence");
        let error = guarded.told(Duration::from_millis(1)).unwrap_err();
        assert_eq!(
            (error.step, error.errno),
            (Step::StartGuard, Errno::ETIMEDOUT as i32)
        );
        let object = format!(
            "process {} is stopped, and made none within 0 s",
            guarded.guard.id()
        );
        assert_eq!(error.object, object);
    }

    #[test]
    fn stopped_guard_is_killed_and_stood_in_for() {
        let name = format!("runner-test-{}", random::token());
        let directory = candidates().next().unwrap().join(&name);
        make(&directory, Contents::Trees).unwrap();
        let (guarded, _theirs) = stopped(&name);
        let process = Pid::from_raw(i32::try_from(guarded.guard.id()).unwrap());
        drop(guarded);
        assert!(!directory.exists());
        assert_eq!(Condition::of(process), None);
    }

    #[test]
    fn a_directory_in_which_nothing_can_be_made_leaves_nothing() {
        assert!(make(Path::new("/proc/new"), Contents::Trees).is_err());
    }

    #[test]
    fn the_first_directory_that_can_be_written_is_taken_and_the_first_failure_is_told() {
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
    fn removing_reaches_what_was_shut_and_what_lies_deep() {
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
    fn removing_does_not_follow_a_link() {
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
    fn names_that_removing_uses_itself_are_in_nobodys_way() {
        let parent = tempfile::tempdir().unwrap();
        let base = make(&parent.path().join("base"), Contents::Trees).unwrap();
        for name in ["moved-1/a/b", "moved-2", "home/d/e", "home/f/g"] {
            fs::create_dir_all(base.join(name)).unwrap();
        }
        fs::write(base.join("moved-3"), "").unwrap();
        remove(&base).unwrap();
        assert!(!base.exists());
    }

    /// As a client does that is not ended yet.
    #[test]
    fn removing_goes_on_while_something_is_still_being_made() {
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
        // It may have been made anew below a home that had been moved.
        let _ = remove(&base);
        assert!(!base.exists());
    }
}
