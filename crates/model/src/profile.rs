//! A profile: how one client is told the abstract options of a case, and its own names for things.
//!
//! Parsed types only. A profile is data: nothing in the program depends on which client it describes.

mod attempt;
mod command_line;
mod path_pattern;
mod side_request;
pub mod template;

use crate::case::{Device, Origin, PathRule, Root, Switch};
use crate::schema::values::closed_sets;

pub use attempt::{Destination, DestinationError, ExpectedAttempt, Ports};
pub use command_line::{Settings, Surroundings, Unspelt, filled};
pub use path_pattern::{PATH_PLACEHOLDERS, PathPattern, PatternError};
pub use side_request::MESSAGES;
pub use side_request::{KeyPath, KeyPathError, SideRequest};

/// The placeholder in an argument's words that stands for the option's value.
pub const VALUE: &str = "value";

/// Stands for the stub's origin, in variables and in the arguments of an audit.
pub const BASE_URL: &str = "{base_url}";

/// What is replaced in the value of a variable.
pub const PLACEHOLDERS: [&str; 4] = [BASE_URL, "{credential}", "{home}", "{tmp}"];

/// The placeholders that a variable's value may hold until the run replaces them.
pub const VARIABLE_PLACEHOLDERS: [&str; 4] = ["base_url", "credential", "home", "tmp"];

/// A parsed profile file.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Short name, as in reports: `reference`.
    pub name: String,
    /// The file that it was read from.
    pub origin: Origin,
    /// The client's own names.
    pub names: Names,
    /// How options are spelt, in the order in which they stand on the command line.
    pub arguments: Vec<Argument>,
    /// The whole environment, with what is set in some cases only; nothing is inherited.
    pub environment: Vec<Variable>,
    /// Host paths that this client needs, read-only.
    pub paths: Vec<PathRule>,
    /// Devices that this client needs; /dev holds no other.
    pub devices: Vec<Device>,
    /// What its requests look like.
    pub headers: Headers,
    /// Queries of the message request that are no finding, as written after `?`; the empty one always is none.
    pub queries: Vec<String>,
    /// Requests beside the turn that are known by name; the first that fits counts.
    pub side_requests: Vec<SideRequest>,
    /// How its records spell things.
    pub records: RecordNames,
    /// Files that the client leaves in home, temporary and working directory.
    pub files: Files,
    /// Attempts that are no finding, each with its reason.
    pub attempts: Vec<ExpectedAttempt>,
}

/// The client's own names, for the placeholders of the specification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    /// `<app>`: `agent`.
    pub app: String,
    /// `<vendor>`, as in the header `<vendor>-beta`.
    pub vendor: String,
    /// `<cli_name>`, as in the user agent of the message request.
    pub cli_name: String,
    /// `<runtime>`, as in the user agent of the preflight.
    pub runtime: String,
    /// Name given to the program inside the sandbox.
    pub program: String,
}

/// One option on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// When the words are given.
    pub option: ClientOption,
    /// Words; `{value}` stands for the option's value.
    pub words: Vec<String>,
}

/// What an argument is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClientOption {
    /// Given where the case names the switch.
    Switch(Switch),
    /// The case's prompt.
    Prompt,
    /// The case's system prompt.
    SystemPrompt,
    /// The case's model.
    Model,
}

impl ClientOption {
    /// Every option there is.
    pub const ALL: [Self; 10] = [
        Self::Switch(Switch::Print),
        Self::Switch(Switch::Bare),
        Self::Switch(Switch::StreamJson),
        Self::Switch(Switch::PartialMessages),
        Self::Switch(Switch::NoSessionPersistence),
        Self::Switch(Switch::NoTools),
        Self::Switch(Switch::SafeMode),
        Self::Prompt,
        Self::SystemPrompt,
        Self::Model,
    ];

    /// The word for it in profile files: `system-prompt`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Switch(switch) => switch.word(),
            Self::Prompt => "prompt",
            Self::SystemPrompt => "system-prompt",
            Self::Model => "model",
        }
    }

    /// Whether the option takes a value; a switch takes none.
    pub fn has_value(self) -> bool {
        match self {
            Self::Switch(_) => false,
            Self::Prompt | Self::SystemPrompt | Self::Model => true,
        }
    }
}

