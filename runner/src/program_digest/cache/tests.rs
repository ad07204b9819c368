use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::time::SystemTime;

use sandbox::plan::BindKind;
use tempfile::TempDir;

use super::*;

/// A home, and a program's identity.
struct Home {
    directory: TempDir,
    place: CachePlace,
}

impl Home {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let place = CachePlace::below(directory.path());
        Self { directory, place }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join(name)
    }

    /// Name of the only entry.
    fn entry(&self) -> PathBuf {
        let mut entries = fs::read_dir(self.at(".cache/runner")).unwrap();
        let entry = entries.next().unwrap().unwrap().path();
        assert!(entries.next().is_none());
        entry
    }
}

fn file(inode: u64) -> Identity {
    Identity {
        device: 1,
        inode,
        size: 3,
        modified: 4,
        changed: 5,
        born: 6,
    }
}

fn digest(digit: char) -> String {
    digit.to_string().repeat(64)
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn kept_digest_is_known_for_the_same_identity_only() {
    let home = Home::new();
    assert_eq!(home.place.known(&file(2)), None);
    assert!(!home.at(".cache").exists());
    home.place.keep(&file(2), &digest('a')).unwrap();
    assert_eq!(home.place.known(&file(2)), Some(digest('a')));
    let changes: [fn(&mut Identity); 6] = [
        |file| file.device += 1,
        |file| file.inode += 1,
        |file| file.size += 1,
        |file| file.modified += 1,
        |file| file.changed += 1,
        |file| file.born += 1,
    ];
    for (index, change) in changes.iter().enumerate() {
        let mut other = file(2);
        change(&mut other);
        assert_eq!(home.place.known(&other), None, "{index}");
    }
    assert_eq!(mode(&home.at(".cache/runner")), 0o700);
    assert_eq!(mode(&home.entry()), 0o600);
}

#[test]
fn changed_file_replaces_its_entry() {
    let home = Home::new();
    home.place.keep(&file(2), &digest('a')).unwrap();
    let mut changed = file(2);
    changed.changed += 1;
    home.place.keep(&changed, &digest('b')).unwrap();
    assert_eq!(home.place.known(&file(2)), None);
    assert_eq!(home.place.known(&changed), Some(digest('b')));
    home.entry();
}

#[test]
fn damaged_entry_is_ignored_and_rewritten() {
    let home = Home::new();
    home.place.keep(&file(2), &digest('a')).unwrap();
    let whole = fs::read(home.entry()).unwrap();
    let mut damaged: Vec<Vec<u8>> = (0..whole.len())
        .map(|length| whole[..length].to_vec())
        .collect();
    damaged.extend([
        [whole.as_slice(), b"\n"].concat(),
        vec![0; whole.len()],
        vec![0xff; 4096],
        String::from_utf8(whole.clone())
            .unwrap()
            .replace("aa\n", "ag\n")
            .into(),
        String::from_utf8(whole.clone())
            .unwrap()
            .replace("aa\n", "AA\n")
            .into(),
        whole.repeat(2),
    ]);
    for content in damaged {
        fs::write(home.entry(), &content).unwrap();
        assert_eq!(home.place.known(&file(2)), None, "{content:?}");
    }
    home.place.keep(&file(2), &digest('b')).unwrap();
    assert_eq!(home.place.known(&file(2)), Some(digest('b')));
}

/// Each row: a change to a good cache, and whether a new entry can be stored afterwards.
#[test]
fn cache_that_another_could_write_is_not_used() {
    type Change = fn(&Home);
    let rows: [(&str, Change, bool); 9] = [
        (
            "directory of the group",
            |home| set_mode(&home.at(".cache/runner"), 0o770),
            false,
        ),
        (
            "directory of all",
            |home| set_mode(&home.at(".cache/runner"), 0o777),
            false,
        ),
        (
            "directory that all read",
            |home| set_mode(&home.at(".cache/runner"), 0o705),
            false,
        ),
        ("entry of all", |home| set_mode(&home.entry(), 0o666), true),
        (
            "entry of the group",
            |home| set_mode(&home.entry(), 0o640),
            true,
        ),
        (
            "link to the directory",
            |home| {
                fs::rename(home.at(".cache/runner"), home.at("moved")).unwrap();
                symlink(home.at("moved"), home.at(".cache/runner")).unwrap();
            },
            false,
        ),
        (
            "link to the entry",
            |home| {
                let entry = home.entry();
                fs::rename(&entry, home.at("moved")).unwrap();
                symlink(home.at("moved"), entry).unwrap();
            },
            true,
        ),
        (
            "file instead of the directory",
            |home| {
                fs::remove_dir_all(home.at(".cache/runner")).unwrap();
                fs::write(home.at(".cache/runner"), "").unwrap();
            },
            false,
        ),
        (
            "FIFO instead of the entry",
            |home| {
                let entry = home.entry();
                fs::remove_file(&entry).unwrap();
                nix::unistd::mkfifo(&entry, Mode::S_IRUSR | Mode::S_IWUSR).unwrap();
            },
            true,
        ),
    ];
    for (what, change, is_kept) in rows {
        let home = Home::new();
        home.place.keep(&file(2), &digest('a')).unwrap();
        assert_eq!(home.place.known(&file(2)), Some(digest('a')), "{what}");
        change(&home);
        assert_eq!(home.place.known(&file(2)), None, "{what}");
        let kept = home.place.keep(&file(2), &digest('b'));
        assert_eq!(kept.is_ok(), is_kept, "{what}: {kept:?}");
        assert_eq!(home.place.known(&file(2)).is_some(), is_kept, "{what}");
    }
}

/// Only root can make files of another user.
#[test]
fn another_users_directory_is_not_used() {
    if !geteuid().is_root() {
        eprintln!("skipped: only root can give files away");
        return;
    }
    let give = |path: &Path| std::os::unix::fs::chown(path, Some(1000), Some(1000)).unwrap();
    for given in ["", ".cache", ".cache/runner", "entry"] {
        let home = Home::new();
        home.place.keep(&file(2), &digest('a')).unwrap();
        give(&if given == "entry" {
            home.entry()
        } else {
            home.at(given)
        });
        assert_eq!(home.place.known(&file(2)), None, "{given}");
        let kept = home.place.keep(&file(2), &digest('b'));
        let expected = (given != "entry").then_some(io::ErrorKind::PermissionDenied);
        assert_eq!(kept.err().map(|error| error.kind()), expected, "{given}");
    }
    let home = Home::new();
    give(&home.at(""));
    let of_other = home.at("");
    let places = Places::of(Some(of_other.as_os_str()), None);
    assert_eq!(places.permitted(&[]), Permitted::Avoid);
}

#[test]
fn linked_cache_directory_of_the_user_is_used() {
    let home = Home::new();
    fs::create_dir(home.at("disk")).unwrap();
    symlink(home.at("disk"), home.at(".cache")).unwrap();
    home.place.keep(&file(2), &digest('a')).unwrap();
    assert_eq!(home.place.known(&file(2)), Some(digest('a')));
    assert!(home.at("disk/runner").exists());
}

/// Each a way on which a client that may write would decide what later runs trust.
#[test]
fn every_name_on_the_way_to_the_cache_counts() {
    let home = Home::new();
    for directory in ["real", "data", "other"] {
        fs::create_dir(home.at(directory)).unwrap();
    }
    let refused = |variables: [Option<&Path>; 2], shown: &Path| {
        let [home_dir, cache_home] = variables.map(|path| path.map(Path::as_os_str));
        let permitted = Places::of(home_dir, cache_home).permitted(&[bind(shown, Access::Write)]);
        permitted == Permitted::Refuse(shown.to_owned())
    };
    let (real, data, other) = (home.at("real"), home.at("data"), home.at("other"));
    // A link that leads nowhere yet.
    symlink(data.join("absent"), real.join(".cache")).unwrap();
    assert!(refused([Some(&real), None], &data));
    // A directory that does not exist yet.
    assert!(refused([None, Some(&data.join("absent"))], &data));
    // A link on the way to the home, which could be replaced.
    symlink(&other, data.join("home")).unwrap();
    assert!(refused([Some(&data.join("home")), None], &data));
    assert!(refused([Some(&data.join("home")), None], &other));
    // Another name of a directory.
    let alias = Path::new("/proc/self/root").join(real.strip_prefix("/").unwrap());
    assert!(refused([Some(&real), None], &alias));
    assert!(!refused([Some(&real), None], &other));
}

#[test]
fn base_that_is_no_directory_is_no_cache() {
    let home = Home::new();
    let fifo = home.at("fifo");
    nix::unistd::mkfifo(&fifo, Mode::S_IRWXU).unwrap();
    let place = CachePlace {
        base: fifo,
        between: None,
    };
    assert_eq!(place.known(&file(2)), None);
    assert!(place.keep(&file(2), &digest('a')).is_err());
}

#[test]
fn entry_of_an_earlier_start_of_the_machine_is_ignored() {
    let home = Home::new();
    home.place.keep(&file(2), &digest('a')).unwrap();
    let boot = kernel_text("/proc/sys/kernel/random/boot_id").unwrap();
    let entry = fs::read_to_string(home.entry()).unwrap();
    let earlier = boot
        .trim_end()
        .replace(|c: char| c.is_ascii_hexdigit(), "0");
    fs::write(home.entry(), entry.replace(boot.trim_end(), &earlier)).unwrap();
    assert_eq!(home.place.known(&file(2)), None);
}

#[test]
fn oldest_entries_go_first() {
    let home = Home::new();
    home.place.keep(&file(0), &digest('a')).unwrap();
    let old = File::open(home.entry()).unwrap();
    old.set_modified(SystemTime::UNIX_EPOCH).unwrap();
    // The rest of a run that was killed while it wrote.
    let rest = File::create(home.at(".cache/runner/new-0")).unwrap();
    rest.set_modified(SystemTime::UNIX_EPOCH).unwrap();
    for inode in 1..=MAX_ENTRIES as u64 {
        home.place.keep(&file(inode), &digest('b')).unwrap();
    }
    let count = fs::read_dir(home.at(".cache/runner")).unwrap().count();
    assert_eq!(count, MAX_ENTRIES);
    assert_eq!(home.place.known(&file(0)), None);
    assert!(!home.at(".cache/runner/new-0").exists());
    assert!(home.place.known(&file(1)).is_some());
}

#[test]
fn concurrent_runs_read_and_write_whole_entries() {
    let home = Home::new();
    home.place.keep(&file(2), &digest('0')).unwrap();
    std::thread::scope(|threads| {
        for digit in ['a', 'b', 'c', 'd'] {
            let place = &home.place;
            threads.spawn(move || {
                for _ in 0..50 {
                    place.keep(&file(2), &digest(digit)).unwrap();
                    assert!(place.known(&file(2)).is_some());
                }
            });
        }
    });
    home.entry();
}

fn bind(source: &Path, access: Access) -> Bind {
    Bind {
        source: source.into(),
        target: source.into(),
        device: 0,
        inode: 0,
        kind: BindKind::Directory,
        access,
    }
}

#[test]
fn place_follows_the_environment() {
    let home = Home::new();
    let (home_dir, named) = (home.at(""), home.at("named"));
    fs::create_dir(&named).unwrap();
    let used = |home: Option<&Path>, cache_home: Option<&str>| {
        Places::of(home.map(Path::as_os_str), cache_home.map(OsStr::new)).used
    };
    let usual = used(Some(&home_dir), None).unwrap();
    assert_eq!(usual.path(), home.at(".cache/runner"));
    let other = used(Some(&home_dir), named.to_str()).unwrap();
    assert_eq!(other.path(), named.join("runner"));
    // The specification has relative paths ignored.
    for relative in ["", "named"] {
        assert_eq!(used(Some(&home_dir), Some(relative)), Some(usual.clone()));
    }
    assert_eq!(used(Some(&home_dir), Some("/no/such")), None);
    assert_eq!(used(None, None), None);
}

#[test]
fn client_sees_no_cache_that_is_used() {
    let home = Home::new();
    let (home_dir, named) = (home.at(""), home.at("named"));
    for directory in ["named", ".cache/other"] {
        fs::create_dir_all(home.at(directory)).unwrap();
    }
    let permitted = |path: &str, access: Access| {
        let places = Places::of(Some(home_dir.as_os_str()), Some(named.as_os_str()));
        places.permitted(&[bind(&home.at(path), access)])
    };
    for path in [
        "",
        ".cache",
        ".cache/runner",
        ".cache/runner/1-2",
        "named",
        "named/runner",
    ] {
        let source = home.at(path);
        assert_eq!(
            permitted(path, Access::Write),
            Permitted::Refuse(source),
            "{path}"
        );
        for access in [Access::Read, Access::ReadExecute] {
            assert_eq!(permitted(path, access), Permitted::Avoid, "{path}");
        }
    }
    for path in [".cache/other", "project"] {
        for access in [Access::Read, Access::Write] {
            let used = permitted(path, access);
            assert!(matches!(used, Permitted::Use(_)), "{path}: {used:?}");
        }
    }
}
