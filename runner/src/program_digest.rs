//! SHA-256 of the client's program, computed beside the run: a large program takes longer to hash than to start.
//!
//! A thread of the lowest priority starts a moment after the client, and leaves a contended processor to it. Short runs
//! have none, because a process ends only once each of its threads has run again. When the client has ended, a thread of
//! normal priority continues the work, because on a busy host the first one might never end. [`cache`] owns the entries
//! of earlier runs.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use std::{future, thread};

use model::digest::{BUFFER_BYTES, Hasher};
use model::report::{Content, DigestSource};
use tokio::time::sleep_until;

mod cache;
mod courtesy;
mod identity;

pub(crate) use cache::{CachePlace, Permitted, permitted};
use courtesy::Courtesy;
use identity::Identity;

/// Pause between the start of the client and that of the thread: many programs have started by then.
const FIRST_PAUSE: Duration = Duration::from_millis(16);
/// Time limit after the run. A slow processor hashes a gigabyte in about ten seconds.
const LIMIT: Duration = Duration::from_secs(60);

/// Pending identity of a program's content; `None` for a program that is part of this executable.
#[derive(Debug)]
pub(crate) struct PendingDigest(Option<Work>);

#[derive(Debug)]
struct Work {
    reading: Arc<Reading>,
    /// Time to begin the work, unless the client has ended by then.
    due: Option<tokio::time::Instant>,
    /// Result of the last thread.
    pending: Option<(Turn, Pending)>,
}

type Pending = Receiver<io::Result<Content>>;

/// The work of one thread, or of two in turn.
#[derive(Debug)]
struct Reading {
    file: File,
    /// Length at the start: another process may keep appending to the file.
    length: u64,
    /// Identity at the start, if the cache may be used.
    identity: Option<(CachePlace, Identity)>,
    /// Time at which the identity was taken.
    begun: SystemTime,
    progress: Mutex<Progress>,
}

/// The part of the file that is hashed.
#[derive(Clone, Debug, Default)]
struct Progress {
    offset: u64,
    hasher: Hasher,
    /// The second thread has continued from this state.
    is_taken: bool,
}

/// Thread that does the work: with the lowest priority beside the client, or with the normal one after the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    Idle,
    Normal,
}

impl PendingDigest {
    /// Notes the identity of a program. Nothing is read before [`Self::start`] or [`Self::wait`].
    ///
    /// # Errors
    /// The error of reading the status of the file.
    pub(crate) fn of(program: File, cache: Option<CachePlace>) -> io::Result<Self> {
        Reading::new(program, cache).map(|reading| {
            Self(Some(Work {
                reading: Arc::new(reading),
                due: None,
                pending: None,
            }))
        })
    }

    /// Returns the digest of a program that is part of this executable: none.
    pub(crate) const fn built_in() -> Self {
        Self(None)
    }

    /// Notes that the client starts.
    pub(crate) fn start(&mut self) {
        if let Some(work) = &mut self.0 {
            work.due = Some(tokio::time::Instant::now() + FIRST_PAUSE);
        }
    }

    /// Waits until it is time to [`begin`](Self::begin). The future is never ready without a start, or after it.
    pub(crate) async fn due(&self) {
        match self.0.as_ref().and_then(|work| work.due) {
            Some(due) => sleep_until(due).await,
            None => future::pending().await,
        }
    }

    /// Begins the work beside the client. If that fails, the program is read after the run.
    pub(crate) fn begin(&mut self) {
        if let Some(work) = &mut self.0 {
            work.due = None;
            let begun = work.reading.begun(Turn::Idle).ok();
            work.pending = begun.map(|pending| (Turn::Idle, pending));
        }
    }

