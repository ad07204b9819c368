//! Environment of a client: variables with their cases, and devices.

use std::collections::{BTreeMap, BTreeSet};

use model::case::Device;
use model::profile::{Cases, Variable};
use model::quote::quoted;
use toml::Spanned;

use super::VariableFile;
use crate::error::Flaw;
use crate::values::{check_variable_name, name, reject_repeated, sentence, word};

/// Parses variables, each at most once in each case. `replace` fills placeholders, except those of the run.
pub(crate) fn parsed(
    file: Vec<VariableFile>,
    replace: impl Fn(Spanned<String>) -> Result<Spanned<String>, Flaw>,
) -> Result<Vec<Variable>, Flaw> {
    let mut seen: BTreeMap<String, Vec<Cases>> = BTreeMap::new();
    let mut parsed = Vec::new();
    for variable in file {
        check_variable_name(&variable.name)?;
        let cases = cases(variable.cases)?;
        let earlier = seen.entry(variable.name.get_ref().clone()).or_default();
        reject_overlap(&variable.name, earlier, &cases)?;
        earlier.push(cases.clone());
        parsed.push(Variable {
            name: variable.name.into_inner(),
            value: word(replace(variable.value)?)?,
            cases,
            reason: sentence(variable.reason)?,
        });
    }
    Ok(parsed)
}

/// Parses the devices in /dev, each once.
pub(super) fn devices(file: &[Spanned<Device>]) -> Result<Vec<Device>, Flaw> {
    let mut seen = BTreeSet::new();
    let mut parsed = Vec::new();
    for value in file {
        reject_repeated(&mut seen, value, "each device once")?;
        parsed.push(*value.get_ref());
    }
    Ok(parsed)
}

fn cases(file: Option<Spanned<Vec<Spanned<String>>>>) -> Result<Cases, Flaw> {
    let Some(file) = file else {
        return Ok(Cases::Every);
    };
    let span = file.span();
    let mut seen = BTreeSet::new();
    let mut cases = Vec::new();
    for case in file.into_inner() {
        reject_repeated(&mut seen, &case, "each case once")?;
        cases.push(name(case)?);
    }
    if cases.is_empty() {
        let hint = "leave `cases` out to set the variable in every case";
        return Err(Flaw::new(span, "at least one case", "none", hint));
    }
    Ok(Cases::Only(cases))
}

/// Rejects a variable that a case would set twice.
fn reject_overlap(
    variable: &Spanned<String>,
    earlier: &[Cases],
    cases: &Cases,
) -> Result<(), Flaw> {
    let overlaps = |other: &Cases| match (other, cases) {
        (Cases::Every, _) | (_, Cases::Every) => true,
        (Cases::Only(names), Cases::Only(_)) => names.iter().any(|name| cases.include(name)),
    };
    if !earlier.iter().any(overlaps) {
        return Ok(());
    }
    Err(Flaw::new(
        variable.span(),
        "each variable once in each case",
        format!("{} a second time", quoted(variable.get_ref())),
        "remove one of the two, or give both `cases` that have none in common",
    ))
}
