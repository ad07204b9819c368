//! Copies of a tree, with a report that lists all of it.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};

use model::digest;
use tempfile::TempDir;

use super::*;

const SECRET: &str = "runner-key-0123456789abcdef";

const BOUNDS: Bounds = Bounds {
    bytes: 1 << 20,
    entries: 1_000,
    paths: 1 << 20,
};

/// Value of a user's variable.
const VALUE: &str = "of-its/users";

fn secrets() -> SecretScanner {
    SecretScanner::new(SECRET)
        .unwrap()
        .hiding([("TOKEN", VALUE)])
}

/// A home and a directory for its copy.
struct Made {
    home: TempDir,
    bundle: TempDir,
    reported: Vec<FileEntry>,
}

impl Made {
    fn new() -> Self {
        Self {
            home: tempfile::tempdir().unwrap(),
            bundle: tempfile::tempdir().unwrap(),
            reported: Vec::new(),
        }
    }

    /// Creates a file of the client, which the report lists.
    fn file(&mut self, path: impl AsRef<Path>, content: &[u8]) {
        let at = self.home.path().join(&path);
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        fs::write(at, content).unwrap();
        self.report(path, Some(digest::of_bytes(content)));
    }

    fn report(&mut self, path: impl AsRef<Path>, sha256: Option<String>) {
        let secrets = secrets();
        self.reported.push(FileEntry {
            expected: None,
            root: Root::Home,
            path: shown(path.as_ref().as_os_str().as_encoded_bytes(), &secrets),
            kind: FileKind::File,
            mode: 0o640,
            bytes: 0,
            sha256,
            target: None,
            transient: false,
        });
    }

    fn copied(&self, bounds: Bounds) -> Copied {
        let copied = self.tried(bounds);
        assert!(copied.broken.is_none());
        copied
    }

    /// Returns the result of the copy, which may be broken.
    fn tried(&self, bounds: Bounds) -> Copied {
        let open = |path: &Path| OwnedFd::from(File::open(path).unwrap());
        let (home, bundle) = (open(self.home.path()), open(self.bundle.path()));
        let secrets = secrets();
        let mut copied = Copied::default();
        let of = (Root::Home, &home);
        copy_tree(of, &bundle, &self.reported, &secrets, bounds, &mut copied);
        for file in &copied.files {
            let content = fs::read(self.bundle.path().join(&file.path)).unwrap();
            let found = (content.len() as u64, digest::of_bytes(&content));
            assert_eq!(found, (file.bytes, file.sha256.clone()), "{}", file.path);
        }
        copied
    }
}

fn paths(copied: &Copied) -> Vec<&str> {
    let mut paths: Vec<_> = copied.files.iter().map(|file| &*file.path).collect();
    paths.sort_unstable();
    paths
}

fn reasons(copied: &Copied) -> Vec<String> {
    let line = |one: &NotCopied| format!("{}: {}", one.path, one.reason);
    let mut lines: Vec<_> = copied.not_copied.iter().map(line).collect();
    lines.sort();
    lines
}

#[test]
fn a_copy_has_the_mode_that_the_report_has_and_a_harmless_name() {
    let mut made = Made::new();
    made.file("a/.b c", b"text");
    let copied = made.copied(BOUNDS);
    assert_eq!(paths(&copied), ["home/a/%2Eb%20c"]);
    let original = copied.files[0].original.as_ref().unwrap();
    assert_eq!((&*original.path, &*original.mode), ("a/.b c", "0640"));
    assert!(copied.lost.is_empty() && copied.not_copied.is_empty());
}

#[test]
fn a_link_is_listed_with_its_target_and_never_made() {
    let made = Made::new();
    symlink(format!("/x/{SECRET}"), made.home.path().join("link")).unwrap();
    let copied = made.copied(BOUNDS);
    let target = copied.not_copied[0].target.as_deref();
    assert_eq!(target, Some("/x/<credential>"));
    assert_eq!(fs::read_dir(made.bundle.path()).unwrap().count(), 0);
}

#[test]
fn a_copy_that_is_not_what_the_report_has_is_taken_away_and_told() {
    let mut made = Made::new();
    made.file("changed", b"before");
    made.file("gone", b"x");
    made.file("same", b"x");
    fs::write(made.home.path().join("changed"), "after!").unwrap();
    fs::remove_file(made.home.path().join("gone")).unwrap();
    fs::write(made.home.path().join("new"), "x").unwrap();
    let copied = made.copied(BOUNDS);
    assert_eq!(paths(&copied), ["home/same"]);
    let mut lost = copied.lost.clone();
    lost.sort();
    assert_eq!(lost, ["home/changed", "home/gone"]);
    let [changed, gone, new] = reasons(&copied).try_into().unwrap();
    assert!(changed.starts_with("changed: its SHA-256 is "), "{changed}");
    assert_eq!(gone, "gone: it no longer existed");
    assert_eq!(new, "new: the report does not list it");
    assert_eq!(
        fs::read_dir(made.bundle.path().join("home"))
            .unwrap()
            .count(),
        1
    );
}

