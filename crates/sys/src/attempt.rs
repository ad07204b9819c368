//! System calls of the probes: each has led out of a sandbox before.
//!
//! Each call passes only memory of this process. A successful call has no effect beyond the end of the process.

use std::ffi::{CStr, CString, OsString};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::errno::Errno;
use nix::unistd::Pid;

/// System call that takes numbers and pointers. The kernel reads and writes no memory of this process except at these
/// pointers.
#[derive(Clone, Copy, Debug)]
pub struct RawCall {
    number: libc::c_long,
    /// The result is a new descriptor.
    opens: bool,
    /// Arguments at which the kernel may write memory. They are structures of [`call`], or null.
    writes: &'static [usize],
}

/// Argument of a [`RawCall`].
#[derive(Clone, Copy, Debug)]
pub enum Argument {
    /// Number.
    Number(i64),
    /// Pointer to a C string.
    Text(&'static CStr),
    /// Pointer to a copy of a structure.
    Words(&'static [u64]),
    /// Pointer to 512 zeroed bytes that the kernel may overwrite.
    Buffer,
    /// The target of this index: a number, or a pointer to a path.
    Target(usize),
}

const MAX_ARGUMENTS: usize = 6;
const BUFFER_WORDS: usize = 64;

macro_rules! raw_calls {
    ($($name:ident $number:ident $opens:literal $($index:literal)*;)*) => {
        #[allow(missing_docs, reason = "each is the call of its name")]
        impl RawCall {
            $(pub const $name: Self = Self { number: libc::$number, opens: $opens, writes: &[$($index),*] };)*
        }
    };
}

raw_calls! {
    ADD_KEY SYS_add_key false;
    BPF SYS_bpf true 1;
    CHROOT SYS_chroot false;
    FANOTIFY_INIT SYS_fanotify_init true;
    FSOPEN SYS_fsopen true;
    FSPICK SYS_fspick true;
    IO_URING_SETUP SYS_io_uring_setup true 1;
    IOPRIO_SET SYS_ioprio_set false;
    KCMP SYS_kcmp false;
    KEYCTL SYS_keyctl false 2 3 4;
    LANDLOCK_ADD_RULE SYS_landlock_add_rule false;
    LANDLOCK_CREATE_RULESET SYS_landlock_create_ruleset true;
    MOUNT SYS_mount false;
    MOUNT_SETATTR SYS_mount_setattr false;
    NAME_TO_HANDLE_AT SYS_name_to_handle_at false 2 3;
    OPEN_BY_HANDLE_AT SYS_open_by_handle_at true;
    OPEN_TREE SYS_open_tree true;
    PERF_EVENT_OPEN SYS_perf_event_open true 0;
    PIDFD_SEND_SIGNAL SYS_pidfd_send_signal false;
    PRLIMIT SYS_prlimit64 false 3;
    REQUEST_KEY SYS_request_key false;
    SCHED_SETSCHEDULER SYS_sched_setscheduler false;
    SETPRIORITY SYS_setpriority false;
    SETXATTR SYS_setxattr false;
    SOCKET SYS_socket true;
    UNSHARE SYS_unshare false;
    USERFAULTFD SYS_userfaultfd true;
}

/// Makes a call, and closes a descriptor that it returns. `targets` are the values of [`Argument::Target`].
///
/// # Errors
/// The errno of the call; `EDESTADDRREQ` without a target, and `E2BIG` for arguments that this function cannot pass.
pub fn call(call: RawCall, arguments: &[Argument], targets: &[OsString]) -> Result<(), Errno> {
    let is_memory = |index: &usize| {
        let argument = arguments.get(*index);
        let is_null = matches!(argument, None | Some(Argument::Number(0)));
        is_null || matches!(argument, Some(Argument::Words(_) | Argument::Buffer))
    };
    if arguments.len() > MAX_ARGUMENTS || !call.writes.iter().all(is_memory) {
        return Err(Errno::E2BIG);
    }
    let mut values = [0; MAX_ARGUMENTS];
    let mut buffers = [[0_u64; BUFFER_WORDS]; MAX_ARGUMENTS];
    let mut paths: [CString; MAX_ARGUMENTS] = Default::default();
    let places = values.iter_mut().zip(&mut buffers).zip(&mut paths);
    for (((value, buffer), path), argument) in places.zip(arguments) {
        *value = match argument {
            Argument::Number(number) => *number as usize,
            Argument::Text(text) => text.as_ptr().expose_provenance(),
            Argument::Words(words) => {
                let copy = buffer.get_mut(..words.len()).ok_or(Errno::E2BIG)?;
                copy.copy_from_slice(words);
                buffer.as_mut_ptr().expose_provenance()
            }
            Argument::Buffer => buffer.as_mut_ptr().expose_provenance(),
            Argument::Target(index) => {
                let target = targets.get(*index).ok_or(Errno::EDESTADDRREQ)?;
                match target.to_str().map(str::parse::<i64>) {
                    Some(Ok(number)) => number as usize,
                    Some(Err(_)) | None => {
                        let bytes = target.as_bytes();
                        *path = CString::new(bytes).map_err(|_| Errno::EDESTADDRREQ)?;
                        path.as_ptr().expose_provenance()
                    }
                }
            }
        };
    }
    let [first, second, third, fourth, fifth, sixth] = values;
    // SAFETY: every pointer outlives the call. The kernel writes at the arguments of `writes` only. They are null, or
    // our own words, which are more than each structure that these calls write.
    let result = unsafe { libc::syscall(call.number, first, second, third, fourth, fifth, sixth) };
    if call.opens {
        return descriptor(result).map(drop);
    }
    Errno::result(result).map(drop)
}

/// Owned descriptor of a successful `libc::syscall` result.
fn descriptor(result: libc::c_long) -> Result<OwnedFd, Errno> {
    let number = Errno::result(result)?;
    // SAFETY: every caller passes the result of a call that has just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(number as i32) })
}

/// socket(2) by its x32 system call number.
///
/// # Errors
/// The errno of the call; `ENOSYS` from a kernel without x32.
#[cfg(target_arch = "x86_64")]
pub fn socket_x32(family: i32, kind: i32) -> Result<OwnedFd, Errno> {
    /// `__X32_SYSCALL_BIT` of asm/unistd.h.
    const X32: libc::c_long = 0x4000_0000;
    // SAFETY: three integers.
    descriptor(unsafe { libc::syscall(X32 | libc::SYS_socket, family, kind, 0) })
}

/// socket(2) by the 32-bit socketcall(2). A filter that ignores the architecture takes its number for another call.
///
/// # Errors
/// The errno of the call. A kernel without 32-bit system calls sends SIGSEGV.
#[cfg(target_arch = "x86_64")]
pub fn socket_i386(family: u32, kind: u32) -> Result<OwnedFd, Errno> {
    /// System call number of socketcall(2) on i386.
    const SOCKETCALL: i64 = 102;
    /// `SYS_SOCKET` of linux/net.h.
    const SYS_SOCKET: usize = 1;
    // SAFETY: an anonymous mapping at an address of the kernel's choice below 2 GiB, where the call can name it.
    let page = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            4096,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_32BIT,
            -1,
            0,
        )
    };
    if page == libc::MAP_FAILED {
        return Err(Errno::last());
    }
    // SAFETY: the page is ours, writable, and has room for three words.
    unsafe { page.cast::<[u32; 3]>().write([family, kind, 0]) };
    let result = call_i386(SOCKETCALL, [SYS_SOCKET, page.expose_provenance()])?;
    descriptor(result.into())
}

