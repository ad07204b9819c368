//! Tests of the rules that a plan adds to the client's table.

use super::*;

#[test]
fn inherited_fast_open_is_notified() {
    let fast = libc::MSG_FASTOPEN as u64;
    for (call, flags) in [(SYS_sendto, 3), (SYS_sendmsg, 2), (SYS_sendmmsg, 3)] {
        let with = |value: u64| {
            let mut arguments = [0, 0x1000, 1, 0, 0x2000, 16];
            arguments[flags] = value;
            sharing(call, &arguments)
        };
        assert_eq!(with(fast), Outcome::Notified);
        assert_eq!(with(fast | libc::MSG_NOSIGNAL as u64), Outcome::Notified);
        assert_eq!(with(libc::MSG_NOSIGNAL as u64), Outcome::Notified);
    }
    let without_address = [0, 0x1000, 1, fast, 0, 0];
    assert_eq!(sharing(SYS_sendto, &without_address), Outcome::Notified);
}

#[test]
fn inherited_clones_are_notified() {
    let clone = |flags: i32| sharing(SYS_clone, &[flags as u64]);
    assert_eq!(clone(libc::SIGCHLD), Outcome::Notified);
    assert_eq!(clone(libc::CLONE_VM | libc::CLONE_VFORK), Outcome::Notified);
    assert_eq!(clone(libc::CLONE_THREAD), Outcome::Notified);
    let refused = Outcome::Refused(Errno::EPERM);
    assert_eq!(clone(libc::CLONE_NEWUSER | libc::CLONE_THREAD), refused);
    assert_eq!(client(SYS_clone, &[0]), Outcome::Allowed);
}

#[test]
fn inherited_rules_only_tighten_the_table() {
    for rule in CLIENT.rules.iter() {
        for fill in FILLS {
            let arguments = [fill; 6];
            let before = client(rule.call, &arguments);
            let after = everywhere(&with_all(), rule.call, &arguments);
            let tighter = matches!(
                (before, after),
                (Outcome::Allowed | Outcome::Notified, Outcome::Refused(_))
                    | (Outcome::Allowed, Outcome::Notified)
            );
            assert!(before == after || tighter, "{:?}, {fill:#x}", rule.call);
        }
    }
}

/// Runs a call with the rules for files on the host's disk, with lookups as in an audit.
fn writing(call: SystemCall, arguments: &[u64]) -> Outcome {
    let filter = Additions {
        no_set_id: true,
        lookups: true,
        ..Additions::default()
    };
    everywhere(&filter.client_filter(), call, arguments)
}

/// Calls that set the mode of a file, each with arguments and the index of the mode.
const MODES: &[(SystemCall, [u64; 4], usize)] = {
    const CREATES: u64 = (libc::O_WRONLY | libc::O_CREAT) as u64;
    &[
        (SYS_chmod, [0x1000, 0, 0, 0], 1),
        (SYS_fchmod, [3, 0, 0, 0], 1),
        (SYS_fchmodat, [3, 0x1000, 0, 0], 2),
        (SYS_fchmodat2, [3, 0x1000, 0, 0], 2),
        (SYS_open, [0x1000, CREATES, 0, 0], 2),
        (SYS_openat, [3, 0x1000, CREATES, 0], 3),
        (
            SYS_openat,
            [3, 0x1000, (libc::O_RDWR | libc::O_TMPFILE) as u64, 0],
            3,
        ),
        (SYS_creat, [0x1000, 0, 0, 0], 1),
        (SYS_mknod, [0x1000, 0, 0, 0], 1),
        (SYS_mknodat, [3, 0x1000, 0, 0], 2),
        (SYS_mkdir, [0x1000, 0, 0, 0], 1),
        (SYS_mkdirat, [3, 0x1000, 0, 0], 2),
    ]
};

