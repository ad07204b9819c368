//! Inheritance of a run from its caller: descriptors, environment, directory, groups, names.

use std::fs;
use std::process::Command;

use super::attempt::{hostile, inside_one, outside, said};
use crate::kit::{Run, is_root};
use crate::needs_sandbox;
use crate::teardown::watch::{Place, Started};

/// Puts a connected socket on 7 and a directory on 10, then executes the following command.
const WITH_DESCRIPTORS: &str = r#"exec 7<>/dev/tcp/127.0.0.1/$0 10</usr; exec "$@""#;

fn with_descriptors(port: u16, command: &Command) -> Command {
    let mut shell = Command::new("bash");
    shell.args(["-c", WITH_DESCRIPTORS, &port.to_string()]);
    shell.arg(command.get_program()).args(command.get_args());
    shell.current_dir("/usr").env("RUNNER_TEST_SECRET", "x");
    shell
}

#[test]
fn no_descriptor_of_the_caller_reaches_the_client() {
    needs_sandbox!();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let run = hostile(&["descriptors"])
        .with_devices("\"null\"")
        .argument("--report")
        .argument("json");
    let done = Started::of(with_descriptors(port, &run.command())).wait();
    let detail = said(&done, &["descriptors"]).remove(0).detail;
    let open: Vec<&str> = detail.split(' ').collect();
    // 3 is the listing itself.
    assert!(
        matches!(
            open.as_slice(),
            ["0=/dev/null", out, error, own, "cwd=/home/work"]
                if out.starts_with("1=pipe:") && error.starts_with("2=pipe:") && *own == "3=/proc/2/fd"
        ),
        "{detail}"
    );
    // The twin: a program that starts the same way inherits them.
    let mut twin = Command::new(crate::kit::fixture("hostile-client"));
    twin.args(["--attempt", "descriptors"]);
    let output = with_descriptors(port, &twin).output().unwrap();
    let seen = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        seen.contains(" 7=socket:") || seen.contains("\"7=socket:"),
        "{seen}"
    );
    assert!(
        seen.contains("10=/usr ") && seen.contains("cwd=/usr"),
        "{seen}"
    );
}

/// The stub serves the client, and init runs beside it: neither may hold the caller's open descriptors.
#[test]
fn no_descriptor_of_the_caller_reaches_the_stub_or_init() {
    needs_sandbox!();
    if !is_root() {
        eprintln!("the descriptors of a process that is not dumpable are root's to list");
        return;
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let run = hostile(&["sleep"]).argument("--report").argument("json");
    let mut started = Started::of(with_descriptors(port, &run.command()));
    started.client();
    for process in [started.stage(), started.init()] {
        for entry in fs::read_dir(format!("/proc/{process}/fd")).unwrap() {
            let leads_to = fs::read_link(entry.unwrap().path()).unwrap_or_default();
            assert_ne!(leads_to.to_string_lossy(), "/usr", "of process {process}");
        }
        let table = format!("/proc/{process}/fd/7");
        let socket = fs::read_link(table).unwrap_or_default();
        let callers = fs::read_link(format!("/proc/{}/fd/7", started.runner())).unwrap();
        assert_ne!(socket, callers, "of process {process}");
    }
    started.interrupt();
}

#[test]
fn the_environment_is_made_from_nothing() {
    needs_sandbox!();
    let made = inside_one("surroundings").detail;
    assert_eq!(
        made,
        "environment=AGENT_API_KEY,AGENT_BASE_URL,HOME,TMPDIR host=sandbox domain=(none)"
    );
    let twin = outside("surroundings").detail;
    assert!(
        twin.contains("PATH") && !twin.contains("host=sandbox "),
        "{twin}"
    );
}

#[test]
fn the_client_has_no_group_and_no_id_of_the_host() {
    needs_sandbox!();
    for run in [
        hostile(&["read /proc/self/uid_map", "read /proc/self/status"]),
        hostile(&["read /proc/self/uid_map", "read /proc/self/status"]).as_ordinary_user(),
    ] {
        let made = said(&run.json(), &["", ""]);
        let [map, status] = made.as_slice() else {
            panic!("{made:?}")
        };
        let map: Vec<u32> = map
            .detail
            .split_whitespace()
            .map(|number| number.parse().unwrap())
            .collect();
        assert_eq!((map[0], map[2], map.len()), (1000, 1, 3));
        assert_ne!(map[1], 0, "the client is the host's root");
        let field = |name: &str| {
            let line = status.detail.lines().find(|line| line.starts_with(name));
            line.and_then(|line| line.split_once(':')).unwrap().1.trim()
        };
        for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
            assert_eq!(field(set), "0000000000000000", "{set}");
        }
        assert_eq!(field("Groups"), "");
        assert_eq!(field("NoNewPrivs"), "1");
        assert_eq!(field("Seccomp"), "2");
        assert_eq!(field("Uid"), "1000\t1000\t1000\t1000");
        assert_eq!(field("Gid"), "1000\t1000\t1000\t1000");
    }
}

#[test]
fn a_plain_run_leaves_nothing_in_the_directory_for_temporary_files() {
    needs_sandbox!();
    let place = Place::new();
    place.start(Run::case_b()).wait().assert_passed();
    place.assert_nothing_left();
}

/// A bind mount names its source: the client learns its program's path and device, and no other path of the host.
#[test]
fn the_mount_table_names_one_place_of_the_host() {
    needs_sandbox!();
    let table = inside_one("read /proc/self/mountinfo").detail;
    let program = fs::canonicalize(crate::kit::fixture("hostile-client")).unwrap();
    for line in table.lines() {
        // proc_pid_mountinfo(5): the root within the file system, the mount point.
        let words: Vec<&str> = line.split(' ').collect();
        let expected = match words[4] {
            "/client/agent-cli" => {
                assert!(
                    program.ends_with(words[3].trim_start_matches('/')),
                    "{line}"
                );
                continue;
            }
            device if device.starts_with("/dev/") => device.trim_start_matches("/dev"),
            "/" | "/home/sandbox" | "/home/work" | "/tmp" | "/proc" => "/",
            _ => panic!("{line}"),
        };
        assert_eq!(words[3], expected, "{line}");
    }
}
