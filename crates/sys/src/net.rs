//! Calls on sockets and pipes: set the loopback device up, count readable bytes and dropped datagrams, name a protocol.

use std::ffi::CStr;
use std::os::fd::{AsFd, AsRawFd};

use nix::errno::Errno;

/// netdevice(7), SIOCGIFFLAGS and SIOCSIFFLAGS: sets the loopback device of this network namespace up.
///
/// # Errors
/// The errno of the ioctl: `EPERM` without CAP_NET_ADMIN over the namespace.
pub fn set_loopback_up(socket: impl AsFd) -> Result<(), Errno> {
    // SAFETY: ifreq is plain data, and all zeroes is a valid value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo\0") {
        *to = *from as libc::c_char;
    }
    let number = socket.as_fd().as_raw_fd();
    // SAFETY: `request` is an ifreq with a NUL-terminated name, as SIOCGIFFLAGS reads and writes it.
    Errno::result(unsafe { libc::ioctl(number, libc::SIOCGIFFLAGS, &raw mut request) })?;
    // SAFETY: SIOCGIFFLAGS has just written this member of the union.
    let flags = unsafe { request.ifr_ifru.ifru_flags };
    request.ifr_ifru.ifru_flags = flags | libc::IFF_UP as libc::c_short;
    // SAFETY: as above; SIOCSIFFLAGS only reads the request.
    Errno::result(unsafe { libc::ioctl(number, libc::SIOCSIFFLAGS, &raw const request) }).map(drop)
}

/// ioctl_pipe(2) FIONREAD: returns how many bytes can be read from `descriptor` now.
///
/// # Errors
/// The errno of ioctl(2).
pub fn readable_bytes(descriptor: impl AsFd) -> Result<usize, Errno> {
    let mut count: libc::c_int = 0;
    // SAFETY: FIONREAD writes the one int that the pointer addresses.
    Errno::result(unsafe {
        libc::ioctl(
            descriptor.as_fd().as_raw_fd(),
            libc::FIONREAD,
            &raw mut count,
        )
    })?;
    Ok(usize::try_from(count).unwrap_or(0))
}

/// Number of words of SO_MEMINFO, and the index of its drop counter (SK_MEMINFO_DROPS of linux/sock_diag.h).
const MEMORY_WORDS: usize = 9;
const DROPS: usize = 8;

/// SO_MEMINFO (Linux 4.12): counts the datagrams that `socket` dropped because its buffer was full.
///
/// # Errors
/// The errno of getsockopt(2).
pub fn dropped_datagrams(socket: impl AsFd) -> Result<u64, Errno> {
    let mut words = [0_u32; MEMORY_WORDS];
    let mut length = size_of_val(&words) as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes, the size of `words`, and then the length.
    Errno::result(unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            words.as_mut_ptr().cast(),
            &raw mut length,
        )
    })?;
    Ok(u64::from(words[DROPS]))
}

/// getxattr(2) of `system.sockprotoname`: returns the protocol of a socket as net/socket.c names it, such as `TCP` or
/// `UDPv6`. `path` leads to the descriptor of the socket.
///
/// # Errors
/// The errno of getxattr(2); `ENODATA` or `EOPNOTSUPP` for a file that is not a socket.
pub fn socket_protocol(path: &CStr) -> Result<Vec<u8>, Errno> {
    let mut name = vec![0_u8; 32];
    // SAFETY: both names end with NUL; the kernel writes at most 32 bytes, the size of the buffer.
    let length = unsafe {
        libc::getxattr(
            path.as_ptr(),
            c"system.sockprotoname".as_ptr(),
            name.as_mut_ptr().cast(),
            name.len(),
        )
    };
    name.truncate(Errno::result(length)?.unsigned_abs());
    // The kernel's value includes a NUL.
    name.retain(|byte| *byte != 0);
    Ok(name)
}
