//! The kit: a scripted server, the client as a child process, and the stream of a good answer.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    process::{Child, ChildStdout, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use serde_json::Value;
use tempfile::TempDir;

/// The key of every run; no output may hold it.
pub(crate) const KEY: &str = "sk-test-0123456789abcdef";
/// Time limit of every wait on a socket, so that a hanging test fails.
const PATIENCE: Duration = Duration::from_secs(30);

/// Action of the server on one connection, after it has read the request.
pub(crate) type Reply = Box<dyn FnOnce(&mut TcpStream) + Send>;

/// A received request.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) line: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// Bytes after the request on the same connection, up to its end.
    pub(crate) rest: Vec<u8>,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(known, _)| known == name);
        let value = found.next().map(|(_, value)| value.as_str());
        assert!(found.next().is_none(), "{name} came twice");
        value
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// A server that answers connections in sequence.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    over: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Request>>,
}

impl Server {
    pub(crate) fn start(replies: Vec<Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let over = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&over);
        let thread = std::thread::spawn(move || {
            let mut replies = replies.into_iter();
            let mut requests = Vec::new();
            loop {
                let (connection, _) = listener.accept().unwrap();
                if told.load(Ordering::SeqCst) {
                    break;
                }
                let reply = replies
                    .next()
                    .expect("a connection that the script does not have");
                requests.push(serve(connection, reply));
            }
            assert_eq!(replies.count(), 0, "the client made fewer connections");
            requests
        });
        Self {
            address,
            over,
            thread,
        }
    }

    /// A server for one turn of case B: one POST.
    pub(crate) fn answering(reply: Reply) -> Self {
        Self::start(vec![reply])
    }

    /// Returns the requests once the client has ended; the script must have been played to its end.
    pub(crate) fn requests(self) -> Vec<Request> {
        self.over.store(true, Ordering::SeqCst);
        drop(TcpStream::connect(self.address).unwrap());
        self.thread.join().unwrap()
    }
}

fn serve(mut connection: TcpStream, reply: Reply) -> Request {
    connection.set_read_timeout(Some(PATIENCE)).unwrap();
    connection.set_write_timeout(Some(PATIENCE)).unwrap();
    let mut request = read_request(&connection);
    reply(&mut connection);
    let _ = connection.shutdown(std::net::Shutdown::Write);
    // A reset also ends the connection: the client may exit with unread bytes.
    let _ = connection.read_to_end(&mut request.rest);
    request
}

fn read_request(connection: &TcpStream) -> Request {
    let mut reader = BufReader::new(connection);
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        match line.trim_end() {
            "" => break,
            text => head.push(text.to_owned()),
        }
    }
    let headers: Vec<(String, String)> = head
        .iter()
        .skip(1)
        .map(|line| line.split_once(": ").unwrap())
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let mut body = vec![0; length.map_or(0, |(_, length)| length.parse().unwrap())];
    reader.read_exact(&mut body).unwrap();
    Request {
        line: head[0].clone(),
        headers,
        body,
        rest: reader.buffer().to_vec(),
    }
}

/// Sends these bytes unchanged, and closes the connection.
pub(crate) fn raw(bytes: impl Into<Vec<u8>>) -> Reply {
    let bytes = bytes.into();
    Box::new(move |connection| {
        // The client may have exited already; the test checks its result.
        let _ = connection.write_all(&bytes);
    })
}

/// An answer without a body.
pub(crate) fn empty(status: &str) -> Reply {
    raw(format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n"))
}

/// Response with a JSON body and optional extra header lines, each with its line end.
pub(crate) fn json(status: &str, headers: &str, body: &str) -> Reply {
    raw(format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    ))
}

/// The head of a stream, as the stub sends it.
pub(crate) const STREAM_HEAD: &str = "HTTP/1.1 200 OK\r\n\
    content-type: text/event-stream; charset=utf-8\r\ncache-control: no-cache\r\n\
    request-id: req_1\r\ntransfer-encoding: chunked\r\n\r\n";

/// One chunk of a chunked body.
pub(crate) fn chunk(bytes: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

/// A whole stream: the body in one chunk, and the chunk that ends it.
pub(crate) fn stream(body: impl AsRef<[u8]>) -> Reply {
    raw([STREAM_HEAD.as_bytes(), &chunk(body.as_ref()), b"0\r\n\r\n"].concat())
}

/// One event in its usual framing.
pub(crate) fn event(name: &str, json: &str) -> String {
    format!("event: {name}\ndata: {json}\n\n")
}

/// The six events of a good answer, with their JSON.
pub(crate) const ANSWER: [(&str, &str); 6] = [
    (
        "message_start",
        r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"model":"stub-model","stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":25,"output_tokens":1}}}"#,
    ),
    (
        "content_block_start",
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
    ),
    (
        "content_block_delta",
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hällo €😀"},"unknown":[1.50, null]}"#,
    ),
    (
        "content_block_stop",
        r#"{"type":"content_block_stop","index":0   }"#,
    ),
    (
        "message_delta",
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":15}}"#,
    ),
    ("message_stop", r#"{"type":"message_stop"}"#),
];

