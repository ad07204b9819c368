//! chmod(2), utime(2) and chown(2) on the client's own files, made by the supervisor in a container's file systems.
//!
//! Landlock has no access right for these calls, and the container's files belong to the client's user. So the calls
//! never continue. The supervisor opens the file, checks that it is in one of the client's trees, and changes the
//! opened file. Memory that another thread rewrites in between has no effect.

use std::ffi::OsStr;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, open, openat2};
use nix::sys::stat::{FchmodatFlags, Mode, UtimensatFlags, fchmodat, fstat, utimensat};
use nix::sys::time::TimeSpec;
use nix::unistd::{Gid, Uid};
use sys::notify::{self, Answer, Memory, Notification};

use super::Supervision;
use super::call::{MAX_PATH_BYTES, read_string};
use crate::filter::SystemCall::{self, *};

/// Set-user-ID and set-group-ID bits, which would give a program the rights of a container's user or group.
const SET_ID: u32 = 0o6000;

/// Change of an attribute, by the registers of its call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Change {
    object: Object,
    to: Attribute,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Object {
    Descriptor(i32),
    Path {
        /// Descriptor of the directory at which a relative path begins, or AT_FDCWD.
        directory: i32,
        /// Address of the path.
        at: u64,
        follow: bool,
        /// AT_EMPTY_PATH: an empty path stands for the descriptor.
        may_be_empty: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attribute {
    Mode(u32),
    /// Address of two times; 0 for the current time.
    TimesAt(u64, TimeLayout),
    /// User and group id; -1 for no change.
    Owner(u32, u32),
}

/// Layout of the two times in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TimeLayout {
    /// struct timespec
    Nanoseconds,
    /// struct timeval
    Microseconds,
    /// struct utimbuf
    Seconds,
}

/// Change that a call asks for, or the errno of invalid registers. Returns `None` for any other call.
#[expect(clippy::wildcard_enum_match_arm, reason = "any other call")]
pub(super) fn requested_change(
    call: SystemCall,
    arguments: &[u64; 6],
) -> Option<Result<Change, Errno>> {
    let [first, second, third, fourth, fifth, _] = *arguments;
    let here = libc::AT_FDCWD as u64;
    let path = |directory: u64, at, flags: u64| Object::Path {
        directory: directory as i32,
        at,
        follow: flags as i32 & libc::AT_SYMLINK_NOFOLLOW == 0,
        may_be_empty: flags as i32 & libc::AT_EMPTY_PATH != 0,
    };
    let unknown =
        |flags: u64| flags as i32 & !(libc::AT_SYMLINK_NOFOLLOW | libc::AT_EMPTY_PATH) != 0;
    let owner = |user: u64, group: u64| Attribute::Owner(user as u32, group as u32);
    let nofollow = libc::AT_SYMLINK_NOFOLLOW as u64;
    let (object, to) = match call {
        SYS_fchmodat2 | SYS_utimensat if unknown(fourth) => {
            return Some(Err(Errno::EINVAL));
        }
        SYS_fchownat if unknown(fifth) => return Some(Err(Errno::EINVAL)),
        SYS_chown => (path(here, first, 0), owner(second, third)),
        SYS_lchown => (path(here, first, nofollow), owner(second, third)),
        SYS_fchown => (Object::Descriptor(first as i32), owner(second, third)),
        SYS_fchownat => (path(first, second, fifth), owner(third, fourth)),
        SYS_chmod => (path(here, first, 0), Attribute::Mode(second as u32)),
        SYS_fchmod => (
            Object::Descriptor(first as i32),
            Attribute::Mode(second as u32),
        ),
        SYS_fchmodat => (path(first, second, 0), Attribute::Mode(third as u32)),
        SYS_fchmodat2 => (path(first, second, fourth), Attribute::Mode(third as u32)),
        SYS_utimensat | SYS_futimesat if second == 0 && first as i32 == libc::AT_FDCWD => {
            return Some(Err(Errno::EFAULT));
        }
        SYS_utimensat | SYS_futimesat if second == 0 => {
            (Object::Descriptor(first as i32), times(call, third))
        }
        SYS_utimensat => (path(first, second, fourth), times(call, third)),
        SYS_futimesat => (path(first, second, 0), times(call, third)),
        SYS_utimes | SYS_utime => (path(here, first, 0), times(call, second)),
        _ => return None,
    };
    Some(Ok(Change { object, to }))
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the one that is left")]
fn times(call: SystemCall, at: u64) -> Attribute {
    let how = match call {
        SYS_utime => TimeLayout::Seconds,
        SYS_utimes | SYS_futimesat => TimeLayout::Microseconds,
        _ => TimeLayout::Nanoseconds,
    };
    Attribute::TimesAt(at, how)
}

impl Supervision {
    /// Makes or refuses the change. The ledger does not list the call, since it cannot reach the outside.
    pub(super) fn make_change(
        &mut self,
        notification: &Notification,
        change: Result<Change, Errno>,
    ) {
        let made = change.and_then(|Change { object, to }| {
            let object = open_object(notification.thread, object)?;
            let times = read_times(notification.thread, to)?;
            // If the caller still waits, the opened file and the times are its own.
            if !notify::is_valid(&self.listener, notification.id) {
                return Err(Errno::ESRCH);
            }
            if is_below(&object, &self.own_trees)? {
                apply(&object, to, times)
            } else {
                Err(Errno::EPERM)
            }
        });
        let answer = made.map_or_else(Answer::Refuse, |()| Answer::ReturnZero);
        self.answer(notification, answer);
    }
}

/// Opens the file to change, with O_PATH: its content stays closed.
fn open_object(thread: i32, object: Object) -> Result<OwnedFd, Errno> {
    let handle = OFlag::O_PATH | OFlag::O_CLOEXEC;
    let descriptor = |number: i32| {
        let path = match number {
            libc::AT_FDCWD => format!("/proc/{thread}/cwd"),
            number => format!("/proc/{thread}/fd/{number}"),
        };
        open(path.as_str(), handle, Mode::empty()).map_err(|errno| {
            if errno == Errno::ENOENT {
                Errno::EBADF
            } else {
                errno
            }
        })
    };
    match object {
        Object::Descriptor(number) => descriptor(number),
        Object::Path {
            directory,
            at,
            follow,
            may_be_empty,
        } => {
            let memory = Memory::of(thread);
            let path = read_string(|at, piece| memory.read(at, piece), at, MAX_PATH_BYTES)?;
            let path = Path::new(OsStr::from_bytes(&path));
            let nofollow = if follow {
                OFlag::empty()
            } else {
                OFlag::O_NOFOLLOW
            };
            // /proc/self would be the supervisor's, so magic links are refused.
            let how = OpenHow::new()
                .flags(handle | nofollow)
                .resolve(ResolveFlag::RESOLVE_NO_MAGICLINKS);
            if path.as_os_str().is_empty() && may_be_empty {
                descriptor(directory)
            } else if let Some(number) = own_descriptor(path) {
                descriptor(number)
            } else if path.is_absolute() {
                openat2(AT_FDCWD, path, how)
            } else {
                openat2(descriptor(directory)?, path, how)
            }
        }
    }
}

/// Descriptor that a path of /proc names. libcs use such paths in fchmodat(3) with AT_SYMLINK_NOFOLLOW.
fn own_descriptor(path: &Path) -> Option<i32> {
    let below = ["/proc/self/fd", "/proc/thread-self/fd", "/dev/fd"];
    let mut names = below
        .iter()
        .filter_map(|directory| path.strip_prefix(directory).ok());
    names.next()?.to_str()?.parse().ok()
}

fn read_times(thread: i32, to: Attribute) -> Result<[TimeSpec; 2], Errno> {
    let now = TimeSpec::new(0, libc::UTIME_NOW);
    let Attribute::TimesAt(at, how) = to else {
        return Ok([now; 2]);
    };
    if at == 0 {
        return Ok([now; 2]);
    }
    let mut bytes = [0; 32];
    let length = if how == TimeLayout::Seconds { 16 } else { 32 };
    let wanted = bytes.get_mut(..length).unwrap_or_default();
    Memory::of(thread).read(at, wanted)?;
    let word = |index: usize| {
        let bytes = bytes.as_chunks::<8>().0.get(index).copied();
        i64::from_ne_bytes(bytes.unwrap_or_default())
    };
    let [first, second] = match how {
        TimeLayout::Seconds => [(word(0), 0), (word(1), 0)],
        TimeLayout::Nanoseconds => [(word(0), word(1)), (word(2), word(3))],
        // The kernel refuses a saturated value, as it would the original.
        TimeLayout::Microseconds => {
            let nanoseconds = |index: usize| word(index).saturating_mul(1000);
            [(word(0), nanoseconds(1)), (word(2), nanoseconds(3))]
        }
    };
    Ok([first, second].map(|(seconds, nanoseconds)| TimeSpec::new(seconds, nanoseconds)))
}

/// Checks that a file is in one of the trees, by the kernel's current path of it. The client cannot move files out of
/// its trees. It can link a writable file from elsewhere into them, so a second link is refused.
fn is_below(object: &OwnedFd, trees: &[PathBuf]) -> Result<bool, Errno> {
    let status = fstat(object)?;
    if status.st_mode & libc::S_IFMT != libc::S_IFDIR && status.st_nlink > 1 {
        return Ok(false);
    }
    let name = nix::fcntl::readlink(descriptor_path(object).as_str())?;
    let name = Path::new(&name);
    Ok(trees.iter().any(|tree| name.starts_with(tree)))
}

fn apply(
    object: &OwnedFd,
    to: Attribute,
    [accessed, modified]: [TimeSpec; 2],
) -> Result<(), Errno> {
    let path = descriptor_path(object);
    match to {
        Attribute::Mode(mode) if mode & SET_ID != 0 => Err(Errno::EPERM),
        Attribute::Mode(mode) => {
            let mode = Mode::from_bits_truncate(mode);
            fchmodat(AT_FDCWD, path.as_str(), mode, FchmodatFlags::FollowSymlink)
        }
        // chown(2) to the current owner succeeds, as in the kernel; any other owner needs CAP_CHOWN.
        Attribute::Owner(user, group) => {
            let own = [Uid::current().as_raw(), Gid::current().as_raw()];
            let stays = |(to, own): (u32, u32)| to == u32::MAX || to == own;
            if [user, group].into_iter().zip(own).all(stays) {
                Ok(())
            } else {
                Err(Errno::EPERM)
            }
        }
        Attribute::TimesAt(..) => {
            let follow = UtimensatFlags::FollowSymlink;
            utimensat(AT_FDCWD, path.as_str(), &accessed, &modified, follow)
        }
    }
}

fn descriptor_path(object: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", object.as_raw_fd())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

    use super::*;

    fn trees() -> (tempfile::TempDir, [PathBuf; 2]) {
        let base = tempfile::tempdir().unwrap();
        let path = fs::canonicalize(base.path()).unwrap();
        let trees = ["home", "tmp"].map(|name| path.join(name));
        for tree in &trees {
            fs::create_dir(tree).unwrap();
        }
        (base, trees)
    }

    fn handle(path: &Path) -> OwnedFd {
        let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        open(path, flags, Mode::empty()).unwrap()
    }

    #[test]
    fn what_lies_in_a_tree_is_the_clients_and_nothing_else_is() {
        let (base, trees) = trees();
        let inside = trees[0].join("file");
        let beside = base.path().join("home-of-another");
        fs::write(&inside, "").unwrap();
        fs::write(&beside, "").unwrap();
        assert_eq!(is_below(&handle(&inside), &trees), Ok(true));
        assert_eq!(is_below(&handle(&trees[1]), &trees), Ok(true));
        assert_eq!(is_below(&handle(&beside), &trees), Ok(false));
        let removed = handle(&inside);
        fs::remove_file(&inside).unwrap();
        assert_eq!(is_below(&removed, &trees), Ok(true));
    }

    #[test]
    fn a_mode_is_set_without_set_id_bits() {
        let (_base, trees) = trees();
        let path = trees[0].join("file");
        fs::write(&path, "").unwrap();
        let now = [TimeSpec::new(0, 0); 2];
        assert_eq!(apply(&handle(&path), Attribute::Mode(0o640), now), Ok(()));
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o7777,
            0o640
        );
        for mode in [0o4755, 0o2755] {
            assert_eq!(
                apply(&handle(&path), Attribute::Mode(mode), now),
                Err(Errno::EPERM)
            );
        }
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o7777,
            0o640
        );
    }

    #[test]
    fn times_are_set() {
        let (_base, trees) = trees();
        let path = trees[0].join("file");
        fs::write(&path, "").unwrap();
        let times = [TimeSpec::new(11, 0), TimeSpec::new(22, 0)];
        assert_eq!(
            apply(
                &handle(&path),
                Attribute::TimesAt(1, TimeLayout::Nanoseconds),
                times
            ),
            Ok(())
        );
        let status = fs::metadata(&path).unwrap();
        assert_eq!((status.atime(), status.mtime()), (11, 22));
    }

    #[test]
    fn times_are_read_as_each_call_has_them() {
        let words: [i64; 4] = [1, 2, 3, 4];
        let read = |call, at: &[i64; 4]| {
            let to = times(call, at.as_ptr() as u64);
            read_times(std::process::id() as i32, to).unwrap()
        };
        let pairs = |times: [TimeSpec; 2]| times.map(|time| (time.tv_sec(), time.tv_nsec()));
        assert_eq!(pairs(read(SYS_utimensat, &words)), [(1, 2), (3, 4)]);
        assert_eq!(pairs(read(SYS_futimesat, &words)), [(1, 2000), (3, 4000)]);
        assert_eq!(pairs(read(SYS_utimes, &words)), [(1, 2000), (3, 4000)]);
        assert_eq!(pairs(read(SYS_utime, &words)), [(1, 0), (2, 0)]);
        let now = read_times(std::process::id() as i32, times(SYS_utime, 0)).unwrap();
        assert_eq!(now[0].tv_nsec(), libc::UTIME_NOW);
    }

    #[test]
    fn a_link_in_a_tree_leads_to_what_is_not_the_clients() {
        let (base, trees) = trees();
        let outside = base.path().join("outside");
        fs::write(&outside, "").unwrap();
        let link = trees[0].join("link");
        symlink(&outside, &link).unwrap();
        let through = |follow| {
            let path = std::ffi::CString::new(link.as_os_str().as_bytes()).unwrap();
            let object = Object::Path {
                directory: libc::AT_FDCWD,
                at: path.as_ptr() as u64,
                follow,
                may_be_empty: false,
            };
            open_object(std::process::id() as i32, object).unwrap()
        };
        assert_eq!(is_below(&through(true), &trees), Ok(false));
        assert_eq!(is_below(&through(false), &trees), Ok(true));
    }

    #[test]
    fn a_file_with_a_second_name_is_not_the_clients_alone() {
        let (base, trees) = trees();
        let outside = base.path().join("outside");
        fs::write(&outside, "").unwrap();
        let link = trees[0].join("link");
        fs::hard_link(&outside, &link).unwrap();
        assert_eq!(is_below(&handle(&link), &trees), Ok(false));
        fs::remove_file(&outside).unwrap();
        assert_eq!(is_below(&handle(&link), &trees), Ok(true));
    }

    #[test]
    fn a_descriptor_by_its_name_in_proc_is_the_callers() {
        let number = |path: &str| own_descriptor(Path::new(path));
        assert_eq!(number("/proc/self/fd/7"), Some(7));
        assert_eq!(number("/proc/thread-self/fd/7"), Some(7));
        assert_eq!(number("/dev/fd/7"), Some(7));
        for other in ["/proc/self/fd/7/x", "/proc/self/fd", "/proc/1/fd/7", "fd/7"] {
            assert_eq!(number(other), None, "{other}");
        }
    }

    #[test]
    fn an_owner_stays_and_is_not_changed() {
        let (_base, trees) = trees();
        let own = handle(&trees[0]);
        let now = [TimeSpec::new(0, 0); 2];
        let to = |user, group| apply(&own, Attribute::Owner(user, group), now);
        let ids = [Uid::current().as_raw(), Gid::current().as_raw()];
        assert_eq!(to(ids[0], ids[1]), Ok(()));
        assert_eq!(to(u32::MAX, u32::MAX), Ok(()));
        assert_eq!(to(ids[0] + 1, u32::MAX), Err(Errno::EPERM));
        assert_eq!(to(u32::MAX, ids[1] + 1), Err(Errno::EPERM));
    }

    #[test]
    fn a_path_through_proc_self_is_not_taken_for_ours() {
        let path = c"/proc/self/cwd/x";
        let object = Object::Path {
            directory: libc::AT_FDCWD,
            at: path.as_ptr() as u64,
            follow: true,
            may_be_empty: false,
        };
        let refused = open_object(std::process::id() as i32, object);
        assert_eq!(refused.unwrap_err(), Errno::ELOOP);
    }

    #[test]
    fn the_high_half_of_a_register_changes_nothing() {
        let high = 1_u64 << 32;
        let plain = requested_change(SYS_fchmod, &[3, 0o600, 0, 0, 0, 0]).unwrap();
        let other = requested_change(SYS_fchmod, &[3 | high, 0o600 | high, 0, 0, 0, 0]).unwrap();
        assert_eq!(plain, other);
    }
}
