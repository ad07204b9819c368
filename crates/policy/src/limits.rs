//! Limits of a case: each is in the file, with a unit, within bounds that catch typing errors.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::time::Duration;

use model::case::Limits;
use model::quote::quoted;
use schemars::JsonSchema;
use serde::Deserialize;
use toml::Spanned;

use super::error::Flaw;
use super::quantity::{self, QuantityError, show_duration, show_size};
use super::schema::{Size, Time, sizes, times};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Bounds of the wall time, in files and in `--timeout`.
pub const TIMEOUT_BOUNDS: RangeInclusive<Duration> = Duration::from_millis(100)..=DAY;
const CPU_BOUNDS: RangeInclusive<Duration> = Duration::from_secs(1)..=DAY;
const HOME_SIZES: RangeInclusive<u64> = 64 * KIB..=64 * GIB;
const MEMORY_SIZES: RangeInclusive<u64> = 16 * MIB..=1024 * GIB;
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

/// Limits of a run. Each is required: there are no defaults.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
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
