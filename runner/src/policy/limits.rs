//! The limits of a case: each stands in the file, with a unit, within bounds that catch a slip of the pen.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::time::Duration;

use serde::Deserialize;
use toml::Spanned;

use super::error::{Flaw, quoted};
use super::quantity::{self, QuantityError, show_duration, show_size};
use crate::case::Limits;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Bounds of the wall time, for files and for `--timeout`.
pub(crate) const TIMEOUT_BOUNDS: RangeInclusive<Duration> = Duration::from_millis(100)..=DAY;
const CPU_BOUNDS: RangeInclusive<Duration> = Duration::from_secs(1)..=DAY;

/// Limits as they stand in a file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LimitsFile {
    timeout: Spanned<String>,
    home_size: Spanned<String>,
    home_files: Spanned<u64>,
    memory: Spanned<String>,
    processes: Spanned<u64>,
    cpu_time: Spanned<String>,
    open_files: Spanned<u64>,
    file_size: Spanned<String>,
    output_size: Spanned<String>,
    requests: Spanned<u64>,
    connections: Spanned<u64>,
    body_size: Spanned<String>,
}

impl TryFrom<LimitsFile> for Limits {
    type Error = Flaw;

    fn try_from(file: LimitsFile) -> Result<Self, Flaw> {
        Ok(Self {
            timeout: duration(&file.timeout, &TIMEOUT_BOUNDS)?,
            home_bytes: size(&file.home_size, 64 * KIB..=64 * GIB)?,
            home_files: count(&file.home_files, 16..=10_000_000)?,
            memory_bytes: size(&file.memory, 16 * MIB..=1024 * GIB)?,
            processes: count(&file.processes, 1..=100_000)?,
            cpu: whole_seconds(&file.cpu_time)?,
            open_files: count(&file.open_files, 16..=1_048_576)?,
            file_bytes: size(&file.file_size, 4 * KIB..=64 * GIB)?,
            output_bytes: size(&file.output_size, KIB..=GIB)?,
            requests: count(&file.requests, 1..=1_000_000)?,
            connections: count(&file.connections, 1..=1_000_000)?,
            body_bytes: size(&file.body_size, KIB..=GIB)?,
        })
    }
}

/// setrlimit(2) counts processor time in whole seconds.
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

fn size(value: &Spanned<String>, bounds: RangeInclusive<u64>) -> Result<u64, Flaw> {
    let bytes = quantity::size(value.get_ref()).map_err(|error| {
        malformed(
            value,
            "a size",
            error,
            "write it as \"256 MiB\"; the units are B, KiB, MiB, GiB, TiB",
        )
    })?;
    within(bytes, &bounds, value, |bytes| show_size(*bytes))
}

fn count(value: &Spanned<u64>, bounds: RangeInclusive<u64>) -> Result<u64, Flaw> {
    within(*value.get_ref(), &bounds, value, u64::to_string)
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
        "a limit outside these bounds is most likely a slip",
    ))
}
