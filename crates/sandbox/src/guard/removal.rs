//! Removal of a tree of any depth that its owner may still be changing, without following links.
//!
//! Deeper directories are moved up first, so that any depth needs only a few descriptors. Each directory is opened
//! once, and all operations use that descriptor.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, RenameFlags, openat, renameat, renameat2};
use nix::sys::stat::{FchmodatFlags, Mode, fchmodat};
use nix::unistd::{UnlinkatFlags, unlinkat};

/// Maximum time for a removal: processes of the client may still be ending, and writing.
const MAX_DURATION: Duration = Duration::from_secs(10);
/// Maximum depth of directories that are removed in place. Each level needs a descriptor and stack.
const MAX_LEVELS: u32 = 100;
/// Pause between two passes.
const PAUSE: Duration = Duration::from_millis(20);

/// Removes a directory with its contents. Repeats that while other processes make new entries.
///
/// # Errors
/// The errno of the last pass.
pub(super) fn remove(base: &Path) -> nix::Result<()> {
    let deadline = Instant::now() + MAX_DURATION;
    // Counts over all passes, because a name of an earlier pass may still exist.
    let mut moved = 0;
    loop {
        let removed = pass(base, &mut moved)
            .and_then(|()| unlinkat(AT_FDCWD, base, UnlinkatFlags::RemoveDir));
        match removed {
            Ok(()) | Err(Errno::ENOENT) => return Ok(()),
            Err(errno) if Instant::now() >= deadline => return Err(errno),
            Err(_) => std::thread::sleep(PAUSE),
        }
    }
}

/// Removes the contents of `base`, a level at a time. An entry that cannot be removed does not stop the others.
fn pass(base: &Path, moved: &mut u64) -> nix::Result<()> {
    let deadline = Instant::now() + MAX_DURATION;
    let top = directory(&openat(AT_FDCWD, base, handle_flags(), Mode::empty())?)?;
    loop {
        let names = names(&top)?;
        if names.is_empty() {
            return Ok(());
        }
        let tried: Vec<nix::Result<()>> = names
            .iter()
            .map(|name| remove_one(&top, name, moved))
            .collect();
        let failed = tried.iter().find_map(|one| one.err());
        if let Some(errno) = failed
            && (tried.iter().all(Result::is_err) || Instant::now() >= deadline)
        {
            return Err(errno);
        }
    }
}

/// Removes an entry of `top`. Of a directory, removes its files and moves its subdirectories up first.
fn remove_one(top: &OwnedFd, name: &OsStr, moved: &mut u64) -> nix::Result<()> {
    remove_below(top, name, top, moved, MAX_LEVELS)
}

/// Removes an entry of `parent`, which is `top` or up to a number of `levels` below it.
fn remove_below(
    parent: &OwnedFd,
    name: &OsStr,
    top: &OwnedFd,
    moved: &mut u64,
    levels: u32,
) -> nix::Result<()> {
    if is_gone(unlinkat(parent, name, UnlinkatFlags::NoRemoveDir))? {
        return Ok(());
    }
    let inside = open_any_mode(parent, name)?;
    for inner in names(&inside)? {
        if is_gone(unlinkat(
            &inside,
            inner.as_os_str(),
            UnlinkatFlags::NoRemoveDir,
        ))? {
            continue;
        }
        // Moving a directory changes its entry `..`, which needs write permission on the directory itself.
        drop(open_any_mode(&inside, &inner)?);
        match move_up(&inside, &inner, top, moved) {
            // A Landlock domain around the runner refuses moves to another directory (landlock(7)).
            Err(Errno::EXDEV) if levels > 0 => {
                remove_below(&inside, &inner, top, moved, levels - 1)?;
            }
            moved => moved?,
        }
    }
    unlinkat(parent, name, UnlinkatFlags::RemoveDir)
}

fn move_up(from: &OwnedFd, name: &OsStr, top: &OwnedFd, moved: &mut u64) -> nix::Result<()> {
    loop {
        *moved += 1;
        let free = format!("moved-{moved}");
        match renameat2(
            from,
            name,
            top,
            free.as_str(),
            RenameFlags::RENAME_NOREPLACE,
        ) {
            Err(Errno::EEXIST) => {}
            // Some file systems lack the flag.
            Err(Errno::EINVAL) => return renameat(from, name, top, free.as_str()),
            renamed => return renamed,
        }
    }
}

/// Checks whether unlinkat(2) removed the object; `false` for a directory.
fn is_gone(unlinked: nix::Result<()>) -> nix::Result<bool> {
    match unlinked {
        Ok(()) | Err(Errno::ENOENT) => Ok(true),
        Err(Errno::EISDIR | Errno::EPERM) => Ok(false),
        Err(errno) => Err(errno),
    }
}

fn handle_flags() -> OFlag {
    OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC
}

/// Opens a directory, even one whose mode the client has set to 0.
fn open_any_mode(parent: &OwnedFd, name: &OsStr) -> nix::Result<OwnedFd> {
    let handle = openat(parent, name, handle_flags(), Mode::empty())?;
    // A path in /proc/self/fd names the opened object, even if another object has its name now.
    let path = format!("/proc/self/fd/{}", handle.as_raw_fd());
    let all = Mode::S_IRWXU;
    fchmodat(AT_FDCWD, path.as_str(), all, FchmodatFlags::FollowSymlink)?;
    directory(&handle)
}

fn directory(handle: &OwnedFd) -> nix::Result<OwnedFd> {
    let flags = OFlag::O_DIRECTORY | OFlag::O_RDONLY | OFlag::O_CLOEXEC;
    openat(handle, ".", flags, Mode::empty())
}

fn names(directory: &OwnedFd) -> nix::Result<Vec<OsString>> {
    let mut listed = Dir::from_fd(self::directory(directory)?)?;
    let mut names = Vec::new();
    for entry in listed.iter() {
        let name = entry?.file_name().to_bytes().to_vec();
        if name != b"." && name != b".." {
            names.push(OsString::from_vec(name));
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use landlock::{
        ABI, Access as _, AccessFs, Ruleset, RulesetAttr as _, RulesetCreatedAttr as _,
        path_beneath_rules,
    };

    use super::*;

    /// A domain of the first ABI refuses each move to another directory.
    fn enter_domain() {
        let all = AccessFs::from_all(ABI::V1);
        let ruleset = Ruleset::default().handle_access(all).unwrap();
        let ruleset = ruleset.create().unwrap();
        let ruleset = ruleset.add_rules(path_beneath_rules(["/"], all)).unwrap();
        ruleset.restrict_self().unwrap();
    }

    #[test]
    fn tree_is_removed_in_a_domain_without_moves() {
        let parent = tempfile::tempdir().unwrap();
        let base = parent.path().join("base");
        fs::create_dir_all(base.join("a/b/c")).unwrap();
        fs::create_dir_all(base.join("a/d")).unwrap();
        fs::write(base.join("a/b/c/file"), "x").unwrap();
        let tree = base.clone();
        let removed = std::thread::spawn(move || {
            enter_domain();
            let moved = fs::rename(tree.join("a/d"), tree.join("d"));
            assert_eq!(moved.unwrap_err().raw_os_error(), Some(libc::EXDEV));
            remove(&tree)
        });
        assert_eq!(removed.join().unwrap(), Ok(()));
        assert!(!base.exists());
    }
}
