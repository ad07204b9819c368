//! One policy file: bytes, digest, kind, the line of each key, and the position of each fault.
//!
//! Owns reading: regular files only, opened without blocking, limited in length, UTF-8. Of the keys, it knows `schema`
//! and `summary` only.

use std::path::{Path, PathBuf};

use model::audit::AuditPolicy;
use model::case::{Case, Origin, Outline, Source};
use model::digest;
use model::escape::visible;
use model::profile::Profile;
use model::quote::{Position, known_words, quoted, shown_path};
use serde::de::DeserializeOwned;
use sys::read::{self, ReadError};
use toml::de::{DeTable, DeValue};

use super::audit_file::AuditFile;
use super::case_file::CaseFile;
use super::error::{Flaw, MAX_FILE_BYTES};
use super::profile_file::ProfileFile;
use super::structure::{self, key_at};
use super::{Entry, Fault, Kind, PolicyError, Reference, builtin};
use crate::below;

/// Policy file that was read, but not parsed into the model yet.
#[derive(Debug)]
pub(super) struct Document {
    /// Name of the file for messages.
    file: String,
    origin: Origin,
    kind: Kind,
}

impl Document {
    /// Reads a built-in policy or a file, and checks its kind if one is wanted.
    pub(super) fn load(reference: &Reference, wanted: Option<Kind>) -> Result<Self, PolicyError> {
        let (file, source, path, bytes) = match reference {
            Reference::BuiltIn(name) => {
                let builtin = builtin::find(name, wanted)?;
                (
                    format!("built-in {name}"),
                    Source::BuiltIn,
                    PathBuf::from(builtin.file),
                    builtin.text.as_bytes().to_vec(),
                )
            }
            Reference::File(path) => {
                let file = shown_path(path);
                let bytes = read(path)?;
                let current = std::env::current_dir().ok();
                let relative = below(current.as_deref(), path);
                (file, Source::File(path.clone()), relative, bytes)
            }
        };
        let mut document = Self::from_bytes(file, source, bytes, wanted)?;
        let lines = structure::lines(&document.origin.text, document.table()?.get_ref());
        document.origin.outline = Outline::new(path, lines);
        Ok(document)
    }

    /// Detects the kind of a file by its key `schema`.
    pub(super) fn from_bytes(
        file: String,
        source: Source,
        bytes: Vec<u8>,
        wanted: Option<Kind>,
    ) -> Result<Self, PolicyError> {
        let sha256 = digest::of_bytes(&bytes);
        let text = String::from_utf8(bytes).map_err(|error| {
            let offset = error.utf8_error().valid_up_to();
            let bytes = error.as_bytes();
            PolicyError::NotUtf8 {
                file: file.clone(),
                at: Position::of(bytes, offset),
                byte: bytes.get(offset).copied().unwrap_or_default(),
            }
        })?;
        let mut document = Self {
            file,
            origin: Origin {
                source,
                sha256,
                text: text.into(),
                outline: Outline::default(),
            },
            kind: Kind::Case,
        };
        document.kind = document.declared_kind()?;
        match wanted {
            Some(wanted) if wanted != document.kind => Err(PolicyError::WrongKind {
                file: document.file,
                found: document.kind,
                wanted,
            }),
            Some(_) | None => Ok(document),
        }
    }

    /// Parses the file as a case.
    pub(super) fn case(&self) -> Result<Case, PolicyError> {
        let file: CaseFile = self.parse()?;
        file.into_case(self.origin.clone())
            .map_err(|flaw| self.fault(flaw))
    }

    /// Parses the file as a profile.
    pub(super) fn profile(&self) -> Result<Profile, PolicyError> {
        let file: ProfileFile = self.parse()?;
        file.into_profile(self.origin.clone())
            .map_err(|flaw| self.fault(flaw))
    }

    /// Parses the file as an audit policy.
    pub(super) fn audit(&self) -> Result<AuditPolicy, PolicyError> {
        let file: AuditFile = self.parse()?;
        file.into_policy(self.origin.clone())
            .map_err(|flaw| self.fault(flaw))
    }

    /// Parses the file as its own kind, and returns its entry in listings.
    pub(super) fn entry(&self) -> Result<Entry, PolicyError> {
        let name = match self.kind {
            Kind::Case => self.case()?.name,
            Kind::Profile => self.profile()?.name,
            Kind::Audit => self.audit()?.name,
        };
        let summary = match self
            .table()?
            .get_ref()
            .get("summary")
            .map(toml::Spanned::get_ref)
        {
            Some(DeValue::String(summary)) => summary.to_string(),
            _ => String::new(),
        };
        Ok(Entry {
            name,
            kind: self.kind,
            sha256: self.origin.sha256.clone(),
            summary,
        })
    }

    fn declared_kind(&self) -> Result<Kind, PolicyError> {
        let kinds = Kind::ALL;
        let hint = || {
            format!(
                "a case begins with schema = {:?}, a profile with {:?}",
                Kind::Case.schema(),
                Kind::Profile.schema()
            )
        };
        let table = self.table()?;
        let Some(value) = table.get_ref().get("schema") else {
            return Err(self.fault(Flaw::new(0..0, "the key `schema`", "none", hint())));
        };
        let DeValue::String(schema) = value.get_ref() else {
            let found = value.get_ref().type_str();
            return Err(self.fault(Flaw::new(value.span(), "a string", found, hint())));
        };
        kinds
            .into_iter()
            .find(|kind| kind.schema() == schema)
            .ok_or_else(|| {
                let known = known_words(schema, kinds.map(Kind::schema));
                self.fault(Flaw::new(
                    value.span(),
                    "a schema that this version reads",
                    quoted(schema),
                    known,
                ))
            })
    }

    fn parse<T: DeserializeOwned>(&self) -> Result<T, PolicyError> {
        let deserializer = toml::de::Deserializer::from(self.table()?);
        T::deserialize(deserializer).map_err(|error| {
            let span = error.span().unwrap_or_default();
            self.fault(structure::explain(&self.origin.text, error.message(), span))
        })
    }

    fn table(&self) -> Result<toml::Spanned<DeTable<'_>>, PolicyError> {
        DeTable::parse(&self.origin.text).map_err(|error| {
            let span = error
                .span()
                .unwrap_or(self.origin.text.len()..self.origin.text.len());
            let marked = self
                .origin
                .text
                .get(span.clone())
                .filter(|text| !text.is_empty());
            let rest_of_line = self
                .origin
                .text
                .get(span.start..)
                .and_then(|rest| rest.lines().next());
            let found = marked
                .or(rest_of_line)
                .map_or("the end of the file".into(), quoted);
            PolicyError::Syntax {
                file: self.file.clone(),
                at: Position::of(self.origin.text.as_bytes(), span.start),
                message: visible(error.message()),
                found,
            }
        })
    }

    fn fault(&self, flaw: Flaw) -> PolicyError {
        PolicyError::Fault(Box::new(Fault {
            file: self.file.clone(),
            at: Position::of(self.origin.text.as_bytes(), flaw.span.start),
            key: key_at(&self.origin.text, &flaw.span),
            problem: flaw.problem,
            hint: flaw.hint,
        }))
    }
}

fn read(path: &Path) -> Result<Vec<u8>, PolicyError> {
    read::regular(path, MAX_FILE_BYTES).map_err(|error| match error {
        ReadError::Open { file, source } => PolicyError::Open { file, source },
        ReadError::Read { file, source } => PolicyError::Read { file, source },
        ReadError::NotAFile { file, found } => PolicyError::NotAFile { file, found },
        ReadError::TooLarge { file, .. } => PolicyError::TooLarge { file },
    })
}
