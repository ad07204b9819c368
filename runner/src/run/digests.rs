//! SHA-256 of what is run, taken beside the run: a large program takes longer to hash than to start.

use std::fs::File;
use std::io;
use std::thread::JoinHandle;

use crate::digest;
use crate::prepare::Prepared;
use crate::sandbox::spawn;

/// One being taken, or why it is not.
type Hash = io::Result<JoinHandle<io::Result<String>>>;

/// SHA-256 of the client's program and of this executable, being taken.
#[derive(Debug)]
pub(crate) struct Digests {
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
            program: hash(prepared.program.try_clone()),
            own: (!prepared.is_own_file()).then(|| hash(File::open(spawn::OWN_FILE))),
        }
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
