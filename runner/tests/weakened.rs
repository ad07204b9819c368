//! Protections, each switched off in a test build: the run refuses to start the client, and names the layer or canary
//! that found the gap.
//!
//! CONTRIBUTING.md has the commands, under "Weakened builds".
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "all of this is test code"
)]

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use probes::probe::{Kind, LedgerEntry};

fn fixture(name: &str) -> PathBuf {
    let runner = Path::new(env!("CARGO_BIN_EXE_runner"));
    runner.with_file_name("examples").join(name)
}

/// Returns the exit code, and the error line that names the missing protection, in isolation `namespace`.
fn case_b(weakened: &str, ordinary_user: bool) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_runner"));
    command.args(["case-b", "--isolation", "namespace"]);
    said(command, weakened, ordinary_user)
}

/// Returns the exit code and the error line in isolation `inherited`, in a network that has loopback only.
fn shared(weakened: &str, ordinary_user: bool) -> (Option<i32>, String) {
    let mut command = Command::new(fixture("hindered-host"));
    command.args(["network", "--", env!("CARGO_BIN_EXE_runner")]);
    command.args(["case-b", "--isolation", "inherited"]);
    said(command, weakened, ordinary_user)
}

fn said(mut command: Command, weakened: &str, ordinary_user: bool) -> (Option<i32>, String) {
    command.env("RUNNER_WEAKEN", weakened);
    if ordinary_user && nix::unistd::Uid::current().is_root() {
        command.uid(1000).gid(1000);
    }
    let output = command.output().unwrap();
    (
        output.status.code(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

#[track_caller]
fn misses(weakened: &str, what: &[&str]) {
    missed(case_b, weakened, what);
}

#[track_caller]
fn missed(run: fn(&str, bool) -> (Option<i32>, String), weakened: &str, what: &[&str]) {
    for ordinary_user in [false, true] {
        let (code, said) = run(weakened, ordinary_user);
        assert_eq!(code, Some(3), "without {weakened}: {said}");
        for one in what {
            assert!(
                said.contains(one),
                "without {weakened}, {one} is not in: {said}"
            );
        }
        assert!(
            said.contains("the client was not started") || said.contains("cannot set up"),
            "{said}"
        );
    }
}

#[test]
fn with_every_protection_the_case_passes() {
    for run in [case_b, shared] {
        for ordinary_user in [false, true] {
            let (code, said) = run("", ordinary_user);
            assert_eq!(code, Some(0), "{said}");
        }
    }
}

#[test]
fn without_landlock_each_of_its_canaries_tells_where_it_stands_alone() {
    missed(
        shared,
        "landlock",
        &[
            "probe host-directory (continued): expected EACCES, found ok",
            "probe write-outside (continued): expected EACCES, found ok",
            "probe landlock-read (continued): expected EACCES, found ok",
            "probe neighbour (continued): expected EACCES, found ok",
            "probe abstract-socket-outside (continued): expected EPERM, found ok",
            "probe abstract-socket-inside (continued): expected EPERM, found ok",
            "probe signal (continued): expected EPERM, found ok",
        ],
    );
}

#[test]
fn without_the_supervisors_refusals_unix_sockets_and_listeners_tell_where_the_network_is_shared() {
    missed(
        shared,
        "refusals",
        &[
            "probe unix-socket (answered): expected EACCES, found ok",
            "probe udp4 (answered): expected EACCES, found ENETUNREACH",
            "probe io-uring (answered): expected ENOSYS, found ok",
        ],
    );
}

#[test]
fn without_the_filters_own_refusals_its_canaries_tell_where_nothing_is_its_own() {
    missed(
        shared,
        "filter",
        &["probe terminal-input (continued): expected EPERM, found ENOTTY"],
    );
}

#[test]
fn with_a_dumpable_init_and_no_landlock_a_shared_init_is_read_by_its_user() {
    let (code, said) = shared("landlock,hidden-init", true);
    assert_eq!(code, Some(3));
    let told = "probe init-memory (continued): expected EACCES, found ok";
    assert!(said.contains(told), "{said}");
    let (_, said) = shared("landlock", true);
    assert!(!said.contains("init-memory"), "{said}");
}

#[test]
fn without_a_network_namespace_there_is_no_loopback_to_set_up() {
    misses(
        "network-namespace",
        &["cannot set the loopback device up: EPERM"],
    );
}

/// The namespace can reach the outside, and the client tries to.
#[test]
fn without_what_seals_the_network_nothing_is_started_that_could_reach_the_world() {
    let directory = tempfile::tempdir().unwrap();
    for weakened in ["network-namespace", "refusals", "records"] {
        let counts = directory.path().join(weakened);
        let mut world = Command::new(fixture("outside-world"));
        world.arg("--counts").arg(&counts).arg("--");
        world.arg(env!("CARGO_BIN_EXE_runner")).arg("case-b");
        world.args(["--isolation", "namespace", "--client"]);
        world.arg(fixture("outgoing-client"));
        world.args(["--", "--go", "tcp-connect"]);
        let output = world.env("RUNNER_WEAKEN", weakened).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "without {weakened}: {said}");
        assert!(!said.contains("tcp-connect: "), "{said}");
        assert_eq!(fs::read_to_string(&counts).unwrap(), "", "{weakened}");
    }
}

#[test]
fn without_a_read_only_root_the_read_back_and_its_canary_tell() {
    misses(
        "read-only-root",
        &[
            "root: ",
            "probe write-root (continued): expected EROFS, found EACCES",
        ],
    );
}

#[test]
fn without_noexec_the_read_back_tells() {
    misses("no-exec", &["writable /home/sandbox", "writable /tmp"]);
}

#[test]
fn with_capabilities_the_read_back_tells() {
    misses(
        "capabilities",
        &["capabilities: not empty: CapPrm CapEff CapBnd"],
    );
}

#[test]
fn without_limits_the_read_back_tells() {
    misses("limits", &["resource limits"]);
}

#[test]
fn without_landlock_its_two_canaries_tell() {
    misses(
        "landlock",
        &[
            "probe landlock-read (continued): expected EACCES, found ok",
            "probe abstract-socket-inside (continued): expected EPERM, found ok",
        ],
    );
}

/// Landlock alone also hides init's memory, and so does root's change of user.
#[test]
fn with_a_dumpable_init_and_no_landlock_its_memory_can_be_read_by_its_own_user() {
    let (code, said) = case_b("landlock,hidden-init", true);
    assert_eq!(code, Some(3));
    assert!(
        said.contains("probe init-memory (continued): expected EACCES, found ok"),
        "{said}"
    );
    let (_, said) = case_b("landlock", true);
    assert!(!said.contains("init-memory"), "{said}");
}

#[test]
fn without_the_filters_own_refusals_its_canaries_tell() {
    misses(
        "filter",
        &[
            "probe unshare (continued): expected EPERM, found ok",
            "probe terminal-input (continued): expected EPERM, found ENOTTY",
        ],
    );
}

#[test]
fn without_the_supervisors_refusals_its_canaries_tell() {
    misses(
        "refusals",
        &["probe io-uring (answered): expected ENOSYS, found ok"],
    );
}

#[test]
fn without_the_supervisors_records_every_network_canary_tells() {
    let ways = ["tcp4", "tcp6", "udp4", "udp6", "broadcast", "multicast"];
    let told: Vec<String> = ways
        .iter()
        .flat_map(|way| {
            ["answered", "continued"].map(|mode| {
                format!(
                    "probe {way} ({mode}): expected ENETUNREACH, found ENETUNREACH, not recorded"
                )
            })
        })
        .collect();
    let told: Vec<&str> = told.iter().map(String::as_str).collect();
    misses("records", &told);
}

/// Returns the exit code of the selftest without a protection, and its answer.
#[track_caller]
fn selftest(weakened: &str, ordinary_user: bool) -> (Option<i32>, serde_json::Value) {
    let mut command = Command::new("sh");
    // If the runner sets no limit, the length of a core is unlimited.
    command.args([
        "-c",
        r#"ulimit -c unlimited; exec "$0" selftest --json --strict"#,
    ]);
    command.arg(env!("CARGO_BIN_EXE_runner"));
    // Without this, the runner would refuse to start the client.
    command.env("RUNNER_WEAKEN", format!("judgement,{weakened}"));
    if ordinary_user && nix::unistd::Uid::current().is_root() {
        command.uid(1000).gid(1000);
    }
    let output = command.current_dir("/").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let answer = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("without {weakened}: {error}: {said}"));
    (output.status.code(), answer)
}

/// Returns the classes with this status.
fn that_are<'a>(status: &str, answer: &'a serde_json::Value) -> Vec<&'a str> {
    let classes = answer["classes"].as_array().unwrap();
    let wanted = classes.iter().filter(|class| class["status"] == status);
    wanted.map(|class| class["id"].as_str().unwrap()).collect()
}

