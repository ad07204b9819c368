//! A notified call, as far as it is evidence: its registers, and what its pointers lead to at this moment.
//!
//! Memory may change before the kernel reads it again. So what is read here is a record, and never the ground on
//! which something is permitted that the namespace would not refuse.

use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use nix::errno::Errno;
use sys::notify::{Notification, open_memory, read_memory};

use super::kernel_memory::SystemV;
use super::sockets::Socket;
use crate::filter::SystemCall::{self, *};
use crate::filter::{ForeignCall, SocketOption};

/// sizeof(struct sockaddr_storage).
const LONGEST_ADDRESS: usize = 128;
/// MAX_ARG_STRLEN of linux/binfmts.h.
const LONGEST_ARGUMENT: usize = 128 * 1024;
/// Three quarters of _STK_LIM: the kernel takes no more in all (execve(2)).
const MOST_ARGUMENT_BYTES: usize = 6 * 1024 * 1024;
/// PATH_MAX of linux/limits.h.
pub(super) const LONGEST_PATH: usize = 4096;
/// Messages of one sendmmsg(2) that are looked at, UIO_MAXIOV of linux/uio.h: the kernel sends no more.
const MOST_MESSAGES: u64 = 1024;
/// Longest datagram that is looked into for a name.
const LONGEST_QUERY: usize = 512;

/// What a call is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Call {
    Socket(Socket),
    /// socketpair(2).
    Pair(Socket),
    /// connect(2), or a message to an address.
    To(Vec<Destination>),
    /// A message with MSG_FASTOPEN, to no address or several.
    FastOpen(Vec<Destination>),
    /// A message with MSG_OOB, to no address or several.
    Urgent(Vec<Destination>),
    /// A message without an address: it goes where its socket is connected to.
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
    /// An option that is not in the list of allowed ones.
    SetOption(SocketOption),
    Execute {
        /// The descriptor below which the path begins, or AT_FDCWD.
        at: i32,
        program: Vec<u8>,
        arguments: Vec<Vec<u8>>,
    },
    /// PR_SET_DUMPABLE with this value.
    Dumpable {
        on: bool,
    },
    /// A call of a 32-bit program or of x32.
    Foreign(ForeignCall),
    /// What its pointers lead to cannot be read.
    Unreadable,
}

/// One destination of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Destination {
    pub(super) address: Address,
    pub(super) descriptor: i32,
    /// The call opens the connection by itself: connect(2), or a message with MSG_FASTOPEN.
    pub(super) connects: bool,
    /// The first bytes of what is sent, where a name may be in them.
    pub(super) payload: Vec<u8>,
}

/// An address in a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Address {
    Inet(SocketAddr),
    /// A path; it ends at its first NUL, what follows is the caller's stack.
    Path(Vec<u8>),
    Abstract(Vec<u8>),
    /// A unix address without a name.
    Unnamed,
    /// Process id 0 is the kernel.
    Netlink {
        process: u32,
    },
    /// AF_UNSPEC: dissolves an association.
    Unspecified,
    Other {
        family: i32,
    },
}

/// The call by its name; `None` for one of another interface, whose numbers mean something else.
pub(super) fn native(notification: &Notification) -> Option<SystemCall> {
    if foreign(notification).is_some() {
        return None;
    }
    SystemCall::numbered(notification.call)
}

fn foreign(notification: &Notification) -> Option<ForeignCall> {
    ForeignCall::numbered(notification.architecture, notification.call as u32)
}

/// Whether a call makes a process or a thread.
pub(super) fn makes_process(call: SystemCall) -> bool {
    matches!(call, SYS_clone | SYS_fork | SYS_vfork)
}

/// Checks for a call that makes a FIFO: it is a lookup, and judged like a pipe besides.
#[expect(clippy::wildcard_enum_match_arm, reason = "any other call")]
pub(super) fn makes_fifo(call: SystemCall, arguments: &[u64; 6]) -> bool {
    let mode = match call {
        SYS_mknod => arguments[1],
        SYS_mknodat => arguments[2],
        _ => return false,
    };
    mode as u32 & libc::S_IFMT == libc::S_IFIFO
}

