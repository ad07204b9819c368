//! Limits of a case, each with a unit, within bounds that catch typing errors.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::time::Duration;

use model::case::Limits;
use model::closed_set;
use model::quote::{known_words, quoted};
use schemars::JsonSchema;
use serde::Deserialize;
use thiserror::Error;
use toml::Spanned;

use super::error::Flaw;
use super::quantity::{self, QuantityError, show_duration, show_size};
use super::schema::{Size, Time, sizes, times};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Bounds of the wall time, in files and in `--timeout`.
pub const TIMEOUT_BOUNDS: RangeInclusive<Duration> = Duration::from_millis(100)..=DAY;
const CPU_BOUNDS: RangeInclusive<Duration> = Duration::from_secs(1)..=DAY;
const HOME_SIZES: RangeInclusive<u64> = 64 * KIB..=64 * GIB;
/// Up to the address space of a process: a program with AddressSanitizer reserves 20 TiB of it.
const MEMORY_SIZES: RangeInclusive<u64> = 16 * MIB..=128 * TIB;
const FILE_SIZES: RangeInclusive<u64> = 4 * KIB..=64 * GIB;
/// Bounds of an output and of a body.
const KEPT_SIZES: RangeInclusive<u64> = KIB..=GIB;
/// Bounds of the lines of standard output, each of which becomes a record.
const OUTPUT_LINES: RangeInclusive<u64> = 16..=1_000_000;
const HOME_FILES: RangeInclusive<u64> = 16..=10_000_000;
const PROCESSES: RangeInclusive<u64> = 1..=100_000;
const OPEN_FILES: RangeInclusive<u64> = 16..=1_048_576;
/// Bounds of the requests and connections of the stub.
const SERVED: RangeInclusive<u64> = 1..=1_000_000;

/// Limits of a run. An absent limit is that of case-b.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "Limits")]
pub(super) struct LimitsFile {
    /// Wall time of the client.
    #[schemars(with = "Time", transform = times(&TIMEOUT_BOUNDS))]
    timeout: Spanned<String>,
    /// Size of the home, temporary and working directory, each.
    #[schemars(with = "Size", transform = sizes(&HOME_SIZES))]
    home_size: Spanned<String>,
    /// Inodes of the home, temporary and working directory, each.
    #[schemars(with = "u64", range(min = *HOME_FILES.start(), max = *HOME_FILES.end()))]
    home_files: Spanned<u64>,
    /// Memory of each process of the client (RLIMIT_DATA).
    #[schemars(with = "Size", transform = sizes(&MEMORY_SIZES))]
    memory: Spanned<String>,
    /// Processes and threads of the client (RLIMIT_NPROC).
    #[schemars(with = "u64", range(min = *PROCESSES.start(), max = *PROCESSES.end()))]
    processes: Spanned<u64>,
    /// Processor time of each process, in whole seconds (RLIMIT_CPU).
    #[schemars(with = "Time", transform = times(&CPU_BOUNDS))]
    cpu_time: Spanned<String>,
    /// Open files of each process (RLIMIT_NOFILE).
    #[schemars(with = "u64", range(min = *OPEN_FILES.start(), max = *OPEN_FILES.end()))]
    open_files: Spanned<u64>,
    /// Size of one file that the client writes (RLIMIT_FSIZE).
    #[schemars(with = "Size", transform = sizes(&FILE_SIZES))]
    file_size: Spanned<String>,
    /// Size of standard output and standard error, each; above it, the runner ends the client.
    #[schemars(with = "Size", transform = sizes(&KEPT_SIZES))]
    output_size: Spanned<String>,
    /// Lines of standard output; above them, the runner ends the client. The output of an audit has no such limit.
    #[schemars(with = "u64", range(min = *OUTPUT_LINES.start(), max = *OUTPUT_LINES.end()))]
    output_lines: Spanned<u64>,
    /// Requests that the stub serves; above them, the runner ends the client.
    #[schemars(with = "u64", range(min = *SERVED.start(), max = *SERVED.end()))]
    requests: Spanned<u64>,
    /// Connections that the stub accepts.
    #[schemars(with = "u64", range(min = *SERVED.start(), max = *SERVED.end()))]
    connections: Spanned<u64>,
    /// Size of a body that is read for its shape; a longer one is counted and hashed.
    #[schemars(with = "Size", transform = sizes(&KEPT_SIZES))]
    body_size: Spanned<String>,
}