/// Asserts the classes that get through without `weakened` and those that become inconclusive; no other class changes.
#[track_caller]
fn opens(weakened: &str, ordinary_user: bool, through: &[&str], undecided: &[&str]) {
    let (_, whole) = selftest("", ordinary_user);
    let unknown = that_are("inconclusive", &whole);
    let (code, answer) = selftest(weakened, ordinary_user);
    let found = that_are("through", &answer);
    // A class that this host itself refuses cannot get through.
    let possible = through.iter().filter(|id| !unknown.contains(id));
    let possible: Vec<&str> = possible.copied().collect();
    assert_eq!(found, possible, "without {weakened}: {answer:#}");
    let mut doubtful = that_are("inconclusive", &answer);
    doubtful.retain(|id| !unknown.contains(id));
    assert_eq!(doubtful, undecided, "without {weakened}: {answer:#}");
    let expected = if through.is_empty() { 3 } else { 1 };
    assert_eq!(code, Some(expected), "without {weakened}");
}

#[test]
fn with_every_protection_nothing_of_the_selftest_gets_through() {
    for ordinary_user in [false, true] {
        let (_, answer) = selftest("", ordinary_user);
        assert_eq!(that_are("through", &answer), [""; 0], "{answer:#}");
    }
}

/// Another layer refuses the inconclusive class, with another errno.
#[test]
fn without_the_filters_own_refusals_the_selftest_finds_what_rests_on_them() {
    opens(
        "filter",
        false,
        &[
            "processes/init",
            "processes/namespaces",
            "files/attributes",
            "kernel/terminal-input",
            "kernel/terminal-paste",
            "kernel/keyrings",
            "kernel/perf",
            "kernel/userfaultfd",
            "kernel/fanotify",
            "kernel/handles",
        ],
        &["processes/memory"],
    );
}

