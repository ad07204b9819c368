//! Core dumps of the client: where the kernel hands them, and that none holds memory.
//!
//! RLIMIT_CORE of one byte keeps a file from being written and a program of the host from being started (core(5)). The
//! kernel does not ask for it where core_pattern names a socket, since Linux 6.16. What a dump holds of memory is up to
//! coredump_filter, which is kept over fork(2) and execve(2).

use std::fs;

use model::evidence::{Layer, LayerNeed, LayerStatus};

use super::limits::CORE_BYTES;
use super::proc::Proc;

/// The layer's name in reports.
pub const LAYER: &str = "core dumps";

const PATTERN: &str = "/proc/sys/kernel/core_pattern";
const FILTER: &str = "self/coredump_filter";

/// Receiver of core dumps, by the first byte of core_pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receiver {
    File,
    /// A program, started as the host's root.
    Program,
    /// A daemon that listens on a unix socket.
    Socket,
}

impl Receiver {
    /// Reads the pattern of this machine; `None` where it cannot be read.
    pub fn read() -> Option<Self> {
        fs::read(PATTERN).ok().map(|pattern| Self::of(&pattern))
    }

    fn of(pattern: &[u8]) -> Self {
        match pattern.first() {
            Some(b'|') => Self::Program,
            Some(b'@') => Self::Socket,
            Some(_) | None => Self::File,
        }
    }
}

/// Leaves memory out of the dumps of this process and of all that it starts. Read back by the probe.
pub(super) fn leave_out_memory() {
    let _ = fs::write("/proc/self/coredump_filter", "0");
}

/// Returns the filter of this process; `None` for a kernel that makes no dumps.
pub(super) fn filter(proc: &Proc) -> Option<String> {
    let filter = proc.read(FILTER).ok()?;
    Some(filter.trim().to_owned())
}

/// The layer, listed where a crash is told to someone on the host, or might be.
pub(super) fn layer(
    receiver: Option<Receiver>,
    core_bytes: u64,
    filter: Option<&str>,
) -> Option<Layer> {
    let to = match receiver {
        Some(Receiver::File) => return None,
        Some(Receiver::Program) if core_bytes == CORE_BYTES => return None,
        Some(Receiver::Program) => {
            "a program of this machine, which RLIMIT_CORE 0 does not keep from being started"
        }
        Some(Receiver::Socket) => "a daemon of this machine, over the socket in core_pattern",
        None if core_bytes == CORE_BYTES => return None,
        None => "whatever core_pattern names, which cannot be read here",
    };
    let is_empty = filter.is_none_or(|filter| filter.chars().all(|digit| digit == '0'));
    let (need, what) = if is_empty {
        (LayerNeed::IfOffered, "without its memory")
    } else {
        (LayerNeed::Required, "with its memory")
    };
    Some(Layer {
        name: LAYER.to_owned(),
        need,
        status: LayerStatus::Absent,
        detail: format!("a crash of the client is handed to {to}, {what}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_byte_names_the_receiver() {
        for (pattern, receiver) in [
            (&b"core\n"[..], Receiver::File),
            (b"/var/crash/%e|@", Receiver::File),
            (b"|/usr/lib/systemd/systemd-coredump %P", Receiver::Program),
            (b"@/run/coredump.socket", Receiver::Socket),
            (b"@@/run/coredump.socket", Receiver::Socket),
            (b"", Receiver::File),
        ] {
            assert_eq!(Receiver::of(pattern), receiver);
        }
    }

    #[test]
    fn only_a_dump_that_someone_gets_is_listed() {
        let listed = |receiver, bytes| {
            let layer = layer(Some(receiver), bytes, Some("00000000"))?;
            assert_eq!(layer.need, LayerNeed::IfOffered);
            assert!(layer.detail.ends_with("without its memory"));
            Some(layer.status)
        };
        assert_eq!(listed(Receiver::File, CORE_BYTES), None);
        assert_eq!(listed(Receiver::Program, CORE_BYTES), None);
        let absent = Some(LayerStatus::Absent);
        assert_eq!(listed(Receiver::Program, 0), absent);
        assert_eq!(listed(Receiver::Socket, CORE_BYTES), absent);
    }

    #[test]
    fn a_dump_with_memory_breaks_the_sandbox() {
        let layer = layer(Some(Receiver::Socket), CORE_BYTES, Some("00000033")).unwrap();
        assert_eq!(layer.need, LayerNeed::Required);
        assert!(layer.detail.ends_with("with its memory"));
    }
}
