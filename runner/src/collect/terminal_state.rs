//! In what state a stream is left by the program whose output went there, and what a report behind it begins with.
//!
//! A line may be unfinished, and so may a command to a terminal: an open title, a colour, concealed text would swallow
//! what follows. A terminal gets the program's text without commands. Where bytes are passed on as they are, to a pipe
//! or a file, somebody will show them on a terminal, and the report with them: so the commands are ended first, where
//! there were any.

use std::io::{self, IsTerminal as _};

use nix::sys::stat::fstat;

/// Ends every command of ECMA-48 that is still open (CAN, then ST for those that take CAN as text), then resets margins,
/// attributes and character sets (DECSTR, SGR 0, G0 to ASCII, SI). Nothing is cleared and the cursor stays.
const RESET: &[u8] = b"\x18\x1b\\\x1b[!p\x1b[0m\x1b(B\x0f";
/// Begins a command, or shifts to another character set.
const ESCAPE: u8 = 0x1b;
const SHIFT_OUT: u8 = 0x0e;

/// What was written to one stream so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TerminalState {
    is_in_line: bool,
    holds_commands: bool,
}

impl TerminalState {
    /// Of a stream of which nobody knows how far it came.
    pub(super) const UNKNOWN: Self = Self {
        is_in_line: true,
        holds_commands: true,
    };

    /// Goes on with bytes that are written as they are.
    pub(super) fn follow(&mut self, bytes: &[u8]) {
        self.follow_text(bytes);
        self.holds_commands |= holds_commands(bytes);
    }

    /// Goes on with text without commands.
    pub(super) fn follow_text(&mut self, text: &[u8]) {
        if let Some(last) = text.last() {
            self.is_in_line = *last != b'\n';
        }
    }
}

/// With what a report on our standard error begins, behind these two.
pub(super) fn before_report(stdout: TerminalState, stderr: TerminalState) -> Vec<u8> {
    let place = StderrTarget {
        is_shared: is_shared(),
        is_terminal: io::stderr().is_terminal(),
    };
    place.before_report(stdout, stderr)
}

/// Where standard error goes.
#[derive(Clone, Copy, Debug)]
struct StderrTarget {
    /// To the same file, pipe or terminal as standard output.
    is_shared: bool,
    is_terminal: bool,
}

impl StderrTarget {
    fn before_report(self, stdout: TerminalState, stderr: TerminalState) -> Vec<u8> {
        let Self {
            is_shared,
            is_terminal,
        } = self;
        let mut bytes = Vec::new();
        // Standard output, through a pipe, may well have gone to the same terminal.
        let reset = stderr.holds_commands || (stdout.holds_commands && (is_shared || is_terminal));
        if reset {
            bytes.extend_from_slice(RESET);
        }
        // Also where the line is finished, so that the verdict has a line for itself.
        if reset || stderr.is_in_line || (stdout.is_in_line && is_shared) {
            bytes.push(b'\n');
        }
        bytes
    }
}

fn is_shared() -> bool {
    let file = |status: nix::sys::stat::FileStat| (status.st_dev, status.st_ino);
    match (fstat(io::stdout()), fstat(io::stderr())) {
        (Ok(stdout), Ok(stderr)) => file(stdout) == file(stderr),
        (Err(_), _) | (_, Err(_)) => false,
    }
}

/// A control of the second set (C1) is a command as well, in eight bits or as a character.
fn holds_commands(bytes: &[u8]) -> bool {
    bytes.iter().any(|byte| [ESCAPE, SHIFT_OUT].contains(byte))
        || bytes.utf8_chunks().any(|chunk| {
            chunk
                .valid()
                .chars()
                .any(|c| ('\u{80}'..='\u{9f}').contains(&c))
                || chunk
                    .invalid()
                    .iter()
                    .any(|byte| (0x80..=0x9f).contains(byte))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(pieces: &[&[u8]]) -> TerminalState {
        let mut trail = TerminalState::default();
        pieces.iter().for_each(|piece| trail.follow(piece));
        trail
    }

    fn between(stdout: TerminalState, stderr: TerminalState) -> Vec<u8> {
        let place = StderrTarget {
            is_shared: false,
            is_terminal: false,
        };
        place.before_report(stdout, stderr)
    }

    #[test]
    fn a_report_begins_on_a_fresh_line_and_no_line_is_left_empty_for_it() {
        let none = TerminalState::default();
        for (written, expected) in [
            (after(&[]), b"".as_slice()),
            (after(&[b"a\n"]), b""),
            (after(&[b"a\n", b""]), b""),
            (after(&[b"a\n", b"b"]), b"\n"),
            (after(&["gr\u{fc}n \u{65e5}\n".as_bytes()]), b""),
        ] {
            assert_eq!(between(none, written), expected, "{written:?}");
            // What is in another file is no business of this one.
            assert_eq!(between(written, none), b"");
            let shared = StderrTarget {
                is_shared: true,
                is_terminal: false,
            };
            assert_eq!(shared.before_report(written, none), expected);
        }
    }

    #[test]
    fn commands_that_may_be_open_are_ended_before_it() {
        let ended = [RESET, b"\n"].concat();
        let none = TerminalState::default();
        for bytes in [
            b"\x1b]0;title".as_slice(),
            b"\x1b[8mconcealed\n",
            b"\x0e\n",
            b"\x9d0;title",
            b"\xc2\x9b8m\n",
        ] {
            let written = after(&[bytes, b"more\n"]);
            assert_eq!(between(none, written), ended, "{bytes:?}");
            assert_eq!(between(written, none), b"", "{bytes:?}");
            for (is_shared, is_terminal) in [(true, false), (false, true)] {
                let place = StderrTarget {
                    is_shared,
                    is_terminal,
                };
                assert_eq!(place.before_report(written, none), ended, "{bytes:?}");
            }
        }
        assert_eq!(between(none, TerminalState::UNKNOWN), ended);
    }

    #[test]
    fn a_terminal_that_gets_text_without_commands_needs_no_reset() {
        let mut trail = TerminalState::default();
        trail.follow_text(b"\\u{1b}]0;x");
        assert_eq!(between(TerminalState::default(), trail), b"\n");
    }
}
