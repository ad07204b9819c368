//! What a client is started with: the abstract options of a case in the profile's words, and its environment.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use thiserror::Error;

use super::template::{Piece, pieces};
use super::{ClientOption, Profile, VALUE};
use crate::case::Invocation;

/// An option that a case asks for and a profile has no words for.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the profile `{profile}` has no words for `{}`", option.word())]
pub struct Unspelt {
    pub profile: String,
    pub option: ClientOption,
}

/// What the run puts in place of the placeholders of the environment.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings<'a> {
    pub base_url: &'a str,
    pub credential: &'a str,
    pub home: &'a Path,
    pub tmp: &'a Path,
}

impl Profile {
    /// The words after the program's name, in the profile's order.
    ///
    /// # Errors
    /// [`Unspelt`] names the first option of the invocation that the profile has no words for.
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

    /// The client's whole environment: names and values.
    pub fn environment(&self, surroundings: Surroundings<'_>) -> Vec<(String, OsString)> {
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
        self.environment
            .iter()
            .map(|variable| (variable.name.clone(), fill(&variable.value)))
            .collect()
    }
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

/// The option's value where the invocation asks for it; a switch's is empty.
fn asked(invocation: &Invocation, option: ClientOption) -> Option<&str> {
    match option {
        ClientOption::Switch(switch) => invocation.switches.contains(&switch).then_some(""),
        ClientOption::Prompt => Some(&invocation.prompt),
        ClientOption::SystemPrompt => invocation.system_prompt.as_deref(),
        ClientOption::Model => invocation.model.as_deref(),
    }
}

fn with_value(word: &str, value: &str) -> String {
    let filled = pieces(word).into_iter().map(|piece| match piece {
        Piece::Text(text) => text.to_owned(),
        Piece::Placeholder(VALUE) => value.to_owned(),
        Piece::Placeholder(name) => format!("{{{name}}}"),
    });
    filled.collect()
}
