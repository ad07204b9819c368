//! seccomp(2): the filter of the calling thread.

use nix::errno::Errno;

/// One instruction of a classic BPF program, `struct sock_filter` of linux/filter.h.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Instruction {
    pub code: u16,
    pub jump_true: u8,
    pub jump_false: u8,
    pub operand: u32,
}

/// seccomp(2), SECCOMP_SET_MODE_FILTER: installs `program` for this thread and everything it starts.
///
/// # Errors
/// The errno of seccomp(2): `EINVAL` for a program that the kernel refuses, `EACCES` without no_new_privs.
pub fn install(program: &[Instruction]) -> Result<(), Errno> {
    set_filter(program, 0).map(drop)
}

/// The same for a program that notifies: the number of the listener's descriptor, which the kernel has put
/// into this process's table. It is a number and no owned descriptor, since the table is shared with the
/// process that takes it.
///
/// # Errors
/// As for [`install`]; `EBUSY` where a filter with a listener is installed already.
pub fn install_with_listener(program: &[Instruction]) -> Result<i32, Errno> {
    let listen = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
    // A call that is being answered can then be ended by SIGKILL only, so a signal makes no call twice.
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
    // SAFETY: Instruction has the layout of sock_filter; `description` and the program outlive the call.
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
