//! `runner policy`: lists, prints and checks policy files, and prints new ones and schemas. Runs no client.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use model::quote::shown_path;
use model::schema;
use model::text::count;
use policy::elf_deps::{ElfDeps, ElfError};
use policy::{self, Entry, Kind, PolicyError, Reference, init};
use report::json;
use scenario::{Scenario, Summary};
use thiserror::Error;

use crate::error_text::message;
use crate::request::{InitAction, PolicyAction, SchemaForm};
use crate::{diff, doctor, selftest};

/// Result of the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Exit status 0.
    Good,
    /// A checked file is wrong, and its error was written: exit status 2.
    Bad,
}

/// Errors of `runner policy`.
#[derive(Debug, Error)]
pub(crate) enum PolicyCommandError {
    /// The named policy cannot be read: exit status 2.
    #[error("cannot print the policy")]
    Policy(#[source] PolicyError),
    /// The libraries of the program cannot be found: exit status 2.
    #[error("cannot make the profile")]
    ElfDeps(#[source] ElfError),
    /// The schema cannot be written as JSON.
    #[error("cannot write the schema as JSON")]
    Schema(#[source] serde_json::Error),
    /// The output cannot be written: exit status 2.
    #[error("cannot write the output")]
    Write(#[from] io::Error),
}

impl PolicyCommandError {
    /// Advice for the user, in one line.
    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Self::Policy(error) => Some(error.hint()),
            Self::ElfDeps(error) => error.hint().map(str::to_owned),
            Self::Schema(_) | Self::Write(_) => None,
        }
    }
}

/// Runs the action and writes its output to `out`.
pub(crate) fn run(
    action: &PolicyAction,
    out: &mut impl Write,
) -> Result<Outcome, PolicyCommandError> {
    let outcome = match action {
        PolicyAction::List => list(out)?,
        PolicyAction::Show(policy) => show(policy, out)?,
        PolicyAction::Check {
            files,
            require_reviewed,
        } => check(files, *require_reviewed, out)?,
        PolicyAction::Schema(form) => print_schema(*form, out)?,
        PolicyAction::Init(action) => start(action, out)?,
    };
    out.flush()?;
    Ok(outcome)
}

fn list(out: &mut impl Write) -> Result<Outcome, PolicyCommandError> {
    for Entry {
        name,
        kind,
        sha256,
        summary,
        ..
    } in policy::list().map_err(PolicyCommandError::Policy)?
    {
        writeln!(out, "{name:<11} {:<8} {sha256}  {summary}", kind.word())?;
    }
    // Values of `scenario` in a case and of `--stub`. Scenarios are part of the executable, so they have no digest.
    for Summary { name, summary } in Scenario::names() {
        writeln!(out, "{name:<29} scenario  {summary}")?;
    }
    Ok(Outcome::Good)
}

fn show(policy: &Reference, out: &mut impl Write) -> Result<Outcome, PolicyCommandError> {
    let text = policy::show(policy).map_err(PolicyCommandError::Policy)?;
    out.write_all(text.as_bytes())?;
    Ok(Outcome::Good)
}

fn print_schema(form: SchemaForm, out: &mut impl Write) -> Result<Outcome, PolicyCommandError> {
    let schema = match form {
        SchemaForm::Case => policy::schema(Kind::Case),
        SchemaForm::Profile => policy::schema(Kind::Profile),
        SchemaForm::Audit => policy::schema(Kind::Audit),
        SchemaForm::Report => json::schema(),
        SchemaForm::Fleet => report::fleet::schema(),
        SchemaForm::Doctor => doctor::json::schema(),
        SchemaForm::Selftest => selftest::schema(),
        SchemaForm::Diff => diff::schema(),
    };
    out.write_all(&schema::print(&schema).map_err(PolicyCommandError::Schema)?)?;
    Ok(Outcome::Good)
}

fn start(action: &InitAction, out: &mut impl Write) -> Result<Outcome, PolicyCommandError> {
    let text = match action {
        InitAction::Case(name) => init::case(name),
        InitAction::Profile { name, client } => {
            let deps = client.as_deref().map(ElfDeps::of).transpose();
            init::profile(name, deps.map_err(PolicyCommandError::ElfDeps)?.as_ref())
        }
    };
    out.write_all(text.as_bytes())?;
    Ok(Outcome::Good)
}

/// Writes one line for a valid file. Writes the error, its causes and a hint for a wrong one, then checks the next.
fn check(
    files: &[PathBuf],
    require_reviewed: bool,
    out: &mut impl Write,
) -> Result<Outcome, PolicyCommandError> {
    let mut outcome = Outcome::Good;
    for file in files {
        match policy::check(&Reference::File(file.clone())) {
            Ok(entry) => {
                let (word, rules) = match entry.not_reviewed {
                    0 => ("ok", String::new()),
                    rules if require_reviewed => {
                        outcome = Outcome::Bad;
                        ("wrong", not_reviewed(rules))
                    }
                    rules => ("ok", not_reviewed(rules)),
                };
                writeln!(
                    out,
                    "{word}: {}: {} {} {}{rules}",
                    shown_path(file),
                    entry.kind.word(),
                    entry.name,
                    entry.sha256
                )?;
            }
            Err(error) => {
                outcome = Outcome::Bad;
                explain(&error, &hint(&error, file), out)?;
            }
        }
    }
    Ok(outcome)
}

fn not_reviewed(rules: usize) -> String {
    format!(", {} not reviewed", count(rules, "rule"))
}

/// Hint for a wrong file. If the argument is the name of a built-in policy, the hint says so.
fn hint(error: &PolicyError, file: &Path) -> String {
    match error {
        PolicyError::Open { source, .. } if source.kind() == io::ErrorKind::NotFound => {
            match file.to_str().filter(|name| policy::text(name).is_ok()) {
                Some(name) => {
                    format!(
                        "this policy is built in and needs no check; `runner policy show {name}` prints it"
                    )
                }
                None => {
                    "name a file; `runner policy init case NAME` prints one to start from".into()
                }
            }
        }
        PolicyError::UnknownName { .. }
        | PolicyError::Open { .. }
        | PolicyError::Read { .. }
        | PolicyError::NotAFile { .. }
        | PolicyError::TooLarge { .. }
        | PolicyError::NotUtf8 { .. }
        | PolicyError::Syntax { .. }
        | PolicyError::Fault(_)
        | PolicyError::WrongKind { .. } => error.hint(),
    }
}

fn explain(error: &PolicyError, hint: &str, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "error: {}", message(error))?;
    writeln!(out, "  hint: {hint}")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn output(action: PolicyAction) -> (Outcome, String) {
        let mut out = Vec::new();
        let outcome = run(&action, &mut out).unwrap();
        (outcome, String::from_utf8(out).unwrap())
    }

    fn of_files(files: Vec<PathBuf>) -> PolicyAction {
        PolicyAction::Check {
            files,
            require_reviewed: false,
        }
    }

    #[test]
    fn rules_that_nobody_has_reviewed_are_counted_and_can_be_refused() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("mine.toml");
        let case = "schema = \"runner.case/1\"\nname = \"mine\"\n[client]\nprogram = \"/bin/true\"\n\
                    [[expect.programs.rule]]\nprogram = \"/bin/a\"\nreason = \"seen on 2026-11-30, not reviewed\"\n\
                    [[expect.programs.rule]]\nprogram = \"/bin/b\"\nreason = \"runs a tool\"\n";
        fs::write(&file, case).unwrap();
        let (outcome, text) = output(of_files(vec![file.clone()]));
        assert_eq!(outcome, Outcome::Good);
        assert!(
            text.starts_with("ok: ") && text.ends_with(", 1 rule not reviewed\n"),
            "{text}"
        );
        let (outcome, text) = output(PolicyAction::Check {
            files: vec![file],
            require_reviewed: true,
        });
        assert_eq!(outcome, Outcome::Bad);
        assert!(text.starts_with("wrong: "), "{text}");
    }

