//! Command line of a profile: the words of each option.

use std::collections::BTreeSet;

use model::profile::template::{Piece, pieces};
use model::profile::{Argument, ClientOption, Names, VALUE};
use toml::Spanned;

use super::ArgumentFile;
use crate::error::Flaw;
use crate::values::{one_of, reject_repeated, word};

/// Parses the options, each once; the prompt is required.
pub(super) fn parsed(
    file: Spanned<Vec<ArgumentFile>>,
    names: &Names,
) -> Result<Vec<Argument>, Flaw> {
    let span = file.span();
    let mut seen = BTreeSet::new();
    let mut parsed = Vec::new();
    for argument in file.into_inner() {
        reject_repeated(&mut seen, &argument.option, "each option once")?;
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

/// Parses the words of one option. An option with a value has `{value}` exactly once, any other has none.
fn words(
    file: Spanned<Vec<Spanned<String>>>,
    option: ClientOption,
    names: &Names,
) -> Result<Vec<String>, Flaw> {
    let span = file.span();
    let kept: &[&str] = if option.has_value() { &[VALUE] } else { &[] };
    let mut parsed = Vec::new();
    for value in file.into_inner() {
        parsed.push(word(crate::placeholders::fill(names, value, kept)?)?);
    }
    if parsed.is_empty() {
        return Err(Flaw::new(
            span,
            "at least one word",
            "none",
            "leave the option out if the client does not have it",
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
