//! Calls that lead outwards by another interface of the kernel: 32-bit programs, and x32.
//!
//! They are notified, so that each is in the ledger, and refused. All other calls of those interfaces are killed or do
//! not exist. The numbers are of `arch/x86/entry/syscalls/syscall_32.tbl` and `syscall_64.tbl` (x32), and of
//! `arch/arm/tools/syscall.tbl`.

use super::system_call::Architecture;

/// A call of another interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ForeignCall {
    pub(crate) name: &'static str,
    interface: &'static Interface,
}

impl ForeignCall {
    /// The call with this number in `seccomp_data`, which has this `AUDIT_ARCH_*`.
    pub(crate) fn numbered(audit: u32, number: u32) -> Option<Self> {
        let mut interfaces = Interface::beside(Architecture::OWN);
        let interface = interfaces.find(|interface| interface.audit == audit)?;
        let mut outward = interface.outward.iter();
        let (_, name) = outward.find(|(outward, _)| *outward | interface.bit == number)?;
        Some(Self { name, interface })
    }

    /// `i386`, `x32` or `arm`.
    pub(crate) fn interface(self) -> &'static str {
        self.interface.name
    }
}

/// An interface beside that of the native programs of a kernel.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Interface {
    name: &'static str,
    pub(super) audit: u32,
    /// Set in every number.
    bit: u32,
    /// Calls that make, connect or use a socket, or a ring that can.
    outward: &'static [(u32, &'static str)],
}

impl Interface {
    /// The interfaces of a kernel of this architecture.
    pub(super) fn beside(architecture: Architecture) -> impl Iterator<Item = &'static Self> {
        let interfaces: &[Self] = match architecture {
            Architecture::X86_64 => &[I386, X32],
            Architecture::Aarch64 => &[ARM],
        };
        interfaces.iter()
    }

    /// Numbers of the calls that are notified.
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
