//! Options that several commands have.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use model::case::{Limits, Root, SandboxRules, Tier};
use model::quote::{quoted, with_nearest};
use policy::LimitName;
use scenario::Scenario;

use super::{IsolationArgument, UsageError};
use crate::request::{Baseline, IsolationChoice, StdinChoice};

/// Checks the requested isolation against the kinds that the policy accepts.
pub(super) fn isolation(
    argument: IsolationArgument,
    accepted: &[Tier],
) -> Result<IsolationChoice, UsageError> {
    match argument {
        IsolationArgument::Auto => Ok(IsolationChoice::Auto),
        IsolationArgument::Namespace => demanded(Tier::Namespace, accepted),
        IsolationArgument::Inherited => demanded(Tier::Inherited, accepted),
    }
}

fn demanded(tier: Tier, accepted: &[Tier]) -> Result<IsolationChoice, UsageError> {
    if accepted.contains(&tier) {
        Ok(IsolationChoice::Demanded(tier))
    } else {
        Err(UsageError::TierNotAccepted { tier })
    }
}

/// Use of the lock file, if one is named.
pub(super) fn baseline(file: Option<PathBuf>, update: bool) -> Option<Baseline> {
    file.map(if update {
        Baseline::Update
    } else {
        Baseline::Compare
    })
}

/// Finds the stub's scenario by name.
pub(super) fn scenario(name: &str) -> Result<Scenario, UsageError> {
    Scenario::named(name).ok_or_else(|| UsageError::NoScenario {
        name: quoted(name),
        known: with_nearest(
            name,
            Scenario::names().map(|known| known.name),
            "`runner policy list` names all of them",
        ),
    })
}

/// Returns the typed standard input, or `default`.
pub(super) fn stdin(typed: Option<OsString>, default: StdinChoice) -> StdinChoice {
    match typed {
        None => default,
        Some(word) if word == "none" => StdinChoice::Nothing,
        Some(word) if word == "inherit" || word == "-" => StdinChoice::Inherit,
        Some(file) => StdinChoice::File(file.into()),
    }
}

/// Adds the trees of `--allow-exec`.
pub(super) fn allow_exec(sandbox: &mut SandboxRules, asked: &[Root]) {
    for tree in asked {
        if !sandbox.exec.contains(tree) {
            sandbox.exec.push(*tree);
        }
    }
}

/// Sets the limits of the command line. A longer wall time raises the processor time, unless that is given too.
pub(super) fn set_limits(
    limits: &mut Limits,
    asked: &[String],
    timeout: Option<Duration>,
) -> Result<(), UsageError> {
    let usual = limits.timeout;
    let mut names = Vec::new();
    for text in asked {
        names.push(policy::set_limit(limits, text)?);
    }
    if !names.contains(&LimitName::CpuTime) {
        policy::raise_cpu_time(limits, usual, timeout.unwrap_or(limits.timeout));
    }
    Ok(())
}
