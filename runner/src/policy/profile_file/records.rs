//! How the records of a profile's client spell things.

use std::collections::BTreeSet;

use super::RecordsFile;
use crate::policy::error::{Flaw, quoted};
use crate::policy::values::once;
use crate::profile::{Names, RecordNames};

/// The fields, the version's among them.
pub(super) fn parsed(file: RecordsFile, names: &Names) -> Result<RecordNames, Flaw> {
    let span = file.init_fields.span();
    let version_field = names.fill(file.version_field, &[])?.into_inner();
    let mut seen = BTreeSet::new();
    let mut init_fields = Vec::new();
    for value in file.init_fields.into_inner() {
        let field = names.fill(value, &[])?;
        once(&mut seen, &field, "each field once")?;
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
    Ok(RecordNames {
        version_field,
        init_fields,
    })
}
