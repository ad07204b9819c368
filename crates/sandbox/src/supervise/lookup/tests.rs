//! Path arguments of calls, their access, and the base of relative paths.

use std::os::fd::AsRawFd as _;

use super::*;
use crate::filter::LOOKUPS;

const HERE: i32 = libc::AT_FDCWD;

fn own_thread() -> i32 {
    nix::unistd::gettid().as_raw()
}

fn seen(call: SystemCall, arguments: [u64; 6]) -> Vec<(PathBuf, LookupKind)> {
    let paths = paths(call, &arguments).unwrap().into_iter().flatten();
    let read = paths.map(|named| read(own_thread(), named).unwrap());
    read.map(|wanted| (wanted.path, wanted.kind)).collect()
}

fn pointer(text: &[u8]) -> u64 {
    assert_eq!(text.last(), Some(&0));
    text.as_ptr() as u64
}

#[test]
fn every_call_of_the_table_names_a_path_and_no_other_call_does() {
    for &call in SystemCall::ALL {
        let notified = LOOKUPS.iter().any(|rule| rule.call == call);
        let named = paths(call, &[0; 6]).is_some();
        assert_eq!(named, notified, "{call:?}");
    }
}

#[test]
fn the_flags_of_open_tell_reading_listing_and_writing_apart() {
    use LookupKind::{List, Read, Write};
    for (flags, kind) in [
        (libc::O_RDONLY | libc::O_CLOEXEC, Read),
        (libc::O_PATH | libc::O_RDWR, Read),
        (libc::O_RDONLY | libc::O_DIRECTORY, List),
        (libc::O_WRONLY, Write),
        (libc::O_RDWR, Write),
        (libc::O_RDONLY | libc::O_CREAT, Write),
        (libc::O_RDONLY | libc::O_TRUNC, Write),
        (libc::O_RDWR | libc::O_TMPFILE, Write),
    ] {
        assert_eq!(opened(flags as u64), kind, "{flags:#o}");
        assert_eq!(opened(flags as u64 | 1 << 32), kind, "the high half");
    }
}

#[test]
fn a_call_is_read_from_memory_with_each_of_its_paths() {
    use LookupKind::{Read, Write};
    let (one, other) = (pointer(b"/a/b\0"), pointer(b"/c\0"));
    let at = HERE as u64;
    let read = |path: &str| (PathBuf::from(path), Read);
    let write = |path: &str| (PathBuf::from(path), Write);
    let stat = seen(SYS_newfstatat, [at, one, 0, 0, 0, 0]);
    assert_eq!(stat, [read("/a/b")]);
    let rename = seen(SYS_renameat2, [at, one, at, other, 0, 0]);
    assert_eq!(rename, [write("/a/b"), write("/c")]);
    let link = seen(SYS_linkat, [at, one, at, other, 0, 0]);
    assert_eq!(link, [read("/a/b"), write("/c")]);
    let symlink = seen(SYS_symlinkat, [one, at, other, 0, 0, 0]);
    assert_eq!(symlink, [write("/c")]);
    let how = [libc::O_WRONLY as u64, 0, 0];
    let open = seen(SYS_openat2, [at, one, how.as_ptr() as u64, 24, 0, 0]);
    assert_eq!(open, [write("/a/b")]);
}

#[test]
fn a_path_that_cannot_be_read_is_an_error_and_no_path() {
    for at in [0, 8, u64::MAX - 4] {
        let named = PathArgument {
            directory: HERE,
            at,
            intent: Intent::Known(LookupKind::Read),
        };
        assert_eq!(read(own_thread(), named), Err(Errno::EFAULT), "{at:#x}");
    }
}

#[test]
fn a_relative_path_begins_in_the_callers_directory_or_at_its_descriptor() {
    let current = std::env::current_dir().unwrap();
    let resolve = |directory, path: &[u8]| resolve(own_thread(), directory, path);
    assert_eq!(resolve(HERE, b"x/./y"), current.join("x/y"));
    assert_eq!(resolve(HERE, b".."), current.parent().unwrap());
    let usr = fs::File::open("/usr").unwrap();
    assert_eq!(resolve(usr.as_raw_fd(), b"lib"), Path::new("/usr/lib"));
    assert_eq!(resolve(usr.as_raw_fd(), b"/lib"), Path::new("/lib"));
    // A descriptor that is no directory, and a closed one: the path stays as written.
    let (pipe, _other) = nix::unistd::pipe().unwrap();
    assert_eq!(resolve(pipe.as_raw_fd(), b"lib"), Path::new("lib"));
    assert_eq!(resolve(-1, b"../lib"), Path::new("../lib"));
    assert_eq!(resolve(HERE, b""), Path::new(""));
}

#[test]
fn a_removed_directory_is_no_place_to_begin() {
    let directory = tempfile::tempdir().unwrap();
    let handle = fs::File::open(directory.path()).unwrap();
    let at = |path| resolve(own_thread(), handle.as_raw_fd(), path);
    assert_eq!(at(b"x"), directory.path().join("x"));
    fs::remove_dir(directory.path()).unwrap();
    assert_eq!(at(b"x"), Path::new("x"));
}

#[test]
fn paths_are_normal_by_their_text_and_no_longer_than_the_kernel_takes() {
    for (path, normal) in [
        ("/", "/"),
        ("//a//b/", "/a/b"),
        ("/a/./b/../c", "/a/c"),
        ("/../../a", "/a"),
        ("a/../..", ".."),
        ("../../a", "../../a"),
    ] {
        assert_eq!(
            normalised(None, Path::new(path)),
            Path::new(normal),
            "{path}"
        );
    }
    let long = [b"/".as_slice(), &[b'x'; 9000]].concat();
    let cut = resolve(own_thread(), HERE, &long);
    assert_eq!(cut.as_os_str().len(), MAX_PATH_BYTES);
}
