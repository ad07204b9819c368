//! Fixed names inside the sandbox: directories, host name, user id.

/// Home directory of the client, in a root file system of the sandbox's own.
pub const HOME: &str = "/home/sandbox";
/// Temporary directory of the client, in a root file system of the sandbox's own. `/dev/shm` is a link to it, so only
/// one directory needs walking.
pub const TMP: &str = "/tmp";
/// Working directory of the client, in a root file system of the sandbox's own. It starts empty, and is not below the
/// home.
pub const WORK: &str = "/home/work";
/// Directory of the client's program, in a root file system of the sandbox's own.
pub const PROGRAM_DIRECTORY: &str = "/client";
/// Host name inside the sandbox.
pub const HOST_NAME: &str = "sandbox";
/// User id and group id inside the sandbox.
pub const INSIDE_ID: u32 = 1000;
