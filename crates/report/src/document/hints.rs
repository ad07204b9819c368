//! Hints for failures whose cause is the sandbox, recognised by messages on standard error.

use model::report::Report;

use super::{Budget, Section, Table, own, text};

const UNIX_SOCKETS: &str = "A run that shows directories of the host refuses unix sockets, because a daemon may listen there. Python's multiprocessing works with the start methods `fork` and `spawn`, other programs with pipes, socket pairs, or TCP on 127.0.0.1.";

/// Parts of messages that occur together, each with its hint.
const MESSAGES: [(&[&str], &str); 5] = [
    (
        &["detected dubious ownership in repository"],
        "Inside, the repository belongs to another user than the program. Start runner as its owner, or let git trust it: --env GIT_CONFIG_COUNT=1 --env GIT_CONFIG_KEY_0=safe.directory --env 'GIT_CONFIG_VALUE_0=*'",
    ),
    (
        &["failed to map segment from shared object"],
        "A shared library in the home, tmp or work directory can be loaded with --allow-exec home, tmp or work.",
    ),
    (
        &["out of pty devices"],
        "A profile shows pseudo-terminals with the device `ptmx`; isolation inherited has none.",
    ),
    (
        &[
            "_socket.socket.__init__(self, family",
            "PermissionError: [Errno 13] Permission denied",
        ],
        UNIX_SOCKETS,
    ),
    (&["listen EACCES: permission denied /"], UNIX_SOCKETS),
];

/// Lists the hints that fit.
pub(super) fn section(report: &Report) -> Option<Section> {
    let tail = &report.evidence.stderr.tail;
    let fits = |parts: &[&str]| parts.iter().all(|part| tail.contains(part));
    let hints: Vec<&str> = MESSAGES
        .iter()
        .filter(|(parts, _)| fits(parts))
        .map(|(_, hint)| *hint)
        .collect();
    let table = Table::of(Budget::Part, hints, |hint| [text("hint", own(hint))]);
    table.section("hints", "Hints")
}
