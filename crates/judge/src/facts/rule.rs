//! Rules for values that are not compared. Each rule has a name and a reason, and its uses are counted.

use model::schema::values::closed_sets;

/// Kind of values that vary from run to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Points in time.
    Times,
    /// Identifiers that are new in each run.
    Ids,
    /// Names of temporary files.
    RandomNames,
    /// Port numbers that the kernel chose.
    Ports,
    /// The credential of the run.
    Credential,
    /// Sizes that follow from other values.
    Lengths,
    /// Content of longer texts.
    Texts,
    /// Content of files that the profile knows.
    KnownFiles,
    /// Content of files in which programs keep their state.
    StateFiles,
    /// Files that were removed during the run.
    TransientFiles,
    /// Number of repetitions.
    Counts,
    /// Order of entries.
    Order,
    /// Parent of a program.
    Origins,
    /// Calls on the way to the stub.
    SetupCalls,
    /// Paths that were looked up and not found.
    Lookups,
    /// Numbers in the places of the credential.
    Positions,
    /// Content of output lines.
    Output,
    /// Connections to the stub.
    Connections,
    /// Path of the client's own program.
    OwnPath,
}

impl Rule {
    /// All rules, in the order of each answer.
    pub const ALL: [Self; 19] = [
        Self::Times,
        Self::Ids,
        Self::RandomNames,
        Self::Ports,
        Self::Credential,
        Self::Lengths,
        Self::Texts,
        Self::KnownFiles,
        Self::StateFiles,
        Self::TransientFiles,
        Self::Counts,
        Self::Order,
        Self::Origins,
        Self::SetupCalls,
        Self::Lookups,
        Self::Positions,
        Self::Output,
        Self::Connections,
        Self::OwnPath,
    ];

    /// Name of the rule.
    pub fn word(self) -> &'static str {
        match self {
            Self::Times => "times",
            Self::Ids => "ids",
            Self::RandomNames => "random-names",
            Self::Ports => "ports",
            Self::Credential => "credential",
            Self::Lengths => "lengths",
            Self::Texts => "texts",
            Self::KnownFiles => "known-files",
            Self::StateFiles => "state-files",
            Self::TransientFiles => "transient-files",
            Self::Counts => "counts",
            Self::Order => "order",
            Self::Origins => "origins",
            Self::SetupCalls => "setup-calls",
            Self::Lookups => "lookups",
            Self::Positions => "positions",
            Self::Output => "output",
            Self::Connections => "connections",
            Self::OwnPath => "own-path",
        }
    }

    /// Description of the values that the rule leaves out, for the user.
    pub fn what(self) -> &'static str {
        match self {
            Self::Times => {
                "A date with a time of day to the second reads {time}: 2026-11-28T16:03:24 (or with a blank or _ for T, - or %3A for :, a fraction, a zone), 20261128T160324, Sat, 28 Nov 2026 16:03:24 with or without GMT or an offset, and Sat Nov 28 16:03:24 2026 with or without GMT or UTC before the year. 13 digits, or 10 with or without a fraction, that are a time since 1970 read {digits}. A date alone stays."
            }
            Self::Ids => {
                "A UUID reads {uuid}. A word of 16 or more hexadecimal digits, at least one of them 0 to 9, reads {hex:N}: N is the number of digits, rounded up to even, or 16 or 32 for a decimal number of 64 or 128 bits. A word of 16 or more letters and digits after _ reads {id:N} if it has digits in two places, or a capital letter, a small letter and a digit."
            }
            Self::RandomNames => {
                "In the temporary directory tmp. with 10 characters behind it, or tmp with 8, reads {random}."
            }
            Self::Ports => {
                "A port of loopback, or of the addresses that stand for this host (0.0.0.0, ::), reads {port} from 32768 on, and so does the stub's own; other lower ones stay."
            }
            Self::Credential => {
                "The credential is new in each run, and reports redact it, so all credentials are equal."
            }
            Self::Lengths => {
                "The header content-length and the sizes of bodies, records and files follow from what is in them."
            }
            Self::Texts => {
                "A text or an odd key of more than 32 bytes in a body is compared by its length, since it may hold ids, dates and paths. So is a body of more than 32 bytes without a shape."
            }
            Self::KnownFiles => {
                "The content of a file that the profile or the specification knows is not compared; its path, kind and mode are."
            }
            Self::StateFiles => {
                "The content of a file is not compared if its path has an id, or ends as state, logs and caches do: .json .jsonl .log .lock .pid .db .sqlite .tmp .pyc."
            }
            Self::TransientFiles => {
                "Files that the client removed again are not compared: whether the runner sees one depends on timing."
            }
            Self::Counts => {
                "How often an attempt, a question or a start of a program was repeated is not compared."
            }
            Self::Order => {
                "The order of headers of different names, of attempts, questions and files, and of records against the connection is not compared. Of a request, only its position before or after the message is compared; of a side request, no position. Of several messages, the one with the most values in its body counts as the message. Requests of one method and path are identified by their content, the message first."
            }
            Self::Origins => {
                "The process that started a program is not compared: it may have ended before the runner reads it, and a process that only forked has no program of its own."
            }
            Self::SetupCalls => {
                "Calls on the way to the stub or without a destination are no attempts."
            }
            Self::Lookups => {
                "Paths that were looked up and not found depend on the host, and whether the runner sees all of them on its load."
            }
            Self::Positions => {
                "Where the credential was found, the numbers of requests, records and arguments are left out."
            }
            Self::Output => {
                "The content of records, other lines and standard error is not compared. Compared are the kinds and fields of records, and whether there is any standard error. The standard output of an audit is in no report."
            }
            Self::Connections => {
                "The number of connections to the stub, their HTTP version, and the content of bytes that are no request are not compared."
            }
            Self::OwnPath => {
                "The path of the client's own program reads {client}: without a mount namespace it is that of the host."
            }
        }
    }
}

closed_sets! {
    /// Name of a rule for values that are not compared.
    Rule of ALL,
}

/// Number of uses of each rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    counts: [u64; Rule::ALL.len()],
}

impl Applied {
    /// Counts one use.
    pub(super) fn count(&mut self, rule: Rule) {
        self.add(rule, 1);
    }

    /// Counts several uses.
    pub(super) fn add(&mut self, rule: Rule, times: usize) {
        if let Some(count) = self.counts.get_mut(rule as usize) {
            *count = count.saturating_add(times as u64);
        }
    }

    /// Number of uses of one rule.
    pub fn of(&self, rule: Rule) -> u64 {
        self.counts.get(rule as usize).copied().unwrap_or(0)
    }

    /// Sum of both counts.
    pub fn and(&self, other: &Self) -> Self {
        let mut both = *self;
        for (count, more) in both.counts.iter_mut().zip(other.counts) {
            *count = count.saturating_add(more);
        }
        both
    }
}
