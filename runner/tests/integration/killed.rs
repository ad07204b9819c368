//! A runner that is killed, stopped or loses its processes at any moment, under a client that resists its end. The
//! client's processes are in their own sessions, ignore every signal, and have stopped every process that they could.

use std::process::Stdio;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{fs, thread};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::abuse::Abuse;
use crate::needs_sandbox;
use crate::teardown::watch::{Place, Started};

/// Moments at which the runner is killed, half of them an ordinary user's.
const KILLS: u64 = 200;
/// Approximate duration of a whole run.
const LAST_US: u64 = 60_000;
const STOPS: u64 = 12;

/// xorshift64*: pseudo-random numbers that are reproducible from their seed.
struct Random(u64);

impl Random {
    /// From KILLED_SEED, or a new one, which is printed.
    fn seeded() -> Self {
        let asked = std::env::var("KILLED_SEED")
            .ok()
            .map(|seed| seed.parse().unwrap());
        let now = || {
            SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap()
                .as_nanos() as u64
        };
        let seed = asked.unwrap_or_else(now).max(1);
        eprintln!("KILLED_SEED={seed}");
        Self(seed)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) % end
    }
}

fn mounts() -> usize {
    fs::read_to_string("/proc/self/mountinfo")
        .unwrap()
        .lines()
        .count()
}

/// A client that keeps running, with a daemon.
fn holding_on() -> Abuse {
    Abuse::of("stop-everyone")
}

fn kill_at_random_moments(abuse: impl Fn() -> Abuse) {
    let mut random = Random::seeded();
    let (place, before) = (Place::new(), mounts());
    for _ in 0..KILLS / 2 {
        let moment = Duration::from_micros(random.below(LAST_US));
        let mut command = place.command(abuse().described(&place));
        let mut run = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        thread::sleep(moment);
        run.kill().unwrap();
        run.wait().unwrap();
        place.assert_nothing_left();
    }
    assert_eq!(mounts(), before);
}

#[test]
fn a_runner_killed_at_any_moment_leaves_nothing() {
    needs_sandbox!();
    kill_at_random_moments(holding_on);
}

#[test]
fn an_ordinary_users_runner_killed_at_any_moment_leaves_nothing() {
    needs_sandbox!();
    kill_at_random_moments(|| holding_on().by_an_ordinary_user());
}

/// The stop lasts longer than a request is held, so the order of the client's actions meanwhile is unknown.
#[test]
fn a_runner_that_is_stopped_for_a_while_passes_or_says_that_it_cannot_tell() {
    needs_sandbox!();
    let mut random = Random::seeded();
    let place = Place::new();
    for stop in 0..STOPS {
        let moment = Duration::from_micros(random.below(LAST_US));
        let mut run = Started::of(place.command(Abuse::of("kill-everyone").described(&place)));
        thread::sleep(moment);
        let stopped = kill(run.runner(), Signal::SIGSTOP);
        thread::sleep(Duration::from_millis(if stop % 4 == 0 {
            1500
        } else {
            100
        }));
        kill(run.runner(), Signal::SIGCONT).and(stopped).unwrap();
        let done = run.wait();
        place.assert_nothing_left();
        let outcome = (done.code, done.verdict());
        assert!(
            matches!(outcome, (Some(0), "passed") | (Some(3), "errored")),
            "{outcome:?} {}",
            done.stderr
        );
        assert_eq!(
            done.verdict() == "errored",
            !done.checks("errored").is_empty()
        );
        assert!(done.checks("failed").is_empty(), "{}", done.stderr);
    }
}

fn lose(process: impl Fn(&Started) -> Pid, gap: &str) {
    for abuse in [holding_on(), Abuse::of("ignore-every-signal")] {
        let place = Place::new();
        let mut run = Started::of(place.command(abuse.described(&place)));
        run.client_with("--of=");
        kill(process(&run), Signal::SIGKILL).unwrap();
        let done = run.wait();
        place.assert_nothing_left();
        done.assert_verdict(3, "errored");
        let gaps = done.report["evidence"]["gaps"].to_string();
        assert!(gaps.contains(gap), "{gaps}");
    }
}

#[test]
fn a_run_whose_stage_is_killed_under_such_a_client_is_errored() {
    needs_sandbox!();
    // Init ends with the stage, and either loss may be noticed first.
    lose(
        Started::stage,
        "the stub did not say that it had read everything",
    );
}

#[test]
fn a_run_whose_init_is_killed_under_such_a_client_is_errored() {
    needs_sandbox!();
    lose(Started::init, "init was lost");
}

/// The client may not send SIGSTOP to the stage, so the test does.
#[test]
fn a_stage_that_is_stopped_holds_the_run_to_its_time_and_no_longer() {
    needs_sandbox!();
    let place = Place::new();
    let start = Instant::now();
    let abuse = holding_on().limit("timeout", "\"1s\"");
    let mut run = Started::of(place.command(abuse.described(&place)));
    run.client_with("--of=");
    kill(run.stage(), Signal::SIGSTOP).unwrap();
    let done = run.wait();
    place.assert_nothing_left();
    done.assert_verdict(3, "errored");
    eprintln!("{:.1} s", start.elapsed().as_secs_f64());
}
