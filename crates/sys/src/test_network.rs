//! Addresses and routes on a loopback device that represents the whole network, for the positive twins of network
//! attempts. They are set by old ioctls, which need no netlink library.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, AsRawFd};

use nix::errno::Errno;

/// netdevice(7) SIOCSIFADDR: gives the interface `name`, such as `lo:1`, an IPv4 address.
///
/// # Errors
/// The errno of the ioctl: `EPERM` without CAP_NET_ADMIN over the network namespace.
pub fn set_address(socket: impl AsFd, name: &str, address: Ipv4Addr) -> Result<(), Errno> {
    // SAFETY: ifreq is plain data, and all zeroes is a valid value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last byte stays NUL.
    let capacity = request.ifr_name.len() - 1;
    for (to, from) in request.ifr_name.iter_mut().take(capacity).zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_addr = inet(address);
    let number = socket.as_fd().as_raw_fd();
    // SAFETY: SIOCSIFADDR reads an ifreq with a NUL-terminated name and an address.
    Errno::result(unsafe { libc::ioctl(number, libc::SIOCSIFADDR, &raw const request) }).map(drop)
}

/// SIOCADDRT, the predecessor of rtnetlink(7): sets the IPv4 default route to `lo`.
///
/// # Errors
/// As for [`set_address`].
pub fn route_everything_to_loopback(socket: impl AsFd) -> Result<(), Errno> {
    // SAFETY: rtentry is plain data, and all zeroes is a valid value.
    let mut route: libc::rtentry = unsafe { std::mem::zeroed() };
    let mut device = *b"lo\0";
    route.rt_dst = inet(Ipv4Addr::UNSPECIFIED);
    route.rt_genmask = inet(Ipv4Addr::UNSPECIFIED);
    route.rt_flags = libc::RTF_UP;
    route.rt_dev = device.as_mut_ptr().cast();
    let number = socket.as_fd().as_raw_fd();
    // SAFETY: SIOCADDRT reads an rtentry whose device is a NUL-terminated name.
    Errno::result(unsafe { libc::ioctl(number, libc::SIOCADDRT, &raw const route) }).map(drop)
}

fn inet(address: Ipv4Addr) -> libc::sockaddr {
    let [a, b, c, d] = address.octets();
    let mut data = [0; 14];
    for (to, from) in data.iter_mut().zip([0, 0, a, b, c, d]) {
        *to = from as libc::c_char;
    }
    libc::sockaddr {
        sa_family: libc::AF_INET as libc::sa_family_t,
        sa_data: data,
    }
}

/// Index of `lo`, the first device of every network namespace.
const LOOPBACK: i32 = 1;

/// `struct in6_ifreq` of linux/ipv6.h.
#[repr(C)]
struct In6Request {
    address: [u8; 16],
    prefix: u32,
    index: i32,
}

/// `struct in6_rtmsg` of linux/ipv6_route.h.
#[repr(C)]
struct In6Route {
    destination: [u8; 16],
    source: [u8; 16],
    gateway: [u8; 16],
    kind: u32,
    destination_length: u16,
    source_length: u16,
    metric: u32,
    info: libc::c_ulong,
    flags: u32,
    index: i32,
}

/// SIOCSIFADDR for IPv6: gives `lo` an address.
///
/// # Errors
/// The errno of the ioctl.
pub fn set_address_6(socket: impl AsFd, address: Ipv6Addr) -> Result<(), Errno> {
    let request = In6Request {
        address: address.octets(),
        prefix: 128,
        index: LOOPBACK,
    };
    let number = socket.as_fd().as_raw_fd();
    // SAFETY: on an IPv6 socket, SIOCSIFADDR reads an in6_ifreq.
    Errno::result(unsafe { libc::ioctl(number, libc::SIOCSIFADDR, &raw const request) }).map(drop)
}

/// SIOCADDRT for IPv6: sets the default route to `lo`.
///
/// # Errors
/// The errno of the ioctl.
pub fn route_everything_to_loopback_6(socket: impl AsFd) -> Result<(), Errno> {
    let route = In6Route {
        destination: [0; 16],
        source: [0; 16],
        gateway: [0; 16],
        kind: 0,
        destination_length: 0,
        source_length: 0,
        metric: 1,
        info: 0,
        flags: libc::RTF_UP.into(),
        index: LOOPBACK,
    };
    let number = socket.as_fd().as_raw_fd();
    // SAFETY: on an IPv6 socket, SIOCADDRT reads an in6_rtmsg.
    Errno::result(unsafe { libc::ioctl(number, libc::SIOCADDRT, &raw const route) }).map(drop)
}