#[test]
fn set_id_modes_are_refused_in_every_call() {
    for (call, arguments, mode_at) in MODES {
        let with = |mode: u64| {
            let mut arguments = *arguments;
            arguments[*mode_at] = mode;
            arguments
        };
        let high = 0xFFFF_FFFF_0000_0000;
        for mode in [0o4755, 0o2755, 0o6000, 0o104_755, high | 0o4000] {
            let refused = Outcome::Refused(Errno::EPERM);
            assert_eq!(writing(*call, &with(mode)), refused, "{call:?} {mode:o}");
            assert_eq!(client(*call, &with(mode)), Outcome::Allowed, "{call:?}");
        }
        for mode in [0, 0o755, 0o1777, 0o100_755, high | 0o644] {
            let goes_on = if *call == SYS_fchmod {
                Outcome::Allowed
            } else {
                Outcome::Notified
            };
            assert_eq!(writing(*call, &with(mode)), goes_on, "{call:?} {mode:o}");
        }
    }
    for rule in set_id::NO_SET_ID {
        let is_listed = MODES.iter().any(|(call, ..)| *call == rule.call);
        assert!(is_listed || rule.call == SYS_openat2, "{:?}", rule.call);
    }
}

#[test]
fn open_without_create_ignores_mode_and_openat2_is_enosys() {
    // The register of an omitted argument may hold any value.
    for flags in [0, libc::O_RDWR | libc::O_DIRECTORY, libc::O_TRUNC] {
        let openat = writing(SYS_openat, &[3, 0x1000, flags as u64, u64::MAX]);
        assert_eq!(openat, Outcome::Notified, "{flags:o}");
    }
    let openat2 = |of: fn(SystemCall, &[u64]) -> Outcome| of(SYS_openat2, &[3, 0x1000]);
    assert_eq!(openat2(writing), Outcome::Refused(Errno::ENOSYS));
    assert_eq!(openat2(client), Outcome::Allowed);
}

/// FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR, FS_IOC_SETVERSION, FS_IOC_ENABLE_VERITY, BTRFS_IOC_SUBVOL_CREATE.
const LASTING: [u64; 5] = [
    0x4008_6602,
    0x401C_5820,
    0x4008_7602,
    0x4080_6685,
    0x5000_940E,
];

#[test]
fn lasting_attributes_are_refused() {
    let high = 1_u64 << 32;
    for command in LASTING {
        for command in [command, command | high] {
            let refused = Outcome::Refused(Errno::ENOTTY);
            assert_eq!(writing(SYS_ioctl, &[3, command]), refused, "{command:#x}");
            assert_eq!(sharing(SYS_ioctl, &[3, command]), refused, "{command:#x}");
        }
        assert_eq!(client(SYS_ioctl, &[3, command]), Outcome::Allowed);
    }
    let refused = Outcome::Refused(Errno::EPERM);
    assert_eq!(writing(SYS_file_setattr, &[3, 0x1000]), refused);
    assert_eq!(client(SYS_file_setattr, &[3, 0x1000]), Outcome::Allowed);
    assert_eq!(writing(SYS_ioctl, &[3, libc::FIONREAD]), Outcome::Allowed);
}

#[test]
fn inherited_ioctl_allows_only_listed_commands() {
    for command in [libc::FIONREAD, libc::FIONBIO, libc::FIOCLEX, 0x8933] {
        assert_eq!(
            sharing(SYS_ioctl, &[3, command]),
            Outcome::Allowed,
            "{command:#x}"
        );
    }
    // A command of terminals, a command of disks, and an unknown one.
    for command in [0x5401, 0x1277, 0xDEAD_BEEF] {
        let refused = Outcome::Refused(Errno::ENOTTY);
        assert_eq!(sharing(SYS_ioctl, &[3, command]), refused, "{command:#x}");
    }
    let pushed = sharing(SYS_ioctl, &[0, libc::TIOCSTI]);
    assert_eq!(
        pushed,
        Outcome::Refused(Errno::EPERM),
        "by the client's table"
    );
}

#[test]
fn file_leases_are_refused() {
    let fcntl = |command: i32| client(SYS_fcntl, &[3, command as u64, 0]);
    assert_eq!(fcntl(libc::F_SETLEASE), Outcome::Refused(Errno::EACCES));
    assert_eq!(fcntl(libc::F_SETFD), Outcome::Allowed);
}
