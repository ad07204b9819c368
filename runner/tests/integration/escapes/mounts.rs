//! Mounts, the root directory and namespaces.

use super::attempt::{hostile, refused, refused_inside};
use crate::needs_sandbox;
use crate::teardown::watch::Started;

const OWN: &str = "--own-namespaces";

#[test]
fn mounts_and_the_root_cannot_be_changed_by_the_old_interface() {
    needs_sandbox!();
    refused(&[
        ("mount-tmpfs /tmp", "EPERM", OWN),
        ("mount-bind / /tmp", "EPERM", OWN),
        ("pivot-root /tmp", "EPERM", OWN),
        ("chroot /tmp", "EPERM", OWN),
    ]);
    refused_inside(&[("remount-root", "EPERM"), ("unmount /proc", "EPERM")]);
}

#[test]
fn mounts_cannot_be_made_by_the_new_interface() {
    needs_sandbox!();
    refused(&[
        ("open-tree", "EPERM", OWN),
        ("move-mount /tmp", "EPERM", OWN),
        ("fsopen", "EPERM", OWN),
        ("fspick", "EPERM", OWN),
    ]);
    refused_inside(&[("mount-setattr", "EPERM")]);
}

#[test]
fn no_namespace_is_made_or_joined() {
    needs_sandbox!();
    refused(&[
        ("unshare 0x10000000", "EPERM", ""),  // user
        ("unshare 0x40000000", "EPERM", OWN), // network
        ("unshare 0x20000", "EPERM", OWN),    // mount
        ("unshare 0x20000000", "EPERM", OWN), // pid
        ("unshare 0x8000000", "EPERM", OWN),  // ipc
        ("unshare 0x4000000", "EPERM", OWN),  // uts
        ("unshare 0x2000000", "EPERM", OWN),  // cgroup
        ("clone 0x10000000", "EPERM", ""),
        ("clone 0x40000000", "EPERM", OWN),
        ("clone 0x50000000", "EPERM", ""),
        ("clone3 0x10000000", "ENOSYS", ""),
        ("clone3 0", "ENOSYS", ""),
        ("join /proc/self/ns/net", "EPERM", OWN),
    ]);
    // Init's are not even opened. Threads and processes can still be created.
    refused_inside(&[
        ("join /proc/1/ns/net", "EACCES"),
        ("join /proc/1/ns/mnt", "EACCES"),
        ("join /proc/1/ns/user", "EACCES"),
        ("clone 0", "ok"),
    ]);
}

#[test]
fn no_mount_of_the_sandbox_shows_outside() {
    needs_sandbox!();
    let own = || std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let mut started = Started::new(hostile(&["sleep"]));
    let client = started.client();
    let inside = std::fs::read_to_string(format!("/proc/{client}/mountinfo")).unwrap();
    let (during, after) = (own(), {
        started.interrupt();
        own()
    });
    assert!(inside.contains(" /home/sandbox "), "{inside}");
    // The number of a mount is unique on the machine.
    let numbers = |text: &str| -> Vec<String> {
        let first = |line: &str| line.split(' ').next().unwrap().to_owned();
        text.lines().map(first).collect()
    };
    let inside = numbers(&inside);
    for outside in [numbers(&during), numbers(&after)] {
        assert!(outside.iter().all(|number| !inside.contains(number)));
    }
}
