//! Arguments of a notified system call: its registers, and the memory that its pointers refer to.
//!
//! Another thread may change that memory before the kernel reads it again (seccomp_unotify(2)). So memory is evidence
//! only: no call is permitted because of memory unless the namespace makes the call safe.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use nix::errno::Errno;
use sys::notify::{Memory, Notification};

use super::sockets::Socket;
use super::system_v::SystemV;
use crate::filter::SystemCall::{self, *};
use crate::filter::{ForeignCall, SocketOption};

/// sizeof(struct sockaddr_storage).
const MAX_ADDRESS_BYTES: usize = 128;
/// Longest argument of execve(2): MAX_ARG_STRLEN of linux/binfmts.h.
const MAX_EXECVE_STRING_BYTES: usize = 128 * 1024;
/// Limit of all arguments together: three quarters of _STK_LIM (execve(2)).
const MAX_EXECVE_BYTES: usize = 6 * 1024 * 1024;
/// PATH_MAX of linux/limits.h.
pub(super) const MAX_PATH_BYTES: usize = 4096;
/// Most messages of one sendmmsg(2): UIO_MAXIOV of linux/uio.h.
const MAX_MESSAGES: u64 = 1024;
/// Bytes of a message that are searched for a DNS query.
const MAX_QUERY_BYTES: usize = 512;

/// System call with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Call {
    Socket(Socket),
    /// socketpair(2).
    Pair(Socket),
    /// connect(2), or messages to addresses.
    To(Vec<Destination>),
    /// Messages with MSG_FASTOPEN; the list is empty if they have no address.
    FastOpen(Vec<Destination>),
    /// Messages with MSG_OOB; the list is empty if they have no address.
    Urgent(Vec<Destination>),
    /// A message without an address, to the peer of a connected socket.
    Connected,
    Bind(Address),
    Listen {
        descriptor: i32,
    },
    IoUring,
    /// shmget(2), semget(2) or msgget(2), which may make an object.
    SystemV(SystemV),
    /// pipe(2), or mknod(2) of a FIFO.
    Pipe,
    /// memfd_create(2).
    MemoryFile,
    /// mmap(2) of shared memory without a file.
    SharedMapping {
        bytes: u64,
    },
    /// landlock_add_rule(2).
    LandlockRule,
    /// landlock_restrict_self(2), which copies the rules of a ruleset.
    LandlockDomain,
    /// setsockopt(2) with an option that the filter does not allow.
    SetOption(SocketOption),
    Execute {
        /// Descriptor of the directory at which a relative path begins, or AT_FDCWD.
        at: i32,
        program: Vec<u8>,
        arguments: Vec<Vec<u8>>,
    },
    /// prctl(2) with PR_SET_DUMPABLE.
    Dumpable {
        on: bool,
    },
    /// A call of a 32-bit program or of x32.
    Foreign(ForeignCall),
    /// A call whose memory cannot be read.
    Unreadable,
}

/// One destination of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Destination {
    pub(super) address: Address,
    pub(super) descriptor: i32,
    /// The call opens a connection: connect(2), or a message with MSG_FASTOPEN.
    pub(super) connects: bool,
    /// First bytes of the message, which may hold a DNS query.
    pub(super) payload: Vec<u8>,
}

/// An address in a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Address {
    Inet(SocketAddr),
    /// Path of a unix socket, up to the first NUL: the bytes after it are leftovers of the caller's stack.
    Path(Vec<u8>),
    /// Abstract name of a unix socket, without its leading NUL.
    Abstract(Vec<u8>),
    /// Unix address without a name.
    Unnamed,
    /// Netlink address; process id 0 is the kernel.
    Netlink {
        process: u32,
    },
    /// AF_UNSPEC, which dissolves an association (connect(2)).
    Unspecified,
    Other {
        family: i32,
    },
}

/// System call by its number. Returns `None` for calls of another interface, which has numbers of its own.
pub(super) fn native(notification: &Notification) -> Option<SystemCall> {
    if foreign(notification).is_some() {
        return None;
    }
    SystemCall::numbered(notification.call)
}

fn foreign(notification: &Notification) -> Option<ForeignCall> {
    ForeignCall::numbered(notification.architecture, notification.call as u32)
}

/// Checks for a call that makes a process or a thread.
pub(super) fn makes_process(call: SystemCall) -> bool {
    matches!(call, SYS_clone | SYS_fork | SYS_vfork)
}

/// Checks for a call that makes a FIFO. Such a call is recorded as a lookup and counted as a pipe.
#[expect(clippy::wildcard_enum_match_arm, reason = "any other call")]
pub(super) fn makes_fifo(call: SystemCall, arguments: &[u64; 6]) -> bool {
    let mode = match call {
        SYS_mknod => arguments[1],
        SYS_mknodat => arguments[2],
        _ => return false,
    };
    mode as u32 & libc::S_IFMT == libc::S_IFIFO
}