    #[test]
    fn the_list_has_name_kind_digest_and_summary() {
        let (outcome, text) = output(PolicyAction::List);
        assert_eq!(outcome, Outcome::Good);
        let entry = &policy::list().unwrap()[1];
        let line = format!("case-b      case     {}  {}", entry.sha256, entry.summary);
        assert_eq!(text.lines().nth(1), Some(line.as_str()));
        let all = policy::list().unwrap().len() + Scenario::names().count();
        assert_eq!(text.lines().count(), all);
        let text_scenario = text.lines().find(|line| line.starts_with("text "));
        assert!(text_scenario.unwrap().contains(" scenario  "));
    }

    #[test]
    fn a_shown_file_is_a_good_file_with_the_listed_digest() {
        let (_, text) = output(PolicyAction::Show(Reference::BuiltIn("reference".into())));
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("mine.toml");
        fs::write(&file, text).unwrap();
        let (outcome, text) = output(of_files(vec![file.clone()]));
        assert_eq!(outcome, Outcome::Good);
        let listed = policy::list().unwrap();
        let entry = listed.iter().find(|entry| entry.name == "reference");
        let digest = &entry.unwrap().sha256;
        assert_eq!(
            text,
            format!("ok: {}: profile reference {digest}\n", file.display())
        );
    }

