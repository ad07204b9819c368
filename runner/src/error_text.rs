//! Text of errors with their causes.

use std::error::Error;
use std::{io, iter};

use model::escape::for_terminal;
use nix::errno::Errno;
use sandbox::error::SetupError;

/// Lists an error and its causes.
pub(crate) fn chain<'e>(
    error: &'e (dyn Error + 'static),
) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    iter::successors(Some(error), |error: &&'e (dyn Error + 'static)| {
        (*error).source()
    })
}

/// Finds the errno of the system in an error or its causes.
pub(crate) fn errno_in(error: &(dyn Error + 'static)) -> Option<Errno> {
    chain(error).find_map(|error| {
        let of_system = error.downcast_ref::<io::Error>();
        let of_step = error.downcast_ref::<SetupError>();
        let number = of_system.and_then(io::Error::raw_os_error);
        number
            .or(of_step.map(|error| error.errno))
            .map(Errno::from_raw)
    })
}

/// Text of an error in one line, with its causes.
pub(crate) fn one_line(error: &(dyn Error + 'static)) -> String {
    let texts = chain(error).map(|error| error.to_string().replace('\n', " "));
    texts.collect::<Vec<_>>().join(": ")
}

/// Text of an error for the terminal, with each cause on a line. Text that an error quotes from an untrusted file is
/// escaped, and its further lines are indented.
pub(crate) fn message(error: &(dyn Error + 'static)) -> String {
    let texts = chain(error).map(|error| for_terminal(&error.to_string()).replace('\n', "\n    "));
    texts.collect::<Vec<_>>().join("\n  caused by: ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_that_repeats_hostile_text_makes_no_line_of_its_own() {
        let error = io::Error::other("bad \u{1b}[2J\u{202e}\nverified: all");
        let expected = "bad \\u{1b}[2J\\u{202e}\n    verified: all";
        assert_eq!(message(&error), expected);
    }
}
