//! Writer of the records on standard output: one JSON object per line, flushed after each.
//!
//! Field names are those of the public SDK (section 2.3 of the observed behaviour). Writing blocks: if the reader stops
//! reading, the turn waits, which bounds the memory.
//!
//! Knows no source of records, no time of each, and no HTTP.

use std::{
    io::{self, Write},
    time::Duration,
};

use serde::Serialize;
use serde_json::value::RawValue;

use crate::{
    cli::{CLI_VERSION, PartialMessages},
    event::Object,
    ids::Ids,
    message::Message,
};

/// Largest kept capacity of the line buffer, in bytes; a larger buffer is shrunk after its record.
const MAX_KEPT_BUFFER_BYTES: usize = 16 * 1024;

/// Standard output cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write to standard output")]
pub(crate) struct OutputError(#[from] io::Error);

/// Writer of the records of one run.
#[derive(Debug)]
pub(crate) struct Records<W> {
    out: W,
    session_id: String,
    ids: Ids,
    partial_messages: PartialMessages,
    line: Vec<u8>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Record<'a> {
    System(System<'a>),
    StreamEvent {
        event: &'a RawValue,
        session_id: &'a str,
        parent_tool_use_id: Option<&'a str>,
        uuid: String,
    },
    Assistant {
        message: &'a Object,
        parent_tool_use_id: Option<&'a str>,
        session_id: &'a str,
        uuid: String,
    },
    Result(TurnResult<'a>),
}

#[derive(Serialize)]
#[serde(tag = "subtype", rename_all = "snake_case")]
enum System<'a> {
    Init(Init<'a>),
    Status {
        status: &'static str,
        session_id: &'a str,
        uuid: String,
    },
}

/// Public facts about the run. Features that this client lacks are empty lists.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Init<'a> {
    cwd: &'a str,
    #[serde(rename = "session_id")]
    session_id: &'a str,
    tools: [&'a str; 0],
    #[serde(rename = "mcp_servers")]
    mcp_servers: [&'a str; 0],
    model: &'a str,
    permission_mode: &'static str,
    #[serde(rename = "slash_commands")]
    slash_commands: [&'a str; 0],
    api_key_source: &'static str,
    #[serde(rename = "output_style")]
    output_style: &'static str,
    agents: [&'a str; 0],
    skills: [&'a str; 0],
    plugins: [&'a str; 0],
    #[serde(rename = "agent_version")]
    agent_version: &'static str,
    uuid: String,
}

#[derive(Serialize)]
struct TurnResult<'a> {
    subtype: &'static str,
    is_error: bool,
    duration_ms: u64,
    num_turns: u32,
    result: &'a str,
    stop_reason: Option<&'a str>,
    session_id: &'a str,
    usage: &'a Object,
    uuid: String,
}

impl<W: Write> Records<W> {
    /// Makes a writer with a new session identifier; writes no record.
    pub(crate) fn new(out: W, partial_messages: PartialMessages) -> Self {
        let mut ids = Ids::new();
        let session_id = ids.next().to_string();
        Self {
            out,
            session_id,
            ids,
            partial_messages,
            line: Vec::new(),
        }
    }

    /// Writes `system/init`: the settings of the run.
    pub(crate) fn init(&mut self, cwd: &str, model: &str) -> Result<(), OutputError> {
        let init = Init {
            cwd,
            session_id: &self.session_id,
            tools: [],
            mcp_servers: [],
            model,
            permission_mode: "default",
            slash_commands: [],
            api_key_source: "AGENT_API_KEY",
            output_style: "default",
            agents: [],
            skills: [],
            plugins: [],
            agent_version: CLI_VERSION,
            uuid: self.ids.next().to_string(),
        };
        write(
            &mut self.out,
            &mut self.line,
            &Record::System(System::Init(init)),
        )
    }

    /// Writes `system/status`: the request follows.
    pub(crate) fn status(&mut self) -> Result<(), OutputError> {
        let status = System::Status {
            status: "requesting",
            session_id: &self.session_id,
            uuid: self.ids.next().to_string(),
        };
        write(&mut self.out, &mut self.line, &Record::System(status))
    }

    /// Writes `stream_event` for one event of the provider, unless partial messages are omitted.
    pub(crate) fn stream_event(&mut self, event: &RawValue) -> Result<(), OutputError> {
        match self.partial_messages {
            PartialMessages::Omitted => return Ok(()),
            PartialMessages::Included => {}
        }
        let record = Record::StreamEvent {
            event,
            session_id: &self.session_id,
            parent_tool_use_id: None,
            uuid: self.ids.next().to_string(),
        };
        write(&mut self.out, &mut self.line, &record)
    }

    /// Writes `assistant` with an aggregate of the answer.
    pub(crate) fn assistant(&mut self, message: &Object) -> Result<(), OutputError> {
        let record = Record::Assistant {
            message,
            parent_tool_use_id: None,
            session_id: &self.session_id,
            uuid: self.ids.next().to_string(),
        };
        write(&mut self.out, &mut self.line, &record)
    }

    /// Writes `result/success`, the last record of a successful turn.
    pub(crate) fn success(&mut self, message: &Message, took: Duration) -> Result<(), OutputError> {
        self.result(Ending::Success, message.text(), message, took)
    }

    /// Writes `result/error_during_execution`, the last record of a failed turn, with the reason.
    pub(crate) fn failure(
        &mut self,
        why: &str,
        message: &Message,
        took: Duration,
    ) -> Result<(), OutputError> {
        self.result(Ending::Error, why, message, took)
    }

    fn result(
        &mut self,
        ending: Ending,
        text: &str,
        message: &Message,
        took: Duration,
    ) -> Result<(), OutputError> {
        let (subtype, is_error, num_turns) = match ending {
            Ending::Success => ("success", false, 1),
            Ending::Error => ("error_during_execution", true, 0),
        };
        let result = TurnResult {
            subtype,
            is_error,
            duration_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            num_turns,
            result: text,
            stop_reason: message.stop_reason(),
            session_id: &self.session_id,
            usage: message.usage(),
            uuid: self.ids.next().to_string(),
        };
        write(&mut self.out, &mut self.line, &Record::Result(result))
    }
}

/// Result of the turn.
#[derive(Debug, Clone, Copy)]
enum Ending {
    Success,
    Error,
}

fn write<W: Write>(
    out: &mut W,
    line: &mut Vec<u8>,
    record: &Record<'_>,
) -> Result<(), OutputError> {
    line.clear();
    serde_json::to_writer(&mut *line, record).map_err(io::Error::from)?;
    line.push(b'\n');
    out.write_all(line)?;
    out.flush()?;
    line.shrink_to(MAX_KEPT_BUFFER_BYTES);
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn lines(
        partial: PartialMessages,
        write: impl FnOnce(&mut Records<&mut Vec<u8>>),
    ) -> Vec<Value> {
        let mut out = Vec::new();
        write(&mut Records::new(&mut out, partial));
        let text = String::from_utf8(out).unwrap();
        assert!(text.is_empty() || text.ends_with('\n'));
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    fn one(write: impl FnOnce(&mut Records<&mut Vec<u8>>)) -> Value {
        let mut lines = lines(PartialMessages::Included, write);
        assert_eq!(lines.len(), 1);
        lines.remove(0)
    }

    fn fields(record: &Value) -> Vec<&str> {
        record
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect()
    }

    #[test]
    fn init_has_the_public_fields_and_empty_lists() {
        let record = one(|records| records.init("/work", "m").unwrap());
        let mut names = fields(&record);
        names.sort_unstable();
        assert_eq!(
            names,
            [
                "agent_version",
                "agents",
                "apiKeySource",
                "cwd",
                "mcp_servers",
                "model",
                "output_style",
                "permissionMode",
                "plugins",
                "session_id",
                "skills",
                "slash_commands",
                "subtype",
                "tools",
                "type",
                "uuid",
            ]
        );
        assert_eq!(record["type"], "system");
        assert_eq!(record["subtype"], "init");
        assert_eq!(record["agent_version"], "2.1.177");
        assert_eq!(record["model"], "m");
        assert_eq!(record["cwd"], "/work");
        for empty in [
            "tools",
            "mcp_servers",
            "slash_commands",
            "agents",
            "skills",
            "plugins",
        ] {
            assert_eq!(record[empty], json!([]), "{empty}");
        }
    }

    #[test]
    fn status_says_that_the_request_is_made() {
        let record = one(|records| records.status().unwrap());
        assert_eq!(
            (&record["type"], &record["subtype"]),
            (&json!("system"), &json!("status"))
        );
        assert_eq!(record["status"], "requesting");
        assert_eq!(fields(&record).len(), 5);
    }

    #[test]
    fn a_stream_event_carries_the_providers_json_unchanged() {
        let json = r#"{"type": "message_stop",  "big":1.0e400, "a":1,"a":2}"#;
        let mut out = Vec::new();
        let event = RawValue::from_string(json.to_owned()).unwrap();
        Records::new(&mut out, PartialMessages::Included)
            .stream_event(&event)
            .unwrap();
        let line = String::from_utf8(out).unwrap();
        assert!(
            line.starts_with(&format!(r#"{{"type":"stream_event","event":{json},"#)),
            "{line}"
        );
        assert!(line.contains(r#""parent_tool_use_id":null"#));
    }

    #[test]
    fn omitted_partial_messages_write_no_stream_event() {
        let event = RawValue::from_string("{}".to_owned()).unwrap();
        let lines = lines(PartialMessages::Omitted, |records| {
            records.stream_event(&event).unwrap()
        });
        assert_eq!(lines, Vec::<Value>::new());
    }

    #[test]
    fn a_failure_is_an_error_result_with_the_fields_of_a_success() {
        let message = Message::new();
        let failure = one(|records| records.failure("why", &message, Duration::ZERO).unwrap());
        let success = one(|records| records.success(&message, Duration::ZERO).unwrap());
        assert_eq!(fields(&failure), fields(&success));
        assert_eq!(failure["subtype"], "error_during_execution");
        assert_eq!(failure["is_error"], true);
        assert_eq!(failure["result"], "why");
        assert_eq!(success["subtype"], "success");
        assert_eq!(success["is_error"], false);
        assert_eq!(success["type"], "result");
    }

    #[test]
    fn one_run_has_one_session_and_a_new_uuid_for_each_record() {
        let lines = lines(PartialMessages::Included, |records| {
            records.init("/", "m").unwrap();
            records.status().unwrap();
        });
        assert_eq!(lines[0]["session_id"], lines[1]["session_id"]);
        assert_ne!(lines[0]["uuid"], lines[1]["uuid"]);
    }

    /// Writer that records its length at each flush.
    #[derive(Default)]
    struct Flushes(Vec<usize>, usize);

    impl Write for Flushes {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.1 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            self.0.push(self.1);
            Ok(())
        }
    }

    #[test]
    fn each_record_is_flushed_as_it_is_written() {
        let mut records = Records::new(Flushes::default(), PartialMessages::Included);
        records.init("/", "m").unwrap();
        let after_init = records.out.1;
        records.status().unwrap();
        assert_eq!(records.out.0, [after_init, records.out.1]);
    }
}
