//! Priority of a thread.

use nix::errno::Errno;

/// ioprio_set(2): selects the calling thread.
const IOPRIO_WHO_PROCESS: libc::c_int = 1;
/// ioprio_set(2): class for I/O when no other thread needs the disk, in its bits of a priority.
const IOPRIO_CLASS_IDLE: libc::c_int = 3 << 13;

/// sched_setscheduler(2), ioprio_set(2): gives the calling thread the lowest priority for the processor (`SCHED_IDLE`)
/// and the disk.
///
/// The thread cannot go back without CAP_SYS_NICE, because RLIMIT_NICE is 0 by default (sched(7)).
///
/// # Errors
/// `EPERM` from a filter; a kernel without I/O priorities is no error.
pub fn make_idle() -> Result<(), Errno> {
    let none = libc::sched_param { sched_priority: 0 };
    // The wrapper of musl always fails with ENOSYS. 0 is the calling thread.
    // SAFETY: the kernel reads one sched_param from the pointer.
    let set = unsafe {
        libc::syscall(
            libc::SYS_sched_setscheduler,
            0,
            libc::SCHED_IDLE,
            &raw const none,
        )
    };
    // SAFETY: no memory is passed.
    unsafe {
        libc::syscall(
            libc::SYS_ioprio_set,
            IOPRIO_WHO_PROCESS,
            0,
            IOPRIO_CLASS_IDLE,
        )
    };
    Errno::result(set).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_calling_thread_becomes_idle() {
        let policy = || {
            // SAFETY: no memory is passed.
            unsafe { libc::syscall(libc::SYS_sched_getscheduler, 0) }
        };
        let own = policy();
        let idle = std::thread::spawn(move || make_idle().map(|()| policy()));
        assert_eq!(idle.join().unwrap(), Ok(libc::SCHED_IDLE.into()));
        assert_eq!(policy(), own);
    }
}
