//! SHA-256 digests of the executables, computed during the run: a large program takes longer to hash than to
//! start.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use model::digest;

use crate::prepare::Prepared;

/// Time limit after the run; on a slow processor, hashing a gigabyte takes about ten seconds.
const LIMIT: Duration = Duration::from_secs(60);

/// Pending digest, or the error of starting it.
type Hash = io::Result<Receiver<io::Result<String>>>;

/// Pending SHA-256 digests of the client's program and of this executable.
#[derive(Debug)]
pub(crate) struct Digests {
    /// Identity of the program's file.
    of: Option<Identity>,
    program: Hash,
    /// `None` if the program is this executable.
    own: Option<Hash>,
}

impl Digests {
    pub(super) fn take(prepared: &Prepared) -> Self {
        let hash = |file: io::Result<File>| {
            let (done, digest) = sync_channel(1);
            std::thread::Builder::new()
                .name("digest".to_owned())
                .spawn(move || done.send(file.and_then(of_file)))
                .map(|_| digest)
        };
        Self {
            of: Identity::of(&prepared.program),
            program: hash(prepared.program.try_clone()),
            own: (!prepared.is_own_file()).then(|| hash(File::open(sys::process::OWN_FILE))),
        }
    }

    /// Keeps the pending digests, unless the program's name now leads to another file: each isolation level
    /// opens it again.
    pub(super) fn keep_or_take(digests: &mut Option<Self>, prepared: &Prepared) {
        let file = Identity::of(&prepared.program);
        let kept = digests.take_if(|known| file.is_some() && known.of == file);
        *digests = kept.or_else(|| Some(Self::take(prepared)));
    }

    /// Waits for the digests of the program and of this executable.
    ///
    /// # Errors
    /// Returns the first failed read, or `TimedOut` for a file that takes longer than [`LIMIT`].
    pub(crate) fn wait(self) -> io::Result<(String, String)> {
        let deadline = Instant::now() + LIMIT;
        let program = received(self.program, deadline)?;
        let own = self.own.map(|own| received(own, deadline)).transpose()?;
        let own = own.unwrap_or_else(|| program.clone());
        Ok((program, own))
    }
}

fn received(hash: Hash, deadline: Instant) -> io::Result<String> {
    let left = deadline.saturating_duration_since(Instant::now());
    hash?.recv_timeout(left).unwrap_or_else(|error| {
        Err(match error {
            RecvTimeoutError::Timeout => {
                let cause = format!("not read within {} s after the run", LIMIT.as_secs());
                io::Error::new(io::ErrorKind::TimedOut, cause)
            }
            RecvTimeoutError::Disconnected => {
                io::Error::other("the thread that reads it has ended")
            }
        })
    })
}

/// Returns the digest of a file up to its present length, because another process may keep appending to it.
fn of_file(file: File) -> io::Result<String> {
    let length = file.metadata()?.len();
    digest::of_reader(file.take(length))
}

/// Identity of an opened file; a replaced or changed file has another one (inode(7)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
    changed: (i64, i64),
}

impl Identity {
    fn of(file: &File) -> Option<Self> {
        let status = file.metadata().ok()?;
        Some(Self {
            device: status.dev(),
            inode: status.ino(),
            changed: (status.ctime(), status.ctime_nsec()),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn digest_that_is_late_or_lost_is_an_error() {
        let (done, digest) = sync_channel(1);
        let late = received(Ok(digest), Instant::now()).unwrap_err();
        assert_eq!(late.kind(), io::ErrorKind::TimedOut);
        let (lost, digest) = sync_channel(1);
        drop((done, lost));
        assert!(received(Ok(digest), Instant::now() + LIMIT).is_err());
    }

    #[test]
    fn file_is_hashed_to_its_length() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("program");
        fs::write(&path, "one").unwrap();
        let digest = of_file(File::open(&path).unwrap()).unwrap();
        assert_eq!(digest, digest::of_bytes(b"one"));
        // /dev/zero has no end, but its length is 0.
        assert_eq!(
            of_file(File::open("/dev/zero").unwrap()).unwrap(),
            digest::of_bytes(b"")
        );
    }

    #[test]
    fn a_file_that_was_replaced_or_changed_is_another() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("program");
        let identity = || Identity::of(&File::open(&path).unwrap()).unwrap();
        fs::write(&path, "one").unwrap();
        let first = identity();
        assert_eq!(identity(), first);
        fs::write(directory.path().join("other"), "one").unwrap();
        fs::rename(directory.path().join("other"), &path).unwrap();
        let replaced = identity();
        assert_ne!(replaced, first);
        // The clock of the kernel's time stamps ticks every few milliseconds.
        while identity() == replaced {
            fs::write(&path, "two").unwrap();
        }
    }
}
