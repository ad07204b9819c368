//! Text of errors with their causes.

use std::error::Error;
use std::iter;

use model::escape::for_terminal;

/// Lists an error and its causes.
pub(crate) fn chain<'e>(
    error: &'e (dyn Error + 'static),
) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    iter::successors(Some(error), |error: &&'e (dyn Error + 'static)| {
        (*error).source()
    })
}

/// Text of an error for the terminal, with each cause on a line. Text that an error quotes from an untrusted file is
/// escaped, and its further lines are indented.
pub(crate) fn message(error: &(dyn Error + 'static)) -> String {
    let texts = chain(error).map(|error| for_terminal(&error.to_string()).replace('\n', "\n    "));
    texts.collect::<Vec<_>>().join("\n  caused by: ")
}
