//! An observer of a running run, and checks for its remains after the end.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::kit::{Done, Run, is_root, runner};

/// Longest wait for anything; far more than a loaded machine needs.
const PATIENCE: Duration = Duration::from_secs(30);

/// Polls until there is an answer.
#[track_caller]
pub(crate) fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A started run.
pub(crate) struct Started {
    process: Option<Child>,
}

impl Started {
    /// Starts the run with a JSON report on standard output.
    pub(crate) fn new(run: Run) -> Self {
        Self::of(run.argument("--report").argument("json").command())
    }

    pub(crate) fn of(mut command: Command) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Self {
            process: Some(command.spawn().unwrap()),
        }
    }

    pub(crate) fn runner(&self) -> Pid {
        let process = self.process.as_ref().unwrap();
        Pid::from_raw(process.id().try_into().unwrap())
    }

    /// The child of the runner that is the stage.
    pub(crate) fn stage(&self) -> Pid {
        until("the stage", || self.find("__stage"))
    }

    /// Returns the child of the runner that guards its temporary directories.
    pub(crate) fn guard(&self) -> Pid {
        until("the guard", || self.find("__guard"))
    }

    /// The stage's only child.
    pub(crate) fn init(&self) -> Pid {
        until("init", || self.find_init())
    }

    /// Returns init's child, once it runs the client's program.
    pub(crate) fn client(&self) -> Pid {
        self.client_with("--attempt")
    }

    /// Returns init's child, once its command line has this word.
    pub(crate) fn client_with(&self, word: &str) -> Pid {
        until("the client", || {
            let client = children(self.find_init()?).first().copied()?;
            arguments(client).contains(word).then_some(client)
        })
    }

    /// Returns a current child of the runner: each tried isolation has its own stage.
    fn find(&self, word: &str) -> Option<Pid> {
        let has_word = |child: &Pid| arguments(*child).contains(word);
        children(self.runner()).into_iter().find(has_word)
    }

    fn find_init(&self) -> Option<Pid> {
        children(self.find("__stage")?).first().copied()
    }

    /// Sends SIGINT, and returns the result of the run.
    pub(crate) fn interrupt(&mut self) -> Done {
        kill(self.runner(), Signal::SIGINT).unwrap();
        self.wait()
    }

    /// Waits for the end of the run, and returns its result.
    pub(crate) fn wait(&mut self) -> Done {
        Done::of(&self.process.take().unwrap().wait_with_output().unwrap())
    }

    /// Sends SIGKILL to the runner only.
    pub(crate) fn kill(&mut self) {
        let mut process = self.process.take().unwrap();
        process.kill().unwrap();
        process.wait().unwrap();
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if self.process.is_some() {
            self.kill();
        }
    }
}

/// proc_pid_task(5): the children of a single-threaded process.
pub(crate) fn children(parent: Pid) -> Vec<Pid> {
    let Ok(listed) = fs::read_dir(format!("/proc/{parent}/task")) else {
        return Vec::new();
    };
    listed
        .filter_map(|entry| fs::read_to_string(entry.ok()?.path().join("children")).ok())
        .flat_map(|text| {
            text.split_whitespace()
                .map(|pid| Pid::from_raw(pid.parse().unwrap()))
                .collect::<Vec<_>>()
        })
        .collect()
}

fn arguments(process: Pid) -> String {
    let bytes = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).replace('\0', " ")
}

/// Files of one run: the executable under a path that no other process runs, and a directory for temporary files.
pub(crate) struct Place {
    directory: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        // The file system of the executable, so that a hard link is possible.
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let open = |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o755));
        open(directory.path()).unwrap();
        fs::hard_link(runner(), directory.path().join("runner")).unwrap();
        let place = Self { directory };
        fs::create_dir(place.temporary()).unwrap();
        if is_root() {
            fs::set_permissions(place.temporary(), fs::Permissions::from_mode(0o1777)).unwrap();
            chown(place.temporary(), Some(1000), Some(1000)).unwrap();
        }
        place
    }

    /// Returns a word for the client's command line that identifies its processes.
    pub(crate) fn marker(&self) -> String {
        self.directory.path().display().to_string()
    }

    fn temporary(&self) -> PathBuf {
        self.directory.path().join("tmp")
    }

    /// Returns true if there are temporary files now.
    pub(crate) fn holds_something(&self) -> bool {
        fs::read_dir(self.temporary()).unwrap().next().is_some()
    }

    /// The directory, which holds the executable and which others may read.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Starts `run` here.
    pub(crate) fn start(&self, run: Run) -> Started {
        Started::of(self.command(run))
    }

    /// `run` with a JSON report on standard output, from here.
    pub(crate) fn command(&self, run: Run) -> Command {
        let here = run.argument("--report").argument("json");
        let mut command = here.command_of(&self.directory.path().join("runner"));
        command.env("TMPDIR", self.temporary());
        command
    }

    /// Waits until no process of this place runs, and asserts that there are no files.
    #[track_caller]
    pub(crate) fn assert_nothing_left(&self) {
        self.assert_nothing_left_within(PATIENCE);
    }

    /// Asserts that no process and no file remain right after the end of a runner that was not killed.
    #[track_caller]
    pub(crate) fn assert_nothing_left_now(&self) {
        self.assert_nothing_left_within(Duration::from_millis(100));
    }

    #[track_caller]
    fn assert_nothing_left_within(&self, patience: Duration) {
        let mut left = Vec::new();
        let deadline = Instant::now() + patience;
        while Instant::now() < deadline {
            left = self.processes();
            if left.is_empty() {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(left.is_empty(), "left: {left:?}");
        let files: Vec<_> = fs::read_dir(self.temporary())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        assert!(files.is_empty(), "left: {files:?}");
    }

    /// Returns processes with their executable or their command line in this place, without zombies (which have
    /// neither). The executable identifies init and the stage; the command line identifies the client and its children.
    fn processes(&self) -> Vec<(Pid, String)> {
        let marker = self.marker();
        fs::read_dir("/proc")
            .unwrap()
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .map(Pid::from_raw)
            .filter_map(|pid| {
                let executable = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
                let words = arguments(pid);
                (executable.starts_with(&marker) || words.contains(&marker)).then_some((pid, words))
            })
            .filter(|(pid, _)| *pid != Pid::this())
            .collect()
    }
}
