//! Rules of the comparison, as data: masks for values in a text, actions for paths of the report, and lists.
//!
//! A path is the keys from the root of the report, joined by `.`; positions in lists are left out. A value whose path
//! has no rule is compared. Each rule has one sentence, which each answer of `runner diff` shows.

use model::difference::Area;

/// Rule for values that are not compared as they are.
#[derive(Debug)]
pub struct Rule {
    /// Name of the rule.
    pub name: &'static str,
    /// Reason of the rule, for the user.
    pub what: &'static str,
    /// Placeholders, each with the regular expression of the values that it replaces.
    pub(super) masks: &'static [(&'static str, &'static str)],
    /// Actions, each with its paths, separated by blanks.
    pub(super) paths: &'static [(Act, &'static str)],
}

/// Action on the value of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// Leaves the value out.
    Ignore,
    /// Leaves the whole entry of the list out if its field has one of these values, separated by blanks.
    Skip(&'static str),
    /// Keeps only that there is something.
    Presence(Area, &'static str),
    /// Keeps the digest of a file whose content is stable.
    Content,
    /// Replaces the numbers after `request`, `line` and `process`.
    Positions,
    /// Replaces the path of the client's own program.
    Own,
    /// Replaces a port of this host that the kernel chose.
    Port,
    /// Replaces a value that follows from other values.
    Length,
    /// Keeps short texts of a body by digest, and longer ones by length.
    Texts,
    /// Replaces numbers in names of files.
    Path,
}

/// Field of a list entry, in the key or in the value of the entry's fact: `name` shows the value alone, `name=word` the
/// word and the value, and `name!usual` the name and the value unless the value is the usual one. In a key, an entry
/// must have each field that shows its value alone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field {
    pub name: &'static str,
    pub word: Option<&'static str>,
    pub usual: Option<&'static str>,
}

impl Field {
    fn parse(field: &'static str) -> Self {
        let (name, word) = match (field.split_once('='), field.split_once('!')) {
            (Some((name, word)), _) => (name, Some(word)),
            (None, Some((name, _))) => (name, Some(name)),
            (None, None) => (field, None),
        };
        let usual = field.split_once('!').map(|(_, usual)| usual);
        Self { name, word, usual }
    }

    /// Parses fields that are separated by blanks.
    pub(super) fn all(fields: &'static str) -> Vec<Self> {
        fields.split_whitespace().map(Self::parse).collect()
    }
}

/// List of the report: each entry is a fact.
#[derive(Debug)]
pub(super) struct List {
    pub path: &'static str,
    pub area: Area,
    /// Text before the key.
    pub before: &'static str,
    /// Fields that identify an entry.
    pub key: &'static str,
    /// Text of the value, before its fields.
    pub says: &'static str,
    /// First fields of the value. Fields without a rule follow, by name.
    pub value: &'static str,
    /// Entries of one key form a set: order and number are not compared.
    pub is_set: bool,
}

const fn list(
    path: &'static str,
    area: Area,
    [before, key, says, value]: [&'static str; 4],
    is_set: bool,
) -> List {
    List {
        path,
        area,
        before,
        key,
        says,
        value,
        is_set,
    }
}

/// Lists of the report. [`super::records`] reads the list of records, whose order matters.
#[rustfmt::skip]
pub(super) const LISTS: [List; 8] = [
    list("evidence.requests", Area::Requests, ["", "method path side=side host!stub", "", "class query=query fault=fault complete!true status=status version!HTTP/1.1"], false),
    list("evidence.files", Area::Files, ["", "root path", "", "kind mode target=to sha256=sha256"], false),
    list("evidence.attempts", Area::Attempts, ["", "program syscall family type=type protocol=protocol address port=port names=for", "", "outcome errno"], true),
    list("evidence.names", Area::Names, ["", "name type", "asked for", ""], true),
    list("evidence.processes", Area::Processes, ["", "program args", "started", ""], true),
    list("evidence.survivors", Area::Processes, ["", "program", "outlives the client", ""], true),
    list("evidence.sensitive", Area::Outcome, ["looked for", "path", "", "kind what"], true),
    list("evidence.sightings", Area::Outcome, ["credential in", "place", "", "form"], true),
];

/// Suffixes of files in which programs keep changing state, separated by blanks.
pub(super) const STATE: &str = ".json .jsonl .log .lock .pid .db .sqlite .sqlite3 .db3 .tmp .pyc .sock .cache -wal -shm -journal .bak";

/// Keys of a body whose texts are names, and the longest one that is compared by digest, in bytes.
pub(super) const NAMES: [&str; 3] = ["model", "name", "version"];
pub(super) const LONG_NAME: u64 = 256;

/// Longest text of a body that is compared by digest, in bytes. A UUID without its dashes has 32.
pub(super) const SHORT_TEXT: u64 = 31;

const fn rule(
    name: &'static str,
    masks: &'static [(&'static str, &'static str)],
    paths: &'static [(Act, &'static str)],
    what: &'static str,
) -> Rule {
    Rule {
        name,
        what,
        masks,
        paths,
    }
}

