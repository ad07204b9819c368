//! Core dumps of the client: their receiver, and a filter that leaves all memory out.
//!
//! An RLIMIT_CORE of one byte prevents a core file and the start of the host's core program (core(5)). Since Linux 6.16
//! core_pattern may name a socket, for which the kernel ignores the limit. The file coredump_filter selects the memory
//! in a dump; fork(2) and execve(2) keep the selection.

use std::fs;

use model::evidence::{Layer, LayerNeed, LayerStatus};

use super::limits::CORE_BYTES;
use super::proc::Proc;

/// Name of the layer in reports.
pub const LAYER: &str = "core dumps";

const PATTERN: &str = "/proc/sys/kernel/core_pattern";
const FILTER: &str = "self/coredump_filter";

/// Receiver of core dumps, by the first byte of core_pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receiver {
    /// A core file.
    File,
    /// A program that the kernel starts as the host's root.
    Program,
    /// A daemon that listens on a unix socket.
    Socket,
}

impl Receiver {
    /// Reads the core_pattern of this machine; `None` if the file cannot be read.
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

/// Leaves memory out of the core dumps of this process and its descendants. The self-check reads the filter back.
pub(super) fn leave_out_memory() {
    let _ = fs::write("/proc/self/coredump_filter", "0");
}

/// Returns coredump_filter of this process; `None` for a kernel without core dumps.
pub(super) fn filter(proc: &Proc) -> Option<String> {
    let filter = proc.read(FILTER).ok()?;
    Some(filter.trim().to_owned())
}

/// Returns the layer if the host receives, or might receive, a core dump of the client.
pub(super) fn layer(
    receiver: Option<Receiver>,
    core_bytes: u64,
    filter: Option<&str>,
) -> Option<Layer> {
    let to = match receiver {
        Some(Receiver::File) => return None,
        Some(Receiver::Program) if core_bytes == CORE_BYTES => return None,
        Some(Receiver::Program) => {
            "a program of this machine, which the kernel starts despite RLIMIT_CORE 0"
        }
        Some(Receiver::Socket) => "a daemon of this machine, over the socket in core_pattern",
        None if core_bytes == CORE_BYTES => return None,
        None => "an unknown receiver, because core_pattern cannot be read here",
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
    fn only_a_received_dump_is_listed() {
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