/// Reads the arguments of a notified call.
pub(super) fn read(notification: &Notification) -> Call {
    read_all(notification).unwrap_or(Call::Unreadable)
}

#[expect(clippy::wildcard_enum_match_arm, reason = "any other call")]
fn read_all(notification: &Notification) -> Result<Call, Errno> {
    let [first, second, third, fourth, fifth, sixth] = notification.arguments;
    let memory = &Memory::of(notification.thread);
    let descriptor = first as i32;
    if let Some(call) = foreign(notification) {
        return Ok(Call::Foreign(call));
    }
    let Some(call) = SystemCall::numbered(notification.call) else {
        return Ok(Call::Unreadable);
    };
    Ok(match call {
        SYS_socket => Call::Socket(Socket::from_registers(&notification.arguments)),
        SYS_socketpair => Call::Pair(Socket::from_registers(&notification.arguments)),
        SYS_connect => Call::To(vec![Destination {
            address: read_address(memory, second, third as i32)?,
            descriptor,
            connects: true,
            payload: Vec::new(),
        }]),
        // The kernel ignores an address without a length.
        SYS_sendto if fifth == 0 || sixth as i32 == 0 => with_flags(Call::Connected, fourth),
        SYS_sendto => {
            let destination = Destination {
                address: read_own_address(memory, fifth, sixth as i32)?,
                descriptor,
                connects: opens_fast(fourth),
                payload: read_prefix(memory, second, third),
            };
            with_flags(Call::To(vec![destination]), fourth)
        }
        SYS_sendmsg => messages(memory, descriptor, second, 1, third)?,
        SYS_sendmmsg => messages(memory, descriptor, second, u64::from(third as u32), fourth)?,
        SYS_bind => Call::Bind(read_own_address(memory, second, third as i32)?),
        SYS_listen => Call::Listen { descriptor },
        SYS_setsockopt => Call::SetOption(SocketOption {
            level: second as i32,
            name: third as i32,
        }),
        SYS_io_uring_setup => Call::IoUring,
        SYS_shmget => Call::SystemV(SystemV::segment(&notification.arguments)),
        SYS_semget => Call::SystemV(SystemV::semaphores(&notification.arguments)),
        SYS_msgget => Call::SystemV(SystemV::queue(&notification.arguments)),
        SYS_pipe | SYS_pipe2 | SYS_mknod | SYS_mknodat => Call::Pipe,
        SYS_memfd_create => Call::MemoryFile,
        SYS_mmap => Call::SharedMapping { bytes: second },
        SYS_landlock_add_rule => Call::LandlockRule,
        SYS_landlock_restrict_self => Call::LandlockDomain,
        SYS_execve => execute(memory, libc::AT_FDCWD, first, second)?,
        SYS_execveat => execute(memory, descriptor, second, third)?,
        SYS_prctl => Call::Dumpable { on: second != 0 },
        // The filter's table notifies no other call. An unknown one is refused as unreadable.
        _ => Call::Unreadable,
    })
}

fn opens_fast(flags: u64) -> bool {
    flags as i32 & libc::MSG_FASTOPEN != 0
}

/// Chooses the kind of a message by its flags, which are a register.
fn with_flags(call: Call, flags: u64) -> Call {
    let kind = if flags as i32 & libc::MSG_OOB != 0 {
        Call::Urgent
    } else if opens_fast(flags) {
        Call::FastOpen
    } else {
        return call;
    };
    kind(if let Call::To(destinations) = call {
        destinations
    } else {
        Vec::new()
    })
}

/// Reads one struct msghdr, or `count` structs mmsghdr, at address `at`.
fn messages(
    memory: &Memory,
    descriptor: i32,
    at: u64,
    count: u64,
    flags: u64,
) -> Result<Call, Errno> {
    const MESSAGE: u64 = size_of::<libc::mmsghdr>() as u64;
    let mut destinations = Vec::new();
    for index in 0..count.min(MAX_MESSAGES) {
        // struct msghdr: name, name length (u32), padding, iov, iov length, …; struct mmsghdr begins with it.
        let mut header = [0; 32];
        memory.read(at.wrapping_add(index * MESSAGE), &mut header)?;
        let [name, length, parts, part_count] = words(&header);
        let length = length as u32 as i32;
        if name == 0 || length == 0 {
            continue;
        }
        destinations.push(Destination {
            address: read_own_address(memory, name, length)?,
            descriptor,
            connects: opens_fast(flags),
            payload: if part_count == 0 {
                Vec::new()
            } else {
                first_part(memory, parts)
            },
        });
    }
    let call = if destinations.is_empty() {
        Call::Connected
    } else {
        Call::To(destinations)
    };
    Ok(with_flags(call, flags))
}

