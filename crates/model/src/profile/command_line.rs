//! Command line and environment of a client: the options of a case in the spelling of the profile.
//!
//! A variable that is set in some cases only is a *setting* of these cases.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use thiserror::Error;

use super::template::{Piece, fill, pieces};
use super::{Cases, ClientOption, Profile, VALUE, Variable};
use crate::policy::Invocation;

/// An option of a case that the profile does not spell.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the profile `{profile}` has no words for `{}`", option.word())]
pub struct Unspelt {
    /// Name of the profile.
    pub profile: String,
    /// The option of the case.
    pub option: ClientOption,
}

/// Selection of the profile's variables for a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settings {
    /// All variables of the case, including its settings.
    OfCase,
    /// Only variables of every case (`--plain`), to observe the client without settings.
    Plain,
}

/// Values for the placeholders of the environment.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings<'a> {
    /// Origin of the stub: `http://127.0.0.1:40000`.
    pub base_url: &'a str,
    /// Credential made for this run.
    pub credential: &'a str,
    /// Home directory inside the sandbox.
    pub home: &'a Path,
    /// Temporary directory inside the sandbox.
    pub tmp: &'a Path,
}

impl Profile {
    /// Returns the words after the program's name, in the order of the profile.
    ///
    /// # Errors
    /// [`Unspelt`] for the first option of the invocation that the profile does not spell.
    pub fn command_line(&self, invocation: &Invocation) -> Result<Vec<String>, Unspelt> {
        for option in ClientOption::ALL {
            let spelt = self
                .arguments
                .iter()
                .any(|argument| argument.option == option);
            if !spelt && asked(invocation, option).is_some() {
                return Err(Unspelt {
                    profile: self.name.clone(),
                    option,
                });
            }
        }
        let mut words = Vec::new();
        for argument in &self.arguments {
            if let Some(value) = asked(invocation, argument.option) {
                words.extend(argument.words.iter().map(|word| with_value(word, value)));
            }
        }
        Ok(words)
    }

    /// Lists the variables that a run of a case sets, in the order of the profile. `case` holds the names of
    /// [`Case::names`].
    ///
    /// [`Case::names`]: crate::case::Case::names
    pub fn variables(
        &self,
        case: [&str; 2],
        settings: Settings,
    ) -> impl Iterator<Item = &Variable> {
        self.environment
            .iter()
            .filter(move |variable| match settings {
                Settings::OfCase => self.sets(variable, case),
                Settings::Plain => variable.cases == Cases::Every,
            })
    }

    /// Lists the settings of a case that a run omits.
    pub fn left_out(&self, case: [&str; 2], settings: Settings) -> impl Iterator<Item = &Variable> {
        self.environment
            .iter()
            .filter(move |variable| match settings {
                Settings::OfCase => false,
                Settings::Plain => variable.cases != Cases::Every && self.sets(variable, case),
            })
    }

    /// Lists the cases that have settings, each once.
    pub fn cases_with_settings(&self) -> BTreeSet<&str> {
        let cases = self.environment.iter().map(|variable| &variable.cases);
        let named = cases.flat_map(|cases| match cases {
            Cases::Every => &[][..],
            Cases::Only(names) => names,
        });
        named.map(String::as_str).collect()
    }

    /// Returns true for a variable of the case, or of the case that it is like if the case has no variable of that
    /// name.
    fn sets(&self, variable: &Variable, [name, like]: [&str; 2]) -> bool {
        let has_own = || {
            let mut others = self.environment.iter();
            others.any(|other| other.name == variable.name && other.cases.include(name))
        };
        variable.cases.include(name) || variable.cases.include(like) && !has_own()
    }
}

/// Returns an environment: names, and values with their placeholders replaced.
pub fn filled<'a>(
    variables: impl IntoIterator<Item = &'a Variable>,
    surroundings: Surroundings<'_>,
) -> Vec<(String, OsString)> {
    let fill = |value: &str| {
        let mut filled = OsString::new();
        for piece in pieces(value) {
            match piece {
                Piece::Text(text) => filled.push(text),
                Piece::Placeholder(name) => match surroundings.get(name) {
                    Some(value) => filled.push(value),
                    None => filled.push(format!("{{{name}}}")),
                },
            }
        }
        filled
    };
    let variables = variables.into_iter();
    let filled = variables.map(|variable| (variable.name.clone(), fill(&variable.value)));
    filled.collect()
}

impl<'a> Surroundings<'a> {
    fn get(&self, placeholder: &str) -> Option<&'a OsStr> {
        match placeholder {
            "base_url" => Some(self.base_url.as_ref()),
            "credential" => Some(self.credential.as_ref()),
            "home" => Some(self.home.as_os_str()),
            "tmp" => Some(self.tmp.as_os_str()),
            _ => None,
        }
    }
}

/// Returns the value of the option if the invocation has it; a switch has an empty value.
fn asked(invocation: &Invocation, option: ClientOption) -> Option<&str> {
    match option {
        ClientOption::Switch(switch) => invocation.switches.contains(&switch).then_some(""),
        ClientOption::Prompt => Some(&invocation.prompt),
        ClientOption::SystemPrompt => invocation.system_prompt.as_deref(),
        ClientOption::Model => invocation.model.as_deref(),
    }
}

fn with_value(word: &str, value: &str) -> String {
    fill(word, |name| (name == VALUE).then_some(value))
}
