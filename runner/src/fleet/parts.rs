//! Reports of single runs on disk, until the common report around them is written.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};

use model::fleet::{Fleet, FleetRun};
use model::report::Report;
use report::Format;
use report::fleet::{frame, has_parts, part, separator};

use crate::output::{Output, WriteError};
use crate::run::colour;

/// Parts of all formats that have parts and are asked for.
#[derive(Debug)]
pub(super) struct Parts(Vec<PartsOfFormat>);

#[derive(Debug)]
struct PartsOfFormat {
    format: Format,
    /// File without a name, gone with its descriptor.
    file: File,
    is_empty: bool,
    /// First error; later parts are dropped.
    lost: Option<io::Error>,
}

impl Parts {
    /// Makes a file for each format of `outputs` that has parts.
    ///
    /// # Errors
    /// The error of the file system.
    pub(super) fn for_outputs(outputs: &[Output]) -> io::Result<Self> {
        let formats = Format::ALL.into_iter();
        let formats = formats.filter(|format| {
            has_parts(*format) && outputs.iter().any(|output| output.format == *format)
        });
        let made = formats.map(|format| {
            Ok(PartsOfFormat {
                format,
                file: tempfile::tempfile()?,
                is_empty: true,
                lost: None,
            })
        });
        made.collect::<io::Result<_>>().map(Self)
    }

    /// Stores the parts of one run.
    pub(super) fn push(&mut self, run: &FleetRun, report: Option<&Report>) {
        for parts in &mut self.0 {
            if parts.lost.is_none() {
                parts.lost = parts.push(run, report).err();
            }
        }
    }

    /// Writes the common reports. Every output is tried even if another one failed.
    pub(super) fn write(mut self, fleet: &Fleet, outputs: Vec<Output>) -> Vec<WriteError> {
        let mut lost = Vec::new();
        for output in outputs {
            let format = output.format;
            let parts = self.0.iter_mut().find(|parts| parts.format == format);
            let written = match parts {
                Some(parts) => parts.write(fleet, output),
                None => frame(fleet, format, colour(output.is_terminal()))
                    .map_err(|source| WriteError::Render { format, source })
                    .and_then(|frame| output.write(&frame.head)),
            };
            lost.extend(written.err());
        }
        lost
    }
}

impl PartsOfFormat {
    fn push(&mut self, run: &FleetRun, report: Option<&Report>) -> io::Result<()> {
        let part = part(run, report, self.format).map_err(io::Error::other)?;
        if part.is_empty() {
            return Ok(());
        }
        if !self.is_empty {
            self.file.write_all(separator(self.format).as_bytes())?;
        }
        self.is_empty = false;
        self.file.write_all(&part)
    }

    /// Writes the common report. Two outputs of one format read the same file.
    fn write(&mut self, fleet: &Fleet, output: Output) -> Result<(), WriteError> {
        let format = self.format;
        let frame = frame(fleet, format, colour(false))
            .map_err(|source| WriteError::Render { format, source })?;
        let stored = match self.lost.take() {
            Some(error) => Err(error),
            None => self.file.rewind(),
        };
        stored.map_err(|source| WriteError::Parts { format, source })?;
        output.write_from(&mut frame.head.chain(&self.file).chain(&*frame.tail))
    }
}
