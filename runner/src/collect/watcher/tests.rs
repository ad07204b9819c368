//! Objects created and removed in two directories, with the events in the kernel's order.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use model::evidence::{FileKind, WatchCut};

use super::*;

const SECRET: &str = "runner-key-0123456789abcdef";

/// Two watched trees.
struct Watched {
    home: tempfile::TempDir,
    tmp: tempfile::TempDir,
    watcher: Watcher,
}

impl Watched {
    fn new() -> Self {
        let (home, tmp) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let open = |path: &Path| OwnedFd::from(fs::File::open(path).unwrap());
        let mut watcher = Watcher::default();
        let (in_home, in_tmp) = (open(home.path()), open(tmp.path()));
        watcher.start(None, &[(Root::Home, &in_home), (Root::Tmp, &in_tmp)]);
        assert!(matches!(watcher.source, Some(Source::Watching(_))));
        Self { home, tmp, watcher }
    }

    fn source(&mut self) -> &mut Source {
        self.watcher.source.as_mut().unwrap()
    }

    fn home(&self, path: &str) -> std::path::PathBuf {
        self.home.path().join(path)
    }

    /// Handles all events up to now.
    fn settle(&mut self) {
        while self.source().take_events().is_ok() {}
    }

    fn found(self) -> Found {
        let mut found = Found::default();
        let secrets = SecretScanner::new(SECRET).unwrap();
        self.watcher.finish().add_to(&mut found, &secrets);
        found
    }

    fn paths(self) -> Vec<String> {
        let files = self.found().files;
        files.into_iter().map(|entry| entry.path).collect()
    }
}

#[tokio::test]
async fn what_is_gone_is_listed_and_what_is_there_is_not() {
    let watched = Watched::new();
    fs::write(watched.home("kept"), "").unwrap();
    fs::write(watched.home("removed"), "").unwrap();
    fs::remove_file(watched.home("removed")).unwrap();
    fs::write(watched.tmp.path().join("state.tmp"), "").unwrap();
    fs::rename(
        watched.tmp.path().join("state.tmp"),
        watched.tmp.path().join("state"),
    )
    .unwrap();
    let files = watched.found().files;
    let listed: Vec<_> = files
        .iter()
        .map(|entry| (entry.root, entry.path.as_str(), entry.transient))
        .collect();
    assert_eq!(
        listed,
        [
            (Root::Home, "removed", true),
            (Root::Tmp, "state.tmp", true)
        ]
    );
}

#[tokio::test]
async fn kind_mode_and_size_are_the_last_that_were_seen() {
    let mut watched = Watched::new();
    fs::write(watched.home("file"), "").unwrap();
    symlink("/nowhere", watched.home("link")).unwrap();
    watched.settle();
    fs::set_permissions(watched.home("file"), fs::Permissions::from_mode(0o640)).unwrap();
    fs::write(watched.home("file"), "12345").unwrap();
    watched.settle();
    fs::remove_file(watched.home("file")).unwrap();
    fs::remove_file(watched.home("link")).unwrap();
    let files = watched.found().files;
    let [file, link] = files.as_slice() else {
        panic!("{files:?}");
    };
    assert_eq!(
        (file.kind, file.mode, file.bytes),
        (FileKind::File, 0o640, 5)
    );
    assert_eq!(link.kind, FileKind::Symlink);
}

#[tokio::test]
async fn directories_are_watched_as_they_appear_with_what_is_in_them_already() {
    let mut watched = Watched::new();
    fs::create_dir_all(watched.home("a/b")).unwrap();
    fs::write(watched.home("a/b/early"), "").unwrap();
    watched.settle();
    fs::write(watched.home("a/b/late"), "").unwrap();
    fs::remove_dir_all(watched.home("a")).unwrap();
    assert_eq!(watched.paths(), ["a", "a/b", "a/b/early", "a/b/late"]);
}

