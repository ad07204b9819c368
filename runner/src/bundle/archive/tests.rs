//! Archives of a home, with the report of the walk over it.

use std::fs;
use std::io::{Read as _, Seek as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use policy::Reference;
use tempfile::TempDir;

use super::*;
use crate::collect::files::{self, Found, walk};

const SECRET: &str = "runner-key-0123456789abcdef";
/// Value of a user's variable.
const VALUE: &str = "of-its/users";

fn secrets() -> SecretScanner {
    let secrets = SecretScanner::new(SECRET).unwrap();
    secrets.hiding([("TOKEN", VALUE)])
}

/// A home, and a file for its archive.
struct Made {
    home: TempDir,
    archive: File,
    limits: Limits,
}

/// Entry of an archive: its name, type, mode and content.
type Stored = (String, EntryType, u32, Vec<u8>);

impl Made {
    fn new() -> Self {
        let case = policy::case(&Reference::BuiltIn("case-b".to_owned())).unwrap();
        Self {
            home: tempfile::tempdir().unwrap(),
            archive: tempfile::tempfile().unwrap(),
            limits: case.sandbox.limits,
        }
    }

    fn at(&self, path: impl AsRef<Path>) -> PathBuf {
        self.home.path().join(path)
    }

    fn file(&self, path: impl AsRef<Path>, content: impl AsRef<[u8]>) {
        let at = self.at(path);
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        fs::write(at, content).unwrap();
    }

    fn reported(&self) -> Vec<FileEntry> {
        let bounds = files::Bounds {
            bytes: 2 * self.limits.home_bytes,
            entries: self.limits.home_files,
        };
        let home = File::open(self.home.path()).unwrap().into();
        let mut found = Found::default();
        walk(Root::Home, home, &secrets(), bounds, &mut found);
        found.files
    }

    fn copied(&self) -> (Copied, Vec<Stored>) {
        self.copied_as(&self.reported())
    }

    fn copied_as(&self, reported: &[FileEntry]) -> (Copied, Vec<Stored>) {
        let empty = tempfile::tempdir().unwrap();
        let paths = [self.home.path(), empty.path(), empty.path()];
        let trees = paths.map(|path| File::open(path).unwrap().into());
        let trees = Trees::from_each(trees.into_iter()).unwrap();
        let mut copied = Copied::default();
        let (limits, secrets) = (&self.limits, secrets());
        write(
            &self.archive,
            &trees,
            reported,
            limits,
            &secrets,
            &mut copied,
        )
        .unwrap();
        let mut stored = Vec::new();
        (&self.archive).rewind().unwrap();
        for entry in tar::Archive::new(&self.archive).entries().unwrap() {
            let mut entry = entry.unwrap();
            let mut content = entry.link_name_bytes().unwrap_or_default().into_owned();
            entry.read_to_end(&mut content).unwrap();
            let header = entry.header();
            let name = printable(&entry.path_bytes());
            stored.push((name, header.entry_type(), header.mode().unwrap(), content));
        }
        stored.sort_by(|one, other| one.0.cmp(&other.0));
        (copied, stored)
    }
}

fn reasons(copied: &Copied) -> Vec<String> {
    let line = |one: &Exception| format!("{}: {}", one.path, one.reason);
    let mut lines: Vec<_> = copied.exceptions.iter().map(line).collect();
    lines.sort();
    lines
}

fn names(stored: &[Stored]) -> Vec<&str> {
    stored.iter().map(|(name, ..)| name.as_str()).collect()
}

#[test]
fn objects_are_stored_as_found() {
    let made = Made::new();
    let long = "n".repeat(255);
    made.file("d/set id", "text");
    made.file("new\nline", "");
    made.file(&long, "long");
    symlink(&long, made.at("link")).unwrap();
    symlink("/etc/../x//y", made.at("out")).unwrap();
    nix::unistd::mkfifo(&made.at("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    for (path, mode) in [
        ("d/set id", 0o4751),
        ("new\nline", 0o600),
        (&long, 0o644),
        ("d", 0o1777),
    ] {
        fs::set_permissions(made.at(path), fs::Permissions::from_mode(mode)).unwrap();
    }
    let (copied, stored) = made.copied();
    let entry = |name: &str, kind, mode, content: &str| {
        (
            format!("home/{name}"),
            kind,
            mode,
            content.as_bytes().to_vec(),
        )
    };
    assert_eq!(
        stored,
        [
            entry("d", EntryType::Directory, 0o1777, ""),
            entry("d/set id", EntryType::Regular, 0o4751, "text"),
            entry("link", EntryType::Symlink, 0o777, &long),
            entry("new\nline", EntryType::Regular, 0o600, ""),
            entry(&long, EntryType::Regular, 0o644, "long"),
            entry("out", EntryType::Symlink, 0o777, "/etc/../x//y"),
            entry("pipe", EntryType::Fifo, 0o700, ""),
        ]
    );
    assert_eq!(
        (copied.left_out, copied.lost.len(), copied.exceptions.len()),
        (0, 0, 0)
    );
}

#[test]
fn changed_files_are_left_out_and_lost() {
    let made = Made::new();
    for name in ["changed", "gone", "grown", "same"] {
        made.file(name, "before");
    }
    let reported = made.reported();
    made.file("changed", "after!");
    made.file("grown", "before and after");
    made.file("new", "x");
    fs::remove_file(made.at("gone")).unwrap();
    let (copied, stored) = made.copied_as(&reported);
    assert_eq!(names(&stored), ["home/same"]);
    let mut lost = copied.lost.clone();
    lost.sort();
    assert_eq!(lost, ["home/changed", "home/gone", "home/grown"]);
    let [changed, gone, grown, new] = reasons(&copied).try_into().unwrap();
    assert!(
        changed.starts_with("home/changed: its SHA-256 is "),
        "{changed}"
    );
    assert_eq!(gone, "home/gone: it no longer existed");
    assert!(grown.starts_with("home/grown: its SHA-256 is "), "{grown}");
    assert_eq!(new, "home/new: the report does not list it");
    assert_eq!(copied.left_out, 4);
}

#[test]
fn too_large_file_is_left_out_and_links_count() {
    let mut made = Made::new();
    made.limits.home_bytes = 500;
    made.file("one", [b'x'; 600]);
    fs::hard_link(made.at("one"), made.at("two")).unwrap();
    File::create(made.at("sparse"))
        .unwrap()
        .set_len(1 << 40)
        .unwrap();
    let (copied, stored) = made.copied();
    assert_eq!(stored.len(), 1);
    let told = reasons(&copied).join("\n");
    assert!(
        told.contains(": 600 bytes, and 400 may still be copied"),
        "{told}"
    );
    assert!(
        told.contains("home/sparse: 1099511627776 bytes, and "),
        "{told}"
    );
}

#[test]
fn entries_beyond_the_bound_have_one_line() {
    let mut made = Made::new();
    (0..20).for_each(|number| made.file(number.to_string(), ""));
    made.limits.home_files = 5;
    let (copied, stored) = made.copied();
    assert_eq!((stored.len(), copied.exceptions.len()), (5, 1));
    assert!(copied.exceptions[0].reason.contains("over 5 entries"));
}

#[test]
fn holes_take_no_space_in_the_archive() {
    const SIZE: u64 = 8 << 20;
    let made = Made::new();
    // More ranges than the main header and one further header have.
    for (name, ranges, end) in [("many", 30, 1_u64), ("few", 2, 0), ("none", 0, 0)] {
        let file = File::create(made.at(name)).unwrap();
        file.set_len(SIZE).unwrap();
        for range in 0..ranges {
            file.write_all_at(b"x", (range * 2 + 1) << 17).unwrap();
        }
        file.write_all_at(&b"end"[..3 * end as usize], SIZE - 3)
            .unwrap();
    }
    let (copied, stored) = made.copied();
    assert!(copied.exceptions.is_empty());
    for (name, kind, _, content) in stored {
        assert_eq!(
            (kind, content.len() as u64),
            (EntryType::GNUSparse, SIZE),
            "{name}"
        );
        let original = fs::read(made.at(name.strip_prefix("home/").unwrap())).unwrap();
        assert!(content == original, "{name}");
    }
    assert!(made.archive.metadata().unwrap().size() < 1 << 20);
}

#[test]
fn unshowable_names_are_replaced() {
    let made = Made::new();
    let spelt: String = SECRET.bytes().map(|byte| format!("%{byte:02x}")).collect();
    made.file(SECRET, "one");
    made.file(&spelt, "two");
    made.file(format!("d/{VALUE}/below"), "three");
    let (copied, stored) = made.copied();
    let replaced = stored
        .iter()
        .filter(|(name, ..)| name.starts_with("renamed/"));
    let mut contents: Vec<_> = replaced.map(|(.., content)| &**content).collect();
    contents.sort();
    assert_eq!(contents, [&b""[..], b"one", b"three", b"two"]);
    assert!(!names(&stored).concat().contains(VALUE));
    let paths: BTreeSet<_> = copied.exceptions.iter().map(|one| &*one.path).collect();
    let expected = [
        "home/<credential>",
        "home/d/<value of TOKEN>",
        "home/d/<value of TOKEN>/below",
    ];
    assert_eq!(paths, BTreeSet::from(expected));
    assert!(copied.exceptions.iter().all(|one| one.stored_as.is_some()));
    assert_eq!((copied.left_out, copied.lost.len()), (0, 0));
}

#[test]
fn name_too_long_for_tar_is_replaced() {
    let made = Made::new();
    let deep: PathBuf = std::iter::repeat_n("d".repeat(200), 30).collect();
    let at = std::env::current_dir().unwrap();
    let mut held = File::open(made.home.path()).unwrap();
    for name in &deep {
        nix::sys::stat::mkdirat(&held, name, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let name = std::ffi::CString::new(name.as_encoded_bytes()).unwrap();
        held = File::from(crate::collect::copy::directory(&held, &name).unwrap());
    }
    assert_eq!(std::env::current_dir().unwrap(), at);
    let (copied, stored) = made.copied();
    assert_eq!(stored.len(), 30);
    assert_eq!(copied.exceptions.len(), 11);
    assert!(copied.exceptions[0].path.len() > MAX_NAME);
    assert_eq!(
        copied.exceptions[0].reason,
        "its name is too long for tar(1)"
    );
}

#[test]
fn link_to_a_secret_is_an_exception() {
    let made = Made::new();
    for (name, target) in [("key", SECRET), ("value", VALUE)] {
        symlink(format!("/x/{target}"), made.at(name)).unwrap();
    }
    let (copied, stored) = made.copied();
    assert!(stored.is_empty());
    assert_eq!((copied.exceptions.len(), copied.left_out), (2, 0));
}

#[test]
fn file_with_a_hidden_value_is_withheld() {
    let made = Made::new();
    let size = PIECE + 100;
    let begins = (PIECE - VALUE.len() - 1..PIECE + 2).chain([0, size - VALUE.len()]);
    for begin in begins {
        let mut content = vec![b'x'; size];
        content[begin..begin + VALUE.len()].copy_from_slice(VALUE.as_bytes());
        made.file(format!("at-{begin}"), &content);
    }
    // One value follows zeros; another one has zeros between its halves.
    let zeros = vec![0; PIECE];
    made.file("behind", [&zeros, VALUE.as_bytes()].concat());
    let (one, other) = VALUE.as_bytes().split_at(6);
    let head = [&vec![b'x'; PIECE - one.len()], one].concat();
    made.file("halves", [&head, zeros.as_slice(), other].concat());
    let (copied, stored) = made.copied();
    assert_eq!(names(&stored), ["home/halves"]);
    assert_eq!(
        copied.withheld,
        fs::read_dir(made.home.path()).unwrap().count() - 1
    );
    assert_eq!((copied.left_out, copied.lost.len()), (0, 0));
    let told = ": the value of TOKEN is in it, which no report shows";
    assert!(reasons(&copied).iter().all(|line| line.ends_with(told)));
}

#[test]
fn changed_file_with_a_hidden_value_is_lost() {
    let made = Made::new();
    made.file("changed", "before");
    let reported = made.reported();
    made.file("changed", VALUE);
    let (copied, stored) = made.copied_as(&reported);
    assert_eq!(
        (stored.len(), copied.lost.len(), copied.withheld),
        (0, 1, 0)
    );
}
