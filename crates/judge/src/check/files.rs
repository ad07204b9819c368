//! Checks of the files in home, temporary and working directory after the end of all processes. A transcript counts
//! even if it was removed.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use model::case::Count;
use model::evidence::{FileEntry, FileKind, Root};
use model::profile::{ExpectedFile, Files};
use model::text::{count, is_invisible};

use super::FILES;
use super::outcome::{Deviation, JudgedRun, Outcome, absent, list, not_asked};

pub(super) use model::expected::{STAMP_DIGITS, reason_for_file, stamp};

/// Permitted distance of a backup's stamp from the time of the run.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(1);
/// Mode of both files of the specification.
const PRIVATE: u32 = 0o600;
/// Bits that no other file or directory may have: write for group and others, set-uid, set-gid, sticky.
const UNSAFE: u32 = 0o7022;

pub(super) fn state_file(run: &JudgedRun) -> Outcome {
    let Some(path) = &run.files()?.state else {
        return not_asked("neither the case nor a profile names a state file");
    };
    let deviation = Deviation::new("The application state file is not there.")
        .at(path)
        .expected("a regular file");
    match in_home(run).find(|entry| entry.path == *path) {
        None => deviation
            .found("nothing")
            .unfinished()
            .failed_if_complete(FILES),
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
    let files = run.files()?;
    let Some(prefix) = &files.backup_prefix else {
        return not_asked("neither the case nor a profile names a backup");
    };
    let expected = format!("one file: {prefix} and {STAMP_DIGITS} digits");
    let deviation = Deviation::new("There is not exactly one backup.").expected(expected);
    let backups: Vec<_> = backups(run, files).collect();
    let [entry] = backups.as_slice() else {
        let deviation = deviation.found(list(backups.iter().map(|entry| entry.path.as_str())));
        return if backups.is_empty() {
            deviation.unfinished().failed_if_complete(FILES)
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
    let Some(stamp) = stamp(files, &entry.path) else {
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
    let files = run.files()?;
    let state = in_home(run).filter(|entry| files.state.as_ref() == Some(&entry.path));
    let both: Vec<_> = state.chain(backups(run, files)).collect();
    if let Some(entry) = both.iter().find(|entry| entry.mode != PRIVATE) {
        return Deviation::new(
            "A file of the client is accessible to other users, or not writable for its owner.",
        )
        .at(&entry.path)
        .expected(format!("{PRIVATE:04o}"))
        .found(format!("{:04o}", entry.mode))
        .failed();
    }
    let has_mode = |entry: &&FileEntry| matches!(entry.kind, FileKind::File | FileKind::Directory);
    let mut others = run.evidence.files.iter().filter(has_mode).filter(|entry| {
        // files/nothing-else finds unexpected files, and files/rules judges modes of rules.
        let is_known = has_own_mode(files, entry) || reason_for_file(files, entry).is_none();
        !entry.transient && entry.mode & UNSAFE != 0 && !is_known
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
    if both.is_empty() && (files.state.is_some() || files.backup_prefix.is_some()) {
        return absent("neither the state file nor a backup is there");
    }
    Ok("Mode 0600 each, and only the owner can write to the directories.".to_owned())
}

/// Checks for a rule that says the mode of this file.
fn has_own_mode(files: &Files, entry: &FileEntry) -> bool {
    let mut rules = files.expected.iter();
    rules.any(|rule| rule.mode.is_some() && is_of(rule, entry))
}

/// Checks for a file or directory of a rule.
pub(crate) fn is_of(rule: &ExpectedFile, entry: &FileEntry) -> bool {
    let is_plain = matches!(entry.kind, FileKind::File | FileKind::Directory);
    is_plain && rule.root == entry.root && rule.path.matches(&entry.path) && !entry.transient
}

/// Judges the number and the modes of the files of each rule.
pub(super) fn rules(run: &JudgedRun) -> Outcome {
    let rules = run.files()?.expected.iter();
    let judged = rules.filter(|rule| rule.mode.is_some() || rule.count != Count::ANY);
    let judged: Vec<&ExpectedFile> = judged.collect();
    if judged.is_empty() {
        return not_asked("no rule of the files has a number or a mode");
    }
    for rule in &judged {
        let place = format!("{}: {}", rule.root.word(), rule.path);
        let found = run.evidence.files.iter().filter(|entry| is_of(rule, entry));
        let found: Vec<&FileEntry> = found.collect();
        if !rule.count.allows(found.len() as u64) {
            let deviation = Deviation::new("A file of a rule is not there as often as expected.")
                .at(place)
                .expected(rule.count.words())
                .found(count(found.len(), "file"));
            return if (found.len() as u64) < rule.count.from {
                deviation.unfinished().failed_if_complete(FILES)
            } else {
                deviation.leftover().failed()
            };
        }
        let wrong = |entry: &&&FileEntry| rule.mode.is_some_and(|mode| mode != entry.mode);
        if let (Some(entry), Some(mode)) = (found.iter().find(wrong), rule.mode) {
            return Deviation::new("A file does not have the mode of its rule.")
                .at(self::place(entry))
                .expected(format!("{mode:04o}"))
                .found(format!("{:04o}", entry.mode))
                .failed();
        }
    }
    Ok(format!(
        "{}: each as often as expected, with its mode.",
        count(judged.len(), "rule")
    ))
}

pub(super) fn nothing_else(run: &JudgedRun) -> Outcome {
    let files = run.files()?;
    let further: Vec<_> = run
        .evidence
        .files
        .iter()
        .filter(|entry| !entry.transient && reason_for_file(files, entry).is_none())
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
    if !run.files()?.no_transcript {
        return not_asked("the case allows a transcript");
    }
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
fn backups<'a>(run: &JudgedRun<'a>, files: &'a Files) -> impl Iterator<Item = &'a FileEntry> {
    let prefix = files.backup_prefix.as_deref();
    in_home(run).filter(move |entry| prefix.is_some_and(|prefix| entry.path.starts_with(prefix)))
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
