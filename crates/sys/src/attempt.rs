//! Escape attempts of the hostile client that `runner selftest` starts: each call has led out of a sandbox before.
//!
//! Each call passes only memory of this process. A successful call has no effect beyond the end of the process.

use std::ffi::CStr;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use nix::errno::Errno;
use nix::unistd::Pid;

/// Owned descriptor of a successful `libc::syscall` result.
fn descriptor(result: libc::c_long) -> Result<OwnedFd, Errno> {
    let number = Errno::result(result)?;
    // SAFETY: every caller passes the result of a call that has just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(number as i32) })
}

/// socket(2) by numbers, including families and types without a name in any library.
///
/// # Errors
/// The errno of the call.
pub fn socket(family: i32, kind: i32, protocol: i32) -> Result<OwnedFd, Errno> {
    // SAFETY: three integers.
    descriptor(unsafe { libc::syscall(libc::SYS_socket, family, kind, protocol) })
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

/// ioctl_console(2) TIOCLINUX, subcode 3: pastes the selection of the console. `high` is the upper half of the request,
/// which the kernel ignores.
///
/// # Errors
/// The errno of the call; `ENOTTY` from a terminal that is not a console.
pub fn paste_selection(terminal: impl AsFd, high: u32) -> Result<(), Errno> {
    let subcode = 3_u8;
    let request = u64::from(high) << 32 | libc::TIOCLINUX;
    // SAFETY: this subcode reads the one byte that the pointer addresses.
    let result = unsafe {
        libc::syscall(
            libc::SYS_ioctl,
            terminal.as_fd().as_raw_fd(),
            request,
            &raw const subcode,
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

/// clone3(2) of a child in a new user namespace; the child exits at once.
///
/// # Errors
/// The errno of the call.
pub fn clone3_in_user_namespace() -> Result<(), Errno> {
    // struct clone_args, first published size: flags, pidfd, child_tid, parent_tid, exit_signal, stack, size, tls.
    let mut request = [0_u64; 8];
    request[0] = libc::CLONE_NEWUSER as u64;
    request[4] = libc::SIGCHLD as u64;
    // SAFETY: the kernel reads `request` only. Without CLONE_VM the child is a copy that continues here.
    let result =
        unsafe { libc::syscall(libc::SYS_clone3, request.as_ptr(), size_of_val(&request)) };
    let child = Errno::result(result)?;
    if child == 0 {
        // SAFETY: _exit runs no exit handler of this process.
        unsafe { libc::_exit(0) };
    }
    nix::sys::wait::waitpid(Pid::from_raw(child as i32), None).map(drop)
}

/// fsopen(2) of a tmpfs.
///
/// # Errors
/// The errno of the call.
pub fn open_tmpfs() -> Result<OwnedFd, Errno> {
    // SAFETY: a C string that outlives the call, and flags.
    descriptor(unsafe { libc::syscall(libc::SYS_fsopen, c"tmpfs".as_ptr(), 0) })
}

/// KEY_SPEC_PROCESS_KEYRING of keyctl(2). The keyring ends with this process.
const PROCESS_KEYRING: libc::c_long = -2;

/// add_key(2) to the keyring of this process.
///
/// # Errors
/// The errno of the call.
pub fn add_key() -> Result<(), Errno> {
    let value = b"x";
    // SAFETY: two C strings and one byte, which outlive the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_add_key,
            c"user".as_ptr(),
            c"runner-selftest".as_ptr(),
            value.as_ptr(),
            value.len(),
            PROCESS_KEYRING,
        )
    };
    Errno::result(result).map(drop)
}

/// request_key(2) of a key that does not exist.
///
/// # Errors
/// The errno of the call; `ENOKEY` after all keyrings were searched.
pub fn request_key() -> Result<(), Errno> {
    let nothing = std::ptr::null::<libc::c_char>();
    // SAFETY: two C strings that outlive the call; the third may be null.
    let result = unsafe {
        libc::syscall(
            libc::SYS_request_key,
            c"user".as_ptr(),
            c"runner-selftest-that-nobody-has".as_ptr(),
            nothing,
            0,
        )
    };
    Errno::result(result).map(drop)
}

/// keyctl(2), KEYCTL_GET_KEYRING_ID: looks up the session keyring and does not create it.
///
/// # Errors
/// The errno of the call.
pub fn find_session_keyring() -> Result<(), Errno> {
    const GET_KEYRING_ID: libc::c_long = 0;
    const SESSION_KEYRING: libc::c_long = -3;
    // SAFETY: three integers.
    let result = unsafe { libc::syscall(libc::SYS_keyctl, GET_KEYRING_ID, SESSION_KEYRING, 0) };
    Errno::result(result).map(drop)
}

/// bpf(2), BPF_MAP_CREATE: creates an array of one entry.
///
/// # Errors
/// The errno of the call.
pub fn create_bpf_map() -> Result<OwnedFd, Errno> {
    // union bpf_attr: map type (array), key size, value size, number of entries.
    let mut attributes = [0_u32; 32];
    for (to, from) in attributes.iter_mut().zip([2, 4, 4, 1]) {
        *to = from;
    }
    // SAFETY: the kernel reads the attributes; their size is passed.
    descriptor(unsafe {
        libc::syscall(
            libc::SYS_bpf,
            0,
            attributes.as_ptr(),
            size_of_val(&attributes),
        )
    })
}

/// perf_event_open(2): counts the task clock of this process in user mode.
///
/// # Errors
/// The errno of the call.
pub fn open_perf_event() -> Result<OwnedFd, Errno> {
    // struct perf_event_attr of the first published size, 64 bytes. Set are PERF_TYPE_SOFTWARE and the size,
    // PERF_COUNT_SW_TASK_CLOCK, and the flags exclude_kernel and exclude_hv.
    let mut attributes = [0_u64; 8];
    attributes[0] = 1 | 64 << 32;
    attributes[1] = 1;
    attributes[5] = 1 << 5 | 1 << 6;
    // SAFETY: the kernel reads the attributes, which hold their size.
    descriptor(unsafe {
        libc::syscall(libc::SYS_perf_event_open, attributes.as_ptr(), 0, -1, -1, 0)
    })
}

/// userfaultfd(2) for page faults of user mode.
///
/// # Errors
/// The errno of the call.
pub fn userfaultfd() -> Result<OwnedFd, Errno> {
    const USER_MODE_ONLY: libc::c_int = 1;
    // SAFETY: one integer.
    descriptor(unsafe { libc::syscall(libc::SYS_userfaultfd, USER_MODE_ONLY) })
}

/// `struct file_handle` of linux/fs.h, large enough for the longest handle (MAX_HANDLE_SZ).
#[repr(C)]
#[derive(Debug)]
pub struct Handle {
    bytes: u32,
    kind: i32,
    storage: [u8; 128],
}

impl Handle {
    /// Returns a handle that names no file.
    pub const fn empty() -> Self {
        Self {
            bytes: 128,
            kind: 0,
            storage: [0; 128],
        }
    }
}

/// name_to_handle_at(2): the handle of the file at `path`.
///
/// # Errors
/// The errno of the call.
pub fn name_to_handle(path: &CStr) -> Result<Handle, Errno> {
    let mut handle = Handle::empty();
    let mut mount: libc::c_int = 0;
    // SAFETY: the C string, the handle, which holds its capacity, and the int outlive the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_name_to_handle_at,
            libc::AT_FDCWD,
            path.as_ptr(),
            &raw mut handle,
            &raw mut mount,
            0,
        )
    };
    Errno::result(result).map(|_| handle)
}

/// open_by_handle_at(2) on the mount of the current directory.
///
/// # Errors
/// The errno of the call.
pub fn open_by_handle(handle: &Handle) -> Result<OwnedFd, Errno> {
    // SAFETY: the kernel reads the handle, which holds its size.
    descriptor(unsafe {
        libc::syscall(
            libc::SYS_open_by_handle_at,
            libc::AT_FDCWD,
            std::ptr::from_ref(handle),
            libc::O_RDONLY,
        )
    })
}

/// prctl(2) PR_SET_PTRACER: lets any process of the same user trace this one, even if Yama restricts tracing to
/// parents. Without Yama the call fails and changes nothing.
pub fn allow_any_tracer() {
    // SAFETY: all arguments are passed by value.
    unsafe { libc::prctl(libc::PR_SET_PTRACER, libc::PR_SET_PTRACER_ANY, 0, 0, 0) };
}
