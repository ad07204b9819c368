//! Whether this process was started with its standard streams.
//!
//! The runtime of Rust opens /dev/null in the place of a stream that is closed, before `main`: what is written there
//! is lost without an error. So the look is taken before it, among the initialisers that the C library runs first.
//! And whether a file is one that they go to already.

use std::fs::{File, Metadata};
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::sync::atomic::{AtomicBool, Ordering};

/// Not there when this process was started.
static STDOUT_CLOSED: AtomicBool = AtomicBool::new(false);
static STDERR_CLOSED: AtomicBool = AtomicBool::new(false);

/// Run by the C library before `main`, once, on the only thread.
// SAFETY: the section holds pointers to functions that the C library calls with arguments that may be ignored; `look`
// is one, and it calls nothing that needs an initialised runtime.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    STDOUT_CLOSED.store(is_closed(libc::STDOUT_FILENO), Ordering::Relaxed);
    STDERR_CLOSED.store(is_closed(libc::STDERR_FILENO), Ordering::Relaxed);
}

/// fcntl(2) knows one failure of this question: EBADF.
fn is_closed(descriptor: libc::c_int) -> bool {
    // SAFETY: F_GETFD takes a number and touches no memory.
    unsafe { libc::fcntl(descriptor, libc::F_GETFD) == -1 }
}

/// A stream for what this process writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    Output,
    Error,
}

impl Stream {
    /// For people.
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

/// The stream that goes to this file, pipe or socket, where one does. Whoever writes to it by its name as well mixes
/// both, or goes over what is there. A terminal and /dev/null are for everybody.
pub fn going_to(file: &Metadata) -> Option<Stream> {
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

/// Refuses a standard output that this process was not given.
///
/// # Errors
/// `EBADF`.
pub fn stdout_is_open() -> io::Result<()> {
    open_unless(STDOUT_CLOSED.load(Ordering::Relaxed))
}

/// Refuses a standard error that this process was not given.
///
/// # Errors
/// `EBADF`.
pub fn stderr_is_open() -> io::Result<()> {
    open_unless(STDERR_CLOSED.load(Ordering::Relaxed))
}

fn open_unless(closed: bool) -> io::Result<()> {
    if closed {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    Ok(())
}
