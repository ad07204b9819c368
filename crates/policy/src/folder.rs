//! Cases in a directory: the files `*.toml` with the schema of a case. Subdirectories and hidden files are left out.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use model::quote::shown_path;

use super::document::Document;
use super::{Kind, PolicyError, Reference};

/// TOML files of a directory, sorted by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Folder {
    /// The cases, not parsed yet.
    pub cases: Vec<PathBuf>,
    /// The other files, such as profiles.
    pub others: Vec<PathBuf>,
}

/// Lists the cases of a directory.
///
/// # Errors
/// A directory or a TOML file that cannot be read, or a file of an unknown `runner.` schema: it may be a case of
/// a later version.
pub fn folder(directory: &Path) -> Result<Folder, PolicyError> {
    let failed = |source| PolicyError::Read {
        file: shown_path(directory),
        source,
    };
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().unwrap_or_default().as_bytes();
        if name.ends_with(b".toml") && !name.starts_with(b".") && !path.is_dir() {
            files.push(path);
        }
    }
    files.sort();
    let mut folder = Folder::default();
    for file in files {
        let kind = Document::load(&Reference::File(file.clone()), None)?.kind()?;
        match kind {
            Some(Kind::Case) => folder.cases.push(file),
            Some(Kind::Profile | Kind::Audit) | None => folder.others.push(file),
        }
    }
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(files: &[(&str, &str)]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(directory.path().join(name), text).unwrap();
        }
        directory
    }

    fn names(files: &[PathBuf]) -> Vec<&str> {
        let names = files.iter().map(|file| file.file_name().unwrap());
        names.map(|name| name.to_str().unwrap()).collect()
    }

    const CASE: &str = "schema = \"runner.case/1\"";

    #[test]
    fn folder_lists_cases_by_name() {
        let directory = directory(&[
            ("b.toml", CASE),
            ("a.toml", CASE),
            ("profile.toml", "schema = \"runner.profile/1\""),
            ("pyproject.toml", "[project]\nname = \"x\""),
            ("other.toml", "schema = 7"),
            (".hidden.toml", CASE),
            ("a.txt", CASE),
        ]);
        fs::create_dir(directory.path().join("below.toml")).unwrap();
        let folder = folder(directory.path()).unwrap();
        assert_eq!(names(&folder.cases), ["a.toml", "b.toml"]);
        let others = ["other.toml", "profile.toml", "pyproject.toml"];
        assert_eq!(names(&folder.others), others);
    }

    #[test]
    fn folder_follows_links_to_cases() {
        let directory = directory(&[("a.txt", CASE)]);
        let link = directory.path().join("link.toml");
        std::os::unix::fs::symlink("a.txt", link).unwrap();
        let folder = folder(directory.path()).unwrap();
        assert_eq!(names(&folder.cases), ["link.toml"]);
    }

    #[test]
    fn unreadable_file_of_a_folder_is_an_error() {
        for (text, expected) in [
            ("schema = ", "not well-formed TOML"),
            (
                "schema = \"runner.case/2\"",
                "a schema that this version reads",
            ),
            (
                "schema = \"runner.cases/1\"",
                "a schema that this version reads",
            ),
        ] {
            let directory = directory(&[("a.toml", CASE), ("z.toml", text)]);
            let error = folder(directory.path()).unwrap_err().to_string();
            assert!(error.contains("/z.toml:1:"), "{error}");
            assert!(error.contains(expected), "{error}");
        }
        let directory = directory(&[]);
        std::os::unix::fs::symlink("absent", directory.path().join("z.toml")).unwrap();
        let error = folder(directory.path()).unwrap_err().to_string();
        assert!(
            error.starts_with("cannot open ") && error.ends_with("/z.toml"),
            "{error}"
        );
    }
}
