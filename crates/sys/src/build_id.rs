//! GNU build id of the running executable, from its notes in memory (elf(5)). The linker computes the id from the content
//! of the file, so two different builds have different ids.

use std::ffi::{c_int, c_void};

/// Size of a note's header, in bytes: three words.
const HEADER: usize = 12;
/// Name of notes of GNU tools, with its NUL.
const GNU: &[u8] = b"GNU\0";
/// Type of a note with a build id (elf(5)).
const NT_GNU_BUILD_ID: u32 = 3;

/// dl_iterate_phdr(3): returns the build id of this executable. Returns `None` if the linker has not made one.
pub fn of_this_executable() -> Option<Vec<u8>> {
    let mut found: Option<Vec<u8>> = None;
    // SAFETY: `in_first_object` has the signature of a callback, and gets the pointer to `found`, which outlives the
    // call.
    unsafe { libc::dl_iterate_phdr(Some(in_first_object), (&raw mut found).cast()) };
    found
}

/// Writes the build id of the first object, which is the executable (dl_iterate_phdr(3)), and stops.
unsafe extern "C" fn in_first_object(
    info: *mut libc::dl_phdr_info,
    _size: libc::size_t,
    found: *mut c_void,
) -> c_int {
    // SAFETY: the C library passes a valid description of a loaded object.
    let info = unsafe { &*info };
    if info.dlpi_phdr.is_null() {
        return 1;
    }
    // SAFETY: the description has this number of program headers, which stay loaded.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    let is_loaded = |note: &libc::Elf64_Phdr| {
        headers.iter().any(|segment| {
            let end = segment.p_vaddr.checked_add(segment.p_filesz);
            segment.p_type == libc::PT_LOAD
                && segment.p_flags & libc::PF_R != 0
                && segment.p_vaddr <= note.p_vaddr
                && note.p_vaddr.checked_add(note.p_memsz) <= end
        })
    };
    let notes = headers.iter().filter(|one| one.p_type == libc::PT_NOTE);
    let id = notes.filter(|note| is_loaded(note)).find_map(|note| {
        let address = info.dlpi_addr.wrapping_add(note.p_vaddr) as usize;
        let length = note.p_memsz as usize;
        let start = std::ptr::with_exposed_provenance::<u8>(address);
        // SAFETY: the note is part of a readable segment of this executable, which stays loaded and which no code writes
        // to.
        let bytes = unsafe { std::slice::from_raw_parts(start, length) };
        in_notes(bytes, note.p_align as usize).map(<[u8]>::to_vec)
    });
    // SAFETY: `of_this_executable` passes the pointer to its own `Option<Vec<u8>>`, which no other code uses meanwhile.
    unsafe { *found.cast::<Option<Vec<u8>>>() = id };
    1
}

/// Returns the build id in a segment of notes with this alignment.
fn in_notes(mut notes: &[u8], align: usize) -> Option<&[u8]> {
    let align = if align == 8 { 8 } else { 4 };
    loop {
        let word = |index: usize| {
            let bytes = notes.get(4 * index..4 * index + 4)?;
            bytes.try_into().ok().map(u32::from_ne_bytes)
        };
        let (name_bytes, id_bytes, kind) = (word(0)? as usize, word(1)? as usize, word(2)?);
        let name = notes.get(HEADER..HEADER.checked_add(name_bytes)?)?;
        let start = (HEADER + name_bytes).checked_next_multiple_of(align)?;
        let end = start.checked_add(id_bytes)?;
        let content = notes.get(start..end)?;
        if (name, kind) == (GNU, NT_GNU_BUILD_ID) && !content.is_empty() {
            return Some(content);
        }
        notes = notes.get(end.checked_next_multiple_of(align)?..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(name: &[u8], kind: u32, content: &[u8]) -> Vec<u8> {
        let mut note = Vec::new();
        note.extend((name.len() as u32).to_ne_bytes());
        note.extend((content.len() as u32).to_ne_bytes());
        note.extend(kind.to_ne_bytes());
        for part in [name, content] {
            note.extend_from_slice(part);
            note.resize(note.len().next_multiple_of(4), 0);
        }
        note
    }

    #[test]
    fn build_id_is_found_behind_other_notes() {
        let mut notes = note(b"GNU\0", 1, &[0; 16]);
        notes.extend(note(b"Go\0", NT_GNU_BUILD_ID, b"other"));
        assert_eq!(in_notes(&notes, 4), None);
        notes.extend(note(GNU, NT_GNU_BUILD_ID, b"12345678"));
        assert_eq!(in_notes(&notes, 4), Some(b"12345678".as_slice()));
    }

    #[test]
    fn malformed_notes_have_no_build_id() {
        let whole = note(GNU, NT_GNU_BUILD_ID, b"12345678");
        for length in 0..whole.len() {
            assert_eq!(in_notes(&whole[..length], 4), None, "{length}");
        }
        for word in 0..2 {
            let mut endless = whole.clone();
            endless[4 * word..4 * word + 4].fill(0xff);
            assert_eq!(in_notes(&endless, 4), None, "{word}");
        }
        assert_eq!(in_notes(&note(GNU, NT_GNU_BUILD_ID, b""), 4), None);
    }
}
