//! seccomp(2): the filter of the calling thread.

use nix::errno::Errno;

/// One instruction of a classic BPF program, `struct sock_filter` of linux/filter.h.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Instruction {
    pub(crate) code: u16,
    pub(crate) jump_true: u8,
    pub(crate) jump_false: u8,
    pub(crate) operand: u32,
}

/// seccomp(2), SECCOMP_SET_MODE_FILTER: installs `program` for this thread and everything it starts.
///
/// # Errors
/// The errno of seccomp(2): `EINVAL` for a program that the kernel refuses, `EACCES` without no_new_privs.
pub(crate) fn install(program: &[Instruction]) -> Result<(), Errno> {
    let length = u16::try_from(program.len()).map_err(|_| Errno::E2BIG)?;
    let description = libc::sock_fprog {
        len: length,
        // The kernel only reads through this pointer.
        filter: program.as_ptr().cast_mut().cast(),
    };
    // SAFETY: Instruction has the layout of sock_filter; `description` and the program outlive the call.
    let result = unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const description)
    };
    Errno::result(result).map(drop)
}
