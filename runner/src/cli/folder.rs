//! Resolution of several cases: files, and directories of files.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use model::quote::shown_path;
use policy::Reference;

use super::{RunOptions, UsageError, reports, run};
use crate::request::{CaseRun, FleetRequest, StdinChoice};

/// Checks for one file, whose run has reports of its own.
pub(super) fn is_single(cases: &[PathBuf]) -> bool {
    matches!(cases, [case] if !case.is_dir())
}

/// Runs of all cases of `paths`, with the same options.
pub(super) fn request(
    paths: &[PathBuf],
    mut options: RunOptions,
    search_path: Option<&OsStr>,
) -> Result<FleetRequest, UsageError> {
    reject_options_of_one_case(&options)?;
    let reports = reports::targets(std::mem::take(&mut options.report))?;
    let out = options.out.take();
    let (files, not_cases) = files(paths)?;
    let mut runs = Vec::with_capacity(files.len());
    for file in files {
        let request = run::request(&Reference::File(file.clone()), options.clone(), search_path);
        let mut request = request.map_err(|error| in_case(&file, error))?;
        if request.stdin == StdinChoice::Inherit {
            return Err(UsageError::NotForSeveral {
                option: "--stdin inherit",
                hint: "the first case would read it to its end; name a file",
            });
        }
        request.reports.clear();
        runs.push(CaseRun { file, request });
    }
    runs.sort_by(|one, other| {
        one.request
            .workload
            .name()
            .cmp(other.request.workload.name())
    });
    let pairs = runs.iter().zip(runs.iter().skip(1));
    for (one, other) in pairs {
        let name = one.request.workload.name();
        if name == other.request.workload.name() {
            return Err(UsageError::SameName {
                name: name.to_owned(),
                first: shown_path(&one.file),
                second: shown_path(&other.file),
            });
        }
    }
    Ok(FleetRequest {
        runs,
        not_cases,
        reports,
        out,
    })
}

/// Rejects options that hold for one case only.
fn reject_options_of_one_case(options: &RunOptions) -> Result<(), UsageError> {
    let given = [
        (
            options.baseline.is_some(),
            "--baseline",
            "a lock file belongs to one case: run each case by itself",
        ),
        (
            options.require_case.is_some(),
            "--require-case",
            "a digest belongs to one case: run each case by itself",
        ),
    ];
    match given.into_iter().find(|(given, ..)| *given) {
        Some((_, option, hint)) => Err(UsageError::NotForSeveral { option, hint }),
        None => Ok(()),
    }
}

/// Lists the case files of `paths`, and the other TOML files of the directories.
fn files(paths: &[PathBuf]) -> Result<(Vec<PathBuf>, Vec<PathBuf>), UsageError> {
    let (mut cases, mut others) = (Vec::new(), Vec::new());
    for path in paths {
        if !path.is_dir() {
            cases.push(path.clone());
            continue;
        }
        let folder = policy::folder(path).map_err(UsageError::Folder)?;
        if folder.cases.is_empty() {
            return Err(UsageError::NoCases {
                directory: shown_path(path),
            });
        }
        cases.extend(folder.cases);
        others.extend(folder.others);
    }
    Ok((cases, others))
}

/// Names the case in an error that does not.
fn in_case(file: &Path, error: UsageError) -> UsageError {
    if matches!(error, UsageError::Case(_)) {
        return error;
    }
    UsageError::InCase {
        file: shown_path(file),
        source: Box::new(error),
    }
}
