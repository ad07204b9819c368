//! The wire form of a profile file, and its way into [`Profile`].

use std::collections::BTreeSet;

use serde::Deserialize;
use serde::de::IgnoredAny;
use toml::Spanned;

use super::error::{Flaw, quoted};
use super::values::{
    PathRuleFile, home_path, is_variable_name, name, once, one_of, path_rules, sentence, word,
};
use crate::case::Origin;
use crate::profile::template::{Piece, pieces};
use crate::profile::{
    Argument, BetaFamily, ClientOption, Destination, DestinationError, ExpectedAttempt,
    ExpectedFile, Files, Headers, Names, Profile, RecordNames, VALUE, VARIABLE_PLACEHOLDERS,
    Variable,
};

/// A profile file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProfileFile {
    #[serde(rename = "schema")]
    _schema: IgnoredAny,
    name: Spanned<String>,
    summary: Spanned<String>,
    queries: Vec<Spanned<String>>,
    names: NamesFile,
    arguments: Spanned<Vec<ArgumentFile>>,
    environment: Vec<VariableFile>,
    #[serde(default)]
    paths: Vec<PathRuleFile>,
    headers: HeadersFile,
    records: RecordsFile,
    files: FilesFile,
    #[serde(default)]
    attempts: Vec<ExpectedAttemptFile>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NamesFile {
    app: Spanned<String>,
    vendor: Spanned<String>,
    cli_name: Spanned<String>,
    runtime: Spanned<String>,
    program: Spanned<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ArgumentFile {
    option: Spanned<String>,
    words: Spanned<Vec<Spanned<String>>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct VariableFile {
    name: Spanned<String>,
    value: Spanned<String>,
    reason: Spanned<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct HeadersFile {
    message: Vec<Spanned<String>>,
    preflight: Vec<Spanned<String>>,
    beta_families: Vec<BetaFamilyFile>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BetaFamilyFile {
    family: Spanned<String>,
    prefix: Spanned<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordsFile {
    version_field: Spanned<String>,
    init_fields: Spanned<Vec<Spanned<String>>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FilesFile {
    state: Spanned<String>,
    backup_prefix: Spanned<String>,
    #[serde(default)]
    expected: Vec<ExpectedFileFile>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExpectedFileFile {
    path: Spanned<String>,
    reason: Spanned<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExpectedAttemptFile {
    destination: Spanned<String>,
    reason: Spanned<String>,
}

impl ProfileFile {
    /// The whole file, or the first thing in it that is wrong.
    pub(super) fn into_profile(self, origin: Origin) -> Result<Profile, Flaw> {
        sentence(self.summary)?;
        let names = Names::try_from(self.names)?;
        Ok(Profile {
            name: name(self.name)?,
            origin,
            arguments: arguments(self.arguments, &names)?,
            environment: environment(self.environment, |value| {
                names.fill(value, &VARIABLE_PLACEHOLDERS)
            })?,
            paths: path_rules(self.paths, |path| names.fill(path, &[]))?,
            headers: headers(self.headers, &names)?,
            queries: self
                .queries
                .into_iter()
                .map(query)
                .collect::<Result<_, _>>()?,
            records: records(self.records, &names)?,
            files: files(self.files, &names)?,
            attempts: attempts(self.attempts, &names)?,
            names,
        })
    }
}

impl TryFrom<NamesFile> for Names {
    type Error = Flaw;

    fn try_from(file: NamesFile) -> Result<Self, Flaw> {
        Ok(Self {
            app: name(file.app)?,
            vendor: name(file.vendor)?,
            cli_name: name(file.cli_name)?,
            runtime: name(file.runtime)?,
            program: name(file.program)?,
        })
    }
}

fn arguments(file: Spanned<Vec<ArgumentFile>>, names: &Names) -> Result<Vec<Argument>, Flaw> {
    let span = file.span();
    let mut seen = BTreeSet::new();
    let mut parsed = Vec::new();
    for argument in file.into_inner() {
        once(&mut seen, &argument.option, "each option once")?;
        let option = one_of(&argument.option, &ClientOption::ALL, ClientOption::word)?;
        parsed.push(Argument {
            option,
            words: words(argument.words, option, names)?,
        });
    }
    if !parsed
        .iter()
        .any(|argument| argument.option == ClientOption::Prompt)
    {
        let hint =
            "without a prompt no case can be run; add [[arguments]] with option = \"prompt\"";
        return Err(Flaw::new(span, "the option `prompt`", "none", hint));
    }
    Ok(parsed)
}

/// The words of one option: with `{value}` exactly once where the option has a value, without it elsewhere.
fn words(
    file: Spanned<Vec<Spanned<String>>>,
    option: ClientOption,
    names: &Names,
) -> Result<Vec<String>, Flaw> {
    let span = file.span();
    let kept: &[&str] = if option.has_value() { &[VALUE] } else { &[] };
    let mut parsed = Vec::new();
    for value in file.into_inner() {
        parsed.push(word(names.fill(value, kept)?)?);
    }
    if parsed.is_empty() {
        return Err(Flaw::new(
            span,
            "at least one word",
            "none",
            "leave the option out if the client has no such thing",
        ));
    }
    let values = parsed
        .iter()
        .flat_map(|word| pieces(word))
        .filter(|piece| *piece == Piece::Placeholder(VALUE))
        .count();
    if option.has_value() && values != 1 {
        let hint = format!(
            "the option `{}` has a value; `{{value}}` says where it goes",
            option.word()
        );
        return Err(Flaw::new(
            span,
            "`{value}` exactly once",
            format!("it {values} times"),
            hint,
        ));
    }
    Ok(parsed)
}

/// Variables; each once. `replace` fills placeholders, but for those that the run replaces.
pub(super) fn environment(
    file: Vec<VariableFile>,
    replace: impl Fn(Spanned<String>) -> Result<Spanned<String>, Flaw>,
) -> Result<Vec<Variable>, Flaw> {
    let mut seen = BTreeSet::new();
    let mut parsed = Vec::new();
    for variable in file {
        let key = variable.name.get_ref();
        if !is_variable_name(key) {
            let hint = "use letters, digits and `_`, not beginning with a digit";
            return Err(Flaw::new(
                variable.name.span(),
                "a variable's name",
                quoted(key),
                hint,
            ));
        }
        once(&mut seen, &variable.name, "each variable once")?;
        parsed.push(Variable {
            name: variable.name.into_inner(),
            value: word(replace(variable.value)?)?,
            reason: sentence(variable.reason)?,
        });
    }
    Ok(parsed)
}

fn headers(file: HeadersFile, names: &Names) -> Result<Headers, Flaw> {
    let mut seen = BTreeSet::new();
    let mut beta_families = Vec::new();
    for family in file.beta_families {
        once(&mut seen, &family.family, "each family once")?;
        let prefix = names.fill(family.prefix, &[])?;
        beta_families.push(BetaFamily {
            family: sentence(family.family)?,
            prefix: name(prefix)?,
        });
    }
    Ok(Headers {
        message: header_names(file.message, names)?,
        preflight: header_names(file.preflight, names)?,
        beta_families,
    })
}

fn header_names(file: Vec<Spanned<String>>, names: &Names) -> Result<Vec<String>, Flaw> {
    let mut seen = BTreeSet::new();
    let mut parsed = Vec::new();
    for value in file {
        let header = names.fill(value, &[])?;
        // A token of RFC 9110, section 5.6.2; lower case because names are compared so.
        let fits =
            |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "!#$%&'*+-.^_`|~".contains(c);
        if header.get_ref().is_empty() || !header.get_ref().chars().all(fits) {
            let hint = "write the name in lower case, without a colon or value";
            return Err(Flaw::new(
                header.span(),
                "a header name",
                quoted(header.get_ref()),
                hint,
            ));
        }
        once(&mut seen, &header, "each header once")?;
        parsed.push(header.into_inner());
    }
    Ok(parsed)
}

fn query(value: Spanned<String>) -> Result<String, Flaw> {
    let fits = |c: char| c.is_ascii_graphic() && c != '#';
    let text = value.get_ref();
    if text.is_empty() || text.starts_with('?') || !text.chars().all(fits) {
        let hint = "write what follows the question mark, as in \"beta=true\"";
        return Err(Flaw::new(value.span(), "a query", quoted(text), hint));
    }
    Ok(value.into_inner())
}

fn records(file: RecordsFile, names: &Names) -> Result<RecordNames, Flaw> {
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

fn files(file: FilesFile, names: &Names) -> Result<Files, Flaw> {
    let path = |value| home_path(names.fill(value, &[])?);
    let mut expected = Vec::new();
    for other in file.expected {
        expected.push(ExpectedFile {
            path: path(other.path)?,
            reason: sentence(other.reason)?,
        });
    }
    Ok(Files {
        state: path(file.state)?,
        backup_prefix: path(file.backup_prefix)?,
        expected,
    })
}

fn attempts(file: Vec<ExpectedAttemptFile>, names: &Names) -> Result<Vec<ExpectedAttempt>, Flaw> {
    let mut seen = BTreeSet::new();
    let mut parsed = Vec::new();
    for attempt in file {
        let text = names.fill(attempt.destination, &[])?;
        once(&mut seen, &text, "each destination once")?;
        parsed.push(ExpectedAttempt {
            destination: destination(&text)?,
            reason: sentence(attempt.reason)?,
        });
    }
    Ok(parsed)
}

fn destination(text: &Spanned<String>) -> Result<Destination, Flaw> {
    text.get_ref().parse().map_err(|error| {
        let hint = match error {
            DestinationError::Family => {
                "write it as unix:/path, inet:192.0.2.1:443, inet6:[2001:db8::1]:443 or name:api.example.com"
            }
            DestinationError::Unix => "write it as unix:/var/run/nscd/socket or unix:@name",
            DestinationError::Inet => "write it as inet:192.0.2.1:443, or inet:192.0.2.1:* for any port",
            DestinationError::Inet6 => {
                "write it as inet6:[2001:db8::1]:443; a mapped address is inet:192.0.2.1:443"
            }
            DestinationError::Port => "write one port, or * for any",
            DestinationError::Name => "write it as name:api.example.com, one rule for each name",
        };
        let found = format!("{} ({error})", quoted(text.get_ref()));
        Flaw::new(text.span(), "a destination", found, hint)
    })
}
