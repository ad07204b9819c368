//! The host: system calls that nix, caps and landlock do not wrap, one safe function per call. Also the few files,
//! clocks and random numbers that several crates need.
//!
//! This is the only crate with `unsafe`. It knows the interface of the kernel, and no policy, set-up order or message
//! of the sandbox. Errors are the errno of the kernel. [`attempt`] and [`test_network`] hold raw calls
//! of probes.

#![allow(unsafe_code)]

use std::borrow::Borrow;
use std::io;

use nix::errno::Errno;

pub mod attempt;
pub mod build_id;
pub mod clock;
pub mod fds;
pub mod marks;
pub mod mount;
pub mod net;
pub mod notify;
pub mod priority;
pub mod process;
pub mod processors;
pub mod random;
pub mod read;
pub mod seccomp;
pub mod streams;
pub mod test_network;

/// Returns the errno of an I/O error; `EIO` for errors that the standard library makes itself.
pub fn errno_of(error: impl Borrow<io::Error>) -> Errno {
    let errno = error.borrow().raw_os_error();
    errno.map_or(Errno::EIO, Errno::from_raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_without_errno_has_eio() {
        let of_system = io::Error::from(Errno::ENOENT);
        assert_eq!(errno_of(&of_system), Errno::ENOENT);
        assert_eq!(errno_of(io::Error::other("own")), Errno::EIO);
    }
}
