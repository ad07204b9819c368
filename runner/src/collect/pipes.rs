//! Reads from pipes and message sockets that may have ended.

use std::os::fd::OwnedFd;

use nix::errno::Errno;
use sandbox::lines::LineReader;
use sandbox::message::{self, FromInit};
use sys::net::readable_bytes;
use tokio::io::unix::AsyncFd;

use super::PIECE;
use super::passthrough::Passthrough;

/// Result of one read of a pipe.
pub(super) enum Read {
    Piece(Vec<u8>),
    /// Last bytes of the pipe after the reader of the runner's stream left. They are searched, but not passed
    /// on.
    Left(Vec<u8>),
    End,
}

/// Reads one piece from a pipe. The future is never ready for a pipe whose end was read. With a passthrough, the
/// read waits for space in its queue. After its reader has left, the pipe is closed, as for any reader that
/// leaves. The bytes that the program wrote before are returned to be searched. The caller counts the lines of a piece
/// for `lines`.
pub(super) async fn readable(
    pipe: Option<&AsyncFd<OwnedFd>>,
    passthrough: Option<&Passthrough>,
    lines: Option<&LineReader>,
) -> Read {
    let Some(pipe) = pipe else {
        return std::future::pending().await;
    };
    if let Some(passthrough) = passthrough
        && !passthrough.has_space().await
    {
        return Read::Left(read_pending(pipe.get_ref()));
    }
    loop {
        let Ok(mut guard) = pipe.readable().await else {
            return Read::End;
        };
        // Not before: the loop makes this future anew for each of its steps.
        let mut piece = vec![0; PIECE];
        if let Some(lines) = lines {
            lines.begin_read();
        }
        match nix::unistd::read(pipe.get_ref(), &mut piece) {
            Err(errno @ (Errno::EAGAIN | Errno::EINTR)) => {
                if let Some(lines) = lines {
                    lines.end_empty_read();
                }
                if errno == Errno::EAGAIN {
                    guard.clear_ready();
                }
            }
            Ok(length) if length > 0 => {
                piece.truncate(length);
                return Read::Piece(piece);
            }
            Ok(_) | Err(_) => return Read::End,
        }
    }
}

/// Reads the bytes that are in the pipe now, at most its capacity, so that a program that keeps writing cannot
/// delay the caller.
fn read_pending(pipe: &OwnedFd) -> Vec<u8> {
    let mut left = vec![0; readable_bytes(pipe).unwrap_or(0)];
    let mut length = 0;
    while let Some(room) = left.get_mut(length..).filter(|room| !room.is_empty()) {
        match nix::unistd::read(pipe, room) {
            Ok(more) if more > 0 => length += more,
            Err(Errno::EINTR) => {}
            Ok(_) | Err(_) => break,
        }
    }
    left.truncate(length);
    left
}

pub(super) type Received = Result<Option<(FromInit, Vec<OwnedFd>)>, Errno>;

/// Reads one message of init. The future is never ready after init has closed the channel.
pub(super) async fn receive(channel: Option<&AsyncFd<OwnedFd>>) -> Received {
    let Some(channel) = channel else {
        return std::future::pending().await;
    };
    loop {
        let Ok(mut guard) = channel.readable().await else {
            return Err(Errno::EIO);
        };
        match message::receive(channel.get_ref()) {
            Err(Errno::EAGAIN) => guard.clear_ready(),
            Err(Errno::EINTR) => {}
            received => return received,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use sys::fds::watched;

    use super::*;

    #[test]
    fn what_the_program_wrote_before_its_reader_left_is_read_and_the_pipe_then_ends() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let (reading, mut writing) = std::io::pipe().unwrap();
            let pipe = watched(OwnedFd::from(reading)).unwrap();
            let mut passthrough = Passthrough::to_stdout().unwrap();
            passthrough.close();
            let text = vec![b'x'; 3 * PIECE + 5];
            writing.write_all(&text).unwrap();
            let Read::Left(left) = readable(Some(&pipe), Some(&passthrough), None).await else {
                panic!("nothing is passed on any more")
            };
            assert_eq!(left, text);
            let Read::Left(left) = readable(Some(&pipe), Some(&passthrough), None).await else {
                panic!("nothing is passed on any more")
            };
            assert_eq!(left, b"");
        });
    }
}
