//! The walk over trees that a hostile client may leave.

use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use super::*;

const SECRET: &str = "runner-key-0123456789abcdef";
const WIDE: Bounds = Bounds {
    bytes: 1 << 20,
    entries: 1000,
};

fn walked(path: &Path, bounds: Bounds) -> Found {
    let mut found = Found::default();
    let directory = OwnedFd::from(fs::File::open(path).unwrap());
    walk(
        Root::Home,
        directory,
        &SecretScanner::new(SECRET).unwrap(),
        bounds,
        &mut found,
    );
    found
}

fn paths(found: &Found) -> Vec<&str> {
    found.files.iter().map(|file| file.path.as_str()).collect()
}

#[test]
fn every_kind_is_listed_and_no_link_followed() {
    let home = tempfile::tempdir().unwrap();
    fs::create_dir(home.path().join("d")).unwrap();
    fs::write(home.path().join("d/f"), "abc").unwrap();
    symlink("/etc", home.path().join("link")).unwrap();
    nix::unistd::mkfifo(&home.path().join("fifo"), Mode::S_IRWXU).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(home.path().join("socket")).unwrap();
    let found = walked(home.path(), WIDE);
    assert_eq!(paths(&found), ["d", "d/f", "fifo", "link", "socket"]);
    let kinds: Vec<FileKind> = found.files.iter().map(|file| file.kind).collect();
    use FileKind::{Directory, Fifo, File, Socket, Symlink};
    assert_eq!(kinds, [Directory, File, Fifo, Symlink, Socket]);
    let targets = found.files.iter().map(|file| file.target.as_deref());
    let expected = [None, None, None, Some("/etc"), None];
    assert_eq!(targets.collect::<Vec<_>>(), expected);
    let digest = found.files[1].sha256.as_deref().unwrap();
    assert_eq!(
        digest,
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    );
    assert!(found.gaps.is_empty());
}

/// Link targets count towards the bound on paths.
#[test]
fn targets_of_links_have_no_room_of_their_own() {
    let home = tempfile::tempdir().unwrap();
    for number in 0..20 {
        symlink("t\n".repeat(500), home.path().join(number.to_string())).unwrap();
    }
    let bounds = Bounds {
        entries: 20,
        ..WIDE
    };
    let found = walked(home.path(), bounds);
    assert!(found.files.len() < 10, "{}", found.files.len());
    assert!(found.gaps[0].detail.contains("paths of more than"));
}

#[test]
fn modes_that_shut_everybody_out_are_reported_and_do_not_hide_anything() {
    let home = tempfile::tempdir().unwrap();
    fs::create_dir(home.path().join("d")).unwrap();
    fs::write(home.path().join("d/f"), SECRET).unwrap();
    fs::set_permissions(home.path().join("d/f"), fs::Permissions::from_mode(0o000)).unwrap();
    fs::set_permissions(home.path().join("d"), fs::Permissions::from_mode(0o000)).unwrap();
    let found = walked(home.path(), WIDE);
    assert_eq!(paths(&found), ["d", "d/f"]);
    assert!(found.files.iter().all(|file| file.mode == 0));
    assert_eq!(found.sightings[0].place, "file home: d/f");
    assert!(found.gaps.is_empty());
}

#[test]
fn names_that_are_no_utf8_are_spelt_out() {
    let home = tempfile::tempdir().unwrap();
    let name = std::ffi::OsString::from_vec(vec![b'a', 0xFF, b'\n']);
    fs::write(home.path().join(name), "").unwrap();
    assert_eq!(paths(&walked(home.path(), WIDE)), ["a\\xff\n"]);
}

#[test]
fn a_credential_in_a_name_or_a_link_is_found_and_replaced() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join(SECRET), "").unwrap();
    symlink(SECRET, home.path().join("link")).unwrap();
    let found = walked(home.path(), WIDE);
    assert_eq!(paths(&found), ["<credential>", "link"]);
    assert_eq!(found.files[1].target.as_deref(), Some("<credential>"));
    assert_eq!(found.sightings.len(), 2);
}

#[test]
fn beyond_the_bounds_is_a_gap() {
    let home = tempfile::tempdir().unwrap();
    fs::File::create(home.path().join("sparse"))
        .unwrap()
        .set_len(1 << 40)
        .unwrap();
    let found = walked(home.path(), WIDE);
    assert_eq!((paths(&found), found.gaps.len()), (vec!["sparse"], 1));
    for index in 0..9 {
        fs::write(home.path().join(index.to_string()), "").unwrap();
    }
    let found = walked(home.path(), Bounds { entries: 5, ..WIDE });
    assert_eq!(found.files.len(), 5);
    assert!(
        found
            .gaps
            .iter()
            .any(|gap| gap.detail.contains("over 5 entries"))
    );
}

#[test]
fn long_paths_and_many_gaps_are_bounded() {
    let home = tempfile::tempdir().unwrap();
    let deep = home.path().join("d".repeat(255));
    fs::create_dir(&deep).unwrap();
    for index in 0..20 {
        fs::write(deep.join(index.to_string()), "").unwrap();
    }
    let bounds = |entries| Bounds { entries, ..WIDE };
    assert!(walked(home.path(), bounds(30)).gaps.is_empty());
    let found = walked(home.path(), bounds(21));
    assert_eq!((found.files.len(), found.gaps.len()), (20, 1));
    for index in 0..MAX_GAPS + 7 {
        let file = fs::File::create(home.path().join(format!("sparse-{index}")));
        file.unwrap().set_len(1 << 40).unwrap();
    }
    let found = walked(home.path(), WIDE);
    assert_eq!(found.gaps.len() as u64, MAX_GAPS + 1);
    assert!(found.gaps[100].detail.starts_with("and 7 more"));
}

#[test]
fn a_deep_tree_is_walked_to_the_bound_and_no_deeper() {
    let home = tempfile::tempdir().unwrap();
    let mut deep = home.path().to_path_buf();
    for _ in 0..MAX_DEPTH + 20 {
        deep.push("d");
    }
    fs::create_dir_all(&deep).unwrap();
    let found = walked(home.path(), WIDE);
    assert_eq!(found.files.len(), MAX_DEPTH + 1);
    assert_eq!(found.gaps.len(), 1);
}
