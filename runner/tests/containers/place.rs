//! A directory of the test that containers mount, and the containers' processes as the test sees them. The test shares
//! the engines' pid namespace.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Longest wait for anything; far more than a loaded machine needs.
const PATIENCE: Duration = Duration::from_secs(60);

/// Polls until there is an answer.
#[track_caller]
pub(crate) fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A directory in which every user may write.
pub(crate) struct Place(TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir_in(work()).unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o1777)).unwrap();
        Self(directory)
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Returns the flag that mounts the directory at `there` in a container.
    pub(crate) fn volume(&self, there: &str) -> String {
        format!("--volume={}:{there}", self.path().display())
    }

    /// A marker that appears on no other command line, including the flags that mount this directory.
    pub(crate) fn marker(&self) -> String {
        let name = self.path().file_name().unwrap();
        format!("marker-{}", name.to_string_lossy())
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path()).unwrap();
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }
}

/// The work directory of .ci/containers.
fn work() -> PathBuf {
    std::env::var_os("work")
        .expect("run .ci/containers, which has a directory for the engines")
        .into()
}

/// Returns the flag that mounts the fixture clients in a container, below /fixtures.
pub(crate) fn fixtures() -> &'static str {
    static FLAG: OnceLock<String> = OnceLock::new();
    FLAG.get_or_init(|| {
        let programs = Path::new(env!("CARGO_BIN_EXE_runner")).with_file_name("examples");
        format!("--volume={}:/fixtures:ro", programs.display())
    })
}

/// Processes with this word on their command line.
pub(crate) fn processes(word: &str) -> Vec<(i32, String)> {
    fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(|pid: i32| {
            let bytes = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
            let words = String::from_utf8_lossy(&bytes).replace('\0', " ");
            words.contains(word).then_some((pid, words))
        })
        .collect()
}

/// Returns all descendants of a process, by proc_pid_stat(5): the parent is the second field after the name in
/// parentheses.
pub(crate) fn descendants(process: i32) -> Vec<i32> {
    let parents: Vec<(i32, i32)> = processes("")
        .into_iter()
        .filter_map(|(pid, _)| Some((pid, parent(pid)?)))
        .collect();
    let mut found = vec![process];
    let mut next = 0;
    while let Some(&above) = found.get(next) {
        found.extend(
            parents
                .iter()
                .filter(|(_, parent)| *parent == above)
                .map(|(pid, _)| *pid),
        );
        next += 1;
    }
    found.split_off(1)
}

fn parent(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(1)?.parse().ok()
}
