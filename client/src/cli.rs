//! Parser of the command line and the environment: makes an [`Invocation`] of the arguments.
//!
//! The client has one mode: print mode, bare, `stream-json`, without tools and without a transcript. `--print` is
//! required, because there is no interactive mode. The other flags of this mode (`--bare`, `--no-session-persistence`,
//! `--output-format stream-json`, `--tools ""`) are optional.
//!
//! Every error here is a usage error: no output was written and no request sent.
//!
//! Knows no HTTP, records or files.

use std::{ffi::OsString, io::Read, path::PathBuf};

use clap::{Parser, builder::NonEmptyStringValueParser, error::ErrorKind};
use reqwest::Url;

use crate::key::ApiKey;

/// Version of the client that this one represents.
pub(crate) const CLI_VERSION: &str = "2.1.177";
/// Default of `--max-tokens`.
pub(crate) const DEFAULT_MAX_TOKENS: u32 = 32_000;
/// Default of `--model`.
pub(crate) const DEFAULT_MODEL: &str = "agent-model-1";
/// Largest prompt read from standard input, in bytes.
pub(crate) const MAX_PROMPT_BYTES: usize = 1024 * 1024;
/// Largest value of `--max-retries`.
const MAX_RETRIES: i64 = 10;

/// Task of the process.
#[derive(Debug)]
pub(crate) enum Command {
    /// Run one turn.
    Turn(Invocation),
    /// Print a text (help, version) on standard output.
    Show(String),
}

/// One turn with all its settings.
#[derive(Debug)]
pub(crate) struct Invocation {
    pub(crate) base_url: Url,
    pub(crate) key: ApiKey,
    pub(crate) home: PathBuf,
    pub(crate) mode: Mode,
    pub(crate) partial_messages: PartialMessages,
    pub(crate) prompt: String,
    /// Replacement for the default text of the third system block.
    pub(crate) system_prompt: Option<String>,
    pub(crate) model: String,
    pub(crate) max_tokens: u32,
    pub(crate) max_retries: u32,
}

/// Start-up mode: with or without `--safe-mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Preflight first; no `output_config`, no `cache_control`.
    Normal,
    /// No preflight; `output_config` and `cache_control` in the request.
    Safe,
}

/// Output of provider events as `stream_event` records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PartialMessages {
    Included,
    Omitted,
}

/// Environment variables that the client reads; it reads no others.
#[derive(Debug, Clone, Default)]
pub(crate) struct Environment {
    pub(crate) base_url: Option<OsString>,
    pub(crate) key: Option<OsString>,
    pub(crate) home: Option<OsString>,
}

/// Reason why the client cannot start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UsageError {
    /// The arguments do not parse; the message of the parser.
    #[error("{0}")]
    Arguments(String),
    #[error("only print mode exists: --print is needed")]
    NotPrintMode,
    #[error("a prompt is needed, as an argument or on standard input")]
    NoPrompt,
    #[error("the prompt on standard input is not UTF-8")]
    PromptNotUtf8,
    #[error("the prompt is longer than {MAX_PROMPT_BYTES} bytes")]
    PromptTooLong,
    #[error("the prompt cannot be read from standard input")]
    PromptUnreadable(#[source] std::io::Error),
    #[error("AGENT_BASE_URL is not set")]
    NoBaseUrl,
    #[error(
        "AGENT_BASE_URL is malformed: an absolute http URL without user, query or fragment is needed"
    )]
    BaseUrl,
    #[error("AGENT_API_KEY is not set")]
    NoKey,
    #[error("AGENT_API_KEY is malformed: visible ASCII characters are needed")]
    Key,
    #[error("HOME is not set")]
    NoHome,
    #[error("HOME is malformed: an absolute path is needed")]
    Home,
}

/// Run one text-only turn against a Messages-compatible provider and write it to standard output
/// as JSON lines.
///
/// Environment: AGENT_BASE_URL (http only), AGENT_API_KEY, HOME.
/// Exit codes: 0 the turn succeeded, 1 it failed (a result record says why), 2 usage error.
#[derive(Debug, Parser)]
#[command(name = "agent-cli", version = CLI_VERSION, verbatim_doc_comment)]
struct Arguments {
    /// Answer one prompt and exit; the only mode
    #[arg(long)]
    print: bool,
    /// Skip customization; this client has none
    #[arg(long)]
    bare: bool,
    /// Format of standard output
    #[arg(long, value_name = "FORMAT", value_parser = ["stream-json"], default_value = "stream-json")]
    output_format: String,
    /// Write a record for each event of the provider's stream
    #[arg(long)]
    include_partial_messages: bool,
    /// Write no transcript; this client never writes one
    #[arg(long)]
    no_session_persistence: bool,
    /// Tools to offer; only the empty selection exists
    #[arg(long, value_name = "NAMES", value_parser = no_tools, default_value = "", hide_default_value = true)]
    tools: NoTools,
    /// Start without the preflight, and mark cacheable blocks
    #[arg(long)]
    safe_mode: bool,
    /// Replace the default system prompt
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    system_prompt: Option<String>,
    /// Model to ask
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new(), default_value = DEFAULT_MODEL)]
    model: String,
    /// Largest number of tokens to generate
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), default_value_t = DEFAULT_MAX_TOKENS)]
    max_tokens: u32,
    /// Largest number of retries of a failed request, before any part of the answer has arrived
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=MAX_RETRIES), default_value_t = 0)]
    max_retries: u32,
    /// The prompt; by default read from standard input
    prompt: Option<String>,
}

