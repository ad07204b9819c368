//! Standard output and standard error of the client: copies, passing on, limits.

use std::fs::File;

use model::evidence::{Exit, GapKind};

use super::output::{Errors, Over, Spool};
use super::pipes::Read;
use super::{Next, Phase, Session, limit};

impl Session<'_> {
    /// Prepares both streams, with copies in the files.
    pub(super) fn copy_to(&mut self, spools: Option<[File; 2]>) {
        let (secrets, limit) = (self.settings.secrets, self.settings.output_bytes);
        let spool = |file| Spool::new(file, limit, secrets);
        let [out, err] = match spools {
            Some(files) => files.map(|file| Some(spool(file))),
            None => [None, None],
        };
        match self.passthrough {
            Some(_) => self.capture.passed = Some(Errors::new(secrets, out)),
            None => self.capture.output.copy_to(out),
        }
        self.capture.errors = Errors::new(secrets, err);
    }

    pub(super) fn read_stdout(&mut self, read: Read) -> Next {
        match read {
            Read::End => {
                self.stdout = None;
                self.publish_lines();
            }
            Read::Left(left) => {
                self.stdout = None;
                if let Some(passed) = &mut self.capture.passed {
                    passed.push(&left);
                }
            }
            Read::Piece(piece) => match (&mut self.passthrough, &mut self.capture.passed) {
                (Some((out, _)), Some(passed)) => {
                    passed.push(&piece);
                    out.push(&piece);
                    if passed.bytes() > self.settings.output_bytes && self.phase == Phase::Running {
                        return self.end_client(Exit::OutputLimit);
                    }
                }
                _ => {
                    let now = self.settings.clock.elapsed_us();
                    self.capture.output.push(&piece, now);
                    self.publish_lines();
                }
            },
        }
        Next::Continue
    }

    /// Ends a read of standard output with the number of lines for the supervisor.
    pub(super) fn publish_lines(&self) {
        if let Some(lines) = &self.line_reader {
            lines.end_read(self.capture.output.lines());
        }
    }

    pub(super) fn read_stderr(&mut self, read: Read) -> Next {
        match read {
            Read::End => self.stderr = None,
            Read::Left(left) => {
                self.stderr = None;
                self.capture.errors.push(&left);
            }
            Read::Piece(piece) => {
                self.capture.errors.push(&piece);
                if let Some((_, err)) = &mut self.passthrough {
                    err.push(&piece);
                }
                if self.capture.errors.bytes() > self.settings.output_bytes
                    && self.phase == Phase::Running
                {
                    let bytes = self.settings.output_bytes;
                    let limit = limit::output(Over::Bytes, bytes, 0);
                    self.gap(
                        GapKind::Stderr,
                        format!("standard error went over its limit, {limit}"),
                    );
                    return self.end_client(Exit::OutputLimit);
                }
            }
        }
        Next::Continue
    }

    /// Ends a client that has written more than the limit. Barriers read output too, so the loop checks here.
    pub(super) fn hold_output_to_its_limit(&mut self) -> Next {
        if self.capture.output.over().is_some() && self.phase == Phase::Running {
            return self.end_client(Exit::OutputLimit);
        }
        Next::Continue
    }
}
