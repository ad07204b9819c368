//! Command wrapper of the fixture `outside-world`, and its counts.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use crate::kit::{Done, Run, fixture};

/// Exit code of the fixture if this machine permits no such world.
const NO_WORLD: i32 = 69;

/// Arrivals at the far end, by the fixture's keys.
pub(super) type Arrived = BTreeMap<String, u64>;

/// Returns the reason for a missing outside world, determined once.
pub(crate) fn is_missing() -> Option<&'static str> {
    static MISSING: OnceLock<Option<String>> = OnceLock::new();
    let missing = MISSING.get_or_init(|| {
        let mut client = Command::new(fixture("outgoing-client"));
        let (output, _) = around(client.args(["--go", "nothing"]), &Run::case_b(), &[]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code() == Some(NO_WORLD)).then_some(said)
    });
    missing.as_deref()
}

/// Makes the attempt without a sandbox, with all rights that the user can have. Returns the client's results and the
/// arrivals.
#[track_caller]
pub(super) fn without_sandbox(class: &str, user: &Run) -> (BTreeMap<String, u64>, Arrived) {
    let mut client = Command::new(fixture("outgoing-client"));
    let (output, arrived) = around(client.args(["--go", class]), user, &["--direct"]);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{class}: {stderr}");
    (super::said(&stderr, class), arrived)
}

/// Runs the runner in the near namespace.
#[track_caller]
pub(super) fn sandboxed(run: Run, class: &str) -> (Done, Arrived) {
    let run = going(run, class).argument("--report").argument("json");
    let (output, arrived) = around(&run.command(), &run, &[]);
    (Done::of(&output), arrived)
}

/// Replaces the client of the run by the fixture client.
pub(super) fn going(run: Run, class: &str) -> Run {
    run.client(fixture("outgoing-client"))
        .client_argument("--go")
        .client_argument(class)
}

/// Runs the command in the world, as the user of the run, in a temporary directory.
fn around(command: &Command, user: &Run, options: &[&str]) -> (Output, Arrived) {
    let directory = tempfile::tempdir().unwrap();
    let counts = directory.path().join("counts");
    fs::write(&counts, "").unwrap();
    // Readable for any user of the run.
    fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(&counts, Permissions::from_mode(0o666)).unwrap();
    let mut world = Command::new(fixture("outside-world"));
    world.arg("--counts").arg(&counts).args(options).arg("--");
    world.arg(command.get_program()).args(command.get_args());
    world.stdin(Stdio::null());
    user.with_user(&mut world);
    let output = world.output().unwrap();
    let lines = fs::read_to_string(&counts).unwrap();
    let arrived = lines
        .lines()
        .map(|line| line.rsplit_once(' ').unwrap())
        .map(|(key, count)| (key.to_owned(), count.parse().unwrap()));
    (output, arrived.collect())
}
