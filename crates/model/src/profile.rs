//! Profiles: the spelling of a case's options for one client, and the names that the client uses.
//!
//! Parsed types only. A profile is data; no code depends on the client that it describes.

mod attempt;
mod command_line;
mod path_pattern;
mod side_request;
pub mod template;
mod text_pattern;

use std::borrow::Cow;

use scenario::closed_set;
use schemars::{JsonSchema, Schema, SchemaGenerator};

use crate::policy::{Count, Device, Origin, PathRule, Root, Switch};
use crate::schema::values::{described, one_of};

pub use attempt::{Destination, DestinationError, ExpectedAttempt, Ports};
pub use command_line::{Settings, Surroundings, Unspelt, filled};
pub use path_pattern::{PathPattern, PatternError, path_placeholders};
pub use side_request::MESSAGES;
pub use side_request::{KeyPath, KeyPathError, SideRequest};
pub use text_pattern::TextPattern;

/// Placeholder for the value of an option in the words of an argument.
pub const VALUE: &str = "value";

/// Placeholder for the origin of the stub, in variables and in the arguments of an audit.
pub const BASE_URL: &str = "{base_url}";

/// Placeholders that a run replaces in the value of a variable.
pub const PLACEHOLDERS: [&str; 4] = [BASE_URL, "{credential}", "{home}", "{tmp}"];

/// Names of the placeholders that a run replaces in the value of a variable.
pub const VARIABLE_PLACEHOLDERS: [&str; 4] = ["base_url", "credential", "home", "tmp"];

/// A parsed profile file.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Short name, as in reports: `reference`.
    pub name: String,
    /// The file of the profile.
    pub origin: Origin,
    /// Names that the client uses.
    pub names: Names,
    /// Spelling of the options, in the order of the command line.
    pub arguments: Vec<Argument>,
    /// The whole environment, including variables of some cases only. The client inherits no variable.
    pub environment: Vec<Variable>,
    /// Host paths that the client needs, read-only.
    pub paths: Vec<PathRule>,
    /// Devices that the client needs; /dev contains no others.
    pub devices: Vec<Device>,
    /// Headers of its requests.
    pub headers: Headers,
    /// Queries of the message request that are expected, as written after `?`; an empty query always is.
    pub queries: Vec<String>,
    /// Known requests besides the turn; the first match counts.
    pub side_requests: Vec<SideRequest>,
    /// Names in its records.
    pub records: RecordNames,
    /// Files that the client leaves in the home, temporary and working directory.
    pub files: Files,
    /// Expected attempts, each with its reason.
    pub attempts: Vec<ExpectedAttempt>,
}

/// Names that the client uses, for the placeholders of the specification.
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
    /// Name of the program inside the sandbox.
    pub program: String,
}

impl Names {
    /// Names of the placeholders, as the fields are called.
    pub const PLACEHOLDERS: [&str; 5] = ["app", "vendor", "cli_name", "runtime", "program"];

    /// Value of a placeholder.
    pub fn value(&self, placeholder: &str) -> Option<&str> {
        let mut all = self.placeholders().into_iter();
        all.find_map(|(name, value)| (name == placeholder).then_some(value))
    }

    /// Names of the placeholders, with their values.
    pub fn placeholders(&self) -> [(&'static str, &str); 5] {
        let [app, vendor, cli_name, runtime, program] = Self::PLACEHOLDERS;
        [
            (app, &self.app),
            (vendor, &self.vendor),
            (cli_name, &self.cli_name),
            (runtime, &self.runtime),
            (program, &self.program),
        ]
    }
}

/// One option on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// Condition under which the words are given.
    pub option: ClientOption,
    /// Words; `{value}` is the placeholder for the value of the option.
    pub words: Vec<String>,
}

/// Option of a case, spelt by an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClientOption {
    /// A switch, given if the case has it.
    Switch(Switch),
    /// The prompt of the case.
    Prompt,
    /// The system prompt of the case.
    SystemPrompt,
    /// The model of the case.
    Model,
}

impl ClientOption {
    /// All options.
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

    /// Returns the word for the option in profile files: `system-prompt`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Switch(switch) => switch.word(),
            Self::Prompt => "prompt",
            Self::SystemPrompt => "system-prompt",
            Self::Model => "model",
        }
    }

    /// Returns true if the option has a value; a switch has none.
    pub fn has_value(self) -> bool {
        match self {
            Self::Switch(_) => false,
            Self::Prompt | Self::SystemPrompt | Self::Model => true,
        }
    }
}