impl Default for LimitsFile {
    /// Returns the limits of case-b.
    fn default() -> Self {
        let text = |text: &str| Spanned::new(0..0, text.to_owned());
        let number = |number| Spanned::new(0..0, number);
        Self {
            timeout: text("60s"),
            home_size: text("256 MiB"),
            home_files: number(20_000),
            memory: text("4 GiB"),
            processes: number(512),
            cpu_time: text("60s"),
            open_files: number(4096),
            file_size: text("64 MiB"),
            output_size: text("16 MiB"),
            output_lines: number(65_536),
            requests: number(1000),
            connections: number(1000),
            body_size: text("8 MiB"),
        }
    }
}

impl LimitsFile {
    /// Keys, and values as a file spells them.
    pub(super) fn spelt(&self) -> [(&'static str, String); 13] {
        let text = |value: &Spanned<String>| format!("\"{}\"", value.get_ref());
        let number = |value: &Spanned<u64>| value.get_ref().to_string();
        [
            ("timeout", text(&self.timeout)),
            ("home_size", text(&self.home_size)),
            ("home_files", number(&self.home_files)),
            ("memory", text(&self.memory)),
            ("processes", number(&self.processes)),
            ("cpu_time", text(&self.cpu_time)),
            ("open_files", number(&self.open_files)),
            ("file_size", text(&self.file_size)),
            ("output_size", text(&self.output_size)),
            ("output_lines", number(&self.output_lines)),
            ("requests", number(&self.requests)),
            ("connections", number(&self.connections)),
            ("body_size", text(&self.body_size)),
        ]
    }
}

impl TryFrom<LimitsFile> for Limits {
    type Error = Flaw;

