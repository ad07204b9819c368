//! fanotify(7) marks on file systems, and a parser of their events.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};

use nix::errno::Errno;
use nix::sys::fanotify::{EventFFlags, Fanotify, InitFlags, MarkFlags, MaskFlags};

/// Types of the information records of an event (linux/fanotify.h).
const FID: u8 = 1;
const DIRECTORY_AND_NAME: u8 = 2;
const NEW_DIRECTORY_AND_NAME: u8 = 12;
/// Sizes in bytes of struct fanotify_event_metadata and struct fanotify_event_info_header.
const METADATA: usize = 24;
const HEADER: usize = 4;

/// Identity of an object across all file systems: fsid, type and bytes of its file handle (name_to_handle_at(2)). The
/// kernel does not reuse a handle.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Handle(Vec<u8>);

/// An object was created under a name, or renamed to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Directory that holds the name.
    pub parent: Handle,
    /// Bytes of the name, without its NUL.
    pub name: Vec<u8>,
    /// The object that got the name.
    pub object: Handle,
    /// True for a directory.
    pub is_directory: bool,
}

/// Creates a fanotify group that reports, from now on, every new name on the file systems of `directories`.
///
/// # Errors
/// The errno of fanotify_init(2) or fanotify_mark(2). `EPERM` on kernels older than 6.18, which refuse the owner of a
/// user namespace, and under the filter of a container.
pub fn group(directories: &[&OwnedFd]) -> Result<OwnedFd, Errno> {
    let reports = libc::FAN_REPORT_FID
        | libc::FAN_REPORT_DIR_FID
        | libc::FAN_REPORT_NAME
        | libc::FAN_REPORT_TARGET_FID;
    let flags = InitFlags::FAN_CLASS_NOTIF | InitFlags::FAN_CLOEXEC | InitFlags::FAN_NONBLOCK;
    let flags = flags | InitFlags::from_bits_retain(reports);
    let group = Fanotify::init(flags, EventFFlags::O_RDONLY)?;
    let names = MaskFlags::FAN_CREATE | MaskFlags::FAN_RENAME | MaskFlags::FAN_ONDIR;
    let all = MarkFlags::FAN_MARK_ADD | MarkFlags::FAN_MARK_FILESYSTEM;
    for directory in directories {
        group.mark(all, names, directory, None::<&str>)?;
    }
    Ok(group.into())
}

/// Returns the file handle of an open directory.
///
/// # Errors
/// The errno of fstatfs(2) or name_to_handle_at(2); `EOPNOTSUPP` if the file system has no handles.
pub fn handle(directory: impl AsFd) -> Result<Handle, Errno> {
    #[repr(C)]
    struct Buffer {
        length: u32,
        kind: i32,
        bytes: [u8; libc::MAX_HANDLE_SZ as usize],
    }
    let number = directory.as_fd().as_raw_fd();
    let mut buffer = Buffer {
        length: libc::MAX_HANDLE_SZ.cast_unsigned(),
        kind: 0,
        bytes: [0; libc::MAX_HANDLE_SZ as usize],
    };
    let mut mount = 0;
    // SAFETY: the buffer begins as struct file_handle and holds as many bytes as it states. The path is an empty C
    // string, and the kernel writes one int to `mount`.
    let result = unsafe {
        let buffer = (&raw mut buffer).cast();
        libc::name_to_handle_at(
            number,
            c"".as_ptr(),
            buffer,
            &raw mut mount,
            libc::AT_EMPTY_PATH,
        )
    };
    Errno::result(result)?;
    let length = usize::try_from(buffer.length).unwrap_or(0);
    let bytes = buffer.bytes.get(..length).ok_or(Errno::EOVERFLOW)?;
    Ok(Handle(
        [&fsid(number)?[..], &buffer.kind.to_ne_bytes(), bytes].concat(),
    ))
}

fn fsid(number: i32) -> Result<[u8; 8], Errno> {
    let mut status = MaybeUninit::<libc::statfs>::zeroed();
    // SAFETY: the kernel writes at most one struct statfs, and the buffer has its size.
    let result = unsafe { libc::fstatfs(number, status.as_mut_ptr()) };
    Errno::result(result)?;
    // SAFETY: every bit pattern is a valid struct statfs, and the memory was zeroed.
    let status = unsafe { status.assume_init() };
    // SAFETY: fsid_t is two ints without padding, eight bytes.
    Ok(unsafe { std::mem::transmute::<libc::fsid_t, [u8; 8]>(status.f_fsid) })
}

