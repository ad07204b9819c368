//! Checks of the files in home, temporary and working directory after the end of all processes. A transcript counts
//! even if it was removed.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use model::evidence::{FileEntry, FileKind, Root};
use model::text::is_invisible;

use super::FILES;
use super::outcome::{Deviation, JudgedRun, Outcome, absent, list};

pub(super) use model::expected::{STAMP_DIGITS, reason_for_file, stamp};

/// Permitted distance of a backup's stamp from the time of the run.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(1);
/// Mode of both files of the specification.
const PRIVATE: u32 = 0o600;
/// Bits that no other file or directory may have: write for group and others, set-uid, set-gid, sticky.
const UNSAFE: u32 = 0o7022;

pub(super) fn state_file(run: &JudgedRun) -> Outcome {
    let path = &run.profile.files.state;
    let deviation = Deviation::new("The application state file is not there.")
        .at(path)
        .expected("a regular file");
    match in_home(run).find(|entry| entry.path == *path) {
        None => deviation.found("nothing").failed_if_complete(FILES),
        Some(entry) if entry.kind != FileKind::File => {
            deviation.found(entry.kind.with_article()).failed()
        }
        Some(entry) if entry.bytes == 0 => deviation.found("an empty file").leftover().failed(),
        Some(entry) => Ok(format!(
            "The application state file is there, {} bytes.",
            entry.bytes
        )),
    }
}

pub(super) fn backup(run: &JudgedRun) -> Outcome {
    let prefix = &run.profile.files.backup_prefix;
    let expected = format!("one file: {prefix} and {STAMP_DIGITS} digits");
    let deviation = Deviation::new("There is not exactly one backup.").expected(expected);
    let backups: Vec<_> = backups(run).collect();
    let [entry] = backups.as_slice() else {
        let deviation = deviation.found(list(backups.iter().map(|entry| entry.path.as_str())));
        return if backups.is_empty() {
            deviation.failed_if_complete(FILES)
        } else {
            deviation.failed()
        };
    };
    if entry.kind != FileKind::File {
        return deviation
            .at(&entry.path)
            .found(entry.kind.with_article())
            .failed();
    }
    let Some(stamp) = stamp(&run.profile.files, &entry.path) else {
        return deviation.at(&entry.path).found("another suffix").failed();
    };
    let (start, end) = run.evidence.wall;
    if stamp + CLOCK_TOLERANCE < start || stamp > end + CLOCK_TOLERANCE {
        return Deviation::new("The backup's stamp lies outside of the run.")
            .at(&entry.path)
            .expected(format!("{} to {}, within 1 s", millis(start), millis(end)))
            .found(millis(stamp).to_string())
            .failed();
    }
    Ok("One backup, stamped within the run.".to_owned())
}

pub(super) fn modes(run: &JudgedRun) -> Outcome {
    let state = in_home(run).filter(|entry| entry.path == run.profile.files.state);
    let both: Vec<_> = state.chain(backups(run)).collect();
    if let Some(entry) = both.iter().find(|entry| entry.mode != PRIVATE) {
        return Deviation::new(
            "A file of the client is accessible to other users, or not writable for its owner.",
        )
        .at(&entry.path)
        .expected(format!("{PRIVATE:04o}"))
        .found(format!("{:04o}", entry.mode))
        .failed();
    }
    let files = &run.profile.files;
    let has_mode = |entry: &&FileEntry| matches!(entry.kind, FileKind::File | FileKind::Directory);
    let mut others = run.evidence.files.iter().filter(has_mode).filter(|entry| {
        // `files/nothing-else` finds unexpected files already.
        !entry.transient && entry.mode & UNSAFE != 0 && reason_for_file(files, entry).is_some()
    });
    if let Some(entry) = others.next() {
        return Deviation::new(
            "A directory or file of the client may be written by others, or has a special mode bit.",
        )
        .at(place(entry))
        .expected("writable for its owner alone; no set-uid, set-gid or sticky bit")
        .found(format!("{:04o}", entry.mode))
        .failed();
    }
    if both.is_empty() {
        return absent("neither the state file nor a backup is there");
    }
    Ok("Mode 0600 each, and only the owner can write to the directories.".to_owned())
}

pub(super) fn nothing_else(run: &JudgedRun) -> Outcome {
    let further: Vec<_> = run
        .evidence
        .files
        .iter()
        .filter(|entry| !entry.transient && reason_for_file(&run.profile.files, entry).is_none())
        .map(place)
        .collect();
    if further.is_empty() {
        return Ok("Nothing but the files of the specification and of the profile.".to_owned());
    }
    Deviation::new("The client left more than its two files.")
        .expected("the state file, one backup, and what the profile names")
        .found(list(further))
        .leftover()
        .failed()
}

pub(super) fn no_transcript(run: &JudgedRun) -> Outcome {
    let transcripts: Vec<_> = run
        .evidence
        .files
        .iter()
        .filter(|entry| is_transcript(&entry.path))
        .map(place)
        .collect();
    if transcripts.is_empty() {
        return Ok("No conversation transcript.".to_owned());
    }
    Deviation::new("The client wrote a conversation transcript.")
        .expected("no file with .jsonl in its name")
        .found(list(transcripts))
        .failed()
}

/// Checks for `.jsonl` anywhere in a name: `~`, a line feed or the random part of a temporary name may follow. Case and
/// invisible characters are ignored.
fn is_transcript(path: &str) -> bool {
    let seen = path
        .chars()
        .filter(|c| !c.is_control() && !is_invisible(*c));
    seen.flat_map(char::to_uppercase)
        .collect::<String>()
        .contains(".JSONL")
}

fn in_home<'a>(run: &JudgedRun<'a>) -> impl Iterator<Item = &'a FileEntry> {
    run.evidence
        .files
        .iter()
        .filter(|entry| entry.root == Root::Home && !entry.transient)
}

/// Files whose path begins with the backup's prefix, well formed or not.
fn backups<'a>(run: &JudgedRun<'a>) -> impl Iterator<Item = &'a FileEntry> {
    let prefix = run.profile.files.backup_prefix.as_str();
    in_home(run).filter(move |entry| entry.path.starts_with(prefix))
}

/// Text of a file, `home: .agent/log`, with its kind unless it is a regular file; hostile.
fn place(entry: &FileEntry) -> String {
    let root = entry.root.word();
    match entry.kind {
        FileKind::File => format!("{root}: {}", entry.path),
        FileKind::Directory
        | FileKind::Symlink
        | FileKind::Fifo
        | FileKind::Socket
        | FileKind::Device => format!("{root}: {} ({})", entry.path, entry.kind.with_article()),
    }
}

fn millis(time: SystemTime) -> u128 {
    time.duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_millis())
}
