//! One policy file: bytes, digest, kind, the line of each key, and the position of each fault.
//!
//! Owns reading: regular files only, opened without blocking, limited in length, UTF-8. Of the keys, it knows `schema`
//! and `summary` only.

use std::borrow::Cow;
use std::env;
use std::path::{Path, PathBuf};

use model::audit::AuditPolicy;
use model::case::{Case, Origin, Outline, Source};
use model::digest;
use model::escape::visible;
use model::profile::Profile;
use model::quote::{Position, known_words, quoted, shown_path};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use sys::read::{self, ReadError};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::audit_file::AuditFile;
use super::builtin::BuiltIn;
use super::case_file::CaseFile;
use super::error::{Flaw, MAX_FILE_BYTES};
use super::lines::lines;
use super::profile_file::ProfileFile;
use super::structure::{self, key_at};
use super::value::Node;
use super::{Entry, Fault, Kind, PolicyError, Reference, builtin};
use crate::below;

/// Policy that was read, but not parsed into the model yet.
#[derive(Debug)]
pub(super) struct Document {
    /// Name of the file for messages.
    file: String,
    origin: Origin,
    /// Policy that the build script parsed; otherwise the text is parsed.
    builtin: Option<&'static BuiltIn>,
}

impl Document {
    /// Reads a built-in policy, of a kind if one is wanted, or a file.
    pub(super) fn load(reference: &Reference, wanted: Option<Kind>) -> Result<Self, PolicyError> {
        match reference {
            Reference::BuiltIn(name) => builtin::find(name, wanted).map(Self::built_in),
            Reference::File(path) => {
                Self::from_bytes(shown_path(path), Source::File(path.clone()), read(path)?)
            }
        }
    }

    fn built_in(builtin: &'static BuiltIn) -> Self {
        let lines = Cow::Borrowed(builtin.lines);
        Self {
            file: format!("built-in {}", builtin.name),
            origin: Origin {
                source: Source::BuiltIn,
                sha256: builtin.sha256.to_owned(),
                text: builtin.text.into(),
                outline: Outline::new(PathBuf::from(builtin.file), lines),
            },
            builtin: Some(builtin),
        }
    }

    /// Decodes a file.
    pub(super) fn from_bytes(
        file: String,
        source: Source,
        bytes: Vec<u8>,
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
        Ok(Self {
            file,
            origin: Origin {
                source,
                sha256,
                text: text.into(),
                outline: Outline::default(),
            },
            builtin: None,
        })
    }

    /// Text of the policy.
    pub(super) fn text(&self) -> &str {
        &self.origin.text
    }

    /// Parses the policy as a case.
    pub(super) fn case(&self) -> Result<Case, PolicyError> {
        self.parse(Kind::Case, CaseFile::into_case)
    }

    /// Parses the policy as a profile.
    pub(super) fn profile(&self) -> Result<Profile, PolicyError> {
        self.parse(Kind::Profile, ProfileFile::into_profile)
    }

    /// Parses the policy as an audit policy.
    pub(super) fn audit(&self) -> Result<AuditPolicy, PolicyError> {
        self.parse(Kind::Audit, AuditFile::into_policy)
    }

    /// Returns the declared kind; `None` for TOML of another program, without a schema of `runner`.
    ///
    /// # Errors
    /// Text that is not TOML, or an unknown schema of `runner`.
    pub(super) fn kind(&self) -> Result<Option<Kind>, PolicyError> {
        let table = self.table()?;
        let schema = table.get_ref().get("schema");
        let schema = schema.and_then(|schema| schema.get_ref().as_str());
        match schema.is_some_and(|schema| schema.starts_with("runner.")) {
            true => self.declared_kind(&table).map(Some),
            false => Ok(None),
        }
    }

    /// Parses the policy as its own kind, and returns its entry in listings.
    pub(super) fn entry(&self) -> Result<Entry, PolicyError> {
        let (kind, summary) = match self.builtin {
            Some(builtin) => (
                builtin.kind,
                builtin.values.text("summary").map(str::to_owned),
            ),
            None => {
                let table = self.table()?;
                let summary = table.get_ref().get("summary");
                let summary = summary.and_then(|summary| summary.get_ref().as_str());
                (self.declared_kind(&table)?, summary.map(str::to_owned))
            }
        };
        let (name, not_reviewed) = match kind {
            Kind::Case => {
                let case = self.case()?;
                (case.name, case.expect.not_reviewed())
            }
            Kind::Profile => (self.profile()?.name, 0),
            Kind::Audit => (self.audit()?.name, 0),
        };
        Ok(Entry {
            name,
            kind,
            sha256: self.origin.sha256.clone(),
            summary: summary.unwrap_or_default(),
            not_reviewed,
        })
    }

    /// Deserialises the content, and turns it into the model.
    fn parse<F: DeserializeOwned, T>(
        &self,
        wanted: Kind,
        into_model: impl FnOnce(F, Origin) -> Result<T, Flaw>,
    ) -> Result<T, PolicyError> {
        let builtin = self.builtin.map(|builtin| Node::Embedded(&builtin.values));
        let (form, origin) = match builtin {
            Some(values) => (self.deserialized(values)?, self.origin.clone()),
            None => self.parsed(wanted)?,
        };
        into_model(form, origin).map_err(|flaw| self.fault(flaw))
    }

    /// Parses and deserialises the text. Returns the origin with the lines of the keys.
    fn parsed<F: DeserializeOwned>(&self, wanted: Kind) -> Result<(F, Origin), PolicyError> {
        let table = self.table()?;
        let found = self.declared_kind(&table)?;
        if found != wanted {
            return Err(PolicyError::WrongKind {
                file: self.file.clone(),
                found,
                wanted,
            });
        }
        let mut origin = self.origin.clone();
        origin.outline = self.outline(&table);
        let root = Spanned::new(table.span(), DeValue::Table(table.into_inner()));
        Ok((self.deserialized(Node::Parsed(&root))?, origin))
    }

    fn deserialized<'t, F: Deserialize<'t>>(&self, root: Node<'t>) -> Result<F, PolicyError> {
        F::deserialize(root).map_err(|error| {
            let span = error.span.unwrap_or_default();
            self.fault(structure::explain(&self.origin.text, &error.message, span))
        })
    }

    fn outline(&self, table: &Spanned<DeTable<'_>>) -> Outline {
        let path = match &self.origin.source {
            Source::File(path) => below(env::current_dir().ok().as_deref(), path),
            Source::BuiltIn => PathBuf::new(),
        };
        let lines = lines(&self.origin.text, table.get_ref()).into_iter();
        Outline::new(path, lines.map(|(key, line)| (key.into(), line)).collect())
    }

    fn declared_kind(&self, table: &Spanned<DeTable<'_>>) -> Result<Kind, PolicyError> {
        let kinds = Kind::ALL;
        let hint = || {
            format!(
                "a case begins with schema = {:?}, a profile with {:?}",
                Kind::Case.schema(),
                Kind::Profile.schema()
            )
        };
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

    fn table(&self) -> Result<Spanned<DeTable<'_>>, PolicyError> {
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
