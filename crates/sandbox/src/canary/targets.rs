//! Targets outside the sandbox for the probes of a run's canary: created by the runner or found on the host, and
//! without value to others.

use std::ffi::OsString;
use std::fs;
use std::net::{self, Ipv4Addr, TcpListener};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};

use model::case::Tier;
use model::layout::{HOME, PROGRAM_DIRECTORY, TMP, WORK};
use probes::canary::CanaryTargets;
use sys::random;

use crate::plan::{Bind, ClientPaths};

/// Cause for which a canary has no target.
#[derive(Debug, thiserror::Error)]
pub enum TargetsError {
    /// Every directory of the host that could be opened is shown.
    #[error("cannot find a directory of the host as the canary's target outside")]
    NoOutsideDirectory,
    /// bind(2) of the abstract socket failed.
    #[error("cannot listen on an abstract socket as the canary's target outside")]
    OutsideSocket(#[source] std::io::Error),
    /// bind(2) on loopback failed.
    #[error("cannot listen on loopback as the canary's target outside")]
    Neighbour(#[source] std::io::Error),
}

/// The targets. The sockets listen while this value lives, and accept no connection.
pub struct Targets {
    _socket: UnixListener,
    /// Name of the abstract socket.
    name: String,
    directory: OsString,
    /// Listener of another process on loopback, if the network is shared.
    neighbour: Option<(TcpListener, net::SocketAddr)>,
}

impl Targets {
    /// Creates the targets for a client that sees `binds` and has these paths.
    ///
    /// # Errors
    /// Returns the target that could not be created or found.
    pub fn make(tier: Tier, binds: &[Bind], paths: &ClientPaths) -> Result<Self, TargetsError> {
        let (socket, name) = listen_outside()?;
        Ok(Self {
            _socket: socket,
            name,
            directory: match &paths.closed_directory {
                Some(directory) => directory.clone().into(),
                None => outside_directory(binds)?,
            },
            neighbour: match tier {
                Tier::Namespace => None,
                Tier::Inherited => Some(neighbour()?),
            },
        })
    }

    /// Returns the description of the targets for the canary.
    pub fn plan(&self, paths: &ClientPaths) -> CanaryTargets {
        CanaryTargets {
            home: paths.home.clone().into(),
            unruled_file: paths.unruled_file.clone().into(),
            inside_socket: format!("runner-canary-{}", random::token()),
            outside_socket: self.name.clone(),
            outside_directory: self.directory.clone(),
            outside_file: paths.outside_file.clone().into(),
            neighbour: self.neighbour.as_ref().map(|(_, address)| *address),
        }
    }
}

fn listen_outside() -> Result<(UnixListener, String), TargetsError> {
    let name = format!("runner-canary-{}", random::token());
    let listener = SocketAddr::from_abstract_name(name.as_bytes())
        .and_then(|address| UnixListener::bind_addr(&address))
        .map_err(TargetsError::OutsideSocket)?;
    Ok((listener, name))
}

fn neighbour() -> Result<(TcpListener, net::SocketAddr), TargetsError> {
    let listen = || {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        Ok((listener, address))
    };
    listen().map_err(TargetsError::Neighbour)
}

/// Returns a directory that the runner can open and the client must not see: preferably the caller's home, which
/// matters most to a reviewer.
fn outside_directory(binds: &[Bind]) -> Result<OsString, TargetsError> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let current = std::env::current_dir().ok();
    let home = home.and_then(|home| fs::canonicalize(home).ok());
    home.into_iter()
        .chain(current)
        .chain(["/usr", "/var", "/lib", "/boot", "/sys"].map(PathBuf::from))
        .find(|path| path.is_absolute() && fs::read_dir(path).is_ok() && !seen_inside(path, binds))
        .map(PathBuf::into_os_string)
        .ok_or(TargetsError::NoOutsideDirectory)
}

fn seen_inside(path: &Path, binds: &[Bind]) -> bool {
    let ours = [HOME, TMP, WORK, PROGRAM_DIRECTORY, "/etc", "/dev", "/proc"].map(Path::new);
    let bound = binds
        .iter()
        .flat_map(|bind| [Path::new(&bind.target), Path::new(&bind.source)]);
    ours.into_iter()
        .chain(bound)
        .any(|seen| seen.starts_with(path) || path.starts_with(seen))
        || path.as_os_str().as_bytes() == b"/"
}

#[cfg(test)]
mod tests {
    use model::case::Access;

    use super::*;
    use crate::plan::BindKind;

    #[test]
    fn a_directory_that_is_shown_by_another_name_is_no_canary() {
        let bind = Bind {
            source: "/data/project".into(),
            target: "/opt/link".into(),
            device: 0,
            inode: 0,
            kind: BindKind::Directory,
            access: Access::Read,
        };
        for path in [
            "/data",
            "/data/project/sub",
            "/opt",
            "/opt/link",
            "/home",
            "/",
        ] {
            assert!(
                seen_inside(Path::new(path), std::slice::from_ref(&bind)),
                "{path}"
            );
        }
        for path in ["/data/other", "/opt/other", "/home/me"] {
            assert!(
                !seen_inside(Path::new(path), std::slice::from_ref(&bind)),
                "{path}"
            );
        }
    }
}