fn words(bytes: &[u8; 32]) -> [u64; 4] {
    let mut words = [0; 4];
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
        *word = u64::from_ne_bytes(*bytes);
    }
    words
}

fn first_part(memory: &Memory, at: u64) -> Vec<u8> {
    let mut part = [0; 32];
    let Some(vector) = part.get_mut(..16) else {
        return Vec::new();
    };
    if memory.read(at, vector).is_err() {
        return Vec::new();
    }
    let [base, length, ..] = words(&part);
    read_prefix(memory, base, length)
}

/// Reads at most [`MAX_QUERY_BYTES`] bytes. Unreadable memory gives an empty payload, since no decision depends on it.
fn read_prefix(memory: &Memory, at: u64, length: u64) -> Vec<u8> {
    let mut payload = vec![
        0;
        usize::try_from(length)
            .unwrap_or(usize::MAX)
            .min(MAX_QUERY_BYTES)
    ];
    if memory.read(at, &mut payload).is_err() {
        payload.clear();
    }
    payload
}

/// Reads an address of bind(2) or of a message. There AF_UNSPEC stands for AF_INET (inet_bind_sk in
/// net/ipv4/af_inet.c, udp_sendmsg in net/ipv4/udp.c); in connect(2) it dissolves an association.
fn read_own_address(memory: &Memory, at: u64, length: i32) -> Result<Address, Errno> {
    let bytes = read_bytes(memory, at, length)?;
    parse_own_address(&bytes).ok_or(Errno::EINVAL)
}

fn parse_own_address(bytes: &[u8]) -> Option<Address> {
    let address = parse_address(bytes)?;
    let stands_for_inet = address == Address::Unspecified;
    let inet = stands_for_inet.then(|| parse_inet(bytes)).flatten();
    Some(inet.unwrap_or(address))
}

fn read_address(memory: &Memory, at: u64, length: i32) -> Result<Address, Errno> {
    parse_address(&read_bytes(memory, at, length)?).ok_or(Errno::EINVAL)
}

/// Reads the bytes of an address. The kernel refuses lengths below 0 and above sockaddr_storage before it reads.
fn read_bytes(memory: &Memory, at: u64, length: i32) -> Result<Vec<u8>, Errno> {
    let length = usize::try_from(length)
        .ok()
        .filter(|length| *length <= MAX_ADDRESS_BYTES)
        .ok_or(Errno::EINVAL)?;
    let mut bytes = vec![0; length];
    memory.read(at, &mut bytes)?;
    Ok(bytes)
}

/// Parses a `struct sockaddr` of any family. Returns `None` if the address is too short for its family.
pub(super) fn parse_address(bytes: &[u8]) -> Option<Address> {
    let family = i32::from(u16::from_ne_bytes(*bytes.first_chunk()?));
    Some(match family {
        libc::AF_UNSPEC => Address::Unspecified,
        libc::AF_INET => parse_inet(bytes)?,
        libc::AF_INET6 => {
            let ip = Ipv6Addr::from(*bytes.get(8..)?.first_chunk::<16>()?);
            Address::Inet((IpAddr::V6(ip), port(bytes)?).into())
        }
        libc::AF_UNIX => match bytes.get(2..)? {
            [] => Address::Unnamed,
            [0, name @ ..] => Address::Abstract(name.to_vec()),
            path => Address::Path(
                path.split(|byte| *byte == 0)
                    .next()
                    .unwrap_or_default()
                    .to_vec(),
            ),
        },
        libc::AF_NETLINK => Address::Netlink {
            process: u32::from_ne_bytes(*bytes.get(4..)?.first_chunk()?),
        },
        family => Address::Other { family },
    })
}

/// Parses a struct sockaddr_in of any family.
fn parse_inet(bytes: &[u8]) -> Option<Address> {
    let ip = Ipv4Addr::from(*bytes.get(4..)?.first_chunk::<4>()?);
    Some(Address::Inet((IpAddr::V4(ip), port(bytes)?).into()))
}

fn port(bytes: &[u8]) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(2..)?.first_chunk()?))
}

