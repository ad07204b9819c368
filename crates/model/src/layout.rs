//! Fixed names inside the sandbox: directories, host name, user id.

/// Home of the client inside a root of its own.
pub const HOME: &str = "/home/sandbox";
/// Temporary directory of the client inside a root of its own; `/dev/shm` leads here too, so that there is one place
/// to walk.
pub const TMP: &str = "/tmp";
/// Working directory of the client inside a root of its own, empty at the start. The home is none of its parents.
pub const WORK: &str = "/home/work";
/// Directory in which the client's program lies inside a root of its own.
pub const PROGRAM_DIRECTORY: &str = "/client";
/// Host name inside.
pub const HOST_NAME: &str = "sandbox";
/// User and group id inside.
pub const INSIDE_ID: u32 = 1000;
