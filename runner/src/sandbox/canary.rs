//! Canaries: attempts that must fail, and two that must succeed, made inside by our own code.
//!
//! They run in a child of the client's process, after its last restriction and before its exec, so that
//! domain, filter and credentials are the client's own. Each names the errno that only the layer it stands
//! for would give. The runner makes some of them outside as well: what is refused there too supports no claim.

use std::ffi::OsStr;
use std::fs;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::ptrace;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn, SockaddrIn6, UnixAddr,
    connect, sendto, setsockopt, socket, sockopt,
};
use nix::sys::stat::Mode;
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use super::plan::{HOME, ProbePlan, TMP};
use crate::evidence::{Canary, CanaryMode, CanaryStatus};
use crate::sys::probe::{io_uring_setup, push_input};

/// Abstract name on which init listens while the canaries run: a live target inside the same namespaces.
pub(super) const INSIDE_SOCKET: &str = "runner-canary-inside";

/// Addresses for documentation (RFC 5737, RFC 3849): nobody has them.
const NOWHERE_4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const NOWHERE_6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
const MULTICAST: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 251);
const PORT: u16 = 443;

/// One try: what the kernel said.
type Attempt = fn(&ProbePlan) -> Result<(), Errno>;

/// One row of the table.
pub(super) struct Probe {
    pub(super) name: &'static str,
    /// `None`: it must succeed.
    expected: Option<Errno>,
    inside: Attempt,
    /// The same attempt made by the runner outside, where that is harmless.
    outside: Option<Attempt>,
}

/// What one canary observed inside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Observation {
    pub(crate) name: String,
    /// 0 where the call succeeded.
    pub(crate) errno: i32,
}

/// The canary that reaches the stub; the others are in [`PROBES`].
pub(super) const STUB: &str = "stub";
/// Depends on Landlock's scopes, which came with ABI 6.
const ABSTRACT_INSIDE: &str = "abstract-socket-inside";

const PROBES: &[Probe] = &[
    Probe {
        name: "home",
        expected: None,
        inside: write_home,
        outside: None,
    },
    // The network namespace: there is no way to anywhere but loopback.
    Probe {
        name: "tcp4",
        expected: Some(Errno::ENETUNREACH),
        inside: tcp4,
        outside: None,
    },
    Probe {
        name: "tcp6",
        expected: Some(Errno::ENETUNREACH),
        inside: tcp6,
        outside: Some(any_ipv6),
    },
    Probe {
        name: "udp4",
        expected: Some(Errno::ENETUNREACH),
        inside: udp4,
        outside: None,
    },
    Probe {
        name: "udp6",
        expected: Some(Errno::ENETUNREACH),
        inside: udp6,
        outside: Some(any_ipv6),
    },
    Probe {
        name: "broadcast",
        expected: Some(Errno::ENETUNREACH),
        inside: broadcast,
        outside: None,
    },
    Probe {
        name: "multicast",
        expected: Some(Errno::ENETUNREACH),
        inside: multicast,
        outside: None,
    },
    Probe {
        name: "abstract-socket-outside",
        expected: Some(Errno::ECONNREFUSED),
        inside: abstract_outside,
        outside: Some(abstract_outside),
    },
    // The filter.
    Probe {
        name: "raw-socket",
        expected: Some(Errno::EPERM),
        inside: raw,
        outside: Some(raw),
    },
    Probe {
        name: "packet-socket",
        expected: Some(Errno::EAFNOSUPPORT),
        inside: packet,
        outside: Some(packet_is_possible),
    },
    Probe {
        name: "vsock",
        expected: Some(Errno::EAFNOSUPPORT),
        inside: vsock,
        outside: Some(vsock),
    },
    Probe {
        name: "io-uring",
        expected: Some(Errno::ENOSYS),
        inside: io_uring,
        outside: Some(io_uring),
    },
    Probe {
        name: "ptrace",
        expected: Some(Errno::EPERM),
        inside: trace_init,
        outside: None,
    },
    Probe {
        name: "unshare",
        expected: Some(Errno::EPERM),
        inside: new_namespace,
        outside: None,
    },
    Probe {
        name: "setns",
        expected: Some(Errno::EPERM),
        inside: join_namespace,
        outside: None,
    },
    Probe {
        name: "mount",
        expected: Some(Errno::EPERM),
        inside: mount_something,
        outside: None,
    },
    Probe {
        name: "terminal-input",
        expected: Some(Errno::EPERM),
        inside: terminal_input,
        outside: None,
    },
    // The new root and its mounts.
    Probe {
        name: "host-directory",
        expected: Some(Errno::ENOENT),
        inside: outside_directory,
        outside: Some(outside_directory),
    },
    Probe {
        name: "write-root",
        expected: Some(Errno::EROFS),
        inside: write_root,
        outside: None,
    },
    Probe {
        name: "pathname-socket",
        expected: Some(Errno::ENOENT),
        inside: path_socket,
        outside: Some(path_socket),
    },
    // Landlock.
    Probe {
        name: "landlock-write",
        expected: Some(Errno::EACCES),
        inside: write_proc,
        outside: Some(write_proc),
    },
    Probe {
        name: ABSTRACT_INSIDE,
        expected: Some(Errno::EPERM),
        inside: abstract_inside,
        outside: None,
    },
    // Init is out of reach.
    Probe {
        name: "init-memory",
        expected: Some(Errno::EACCES),
        inside: init_memory,
        outside: None,
    },
];

