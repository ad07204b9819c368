//! Redaction of prompts in the arguments of programs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{MAX_ARGUMENT_BYTES, Started, StartedArg, Whole};
use crate::digest;
use crate::schema::values::Sha256;
use crate::text::printable;

/// Shortest prompt to search for, in bytes. A shorter one may be part of any word, so it must equal the argument.
const MIN_SEARCHED_BYTES: usize = 8;
/// Length of the beginning of a prompt that identifies the prompt inside a longer or truncated argument, in bytes.
const PREFIX_BYTES: usize = 16;
/// Bytes of a truncated argument that are certainly complete: the last character may be cut.
const MIN_COMPLETE_BYTES: usize = MAX_ARGUMENT_BYTES - 3;

/// One argument, redacted if it is a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "Argument")]
pub enum Arg {
    /// An option, or a value without a prompt.
    Word(String),
    /// The beginning of a long argument without a prompt.
    Cut {
        /// At most the first [`MAX_ARGUMENT_BYTES`]; hostile.
        text: String,
        /// The whole argument.
        whole: Whole,
    },
    /// A prompt, or an argument that contains one. Its text is never shown.
    Prompt {
        /// Length in bytes.
        bytes: u64,
        /// SHA-256, lower-case hex.
        #[schemars(with = "Sha256")]
        sha256: String,
    },
}

/// One program that was started or refused, including the client itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Process {
    /// Process id inside the sandbox.
    pub pid: i32,
    /// Process id of the parent, inside the sandbox.
    pub ppid: i32,
    /// Path passed to execve(2); hostile.
    pub program: String,
    /// Arguments from index 0, at most [`MAX_ARGUMENTS`](super::MAX_ARGUMENTS); hostile.
    pub args: Vec<Arg>,
    /// Number of arguments that are not kept; absent for none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub further_args: u64,
    /// Errno of execve(2), such as `EACCES`, if the sandbox refused to execute the program; absent for a started one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature of serde")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Process {
    /// Redacts the arguments of a process of a client that was started with `prompts`.
    pub fn new(process: &Started, prompts: &[&str]) -> Self {
        let prompts: Vec<_> = prompts.iter().map(spelt).collect();
        let args = process.args.iter();
        Self {
            pid: process.pid,
            ppid: process.ppid,
            program: process.program.clone(),
            args: args.map(|argument| Arg::kept(argument, &prompts)).collect(),
            further_args: process.further_args,
            refused: process.refused.map(|errno| format!("{errno:?}")),
        }
    }

    /// Returns true if the program was started.
    pub fn is_started(&self) -> bool {
        self.refused.is_none()
    }

    /// Returns the path of the program. If `argv[0]` names another file, `as` and that name follow, because multi-call
    /// programs use it.
    pub fn with_name(&self) -> String {
        let file = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
        match self.args.first() {
            Some(Arg::Word(name) | Arg::Cut { text: name, .. })
                if file(name) != file(&self.program) =>
            {
                format!("{} as \"{name}\"", self.program)
            }
            Some(Arg::Prompt { .. }) => format!("{} as a prompt", self.program),
            Some(Arg::Word(_) | Arg::Cut { .. }) | None => self.program.clone(),
        }
    }
}

impl Arg {
    /// Redacts an argument, in the form of `printable`, of a client that was started with `prompts`. A prompt is also
    /// recognised if the argument was truncated to [`MAX_ARGUMENT_BYTES`].
    pub fn new(argument: &str, prompts: &[&str]) -> Self {
        let prompts: Vec<_> = prompts.iter().map(spelt).collect();
        Self::of(argument, &prompts)
    }

    fn of(argument: &str, prompts: &[(String, &str)]) -> Self {
        if let Some((_, prompt)) = prompts.iter().find(|(spelt, _)| is(argument, spelt)) {
            Self::hidden(prompt)
        } else if prompts.iter().any(|(spelt, _)| holds(argument, spelt)) {
            Self::hidden(argument)
        } else {
            Self::Word(argument.to_owned())
        }
    }

    fn kept(argument: &StartedArg, prompts: &[(String, &str)]) -> Self {
        match (Self::of(&argument.text, prompts), &argument.whole) {
            (Self::Word(text), Some(whole)) => {
                let whole = whole.clone();
                Self::Cut { text, whole }
            }
            (shown, _) => shown,
        }
    }

    fn hidden(text: &str) -> Self {
        Self::Prompt {
            bytes: text.len() as u64,
            sha256: digest::of_bytes(text.as_bytes()),
        }
    }
}