/// The stream of [`ANSWER`], with a ping among its events.
pub(crate) fn answer() -> String {
    let mut events: Vec<String> = ANSWER
        .iter()
        .map(|(name, json)| event(name, json))
        .collect();
    events.insert(2, event("ping", r#"{"type": "ping"}"#));
    events.concat()
}

/// A command line of the client, with its environment and its home.
pub(crate) struct Client {
    command: Command,
    home: TempDir,
    stdin: Vec<u8>,
}

/// A run that has ended.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) home: TempDir,
}

/// A running client.
pub(crate) struct Running {
    child: Child,
    pub(crate) stdout: BufReader<ChildStdout>,
    home: TempDir,
}

impl Client {
    /// The client with its own home and an otherwise empty environment.
    pub(crate) fn bare(arguments: &[&str]) -> Self {
        let home = tempfile::tempdir().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_agent-cli"));
        command.args(arguments).env_clear().env("HOME", home.path());
        Self {
            command,
            home,
            stdin: Vec::new(),
        }
    }

    /// Case A: the prompt comes last.
    pub(crate) fn case_a(address: SocketAddr) -> Self {
        Self::bare(&[
            "--print",
            "--bare",
            "--output-format",
            "stream-json",
            "--include-partial-messages",
            "--no-session-persistence",
            "--tools",
            "",
            "say hello",
        ])
        .env("AGENT_BASE_URL", &format!("http://{address}"))
        .env("AGENT_API_KEY", KEY)
    }

    /// Case B: case A in safe mode with its own system prompt.
    pub(crate) fn case_b(address: SocketAddr) -> Self {
        Self::case_a(address).args(&["--safe-mode", "--system-prompt", "be brief"])
    }

    pub(crate) fn args(mut self, arguments: &[&str]) -> Self {
        self.command.args(arguments);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.command.env_remove(name);
        self
    }

    pub(crate) fn stdin(mut self, content: &str) -> Self {
        self.stdin = content.into();
        self
    }

    pub(crate) fn stdout(mut self, stdout: impl Into<Stdio>) -> Self {
        self.command.stdout(stdout);
        self
    }

    /// Runs to the end.
    pub(crate) fn run(mut self) -> Run {
        self.command.stdin(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(&self.stdin).unwrap();
        finish(child.wait_with_output().unwrap(), self.home)
    }

    /// Runs to the end with standard output collected.
    pub(crate) fn output(self) -> Run {
        self.stdout(Stdio::piped()).run()
    }

    /// Starts the client, for a test that reads record by record.
    pub(crate) fn spawn(mut self) -> Running {
        self.command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = self.command.spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Running {
            child,
            stdout,
            home: self.home,
        }
    }
}

fn finish(output: std::process::Output, home: TempDir) -> Run {
    let run = Run {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
        home,
    };
    assert!(
        !run.stdout.contains(KEY) && !run.stderr.contains(KEY),
        "the key shows: {run:?}"
    );
    run
}

impl Running {
    /// Waits for the next record.
    pub(crate) fn record(&mut self) -> Value {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    /// Closes our end of the client's standard output, runs `then`, and waits for the client to exit.
    pub(crate) fn close_stdout(self, then: impl FnOnce()) -> Run {
        drop(self.stdout);
        then();
        finish(self.child.wait_with_output().unwrap(), self.home)
    }

    /// Waits for the end of the run and reads the rest of its output.
    pub(crate) fn finish(mut self) -> Run {
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        let mut output = self.child.wait_with_output().unwrap();
        output.stdout = rest.into();
        finish(output, self.home)
    }
}

impl Run {
    pub(crate) fn records(&self) -> Vec<Value> {
        assert!(
            self.stdout.is_empty() || self.stdout.ends_with('\n'),
            "{}",
            self.stdout
        );
        self.stdout
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// The records by their short names.
    pub(crate) fn names(&self) -> Vec<String> {
        self.records().iter().map(name_of).collect()
    }

    /// Checks that the run failed as the client documents it; returns its message.
    pub(crate) fn failure(&self) -> String {
        assert_eq!(self.code, Some(1), "{self:?}");
        let records = self.records();
        let results: Vec<&Value> = records
            .iter()
            .filter(|record| record["type"] == "result")
            .collect();
        assert_eq!(results.len(), 1, "{records:?}");
        let last = records.last().unwrap();
        assert_eq!(name_of(last), "result/error_during_execution");
        assert_eq!(last["is_error"], true);
        let message = last["result"].as_str().unwrap().to_owned();
        assert_eq!(self.stderr, format!("error: {message}\n"));
        message
    }
}

/// `type`, and `subtype` or the event's type if there is one.
pub(crate) fn name_of(record: &Value) -> String {
    let kind = record["type"].as_str().unwrap();
    match record["subtype"]
        .as_str()
        .or(record["event"]["type"].as_str())
    {
        Some(detail) => format!("{kind}/{detail}"),
        None => kind.to_owned(),
    }
}