/// Parses the bytes read from a group. `None` marks lost events and records that [`group`] did not ask for.
pub fn events(bytes: &[u8]) -> Vec<Option<Event>> {
    let mut events = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let length = number(rest, 0).and_then(|length| usize::try_from(length).ok());
        let whole = length.filter(|length| *length >= METADATA);
        let Some((event, after)) = whole.and_then(|length| rest.split_at_checked(length)) else {
            events.push(None);
            break;
        };
        events.push(parse(event));
        rest = after;
    }
    events
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_ne_bytes(*four))
}

fn parse(event: &[u8]) -> Option<Event> {
    let mask = u64::from_ne_bytes(*event.get(8..)?.first_chunk()?);
    let mut named = None;
    let mut object = None;
    let mut rest = event.get(METADATA..)?;
    while let [kind, _, one, other, ..] = rest {
        let length = usize::from(u16::from_ne_bytes([*one, *other]));
        let (record, after) = rest.split_at_checked(length.max(HEADER))?;
        let (handle, behind) = record_handle(record.get(HEADER..)?)?;
        match *kind {
            FID => object = Some(handle),
            DIRECTORY_AND_NAME | NEW_DIRECTORY_AND_NAME => {
                let name = behind.split(|byte| *byte == 0).next()?;
                named = Some((handle, name.to_vec()));
            }
            _ => {}
        }
        rest = after;
    }
    let (parent, name) = named.filter(|(_, name)| !name.is_empty())?;
    Some(Event {
        parent,
        name,
        object: object?,
        is_directory: mask & MaskFlags::FAN_ONDIR.bits() != 0,
    })
}

/// Splits a record into its handle (fsid and struct file_handle) and the bytes after it.
fn record_handle(record: &[u8]) -> Option<(Handle, &[u8])> {
    let (fsid, handle) = record.split_at_checked(8)?;
    let length = usize::try_from(number(handle, 0)?).ok()?;
    let (kind_and_bytes, behind) = handle.get(4..)?.split_at_checked(length.checked_add(4)?)?;
    Some((Handle([fsid, kind_and_bytes].concat()), behind))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Encodes an event with these records: type, handle, name.
    fn event(mask: u64, records: &[(u8, &[u8], &[u8])]) -> Vec<u8> {
        let mut behind = Vec::new();
        for (kind, handle, name) in records {
            let mut record = vec![0; 8];
            record.extend(u32::try_from(handle.len()).unwrap().to_ne_bytes());
            record.extend(1_i32.to_ne_bytes());
            record.extend(*handle);
            record.extend(*name);
            record.push(0);
            let length = u16::try_from(record.len() + HEADER).unwrap();
            behind.extend([*kind, 0]);
            behind.extend(length.to_ne_bytes());
            behind.extend(record);
        }
        let length = u32::try_from(METADATA + behind.len()).unwrap();
        let mut event = length.to_ne_bytes().to_vec();
        event.extend([3, 0, 24, 0]);
        event.extend(mask.to_ne_bytes());
        event.extend([0; 8]);
        event.extend(behind);
        event
    }

    fn handle(bytes: &[u8]) -> Handle {
        let one = 1_i32.to_ne_bytes();
        Handle([&[0; 8][..], &one, bytes].concat())
    }

    #[test]
    fn an_event_names_directory_name_and_object() {
        let made = event(0x100, &[(2, b"parent", b"name"), (1, b"object", b"")]);
        let moved = event(
            0x5000_0000,
            &[
                (10, b"old", b"was"),
                (12, b"new", b"is"),
                (1, b"object", b""),
            ],
        );
        let parsed = events(&[made, moved].concat());
        let expected = |parent: &[u8], name: &[u8], is_directory| {
            Some(Event {
                parent: handle(parent),
                name: name.to_vec(),
                object: handle(b"object"),
                is_directory,
            })
        };
        assert_eq!(
            parsed,
            [
                expected(b"parent", b"name", false),
                expected(b"new", b"is", true)
            ]
        );
    }

    #[test]
    fn lost_and_truncated_events_are_none() {
        let overflow = event(0x4000, &[]);
        assert_eq!(events(&overflow), [None]);
        let made = event(0x100, &[(2, b"parent", b"name"), (1, b"object", b"")]);
        for length in 1..made.len() {
            assert_eq!(events(&made[..length]), [None], "{length}");
        }
        assert_eq!(events(&[0; 24]), [None]);
    }
}
