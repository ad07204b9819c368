//! Points in time in a text: which forms are known, and how far one goes.
//!
//! A date alone is none: it names versions. Nor is a time without seconds. Where a zone stands it belongs to the time;
//! one that is not known stays behind it, and is the same in every run.

use std::ops::RangeInclusive;

/// Between hours and minutes, and again before the seconds: in a text, in the name of a file, in a query.
const IN_CLOCK: [&str; 3] = [":", "-", "%3A"];
const WEEKDAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// How long the date with a time of day is that `text` begins with; no letter or digit is behind it.
pub(super) fn date_time(text: &str) -> Option<usize> {
    let forms = [extended, basic, of_mail, of_ctime];
    let rest = forms.into_iter().find_map(|form| {
        let mut scan = Scan { rest: text };
        form(&mut scan)?;
        (!scan.rest.starts_with(char::is_alphanumeric)).then_some(scan.rest)
    })?;
    Some(text.len() - rest.len())
}

/// How long the number is that `text` begins with, where it stands for a time since 1970: milliseconds, or seconds
/// from 2020 to 2033 with or without a fraction.
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

/// `2026-11-28T12:00:00Z` (RFC 3339), with a fraction or an offset too; without any zone; as names of files and
/// queries have it.
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

/// What is left of a text. What does not fit is not taken.
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

    /// A number of so many digits.
    fn number(&mut self, length: usize, range: RangeInclusive<u32>) -> Option<()> {
        let (digits, rest) = self.rest.split_at_checked(length)?;
        let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
        let fits = is_number && range.contains(&digits.parse().ok()?);
        self.rest = fits.then_some(rest)?;
        Some(())
    }

    /// A day of a month, with or without a zero before it.
    fn day(&mut self) -> Option<()> {
        self.number(2, 1..=31).or_else(|| self.number(1, 1..=9))
    }

    fn one_of(&mut self, words: &[&'static str]) -> Option<&'static str> {
        let found = words.iter().find(|word| self.rest.starts_with(**word))?;
        self.rest = self.rest.get(found.len()..)?;
        Some(found)
    }

    /// Hours, minutes and seconds, with the same between them.
    fn clock(&mut self, between: &[&'static str]) -> Option<&'static str> {
        self.number(2, 0..=23)?;
        let between = self.one_of(between)?;
        self.number(2, 0..=59)?;
        self.one_of(&[between])?;
        self.number(2, 0..=60)?;
        Some(between)
    }

    /// Digits behind a point.
    fn fraction(&mut self) {
        if let Some(rest) = self.rest.strip_prefix('.') {
            let mut behind = Scan { rest };
            if !behind.digits().is_empty() {
                self.rest = behind.rest;
            }
        }
    }

    /// `-250`.
    fn milliseconds_of_a_name(&mut self) {
        let mut behind = Scan { rest: self.rest };
        let fits = behind.one_of(&["-"]).is_some() && behind.number(3, 0..=999).is_some();
        if fits && !behind.rest.starts_with(|c: char| c.is_ascii_digit()) {
            self.rest = behind.rest;
        }
    }

    /// `Z`, `+01:00`, `+0100`.
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

    /// ` GMT`, ` +0000`.
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