#[test]
fn what_is_too_large_is_left_out_and_hard_links_count_each() {
    let mut made = Made::new();
    made.file("one", &[b'x'; 600]);
    fs::hard_link(made.home.path().join("one"), made.home.path().join("two")).unwrap();
    made.report("two", None);
    let sparse = File::create(made.home.path().join("sparse")).unwrap();
    sparse.set_len(1 << 40).unwrap();
    made.report("sparse", None);
    let bytes = 1_000;
    let copied = made.copied(Bounds { bytes, ..BOUNDS });
    assert_eq!(copied.files.len(), 1);
    let [linked, sparse] = reasons(&copied).try_into().unwrap();
    let (linked, sparse) = if linked.starts_with("sparse") {
        (sparse, linked)
    } else {
        (linked, sparse)
    };
    assert!(
        linked.ends_with(": 600 bytes, and 400 may still be copied"),
        "{linked}"
    );
    assert!(
        sparse.starts_with("sparse: 1099511627776 bytes, and "),
        "{sparse}"
    );
}

#[test]
fn what_cost_its_maker_no_space_costs_none_here() {
    let mut made = Made::new();
    let size = 8 << 20;
    let mut content = vec![0; size];
    content[size / 2] = b'x';
    made.file("holes", &content);
    let copied = made.copied(Bounds {
        bytes: size as u64,
        ..BOUNDS
    });
    let status = fs::metadata(made.bundle.path().join(&copied.files[0].path)).unwrap();
    assert_eq!(status.len(), size as u64);
    assert!(
        status.blocks() * 512 < 1 << 20,
        "{} blocks",
        status.blocks()
    );
}

#[test]
fn beyond_the_entries_there_is_one_line_and_no_more() {
    let mut made = Made::new();
    (0..20).for_each(|number| made.file(number.to_string(), b""));
    made.reported
        .iter_mut()
        .for_each(|entry| entry.sha256 = None);
    let copied = made.copied(Bounds {
        entries: 5,
        ..BOUNDS
    });
    assert_eq!((copied.files.len(), copied.not_copied.len()), (5, 1));
    assert!(copied.not_copied[0].reason.contains("over 5 entries"));
}

#[test]
fn names_that_become_one_without_the_credential_are_told_by_a_number() {
    let mut made = Made::new();
    let spelt: String = SECRET.bytes().map(|byte| format!("%{byte:02x}")).collect();
    for name in [SECRET, &spelt] {
        made.file(name, b"x");
    }
    let copied = made.copied(BOUNDS);
    assert_eq!(
        paths(&copied),
        ["home/%3Ccredential%3E~1", "home/%3Ccredential%3E~2"]
    );
    assert!(copied.lost.is_empty() && copied.not_copied.is_empty());
}

#[test]
fn files_that_are_shown_by_one_path_are_each_held_against_their_own_entry() {
    let mut made = Made::new();
    for number in 0..256_u32 {
        let piece = |(bit, byte): (u32, u8)| match number.checked_shr(bit).unwrap_or(0) & 1 {
            0 => char::from(byte).to_string(),
            _ => format!("%{byte:02x}"),
        };
        let name: String = (0..).zip(SECRET.bytes()).map(piece).collect();
        made.file(&name, &number.to_be_bytes());
    }
    let copied = made.copied(BOUNDS);
    assert_eq!(copied.files.len(), 256);
    assert!(copied.lost.is_empty() && copied.not_copied.is_empty());
    let original = |file: &Listed| file.original.as_ref().unwrap().path.clone();
    let shown: BTreeSet<String> = copied.files.iter().map(original).collect();
    assert_eq!(shown.len(), 1);
}

