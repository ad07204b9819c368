//! Project of a new case: the nearest directory above that a tool marked as a project.

use std::env;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use model::quote::shown_path;

use super::UsageError;
use crate::cli::host;
use crate::home_dirs::HomeDirs;
use crate::toolchain::too_wide;

/// Files and directories that mark the root of a project.
const MARKS: [&str; 3] = ["pyproject.toml", "package.json", ".git"];

/// User who owns an object, without following a link; `None` for a missing one.
fn owner(path: &Path) -> Option<u32> {
    fs::symlink_metadata(path).ok().map(|status| status.uid())
}

/// Directory that a case calls `{project}`.
pub(super) struct Project {
    /// The directory, without links.
    pub(super) root: PathBuf,
    /// Way from the directory of the case file up to it.
    pub(super) upwards: Option<String>,
    /// Current directory, if the case starts its client there.
    pub(super) current: Option<PathBuf>,
    /// Mark of the root.
    pub(super) mark: Option<&'static str>,
    /// Lines about it for the user.
    pub(super) notes: Vec<String>,
}

impl Project {
    /// Finds the project of the case `file`: the nearest marked directory above the current one, if it holds the file,
    /// else the directory of the file.
    pub(super) fn of(file: &Path) -> Result<Self, UsageError> {
        let own = host::canonical(file.parent().unwrap_or(Path::new("/")))?;
        let current = env::current_dir().and_then(fs::canonicalize).ok();
        let homes = HomeDirs::of_caller();
        let marked = current.iter().flat_map(|current| current.ancestors());
        let mut marked = marked.filter_map(|above| {
            let mut marks = MARKS.into_iter();
            // Another user's mark could make a directory of theirs the project.
            let mark = marks.find(|mark| owner(&above.join(mark)) == owner(&own))?;
            Some((above.to_owned(), mark))
        });
        let nearest = marked
            .next()
            .filter(|(root, _)| own.starts_with(root) && too_wide(root, &homes).is_none());
        let (root, mark) = match nearest {
            Some((root, mark)) => (root, Some(mark)),
            None => (own.clone(), None),
        };
        let depth = own
            .strip_prefix(&root)
            .map_or(0, |below| below.components().count());
        let upwards = (depth > 0).then(|| vec![".."; depth].join("/"));
        let mut notes = Vec::new();
        let current = current.filter(|current| current.starts_with(&root));
        let shown = if mark.is_some() {
            Some(&root)
        } else {
            current.as_ref()
        };
        let refused = shown.and_then(|shown| too_wide(shown, &homes));
        match (mark, &refused) {
            (_, Some(refused)) => notes.push(refused.to_string()),
            (Some(mark), None) => {
                notes.push(format!(
                    "shows {} as {{project}}: {mark} is there",
                    shown_path(&root)
                ));
            }
            (None, None) if current.is_some() => {
                notes.push(format!("shows {} as {{project}}", shown_path(&root)));
            }
            (None, None) => {}
        }
        Ok(Self {
            root,
            upwards,
            current: current.filter(|_| refused.is_none()),
            mark,
            notes,
        })
    }

    /// Path below the project, with its placeholder.
    pub(super) fn relative(&self, path: &Path) -> Option<String> {
        let below = path.strip_prefix(&self.root).ok()?.to_str()?;
        Some(match below {
            "" => "{project}".to_owned(),
            below => format!("{{project}}/{below}"),
        })
    }
}