/// All rules, in the order of each answer. Of several masks, the first that matches a whole word is used.
#[rustfmt::skip]
pub const RULES: [Rule; 19] = [
    rule("times", &[
        ("{time}", r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])[T _-](?:[01]\d|2[0-3])(?::|-|%3A)[0-5]\d(?::|-|%3A)(?:[0-5]\d|60)(?:[.,]\d+|-\d{3})?(?:Z|[+-]\d\d:?\d\d)?"),
        ("{time}", r"\d{4}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])[T_-]?(?:[01]\d|2[0-3])[0-5]\d[0-5]\d(?:\.\d+)?(?:Z|[+-]\d{4})?"),
        ("{time}", r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d? (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) \d{4} \d\d:\d\d:\d\d(?: GMT| UTC| [+-]\d{4})?"),
        ("{time}", r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [ \d]?\d \d\d:\d\d:\d\d(?: GMT| UTC)? \d{4}"),
        ("{date}", r"\d{4}[-/_]\d\d[-/_]\d\d"),
        ("{duration}", r"\d+(?:\.\d+)?(?:ms|us|µs|ns)|\d+\.\d+s"),
    ], &[],
        "A date with a time of day reads {time}, in the forms of RFC 3339, ISO 8601, RFC 9110, ctime(3) and names of files. The date of the run reads {date}; each other date stays, because versions are dates. A number with the unit ms, us or ns, and a fraction of seconds, reads {duration}."),
    rule("ids", &[
        ("{uuid}", r"[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}"),
        ("{digits}", r"\d{9,}(?:\.\d+)?|\d{1,3}\.\d{6}|0\.\d{7,}|\d+\.\d{9,}"),
        ("{hex}", r"[0-9A-Fa-f]{8,}"),
        ("{boundary}", r"WebKitFormBoundary[0-9A-Za-z]{16}"),
    ], &[],
        "A UUID reads {uuid}. A word of 8 or more hexadecimal digits that is no date reads {hex:N}: N is the number of digits, rounded up to 8, 16, 32 or 64; a decimal number of 64 or 128 bits counts as one of 16 or 32. Another number of 9 or more digits, such as a time since 1970, or with 6 or with 9 or more after the point, reads {digits}; a whole number of a body stays, unless it is a time since 1970 or has 15 or more digits. A word of 16 or more letters and digits that changes between small letters, capital letters and digits as often as random text, and has 8 of them in a row that are no word, reads {id:N}. A multipart boundary of a browser reads {boundary}."),
    rule("names-of-files", &[], &[(Act::Path, "evidence.files.path")],
        "In the path of a file a number of 5 or more digits reads {digits}, and so does each number in the name of a file of state. In the temporary directory the random end of a name reads {random}: 10 characters behind tmp., 8 behind tmp or pymp-, and behind another prefix 6 letters and digits, or 8 small letters, digits and underscores that are no words with numbers. A common word of 6 or 10 letters, such as config, stays."),
    rule("ports", &[("{port}", r"(?:localhost|127(?:\.\d{1,3}){3}|0\.0\.0\.0|\[::1?\]|\[::ffff:127(?:\.\d{1,3}){3}\]):\d{1,5}")], &[(Act::Port, "evidence.attempts.port")],
        "A port of loopback, or of the addresses that stand for this host (0.0.0.0, ::), reads {port} from 32768 on, and so does the stub's own; other lower ones stay."),
    rule("lengths", &[], &[(Act::Length, "evidence.requests.headers.content-length"), (Act::Ignore, "evidence.requests.body.bytes evidence.requests.body.sha256 evidence.files.bytes")],
        "The header content-length and the sizes of bodies, records and files follow from what is in them."),
    rule("texts", &[], &[(Act::Texts, "evidence.requests.body.shape")],
        "A text or an odd key of more than 31 bytes in a body is compared by its length, since it may hold ids, dates and paths; one of the keys model, name and version up to 256 bytes by its content. So is a body of more than 31 bytes without a shape."),
    rule("long-arguments", &[], &[(Act::Ignore, "evidence.processes.args.whole")],
        "Of an argument of more than 256 bytes the beginning is compared: the rest may hold ids, dates and paths."),
    rule("contents", &[], &[(Act::Content, "evidence.files.sha256")],
        "The content of a file is not compared if the profile or the specification knows the file, if its path has an id, or if it is state: below a directory of caches, logs or temporary files, or with a name that ends as state, logs, databases and caches do (.json .jsonl .log .lock .pid .db .sqlite .tmp .pyc .sock .cache -wal -shm -journal and their like). Its path, kind and mode are compared."),
    rule("transient-files", &[], &[(Act::Skip("true"), "evidence.files.transient"), (Act::Ignore, "evidence.made_and_removed")],
        "Files that the client removed again are not compared: whether the runner sees one depends on timing."),
    rule("counts", &[], &[(Act::Ignore, "evidence.attempts.count evidence.names.count evidence.sensitive.count")],
        "How often an attempt, a question, a look at a sensitive path or a start of a program was repeated is not compared."),
    rule("order", &[], &[(Act::Ignore, "evidence.requests.seq evidence.requests.at_us evidence.requests.connection evidence.attempts.seq evidence.attempts.at_us evidence.sensitive.at_us evidence.moments")],
        "The order of requests, headers of different names, attempts, questions and files, and of records against the connection is not compared, except that a preflight comes before the message. Requests of one method and path are identified by their content, the longest first."),
    rule("origins", &[], &[(Act::Ignore, "evidence.attempts.pid evidence.processes.pid evidence.processes.ppid evidence.survivors.pid")],
        "Process ids and the process that started a program are not compared: it may have ended before the runner reads it, and a process that only forked has no program of its own."),
    rule("setup-calls", &[], &[(Act::Skip("setup question"), "evidence.attempts.kind")],
        "Calls on the way to the stub or without a destination are no attempts, and calls to the resolver are the names asked for."),
    rule("lookups", &[], &[(Act::Ignore, "evidence.lookups")],
        "Paths that were looked up and not found depend on the host, and whether the runner sees all of them on its load. Sensitive paths are compared, found or not."),
    rule("positions", &[], &[(Act::Positions, "evidence.sightings.place")],
        "Where the credential was found, the numbers of requests, records and arguments are left out."),
    rule("output", &[], &[(Act::Presence(Area::Outcome, "standard error"), "evidence.stderr.bytes"), (Act::Ignore, "evidence.stderr.tail")],
        "The content of records, other lines and standard error is not compared. Compared are the kinds and fields of records, and whether there is any standard error. The standard output of an audit is in no report."),
    rule("connections", &[], &[(Act::Ignore, "evidence.connections evidence.provider_events")],
        "The connections to the stub, the events that the stub sent, and the content of bytes that are no request are not compared."),
    rule("own-path", &[], &[(Act::Own, "evidence.attempts.program evidence.processes.program evidence.processes.args evidence.processes.args.text")],
        "The path of the client's own program reads {client}: without a mount namespace it is that of the host."),
    rule("circumstances", &[], &[(Act::Ignore, "schema runner host case verdict not_judged not_reviewed findings tier started_at duration_ms client.program client.sha256 client.from client.profile client.args client.stdin client.hidden_directory client.env_names client.settings client.left_out client.limit isolation checks baseline evidence.gaps evidence.attempts.layer evidence.attempts.expected evidence.names.expected evidence.files.expected")],
        "The program, its environment, the sandbox, the duration and the judgement of a run are not what the client does."),
];
