//! Reading from descriptors that may have ended: a pipe, and a socket that keeps message borders.

use std::os::fd::OwnedFd;

use nix::errno::Errno;
use tokio::io::unix::AsyncFd;

use super::PIECE;
use super::pass::Pass;
use crate::sandbox::message::{self, FromInit};

/// What one read of a pipe gave.
pub(super) enum Read {
    Piece(Vec<u8>),
    End,
}

/// One piece from a pipe; never ready for a pipe whose end was read. Where it is passed on, not before there is
/// room for it; once nobody reads on, it is as if the pipe had ended.
pub(super) async fn readable(pipe: Option<&AsyncFd<OwnedFd>>, pass: Option<&Pass>) -> Read {
    let Some(pipe) = pipe else {
        return std::future::pending().await;
    };
    if let Some(pass) = pass
        && !pass.room().await
    {
        return Read::End;
    }
    let mut piece = vec![0; PIECE];
    loop {
        let Ok(mut guard) = pipe.readable().await else {
            return Read::End;
        };
        match nix::unistd::read(pipe.get_ref(), &mut piece) {
            Err(Errno::EAGAIN) => guard.clear_ready(),
            Err(Errno::EINTR) => {}
            Ok(length) if length > 0 => {
                piece.truncate(length);
                return Read::Piece(piece);
            }
            Ok(_) | Err(_) => return Read::End,
        }
    }
}

pub(super) type Received = Result<Option<(FromInit, Vec<OwnedFd>)>, Errno>;

/// One message of init; never ready once init has closed the channel.
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
