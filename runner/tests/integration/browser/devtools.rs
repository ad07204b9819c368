//! A headless Chromium, controlled over a pair of pipes in the DevTools protocol: no port, no network, no remaining
//! directory.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Longest wait for one message; far more than a loaded machine needs.
const PATIENCE: Duration = Duration::from_secs(120);

/// Start script. Descriptor 4 has the responses, descriptor 3 the requests. The browser has no network if it can get a
/// namespace.
const START: &str = r#"
    if unshare --user --map-root-user --net true 2>/dev/null; then
        set -- unshare --user --map-root-user --net "$@"
    fi
    exec "$@" 3<&0 4>&1 </dev/null >/dev/null 2>"$HOME/said"
"#;

/// Returns the program, or the reason for its absence.
pub(super) fn program() -> Result<&'static str, &'static str> {
    static PROGRAM: OnceLock<Option<&'static str>> = OnceLock::new();
    let runs = |program: &&str| {
        let version = Command::new(program).arg("--version").output();
        version.is_ok_and(|output| output.status.success())
    };
    let found = PROGRAM.get_or_init(|| ["chromium", "google-chrome"].into_iter().find(runs));
    found.ok_or("neither chromium nor google-chrome can be started")
}

/// A browser with one page.
pub(super) struct Browser {
    process: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    /// Requests sent so far.
    sent: u64,
    session: Option<String>,
    /// Events of the browser.
    pub(super) events: Vec<Value>,
    home: TempDir,
}

impl Browser {
    pub(super) fn start(program: &str) -> Self {
        let home = tempfile::tempdir().unwrap();
        let mut process = Command::new("sh")
            .args(["-c", START, "sh", program])
            .args(["--headless=new", "--remote-debugging-pipe", "--no-first-run"])
            // Chromium's own sandbox is unavailable in some containers. The page is the runner's, and its policy
            // forbids everything.
            .args(["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
            .args(["--disable-background-networking", "--disable-component-update"])
            .args(["--host-resolver-rules=MAP * ~NOTFOUND", "about:blank"])
            .arg(format!("--user-data-dir={}", home.path().join("profile").display()))
            .env_clear()
            .env("HOME", home.path())
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let to = process.stdin.take().unwrap();
        let mut messages = BufReader::new(process.stdout.take().unwrap());
        let (told, from) = channel();
        thread::spawn(move || {
            let mut message = Vec::new();
            while messages
                .read_until(0, &mut message)
                .is_ok_and(|length| length > 0)
            {
                message.pop();
                if told
                    .send(serde_json::from_slice(&message).unwrap())
                    .is_err()
                {
                    return;
                }
                message.clear();
            }
        });
        let mut browser = Self {
            process,
            to,
            from,
            sent: 0,
            session: None,
            events: Vec::new(),
            home,
        };
        browser.attach();
        browser
    }

    fn attach(&mut self) {
        let target = self.ask("Target.createTarget", json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let session = self.ask("Target.attachToTarget", attach);
        self.session = Some(session["sessionId"].as_str().unwrap().to_owned());
        for domain in ["Page", "Runtime", "Network", "Log", "Audits"] {
            self.ask(&format!("{domain}.enable"), json!({}));
        }
    }

    /// Sends a request and waits for its response; earlier messages are kept as events.
    #[track_caller]
    pub(super) fn ask(&mut self, method: &str, parameters: Value) -> Value {
        self.sent += 1;
        let mut message = json!({"id": self.sent, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let mut bytes = serde_json::to_vec(&message).unwrap();
        bytes.push(0);
        self.to.write_all(&bytes).unwrap();
        loop {
            let mut message = self.next();
            if message["id"] == self.sent {
                assert!(message["error"].is_null(), "{method}: {message}");
                return message["result"].take();
            }
            self.events.push(message);
        }
    }

    /// Opens a file and waits until it is loaded.
    pub(super) fn open(&mut self, page: &Path) {
        self.events.clear();
        let address = format!("file://{}", page.display());
        self.ask("Page.navigate", json!({"url": address}));
        while !self
            .events
            .iter()
            .any(|event| event["method"] == "Page.loadEventFired")
        {
            let event = self.next();
            self.events.push(event);
        }
    }

    /// Evaluates a script, to which the page's own policy does not apply.
    #[track_caller]
    pub(super) fn evaluate(&mut self, script: &str) -> Value {
        let asked = json!({"expression": script, "returnByValue": true, "awaitPromise": true});
        let mut answer = self.ask("Runtime.evaluate", asked);
        assert!(answer["exceptionDetails"].is_null(), "{script}: {answer}");
        answer["result"]["value"].take()
    }

    /// Sets the width of the window and the preferred colour scheme.
    pub(super) fn look(&mut self, width: u32, scheme: &str) {
        let window =
            json!({"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600});
        self.ask("Emulation.setDeviceMetricsOverride", window);
        let feature = json!({"name": "prefers-color-scheme", "value": scheme});
        self.ask("Emulation.setEmulatedMedia", json!({"features": [feature]}));
    }

    /// Returns the events with this name.
    pub(super) fn told(&self, method: &str) -> Vec<&Value> {
        let events = self.events.iter();
        events.filter(|event| event["method"] == method).collect()
    }

    fn next(&self) -> Value {
        self.from.recv_timeout(PATIENCE).unwrap_or_else(|error| {
            let said = std::fs::read_to_string(self.home.path().join("said"));
            panic!("{error}; it said: {}", said.unwrap_or_default())
        })
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // All processes that Chromium started are in its group.
        let group = Pid::from_raw(i32::try_from(self.process.id()).unwrap());
        let _ = killpg(group, Signal::SIGKILL);
        let _ = self.process.wait();
    }
}
