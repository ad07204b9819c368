//! Errors on reading a file, before parsing.

use std::fs;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

use super::super::{MAX_FILE_BYTES, PolicyError, Reference, case, check, text};

/// Returns the error for the file that `make` creates at a path.
fn error_for(make: impl FnOnce(&PathBuf)) -> PolicyError {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.toml");
    make(&path);
    check(&Reference::File(path)).unwrap_err()
}

#[test]
fn a_file_with_the_bytes_of_a_built_in_has_its_digest() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("mine.toml");
    fs::write(&path, text("case-b").unwrap()).unwrap();
    let copy = case(&Reference::File(path)).unwrap();
    let original = case(&Reference::BuiltIn("case-b".into())).unwrap();
    assert_eq!(copy.origin.sha256, original.origin.sha256);
    assert_eq!(copy.invocation, original.invocation);
}

#[test]
fn a_directory_is_named_as_one() {
    let error = error_for(|path| fs::create_dir(path).unwrap());
    assert!(
        matches!(
            error,
            PolicyError::NotAFile {
                found: "a directory",
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn a_fifo_without_a_writer_does_not_hold_the_runner() {
    let error = error_for(|path| nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRWXU).unwrap());
    assert!(
        matches!(
            error,
            PolicyError::NotAFile {
                found: "a FIFO",
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn a_socket_is_named_as_one() {
    let error = error_for(|path| drop(UnixListener::bind(path).unwrap()));
    assert!(
        matches!(
            error,
            PolicyError::NotAFile {
                found: "a socket or a device",
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn a_file_that_is_not_there_keeps_its_errno() {
    let error = error_for(|_| ());
    let PolicyError::Open { source, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!(
        source.raw_os_error(),
        Some(nix::errno::Errno::ENOENT as i32)
    );
    assert!(error.hint().contains("runner policy list"));
}

#[test]
fn a_file_beyond_the_limit_is_refused_unparsed() {
    let error = error_for(|path| fs::write(path, "#".repeat(MAX_FILE_BYTES as usize + 1)).unwrap());
    assert!(matches!(error, PolicyError::TooLarge { .. }), "{error}");
}

#[test]
fn bytes_that_are_no_text_have_a_place() {
    let error = error_for(|path| fs::write(path, b"a = 1\nb = \"\xff\"\n").unwrap());
    assert!(
        error
            .to_string()
            .ends_with("x.toml:2:6: expected UTF-8 text, found the byte 0xff"),
        "{error}"
    );
}

#[test]
fn a_profile_is_no_case() {
    let error =
        super::super::Document::load(&Reference::BuiltIn("reference".into()), None).unwrap();
    assert!(error.case().is_err());
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("p.toml");
    fs::write(&path, text("reference").unwrap()).unwrap();
    let error = case(&Reference::File(path)).unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("p.toml: expected a policy of the kind case, found profile"),
        "{error}"
    );
    assert_eq!(error.hint(), "give the profile with --profile");
}
