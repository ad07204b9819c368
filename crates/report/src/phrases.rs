//! Phrases that several reports share.

use model::evidence::{Evidence, Exit, GapKind, Reason, Request};
use model::finding::{
    AskedBy, ENDED_BY_RUNNER, Finding, INTERRUPTED, NEVER_STARTED, Status, Verdict,
};
use model::fleet::FirstFinding;
use model::journal::{Head, Host};
use model::report::{Baseline, BaselineOutcome, Report};
use model::secret::CREDENTIAL_HEADERS;
use model::text::{count, grouped, truncated};

/// Number of lines of standard error that explain the end of a program.
const CAUSE_LINES: usize = 5;
/// Maximum length of a finding in a list of runs, in characters.
const MAX_FINDING: usize = 200;

/// Source of a requirement: a section of the specification, the case, or the lock file.
pub(super) fn asked_by(asked_by: &AskedBy) -> String {
    match asked_by {
        AskedBy::Specification(section) => format!("specification, section {section}"),
        AskedBy::Case => "the case".to_owned(),
        AskedBy::LockFile => "the lock file".to_owned(),
        AskedBy::CommandLine => "the command line".to_owned(),
    }
}

/// Splits the found value into lines. Only drift has several, and the runner wrote those.
pub(super) fn found(finding: &Finding) -> Vec<&str> {
    let found = finding.found.as_deref();
    match &finding.asked_by {
        AskedBy::LockFile => found.into_iter().flat_map(str::lines).collect(),
        AskedBy::Specification(_) | AskedBy::Case | AskedBy::CommandLine => {
            found.into_iter().collect()
        }
    }
}

/// Returns the first line of the found value, for reports with a separate section on drift.
pub(super) fn found_in_short(finding: &Finding) -> Option<&str> {
    found(finding).first().copied()
}

/// Result of the comparison with a lock file, or of writing the file.
pub(super) fn lock_file(baseline: &Baseline) -> String {
    let what = match (baseline.outcome, baseline.differences.is_empty()) {
        (BaselineOutcome::Updated, true) if baseline.tier_before.is_some() => "rewritten",
        (BaselineOutcome::Compared, true) => "the behaviour matches",
        (BaselineOutcome::Compared, false) => "the behaviour differs",
        (BaselineOutcome::Updated, true) => "rewritten without changes",
        (BaselineOutcome::Updated, false) => "rewritten; these lines were accepted",
        (BaselineOutcome::Made, _) => "created from the behaviour of this run",
    };
    match &baseline.tier_before {
        None => what.to_owned(),
        Some(tier) => format!("{what}; its isolation was {}", model::quote::quoted(tier)),
    }
}

/// Reason why no option shows a path, in full.
pub(super) fn reason_in_full(reason: Reason) -> &'static str {
    match reason {
        Reason::System => "never shown: in a system directory",
        Reason::Special => "never shown: a device, a socket, a pipe, or names of other machines",
        Reason::Broad => "never shown as a whole: it is or holds a home or a tree of the sandbox",
        Reason::Own => "the sandbox has its own",
        Reason::Unspelt => "its name cannot be typed",
        Reason::Absent => "its own directory starts empty",
    }
}

/// Request line of a request: `POST /v1/messages?beta=true (session title)`. Client text.
pub(super) fn request_line(request: &Request) -> String {
    let last = match &request.head {
        Head::Request {
            method,
            path,
            query: Some(query),
            ..
        } => format!("{method} {path}?{query}"),
        Head::Request {
            method,
            path,
            query: None,
            ..
        } => format!("{method} {path}"),
        Head::Malformed { reason } => format!("no request: {reason}"),
        Head::Incomplete => "a head that does not end".to_owned(),
    };
    let last = match &request.side {
        Some(side) => format!("{last} ({side})"),
        None => last,
    };
    match request.host {
        Host::Stub => last,
        Host::Elsewhere => format!("{last} at the second host, {}", credentials(request)),
    }
}

/// Names of the credential headers of a request.
fn credentials(request: &Request) -> String {
    let credentials: Vec<_> = CREDENTIAL_HEADERS
        .into_iter()
        .filter(|name| !request.header(name).is_empty())
        .collect();
    if credentials.is_empty() {
        "without a credential".to_owned()
    } else {
        format!("with {}", credentials.join(", "))
    }
}

/// Heading of the reasons why a run is unsound.
pub(super) fn unsound(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Errored => "Why this run does not judge the client",
        Verdict::Failed | Verdict::Passed | Verdict::Audited => "Evidence that this run lost",
    }
}