/// Returns a prompt in the form of an argument, and unchanged.
fn spelt<'a>(prompt: &&'a str) -> (String, &'a str) {
    (printable(prompt.as_bytes()), prompt)
}

/// Returns true if an argument is this prompt, complete or truncated.
fn is(argument: &str, prompt: &str) -> bool {
    let beginning = |text: &str| {
        text.as_bytes()
            .get(..MIN_COMPLETE_BYTES)
            .map(<[u8]>::to_vec)
    };
    argument == prompt
        || beginning(argument).is_some_and(|cut| {
            argument.len() <= prompt.len() && beginning(prompt).as_ref() == Some(&cut)
        })
}

/// Returns true if an argument contains this prompt or its beginning: `--prompt=…`, or the command line of a shell.
fn holds(argument: &str, prompt: &str) -> bool {
    if prompt.len() < MIN_SEARCHED_BYTES {
        return false;
    }
    let prefix = prompt
        .get(..prompt.floor_char_boundary(PREFIX_BYTES))
        .unwrap_or(prompt);
    argument.contains(prefix)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROMPT: &str = "Say something about žluté things.";

    fn prompt(text: &str) -> Arg {
        Arg::Prompt {
            bytes: text.len() as u64,
            sha256: digest::of_bytes(text.as_bytes()),
        }
    }

    #[test]
    fn another_name_of_a_program_is_shown() {
        let named = |name: &str| {
            let args = vec![Arg::Word(name.to_owned())];
            let program = "/client/agent".to_owned();
            let process = Process {
                pid: 2,
                ppid: 1,
                program,
                args,
                further_args: 0,
                refused: None,
            };
            process.with_name()
        };
        assert_eq!(named("agent"), "/client/agent");
        assert_eq!(named("./agent"), "/client/agent");
        assert_eq!(named("rg"), "/client/agent as \"rg\"");
        assert_eq!(named(""), "/client/agent as \"\"");
    }

    #[test]
    fn a_prompt_is_its_length_and_digest() {
        assert_eq!(Arg::new(PROMPT, &["other", PROMPT]), prompt(PROMPT));
        assert_eq!(Arg::new("hi", &["hi"]), prompt("hi"));
    }

    #[test]
    fn an_argument_that_holds_a_prompt_is_hidden_as_a_whole() {
        for argument in [
            format!("--prompt={PROMPT}"),
            format!("agent '{PROMPT}'; true"),
            "--prompt=Say something about".to_owned(),
        ] {
            assert_eq!(Arg::new(&argument, &[PROMPT]), prompt(&argument));
        }
    }

    #[test]
    fn a_long_prompt_is_known_when_it_was_cut() {
        let long = format!("{}ů and more", "x".repeat(MAX_ARGUMENT_BYTES - 1));
        let cut = long.as_bytes().get(..MAX_ARGUMENT_BYTES).expect("bytes");
        assert_eq!(Arg::new(&printable(cut), &[&long]), prompt(&long));
    }

    #[test]
    fn prompt_with_a_backslash_is_hidden_as_it_is() {
        let told = r"Match \d and \xff in this.";
        let process = Started {
            pid: 2,
            ppid: 1,
            program: "/client".to_owned(),
            args: [printable(told.as_bytes()), r"a\\b".to_owned()]
                .map(|text| StartedArg { text, whole: None })
                .into(),
            further_args: 0,
            refused: None,
        };
        let args = Process::new(&process, &[told]).args;
        assert_eq!(args, [prompt(told), Arg::Word(r"a\\b".to_owned())]);
    }

    #[test]
    fn other_words_are_shown() {
        for word in ["--print", "", "Say", "this", "something"] {
            assert_eq!(Arg::new(word, &[PROMPT, "hi"]), Arg::Word(word.to_owned()));
        }
    }

    #[test]
    fn a_long_argument_is_its_beginning_and_its_digest() {
        let long = "x".repeat(MAX_ARGUMENT_BYTES + 44);
        let whole = Whole::of(long.as_bytes());
        assert_eq!(whole.bytes, 300);
        let text = "x".repeat(MAX_ARGUMENT_BYTES);
        let argument = StartedArg {
            text: text.clone(),
            whole: Some(whole.clone()),
        };
        let cut = Arg::Cut { text, whole };
        let process = Started {
            pid: 2,
            ppid: 1,
            program: "/client".to_owned(),
            args: vec![argument],
            further_args: 3,
            refused: None,
        };
        let process = Process::new(&process, &[PROMPT]);
        assert_eq!((&process.args[..], process.further_args), (&[cut][..], 3));
        let json = serde_json::to_string(&process).unwrap();
        assert_eq!(serde_json::from_str::<Process>(&json).unwrap(), process);
    }
}
