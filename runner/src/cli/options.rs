//! Options that several commands have.

use std::path::PathBuf;

use model::case::Tier;
use model::quote::{quoted, with_nearest};
use scenario::Scenario;

use super::{IsolationArgument, UsageError};
use crate::request::{Baseline, IsolationChoice};

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