    #[test]
    fn one_bad_file_is_explained_and_the_others_are_still_checked() {
        let directory = tempfile::tempdir().unwrap();
        let [bad, absent, good] =
            ["bad.toml", "absent.toml", "good.toml"].map(|name| directory.path().join(name));
        let case = policy::text("case-a").unwrap();
        fs::write(&good, case).unwrap();
        fs::write(&bad, case.replace("timeout", "timout")).unwrap();
        let (outcome, text) = output(of_files(vec![bad, absent, good]));
        assert_eq!(outcome, Outcome::Bad);
        let lines: Vec<_> = text.lines().collect();
        assert!(
            lines[0].starts_with("error: ") && lines[0].contains("`sandbox.limits.timout`"),
            "{text}"
        );
        assert!(
            lines[1].starts_with("  hint: did you mean `timeout`?"),
            "{text}"
        );
        assert!(lines[2].contains("cannot open"), "{text}");
        assert_eq!(
            lines[3],
            "  caused by: No such file or directory (os error 2)"
        );
        assert!(
            lines[5].starts_with("ok: ") && lines[5].contains(": case case-a "),
            "{text}"
        );
    }

    #[test]
    fn a_file_that_is_not_there_is_told_from_a_built_in_name() {
        let (_, text) = output(of_files(vec!["case-a".into()]));
        assert!(text.contains("`runner policy show case-a`"), "{text}");
        let (_, text) = output(of_files(vec!["case-z".into()]));
        assert!(text.contains("`runner policy init case NAME`"), "{text}");
    }

    #[test]
    fn each_schema_and_each_start_is_printed() {
        for form in [
            SchemaForm::Case,
            SchemaForm::Profile,
            SchemaForm::Audit,
            SchemaForm::Report,
            SchemaForm::Doctor,
            SchemaForm::Selftest,
            SchemaForm::Diff,
        ] {
            let (outcome, text) = output(PolicyAction::Schema(form));
            assert_eq!(outcome, Outcome::Good);
            assert!(text.contains("\"$id\": \"urn:runner:"), "{text}");
        }
        let name = init::PolicyName::parse("mine").unwrap();
        let case = PolicyAction::Init(InitAction::Case(name.clone()));
        assert!(output(case).1.contains("name = \"mine\""));
        let profile = PolicyAction::Init(InitAction::Profile { name, client: None });
        assert!(output(profile).1.contains("name = \"mine\""));
    }

    #[test]
    fn file_is_shown_with_the_limits_that_it_leaves_out() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("mine.toml");
        let case = "schema = \"runner.case/1\"\nname = \"mine\"\n[client]\nprogram = \"/bin/true\"\n\
                    [sandbox.limits]\ntimeout = \"5s\"\n";
        fs::write(&file, case).unwrap();
        let (_, text) = output(PolicyAction::Show(Reference::File(file)));
        assert!(text.starts_with(case), "{text}");
        assert!(text.contains("\n#   open_files = 4096\n"), "{text}");
        assert!(!text.contains("#   timeout"), "{text}");
        let (_, built_in) = output(PolicyAction::Show(Reference::BuiltIn("case-b".into())));
        assert_eq!(built_in, policy::text("case-b").unwrap());
    }

    #[test]
    fn an_unknown_name_is_an_error_with_the_known_ones() {
        let error = run(
            &PolicyAction::Show(Reference::BuiltIn("case-c".into())),
            &mut Vec::new(),
        )
        .unwrap_err();
        assert!(error.hint().unwrap().contains("`case-a`"));
    }

    #[test]
    fn a_full_output_is_an_error() {
        let mut buffer = [0; 10];
        let error = run(&PolicyAction::List, &mut buffer.as_mut_slice()).unwrap_err();
        assert!(matches!(error, PolicyCommandError::Write(_)));
    }
}
