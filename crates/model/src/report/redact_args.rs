//! What programs were told, as reports show it: never a prompt.

use crate::digest;
use crate::evidence::{self, ARGUMENT_BYTES};
use crate::text::printable;

/// A prompt that is shorter is known by equality only: it may stand in any word.
const SHORT: usize = 8;
/// How much of a prompt's beginning gives it away in an argument that holds more, or not all of it.
const LEAD: usize = 16;
/// The bytes of an argument that was cut that are surely its own: the last character may be cut in two.
const UNCUT: usize = ARGUMENT_BYTES - 3;

/// One argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arg {
    /// An option or a value that is no prompt.
    Word(String),
    /// A prompt, or an argument that holds one: never shown.
    Prompt {
        /// Its length.
        bytes: u64,
        /// Its SHA-256, lower-case hex.
        sha256: String,
    },
}

/// One program that was started, the client itself included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// As seen inside.
    pub pid: i32,
    /// Its parent, as seen inside.
    pub ppid: i32,
    /// Path given to execve(2); hostile.
    pub program: String,
    /// Arguments from 0 on; hostile.
    pub args: Vec<Arg>,
}

impl Process {
    /// A process of a client that was told `prompts`.
    pub fn new(process: &evidence::Process, prompts: &[&str]) -> Self {
        let prompts: Vec<_> = prompts.iter().map(spelt).collect();
        let args = process.args.iter();
        Self {
            pid: process.pid,
            ppid: process.ppid,
            program: process.program.clone(),
            args: args.map(|argument| Arg::of(argument, &prompts)).collect(),
        }
    }

    /// Program and, where `argv[0]` names another file than it, `as` that name: multi-call programs decide by it.
    pub fn with_name(&self) -> String {
        let file = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
        match self.args.first() {
            Some(Arg::Word(name)) if file(name) != file(&self.program) => {
                format!("{} as \"{name}\"", self.program)
            }
            Some(Arg::Prompt { .. }) => format!("{} as a prompt", self.program),
            Some(Arg::Word(_)) | None => self.program.clone(),
        }
    }
}

impl Arg {
    /// An argument, as `printable` spells it, of a client that was told `prompts`; what was cut to [`ARGUMENT_BYTES`] is
    /// still known.
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

    fn hidden(text: &str) -> Self {
        Self::Prompt {
            bytes: text.len() as u64,
            sha256: digest::of_bytes(text.as_bytes()),
        }
    }
}

/// A prompt as an argument spells it, and as it is.
fn spelt<'a>(prompt: &&'a str) -> (String, &'a str) {
    (printable(prompt.as_bytes()), prompt)
}

/// Whether an argument is this prompt, whole or cut.
fn is(argument: &str, prompt: &str) -> bool {
    let beginning = |text: &str| text.as_bytes().get(..UNCUT).map(<[u8]>::to_vec);
    argument == prompt
        || beginning(argument).is_some_and(|cut| {
            argument.len() <= prompt.len() && beginning(prompt).as_ref() == Some(&cut)
        })
}

/// Whether an argument holds this prompt or its beginning: `--prompt=…`, or the command line of a shell.
fn holds(argument: &str, prompt: &str) -> bool {
    if prompt.len() < SHORT {
        return false;
    }
    let lead = prompt
        .get(..prompt.floor_char_boundary(LEAD))
        .unwrap_or(prompt);
    argument.contains(lead)
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
        let long = format!("{}ů and more", "x".repeat(ARGUMENT_BYTES - 1));
        let cut = long.as_bytes().get(..ARGUMENT_BYTES).expect("bytes");
        assert_eq!(
            Arg::new(&crate::text::printable(cut), &[&long]),
            prompt(&long)
        );
    }

    #[test]
    fn prompt_with_a_backslash_is_hidden_as_it_is() {
        let told = r"Match \d and \xff in this.";
        let process = evidence::Process {
            pid: 2,
            ppid: 1,
            program: "/client".to_owned(),
            args: vec![printable(told.as_bytes()), r"a\\b".to_owned()],
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
}
