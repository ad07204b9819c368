//! System calls that only probes of the canary make.

use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use nix::errno::Errno;

/// Size in bytes of `struct io_uring_params` (linux/io_uring.h).
const PARAMETER_BYTES: usize = 120;

/// io_uring_setup(2) with a queue of one entry.
///
/// # Errors
/// The errno of the call.
pub fn io_uring_setup() -> Result<OwnedFd, Errno> {
    let mut parameters = [0_u8; PARAMETER_BYTES];
    // SAFETY: the kernel reads and writes one `struct io_uring_params`, and the array has its size.
    let result = unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, parameters.as_mut_ptr()) };
    let number = Errno::result(result)?;
    // SAFETY: the kernel has just created this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(number as i32) })
}

/// ioctl_tty(2) TIOCSTI: pushes one byte into the input of a terminal. `high` is the upper half of the request, which
/// the kernel ignores.
///
/// # Errors
/// The errno of the call.
pub fn push_input(terminal: impl AsFd, high: u32) -> Result<(), Errno> {
    let byte = b'#';
    let request = u64::from(high) << 32 | libc::TIOCSTI;
    // SAFETY: TIOCSTI reads the one byte that the pointer addresses.
    let result = unsafe {
        libc::syscall(
            libc::SYS_ioctl,
            terminal.as_fd().as_raw_fd(),
            request,
            &raw const byte,
        )
    };
    Errno::result(result).map(drop)
}
