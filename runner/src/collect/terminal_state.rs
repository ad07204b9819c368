//! State in which a program's output leaves a stream, and the bytes that make a report after it readable.
//!
//! The last line may be unfinished, and so may a terminal command: an open title, a colour or concealed text would
//! swallow the report. A terminal gets the program's text without commands. A pipe or a file gets the bytes
//! unchanged, and may be shown on a terminal later. So a report in the same stream first ends the commands, if
//! there were any.

use std::io::{self, IsTerminal as _};

use nix::sys::stat::fstat;

/// Ends every open command of ECMA-48 (CAN, then ST for commands that take CAN as text). Then resets margins,
/// attributes and character sets (DECSTR, SGR 0, G0 to ASCII, SI). The screen is not cleared and the cursor stays.
const RESET: &[u8] = b"\x18\x1b\\\x1b[!p\x1b[0m\x1b(B\x0f";
/// Byte that begins a command.
const ESCAPE: u8 = 0x1b;
/// Byte that shifts to another character set.
const SHIFT_OUT: u8 = 0x0e;

/// State of one stream after the bytes written so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TerminalState {
    is_in_line: bool,
    holds_commands: bool,
}

impl TerminalState {
    /// State of a stream with an unknown part of the output.
    pub(super) const UNKNOWN: Self = Self {
        is_in_line: true,
        holds_commands: true,
    };

    /// Follows bytes that are written unchanged.
    pub(super) fn follow(&mut self, bytes: &[u8]) {
        self.follow_text(bytes);
        self.holds_commands |= holds_commands(bytes);
    }

    /// Follows text without commands.
    pub(super) fn follow_text(&mut self, text: &[u8]) {
        if let Some(last) = text.last() {
            self.is_in_line = *last != b'\n';
        }
    }
}

/// Returns the bytes to write before a report on standard error, after output in these states.
pub(super) fn before_report(stdout: TerminalState, stderr: TerminalState) -> Vec<u8> {
    let target = StderrTarget {
        is_shared: is_shared(),
        is_terminal: io::stderr().is_terminal(),
    };
    target.before_report(stdout, stderr)
}

/// Target of standard error.
#[derive(Clone, Copy, Debug)]
struct StderrTarget {
    /// True if standard output goes to the same file, pipe or terminal.
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
        // Standard output may reach the same terminal through a pipe.
        let reset = stderr.holds_commands || (stdout.holds_commands && (is_shared || is_terminal));
        if reset {
            bytes.extend_from_slice(RESET);
        }
        // A reset is followed by a line feed even after a complete line, so that the verdict has its own line.
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

/// Checks for control characters that begin a command: ESC, SO, and the C1 set in eight bits or in UTF-8.
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
        let mut state = TerminalState::default();
        pieces.iter().for_each(|piece| state.follow(piece));
        state
    }

    fn between(stdout: TerminalState, stderr: TerminalState) -> Vec<u8> {
        let target = StderrTarget {
            is_shared: false,
            is_terminal: false,
        };
        target.before_report(stdout, stderr)
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
            // An unfinished line in another file does not matter.
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
                let target = StderrTarget {
                    is_shared,
                    is_terminal,
                };
                assert_eq!(target.before_report(written, none), ended, "{bytes:?}");
            }
        }
        assert_eq!(between(none, TerminalState::UNKNOWN), ended);
    }

    #[test]
    fn a_terminal_that_gets_text_without_commands_needs_no_reset() {
        let mut state = TerminalState::default();
        state.follow_text(b"\\u{1b}]0;x");
        assert_eq!(between(TerminalState::default(), state), b"\n");
    }
}
