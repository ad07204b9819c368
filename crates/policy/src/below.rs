//! Paths relative to a repository.

use std::path::{Component, Path, PathBuf};

/// Returns `path` relative to `directory`, or the file name of a path outside of it.
///
/// The root directory counts as outside, because no project is there. A path with `..` is resolved first, because it
/// may pass through symbolic links.
pub fn below(directory: Option<&Path>, path: &Path) -> PathBuf {
    let file_name = || path.file_name().map(PathBuf::from).unwrap_or_default();
    let Some(directory) = directory.filter(|directory| directory.parent().is_some()) else {
        return file_name();
    };
    let joined = directory.join(path);
    let resolved = || {
        let parent = joined.parent()?.canonicalize().ok()?;
        Some(parent.join(joined.file_name()?))
    };
    relative(directory, &joined)
        .or_else(|| relative(directory, &resolved()?))
        .unwrap_or_else(file_name)
}

/// Returns `path` relative to `directory`, without `..`; `None` for a path outside of it.
fn relative(directory: &Path, path: &Path) -> Option<PathBuf> {
    let rest = path.strip_prefix(directory).ok()?;
    let mut components = rest.components();
    let is_plain = components.all(|component| matches!(component, Component::Normal(_)));
    // Collecting the components turns `a//b` and `a/./b` into `a/b`.
    is_plain.then(|| rest.components().collect())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_path_below_the_directory_is_relative_to_it_however_it_was_typed() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("cases/more")).unwrap();
        symlink(root.join("cases"), root.join("link")).unwrap();
        for typed in [
            "cases/b.toml",
            "./cases//b.toml",
            "cases/more/../b.toml",
            "link/../cases/b.toml",
        ] {
            let shown = below(Some(&root), Path::new(typed));
            assert_eq!(shown.to_str(), Some("cases/b.toml"), "{typed}");
        }
        let whole = root.join("cases/b.toml");
        assert_eq!(below(Some(&root), &whole).to_str(), Some("cases/b.toml"));
        let by_link = root.join("link");
        assert_eq!(below(Some(&by_link), &whole).to_str(), Some("b.toml"));
    }

    #[test]
    fn a_path_that_lies_elsewhere_is_its_files_name() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        fs::create_dir(root.join("here")).unwrap();
        let here = root.join("here");
        let there = root.join("there/case.toml");
        assert_eq!(below(Some(&here), &there).to_str(), Some("case.toml"));
        let up = Path::new("../case.toml");
        assert_eq!(below(Some(&here), up).to_str(), Some("case.toml"));
        assert_eq!(
            below(Some(Path::new("/")), &there).to_str(),
            Some("case.toml")
        );
        assert_eq!(below(None, &there).to_str(), Some("case.toml"));
    }
}