    /// Continues the work with normal priority, because the client has ended.
    ///
    /// # Errors
    /// The errno of a thread that cannot be started. [`Self::wait`] tries again.
    pub(crate) fn hasten(&mut self) -> io::Result<()> {
        let Some(work) = &mut self.0 else {
            return Ok(());
        };
        work.due = None;
        let pending = match work.pending.take() {
            Some((Turn::Normal, pending)) => pending,
            Some((Turn::Idle, pending)) => match pending.try_recv() {
                Ok(found) => ready(found),
                Err(_) => spawn(&work.reading, Turn::Normal)?,
            },
            None => work.reading.begun(Turn::Normal)?,
        };
        work.pending = Some((Turn::Normal, pending));
        Ok(())
    }

    /// Waits for the SHA-256.
    ///
    /// # Errors
    /// The first failed read, or `TimedOut` for a file that takes longer than [`LIMIT`].
    pub(crate) fn wait(&mut self) -> io::Result<Content> {
        let deadline = Instant::now() + LIMIT;
        self.hasten()?;
        let Some(Work {
            reading,
            pending: Some((_, pending)),
            ..
        }) = &self.0
        else {
            return Ok(Content::BuiltIn);
        };
        let found = received(pending, deadline)?;
        // The file may have been changed just before the client was started from it.
        let is_outdated = found.from() == DigestSource::Cache && !reading.is_unchanged();
        if is_outdated {
            received(&spawn(reading, Turn::Normal)?, deadline)
        } else {
            Ok(found)
        }
    }

    /// Stores a SHA-256 that was read in the cache, unless the file has changed since [`Self::of`], or just before. A
    /// cache that cannot be written is no error of the run: the next one reads the file again.
    pub(crate) fn remember(&self, content: &Content) {
        if let (Some(work), Content::Read(sha256)) = (&self.0, content)
            && let Some((cache, known)) = &work.reading.identity
            && known.is_settled(work.reading.begun)
            && work.reading.is_unchanged()
        {
            let _ = cache.keep(known, sha256);
        }
    }
}

/// Result without a thread.
fn ready(found: io::Result<Content>) -> Pending {
    let (done, pending) = sync_channel(1);
    // The receiver is held here, and the channel has room.
    let _ = done.send(found);
    pending
}

fn spawn(reading: &Arc<Reading>, turn: Turn) -> io::Result<Pending> {
    let (done, pending) = sync_channel(1);
    let reading = Arc::clone(reading);
    thread::Builder::new()
        .name("digest".to_owned())
        .spawn(move || {
            // A receiver that is gone has the result of the other thread.
            reading.read(turn).map(|found| done.send(found))
        })
        .map(|_| pending)
}

fn received(pending: &Pending, deadline: Instant) -> io::Result<Content> {
    let left = deadline.saturating_duration_since(Instant::now());
    pending.recv_timeout(left).unwrap_or_else(|error| {
        Err(match error {
            RecvTimeoutError::Timeout => {
                let cause = format!("not read within {} s after the run", LIMIT.as_secs());
                io::Error::new(io::ErrorKind::TimedOut, cause)
            }
            RecvTimeoutError::Disconnected => {
                io::Error::other("the thread that reads it has ended")
            }
        })
    })
}

impl Reading {
    fn new(file: File, cache: Option<CachePlace>) -> io::Result<Self> {
        let begun = SystemTime::now();
        let identity = cache.and_then(|cache| Some((cache, Identity::of(&file)?)));
        Ok(Self {
            length: file.metadata()?.len(),
            identity,
            begun,
            file,
            progress: Mutex::default(),
        })
    }

    /// Finds the SHA-256 in the cache, or starts a thread that reads the file.
    fn begun(self: &Arc<Self>, turn: Turn) -> io::Result<Pending> {
        let known = |(cache, file): &(CachePlace, Identity)| cache.known(file);
        let known = self.identity.as_ref().and_then(known);
        match known.filter(|_| self.is_unchanged()) {
            Some(sha256) => Ok(ready(Ok(Content::Cached(sha256)))),
            None => spawn(self, turn),
        }
    }

