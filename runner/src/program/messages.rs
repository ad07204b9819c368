//! Messages on standard error: errors with their hints, and notes on a run.

use std::io::{self, Write as _};

use model::escape::{for_terminal, visible};
use model::quote::shown_path;
use model::report::Purpose;
use model::text::count;

use crate::advice::Advice;
use crate::build_report::PassedOver;
use crate::bundle::Bundled;
use crate::collect::home_copy::Kept;
use crate::error_text::message;
use crate::run::Done;

/// Prints the messages of a run beside its reports.
pub(super) fn print_messages(done: &Done, purpose: Purpose) {
    let has_messages = done.failure.is_some()
        || done.kept.is_some()
        || done.bundled.is_some()
        || done.input_error.is_some()
        || !done.lost.is_empty();
    if has_messages {
        write_stderr(&done.before);
    }
    if let Some(failure) = &done.failure {
        print_passed_over(&done.passed_over);
        print_error(
            "error",
            failure,
            advised(failure.advice(purpose)).as_deref(),
        );
    }
    if let Some(copy) = &done.kept {
        print_kept(copy);
    }
    if let Some(bundled) = &done.bundled {
        print_bundled(bundled);
    }
    if let Some(error) = &done.input_error {
        print_note(&format!("standard input was not read to its end: {error}"));
    }
    for error in &done.lost {
        print_error("error", error, None);
    }
}

fn print_kept(copy: &Kept) {
    print_note(&format!("the home is kept in {}", copy.path.display()));
    for lost in &copy.left_out.named {
        print_note(&format!("not in the copy of the home: {lost}"));
    }
    if copy.left_out.further > 0 {
        let more = copy.left_out.further;
        print_note(&format!("not in the copy of the home: {more} more"));
    }
}

fn print_bundled(bundled: &Bundled) {
    let (path, sha256) = (shown_path(&bundled.path), &bundled.sha256);
    print_note(&format!(
        "the evidence is in {path}; its SHA256SUMS has the SHA-256 {sha256}"
    ));
    if bundled.left_out > 0 {
        print_note(&format!(
            "not in the evidence: {} objects of the client; exceptions.json has the reasons",
            bundled.left_out
        ));
    }
    if bundled.withheld > 0 {
        print_note(&format!(
            "not in the evidence: {} that hold a value of `--env`; exceptions.json lists them",
            count(bundled.withheld, "file")
        ));
    }
}

/// Prints the error of each isolation that was tried.
pub(super) fn print_passed_over(passed_over: &[PassedOver]) {
    for PassedOver { tier, error } in passed_over {
        let what = format!(
            "cannot make a sandbox with isolation {}: {error}",
            tier.word()
        );
        print_text("error", &what, Some(&Advice::of(error).hint()));
    }
}

pub(super) fn advised(advice: Option<Advice>) -> Option<String> {
    advice.map(|advice| advice.hint())
}

/// Prints `error:` with the error, each cause on a line, then the hint.
pub(super) fn print_error(
    label: &str,
    error: &(dyn std::error::Error + 'static),
    hint: Option<&str>,
) {
    print_text(label, &message(error), hint);
}

pub(super) fn print_text(label: &str, text: &str, hint: Option<&str>) {
    let mut text = format!("{label}: {text}\n");
    if let Some(hint) = hint {
        text.push_str(&format!("  hint: {}\n", for_terminal(hint)));
    }
    write_stderr(text.as_bytes());
}

/// Prints a note, one line. Names of files and programs in it are the program's choice.
pub(super) fn print_note(text: &str) {
    write_stderr(format!("note: {}\n", visible(text)).as_bytes());
}

/// Writes to standard error. If standard error is closed, the text is lost.
pub(super) fn write_stderr(text: &[u8]) {
    let _ = io::stderr().lock().write_all(text);
}
