//! Dependencies of real programs, and of malformed files.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::{ElfDeps, ElfError};
use crate::Reference;
use crate::init::{self, PolicyName};

/// Returns the profile for a program's dependencies, and its error, if any.
fn profile(needs: &ElfDeps) -> (String, Option<String>) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("p.toml");
    let text = init::profile(&PolicyName::parse("mine").unwrap(), Some(needs));
    fs::write(&path, &text).unwrap();
    let fault = crate::profile(&Reference::File(path)).err();
    (text, fault.map(|error| error.to_string()))
}

/// Copies a dynamic program into its own directory, with its only library renamed.
fn asking_for(library: &str) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("client");
    let mut bytes = fs::read("/bin/true").unwrap();
    let name = b"libc.so.6\0";
    let at = bytes.windows(name.len()).position(|part| part == name);
    let at = at.unwrap();
    let other = format!("{library}\0");
    assert!(other.len() <= name.len());
    bytes[at..at + other.len()].copy_from_slice(other.as_bytes());
    fs::write(&path, bytes).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    (directory, path)
}

#[test]
fn a_dynamic_program_needs_its_loader_and_its_libraries_each_once() {
    let needs = ElfDeps::of(Path::new("/bin/true")).unwrap();
    let loader = needs.loader.clone().unwrap();
    assert!(loader.is_absolute() && loader.exists(), "{loader:?}");
    let libraries: Vec<_> = needs
        .libraries
        .iter()
        .map(|library| &library.path)
        .collect();
    let c = libraries.iter().filter(|path| path.ends_with("libc.so.6"));
    assert_eq!(c.count(), 1, "{libraries:?}");
    assert!(needs.missing.is_empty(), "{:?}", needs.missing);
    let (text, fault) = profile(&needs);
    assert_eq!(fault, None);
    assert!(text.contains("program = \"true\""), "{text}");
    assert!(text.contains("reason = \"true needs it\""), "{text}");
}

#[test]
fn fifo_is_refused_and_not_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("client");
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let error = ElfDeps::of(&path).unwrap_err();
    assert!(matches!(error, ElfError::NotElf { .. }), "{error:?}");
}

#[test]
fn a_library_that_is_not_there_is_named_in_a_comment() {
    let (_directory, client) = asking_for("libzz.so");
    let needs = ElfDeps::of(&client).unwrap();
    let missing: Vec<_> = needs.missing.iter().map(|missing| &missing.name).collect();
    assert_eq!(missing, ["libzz.so"]);
    let (text, fault) = profile(&needs);
    assert_eq!(fault, None);
    assert!(text.contains("# Not found: libzz.so, which client needs."));
}

#[test]
fn a_name_that_would_break_a_line_of_the_profile_is_escaped() {
    let (_directory, client) = asking_for("a\n\"x\"=1");
    let (text, fault) = profile(&ElfDeps::of(&client).unwrap());
    assert_eq!(fault, None);
    assert!(text.contains("# Not found: a\\n\"x\"=1, which"), "{text}");
}

#[test]
fn a_static_program_needs_nothing() {
    let own = fs::read_link("/proc/self/exe").unwrap();
    let needs = ElfDeps::of(&own).unwrap();
    assert_eq!((needs.loader.clone(), needs.libraries.len()), (None, 0));
    let (text, fault) = profile(&needs);
    assert_eq!(fault, None);
    assert!(text.contains("# The program is static"));
}

#[test]
fn scripts_and_other_files_are_told_apart() {
    let directory = tempfile::tempdir().unwrap();
    let [script, text, absent] =
        ["script", "text", "absent"].map(|name| directory.path().join(name));
    fs::write(&script, "#!/bin/sh\n").unwrap();
    fs::write(&text, "text").unwrap();
    let of = |path: &Path| ElfDeps::of(path).unwrap_err();
    assert!(matches!(of(&script), ElfError::Script { .. }));
    assert!(matches!(of(&text), ElfError::NotElf { .. }));
    assert!(matches!(of(directory.path()), ElfError::NotElf { .. }));
    assert!(matches!(of(&absent), ElfError::Read { .. }));
    assert!(of(&script).hint().is_some() && of(&absent).hint().is_none());
}

proptest! {
    #[test]
    fn a_damaged_program_is_read_or_refused(
        at in any::<prop::sample::Index>(),
        bytes in prop::collection::vec(any::<u8>(), 1..16),
        length in any::<prop::sample::Index>(),
    ) {
        let mut program = fs::read("/bin/true").unwrap();
        // The parser reads mostly the first page.
        let at = at.index(4096.min(program.len() - 16));
        program[at..at + bytes.len()].copy_from_slice(&bytes);
        program.truncate(4096 + length.index(program.len()));
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("client");
        fs::write(&path, program).unwrap();
        if let Ok(needs) = ElfDeps::of(&path) {
            let (_, fault) = profile(&needs);
            prop_assert_eq!(fault, None);
        }
    }
}
