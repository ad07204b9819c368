//! A run of the abusive client within bounds of every run: time, memory and remains.

use std::fs::{self, File};
use std::ops::Deref;
use std::path::Path;
use std::process::{Child, Command, Output};
use std::thread;
use std::time::{Duration, Instant};

use crate::kit::{Done, Run, fixture};
use crate::teardown::watch::Place;

/// Longest run; far more than a loaded machine needs.
const PATIENCE: Duration = Duration::from_secs(120);
/// Most memory of the runner.
const MOST_KIB: u64 = 300 * 1024;
/// Default limits of a test: short, small, and wide enough for the requests before the abuse.
const LIMITS: [(&str, &str); 3] = [
    ("timeout", "\"30s\""),
    ("home_size", "\"16 MiB\""),
    ("cpu_time", "\"20s\""),
];

/// Builder of an abuse.
pub(crate) struct Abuse {
    name: &'static str,
    limits: Vec<(&'static str, &'static str)>,
    ordinary: bool,
}

impl Abuse {
    pub(crate) fn of(name: &'static str) -> Self {
        Self {
            name,
            limits: LIMITS.to_vec(),
            ordinary: false,
        }
    }

    /// Sets a limit of the case; `value` is the text in the case file.
    pub(crate) fn limit(mut self, key: &'static str, value: &'static str) -> Self {
        self.limits.push((key, value));
        self
    }

    /// Runs as an ordinary user if the tests run as root.
    pub(crate) fn by_an_ordinary_user(mut self) -> Self {
        self.ordinary = true;
        self
    }

    /// Returns the run, with its case file in `place`.
    pub(crate) fn described(&self, place: &Place) -> Run {
        let case = place.directory().join("case.toml");
        fs::write(&case, self.case()).unwrap();
        let run = Run::case("run")
            .argument(case)
            .client(fixture("abusive-client"))
            .client_argument("--deviate")
            .client_argument(self.name)
            // The marker identifies its processes.
            .client_argument(format!("--of={}", place.marker()));
        if self.ordinary {
            run.as_ordinary_user()
        } else {
            run
        }
    }

    fn case(&self) -> String {
        let policies = Path::new(env!("CARGO_MANIFEST_DIR")).join("../policies");
        let mut case = fs::read_to_string(policies.join("case-b.toml")).unwrap();
        for (key, value) in &self.limits {
            let begin = format!("{key} = ");
            let line = case.lines().find(|line| line.starts_with(&begin));
            let line = line.unwrap().to_owned();
            case = case.replace(&line, &format!("{begin}{value}"));
        }
        case
    }

    #[track_caller]
    pub(crate) fn run(self) -> Ended {
        let place = Place::new();
        let mounts = mounts();
        let start = Instant::now();
        let (output, peak_kib) = finish(place.command(self.described(&place)), &place);
        let took = start.elapsed();
        place.assert_nothing_left();
        assert_eq!(self::mounts(), mounts);
        let done = Done::of(&output);
        eprintln!(
            "{}: {} ({:?}), {:.2} s, {peak_kib} KiB, report of {} KiB",
            self.name,
            done.verdict(),
            done.code,
            took.as_secs_f64(),
            done.text.len() / 1024,
        );
        assert!(peak_kib < MOST_KIB, "{peak_kib} KiB");
        assert_harmless(&done);
        Ended { done, peak_kib }
    }
}

/// Result of a run.
pub(crate) struct Ended {
    done: Done,
    /// Peak memory of the runner.
    pub(crate) peak_kib: u64,
}

impl Ended {
    /// Asserts the failed and the errored checks, exactly, and the verdict that follows from them.
    #[track_caller]
    pub(crate) fn assert_found(&self, failed: &[&str], errored: &[&str]) {
        assert_eq!(self.checks("failed"), failed, "{}", self.stderr);
        assert_eq!(self.checks("errored"), errored, "{}", self.stderr);
        if !failed.is_empty() {
            self.assert_verdict(1, "failed");
        } else if !errored.is_empty() {
            self.assert_verdict(3, "errored");
        } else {
            self.assert_passed();
        }
    }

    pub(crate) fn gaps(&self) -> String {
        self.report["evidence"]["gaps"].to_string()
    }

    /// Returns the client's last output on standard error.
    pub(crate) fn said(&self) -> &str {
        self.report["evidence"]["stderr"]["tail"].as_str().unwrap()
    }
}

impl Deref for Ended {
    type Target = Done;

    fn deref(&self) -> &Done {
        &self.done
    }
}

fn mounts() -> usize {
    let own = fs::read_to_string("/proc/self/mountinfo").unwrap();
    own.lines().count()
}

/// Asserts that neither report contains text that controls a terminal or forges the runner's own lines.
#[track_caller]
fn assert_harmless(done: &Done) {
    let steers = |text: &str| {
        text.chars().any(|one| {
            (one.is_control() && one != '\n')
                || matches!(one, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        })
    };
    assert!(!steers(&done.text) && !steers(&done.stderr));
    let verdicts = done
        .stderr
        .lines()
        .filter(|line| line.starts_with("PASSED"));
    let expected = if done.verdict() == "passed" { 2 } else { 0 };
    assert_eq!(verdicts.count(), expected, "{}", done.stderr);
    for line in done.stderr.lines() {
        assert!(!line.starts_with("::") && !line.starts_with("##"), "{line}");
    }
}

/// Runs the command to its end, with both streams in files. Returns the output and the runner's peak memory in KiB.
#[track_caller]
fn finish(mut command: Command, place: &Place) -> (Output, u64) {
    let path = |name| place.directory().join(name);
    let file = |name| File::create(path(name)).unwrap();
    command.stdout(file("stdout")).stderr(file("stderr"));
    let mut child = command.spawn().unwrap();
    let deadline = Instant::now() + PATIENCE;
    let mut peak_kib = 0;
    let status = loop {
        peak_kib = peak_kib.max(peak(&child));
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if Instant::now() > deadline {
            child.kill().unwrap();
            panic!("still running after {PATIENCE:?}");
        }
        thread::sleep(Duration::from_millis(1));
    };
    let output = Output {
        status,
        stdout: fs::read(path("stdout")).unwrap(),
        stderr: fs::read(path("stderr")).unwrap(),
    };
    (output, peak_kib)
}

/// Returns the peak memory in KiB (proc_pid_status(5)). getrusage(2) would include the parent's memory before exec, and
/// the test holds large reports. VmHWM includes it too until exec, so other program names are skipped.
fn peak(child: &Child) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
    if field("Name:\t") != Some("runner") {
        return 0;
    }
    let peak = field("VmHWM:").and_then(|value| value.trim().strip_suffix(" kB"));
    peak.map_or(0, |value| value.parse().unwrap())
}