    /// Reads the file. Returns `None` in the idle thread if the normal one has taken its work.
    fn read(&self, turn: Turn) -> Option<io::Result<Content>> {
        let mut courtesy = (turn == Turn::Idle).then(Courtesy::begin);
        let mut at = self.take(turn);
        let mut buffer = vec![0; BUFFER_BYTES];
        while at.offset < self.length {
            let left = usize::try_from(self.length - at.offset).unwrap_or(BUFFER_BYTES);
            let piece = buffer.get_mut(..left.min(BUFFER_BYTES)).unwrap_or_default();
            let length = match self.file.read_at(piece, at.offset) {
                Ok(0) => break,
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Some(Err(error)),
            };
            at.hasher.update(piece.get(..length).unwrap_or_default());
            at.offset += length as u64;
            if let Some(courtesy) = &mut courtesy {
                if !self.publish(&at) {
                    return None;
                }
                courtesy.give_way();
            }
        }
        Some(Ok(Content::Read(at.hasher.finish())))
    }

    /// Checks that the file is as it was at the start. False also for a file that the cache does not know by an
    /// identity.
    fn is_unchanged(&self) -> bool {
        let known = self.identity.as_ref().map(|(_, known)| known);
        known.is_some_and(|known| Identity::of(&self.file).as_ref() == Some(known))
    }

    /// Returns the state to continue from. The normal thread stops the idle one after its present piece.
    fn take(&self, turn: Turn) -> Progress {
        let mut progress = self.progress();
        progress.is_taken |= turn == Turn::Normal;
        progress.clone()
    }

    /// Publishes a state of the idle thread. Returns false if its work was taken.
    fn publish(&self, state: &Progress) -> bool {
        let mut progress = self.progress();
        if progress.is_taken {
            return false;
        }
        progress.clone_from(state);
        true
    }

    /// Held only for a copy, so that a thread of normal priority never waits for the idle one to hash.
    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write as _;

    use model::digest;
    use tempfile::TempDir;

    use super::*;

    /// Three pieces, the last one short.
    fn content() -> Vec<u8> {
        let bytes = 0..=u8::MAX;
        bytes.cycle().take(2 * BUFFER_BYTES + 1).collect()
    }

    fn program(content: &[u8]) -> (TempDir, File) {
        let directory = tempfile::tempdir_in("/var/tmp").unwrap();
        let path = directory.path().join("program");
        fs::write(&path, content).unwrap();
        let file = File::options().read(true).append(true).open(path).unwrap();
        (directory, file)
    }

    fn read(content: &[u8]) -> Content {
        Content::Read(digest::of_bytes(content))
    }

    #[test]
    fn digest_is_the_same_with_and_without_the_idle_thread() {
        for content in [content(), b"one".to_vec(), Vec::new()] {
            let (_directory, file) = program(&content);
            let mut without = PendingDigest::of(file.try_clone().unwrap(), None).unwrap();
            assert_eq!(without.wait().unwrap(), read(&content));
            let mut with = PendingDigest::of(file, None).unwrap();
            with.begin();
            assert_eq!(with.wait().unwrap(), read(&content));
        }
    }

    #[test]
    fn second_thread_continues_where_the_first_one_is() {
        let content = content();
        let (_directory, file) = program(&content);
        let reading = Reading::new(file, None).unwrap();
        // The idle thread has hashed the first piece and gets no further.
        let mut state = reading.take(Turn::Idle);
        state.hasher.update(&content[..BUFFER_BYTES]);
        state.offset = BUFFER_BYTES as u64;
        assert!(reading.publish(&state));
        let found = reading.read(Turn::Normal).unwrap().unwrap();
        assert!(matches!(found, Content::Read(sha256) if sha256 == digest::of_bytes(&content)));
        assert!(!reading.publish(&state));
        assert!(reading.read(Turn::Idle).is_none());
    }

