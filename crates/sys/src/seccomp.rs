//! seccomp(2): filters of the calling thread.

use nix::errno::Errno;

/// One instruction of a classic BPF program, `struct sock_filter` of linux/filter.h.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Instruction {
    /// Operation code.
    pub code: u16,
    /// Number of instructions to skip if the condition is true.
    pub jump_true: u8,
    /// Number of instructions to skip if the condition is false.
    pub jump_false: u8,
    /// Constant operand, `k`.
    pub operand: u32,
}

/// seccomp(2), SECCOMP_SET_MODE_FILTER: installs `program` for this thread and its future children.
///
/// # Errors
/// The errno of seccomp(2): `EINVAL` for an invalid program, `EACCES` without no_new_privs.
pub fn install(program: &[Instruction]) -> Result<(), Errno> {
    set_filter(program, 0).map(drop)
}

/// Installs `program` with a listener for its notifications, and returns the number of the listener's descriptor.
///
/// The kernel puts the descriptor into the table of this process. That table is shared with the supervisor, which takes
/// ownership; so the result is a number and not an owned descriptor.
///
/// # Errors
/// As for [`install`]; `EBUSY` if a filter with a listener is already installed.
pub fn install_with_listener(program: &[Instruction]) -> Result<i32, Errno> {
    let listen = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
    // While a call is being answered, only SIGKILL can end it, so no signal makes the caller repeat it.
    let killable = libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    set_filter(program, listen | killable)
}

fn set_filter(program: &[Instruction], flags: libc::c_ulong) -> Result<i32, Errno> {
    let length = u16::try_from(program.len()).map_err(|_| Errno::E2BIG)?;
    let description = libc::sock_fprog {
        len: length,
        // The kernel only reads through this pointer.
        filter: program.as_ptr().cast_mut().cast(),
    };
    // SAFETY: Instruction has the layout of sock_filter; `description` and `program` outlive the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            flags,
            &raw const description,
        )
    };
    Errno::result(result).map(|number| number as i32)
}