/// Runs every probe of the table inside.
pub(super) fn observe(plan: &ProbePlan) -> Vec<Observation> {
    PROBES
        .iter()
        .map(|probe| observation(probe.name, (probe.inside)(plan)))
        .collect()
}

pub(super) fn observation(name: &str, result: Result<(), Errno>) -> Observation {
    Observation {
        name: name.to_owned(),
        errno: result.map_or_else(|errno| errno as i32, |()| 0),
    }
}

/// Names of the canaries that the runner's own attempt outside shows to be refused there as well.
pub(crate) fn refused_outside(plan: &ProbePlan) -> Vec<&'static str> {
    PROBES
        .iter()
        .filter(|probe| probe.outside.is_some_and(|attempt| attempt(plan).is_err()))
        .map(|probe| probe.name)
        .collect()
}

/// Puts what was observed beside what was expected. A canary that is missing was not held.
pub(super) fn judge(
    observed: &[Observation],
    refused_outside: &[&str],
    scopes: bool,
) -> Vec<Canary> {
    let stub = std::iter::once((STUB, None));
    stub.chain(PROBES.iter().map(|probe| (probe.name, probe.expected)))
        .map(|(name, expected)| {
            let errno = observed
                .iter()
                .find(|one| one.name == name)
                .map(|one| one.errno);
            let as_expected = errno == Some(expected.map_or(0, |errno| errno as i32));
            let without_claim =
                refused_outside.contains(&name) || (name == ABSTRACT_INSIDE && !scopes);
            let status = match (without_claim, as_expected) {
                (true, _) if errno.is_some() && (errno != Some(0) || name == ABSTRACT_INSIDE) => {
                    CanaryStatus::NotApplicable
                }
                (_, true) => CanaryStatus::Held,
                _ => CanaryStatus::NotHeld,
            };
            Canary {
                name: name.to_owned(),
                mode: CanaryMode::Continued,
                expected: text(expected),
                observed: errno.map_or("missing".to_owned(), |errno| {
                    text((errno != 0).then(|| Errno::from_raw(errno)))
                }),
                status,
            }
        })
        .collect()
}

fn text(errno: Option<Errno>) -> String {
    errno.map_or("ok".to_owned(), |errno| format!("{errno:?}"))
}

fn inet(kind: SockType) -> Result<OwnedFd, Errno> {
    socket(AddressFamily::Inet, kind, SockFlag::SOCK_CLOEXEC, None)
}

fn inet6(kind: SockType) -> Result<OwnedFd, Errno> {
    socket(AddressFamily::Inet6, kind, SockFlag::SOCK_CLOEXEC, None)
}

fn tcp4(_: &ProbePlan) -> Result<(), Errno> {
    connect(
        inet(SockType::Stream)?.as_raw_fd(),
        &SockaddrIn::from(SocketAddrV4::new(NOWHERE_4, PORT)),
    )
}

fn tcp6(_: &ProbePlan) -> Result<(), Errno> {
    let address = SockaddrIn6::from(SocketAddrV6::new(NOWHERE_6, PORT, 0, 0));
    connect(inet6(SockType::Stream)?.as_raw_fd(), &address)
}

fn send_datagram(address: Ipv4Addr, socket: &OwnedFd) -> Result<(), Errno> {
    let address = SockaddrIn::from(SocketAddrV4::new(address, PORT));
    sendto(socket.as_raw_fd(), b"canary", &address, MsgFlags::empty()).map(drop)
}

