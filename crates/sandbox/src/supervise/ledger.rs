//! The ledger of one run, as it grows: one entry for each program, call, destination and outcome, with a count.

pub mod lookups;

use std::collections::HashMap;

use model::evidence::{
    Attempt, AttemptKind, MAX_ARGUMENT_BYTES, MAX_ARGUMENTS, MAX_ATTEMPTS, MAX_PROCESSES, Process,
    Sighting, Unlisted,
};
use model::secret::SecretScanner;
use model::text::printable;

use self::lookups::Lookups;
use super::caller::Caller;
use super::decide::Line;

/// Most entries that are no attempts, so that a flood of them leaves room for attempts.
const MOST_SETUPS: usize = MAX_ATTEMPTS / 2;

/// What the supervisor has written down.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    pub attempts: Vec<Attempt>,
    pub processes: Vec<Process>,
    pub lookups: Lookups,
    /// Where the credential was found in what was given to execve(2), at most one for each process that is kept
    /// and one for all others.
    pub sightings: Vec<Sighting>,
    /// Calls that belong to entries beyond [`MAX_ATTEMPTS`].
    pub unlisted: Unlisted,
    /// Processes beyond [`MAX_PROCESSES`].
    pub further_processes: u64,
    /// Connections to the stub that were let through: when, and how many lines stood on standard output.
    pub connects: Vec<Connect>,
    /// What the supervisor could not do; each costs the claim that nothing else was tried.
    pub faults: Vec<String>,
    keys: HashMap<Key, usize>,
    /// Entries that are no attempts.
    setups: usize,
}

/// One connection to the stub that was let through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connect {
    pub at_us: u64,
    /// `None`: the runner did not say within its time.
    pub lines: Option<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    program: String,
    syscall: &'static str,
    line: Line,
}

impl Ledger {
    /// Adds what could not be done; the same again says nothing new.
    pub(super) fn fault(&mut self, what: String) {
        if !self.faults.contains(&what) {
            self.faults.push(what);
        }
    }

    /// Adds a line, or counts it.
    pub(super) fn add(&mut self, line: Line, syscall: &'static str, caller: &Caller, at_us: u64) {
        let key = Key {
            program: caller.program.clone(),
            syscall,
            line,
        };
        if let Some(attempt) = self
            .keys
            .get(&key)
            .and_then(|index| self.attempts.get_mut(*index))
        {
            attempt.count += 1;
            return;
        }
        let Line {
            kind,
            family,
            socket_type,
            protocol,
            address,
            port,
            outcome,
            names,
        } = key.line.clone();
        let attempt = Attempt {
            seq: self.attempts.len() as u64 + 1,
            at_us,
            kind,
            pid: caller.pid,
            program: caller.program.clone(),
            syscall,
            family,
            socket_type,
            protocol,
            address,
            port,
            outcome,
            count: 1,
            names,
        };
        let is_setup = kind == AttemptKind::Setup;
        if self.attempts.len() >= MAX_ATTEMPTS || is_setup && self.setups >= MOST_SETUPS {
            self.unlisted.count(&attempt);
            return;
        }
        self.setups += usize::from(is_setup);
        self.keys.insert(key, self.attempts.len());
        self.attempts.push(attempt);
    }

    /// Adds a program that `caller` is about to become.
    pub(super) fn start(
        &mut self,
        program: &[u8],
        arguments: &[Vec<u8>],
        caller: &Caller,
        secrets: &SecretScanner,
    ) {
        let given = [&[program.to_vec()], arguments].concat().join(&b'\n');
        if let Some(form) = secrets.find(&given)
            && self.sightings.len() <= MAX_PROCESSES
        {
            let place = format!("arguments of process {}", caller.pid);
            self.sightings.push(Sighting {
                place,
                form: form.to_string(),
            });
        }
        if self.processes.len() >= MAX_PROCESSES {
            self.further_processes += 1;
            return;
        }
        // Replaced before it is cut, so that no half of a credential is left.
        let shown = |argument: &Vec<u8>| {
            let mut shown = secrets.redact_bytes(argument);
            shown.truncate(MAX_ARGUMENT_BYTES);
            printable(&shown)
        };
        self.processes.push(Process {
            pid: caller.pid,
            ppid: caller.parent,
            program: printable(&secrets.redact_bytes(program)),
            args: arguments.iter().take(MAX_ARGUMENTS).map(shown).collect(),
        });
    }
}