/// getpid(2) by its 32-bit system call number.
///
/// # Errors
/// As for [`socket_i386`].
#[cfg(target_arch = "x86_64")]
pub fn getpid_i386() -> Result<i32, Errno> {
    const GETPID: i64 = 20;
    call_i386(GETPID, [0, 0])
}

#[cfg(target_arch = "x86_64")]
fn call_i386(number: i64, [first, second]: [usize; 2]) -> Result<i32, Errno> {
    let result: i64;
    // SAFETY: both callers pass numbers, or the address of a page that is large enough for the kernel's read. rbx,
    // which the compiler reserves, is restored; the registers that this entry clobbers are declared.
    unsafe {
        std::arch::asm!(
            "xchg {first}, rbx",
            "int 0x80",
            "xchg {first}, rbx",
            first = inout(reg) first => _,
            inlateout("rax") number => result,
            in("rcx") second,
            lateout("r8") _, lateout("r9") _, lateout("r10") _, lateout("r11") _,
        );
    }
    // The result has 32 bits: a number, or a negative errno.
    let result = result as i32;
    if result < 0 {
        return Err(Errno::from_raw(-result));
    }
    Ok(result)
}

/// An IPv4 address that another thread may write while the kernel reads it.
#[derive(Debug)]
pub struct SharedAddress {
    /// `struct sockaddr_in`: family, port and address, then padding.
    words: [AtomicU64; 2],
}

impl SharedAddress {
    /// Address 0.0.0.0, port 0.
    pub const fn any() -> Self {
        Self {
            words: [AtomicU64::new(0), AtomicU64::new(0)],
        }
    }

    /// Overwrites family, port and address in one store.
    pub fn set(&self, address: std::net::SocketAddrV4) {
        let mut bytes = [0; 8];
        let family = (libc::AF_INET as u16).to_ne_bytes();
        let port = address.port().to_be_bytes();
        let parts = family
            .iter()
            .chain(&port)
            .chain(&address.ip().octets())
            .copied()
            .collect::<Vec<u8>>();
        for (to, from) in bytes.iter_mut().zip(parts) {
            *to = from;
        }
        self.words[0].store(u64::from_ne_bytes(bytes), Ordering::Relaxed);
    }
}

/// connect(2) to an address that another thread may change during the call.
///
/// # Errors
/// The errno of the call.
pub fn connect_shared(socket: impl AsFd, address: &SharedAddress) -> Result<(), Errno> {
    // SAFETY: the 16 bytes of the address stay allocated and in place. The kernel copies their current value; each word
    // is atomic, so no half-written word is read.
    let result = unsafe {
        libc::syscall(
            libc::SYS_connect,
            socket.as_fd().as_raw_fd(),
            address.words.as_ptr(),
            size_of_val(&address.words),
        )
    };
    Errno::result(result).map(drop)
}