fn udp4(_: &ProbePlan) -> Result<(), Errno> {
    send_datagram(NOWHERE_4, &inet(SockType::Datagram)?)
}

fn udp6(_: &ProbePlan) -> Result<(), Errno> {
    let address = SockaddrIn6::from(SocketAddrV6::new(NOWHERE_6, PORT, 0, 0));
    sendto(
        inet6(SockType::Datagram)?.as_raw_fd(),
        b"canary",
        &address,
        MsgFlags::empty(),
    )
    .map(drop)
}

fn broadcast(_: &ProbePlan) -> Result<(), Errno> {
    let socket = inet(SockType::Datagram)?;
    setsockopt(&socket, sockopt::Broadcast, &true)?;
    send_datagram(Ipv4Addr::BROADCAST, &socket)
}

fn multicast(_: &ProbePlan) -> Result<(), Errno> {
    send_datagram(MULTICAST, &inet(SockType::Datagram)?)
}

fn any_ipv6(_: &ProbePlan) -> Result<(), Errno> {
    inet6(SockType::Datagram).map(drop)
}

fn connect_abstract(name: &str) -> Result<(), Errno> {
    let socket = socket(
        AddressFamily::Unix,
        SockType::Stream,
        SockFlag::SOCK_CLOEXEC,
        None,
    )?;
    connect(
        socket.as_raw_fd(),
        &UnixAddr::new_abstract(name.as_bytes())?,
    )
}

fn abstract_outside(plan: &ProbePlan) -> Result<(), Errno> {
    connect_abstract(&plan.outside_socket)
}

fn abstract_inside(_: &ProbePlan) -> Result<(), Errno> {
    connect_abstract(INSIDE_SOCKET)
}

/// Whether the socket of a well-known daemon is there; connecting outside would talk to it.
fn path_socket(_: &ProbePlan) -> Result<(), Errno> {
    let candidates = [
        "/run/docker.sock",
        "/var/run/docker.sock",
        "/run/dbus/system_bus_socket",
    ];
    let found = candidates
        .iter()
        .any(|path| fs::symlink_metadata(path).is_ok());
    if found { Ok(()) } else { Err(Errno::ENOENT) }
}

fn raw(_: &ProbePlan) -> Result<(), Errno> {
    let protocol = SockProtocol::Icmp;
    socket(
        AddressFamily::Inet,
        SockType::Raw,
        SockFlag::SOCK_CLOEXEC,
        protocol,
    )
    .map(drop)
}

fn packet(_: &ProbePlan) -> Result<(), Errno> {
    socket(
        AddressFamily::Packet,
        SockType::Raw,
        SockFlag::SOCK_CLOEXEC,
        None,
    )
    .map(drop)
}

/// What packet(7) asks for. The socket itself is not made outside: closing it waits for the whole network
/// stack, some 15 ms.
fn packet_is_possible(_: &ProbePlan) -> Result<(), Errno> {
    let capable = caps::has_cap(None, caps::CapSet::Effective, caps::Capability::CAP_NET_RAW);
    let known = Path::new("/proc/net/packet").exists();
    if capable.unwrap_or(false) && known {
        Ok(())
    } else {
        Err(Errno::EPERM)
    }
}

fn vsock(_: &ProbePlan) -> Result<(), Errno> {
    socket(
        AddressFamily::Vsock,
        SockType::Stream,
        SockFlag::SOCK_CLOEXEC,
        None,
    )
    .map(drop)
}

fn io_uring(_: &ProbePlan) -> Result<(), Errno> {
    io_uring_setup().map(drop)
}

/// PTRACE_SEIZE does not stop its target, and ends with this process.
fn trace_init(_: &ProbePlan) -> Result<(), Errno> {
    ptrace::seize(Pid::from_raw(1), ptrace::Options::empty())
}

fn new_namespace(_: &ProbePlan) -> Result<(), Errno> {
    unshare(CloneFlags::CLONE_NEWUSER)
}

fn join_namespace(_: &ProbePlan) -> Result<(), Errno> {
    let namespace = open_for("/proc/self/ns/uts", OFlag::O_RDONLY)?;
    setns(namespace, CloneFlags::CLONE_NEWUTS)
}