/// One environment variable. `{base_url}`, `{credential}`, `{home}` and `{tmp}` in the value are replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Name, as in environ(7).
    pub name: String,
    /// Value, with placeholders.
    pub value: String,
    /// When it is set.
    pub cases: Cases,
    /// Why it is set.
    pub reason: String,
}

/// The cases in which a variable is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cases {
    /// Every one: the client cannot be run without it.
    Every,
    /// Those of these names: a setting that reproduces what was observed, left out by `--plain`.
    Only(Vec<String>),
}

impl Cases {
    /// Whether a case of this name is among them.
    pub fn include(&self, case: &str) -> bool {
        match self {
            Self::Every => true,
            Self::Only(names) => names.iter().any(|name| name == case),
        }
    }
}

/// What the client's requests look like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Headers {
    /// Header names (lower case) that the message request may carry.
    pub message: Vec<String>,
    /// Header names (lower case) that the preflight may carry.
    pub preflight: Vec<String>,
    /// The header (lower case) in which the message carries the credential; in `authorization` behind `Bearer`.
    pub credential: String,
    /// For each family of the beta header, the piece of text that names it.
    pub beta_families: Vec<BetaFamily>,
}

/// One protocol family that the beta header names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BetaFamily {
    /// `client`, `interleaved thinking`, `context management`, `prompt-caching scope`.
    pub family: String,
    /// One value of the comma-separated header starts with this.
    pub prefix: String,
}

/// How the client's records spell things.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordNames {
    /// The field of `system/init` that holds the version.
    pub version_field: String,
    /// Fields that `system/init` must have, the version's included.
    pub init_fields: Vec<String>,
    /// Value of `permissionMode`: what the client may do without asking.
    pub permission_mode: String,
    /// Lists of `system/init` that may have entries; every other one is empty.
    pub init_lists: Vec<InitList>,
}

/// Entries that a list of `system/init` may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InitList {
    /// Name of the list.
    pub field: InitField,
    /// Names of its entries; `None` for any.
    pub names: Option<Vec<String>>,
    /// Why the client lists them.
    pub reason: String,
}

/// A list of `system/init` that extends what the client may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitField {
    /// Servers of tools.
    McpServers,
    /// Commands of the prompt.
    SlashCommands,
    /// Sub-agents.
    Agents,
    /// Skills.
    Skills,
    /// Plugins.
    Plugins,
}

impl InitField {
    /// Every one there is.
    pub const ALL: [Self; 5] = [
        Self::McpServers,
        Self::SlashCommands,
        Self::Agents,
        Self::Skills,
        Self::Plugins,
    ];

    /// The field of the record.
    pub fn word(self) -> &'static str {
        match self {
            Self::McpServers => "mcp_servers",
            Self::SlashCommands => "slash_commands",
            Self::Agents => "agents",
            Self::Skills => "skills",
            Self::Plugins => "plugins",
        }
    }
}

/// What the client leaves behind. `{app}` and the other names are replaced on parsing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// Relative to the home: `.agent/.agent.json`
    pub state: String,
    /// Directory and prefix of the backup, relative to the home; 13 digits follow:
    /// `.agent/backups/.agent.json.backup.`
    pub backup_prefix: String,
    /// Further files and directories that are no finding.
    pub expected: Vec<ExpectedFile>,
    /// Files and directories that are known to be there for a time. None is judged: watching is best effort.
    pub transient: Vec<ExpectedFile>,
}

/// A file or directory that the client is known to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedFile {
    /// The tree in which it lies.
    pub root: Root,
    /// Relative to the tree.
    pub path: PathPattern,
    /// Why the client makes it.
    pub reason: String,
}

impl Profile {
    /// The profile where the client has this user id.
    pub fn of_client(&self, uid: u32) -> Self {
        Self {
            files: self.files.of_client(uid),
            ..self.clone()
        }
    }
}

impl Files {
    /// The files of a client that has this user id.
    pub fn of_client(&self, uid: u32) -> Self {
        let of_client = |file: &ExpectedFile| ExpectedFile {
            path: file.path.of_client(uid),
            ..file.clone()
        };
        Self {
            expected: self.expected.iter().map(of_client).collect(),
            transient: self.transient.iter().map(of_client).collect(),
            ..self.clone()
        }
    }
}

closed_sets! {
    /// A list of the init record that extends what the client may do.
    InitField of ALL,

    /// What words of the command line are for: a switch of the case, or a value of it.
    ClientOption of ALL,
}
