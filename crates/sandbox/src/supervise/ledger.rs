//! Ledger of one run: one entry for each program, system call, destination and outcome, with a count.

pub mod lookups;

use std::collections::HashMap;
use std::hash::{Hash, Hasher};

use model::evidence::{
    Attempt, AttemptKind, MAX_ARGUMENT_BYTES, MAX_ARGUMENTS, MAX_ATTEMPTS, MAX_PROCESSES, Sighting,
    Started, StartedArg, Unlisted, Whole,
};
use model::secret::SecretScanner;
use model::text::printable;
use nix::errno::Errno;

use self::lookups::Lookups;
use super::caller::Caller;

/// Most entries of the kind setup, so that a flood of them leaves room for attempts.
const MAX_SETUPS: usize = MAX_ATTEMPTS / 2;
/// Largest number of kept connections to the stub, which is also the largest `connections` of a case.
const MAX_CONNECTS: usize = 1_000_000;

/// Records of the supervisor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Entries in the order of their first calls.
    pub attempts: Vec<Attempt>,
    /// Programs started by execve(2), in order.
    pub processes: Vec<Started>,
    /// Paths that were looked up.
    pub lookups: Lookups,
    /// Credentials found in the arguments of execve(2), at most one for each process in `processes` and one more.
    pub sightings: Vec<Sighting>,
    /// Calls that belong to entries beyond [`MAX_ATTEMPTS`].
    pub unlisted: Unlisted,
    /// Processes beyond [`MAX_PROCESSES`].
    pub further_processes: u64,
    /// Connections to the stub that were let through.
    pub connects: Vec<Connect>,
    /// Failures of the supervisor, each once. Each makes the ledger incomplete.
    pub faults: Vec<String>,
    /// Index in `attempts` of each entry.
    keys: HashMap<Key, usize>,
    /// Number of entries of the kind setup.
    setups: usize,
}

/// One connection to the stub that was let through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connect {
    /// Time of the call, in microseconds since the start of the run.
    pub at_us: u64,
    /// Lines on the client's standard output before the connection; `None` if the event loop did not reply in time.
    pub lines: Option<usize>,
}

/// Arguments of execve(2), with the answer if it is a refusal.
#[derive(Clone, Copy, Debug)]
pub(super) struct Called<'a> {
    pub(super) program: &'a [u8],
    pub(super) arguments: &'a [Vec<u8>],
    pub(super) refused: Option<Errno>,
}

/// Attempt that is compared by the fields that identify an entry of the ledger.
#[derive(Clone, Debug)]
struct Key(Attempt);

impl Key {
    /// All fields but number, time, process and count.
    fn identity(&self) -> impl Eq + Hash + '_ {
        let Attempt {
            seq: _,
            at_us: _,
            kind,
            pid: _,
            program,
            syscall,
            family,
            socket_type,
            protocol,
            address,
            port,
            outcome,
            count: _,
            names,
            expected: _,
        } = &self.0;
        let call = (program, syscall, kind, outcome);
        let destination = (family, socket_type, protocol, address, port, names);
        (call, destination)
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.identity().hash(state);
    }
}

impl Ledger {
    /// Adds a failure, unless an equal one is listed.
    pub(super) fn fault(&mut self, fault: String) {
        if !self.faults.contains(&fault) {
            self.faults.push(fault);
        }
    }

    /// Adds a connection to the stub. One more than are kept is a failure: their number is then unknown.
    pub(super) fn connect(&mut self, connect: Connect) {
        if self.connects.len() < MAX_CONNECTS {
            self.connects.push(connect);
        } else {
            self.fault(format!("more than {MAX_CONNECTS} connections to the stub"));
        }
    }

