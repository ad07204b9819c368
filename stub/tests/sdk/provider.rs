//! The stub's executable, for one scenario and one mode.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use model::journal::{Entry, Head};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

pub(crate) struct Provider {
    scenario: &'static str,
    mode: &'static str,
    child: Child,
    _stdout: BufReader<ChildStdout>,
    url: String,
    journal: PathBuf,
}

impl Provider {
    pub(crate) fn start(scenario: &'static str, mode: &'static str) -> Self {
        let process = std::process::id();
        let journal = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("sdk-{process}-{scenario}-{mode}.journal"));
        let mut child = Command::new(env!("CARGO_BIN_EXE_stub"))
            .args(["--listen", "127.0.0.1:0", "--scenario", scenario])
            .arg("--journal")
            .arg(&journal)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut url = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut url).unwrap();
        assert!(url.starts_with("http://"), "{scenario}: {url:?}");
        Self {
            scenario,
            mode,
            child,
            _stdout: stdout,
            url: url.trim_end().to_owned(),
            journal,
        }
    }

    /// Returns the job for the client.
    pub(crate) fn job(&self) -> Value {
        json!({
            "scenario": self.scenario,
            "mode": self.mode,
            "url": self.url,
            "timeout_s": timeout_s(self.scenario),
        })
    }

    /// Ends the run. Returns the number of requests in its journal, at both hosts.
    pub(crate) fn requests(mut self) -> usize {
        let process = Pid::from_raw(self.child.id().try_into().unwrap());
        kill(process, Signal::SIGTERM).unwrap();
        assert!(self.child.wait().unwrap().success());
        let text = std::fs::read_to_string(&self.journal).unwrap();
        std::fs::remove_file(&self.journal).unwrap();
        let is_request = |line: &&str| {
            let entry: Entry = serde_json::from_str(line).unwrap();
            matches!(
                entry,
                Entry::Head {
                    head: Head::Request { .. },
                    ..
                }
            )
        };
        text.lines().filter(is_request).count()
    }
}

/// Returns a client's time-out for the next byte, in seconds: short only for scenarios that stall.
fn timeout_s(scenario: &str) -> u64 {
    match scenario {
        "stall-before-head" => 1,
        // The head of the answer has to arrive within the time-out.
        "stall-mid-stream" => 10,
        _ => 300,
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        // The child has already ended, unless the test failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
