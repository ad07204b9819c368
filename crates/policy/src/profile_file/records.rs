//! Names of fields in the client's records.

use std::collections::BTreeSet;

use model::profile::{InitList, Names, RecordNames};
use model::quote::quoted;
use toml::Spanned;

use super::{InitListFile, RecordsFile};
use crate::error::Flaw;
use crate::values::{name, reject_repeated, sentence, word};

/// Permission mode of a client without an option for it.
const DEFAULT_MODE: &str = "default";

/// Parses the names of the fields, including that of the version.
pub(super) fn parsed(file: RecordsFile, names: &Names) -> Result<RecordNames, Flaw> {
    let span = file.init_fields.span();
    let version_field = crate::placeholders::fill(names, file.version_field, &[])?.into_inner();
    let mut seen = BTreeSet::new();
    let mut init_fields = Vec::new();
    for value in file.init_fields.into_inner() {
        let field = crate::placeholders::fill(names, value, &[])?;
        reject_repeated(&mut seen, &field, "each field once")?;
        init_fields.push(field.into_inner());
    }
    if !init_fields.contains(&version_field) {
        let expected = format!("the version's field {} among them", quoted(&version_field));
        return Err(Flaw::new(
            span,
            expected,
            "none",
            "add what `version_field` names",
        ));
    }
    let permission_mode = file.permission_mode.map(name).transpose()?;
    Ok(RecordNames {
        version_field,
        init_fields,
        permission_mode: permission_mode.unwrap_or_else(|| DEFAULT_MODE.to_owned()),
        init_lists: lists(file.init_lists)?,
    })
}

/// Parses the lists, each once, with each name once.
fn lists(file: Vec<InitListFile>) -> Result<Vec<InitList>, Flaw> {
    let mut seen = BTreeSet::new();
    let mut parsed = Vec::new();
    for list in file {
        reject_repeated(&mut seen, &list.field, "each list once")?;
        let mut seen_names = BTreeSet::new();
        let each = |value: Spanned<String>| {
            reject_repeated(&mut seen_names, &value, "each name once")?;
            word(value)
        };
        let names = list
            .names
            .map(|names| names.into_iter().map(each).collect());
        parsed.push(InitList {
            field: list.field.into_inner(),
            names: names.transpose()?,
            reason: sentence(list.reason)?,
        });
    }
    Ok(parsed)
}
