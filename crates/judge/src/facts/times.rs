//! Points in time in a text: the known forms, and their lengths.
//!
//! A date alone is no point in time, since versions are dates. A time needs seconds. A known time zone belongs to the
//! time; an unknown one stays in the text, since it is equal in every run.

use std::ops::RangeInclusive;

/// Separators of hours, minutes and seconds: in a text, in the name of a file, in a query.
const IN_CLOCK: [&str; 3] = [":", "-", "%3A"];
const WEEKDAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// Length of the date with a time of day at the beginning of `text`. No letter or digit may follow.
pub(super) fn date_time(text: &str) -> Option<usize> {
    let forms = [extended, basic, of_mail, of_ctime];
    let rest = forms.into_iter().find_map(|form| {
        let mut scan = Scan { rest: text };
        form(&mut scan)?;
        (!scan.rest.starts_with(char::is_alphanumeric)).then_some(scan.rest)
    })?;
    Some(text.len() - rest.len())
}

/// Length of the time since 1970 at the beginning of `text`: milliseconds, or seconds from 2020 to 2033 with or without
/// a fraction.
pub(super) fn since_1970(text: &str) -> Option<usize> {
    let mut scan = Scan { rest: text };
    let digits = scan.digits();
    if scan.rest.starts_with(char::is_alphanumeric) {
        return None;
    }
    let seconds = ("16".."20").contains(&digits.get(..2)?);
    match digits.len() {
        13 if digits.starts_with('1') => return Some(digits.len()),
        10 if seconds => scan.fraction(),
        _ => return None,
    }
    if scan.rest.starts_with(char::is_alphanumeric) {
        return Some(digits.len());
    }
    Some(text.len() - scan.rest.len())
}

/// `2026-11-28T12:00:00Z` (RFC 3339), with a fraction, an offset, no zone, or the separators of file names and queries.
fn extended(scan: &mut Scan<'_>) -> Option<()> {
    scan.number(4, 0..=9999)?;
    scan.one_of(&["-"])?;
    scan.number(2, 1..=12)?;
    scan.one_of(&["-"])?;
    scan.number(2, 1..=31)?;
    scan.one_of(&["T", " ", "_"])?;
    match scan.clock(&IN_CLOCK)? {
        "-" => scan.milliseconds_of_a_name(),
        _ => scan.fraction(),
    }
    scan.zone();
    Some(())
}

/// `20261128T120000Z` (ISO 8601).
fn basic(scan: &mut Scan<'_>) -> Option<()> {
    scan.number(4, 0..=9999)?;
    scan.number(2, 1..=12)?;
    scan.number(2, 1..=31)?;
    scan.one_of(&["T"])?;
    scan.clock(&[""])?;
    scan.fraction();
    scan.zone();
    Some(())
}

/// `Sat, 28 Nov 2026 12:00:00 GMT` (RFC 9110), `Sat, 28 Nov 2026 12:00:00 +0000` (RFC 5322).
fn of_mail(scan: &mut Scan<'_>) -> Option<()> {
    scan.one_of(&WEEKDAYS)?;
    scan.one_of(&[", "])?;
    scan.day()?;
    scan.one_of(&[" "])?;
    scan.one_of(&MONTHS)?;
    scan.one_of(&[" "])?;
    scan.number(4, 0..=9999)?;
    scan.one_of(&[" "])?;
    scan.clock(&[":"])?;
    scan.named_zone();
    Some(())
}

/// `Sat Nov 28 12:00:00 2026` (ctime(3)), `Sat Nov 28 12:00:00 UTC 2026` (date(1)).
fn of_ctime(scan: &mut Scan<'_>) -> Option<()> {
    scan.one_of(&WEEKDAYS)?;
    scan.one_of(&[" "])?;
    scan.one_of(&MONTHS)?;
    scan.one_of(&[" "])?;
    let _padding = scan.one_of(&[" "]);
    scan.day()?;
    scan.one_of(&[" "])?;
    scan.clock(&[":"])?;
    scan.named_zone();
    scan.one_of(&[" "])?;
    scan.number(4, 0..=9999)
}

/// Scanner over the rest of a text. `number` and `one_of` leave the rest unchanged if they do not match.
struct Scan<'t> {
    rest: &'t str,
}

impl<'t> Scan<'t> {
    fn digits(&mut self) -> &'t str {
        let length = self.rest.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, rest) = self.rest.split_at_checked(length).unwrap_or_default();
        self.rest = rest;
        digits
    }

    /// A number of `length` digits in `range`.
    fn number(&mut self, length: usize, range: RangeInclusive<u32>) -> Option<()> {
        let (digits, rest) = self.rest.split_at_checked(length)?;
        let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
        let fits = is_number && range.contains(&digits.parse().ok()?);
        self.rest = fits.then_some(rest)?;
        Some(())
    }

    /// A day of a month, with or without a leading zero.
    fn day(&mut self) -> Option<()> {
        self.number(2, 1..=31).or_else(|| self.number(1, 1..=9))
    }

    fn one_of(&mut self, words: &[&'static str]) -> Option<&'static str> {
        let found = words.iter().find(|word| self.rest.starts_with(**word))?;
        self.rest = self.rest.get(found.len()..)?;
        Some(found)
    }

    /// Hours, minutes and seconds with equal separators. Returns the separator.
    fn clock(&mut self, between: &[&'static str]) -> Option<&'static str> {
        self.number(2, 0..=23)?;
        let between = self.one_of(between)?;
        self.number(2, 0..=59)?;
        self.one_of(&[between])?;
        self.number(2, 0..=60)?;
        Some(between)
    }

    /// A fraction: a point and digits.
    fn fraction(&mut self) {
        if let Some(rest) = self.rest.strip_prefix('.') {
            let mut behind = Scan { rest };
            if !behind.digits().is_empty() {
                self.rest = behind.rest;
            }
        }
    }

    /// Milliseconds in the name of a file: `-250`.
    fn milliseconds_of_a_name(&mut self) {
        let mut behind = Scan { rest: self.rest };
        let fits = behind.one_of(&["-"]).is_some() && behind.number(3, 0..=999).is_some();
        if fits && !behind.rest.starts_with(|c: char| c.is_ascii_digit()) {
            self.rest = behind.rest;
        }
    }

    /// A zone: `Z`, `+01:00`, `+0100`.
    fn zone(&mut self) {
        if self.one_of(&["Z"]).is_some() {
            return;
        }
        let mut behind = Scan { rest: self.rest };
        let mut offset = || {
            behind.one_of(&["+", "-"])?;
            behind.number(2, 0..=23)?;
            let _colon = behind.one_of(&[":"]);
            behind.number(2, 0..=59)
        };
        if offset().is_some() && !behind.rest.starts_with(|c: char| c.is_ascii_digit()) {
            self.rest = behind.rest;
        }
    }

    /// A zone after a blank: ` GMT`, ` +0000`.
    fn named_zone(&mut self) {
        let mut behind = Scan { rest: self.rest };
        if behind.one_of(&[" "]).is_none() {
            return;
        }
        let offset = behind.rest;
        if behind.one_of(&["GMT", "UTC"]).is_none() {
            behind.zone();
        }
        if behind.rest.len() < offset.len() && !behind.rest.starts_with(char::is_alphanumeric) {
            self.rest = behind.rest;
        }
    }
}
