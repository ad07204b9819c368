//! Whether this process was started with its standard streams.
//!
//! The runtime of Rust opens /dev/null in the place of a stream that is closed, before `main`: what is written there
//! is lost without an error. So the look is taken before it, among the initialisers that the C library runs first.

use std::io;
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

/// Refuses a standard output that this process was not given.
///
/// # Errors
/// `EBADF`.
pub(crate) fn stdout_is_open() -> io::Result<()> {
    open_unless(STDOUT_CLOSED.load(Ordering::Relaxed))
}

/// Refuses a standard error that this process was not given.
///
/// # Errors
/// `EBADF`.
pub(crate) fn stderr_is_open() -> io::Result<()> {
    open_unless(STDERR_CLOSED.load(Ordering::Relaxed))
}

fn open_unless(closed: bool) -> io::Result<()> {
    if closed {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    Ok(())
}