    #[test]
    fn file_that_grows_is_hashed_to_its_first_length() {
        let (_directory, mut file) = program(b"one");
        let mut pending = PendingDigest::of(file.try_clone().unwrap(), None).unwrap();
        file.write_all(b", two").unwrap();
        assert_eq!(pending.wait().unwrap(), read(b"one"));
        // /dev/zero has no end, but its length is 0.
        let mut endless = PendingDigest::of(File::open("/dev/zero").unwrap(), None).unwrap();
        assert_eq!(endless.wait().unwrap(), read(b""));
    }

    #[test]
    fn built_in_program_starts_no_thread() {
        let mut pending = PendingDigest::built_in();
        pending.start();
        pending.begin();
        assert_eq!(pending.wait().unwrap(), Content::BuiltIn);
    }

    #[test]
    fn digest_that_is_late_or_lost_is_an_error() {
        let (done, pending) = sync_channel(1);
        let late = received(&pending, Instant::now()).unwrap_err();
        assert_eq!(late.kind(), io::ErrorKind::TimedOut);
        drop(done);
        assert!(received(&pending, Instant::now() + LIMIT).is_err());
    }

    #[track_caller]
    fn remembered(mut pending: PendingDigest) -> Content {
        let content = pending.wait().unwrap();
        pending.remember(&content);
        content
    }

    /// A reading that began long after the last change of the file.
    fn settled(file: &File, cache: &CachePlace) -> PendingDigest {
        let mut reading = Reading::new(file.try_clone().unwrap(), Some(cache.clone())).unwrap();
        reading.begun += Duration::from_secs(10);
        PendingDigest(Some(Work {
            reading: Arc::new(reading),
            due: None,
            pending: None,
        }))
    }

    #[test]
    fn unchanged_file_is_read_once() {
        let content = content();
        let (directory, mut file) = program(&content);
        let cache = CachePlace::below(directory.path());
        let cached = Content::Cached(digest::of_bytes(&content));
        assert_eq!(remembered(settled(&file, &cache)), read(&content));
        assert_eq!(settled(&file, &cache).wait().unwrap(), cached);
        let mut idle = settled(&file, &cache);
        idle.begin();
        assert_eq!(idle.wait().unwrap(), cached);
        let mut without = PendingDigest::of(file.try_clone().unwrap(), None).unwrap();
        assert_eq!(without.wait().unwrap(), read(&content));
        file.write_all(b"more").unwrap();
        let longer = [content.as_slice(), b"more"].concat();
        assert_eq!(settled(&file, &cache).wait().unwrap(), read(&longer));
    }

    #[test]
    fn file_changed_after_the_look_at_it_is_read() {
        let content = content();
        let (directory, file) = program(&content);
        file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        let cache = CachePlace::below(directory.path());
        remembered(settled(&file, &cache));
        let mut pending = settled(&file, &cache);
        pending.begin();
        // A change of the content that only the time of the change shows. The clock of the kernel's time stamps ticks
        // every few milliseconds.
        let mut other = content.clone();
        other[0] ^= 1;
        let path = directory.path().join("program");
        while pending.0.as_ref().unwrap().reading.is_unchanged() {
            fs::write(&path, &other).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        }
        assert_eq!(pending.wait().unwrap(), read(&other));
    }

    #[test]
    fn file_that_may_have_changed_meanwhile_is_not_kept() {
        let content = content();
        let (directory, mut file) = program(&content);
        let cache = CachePlace::below(directory.path());
        let tomorrow = SystemTime::now() + Duration::from_secs(24 * 60 * 60);
        file.set_modified(tomorrow).unwrap();
        let young = || PendingDigest::of(file.try_clone().unwrap(), Some(cache.clone()));
        for _ in 0..2 {
            assert_eq!(remembered(young().unwrap()), read(&content));
        }
        file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        let pending = settled(&file, &cache);
        file.write_all(b"more").unwrap();
        assert_eq!(remembered(pending), read(&content));
        assert!(!directory.path().join(".cache").exists());
    }
}