#[test]
fn what_lies_deep_goes_on_in_a_directory_of_its_own() {
    let mut made = Made::new();
    let name = "d".repeat(100);
    let deep: PathBuf = std::iter::repeat_n(name.as_str(), 30).collect();
    made.file(deep.join("bottom"), b"x");
    made.file(deep.parent().unwrap().join("beside"), b"x");
    let copied = made.copied(BOUNDS);
    let paths = paths(&copied);
    assert_eq!(paths.len(), 2);
    for path in paths {
        assert!(
            path.starts_with("far/") && path.len() < MAX_PATH + 256,
            "{path}"
        );
    }
    assert!(copied.lost.is_empty() && copied.not_copied.is_empty());
    let original = copied.files[0].original.as_ref().unwrap();
    assert!(original.path.len() > 2_900);
}

#[test]
fn an_empty_directory_is_listed_and_not_made() {
    let made = Made::new();
    fs::create_dir_all(made.home.path().join("a/b")).unwrap();
    let copied = made.copied(BOUNDS);
    assert_eq!(
        reasons(&copied),
        [format!("a/b: {EMPTY}"), format!("a: {EMPTY}")]
    );
    assert_eq!(fs::read_dir(made.bundle.path()).unwrap().count(), 0);
}

#[test]
fn a_file_with_a_value_of_the_users_is_listed_wherever_the_pieces_end() {
    let mut made = Made::new();
    let size = PIECE + 100;
    for begin in (PIECE - VALUE.len() - 1..PIECE + 2).chain([0, size - VALUE.len()]) {
        let mut content = vec![b'x'; size];
        content[begin..begin + VALUE.len()].copy_from_slice(VALUE.as_bytes());
        made.file(format!("at-{begin}"), &content);
    }
    // One value follows a hole; another one has a hole between its halves.
    let zeros = vec![0; PIECE];
    made.file("behind", &[&zeros, VALUE.as_bytes()].concat());
    let (one, other) = VALUE.as_bytes().split_at(6);
    let head = [&vec![b'x'; PIECE - one.len()], one].concat();
    made.file("halves", &[&head, zeros.as_slice(), other].concat());
    let bytes = 1 << 30;
    let copied = made.copied(Bounds { bytes, ..BOUNDS });
    assert_eq!(paths(&copied), ["home/halves"]);
    assert_eq!(copied.withheld, made.reported.len() - 1);
    assert_eq!(copied.left_out, 0);
    for line in reasons(&copied) {
        let told = ": the value of TOKEN is in it, which no report shows";
        assert!(line.ends_with(told), "{line}");
    }
    // The digest covers the whole file and matches the report.
    assert!(copied.lost.is_empty());
    let home = made.bundle.path().join("home");
    assert_eq!(fs::read_dir(home).unwrap().count(), 1);
}

#[test]
fn a_file_with_a_value_that_is_not_what_the_report_has_is_a_loss() {
    let mut made = Made::new();
    made.file("changed", VALUE.as_bytes());
    fs::write(made.home.path().join("changed"), format!("{VALUE}+")).unwrap();
    let copied = made.copied(BOUNDS);
    assert_eq!((copied.lost.len(), copied.withheld), (1, 0));
    assert!(reasons(&copied)[0].starts_with("changed: its SHA-256 is "));
    assert_eq!(fs::read_dir(made.bundle.path()).unwrap().count(), 0);
}

#[test]
fn no_path_has_a_value_of_the_users_by_its_slashes() {
    let mut made = Made::new();
    made.file(VALUE, b"file");
    made.file(format!("d/{VALUE}/below"), b"below");
    let copied = made.copied(BOUNDS);
    let mut found = paths(&copied);
    found.sort_by_key(|path| path.len());
    let [file, below] = found.try_into().unwrap();
    assert!(file.starts_with("home/of-its/hidden~"), "{file}");
    assert!(below.starts_with("home/d/of-its/hidden~"), "{below}");
    let original = |file: &Listed| file.original.as_ref().unwrap().path.clone();
    let mut originals: Vec<_> = copied.files.iter().map(original).collect();
    originals.sort();
    assert_eq!(originals, ["<value of TOKEN>", "d/<value of TOKEN>/below"]);
}

#[test]
fn what_somebody_else_has_put_in_the_bundle_is_named_and_not_used() {
    for foreign in ["home", "far"] {
        let mut made = Made::new();
        let deep: PathBuf = std::iter::repeat_n("d".repeat(100), 12).collect();
        made.file(deep.join("bottom"), b"x");
        fs::create_dir(made.bundle.path().join(foreign)).unwrap();
        let error = made.tried(BOUNDS).broken.unwrap();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        let told = format!("{foreign} already exists, and this run did not make it");
        assert_eq!(error.to_string(), told);
        let left = fs::read_dir(made.bundle.path().join(foreign)).unwrap();
        assert_eq!(left.count(), 0);
    }
}