    /// Adds an attempt of `caller`, or counts it with an equal entry.
    pub(super) fn add(
        &mut self,
        attempt: Attempt,
        syscall: &'static str,
        caller: &Caller,
        at_us: u64,
    ) {
        let key = Key(Attempt {
            seq: self.attempts.len() as u64 + 1,
            at_us,
            pid: caller.pid,
            program: caller.program.clone(),
            syscall: syscall.into(),
            ..attempt
        });
        if let Some(listed) = self
            .keys
            .get(&key)
            .and_then(|index| self.attempts.get_mut(*index))
        {
            listed.count += 1;
            return;
        }
        let attempt = key.0.clone();
        let is_setup = attempt.kind == AttemptKind::Setup;
        if self.attempts.len() >= MAX_ATTEMPTS || is_setup && self.setups >= MAX_SETUPS {
            self.unlisted.count(&attempt);
            return;
        }
        self.setups += usize::from(is_setup);
        self.keys.insert(key, self.attempts.len());
        self.attempts.push(attempt);
    }

    /// Adds a program that `caller` is about to execute, or was refused.
    pub(super) fn start(&mut self, called: Called<'_>, caller: &Caller, secrets: &SecretScanner) {
        let Called {
            program,
            arguments,
            refused,
        } = called;
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
        // Redaction comes first: truncation could leave half of a credential.
        let shown = |argument: &Vec<u8>| {
            let shown = secrets.redact_bytes(argument);
            let kept = shown.get(..MAX_ARGUMENT_BYTES);
            StartedArg {
                text: printable(kept.unwrap_or(&shown)),
                whole: kept
                    .filter(|kept| kept.len() < shown.len())
                    .map(|_| Whole::of(&shown)),
            }
        };
        self.processes.push(Started {
            pid: caller.pid,
            ppid: caller.parent,
            program: printable(&secrets.redact_bytes(program)),
            args: arguments.iter().take(MAX_ARGUMENTS).map(shown).collect(),
            further_args: arguments.len().saturating_sub(MAX_ARGUMENTS) as u64,
            refused,
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

    fn attempt(port: u16) -> Attempt {
        Attempt {
            seq: 0,
            at_us: 0,
            kind: AttemptKind::Attempt,
            pid: 0,
            program: String::new(),
            syscall: "".into(),
            expected: None,
            family: Some("inet".into()),
            socket_type: None,
            protocol: None,
            address: Some("127.0.0.1".into()),
            port: Some(port),
            outcome: Outcome::Allowed,
            count: 1,
            names: Vec::new(),
        }
    }

    #[test]
    fn one_connection_more_than_are_kept_is_one_failure() {
        let mut ledger = Ledger::default();
        let connect = Connect {
            at_us: 1,
            lines: None,
        };
        (0..MAX_CONNECTS).for_each(|_| ledger.connect(connect));
        assert_eq!(ledger.faults, [""; 0]);
        (0..2).for_each(|_| ledger.connect(connect));
        assert_eq!(ledger.faults, ["more than 1000000 connections to the stub"]);
        assert_eq!(ledger.connects.len(), MAX_CONNECTS);
    }

    #[test]
    fn the_same_again_is_counted_and_keeps_its_first_time() {
        let mut ledger = Ledger::default();
        for at_us in [5, 6, 7] {
            ledger.add(attempt(1), "connect", &caller("/a"), at_us);
        }
        ledger.add(attempt(1), "connect", &caller("/b"), 8);
        ledger.add(attempt(1), "sendto", &caller("/a"), 9);
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
            let setup = Attempt {
                kind: AttemptKind::Setup,
                ..attempt(port)
            };
            ledger.add(setup, "connect", &caller("/a"), 0);
        }
        ledger.add(attempt(0), "connect", &caller("/a"), 0);
        let last = ledger.attempts.last().map(|attempt| attempt.port);
        assert_eq!(last, Some(Some(0)));
        let left = ledger.unlisted.setup as usize;
        assert_eq!((ledger.attempts.len(), left), (501, 1500));
    }

    #[test]
    fn a_flood_of_destinations_is_bounded_and_counted() {
        let mut ledger = Ledger::default();
        for port in 0..2000 {
            ledger.add(attempt(port), "connect", &caller("/a"), 0);
        }
        assert_eq!(
            (ledger.attempts.len(), ledger.unlisted.let_through),
            (MAX_ATTEMPTS, 1000)
        );
        ledger.add(attempt(0), "connect", &caller("/a"), 0);
        assert_eq!(
            (ledger.attempts[0].count, ledger.unlisted.let_through),
            (2, 1000)
        );
        let mut away = attempt(5000);
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
