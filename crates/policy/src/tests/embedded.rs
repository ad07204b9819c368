//! Agreement of the built-in policies with their files: what the build script embedded, and what the parser reads.

use std::fmt::Debug;
use std::fs;
use std::path::{Path, PathBuf};

use model::case::{Origin, Outline, Source};
use sha2::{Digest, Sha256};

use super::super::builtin::{self, BuiltIn};
use super::super::document::Document;
use super::built_in;
use crate::{Kind, PolicyError};

/// Checks that a policy parsed at build time is the one that the parser reads from its text.
#[track_caller]
fn assert_same<T: Debug>(
    builtin: &BuiltIn,
    parse: fn(&Document) -> Result<T, PolicyError>,
    origin: fn(&mut T) -> &mut Origin,
) {
    let embedded = Document::load(&built_in(builtin.name), Some(builtin.kind)).unwrap();
    let text = builtin.text.into();
    let text = Document::from_bytes("x.toml".into(), Source::BuiltIn, text).unwrap();
    let mut embedded = parse(&embedded).unwrap();
    let mut parsed = parse(&text).unwrap_or_else(|error| panic!("{error}"));
    // Only the path is not in the text.
    let path = PathBuf::from(builtin.file);
    assert_eq!(origin(&mut embedded).outline.path(), path);
    let outline = Outline::new(PathBuf::new(), builtin.lines.into());
    assert_eq!(origin(&mut parsed).outline, outline);
    origin(&mut embedded).outline = outline;
    assert_eq!(format!("{embedded:#?}"), format!("{parsed:#?}"));
}

#[test]
fn built_in_values_are_those_of_the_text() {
    for builtin in builtin::ALL {
        match builtin.kind {
            Kind::Case => assert_same(builtin, Document::case, |case| &mut case.origin),
            Kind::Profile => assert_same(builtin, Document::profile, |profile| &mut profile.origin),
            Kind::Audit => assert_same(builtin, Document::audit, |audit| &mut audit.origin),
        }
    }
}

#[test]
fn built_in_entries_are_those_of_the_text() {
    for builtin in builtin::ALL {
        let embedded = crate::check(&built_in(builtin.name)).unwrap();
        assert_eq!(embedded, super::parse(builtin.text).unwrap());
    }
}

#[test]
fn built_in_texts_and_digests_are_those_of_the_files() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for builtin in builtin::ALL {
        let bytes = fs::read(root.join(builtin.file)).unwrap();
        let digest = Sha256::digest(&bytes);
        let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(builtin.sha256, digest, "{}", builtin.file);
        assert_eq!(builtin.text.as_bytes(), bytes, "{}", builtin.file);
    }
}

#[test]
fn built_in_policies_are_listed_by_kind_and_name() {
    let names = builtin::ALL.iter().map(|builtin| builtin.name);
    let expected = ["case-a", "case-b", "claude-code", "reference", "audit"];
    assert_eq!(Vec::from_iter(names), expected);
}
