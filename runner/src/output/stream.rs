//! Reports to FIFOs and devices, with a limit of each wait.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// Limit for a reader to open a FIFO, and for each pause in its reading.
pub(super) const READER_LIMIT: Duration = Duration::from_secs(10);

/// Opens a FIFO or a device for writing.
///
/// # Errors
/// The error of open(2), or a FIFO that no process opens for reading within `limit`.
pub(super) fn open(path: &Path, limit: Duration) -> io::Result<File> {
    let deadline = Instant::now() + limit;
    loop {
        // A blocking open of a FIFO waits for its reader without a limit; O_NONBLOCK gives ENXIO (open(2)).
        let opened = OpenOptions::new()
            .append(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
            .open(path);
        match opened {
            Err(error) if error.raw_os_error() == Some(libc::ENXIO) => {
                let kind = fs::metadata(path)?.file_type();
                if kind.is_socket() {
                    return Err(io::Error::other("it is a socket, not a FIFO or a device"));
                }
                // A missing device, such as /dev/tty without a terminal.
                if !kind.is_fifo() {
                    return Err(error);
                }
            }
            opened => return opened,
        }
        if Instant::now() >= deadline {
            let cause = format!("no process reads from it within {} s", limit.as_secs());
            return Err(io::Error::new(io::ErrorKind::TimedOut, cause));
        }
        sleep(Duration::from_millis(10));
    }
}

/// Bytes that are read before they are written.
const PIECE: usize = 64 << 10;

/// Writes all of `content`.
///
/// # Errors
/// The error of read(2) or write(2), or a reader that pauses for longer than `limit`.
pub(super) fn write(file: &File, content: &mut dyn Read, limit: Duration) -> io::Result<()> {
    let mut piece = vec![0; PIECE];
    loop {
        match content.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(read) => write_piece(file, piece.get(..read).unwrap_or_default(), limit)?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn write_piece(mut file: &File, mut bytes: &[u8], limit: Duration) -> io::Result<()> {
    let timeout = PollTimeout::try_from(limit).unwrap_or(PollTimeout::MAX);
    while !bytes.is_empty() {
        match file.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let mut polled = [PollFd::new(file.as_fd(), PollFlags::POLLOUT)];
                match poll(&mut polled, timeout) {
                    Ok(0) => {
                        let cause = format!("its reader paused for {} s", limit.as_secs());
                        return Err(io::Error::new(io::ErrorKind::TimedOut, cause));
                    }
                    Ok(_) | Err(Errno::EINTR) => {}
                    Err(errno) => return Err(errno.into()),
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use nix::sys::stat::Mode;

    use super::*;

    const SHORT: Duration = Duration::from_millis(50);

    fn fifo() -> (tempfile::TempDir, std::path::PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("fifo");
        nix::unistd::mkfifo(&path, Mode::S_IRWXU).unwrap();
        (directory, path)
    }

    fn reader(path: &Path) -> File {
        OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(path)
            .unwrap()
    }

    #[test]
    fn fifo_without_a_reader_is_an_error() {
        let (_directory, path) = fifo();
        let error = open(&path, SHORT).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[test]
    fn socket_is_an_error_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let _socket = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let start = Instant::now();
        let error = open(&path, READER_LIMIT).unwrap_err();
        assert!(error.to_string().contains("a socket"), "{error}");
        assert!(start.elapsed() < READER_LIMIT);
    }

    #[test]
    fn reader_that_stops_is_an_error() {
        let (_directory, path) = fifo();
        let _reader = reader(&path);
        let file = open(&path, SHORT).unwrap();
        let error = write(&file, &mut io::repeat(0).take(1 << 20), SHORT).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[test]
    fn reader_gets_the_whole_report() {
        let (_directory, path) = fifo();
        let mut reader = reader(&path);
        let file = open(&path, SHORT).unwrap();
        let report = vec![7; 1 << 20];
        let bytes = report.clone();
        let writer = std::thread::spawn(move || write(&file, &mut &*bytes, READER_LIMIT));
        let mut read = Vec::new();
        loop {
            match reader.read_to_end(&mut read) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let mut polled = [PollFd::new(reader.as_fd(), PollFlags::POLLIN)];
                    poll(&mut polled, 5000_u16).unwrap();
                }
                ended => {
                    ended.unwrap();
                    break;
                }
            }
        }
        writer.join().unwrap().unwrap();
        assert_eq!(read, report);
    }
}
