//! Causes and fixes of a set-up that failed, by step and errno. A run's hint and the doctor use this one table.
//!
//! A row applies only if its proof is found on this machine: a sysctl, an id map, a refused call. Without a proof the
//! advice says that the cause is unknown, and lists the [`Evidence`] at hand.

mod errors;
mod evidence;
mod mounts;
pub(crate) mod proofs;
mod table;
#[cfg(test)]
mod tests;

use sandbox::error::SetupError;

pub(crate) use evidence::Evidence;

/// A cause in one sentence, and each fix: a command, a flag of an engine, or a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Advice {
    /// `None` if the error itself says the cause.
    pub(crate) cause: Option<String>,
    pub(crate) fixes: Vec<String>,
}

impl Advice {
    /// Finds cause and fixes of a failed step on this machine.
    pub(crate) fn of(error: &SetupError) -> Self {
        table::advise(error, &Evidence::read())
    }

    /// Returns the fix of an error that says its cause itself.
    pub(crate) fn fix(text: &str) -> Self {
        Self {
            cause: None,
            fixes: vec![text.to_owned()],
        }
    }

    /// Formats the advice as the text of a `hint:` line.
    pub(crate) fn hint(&self) -> String {
        let fixes = self.fixes.join("; or ");
        match &self.cause {
            Some(cause) => format!("{cause}: {fixes}"),
            None => fixes,
        }
    }
}