fn mount_something(_: &ProbePlan) -> Result<(), Errno> {
    mount(
        Some("tmpfs"),
        TMP,
        Some("tmpfs"),
        MsFlags::empty(),
        None::<&str>,
    )
}

/// Standard input is /dev/null: without the filter the kernel would say ENOTTY.
fn terminal_input(_: &ProbePlan) -> Result<(), Errno> {
    push_input(std::io::stdin(), 0)
}

fn outside_directory(plan: &ProbePlan) -> Result<(), Errno> {
    open_for(
        &plan.outside_directory,
        OFlag::O_DIRECTORY | OFlag::O_RDONLY,
    )
    .map(drop)
}

fn write_root(_: &ProbePlan) -> Result<(), Errno> {
    open_for("/canary", OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_WRONLY).map(drop)
}

/// A file of our own that may be written by its mode and its mount: only Landlock refuses.
fn write_proc(_: &ProbePlan) -> Result<(), Errno> {
    open_for("/proc/self/comm", OFlag::O_WRONLY).map(drop)
}

fn init_memory(_: &ProbePlan) -> Result<(), Errno> {
    open_for("/proc/1/mem", OFlag::O_RDONLY).map(drop)
}

fn write_home(_: &ProbePlan) -> Result<(), Errno> {
    let path = Path::new(HOME).join(".canary");
    let written = open_for(&path, OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_WRONLY)
        .and_then(|file| nix::unistd::write(file, b"canary"));
    nix::unistd::unlink(&path)?;
    written.map(drop)
}

fn open_for(path: impl AsRef<OsStr>, flags: OFlag) -> Result<OwnedFd, Errno> {
    open(
        path.as_ref(),
        flags | OFlag::O_CLOEXEC,
        Mode::S_IRUSR | Mode::S_IWUSR,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_as_expected() -> Vec<Observation> {
        let mut observed = vec![observation(STUB, Ok(()))];
        observed.extend(
            PROBES
                .iter()
                .map(|probe| observation(probe.name, probe.expected.map_or(Ok(()), Err))),
        );
        observed
    }

    fn status(canaries: &[Canary], name: &str) -> CanaryStatus {
        canaries
            .iter()
            .find(|canary| canary.name == name)
            .unwrap()
            .status
    }

    #[test]
    fn every_canary_is_held_when_each_errno_is_the_expected_one() {
        let canaries = judge(&all_as_expected(), &[], true);
        assert!(
            canaries
                .iter()
                .all(|canary| canary.status == CanaryStatus::Held),
            "{canaries:?}"
        );
    }

    #[test]
    fn another_errno_is_not_good_enough() {
        for index in 0..=PROBES.len() {
            let mut observed = all_as_expected();
            observed[index].errno = Errno::EXDEV as i32;
            let canaries = judge(&observed, &[], true);
            assert_eq!(
                status(&canaries, &observed[index].name),
                CanaryStatus::NotHeld
            );
            assert_eq!(
                canaries
                    .iter()
                    .filter(|one| one.status != CanaryStatus::Held)
                    .count(),
                1
            );
        }
    }

    #[test]
    fn a_missing_canary_is_not_held() {
        let mut observed = all_as_expected();
        observed.retain(|one| one.name != "tcp4");
        assert_eq!(
            status(&judge(&observed, &[], true), "tcp4"),
            CanaryStatus::NotHeld
        );
    }

    #[test]
    fn what_is_refused_outside_as_well_supports_no_claim_but_may_not_succeed_inside() {
        let mut observed = all_as_expected();
        assert_eq!(
            status(&judge(&observed, &["vsock"], true), "vsock"),
            CanaryStatus::NotApplicable
        );
        observed
            .iter_mut()
            .find(|one| one.name == "vsock")
            .unwrap()
            .errno = 0;
        assert_eq!(
            status(&judge(&observed, &["vsock"], true), "vsock"),
            CanaryStatus::NotHeld
        );
    }

    #[test]
    fn without_scopes_the_inner_abstract_socket_supports_no_claim() {
        let mut observed = all_as_expected();
        observed
            .iter_mut()
            .find(|one| one.name == ABSTRACT_INSIDE)
            .unwrap()
            .errno = 0;
        assert_eq!(
            status(&judge(&observed, &[], false), ABSTRACT_INSIDE),
            CanaryStatus::NotApplicable
        );
        assert_eq!(
            status(&judge(&observed, &[], true), ABSTRACT_INSIDE),
            CanaryStatus::NotHeld
        );
    }
}