    fn try_from(file: LimitsFile) -> Result<Self, Flaw> {
        Ok(Self {
            timeout: duration(&file.timeout, &TIMEOUT_BOUNDS)?,
            home_bytes: size(&file.home_size, &HOME_SIZES)?,
            home_files: count(&file.home_files, &HOME_FILES)?,
            memory_bytes: size(&file.memory, &MEMORY_SIZES)?,
            processes: count(&file.processes, &PROCESSES)?,
            cpu: whole_seconds(&file.cpu_time)?,
            open_files: count(&file.open_files, &OPEN_FILES)?,
            file_bytes: size(&file.file_size, &FILE_SIZES)?,
            output_bytes: size(&file.output_size, &KEPT_SIZES)?,
            output_lines: count(&file.output_lines, &OUTPUT_LINES)?,
            requests: count(&file.requests, &SERVED)?,
            connections: count(&file.connections, &SERVED)?,
            body_bytes: size(&file.body_size, &KEPT_SIZES)?,
        })
    }
}

/// Returns the limits that are not those of case-b, as a file spells them.
pub(super) fn unusual(limits: &Limits) -> Vec<(&'static str, String)> {
    let usual = Limits::try_from(LimitsFile::default()).ok();
    let is_usual = |name: &LimitName| {
        let usual = usual.as_ref();
        usual.is_some_and(|usual| name.spell(usual) == name.spell(limits))
    };
    let changed = LimitName::ALL.into_iter().filter(|name| !is_usual(name));
    changed
        .map(|name| (name.word(), name.spell(limits)))
        .collect()
}

closed_set! {
    /// Name of a limit, as in a file.
    pub enum LimitName {
        /// Wall time.
        Timeout = "timeout",
        /// Size of each writable tree.
        HomeSize = "home_size",
        /// Inodes of each writable tree.
        HomeFiles = "home_files",
        /// Memory of each process.
        Memory = "memory",
        /// Processes and threads.
        Processes = "processes",
        /// Processor time of each process.
        CpuTime = "cpu_time",
        /// Open files of each process.
        OpenFiles = "open_files",
        /// Size of one file.
        FileSize = "file_size",
        /// Size of each output.
        OutputSize = "output_size",
        /// Lines of standard output.
        OutputLines = "output_lines",
        /// Requests to the stub.
        Requests = "requests",
        /// Connections to the stub.
        Connections = "connections",
        /// Size of a parsed body.
        BodySize = "body_size",
    }
}

impl LimitName {
    /// Spells the value as a file does.
    fn spell(self, limits: &Limits) -> String {
        let size = |bytes| format!("\"{}\"", show_size(bytes));
        let time = |time| format!("\"{}\"", show_duration(time));
        match self {
            Self::Timeout => time(limits.timeout),
            Self::HomeSize => size(limits.home_bytes),
            Self::HomeFiles => limits.home_files.to_string(),
            Self::Memory => size(limits.memory_bytes),
            Self::Processes => limits.processes.to_string(),
            Self::CpuTime => time(limits.cpu),
            Self::OpenFiles => limits.open_files.to_string(),
            Self::FileSize => size(limits.file_bytes),
            Self::OutputSize => size(limits.output_bytes),
            Self::OutputLines => limits.output_lines.to_string(),
            Self::Requests => limits.requests.to_string(),
            Self::Connections => limits.connections.to_string(),
            Self::BodySize => size(limits.body_bytes),
        }
    }
}

/// Error of a limit on the command line.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{problem}")]
pub struct LimitError {
    /// The expected and the found text.
    problem: String,
    /// Advice for the user, in one line.
    pub hint: String,
}

/// Sets the limit of `NAME=VALUE`, the form of the command line. The value is written as in a file, without quotation
/// marks, and has the same bounds.
///
/// # Errors
/// An unknown name, or a value that no file may have.
pub fn set_limit(limits: &mut Limits, text: &str) -> Result<LimitName, LimitError> {
    let unknown = |word: &str| LimitError {
        problem: format!("expected the name of a limit, found {}", quoted(word)),
        hint: known_words(word, LimitName::ALL.map(LimitName::word)),
    };
    let (word, value) = text.split_once('=').unwrap_or((text, ""));
    let name = LimitName::ALL.into_iter().find(|name| name.word() == word);
    let name = name.ok_or_else(|| unknown(word))?;
    set(limits, name, value).map_err(|flaw| LimitError {
        problem: format!("limit {word}: {}", flaw.problem),
        hint: flaw.hint,
    })?;
    Ok(name)
}

fn set(limits: &mut Limits, name: LimitName, value: &str) -> Result<(), Flaw> {
    let text = &Spanned::new(0..value.len(), value.to_owned());
    let number = |bounds| {
        let parsed = value.parse::<u64>().map_err(|_| {
            Flaw::new(
                text.span(),
                "a whole number",
                quoted(value),
                "write it without a unit",
            )
        })?;
        count(&Spanned::new(text.span(), parsed), bounds)
    };
    match name {
        LimitName::Timeout => limits.timeout = duration(text, &TIMEOUT_BOUNDS)?,
        LimitName::HomeSize => limits.home_bytes = size(text, &HOME_SIZES)?,
        LimitName::HomeFiles => limits.home_files = number(&HOME_FILES)?,
        LimitName::Memory => limits.memory_bytes = size(text, &MEMORY_SIZES)?,
        LimitName::Processes => limits.processes = number(&PROCESSES)?,
        LimitName::CpuTime => limits.cpu = whole_seconds(text)?,
        LimitName::OpenFiles => limits.open_files = number(&OPEN_FILES)?,
        LimitName::FileSize => limits.file_bytes = size(text, &FILE_SIZES)?,
        LimitName::OutputSize => limits.output_bytes = size(text, &KEPT_SIZES)?,
        LimitName::OutputLines => limits.output_lines = number(&OUTPUT_LINES)?,
        LimitName::Requests => limits.requests = number(&SERVED)?,
        LimitName::Connections => limits.connections = number(&SERVED)?,
        LimitName::BodySize => limits.body_bytes = size(text, &KEPT_SIZES)?,
    }
    Ok(())
}

/// Raises the processor time for a wall time of `longer` in place of `usual`, in proportion and in whole seconds.
pub fn raise_cpu_time(limits: &mut Limits, usual: Duration, longer: Duration) {
    let share = longer.as_secs_f64() / usual.as_secs_f64();
    if share > 1.0 {
        let seconds = (limits.cpu.as_secs_f64() * share).ceil();
        let most = CPU_BOUNDS.end().as_secs_f64();
        limits.cpu = Duration::from_secs_f64(seconds.min(most));
    }
}

/// Parses a time in whole seconds, the unit of RLIMIT_CPU (setrlimit(2)).
fn whole_seconds(value: &Spanned<String>) -> Result<Duration, Flaw> {
    let time = duration(value, &CPU_BOUNDS)?;
    if time.subsec_nanos() != 0 {
        let found = quoted(value.get_ref());
        return Err(Flaw::new(
            value.span(),
            "whole seconds",
            found,
            "the kernel counts processor time in seconds",
        ));
    }
    Ok(time)
}

fn duration(value: &Spanned<String>, bounds: &RangeInclusive<Duration>) -> Result<Duration, Flaw> {
    let time = quantity::duration(value.get_ref()).map_err(|error| {
        malformed(
            value,
            "a duration",
            error,
            "write it as \"60s\"; the units are ms, s, min, h",
        )
    })?;
    within(time, bounds, value, |time| show_duration(*time))
}

fn size(value: &Spanned<String>, bounds: &RangeInclusive<u64>) -> Result<u64, Flaw> {
    let bytes = quantity::size(value.get_ref()).map_err(|error| {
        malformed(
            value,
            "a size",
            error,
            "write it as \"256 MiB\"; the units are B, KiB, MiB, GiB, TiB",
        )
    })?;
    within(bytes, bounds, value, |bytes| show_size(*bytes))
}

fn count(value: &Spanned<u64>, bounds: &RangeInclusive<u64>) -> Result<u64, Flaw> {
    within(*value.get_ref(), bounds, value, u64::to_string)
}

fn malformed(value: &Spanned<String>, expected: &str, error: QuantityError, hint: &str) -> Flaw {
    Flaw::new(
        value.span(),
        expected,
        format!("{} ({error})", quoted(value.get_ref())),
        hint,
    )
}

fn within<T: PartialOrd>(
    amount: T,
    bounds: &RangeInclusive<T>,
    value: &Spanned<impl Display>,
    show: impl Fn(&T) -> String,
) -> Result<T, Flaw> {
    if bounds.contains(&amount) {
        return Ok(amount);
    }
    let expected = format!("{} to {}", show(bounds.start()), show(bounds.end()));
    let found = quoted(&value.get_ref().to_string());
    Err(Flaw::new(
        value.span(),
        expected,
        found,
        "use a value within these bounds; they catch typing errors",
    ))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use model::evidence::fixture::limits;

    use super::*;

    #[test]
    fn names_of_the_command_line_are_those_of_a_file() {
        let schema = schemars::schema_for!(LimitsFile);
        let of_file = schema.as_value()["properties"].as_object().unwrap();
        let of_file: BTreeSet<&str> = of_file.keys().map(String::as_str).collect();
        assert_eq!(of_file, LimitName::ALL.map(LimitName::word).into());
    }

    #[test]
    fn each_name_sets_its_own_limit() {
        let mut seen = Vec::new();
        for name in LimitName::ALL {
            let mut changed = limits();
            let value = ["3h", "33 MiB", "333"]
                .into_iter()
                .find(|value| set_limit(&mut changed, &format!("{}={value}", name.word())).is_ok());
            assert!(value.is_some(), "{}", name.word());
            assert!(changed != limits() && !seen.contains(&changed));
            seen.push(changed);
        }
    }

    #[test]
    fn wrong_limit_is_refused_with_a_hint() {
        for (text, problem, hint) in [
            (
                "memroy=1 GiB",
                "expected the name of a limit, found `memroy`",
                "did you mean `memory`?",
            ),
            (
                "memory=1 EiB",
                "limit memory: expected a size, found `1 EiB` (the unit is not one of B, KiB, MiB, GiB, TiB)",
                "write it as",
            ),
            (
                "cpu_time=1ms",
                "limit cpu_time: expected 1s to 24h, found `1ms`",
                "use a value within these bounds",
            ),
            (
                "processes=0",
                "limit processes: expected 1 to 100000, found `0`",
                "use a value within these bounds",
            ),
            (
                "processes=-1",
                "limit processes: expected a whole number, found `-1`",
                "write it without a unit",
            ),
            (
                "timeout",
                "limit timeout: expected a duration",
                "write it as",
            ),
            ("", "expected the name of a limit", "known here:"),
        ] {
            let mut changed = limits();
            let error = set_limit(&mut changed, text).unwrap_err();
            assert!(error.to_string().starts_with(problem), "{error}");
            assert!(error.hint.contains(hint), "{}", error.hint);
            assert_eq!(changed, limits());
        }
    }

    #[test]
    fn cpu_time_grows_with_the_wall_time_up_to_its_bound() {
        let minute = Duration::from_secs(60);
        let raised = |longer| {
            let mut changed = limits();
            raise_cpu_time(&mut changed, minute, longer);
            changed.cpu
        };
        let usual = limits().cpu;
        assert_eq!(raised(minute / 2), usual);
        assert_eq!(raised(minute), usual);
        assert_eq!(raised(60 * minute), 60 * usual);
        assert_eq!(raised(DAY), *CPU_BOUNDS.end());
    }
}