#[cfg(test)]
mod tests {
    use model::evidence::Outcome;
    use nix::unistd::Pid;

    use super::*;

    fn caller(program: &str) -> Caller {
        Caller {
            process: Pid::from_raw(9),
            pid: 2,
            parent: 1,
            program: program.into(),
            thread: 9,
        }
    }

    fn line(port: u16) -> Line {
        Line {
            kind: AttemptKind::Attempt,
            family: Some("inet".into()),
            socket_type: None,
            protocol: None,
            address: Some("127.0.0.1".into()),
            port: Some(port),
            outcome: Outcome::Allowed,
            names: Vec::new(),
        }
    }

    #[test]
    fn the_same_again_is_counted_and_keeps_its_first_time() {
        let mut ledger = Ledger::default();
        for at_us in [5, 6, 7] {
            ledger.add(line(1), "connect", &caller("/a"), at_us);
        }
        ledger.add(line(1), "connect", &caller("/b"), 8);
        ledger.add(line(1), "sendto", &caller("/a"), 9);
        let counts: Vec<(u64, u64, u64)> = ledger
            .attempts
            .iter()
            .map(|attempt| (attempt.seq, attempt.at_us, attempt.count))
            .collect();
        assert_eq!(counts, [(1, 5, 3), (2, 8, 1), (3, 9, 1)]);
    }

    #[test]
    fn the_same_fault_is_told_once() {
        let mut ledger = Ledger::default();
        for what in ["a", "b", "a"] {
            ledger.fault(what.into());
        }
        assert_eq!(ledger.faults, ["a", "b"]);
    }

    #[test]
    fn attempt_behind_a_flood_of_setup_is_listed() {
        let mut ledger = Ledger::default();
        for port in 1..=2000 {
            let setup = Line {
                kind: AttemptKind::Setup,
                ..line(port)
            };
            ledger.add(setup, "connect", &caller("/a"), 0);
        }
        ledger.add(line(0), "connect", &caller("/a"), 0);
        let last = ledger.attempts.last().map(|attempt| attempt.port);
        assert_eq!(last, Some(Some(0)));
        let left = ledger.unlisted.setup as usize;
        assert_eq!((ledger.attempts.len(), left), (501, 1500));
    }

    #[test]
    fn a_flood_of_destinations_is_bounded_and_counted() {
        let mut ledger = Ledger::default();
        for port in 0..2000 {
            ledger.add(line(port), "connect", &caller("/a"), 0);
        }
        assert_eq!(
            (ledger.attempts.len(), ledger.unlisted.let_through),
            (MAX_ATTEMPTS, 1000)
        );
        ledger.add(line(0), "connect", &caller("/a"), 0);
        assert_eq!(
            (ledger.attempts[0].count, ledger.unlisted.let_through),
            (2, 1000)
        );
        let mut away = line(5000);
        away.address = Some("192.0.2.1".into());
        ledger.add(away.clone(), "connect", &caller("/a"), 0);
        away.outcome = Outcome::Denied(nix::errno::Errno::ENETUNREACH);
        ledger.add(away.clone(), "connect", &caller("/a"), 0);
        away.kind = AttemptKind::Setup;
        ledger.add(away, "connect", &caller("/a"), 0);
        let expected = Unlisted {
            denied: 1,
            let_through: 1001,
            setup: 1,
            away: 1,
            questions: 0,
        };
        assert_eq!(ledger.unlisted, expected);
    }
}