/// Reads what `notification` is about.
pub(super) fn read(notification: &Notification) -> Call {
    read_all(notification).unwrap_or(Call::Unreadable)
}

#[expect(clippy::wildcard_enum_match_arm, reason = "any other call")]
fn read_all(notification: &Notification) -> Result<Call, Errno> {
    let [first, second, third, fourth, fifth, sixth] = notification.arguments;
    let memory = || open_memory(notification.thread);
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
            address: read_address(&memory()?, second, third as i32)?,
            descriptor,
            connects: true,
            payload: Vec::new(),
        }]),
        // Without a length there is no address either.
        SYS_sendto if fifth == 0 || sixth as i32 == 0 => with_flags(Call::Connected, fourth),
        SYS_sendto => {
            let memory = memory()?;
            let destination = Destination {
                address: read_own_address(&memory, fifth, sixth as i32)?,
                descriptor,
                connects: opens_fast(fourth),
                payload: read_prefix(&memory, second, third),
            };
            with_flags(Call::To(vec![destination]), fourth)
        }
        SYS_sendmsg => messages(&memory()?, descriptor, second, 1, third)?,
        SYS_sendmmsg => messages(
            &memory()?,
            descriptor,
            second,
            u64::from(third as u32),
            fourth,
        )?,
        SYS_bind => Call::Bind(read_own_address(&memory()?, second, third as i32)?),
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
        SYS_execve => execute(&memory()?, libc::AT_FDCWD, first, second)?,
        SYS_execveat => execute(&memory()?, descriptor, second, third)?,
        SYS_prctl => Call::Dumpable { on: second != 0 },
        // The table notifies nothing else; what it would is refused as unreadable.
        _ => Call::Unreadable,
    })
}

fn opens_fast(flags: u64) -> bool {
    flags as i32 & libc::MSG_FASTOPEN != 0
}

/// A message by its flags, a register.
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

/// One struct msghdr, or `count` structs mmsghdr, at `at`.
fn messages(
    memory: &File,
    descriptor: i32,
    at: u64,
    count: u64,
    flags: u64,
) -> Result<Call, Errno> {
    const MESSAGE: u64 = size_of::<libc::mmsghdr>() as u64;
    let mut destinations = Vec::new();
    for index in 0..count.min(MOST_MESSAGES) {
        // struct msghdr: name, name length (u32), padding, iov, iov length, …; struct mmsghdr begins with it.
        let mut header = [0; 32];
        read_memory(memory, at.wrapping_add(index * MESSAGE), &mut header)?;
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

fn first_part(memory: &File, at: u64) -> Vec<u8> {
    let mut part = [0; 32];
    let Some(vector) = part.get_mut(..16) else {
        return Vec::new();
    };
    if read_memory(memory, at, vector).is_err() {
        return Vec::new();
    }
    let [base, length, ..] = words(&part);
    read_prefix(memory, base, length)
}

/// At most [`LONGEST_QUERY`] bytes; what cannot be read is no payload, and no ground for anything.
fn read_prefix(memory: &File, at: u64, length: u64) -> Vec<u8> {
    let mut payload = vec![
        0;
        usize::try_from(length)
            .unwrap_or(usize::MAX)
            .min(LONGEST_QUERY)
    ];
    if read_memory(memory, at, &mut payload).is_err() {
        payload.clear();
    }
    payload
}

/// An address of bind(2) or of a message, where AF_UNSPEC stands for AF_INET (inet_bind_sk in net/ipv4/af_inet.c,
/// udp_sendmsg in net/ipv4/udp.c). In connect(2) it dissolves an association instead.
fn read_own_address(memory: &File, at: u64, length: i32) -> Result<Address, Errno> {
    let bytes = read_bytes(memory, at, length)?;
    parse_own_address(&bytes).ok_or(Errno::EINVAL)
}

fn parse_own_address(bytes: &[u8]) -> Option<Address> {
    let address = parse_address(bytes)?;
    let stands_for_inet = address == Address::Unspecified;
    let inet = stands_for_inet.then(|| parse_inet(bytes)).flatten();
    Some(inet.unwrap_or(address))
}

fn read_address(memory: &File, at: u64, length: i32) -> Result<Address, Errno> {
    parse_address(&read_bytes(memory, at, length)?).ok_or(Errno::EINVAL)
}

/// The kernel refuses lengths below 0 and above sockaddr_storage by itself, before it reads.
fn read_bytes(memory: &File, at: u64, length: i32) -> Result<Vec<u8>, Errno> {
    let length = usize::try_from(length)
        .ok()
        .filter(|length| *length <= LONGEST_ADDRESS)
        .ok_or(Errno::EINVAL)?;
    let mut bytes = vec![0; length];
    read_memory(memory, at, &mut bytes)?;
    Ok(bytes)
}

/// A `struct sockaddr` of any family; `None` where it is too short for its own.
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

/// struct sockaddr_in, whatever its family says.
fn parse_inet(bytes: &[u8]) -> Option<Address> {
    let ip = Ipv4Addr::from(*bytes.get(4..)?.first_chunk::<4>()?);
    Some(Address::Inet((IpAddr::V4(ip), port(bytes)?).into()))
}

fn port(bytes: &[u8]) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(2..)?.first_chunk()?))
}