/// Request that puts bytes into the input of a terminal.
#[derive(Clone, Copy, Debug)]
pub enum Input {
    /// TIOCSTI of ioctl_tty(2).
    Typed,
    /// TIOCLINUX of ioctl_console(2), subcode 3: the selection of the console.
    Pasted,
}

/// Puts bytes into the input of a terminal. `high` is the upper half of the request, which the kernel ignores.
///
/// # Errors
/// The errno of the call; `ENOTTY` from a terminal that does not know the request.
pub fn push_input(terminal: impl AsFd, input: Input, high: u32) -> Result<(), Errno> {
    let (low, byte) = match input {
        Input::Typed => (libc::TIOCSTI, b'#'),
        Input::Pasted => (libc::TIOCLINUX, 3),
    };
    // SAFETY: both requests read the one byte that the pointer addresses.
    let result = unsafe {
        libc::syscall(
            libc::SYS_ioctl,
            terminal.as_fd().as_raw_fd(),
            u64::from(high) << 32 | low,
            &raw const byte,
        )
    };
    Errno::result(result).map(drop)
}

/// Opens the peer of the pseudo-terminal `master` and makes it the controlling terminal of this session (ioctl_tty(2)).
///
/// # Errors
/// The errno of the first ioctl that failed.
pub fn controlling_terminal(master: impl AsFd) -> Result<OwnedFd, Errno> {
    let number = master.as_fd().as_raw_fd();
    let unlocked: libc::c_int = 0;
    // SAFETY: TIOCSPTLCK reads the one int that the pointer addresses.
    Errno::result(unsafe { libc::ioctl(number, libc::TIOCSPTLCK, &raw const unlocked) })?;
    // SAFETY: TIOCGPTPEER takes open flags and returns a descriptor.
    let slave = descriptor(unsafe { libc::ioctl(number, libc::TIOCGPTPEER, libc::O_RDWR) }.into())?;
    // SAFETY: TIOCSCTTY takes an integer.
    Errno::result(unsafe { libc::ioctl(slave.as_raw_fd(), libc::TIOCSCTTY, 0) })?;
    Ok(slave)
}

/// clone3(2) of a child with these flags; the child exits at once.
///
/// # Errors
/// The errno of the call.
pub fn clone3(flags: libc::c_int) -> Result<(), Errno> {
    // struct clone_args, first published size: flags, pidfd, child_tid, parent_tid, exit_signal, stack, size, tls.
    let mut request = [0_u64; 8];
    request[0] = flags as u64;
    request[4] = libc::SIGCHLD as u64;
    let (pointer, size) = (request.as_ptr(), size_of_val(&request));
    // SAFETY: the kernel reads `request` only. Without CLONE_VM the child is a copy that continues here.
    let result = unsafe { libc::syscall(libc::SYS_clone3, pointer, size) };
    let child = Errno::result(result)?;
    if child == 0 {
        // SAFETY: _exit runs no exit handler of this process.
        unsafe { libc::_exit(0) };
    }
    nix::sys::wait::waitpid(Pid::from_raw(child as i32), None).map(drop)
}

/// prctl(2) PR_SET_PTRACER: lets any process of the same user trace this one, even if Yama restricts tracing to
/// parents. Without Yama the call fails and changes nothing.
pub fn allow_any_tracer() {
    // SAFETY: all arguments are passed by value.
    unsafe { libc::prctl(libc::PR_SET_PTRACER, libc::PR_SET_PTRACER_ANY, 0, 0, 0) };
}

/// mmap(2): maps the beginning of a file as a program, and unmaps it.
///
/// # Errors
/// The errno of mmap(2): `EPERM` on a mount with noexec.
pub fn map_program(file: impl AsFd) -> Result<(), Errno> {
    const BYTES: usize = 64;
    // SAFETY: the kernel chooses the address of the new mapping, so it replaces no other.
    let at = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            BYTES,
            libc::PROT_READ | libc::PROT_EXEC,
            libc::MAP_PRIVATE,
            file.as_fd().as_raw_fd(),
            0,
        )
    };
    if at == libc::MAP_FAILED {
        return Err(Errno::last());
    }
    // SAFETY: the mapping was made above, and nothing refers to it.
    Errno::result(unsafe { libc::munmap(at, BYTES) }).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_in_place_of_memory_is_refused() {
        let limit = |argument| {
            let number = Argument::Number;
            let arguments = [
                number(0),
                number(libc::RLIMIT_CORE.into()),
                number(0),
                argument,
            ];
            call(RawCall::PRLIMIT, &arguments, &[])
        };
        assert_eq!(limit(Argument::Number(4096)), Err(Errno::E2BIG));
        assert_eq!(limit(Argument::Target(0)), Err(Errno::E2BIG));
        assert_eq!(limit(Argument::Buffer), Ok(()));
    }
}
