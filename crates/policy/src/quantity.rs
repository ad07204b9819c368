//! Durations and sizes in policy files: `60s`, `256 MiB`.
//!
//! Owns the grammar: a whole number, at most one space, a unit. Fractions, sums and numbers without a unit are errors.
//! A missing unit is a common cause of values wrong by a factor of a thousand. Keys and bounds are elsewhere.

use std::time::Duration;

use thiserror::Error;

/// Failure to parse a duration or size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum QuantityError {
    /// The text does not begin with a digit.
    #[error("it does not begin with a whole number")]
    NoNumber,
    /// The number has no unit.
    #[error("the unit is missing")]
    NoUnit,
    /// The unit is unknown.
    #[error("the unit is not one of {units}")]
    UnknownUnit {
        /// Known units, separated by commas.
        units: &'static str,
    },
    /// The value exceeds 64 bits.
    #[error("the number is too large")]
    TooLarge,
}

const DURATION_UNITS: [(&str, u64); 4] =
    [("ms", 1), ("s", 1_000), ("min", 60_000), ("h", 3_600_000)];
const SIZE_UNITS: [(&str, u64); 5] = [
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
];

/// Returns the units of a duration, shortest first.
pub(super) fn duration_units() -> impl Iterator<Item = &'static str> {
    DURATION_UNITS.iter().map(|(unit, _)| *unit)
}

/// Returns the units of a size, smallest first.
pub(super) fn size_units() -> impl Iterator<Item = &'static str> {
    SIZE_UNITS.iter().map(|(unit, _)| *unit)
}

/// Parses `500ms`, `60s`, `5 min` or `1h`.
pub fn duration(text: &str) -> Result<Duration, QuantityError> {
    amount(text, &DURATION_UNITS, "ms, s, min, h").map(Duration::from_millis)
}

/// Parses `512 B`, `64 KiB`, `256MiB` or `4 GiB` into bytes.
pub fn size(text: &str) -> Result<u64, QuantityError> {
    amount(text, &SIZE_UNITS, "B, KiB, MiB, GiB, TiB")
}

/// Formats a duration, to the millisecond, so that [`duration`] parses it.
pub fn show_duration(value: Duration) -> String {
    let millis = u64::try_from(value.as_millis()).unwrap_or(u64::MAX);
    let (unit, factor) = largest_unit(millis, &DURATION_UNITS);
    format!("{}{unit}", millis / factor)
}

/// Formats a size in bytes, so that [`size`] parses it.
pub fn show_size(bytes: u64) -> String {
    let (unit, factor) = largest_unit(bytes, &SIZE_UNITS);
    format!("{} {unit}", bytes / factor)
}

fn amount(text: &str, units: &[(&str, u64)], names: &'static str) -> Result<u64, QuantityError> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, rest) = text.split_at(digits);
    if number.is_empty() {
        return Err(QuantityError::NoNumber);
    }
    let number: u64 = number.parse().map_err(|_| QuantityError::TooLarge)?;
    let unit = rest.strip_prefix(' ').unwrap_or(rest);
    if unit.is_empty() {
        return Err(QuantityError::NoUnit);
    }
    let factor = units
        .iter()
        .find(|(name, _)| *name == unit)
        .map(|(_, factor)| *factor);
    let factor = factor.ok_or(QuantityError::UnknownUnit { units: names })?;
    number.checked_mul(factor).ok_or(QuantityError::TooLarge)
}

fn largest_unit(amount: u64, units: &[(&'static str, u64)]) -> (&'static str, u64) {
    let fits = |(_, factor): &&(&str, u64)| amount != 0 && amount.is_multiple_of(*factor);
    units
        .iter()
        .rev()
        .find(fits)
        .or_else(|| units.first())
        .copied()
        .unwrap_or(("", 1))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_unit_of_time_has_its_length() {
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("60s"), Ok(Duration::from_secs(60)));
        assert_eq!(duration("5 min"), Ok(Duration::from_secs(300)));
        assert_eq!(duration("1h"), Ok(Duration::from_secs(3600)));
    }

    #[test]
    fn each_unit_of_size_is_a_power_of_1024() {
        assert_eq!(size("0 B"), Ok(0));
        assert_eq!(size("1KiB"), Ok(1024));
        assert_eq!(size("256 MiB"), Ok(268_435_456));
        assert_eq!(size("4 GiB"), Ok(4_294_967_296));
        assert_eq!(size("1 TiB"), Ok(1_099_511_627_776));
    }

    #[test]
    fn a_bare_number_is_refused() {
        assert_eq!(duration("60"), Err(QuantityError::NoUnit));
        assert_eq!(size("268435456 "), Err(QuantityError::NoUnit));
    }

    #[test]
    fn other_units_and_other_spellings_are_refused() {
        for text in [
            "1 MB",
            "1M",
            "1 mib",
            "1  MiB",
            "1 MiB ",
            "1.5 MiB",
            "1\u{a0}MiB",
        ] {
            assert!(
                matches!(size(text), Err(QuantityError::UnknownUnit { .. })),
                "{text}"
            );
        }
        for text in ["1m", "1 sec", "1h30min", "1\ts"] {
            assert!(
                matches!(duration(text), Err(QuantityError::UnknownUnit { .. })),
                "{text}"
            );
        }
    }

    #[test]
    fn signs_spaces_and_nothing_are_no_number() {
        for text in ["", " 1s", "-1s", "+1s", "s", "١s"] {
            assert_eq!(duration(text), Err(QuantityError::NoNumber), "{text}");
        }
    }

    #[test]
    fn a_number_beyond_64_bits_is_too_large() {
        assert_eq!(size("18446744073709551616 B"), Err(QuantityError::TooLarge));
        assert_eq!(size("16777216 TiB"), Err(QuantityError::TooLarge));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(amount in any::<u64>()) {
            prop_assert_eq!(size(&show_size(amount)), Ok(amount));
            let time = Duration::from_millis(amount);
            prop_assert_eq!(duration(&show_duration(time)), Ok(time));
        }

        #[test]
        fn any_text_is_a_size_or_an_error(text in any::<String>()) {
            let _ = size(&text);
            let _ = duration(&text);
        }
    }
}