/// All arguments, for the search for the credential; more than execve(2) takes cannot be there.
fn execute(memory: &File, at: i32, path: u64, arguments: u64) -> Result<Call, Errno> {
    let string = |at, longest| read_string(|at, piece| read_memory(memory, at, piece), at, longest);
    let program = string(path, LONGEST_PATH)?;
    let mut words = Vec::new();
    let mut bytes = 0;
    // A null vector is an empty one (execve(2), on Linux).
    while arguments != 0 && bytes < MOST_ARGUMENT_BYTES {
        let mut pointer = [0; 8];
        read_memory(
            memory,
            arguments.wrapping_add(8 * words.len() as u64),
            &mut pointer,
        )?;
        match u64::from_ne_bytes(pointer) {
            0 => break,
            word => words.push(string(word, LONGEST_ARGUMENT)?),
        }
        bytes += words.last().map_or(0, Vec::len) + 8;
    }
    Ok(Call::Execute {
        at,
        program,
        arguments: words,
    })
}

/// Up to the first NUL, at most `longest` bytes. Reads piece by piece, since the next page may not be there.
pub(super) fn read_string(
    read: impl Fn(u64, &mut [u8]) -> Result<(), Errno>,
    at: u64,
    longest: usize,
) -> Result<Vec<u8>, Errno> {
    const PIECE: u64 = 256;
    let mut string = Vec::new();
    while string.len() < longest {
        let from = at.wrapping_add(string.len() as u64);
        let mut piece = vec![0; (PIECE - from % PIECE) as usize];
        read(from, &mut piece)?;
        let end = piece.iter().position(|byte| *byte == 0);
        string.extend_from_slice(piece.get(..end.unwrap_or(piece.len())).unwrap_or_default());
        if end.is_some() {
            break;
        }
    }
    string.truncate(longest);
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
        let memory = open_memory(std::process::id() as i32).unwrap();
        let read_string =
            |at, longest| read_string(|at, piece| read_memory(&memory, at, piece), at, longest);
        let text =
            b"a string of more than sixty-four bytes, so that it is read in several pieces\0tail";
        let at = text.as_ptr() as u64;
        assert_eq!(read_string(at, 4096).unwrap(), &text[..text.len() - 5]);
        assert_eq!(read_string(at, 8).unwrap(), b"a string");
        assert_eq!(read_string(8, 8), Err(Errno::EFAULT));
    }
}
