//! What runner, stage and init say to each other.
//!
//! The control socket (runner and stage) is a stream: one JSON object a line; once the stage serves, the
//! lines are the stub's journal. The channel (runner and init) and the launch socket (init and the client's
//! process before its exec) keep message borders: one JSON object a message; so does the socket over which
//! the resolver tells the runner what it was asked.

use std::io::{IoSlice, Read, Write};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, RawFd};

use nix::errno::Errno;
use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sys::fds;

use super::error::{SetupError, errno_of};
use super::netns_check::Network;
use super::self_check::SelfCheck;
use crate::dns::Asked;

/// Longest message on the channel and the launch socket.
const LONGEST: usize = 128 * 1024;
/// Longest line that the stage takes from the runner before it serves.
const LONGEST_LINE: usize = 256;

/// From the stage, before it serves.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "stage", rename_all = "snake_case")]
pub enum FromStage {
    /// The user namespace exists; the runner is to write its maps.
    Unmapped,
    /// The network namespace is sealed, the stub listens and init was started. The journal follows.
    Serving {
        port: u16,
        /// Of the second host, where the scenario leads to one.
        elsewhere: Option<SocketAddr>,
        network: Network,
    },
    Failed {
        error: SetupError,
    },
}

/// To the stage, before it serves.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "stage", rename_all = "snake_case")]
pub enum ToStage {
    /// The maps are written.
    Mapped,
}

/// From init.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "init", rename_all = "snake_case")]
pub enum FromInit {
    /// The root is built. Descriptors come along: its trees, the fanotify group if `watched`, and the files of the
    /// traffic counters.
    Root {
        watched: bool,
    },
    /// The client's process has its filter; the listener's descriptor comes along.
    Listening,
    /// What the client's process read back and tried, before its exec.
    Probed {
        report: Box<SelfCheck>,
    },
    /// The exec succeeded.
    Started,
    /// The exec failed.
    NotStarted {
        errno: i32,
    },
    /// The client has ended and left processes, which are about to be ended; nothing may be started any more. Only
    /// without a pid namespace, which would end them all at once.
    Ending,
    /// The client has ended and so has everything that it started.
    Ended {
        end: ClientEnd,
    },
    Failed {
        error: SetupError,
    },
}

/// To init.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "init", rename_all = "snake_case")]
pub enum ToInit {
    /// Every layer holds: the client may be executed.
    Go,
    /// End the client now.
    End,
}

/// How the client ended, and what it left running.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientEnd {
    pub status: ExitStatus,
    /// Processes that were still there 200 ms later, at most [`MOST_SURVIVORS`] of them.
    pub survivors: Vec<(i32, String)>,
}

/// Survivors that are named; the rest is ended all the same.
pub(crate) const MOST_SURVIVORS: usize = 64;

/// wait(2) status of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ExitStatus {
    Code(i32),
    Signal(i32),
}

/// From the resolver in the stage, on a socket of its own with message borders.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "resolver", rename_all = "snake_case")]
pub enum FromResolver {
    /// Asked this often since it was last told.
    Asked { asked: Asked, count: u64 },
    /// The last message: nothing is missing but `unheard` questions. `datagrams` were sent to the resolver or by it.
    Ended { unheard: u64, datagrams: u64 },
}

/// Between init and the client's process before its exec.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "launch", rename_all = "snake_case")]
pub(crate) enum Launch {
    /// To the client: init is out of reach now, the probes mean something.
    Settled,
    /// From the client: its filter is installed, and the listener has this number in the table that it shares
    /// with init.
    Listening { descriptor: i32 },
    /// To the client: the listener has gone to the runner.
    Detached,
    /// To the client: go on to the exec.
    Go,
    /// From the client.
    Probed { report: Box<SelfCheck> },
    /// From the client: the exec failed. Where it succeeds, the socket closes.
    NotStarted { errno: i32 },
    /// From the client.
    Failed { error: SetupError },
}

/// Sends one message and descriptors along with it.
///
/// # Errors
/// The errno of sendmsg(2).
pub fn send(
    socket: impl AsFd,
    message: &impl Serialize,
    descriptors: &[RawFd],
) -> Result<(), Errno> {
    let bytes = serde_json::to_vec(message).map_err(|_| Errno::EINVAL)?;
    let number = socket.as_fd().as_raw_fd();
    if descriptors.is_empty() {
        // send(2), which the client's filter does not notify: it speaks before anybody supervises it.
        return nix::sys::socket::send(number, &bytes, MsgFlags::MSG_NOSIGNAL).map(drop);
    }
    let rights = [ControlMessage::ScmRights(descriptors)];
    let slices = [IoSlice::new(&bytes)];
    sendmsg::<()>(number, &slices, &rights, MsgFlags::MSG_NOSIGNAL, None).map(drop)
}

/// Receives one message and the descriptors that came along; `None` where the peer has closed.
///
/// # Errors
/// The errno of recvmsg(2); `EBADMSG` for what is no message of this type.
pub fn receive<T: DeserializeOwned>(
    socket: impl AsFd,
) -> Result<Option<(T, Vec<std::os::fd::OwnedFd>)>, Errno> {
    // Not zeroed by hand and touched only as far as the message goes: fresh pages are what starting costs.
    let mut buffer = vec![0; LONGEST];
    let (length, descriptors) = fds::receive(socket, &mut buffer)?;
    if length == 0 {
        return Ok(None);
    }
    let bytes = buffer.get(..length).unwrap_or_default();
    let message = serde_json::from_slice(bytes).map_err(|_| Errno::EBADMSG)?;
    Ok(Some((message, descriptors)))
}

/// Writes one line to a stream.
///
/// # Errors
/// The errno of write(2).
pub fn write_line(mut stream: impl Write, message: &impl Serialize) -> Result<(), Errno> {
    let mut line = serde_json::to_vec(message).map_err(|_| Errno::EINVAL)?;
    line.push(b'\n');
    stream.write_all(&line).map_err(|error| errno_of(&error))
}

/// Reads one line from a stream and not a byte more, since another reader goes on behind it.
///
/// # Errors
/// The errno of read(2); `EPIPE` where the stream ends, `EBADMSG` for what is no message of this type.
pub(crate) fn read_line<T: DeserializeOwned>(mut stream: impl Read) -> Result<T, Errno> {
    let mut line = Vec::new();
    let mut byte = [0; 1];
    while line.len() < LONGEST_LINE {
        match stream.read(&mut byte).map_err(|error| errno_of(&error))? {
            0 => return Err(Errno::EPIPE),
            _ if byte == *b"\n" => {
                return serde_json::from_slice(&line).map_err(|_| Errno::EBADMSG);
            }
            _ => line.extend(byte),
        }
    }
    Err(Errno::EBADMSG)
}
