//! How a profile spells each option on the command line.

use std::collections::BTreeSet;

use model::profile::template::{Piece, pieces};
use model::profile::{Argument, ClientOption, Names, VALUE};
use toml::Spanned;

use super::ArgumentFile;
use crate::error::Flaw;
use crate::values::{once, one_of, word};

/// Each option once, the prompt among them.
pub(super) fn parsed(
    file: Spanned<Vec<ArgumentFile>>,
    names: &Names,
) -> Result<Vec<Argument>, Flaw> {
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
        parsed.push(word(crate::placeholders::fill(names, value, kept)?)?);
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
