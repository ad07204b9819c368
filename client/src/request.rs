//! Headers and JSON bodies of the two requests.
//!
//! Section 2.1 of the observed behaviour defines the fields and their types. The values are fixed values of this
//! client, and reveal no facts about the host. Only `metadata.user_id` is new for each run.
//!
//! Knows no sending, records or files.

use serde::Serialize;
use uuid::Uuid;

use crate::cli::{Invocation, Mode};

/// User agent of `POST /v1/messages`: the client's.
pub(crate) const CLI_USER_AGENT: &str = "agent-cli/2.1.177 (external, sdk-cli)";
/// User agent of `HEAD /`: the runtime's. The build script reads its version.
pub(crate) const RUNTIME_USER_AGENT: &str = concat!("reqwest/", env!("REQWEST_VERSION"));
/// Name of the header that lists protocol families.
pub(crate) const BETA_HEADER: &str = "agent-beta";
/// Protocol families: client, interleaved thinking, context management, prompt-caching scope.
pub(crate) const BETA_FAMILIES: &str = "agent-cli-20250219,interleaved-thinking-2025-05-14,\
    context-management-2025-06-27,prompt-caching-scope-2026-01-05";

const ATTRIBUTION: &str = "agent-cli 2.1.177; entry point sdk-cli";
const IDENTITY: &str = "You are a command-line agent that answers one prompt.";
const DEFAULT_SYSTEM_PROMPT: &str = "Answer in plain text. No tools are available.";
const REMINDER: &str = "<system-reminder>This is a print-mode turn: \
    nobody can answer a question.</system-reminder>";