#[test]
fn without_the_supervisors_refusals_the_selftest_finds_what_rests_on_them() {
    opens(
        "refusals",
        false,
        &[
            "sockets/vsock",
            "sockets/mptcp",
            "sockets/udp-lite",
            "sockets/netlink",
            "sockets/io-uring",
            "sockets/i386",
            "sockets/x32",
            "sockets/forced-link",
            "sockets/urgent-bytes",
            "processes/supervisor",
        ],
        &["sockets/packet", "sockets/xdp"],
    );
}

#[test]
fn without_records_the_selftest_misses_all_that_is_evidence() {
    let recorded = probes::table::classes().filter(|class| {
        let mut expected = class.probes.iter().map(|one| one.expected(Kind::Namespace));
        expected.any(|one| !one.refusals.is_empty() && one.entry != LedgerEntry::None)
    });
    opens(
        "records",
        false,
        &Vec::from_iter(recorded.map(|class| class.id)),
        &[],
    );
}

/// Classes that rest on Landlock alone, and those of `further`, in the order of the report.
fn without_landlock(further: &[&'static str]) -> Vec<&'static str> {
    let alone = [
        "processes/init",
        "processes/signals",
        "files/read",
        "files/own-proc",
        "files/devices",
    ];
    let ids = probes::table::classes().map(|class| class.id);
    ids.filter(|id| alone.contains(id) || further.contains(id))
        .collect()
}

#[test]
fn without_landlock_the_selftest_finds_what_rests_on_it() {
    opens("landlock", false, &without_landlock(&[]), &[]);
}

#[test]
fn with_capabilities_the_selftest_finds_them() {
    opens("capabilities", false, &["processes/capabilities"], &[]);
}

/// Either layer refuses alone too, though with another errno. Landlock has no right for mappings, so a mapping of an own
/// file gets through without noexec.
#[test]
fn what_two_layers_refuse_gets_through_without_both() {
    opens("read-only-root", true, &[], &["files/write"]);
    opens("no-exec", true, &["files/execute"], &[]);
    for (weakened, further) in [
        ("read-only-root,landlock", &["files/write"][..]),
        ("no-exec,landlock", &["files/execute"]),
        (
            "hidden-init,landlock",
            &["processes/memory", "files/magic-links"],
        ),
    ] {
        opens(weakened, true, &without_landlock(further), &[]);
    }
}

#[test]
fn without_limits_the_selftest_finds_a_core() {
    opens("limits", true, &["processes/cores"], &[]);
}

/// The kernel's list of sockets shows a client's unsent bytes, even if the socket option that delays them is not
/// refused.
#[test]
fn without_the_supervisors_refusals_bytes_that_the_kernel_holds_are_found() {
    for namespaces in [true, false] {
        let mut command = Command::new(fixture("hindered-host"));
        let missing = if namespaces {
            "network"
        } else {
            "network,namespaces"
        };
        command.args([
            missing,
            "--",
            env!("CARGO_BIN_EXE_runner"),
            "case-b",
            "--client",
        ]);
        command.arg(fixture("deviant-client"));
        command.args(["--", "--deviate", "paced-message"]);
        let output = command
            .env("RUNNER_WEAKEN", "refusals,judgement")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains("bytes that the kernel still held"), "{said}");
    }
}
