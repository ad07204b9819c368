//! SHA-256 of what is run, taken beside the run: a large program takes longer to hash than to start.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::thread::JoinHandle;

use crate::digest;
use crate::prepare::Prepared;
use crate::sandbox::spawn;

/// One being taken, or why it is not.
type Hash = io::Result<JoinHandle<io::Result<String>>>;

/// SHA-256 of the client's program and of this executable, being taken.
#[derive(Debug)]
pub(crate) struct Digests {
    /// The file of the program.
    of: Option<Identity>,
    program: Hash,
    /// `None` where the program is this executable.
    own: Option<Hash>,
}

impl Digests {
    pub(super) fn take(prepared: &Prepared) -> Self {
        let hash = |file: io::Result<File>| {
            std::thread::Builder::new()
                .name("digest".to_owned())
                .spawn(move || digest::of_reader(file?))
        };
        Self {
            of: Identity::of(&prepared.program),
            program: hash(prepared.program.try_clone()),
            own: (!prepared.is_own_file()).then(|| hash(File::open(spawn::OWN_FILE))),
        }
    }

    /// Those that are being taken stay, unless another file has the program's name since: it is opened again for
    /// each tier.
    pub(super) fn keep_or_take(digests: &mut Option<Self>, prepared: &Prepared) {
        let file = Identity::of(&prepared.program);
        let kept = digests.take_if(|known| file.is_some() && known.of == file);
        *digests = kept.or_else(|| Some(Self::take(prepared)));
    }

    /// Digests of the program and of this executable.
    ///
    /// # Errors
    /// The first failed read.
    pub(crate) fn wait(self) -> io::Result<(String, String)> {
        let joined = |hash: Hash| {
            hash?
                .join()
                .unwrap_or_else(|_| Err(io::Error::other("its thread was lost")))
        };
        let program = joined(self.program)?;
        let own = self.own.map_or_else(|| Ok(program.clone()), joined)?;
        Ok((program, own))
    }
}

/// A file as it was opened: another one, or the same one changed, differs (inode(7)).
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
