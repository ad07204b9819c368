//! Files left in the home, and paths that must never exist there.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use crate::kit::{Client, KEY, Server, answer, stream};

/// Each path under `home` with its mode, sorted.
fn tree(home: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut waiting = vec![home.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path: PathBuf = entry.unwrap().path();
            let metadata = fs::symlink_metadata(&path).unwrap();
            let name = path
                .strip_prefix(home)
                .unwrap()
                .to_string_lossy()
                .into_owned();
            found.push((
                name,
                format!("{:04o}", metadata.permissions().mode() & 0o7777),
            ));
            if metadata.is_dir() {
                waiting.push(path);
            }
        }
    }
    found.sort();
    found
}

fn now_ms() -> u128 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_millis()
}

fn check_tree(home: &Path) -> u128 {
    let tree = tree(home);
    let backup = ".agent/backups/.agent.json.backup.";
    let suffix = tree[3].0.strip_prefix(backup).unwrap();
    let expected = [
        (".agent".to_owned(), "0700".to_owned()),
        (".agent/.agent.json".to_owned(), "0600".to_owned()),
        (".agent/backups".to_owned(), "0700".to_owned()),
        (format!("{backup}{suffix}"), "0600".to_owned()),
    ];
    assert_eq!(tree, expected);
    assert_eq!(suffix.len(), 13);
    suffix.parse().unwrap()
}

#[test]
fn both_cases_leave_the_two_files_with_their_modes_and_nothing_else() {
    let before = now_ms();
    let server = Server::start(vec![stream(""), stream(answer()), stream(answer())]);
    let run_a = Client::case_a(server.address).output();
    let run_b = Client::case_b(server.address).output();
    server.requests();
    for run in [run_a, run_b] {
        assert_eq!(run.code, Some(0), "{run:?}");
        let stamp = check_tree(run.home.path());
        assert!((before..=now_ms()).contains(&stamp), "{stamp}");
    }
}

#[test]
fn the_umask_neither_widens_nor_narrows_the_modes() {
    for umask in ["0000", "0777", "0277"] {
        let server = Server::answering(stream(answer()));
        let home = tempfile::tempdir().unwrap();
        let program = env!("CARGO_BIN_EXE_agent-cli");
        let status = Command::new("/bin/sh")
            .arg("-c")
            .arg(format!(
                "umask {umask} && exec {program} --print --safe-mode hi >/dev/null"
            ))
            .env_clear()
            .env("HOME", home.path())
            .env("AGENT_API_KEY", KEY)
            .env("AGENT_BASE_URL", format!("http://{}", server.address))
            .status()
            .unwrap();
        assert!(status.success(), "umask {umask}");
        check_tree(home.path());
        server.requests();
    }
}

#[test]
fn a_second_run_in_the_same_home_makes_no_second_backup() {
    let server = Server::start(vec![stream(answer()), stream(answer())]);
    let home = tempfile::tempdir().unwrap();
    let shared = home.path().to_str().unwrap();
    Client::case_b(server.address).env("HOME", shared).output();
    let first = tree(home.path());
    let run = Client::case_b(server.address).env("HOME", shared).output();
    assert_eq!(run.code, Some(0));
    assert_eq!(tree(home.path()), first);
    server.requests();
}

#[test]
fn no_file_holds_the_key_the_prompt_or_the_answer() {
    let server = Server::answering(stream(answer()));
    let run = Client::case_b(server.address).output();
    server.requests();
    for (path, _) in tree(run.home.path()) {
        let path = run.home.path().join(path);
        if path.is_file() {
            let content = fs::read_to_string(&path).unwrap();
            assert!(
                content.starts_with('{') && content.ends_with('}'),
                "{content}"
            );
            for secret in [KEY, "say hello", "be brief", "Hällo"] {
                assert!(!content.contains(secret), "{}", path.display());
            }
        }
    }
}

#[test]
fn the_files_are_there_before_the_request_is_sent() {
    let (found, seen) = std::sync::mpsc::channel();
    let home = tempfile::tempdir().unwrap();
    let path = home.path().to_owned();
    let server = Server::answering(Box::new(move |_| found.send(tree(&path).len()).unwrap()));
    Client::case_b(server.address)
        .env("HOME", home.path().to_str().unwrap())
        .output();
    assert_eq!(seen.recv_timeout(Duration::from_secs(30)).unwrap(), 4);
    server.requests();
}