#[tokio::test]
async fn a_directory_that_was_renamed_is_watched_under_its_new_name() {
    let mut watched = Watched::new();
    fs::create_dir_all(watched.home("old/below")).unwrap();
    watched.settle();
    fs::rename(watched.home("old"), watched.home("new")).unwrap();
    watched.settle();
    fs::write(watched.home("new/below/file"), "").unwrap();
    fs::remove_file(watched.home("new/below/file")).unwrap();
    assert_eq!(watched.paths(), ["new/below/file", "old", "old/below"]);
}

#[tokio::test]
async fn no_link_leads_out_of_the_trees() {
    let mut watched = Watched::new();
    let outside = tempfile::tempdir().unwrap();
    symlink(outside.path(), watched.home("link")).unwrap();
    fs::create_dir(watched.home("d")).unwrap();
    symlink(outside.path(), watched.home("d/link")).unwrap();
    watched.settle();
    fs::write(outside.path().join("file"), "").unwrap();
    fs::remove_file(outside.path().join("file")).unwrap();
    assert!(watched.paths().is_empty());
}

#[tokio::test]
async fn the_credential_in_a_name_is_found_and_replaced() {
    let watched = Watched::new();
    fs::write(watched.home(SECRET), "").unwrap();
    fs::remove_file(watched.home(SECRET)).unwrap();
    let found = watched.found();
    assert_eq!(found.files[0].path, "<credential>");
    let place = "name of the file <credential>, which is gone";
    assert_eq!(found.sightings[0].place, place);
}

#[tokio::test]
async fn nothing_is_looked_at_beyond_the_bound() {
    let mut watched = Watched::new();
    let Source::Watching(watching) = watched.source() else {
        panic!("not watched by inotify");
    };
    watching.seen.remaining.steps = 2;
    for name in ["a", "b", "c"] {
        fs::create_dir(watched.home(name)).unwrap();
        fs::remove_dir(watched.home(name)).unwrap();
    }
    let gone = watched.watcher.finish();
    assert_eq!(
        (gone.paths.len(), gone.watch),
        (2, FileWatch::Cut(WatchCut::Steps))
    );
}

#[tokio::test]
async fn directories_beyond_the_watches_are_named() {
    for (limit, watch) in [
        // The two roots count as well.
        (4, FileWatch::BestEffort),
        (3, FileWatch::Cut(WatchCut::Directories(3))),
    ] {
        let mut watched = Watched::new();
        let Source::Watching(watching) = watched.source() else {
            panic!("not watched by inotify");
        };
        watching.max_watches = limit;
        for name in ["a", "b"] {
            fs::create_dir(watched.home(name)).unwrap();
        }
        watched.settle();
        assert_eq!(watched.watcher.finish().watch, watch);
    }
    let words = WatchCut::Directories(8192).words();
    assert!(
        words.ends_with("more than 8192 directories at one time"),
        "{words}"
    );
}

#[tokio::test]
async fn names_that_the_kernel_dropped_are_missed() {
    let mut watched = Watched::new();
    fs::write(watched.home("file"), "").unwrap();
    fs::remove_file(watched.home("file")).unwrap();
    watched.settle();
    // More events than the queue holds (fs.inotify.max_queued_events).
    let queued = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
    for number in 0..=queued.trim().parse::<u32>().unwrap() {
        let path = watched.home(&format!("{}", number % 2));
        fs::create_dir(&path).unwrap();
        fs::remove_dir(&path).unwrap();
    }
    let gone = watched.watcher.finish();
    assert_eq!(gone.watch, FileWatch::Cut(WatchCut::Queue));
    assert!(gone.paths.iter().any(|(_, path, _)| path == b"file"));
}

#[tokio::test]
async fn following_returns_when_something_has_happened() {
    let mut watched = Watched::new();
    fs::write(watched.home("file"), "").unwrap();
    let soon = std::time::Duration::from_secs(5);
    tokio::time::timeout(soon, watched.watcher.follow())
        .await
        .unwrap();
    fs::remove_file(watched.home("file")).unwrap();
    assert_eq!(watched.paths(), ["file"]);
}