/// Body of `POST /v1/messages`, with the fields of table 2.1.
#[derive(Debug, Serialize)]
pub(crate) struct Body<'a> {
    model: &'a str,
    max_tokens: u32,
    messages: [UserMessage<'a>; 1],
    system: [TextBlock<'a>; 3],
    /// Empty in both cases, because tools are disabled.
    tools: [(); 0],
    metadata: Metadata,
    thinking: Thinking,
    context_management: ContextManagement,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig>,
    stream: bool,
}

#[derive(Debug, Serialize)]
struct UserMessage<'a> {
    role: &'static str,
    content: [TextBlock<'a>; 2],
}

#[derive(Debug, Serialize)]
struct TextBlock<'a> {
    r#type: &'static str,
    text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

#[derive(Debug, Serialize)]
struct CacheControl {
    r#type: &'static str,
}

#[derive(Debug, Serialize)]
struct Metadata {
    user_id: String,
}

#[derive(Debug, Serialize)]
struct Thinking {
    r#type: &'static str,
}

#[derive(Debug, Serialize)]
struct ContextManagement {
    edits: [ContextEdit; 1],
}

#[derive(Debug, Serialize)]
struct ContextEdit {
    r#type: &'static str,
    keep: &'static str,
}

#[derive(Debug, Serialize)]
struct OutputConfig {
    effort: &'static str,
}

impl<'a> Body<'a> {
    /// Builds the body of one turn; `user` is an identifier of this run only.
    pub(crate) fn new(invocation: &'a Invocation, user: Uuid) -> Self {
        let mode = invocation.mode;
        let system_prompt = invocation
            .system_prompt
            .as_deref()
            .unwrap_or(DEFAULT_SYSTEM_PROMPT);
        Self {
            model: &invocation.model,
            max_tokens: invocation.max_tokens,
            messages: [UserMessage {
                role: "user",
                content: [
                    TextBlock::plain(REMINDER),
                    TextBlock::cacheable(&invocation.prompt, mode),
                ],
            }],
            system: [
                TextBlock::plain(ATTRIBUTION),
                TextBlock::cacheable(IDENTITY, mode),
                TextBlock::cacheable(system_prompt, mode),
            ],
            tools: [],
            metadata: Metadata {
                user_id: format!("user_{}", user.simple()),
            },
            thinking: Thinking { r#type: "adaptive" },
            context_management: ContextManagement {
                edits: [ContextEdit {
                    r#type: "clear_thinking_20251015",
                    keep: "all",
                }],
            },
            output_config: match mode {
                Mode::Normal => None,
                Mode::Safe => Some(OutputConfig { effort: "high" }),
            },
            stream: true,
        }
    }
}

impl<'a> TextBlock<'a> {
    fn plain(text: &'a str) -> Self {
        Self {
            r#type: "text",
            text,
            cache_control: None,
        }
    }

    /// Builds a block that safe mode marks for the provider's prompt cache.
    fn cacheable(text: &'a str, mode: Mode) -> Self {
        let cache_control = match mode {
            Mode::Normal => None,
            Mode::Safe => Some(CacheControl {
                r#type: "ephemeral",
            }),
        };
        Self {
            r#type: "text",
            text,
            cache_control,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use serde_json::{Value, json};

    use super::*;
    use crate::{
        cli::{CLI_VERSION, PartialMessages},
        ids::Ids,
        key::ApiKey,
    };

    fn invocation(mode: Mode) -> Invocation {
        Invocation {
            base_url: reqwest::Url::parse("http://127.0.0.1:1").unwrap(),
            key: ApiKey::parse("sk-test").unwrap(),
            home: PathBuf::from("/h"),
            mode,
            partial_messages: PartialMessages::Included,
            prompt: "say hi".to_owned(),
            system_prompt: Some("be brief".to_owned()),
            model: "m".to_owned(),
            max_tokens: 7,
            max_retries: 0,
        }
    }

    fn body(mode: Mode) -> Value {
        serde_json::to_value(Body::new(&invocation(mode), Ids::new().next())).unwrap()
    }

    fn fields(body: &Value) -> Vec<&str> {
        let mut names: Vec<&str> = body
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        names.sort_unstable();
        names
    }

    fn marked(blocks: &Value) -> Vec<bool> {
        blocks
            .as_array()
            .unwrap()
            .iter()
            .map(|block| block.get("cache_control").is_some())
            .collect()
    }

    #[test]
    fn the_normal_body_has_exactly_the_fields_of_case_a() {
        assert_eq!(
            fields(&body(Mode::Normal)),
            [
                "context_management",
                "max_tokens",
                "messages",
                "metadata",
                "model",
                "stream",
                "system",
                "thinking",
                "tools"
            ]
        );
    }

    #[test]
    fn the_safe_body_has_output_config_in_addition() {
        let body = body(Mode::Safe);
        assert!(fields(&body).contains(&"output_config"));
        assert_eq!(fields(&body).len(), 10);
        assert!(body["output_config"].is_object());
    }

    #[test]
    fn each_field_has_the_type_of_the_table() {
        for mode in [Mode::Normal, Mode::Safe] {
            let body = body(mode);
            for object in ["context_management", "metadata", "thinking"] {
                assert!(body[object].is_object(), "{object}");
            }
            assert_eq!(body["max_tokens"], 7);
            assert_eq!(body["model"], "m");
            assert_eq!(body["stream"], true);
            assert_eq!(body["tools"], json!([]));
        }
    }

    #[test]
    fn three_system_blocks_end_with_the_system_prompt() {
        for mode in [Mode::Normal, Mode::Safe] {
            let system = body(mode)["system"].clone();
            assert_eq!(system.as_array().unwrap().len(), 3);
            assert_eq!(system[2]["text"], "be brief");
            assert!(
                system
                    .as_array()
                    .unwrap()
                    .iter()
                    .all(|block| block["type"] == "text")
            );
        }
    }

    #[test]
    fn one_user_message_has_two_blocks_the_prompt_last() {
        for mode in [Mode::Normal, Mode::Safe] {
            let messages = body(mode)["messages"].clone();
            assert_eq!(messages.as_array().unwrap().len(), 1);
            assert_eq!(messages[0]["role"], "user");
            assert_eq!(messages[0]["content"].as_array().unwrap().len(), 2);
            assert_eq!(messages[0]["content"][1]["text"], "say hi");
        }
    }

    #[test]
    fn only_safe_mode_marks_two_system_blocks_and_the_second_user_block() {
        let (normal, safe) = (body(Mode::Normal), body(Mode::Safe));
        assert_eq!(marked(&normal["system"]), [false, false, false]);
        assert_eq!(marked(&normal["messages"][0]["content"]), [false, false]);
        assert_eq!(marked(&safe["system"]), [false, true, true]);
        assert_eq!(marked(&safe["messages"][0]["content"]), [false, true]);
        assert_eq!(
            safe["system"][1]["cache_control"],
            json!({"type": "ephemeral"})
        );
    }

    #[test]
    fn the_user_id_is_opaque_and_new_for_each_run() {
        let (one, other) = (body(Mode::Safe), body(Mode::Safe));
        assert_ne!(one["metadata"], other["metadata"]);
        let id = one["metadata"]["user_id"].as_str().unwrap();
        assert_eq!(id.len(), "user_".len() + 32);
        assert_eq!(one["metadata"].as_object().unwrap().len(), 1);
    }

    #[test]
    fn two_runs_differ_in_the_user_id_alone() {
        let (mut one, mut other) = (body(Mode::Normal), body(Mode::Normal));
        one["metadata"] = Value::Null;
        other["metadata"] = Value::Null;
        assert_eq!(one, other);
    }

    #[test]
    fn the_default_system_prompt_stands_in_for_a_missing_one() {
        let mut invocation = invocation(Mode::Normal);
        invocation.system_prompt = None;
        let body = serde_json::to_value(Body::new(&invocation, Ids::new().next())).unwrap();
        assert_eq!(body["system"][2]["text"], DEFAULT_SYSTEM_PROMPT);
    }

    #[test]
    fn the_user_agents_name_client_and_runtime_with_their_versions() {
        assert_eq!(
            CLI_USER_AGENT,
            format!("agent-cli/{CLI_VERSION} (external, sdk-cli)")
        );
        let version = RUNTIME_USER_AGENT.strip_prefix("reqwest/").unwrap();
        let lock = include_str!("../../Cargo.lock");
        assert!(
            lock.contains(&format!("name = \"reqwest\"\nversion = \"{version}\"")),
            "{version}"
        );
    }

    #[test]
    fn the_beta_header_names_four_families() {
        let families: Vec<&str> = BETA_FAMILIES.split(',').collect();
        assert_eq!(families.len(), 4);
        assert!(families.iter().all(|family| !family.contains(' ')));
    }
}
