//! Standard streams: detects streams that were closed at the start, and files that a stream already writes to.
//!
//! Before `main`, the runtime of Rust opens /dev/null for each closed stream, and later writes are lost without an
//! error. So the check runs earlier, among the initialisers that the C library calls first.

use std::fs::{File, Metadata};
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::sync::atomic::{AtomicBool, Ordering};

/// True if the stream was closed when this process was started.
static STDOUT_CLOSED: AtomicBool = AtomicBool::new(false);
static STDERR_CLOSED: AtomicBool = AtomicBool::new(false);

/// Initialiser that the C library calls before `main`, once, on the only thread.
// SAFETY: the section holds pointers to functions, whose arguments may be ignored. This function makes no call that
// needs an initialised runtime.
#[used]
#[unsafe(link_section = ".init_array")]
static INITIALISER: extern "C" fn() = record_closed_streams;

extern "C" fn record_closed_streams() {
    STDOUT_CLOSED.store(is_closed(libc::STDOUT_FILENO), Ordering::Relaxed);
    STDERR_CLOSED.store(is_closed(libc::STDERR_FILENO), Ordering::Relaxed);
}

/// Returns true if fcntl(2) fails, which F_GETFD does only with EBADF.
fn is_closed(descriptor: libc::c_int) -> bool {
    // SAFETY: F_GETFD takes a number and accesses no memory.
    unsafe { libc::fcntl(descriptor, libc::F_GETFD) == -1 }
}

/// An output stream of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Output,
    /// Standard error.
    Error,
}

impl Stream {
    /// Returns the name of the stream for messages.
    pub fn word(self) -> &'static str {
        match self {
            Self::Output => "standard output",
            Self::Error => "standard error",
        }
    }

    fn file(self) -> io::Result<Metadata> {
        let descriptor = match self {
            Self::Output => io::stdout().as_fd().try_clone_to_owned(),
            Self::Error => io::stderr().as_fd().try_clone_to_owned(),
        };
        File::from(descriptor?).metadata()
    }
}

/// Returns the stream that writes to this file, pipe or socket. A second writer by path would mix with the stream's
/// text or overwrite it.
///
/// Returns `None` for terminals and /dev/null, which any number of writers can share.
pub fn stream_to(file: &Metadata) -> Option<Stream> {
    let kind = file.file_type();
    if !(kind.is_file() || kind.is_fifo() || kind.is_socket()) {
        return None;
    }
    let is_same = |stream: &Stream| {
        let own = stream.file();
        own.is_ok_and(|own| (own.dev(), own.ino()) == (file.dev(), file.ino()))
    };
    [Stream::Output, Stream::Error].into_iter().find(is_same)
}

/// Checks that this process was started with a standard output.
///
/// # Errors
/// `EBADF` if it was closed.
pub fn stdout_is_open() -> io::Result<()> {
    open_unless(STDOUT_CLOSED.load(Ordering::Relaxed))
}

/// Checks that this process was started with a standard error.
///
/// # Errors
/// `EBADF` if it was closed.
pub fn stderr_is_open() -> io::Result<()> {
    open_unless(STDERR_CLOSED.load(Ordering::Relaxed))
}

fn open_unless(closed: bool) -> io::Result<()> {
    if closed {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    Ok(())
}
