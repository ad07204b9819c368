//! The stub as a program.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use model::journal::Entry;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::kit::{Client, post};

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)
}

fn program(arguments: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stub"));
    command
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn failure(arguments: &[&str]) -> (Option<i32>, String) {
    let output = program(arguments).wait_with_output().unwrap();
    assert!(output.stdout.is_empty());
    (
        output.status.code(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

#[test]
fn it_prints_its_url_serves_and_closes_the_journal_at_a_signal() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let (journal, scenario) = (
            file(&format!("{signal}.journal")),
            file(&format!("{signal}.toml")),
        );
        std::fs::write(&journal, "left over\n").unwrap();
        std::fs::write(
            &scenario,
            "title = \"a case\"\n[stub]\ntext = \"Good day.\"\n",
        )
        .unwrap();
        let (journal_text, scenario_text) = (journal.to_str().unwrap(), scenario.to_str().unwrap());
        let mut child = program(&[
            "--listen",
            "127.0.0.1:0",
            "--journal",
            journal_text,
            "--scenario",
            scenario_text,
        ]);
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let address = line.trim_end().strip_prefix("http://").unwrap();
        let mut client = Client {
            stream: TcpStream::connect(address).unwrap(),
        };
        let answer = client.send(post()).answer();
        assert_eq!(answer.events()[2].1["delta"]["text"], "Good day.");

        kill(Pid::from_raw(child.id().try_into().unwrap()), signal).unwrap();
        assert!(child.wait().unwrap().success());
        let mut rest = String::new();
        stdout.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "");
        let text = std::fs::read_to_string(&journal).unwrap();
        let entries: Vec<Entry> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert!(matches!(
            entries.first(),
            Some(Entry::Accepted { connection: 1, .. })
        ));
        assert!(matches!(entries.last(), Some(Entry::Done { .. })));
        assert_eq!(
            std::fs::metadata(&journal).unwrap().permissions().mode() & 0o7777,
            0o600
        );
    }
}

#[test]
fn an_address_beyond_this_host_is_refused() {
    let journal = file("refused.journal");
    let (code, text) = failure(&[
        "--listen",
        "0.0.0.0:0",
        "--journal",
        journal.to_str().unwrap(),
    ]);
    assert_eq!(code, Some(2));
    assert!(
        text.contains("expected a loopback address, found 0.0.0.0"),
        "{text}"
    );
    assert!(!journal.exists());
}

#[test]
fn a_wrong_scenario_is_refused_with_its_cause() {
    let scenario = file("wrong.toml");
    std::fs::write(&scenario, "[stub]\ntxt = \"a\"\n").unwrap();
    let journal = file("wrong.journal");
    let arguments = [
        "--listen",
        "127.0.0.1:0",
        "--journal",
        journal.to_str().unwrap(),
        "--scenario",
        scenario.to_str().unwrap(),
    ];
    let (code, text) = failure(&arguments);
    assert_eq!(code, Some(2));
    assert!(
        text.starts_with("error: cannot parse the scenario ")
            && text.contains("caused by:")
            && text.contains("txt"),
        "{text}"
    );
}

#[test]
fn fifo_as_scenario_or_journal_is_an_error() {
    let fifo = file("fifo.toml");
    let _ = std::fs::remove_file(&fifo);
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let journal = file("fifo.journal");
    let [fifo, journal] = [&fifo, &journal].map(|path| path.to_str().unwrap());
    let said = |journal, scenario| {
        let (code, text) = failure(&[
            "--listen",
            "127.0.0.1:0",
            "--journal",
            journal,
            "--scenario",
            scenario,
        ]);
        assert_eq!(code, Some(2));
        assert!(
            text.contains("caused by: expected a regular file or a device, found"),
            "{text}"
        );
        text
    };
    assert!(said(journal, fifo).starts_with("error: cannot read the scenario "));
    let text = said(fifo, "redirect-307");
    assert!(
        text.starts_with("error: cannot open the journal "),
        "{text}"
    );
}

#[test]
fn a_built_in_scenario_is_taken_by_its_name() {
    let journal = file("named.journal");
    let mut child = program(&[
        "--listen",
        "127.0.0.1:0",
        "--journal",
        journal.to_str().unwrap(),
        "--scenario",
        "redirect-307",
    ]);
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut urls = [String::new(), String::new()];
    for url in &mut urls {
        stdout.read_line(url).unwrap();
    }
    let address = |url: &str| url.trim_end().strip_prefix("http://").unwrap().to_owned();
    let [here, elsewhere] = urls.map(|url| address(&url));
    assert!(elsewhere.starts_with("127.0.0.2:"), "{elsewhere}");
    for (address, status) in [(here, 307), (elsewhere, 200)] {
        let stream = TcpStream::connect(address).unwrap();
        assert_eq!(Client { stream }.send(post()).answer().status, status);
    }
    kill(
        Pid::from_raw(child.id().try_into().unwrap()),
        Signal::SIGTERM,
    )
    .unwrap();
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_name_that_is_none_is_refused_with_the_way_to_the_list() {
    let journal = file("unnamed.journal");
    let (code, text) = failure(&[
        "--listen",
        "127.0.0.1:0",
        "--journal",
        journal.to_str().unwrap(),
        "--scenario",
        "txt",
    ]);
    assert_eq!(code, Some(2));
    assert_eq!(
        text,
        "error: no built-in scenario is named `txt`; `stub --list-scenarios` lists them\n"
    );
}

#[test]
fn the_built_in_scenarios_are_listed_one_a_line() {
    let output = program(&["--list-scenarios"]).wait_with_output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    let listed: Vec<_> = text
        .lines()
        .map(|line| line.split_once(' ').unwrap().0)
        .collect();
    let names: Vec<_> = scenario::Scenario::names()
        .map(|scenario| scenario.name)
        .collect();
    assert_eq!(listed, names);
    assert_eq!(
        failure(&["--list-scenarios", "--listen", "127.0.0.1:0"]).0,
        Some(2)
    );
    assert_eq!(failure(&[]).0, Some(2));
}