/// Reads all arguments of execve(2), for the search for the credential. The kernel's limits bound them.
fn execute(memory: &Memory, at: i32, path: u64, arguments: u64) -> Result<Call, Errno> {
    let string = |at, max_bytes| read_string(|at, piece| memory.read(at, piece), at, max_bytes);
    let program = string(path, MAX_PATH_BYTES)?;
    let mut words = Vec::new();
    let mut bytes = 0;
    // A null vector is an empty one (execve(2), on Linux).
    while arguments != 0 && bytes < MAX_EXECVE_BYTES {
        let mut pointer = [0; 8];
        memory.read(arguments.wrapping_add(8 * words.len() as u64), &mut pointer)?;
        match u64::from_ne_bytes(pointer) {
            0 => break,
            word => words.push(string(word, MAX_EXECVE_STRING_BYTES)?),
        }
        bytes += words.last().map_or(0, Vec::len) + 8;
    }
    Ok(Call::Execute {
        at,
        program,
        arguments: words,
    })
}

/// Reads a string up to its first NUL, at most `max_bytes` bytes. No read crosses a page, since the next page may not
/// be mapped.
pub(super) fn read_string(
    read: impl Fn(u64, &mut [u8]) -> Result<(), Errno>,
    at: u64,
    max_bytes: usize,
) -> Result<Vec<u8>, Errno> {
    const PIECE: u64 = 256;
    let mut string = Vec::new();
    while string.len() < max_bytes {
        let from = at.wrapping_add(string.len() as u64);
        let mut piece = vec![0; (PIECE - from % PIECE) as usize];
        read(from, &mut piece)?;
        let end = piece.iter().position(|byte| *byte == 0);
        string.extend_from_slice(piece.get(..end.unwrap_or(piece.len())).unwrap_or_default());
        if end.is_some() {
            break;
        }
    }
    string.truncate(max_bytes);
    Ok(string)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inet(family: i32, port: u16, rest: &[u8]) -> Vec<u8> {
        [
            &(family as u16).to_ne_bytes()[..],
            &port.to_be_bytes(),
            rest,
        ]
        .concat()
    }

    #[test]
    fn internet_addresses_are_read_with_their_port() {
        let bytes = inet(libc::AF_INET, 443, &[192, 0, 2, 1]);
        assert_eq!(
            parse_address(&bytes),
            Some(Address::Inet("192.0.2.1:443".parse().unwrap()))
        );
        let mut rest = vec![0; 4];
        rest.extend("2001:db8::1".parse::<Ipv6Addr>().unwrap().octets());
        let bytes = inet(libc::AF_INET6, 53, &rest);
        assert_eq!(
            parse_address(&bytes),
            Some(Address::Inet("[2001:db8::1]:53".parse().unwrap()))
        );
    }

    #[test]
    fn without_a_family_a_message_goes_where_an_ipv4_address_says() {
        let bytes = inet(libc::AF_UNSPEC, 7, &[192, 0, 2, 1]);
        let there = Address::Inet("192.0.2.1:7".parse().unwrap());
        assert_eq!(parse_own_address(&bytes), Some(there));
        assert_eq!(parse_address(&bytes), Some(Address::Unspecified));
        assert_eq!(parse_own_address(&[0, 0]), Some(Address::Unspecified));
    }

    #[test]
    fn a_path_ends_at_its_first_nul_and_what_follows_is_not_kept() {
        let mut bytes = (libc::AF_UNIX as u16).to_ne_bytes().to_vec();
        assert_eq!(parse_address(&bytes), Some(Address::Unnamed));
        bytes.extend(b"/run/x\0secret");
        assert_eq!(
            parse_address(&bytes),
            Some(Address::Path(b"/run/x".to_vec()))
        );
        let mut bytes = (libc::AF_UNIX as u16).to_ne_bytes().to_vec();
        bytes.extend(b"\0name\0more");
        assert_eq!(
            parse_address(&bytes),
            Some(Address::Abstract(b"name\0more".to_vec()))
        );
    }

    #[test]
    fn what_is_too_short_for_its_family_is_no_address() {
        for bytes in [
            &[][..],
            &[2],
            &inet(libc::AF_INET, 1, &[127, 0, 0]),
            &inet(libc::AF_INET6, 1, &[0; 19]),
        ] {
            assert_eq!(parse_address(bytes), None, "{bytes:?}");
        }
    }

    #[test]
    fn a_string_is_read_to_its_nul_and_no_further_than_the_limit() {
        let memory = Memory::of(std::process::id() as i32);
        let read_string =
            |at, longest| read_string(|at, piece| memory.read(at, piece), at, longest);
        let text =
            b"a string of more than sixty-four bytes, so that it is read in several pieces\0tail";
        let at = text.as_ptr() as u64;
        assert_eq!(read_string(at, 4096).unwrap(), &text[..text.len() - 5]);
        assert_eq!(read_string(at, 8).unwrap(), b"a string");
        assert_eq!(read_string(8, 8), Err(Errno::EFAULT));
    }
}
