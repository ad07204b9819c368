//! Parses the files of `policies/`, and writes them as constants: text, digest, values and lines of the keys.
//!
//! The executable then starts without a TOML parser, whose pages and work were the larger part of reading a policy.

#[path = "src/lines.rs"]
mod lines;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use sha2::{Digest as _, Sha256};
use toml::de::{DeTable, DeValue};

/// Folders of the policies, below the root of the repository.
const FOLDERS: [&str; 2] = ["policies", "policies/profiles"];

/// Value of the key `schema`, and its variant of `Kind`, in the order of listings.
const KINDS: [(&str, &str); 3] = [
    ("runner.case/1", "Case"),
    ("runner.profile/1", "Profile"),
    ("runner.audit/1", "Audit"),
];

fn main() {
    if let Err(error) = write() {
        println!("cargo::error=cannot embed the built-in policies: {error}");
    }
}

fn write() -> Result<(), String> {
    let variable = |name| {
        env::var_os(name)
            .map(PathBuf::from)
            .ok_or(format!("no {name}"))
    };
    let root = variable("CARGO_MANIFEST_DIR")?.join("../..");
    let mut policies = Vec::new();
    for folder in FOLDERS {
        println!("cargo::rerun-if-changed={}", root.join(folder).display());
        for file in files(&root, folder)? {
            policies.push(policy(&root, &file).map_err(|error| format!("{file}: {error}"))?);
        }
    }
    policies.sort();
    let policies: String = policies.into_iter().map(|(_, _, code)| code).collect();
    let code = format!("&[\n{policies}]\n");
    let out = variable("OUT_DIR")?.join("builtin.rs");
    fs::write(&out, code).map_err(|error| format!("cannot write {}: {error}", out.display()))
}

/// Returns the TOML files of a folder, relative to the root.
fn files(root: &Path, folder: &str) -> Result<Vec<String>, String> {
    let failed = |error| format!("cannot read the folder {folder}: {error}");
    let mut files = Vec::new();
    for entry in fs::read_dir(root.join(folder)).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let name = name.to_str().ok_or("expected UTF-8 names of files")?;
        if name.ends_with(".toml") {
            files.push(format!("{folder}/{name}"));
        }
    }
    Ok(files)
}

/// Returns the place among [`KINDS`], the name, and the `BuiltIn` of a policy as Rust source.
fn policy(root: &Path, file: &str) -> Result<(usize, String, String), String> {
    let path = root.join(file);
    let text = fs::read_to_string(&path).map_err(|error| format!("cannot read it: {error}"))?;
    let document = DeTable::parse(&text).map_err(|error| {
        let start = error.span().unwrap_or_default().start;
        let before = text.bytes().take(start);
        let line = before.filter(|byte| *byte == b'\n').count() + 1;
        format!("line {line}: not well-formed TOML: {}", error.message())
    })?;
    let document = document.get_ref();
    let schema = document
        .get("schema")
        .and_then(|value| value.get_ref().as_str());
    let kind = KINDS.iter().position(|(known, _)| Some(*known) == schema);
    let kind = kind.ok_or_else(|| {
        let known = KINDS.map(|(schema, _)| schema);
        format!("expected `schema` to be one of {known:?}, found {schema:?}")
    })?;
    let name = path.file_stem().and_then(|name| name.to_str());
    let name = name.unwrap_or_default().to_owned();
    let digest: String = Sha256::digest(&text)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let lines: String = lines::lines(&text, document)
        .iter()
        .map(|(key, line)| format!("(Cow::Borrowed({key:?}), {line}), "))
        .collect();
    let mut values = String::new();
    write_table(&mut values, document)?;
    let variant = KINDS[kind].1;
    let code = format!(
        "BuiltIn {{ name: {name:?}, kind: Kind::{variant}, file: {file:?}, \
         text: include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/../../\", {file:?})), \
         sha256: {digest:?}, values: {values}, lines: &[{lines}] }},\n"
    );
    Ok((kind, name, code))
}

fn write_table(code: &mut String, table: &DeTable<'_>) -> Result<(), String> {
    code.push_str("Value::Table(&[");
    for (key, value) in table {
        let key = key.get_ref();
        // Writing to a string cannot fail.
        let _ = write!(code, "({key:?}, ");
        write_value(code, value.get_ref()).map_err(|error| format!("`{key}`: {error}"))?;
        code.push_str("), ");
    }
    code.push_str("])");
    Ok(())
}

fn write_value(code: &mut String, value: &DeValue<'_>) -> Result<(), String> {
    match value {
        DeValue::Table(table) => write_table(code, table)?,
        DeValue::Array(items) => {
            code.push_str("Value::List(&[");
            for item in items.iter() {
                write_value(code, item.get_ref())?;
                code.push_str(", ");
            }
            code.push_str("])");
        }
        DeValue::String(text) => code.push_str(&format!("Value::Text({text:?})")),
        DeValue::Boolean(value) => code.push_str(&format!("Value::Boolean({value})")),
        DeValue::Integer(number) => {
            let value = i64::from_str_radix(number.as_str(), number.radix());
            let value = value.map_err(|error| format!("{number}: {error}"))?;
            code.push_str(&format!("Value::Integer({value})"));
        }
        DeValue::Float(_) | DeValue::Datetime(_) => {
            let found = value.type_str();
            return Err(format!(
                "expected a value that a policy can have, found a {found}"
            ));
        }
    }
    Ok(())
}
