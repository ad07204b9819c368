//! Client inside a case: a program of the host, started as an audit starts one.

use std::path::Path;

use scenario::closed_set;

use crate::policy::{Invocation, PathRule};
use crate::profile::template::fill;

/// Placeholder for the project: the directory of the case file, or one above it.
pub const PROJECT: &str = "project";
/// Placeholder for the prompt.
const PROMPT: &str = "prompt";

closed_set! {
    /// Treatment of the toolchain of a client.
    pub enum ToolchainRule {
        /// Follow the program to its interpreter, and show the roots that it leads to on this machine.
        Follow = "follow",
    }
}

/// Client of a case without a profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InlineClient {
    /// Path, or a name that is looked up in PATH; may have `{project}`.
    pub program: String,
    /// Arguments after the name of the program, with placeholders.
    pub arguments: Vec<String>,
    /// Text for `{prompt}`, which no report shows.
    pub prompt: Option<String>,
    /// Working directory; `None` selects an empty directory of the sandbox.
    pub cwd: Option<String>,
    /// Way from the directory of the case file up to the project: `..` and so on; `None` if that directory is the project.
    pub project: Option<String>,
    /// File for standard input, which may have `{project}`; `None` for an empty input.
    pub stdin: Option<String>,
    /// Treatment of the toolchain; `None` shows only what the other keys name.
    pub toolchain: Option<ToolchainRule>,
    /// Environment, beside that of every program.
    pub environment: Vec<InlineVariable>,
    /// Host paths that the client sees; may have `{project}`.
    pub paths: Vec<PathRule>,
}

/// One variable of an inline client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InlineVariable {
    /// Name, as in environ(7).
    pub name: String,
    /// Value.
    pub value: VariableValue,
    /// Reason for the variable.
    pub reason: String,
}

/// Value of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VariableValue {
    /// Text with placeholders.
    Text(String),
    /// The value in the environment of the runner.
    OfCaller,
}

impl InlineClient {
    /// Returns the placeholders of arguments and values that a run fills in.
    pub fn placeholders() -> [&'static str; 6] {
        [PROJECT, PROMPT, "base_url", "credential", "home", "tmp"]
    }

    /// Returns the task, whose options the arguments say.
    pub fn task(&self) -> Invocation {
        Invocation {
            prompt: self.prompt.clone().unwrap_or_default(),
            system_prompt: None,
            model: None,
            switches: Vec::new(),
        }
    }

    /// Replaces `{project}` and `{prompt}`; the run replaces the others.
    pub fn fill(&self, text: &str, project: &Path) -> String {
        fill(text, |name| match name {
            PROJECT => Some(project.display().to_string()),
            PROMPT => Some(self.prompt.clone().unwrap_or_default()),
            _ => None,
        })
    }
}
