//! Outward calls of the kernel's other system call interfaces: 32-bit programs, and x32.
//!
//! Such calls are notified for the ledger, and refused by the supervisor. Other calls of those interfaces are killed or
//! fail with `ENOSYS`. The numbers are from `arch/x86/entry/syscalls/syscall_32.tbl`, `syscall_64.tbl` (x32), and
//! `arch/arm/tools/syscall.tbl`.

use super::system_call::Architecture;

/// A call of another interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ForeignCall {
    pub(crate) name: &'static str,
    interface: &'static Interface,
}

impl ForeignCall {
    /// Finds a call by the `AUDIT_ARCH_*` value and the number in `seccomp_data`.
    pub(crate) fn numbered(audit: u32, number: u32) -> Option<Self> {
        let mut interfaces = Interface::beside(Architecture::OWN);
        let interface = interfaces.find(|interface| interface.audit == audit)?;
        let mut outward = interface.outward.iter();
        let (_, name) = outward.find(|(outward, _)| *outward | interface.bit == number)?;
        Some(Self { name, interface })
    }

    /// Returns the name of the interface: `i386`, `x32` or `arm`.
    pub(crate) fn interface(self) -> &'static str {
        self.interface.name
    }
}

/// A system call interface other than the native one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Interface {
    name: &'static str,
    pub(super) audit: u32,
    /// Bit that is set in every number.
    bit: u32,
    /// Calls that make, connect or use a socket, or an io_uring.
    outward: &'static [(u32, &'static str)],
}

impl Interface {
    /// Lists the other interfaces of a kernel of this architecture.
    pub(super) fn beside(architecture: Architecture) -> impl Iterator<Item = &'static Self> {
        let interfaces: &[Self] = match architecture {
            Architecture::X86_64 => &[I386, X32],
            Architecture::Aarch64 => &[ARM],
        };
        interfaces.iter()
    }

    /// Lists the numbers of the notified calls.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u32> {
        self.outward.iter().map(|(number, _)| number | self.bit)
    }
}

const I386: Interface = Interface {
    name: "i386",
    audit: 0x4000_0003,
    bit: 0,
    outward: &[
        (102, "socketcall"),
        (345, "sendmmsg"),
        (359, "socket"),
        (360, "socketpair"),
        (361, "bind"),
        (362, "connect"),
        (363, "listen"),
        (369, "sendto"),
        (370, "sendmsg"),
        (425, "io_uring_setup"),
    ],
};

const X32: Interface = Interface {
    name: "x32",
    audit: 0xC000_003E,
    bit: 0x4000_0000,
    outward: &[
        (41, "socket"),
        (42, "connect"),
        (44, "sendto"),
        (49, "bind"),
        (50, "listen"),
        (53, "socketpair"),
        (425, "io_uring_setup"),
        (518, "sendmsg"),
        (538, "sendmmsg"),
    ],
};

const ARM: Interface = Interface {
    name: "arm",
    audit: 0x4000_0028,
    bit: 0,
    outward: &[
        (281, "socket"),
        (282, "bind"),
        (283, "connect"),
        (284, "listen"),
        (288, "socketpair"),
        (290, "sendto"),
        (296, "sendmsg"),
        (374, "sendmmsg"),
        (425, "io_uring_setup"),
    ],
};