/// Returns the reason of a check that has no result of its own: undecided without a deviation, undecided or failed as a
/// consequence of the end of the program, or skipped because of it.
pub(super) fn consequence(finding: &Finding) -> Option<&str> {
    let because = finding.because.as_deref()?;
    let is_consequence = match finding.status {
        Status::Passed => false,
        // Only the end of the client by the runner is the reason of a failed check.
        Status::Failed => true,
        Status::Skipped => is_of_end(because),
        Status::Errored => finding.found.is_none() || is_of_end(because),
    };
    is_consequence.then_some(because)
}

/// Returns true for a reason that is the end of the program.
pub(super) fn is_of_end(because: &str) -> bool {
    [NEVER_STARTED, INTERRUPTED].contains(&because) || because.starts_with(ENDED_BY_RUNNER)
}

/// Returns true for a check that was skipped because the runner ended the client.
pub(super) fn is_leftover(finding: &Finding) -> bool {
    finding.status == Status::Skipped && finding.found.is_some()
}

/// Returns the last lines of standard error.
pub(super) fn last_lines(evidence: &Evidence) -> Vec<&str> {
    let mut lines: Vec<&str> = evidence
        .stderr
        .tail
        .lines()
        .rev()
        .take(CAUSE_LINES)
        .collect();
    lines.reverse();
    lines
}

/// Returns the reason why the program was never started; `None` if it was.
pub(super) fn reason_of_no_start(report: &Report) -> Option<&str> {
    let evidence = &report.evidence;
    let gap = evidence.gap(&[GapKind::Isolation, GapKind::Processes]);
    gap.filter(|_| evidence.exit == Exit::NotStarted)
        .map(|gap| gap.detail.as_str())
}

/// Returns true if the end of the program explains other findings: any end but an exit with 0 or with the code that the
/// case expects.
pub(super) fn is_cause(report: &Report) -> bool {
    let is_expected =
        |finding: &Finding| finding.id == "process/exit-zero" && finding.status == Status::Passed;
    report.evidence.exit != Exit::Code(0) && !report.checks.iter().any(is_expected)
}

/// End of the program, with the limit that it met.
pub(super) fn exit(evidence: &Evidence) -> String {
    let how = match evidence.exit {
        Exit::Code(code) => format!("exit code {code}"),
        Exit::Signal(signal) => format!("ended by signal {signal}"),
        Exit::Timeout(after) => format!("ended by the runner after {:.1} s", after.as_secs_f64()),
        Exit::OutputLimit => "ended by the runner at its output limit".to_owned(),
        Exit::RequestLimit => "ended by the runner at its request limit".to_owned(),
        Exit::Interrupted => "interrupted".to_owned(),
        Exit::NotStarted => "never started".to_owned(),
    };
    evidence.at_limit(how)
}

/// Returns the finding in one line of bounded length; may contain text of the client.
pub(super) fn in_short(found: &FirstFinding) -> String {
    let text = match &found.check {
        Some(check) => format!("{check}: {}", found.message),
        None => found.message.clone(),
    };
    truncated(&text, MAX_FINDING)
}

/// Word for a verdict; `not run` for a run that was not made.
pub(super) fn verdict_word(verdict: Option<Verdict>) -> &'static str {
    verdict.map_or("not run", Verdict::word)
}

/// Cuts a long text and counts the rest: `… (cut: 3 more characters)`.
pub(super) fn cut(text: &str, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => {
            let (shown, rest) = text.split_at(end);
            let rest = count(rest.chars().count(), "more character");
            format!("{shown}… (cut: {rest})")
        }
        None => text.to_owned(),
    }
}

/// Returns microseconds as milliseconds, `12.3 ms`, or from ten seconds on as seconds.
pub(super) fn duration(us: u64) -> String {
    if us < 10_000_000 {
        format!("{}.{} ms", grouped(us / 1_000), us / 100 % 10)
    } else {
        format!("{}.{:02} s", grouped(us / 1_000_000), us / 10_000 % 100)
    }
}

/// Returns a time on the clock of the run: `+12.3 ms`.
pub(super) fn at(us: u64) -> String {
    format!("+{}", duration(us))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_milliseconds_until_seconds_are_enough() {
        assert_eq!(at(0), "+0.0 ms");
        assert_eq!(at(12_345), "+12.3 ms");
        assert_eq!(at(1_204_999), "+1,204.9 ms");
        assert_eq!(at(61_239_000), "+61.23 s");
    }

    #[test]
    fn cut_text_counts_the_rest() {
        assert_eq!(cut("xxx", 3), "xxx");
        assert_eq!(cut("ééé", 1), "é… (cut: 2 more characters)");
    }
}
