//! System V objects (svipc(7)): kernel memory that one call can take.

/// Memory of a message queue with `msgmnb` empty messages, 64 bytes each and the allocator's overhead.
pub(super) const QUEUE_BYTES: u64 = 5 * 1024 * 1024;
/// Size of struct sem, which fills a cache line, and of struct sem_array (ipc/sem.c).
const SEMAPHORE_BYTES: u64 = 64;
const SET_BYTES: u64 = 512;

/// Most kernel memory that one System V call can take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SystemV {
    pub(super) bytes: u64,
}

impl SystemV {
    /// shmget(2): key, size, flags.
    pub(super) fn segment(&[key, size, flags, ..]: &[u64; 6]) -> Self {
        Self::made(key, flags, size)
    }

    /// semget(2): key, number, flags.
    pub(super) fn semaphores(&[key, number, flags, ..]: &[u64; 6]) -> Self {
        let all = SEMAPHORE_BYTES.saturating_mul(u64::from(number as u32));
        Self::made(key, flags, SET_BYTES + all)
    }

    /// msgget(2): key, flags.
    pub(super) fn queue(&[key, flags, ..]: &[u64; 6]) -> Self {
        Self::made(key, flags, QUEUE_BYTES)
    }

    /// Cost of a call, 0 if its registers show that it makes no object. Key and flags are ints.
    fn made(key: u64, flags: u64, bytes: u64) -> Self {
        let makes = key as i32 == libc::IPC_PRIVATE || flags as i32 & libc::IPC_CREAT != 0;
        let bytes = if makes { bytes } else { 0 };
        Self { bytes }
    }
}
