//! Standard input of the client: opened before the run, then copied into a pipe.
//!
//! The client never gets the opened file. With a file of its user, the client could change the mode or the flags that
//! the caller shares, reopen a FIFO for writing by /proc/self/fd/0, or type into a terminal (TIOCSTI, ioctl_tty(2)).

use std::fs::{File, OpenOptions};
use std::io::{self, Seek as _, SeekFrom};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use model::quote::shown_path;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use sandbox::spawn::InputPipe;
use sys::net::readable_bytes;
use thiserror::Error;

use crate::request::StdinChoice;

/// Buffer size of one read, in bytes.
const PIECE: usize = 16 * 1024;

/// Error that prevents a run with this standard input.
#[derive(Debug, Error)]
pub(crate) enum InputError {
    #[error("cannot open {path} as standard input")]
    Open { path: String, source: io::Error },
    #[error("cannot use {object} as standard input: it is a directory")]
    Directory { object: String },
}

/// The opened source of standard input.
#[derive(Debug)]
pub(crate) struct ClientInput {
    source: Arc<File>,
    /// Offset of a regular file at the start, which the caller shares.
    start: Option<u64>,
    /// Client's end of the pipe, while the copy is made.
    reader: Option<OwnedFd>,
    progress: Arc<Mutex<Progress>>,
}

/// State of the copy, shared with its thread.
#[derive(Debug, Default)]
struct Progress {
    written: u64,
    /// The run has ended: no further byte is written.
    is_over: bool,
    error: Option<io::Error>,
}

impl ClientInput {
    /// Opens the source; returns `None` if the client has no input.
    ///
    /// # Errors
    /// A file that cannot be opened, or a directory.
    pub(crate) fn open(choice: &StdinChoice) -> Result<Option<Self>, InputError> {
        let (source, object) = match choice {
            StdinChoice::Nothing => return Ok(None),
            StdinChoice::Inherit => {
                let object = "the file on descriptor 0".to_owned();
                let failed = |source| InputError::Open {
                    path: object.clone(),
                    source,
                };
                let copy = io::stdin().as_fd().try_clone_to_owned();
                (File::from(copy.map_err(failed)?), object)
            }
            StdinChoice::File(path) => (open_file(path)?, shown_path(path)),
        };
        let status = source.metadata().map_err(|source| InputError::Open {
            path: object.clone(),
            source,
        })?;
        if status.is_dir() {
            return Err(InputError::Directory { object });
        }
        let start = status.is_file().then(|| (&source).stream_position().ok());
        Ok(Some(Self {
            source: Arc::new(source),
            start: start.flatten(),
            reader: None,
            progress: Arc::default(),
        }))
    }

    /// Starts the copy into the pipe, in a thread of its own. Nothing is read before the client starts.
    pub(crate) fn start(&mut self, pipe: InputPipe) {
        let InputPipe { reader, writer } = pipe;
        self.reader = Some(reader);
        let (source, progress, start) = (
            Arc::clone(&self.source),
            Arc::clone(&self.progress),
            self.start,
        );
        let copy = move || {
            if let Err(error) = copy(&source, start, &writer, &progress) {
                lock(&progress).error = Some(error);
            }
        };
        // The thread may wait for its source until the runner exits.
        let started = thread::Builder::new().name("stdin".to_owned()).spawn(copy);
        if let Err(error) = started {
            lock(&self.progress).error = Some(error);
        }
    }

    /// Ends the copy. Moves the offset of an inherited file behind the bytes that the client has read, so that the
    /// caller reads on from there. Returns the error that cut the input short.
    pub(crate) fn finish(&mut self) -> Option<io::Error> {
        let mut progress = lock(&self.progress);
        progress.is_over = true;
        let left = self
            .reader
            .take()
            .and_then(|reader| readable_bytes(reader).ok());
        if let (Some(start), Some(left)) = (self.start, left) {
            let read = progress.written.saturating_sub(left as u64);
            // A later reader starts at the old offset if this fails.
            let _ = (&*self.source).seek(SeekFrom::Start(start + read));
        }
        progress.error.take()
    }
}

/// Opens a file without waiting for the writer of a FIFO, and without a new controlling terminal.
fn open_file(path: &PathBuf) -> Result<File, InputError> {
    let mut options = OpenOptions::new();
    options
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
    options.open(path).map_err(|source| InputError::Open {
        path: shown_path(path),
        source,
    })
}

/// Copies the source to its end, or until the run is over.
fn copy(
    source: &File,
    start: Option<u64>,
    writer: &OwnedFd,
    progress: &Mutex<Progress>,
) -> io::Result<()> {
    // A read from the terminal in the background gives EIO instead of stopping the runner (termios(3)).
    SigSet::from_iter([Signal::SIGTTIN]).thread_block()?;
    let mut buffer = [0; PIECE];
    let mut offset = start;
    loop {
        let length = match offset {
            Some(at) => source.read_at(&mut buffer, at),
            None => read_when_ready(source, &mut buffer),
        };
        let length = match length {
            Ok(0) => return Ok(()),
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        offset = offset.map(|at| at + length as u64);
        let mut rest = buffer.get(..length).unwrap_or_default();
        while !rest.is_empty() {
            wait_for(writer, PollFlags::POLLOUT)?;
            let mut progress = lock(progress);
            if progress.is_over {
                return Ok(());
            }
            match nix::unistd::write(writer, rest) {
                Ok(written) => {
                    progress.written += written as u64;
                    rest = rest.get(written..).unwrap_or_default();
                }
                Err(Errno::EAGAIN | Errno::EINTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

/// Reads from a pipe, a terminal or a socket, which may be in non-blocking mode.
fn read_when_ready(source: &File, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        wait_for(source, PollFlags::POLLIN)?;
        match nix::unistd::read(source, buffer) {
            Err(Errno::EAGAIN | Errno::EINTR) => {}
            // nohup(1) opens standard input for writing only.
            Err(Errno::EBADF) => return Ok(0),
            read => return Ok(read?),
        }
    }
}

fn wait_for(descriptor: impl std::os::fd::AsFd, flags: PollFlags) -> io::Result<()> {
    let mut polled = [PollFd::new(descriptor.as_fd(), flags)];
    match poll(&mut polled, PollTimeout::NONE) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

fn lock(progress: &Mutex<Progress>) -> MutexGuard<'_, Progress> {
    progress.lock().unwrap_or_else(PoisonError::into_inner)
}