/// One environment variable. The run replaces `{base_url}`, `{credential}`, `{home}` and `{tmp}` in the value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Name, as in environ(7).
    pub name: String,
    /// Value, with placeholders.
    pub value: String,
    /// Cases in which the variable is set.
    pub cases: Cases,
    /// Reason why the variable is set.
    pub reason: String,
}

/// Cases in which a variable is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cases {
    /// Every case: the client does not run without the variable.
    Every,
    /// The named cases: a setting that reproduces the observed behaviour. `--plain` omits it.
    Only(Vec<String>),
}

impl Cases {
    /// Returns true if the variable is set in the case of this name.
    pub fn include(&self, case: &str) -> bool {
        match self {
            Self::Every => true,
            Self::Only(names) => names.iter().any(|name| name == case),
        }
    }
}

/// Headers of the client's requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Headers {
    /// Header names (lower case) that the message request may have.
    pub message: Vec<String>,
    /// Header names (lower case) that the preflight may have.
    pub preflight: Vec<String>,
    /// Header (lower case) that carries the credential in the message request; in `authorization` it follows `Bearer`.
    pub credential: String,
    /// Prefixes that identify the families of the beta header.
    pub beta_families: Vec<BetaFamily>,
}

/// One protocol family that the beta header names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BetaFamily {
    /// `client`, `interleaved thinking`, `context management`, `prompt-caching scope`.
    pub family: String,
    /// Prefix of one value in the comma-separated header.
    pub prefix: String,
}

/// Names in the client's records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordNames {
    /// Field of `system/init` with the version.
    pub version_field: String,
    /// Fields that `system/init` must have, including the version.
    pub init_fields: Vec<String>,
    /// Value of `permissionMode`: the actions that need no approval.
    pub permission_mode: String,
    /// Lists of `system/init` that may have entries; every other list is empty.
    pub init_lists: Vec<InitList>,
}

/// Entries that a list of `system/init` may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InitList {
    /// Name of the list.
    pub field: InitField,
    /// Names of the entries; `None` allows any.
    pub names: Option<Vec<String>>,
    /// Reason why the client has the entries.
    pub reason: String,
}

closed_set! {
    /// A list of `system/init` that extends the abilities of the client.
    pub enum InitField {
        /// MCP servers, which provide tools.
        McpServers = "mcp_servers",
        /// Slash commands of the prompt.
        SlashCommands = "slash_commands",
        /// Sub-agents.
        Agents = "agents",
        /// Skills.
        Skills = "skills",
        /// Plugins.
        Plugins = "plugins",
    }
}

/// Files that the client leaves. Parsing replaces `{app}` and the other names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    /// Path of the state file, relative to the home: `.agent/.agent.json`
    pub state: Option<String>,
    /// Directory and prefix of the backup, relative to the home; 13 digits follow: `.agent/backups/.agent.json.backup.`
    pub backup_prefix: Option<String>,
    /// Additional expected files and directories.
    pub expected: Vec<ExpectedFile>,
    /// Files and directories that exist for a time only. They are not judged, because watching is best effort.
    pub transient: Vec<ExpectedFile>,
    /// True if a transcript of the conversation is a finding.
    pub no_transcript: bool,
}

/// A file or directory that the client is known to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedFile {
    /// Tree that contains the file.
    pub root: Root,
    /// Path relative to the tree.
    pub path: PathPattern,
    /// Permission bits; `None` for any that only the owner can write to.
    pub mode: Option<u32>,
    /// Number of such files.
    pub count: Count,
    /// True if such a file may hold the credential of the run.
    pub may_hold_credential: bool,
    /// Reason why the client creates the file.
    pub reason: String,
}

impl Files {
    /// Adds the files of a profile.
    pub fn add(&mut self, others: &Self) {
        self.state = self.state.take().or_else(|| others.state.clone());
        self.backup_prefix = self
            .backup_prefix
            .take()
            .or_else(|| others.backup_prefix.clone());
        self.expected.extend(others.expected.iter().cloned());
        self.transient.extend(others.transient.iter().cloned());
    }

    /// Returns the files of a client with this user id.
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

impl JsonSchema for ClientOption {
    fn schema_name() -> Cow<'static, str> {
        "ClientOption".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let about = "Option of a case that words of the command line spell: a switch, or an option with a value.";
        described(about, one_of(&Self::ALL.map(Self::word)))
    }
}