/// The empty selection of tools.
#[derive(Debug, Clone, Copy)]
struct NoTools;

fn no_tools(names: &str) -> Result<NoTools, &'static str> {
    if names.is_empty() {
        Ok(NoTools)
    } else {
        Err("no tool exists, only \"\" can be selected")
    }
}

impl Environment {
    /// Reads the three environment variables.
    pub(crate) fn read() -> Self {
        Self {
            base_url: std::env::var_os("AGENT_BASE_URL"),
            key: std::env::var_os("AGENT_API_KEY"),
            home: std::env::var_os("HOME"),
        }
    }

    /// Returns a well-formed key, to redact it from messages.
    pub(crate) fn key(&self) -> Option<ApiKey> {
        self.key
            .as_ref()
            .and_then(|key| key.to_str())
            .and_then(ApiKey::parse)
    }

    fn resolve(&self) -> Result<(Url, ApiKey, PathBuf), UsageError> {
        let base_url = self.base_url.as_ref().ok_or(UsageError::NoBaseUrl)?;
        let base_url = base_url
            .to_str()
            .and_then(base_url_of)
            .ok_or(UsageError::BaseUrl)?;
        self.key.as_ref().ok_or(UsageError::NoKey)?;
        let key = self.key().ok_or(UsageError::Key)?;
        let home = PathBuf::from(self.home.as_ref().ok_or(UsageError::NoHome)?);
        if !home.is_absolute() {
            return Err(UsageError::Home);
        }
        Ok((base_url, key, home))
    }
}

/// Parses the arguments (the first is the program's name), checks the environment, and reads the prompt.
///
/// `stdin` is read only if the prompt is not an argument. It is `None` for a terminal, because the client does not ask
/// for a prompt.
pub(crate) fn parse(
    arguments: impl IntoIterator<Item = OsString>,
    environment: &Environment,
    stdin: Option<impl Read>,
) -> Result<Command, UsageError> {
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => return shown_or_usage(&error),
    };
    if !arguments.print {
        return Err(UsageError::NotPrintMode);
    }
    let (base_url, key, home) = environment.resolve()?;
    let prompt = prompt(arguments.prompt, stdin)?;
    Ok(Command::Turn(Invocation {
        base_url,
        key,
        home,
        mode: if arguments.safe_mode {
            Mode::Safe
        } else {
            Mode::Normal
        },
        partial_messages: if arguments.include_partial_messages {
            PartialMessages::Included
        } else {
            PartialMessages::Omitted
        },
        prompt,
        system_prompt: arguments.system_prompt,
        model: arguments.model,
        max_tokens: arguments.max_tokens,
        max_retries: arguments.max_retries,
    }))
}

fn shown_or_usage(error: &clap::Error) -> Result<Command, UsageError> {
    let text = error.to_string();
    if matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
    ) {
        return Ok(Command::Show(text));
    }
    // The first line names the error; hints and the usage follow.
    let first = text.lines().next().unwrap_or_default();
    Err(UsageError::Arguments(
        first.trim_start_matches("error: ").to_owned(),
    ))
}

fn base_url_of(text: &str) -> Option<Url> {
    // The URL parser accepts white space and control characters, which this client rejects.
    if text
        .bytes()
        .any(|byte| byte.is_ascii_control() || byte == b' ')
    {
        return None;
    }
    let url = Url::parse(text).ok()?;
    let plain = url.scheme() == "http"
        && url.username().is_empty()
        && url.password().is_none()
        && url.query().is_none()
        && url.fragment().is_none();
    plain.then_some(url)
}

fn prompt(argument: Option<String>, stdin: Option<impl Read>) -> Result<String, UsageError> {
    let prompt = match (argument, stdin) {
        (Some(prompt), _) => prompt,
        (None, Some(stdin)) => read_prompt(stdin)?,
        (None, None) => return Err(UsageError::NoPrompt),
    };
    if prompt.trim().is_empty() {
        Err(UsageError::NoPrompt)
    } else {
        Ok(prompt)
    }
}

fn read_prompt(stdin: impl Read) -> Result<String, UsageError> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(MAX_PROMPT_BYTES + 1).unwrap_or(u64::MAX);
    stdin
        .take(limit)
        .read_to_end(&mut bytes)
        .map_err(UsageError::PromptUnreadable)?;
    if bytes.len() > MAX_PROMPT_BYTES {
        return Err(UsageError::PromptTooLong);
    }
    String::from_utf8(bytes).map_err(|_| UsageError::PromptNotUtf8)
}

#[cfg(test)]
mod tests;
