//! A stub in its own thread, and its journal.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;

use landlock::{RulesetCreated, RulesetStatus};
use model::journal::{Body, Control, End, Entry, Head, Host};
use model::secret::SecretScanner;
use scenario::Scenario;
use serde_json::Value;
use stub::{Limits, ServeError, Setup, Sockets};
use tokio::sync::oneshot;

mod client;

pub(crate) use client::Client;

pub(crate) const KEY: &str = "sk-stub-0123456789abcdef";

/// Options of a run.
#[derive(Default)]
pub(crate) struct Plan {
    pub(crate) scenario: Scenario,
    pub(crate) limits: Limits,
    pub(crate) surroundings: Surroundings,
    /// Starts the run without a second host, even if its scenario needs one.
    pub(crate) without_elsewhere: bool,
    /// Sockets for which the kernel may hold bytes.
    pub(crate) sockets: Option<Box<dyn Sockets>>,
}

/// Restrictions on the stub's thread.
#[derive(Default)]
pub(crate) enum Surroundings {
    #[default]
    Open,
    /// A Landlock ruleset without rules: no file, no connection, no bind.
    Sealed(RulesetCreated),
}

impl Surroundings {
    fn enter(self) {
        if let Self::Sealed(ruleset) = self {
            let status = ruleset.restrict_self().unwrap();
            assert_eq!(status.ruleset, RulesetStatus::FullyEnforced);
            assert!(std::fs::File::open("/dev/urandom").is_err());
        }
    }
}

/// Way to end the run.
enum Steering {
    Control(UnixStream),
    Finish(oneshot::Sender<()>),
}

/// A started run.
pub(crate) struct Run {
    pub(crate) address: SocketAddr,
    /// Second host, if the scenario redirects to one.
    pub(crate) elsewhere: Option<SocketAddr>,
    journal: BufReader<UnixStream>,
    entries: Vec<Entry>,
    steering: Steering,
    thread: JoinHandle<Result<(), ServeError>>,
}

pub(crate) fn scenario(toml: &str) -> Plan {
    Plan {
        scenario: toml::from_str(toml).unwrap(),
        ..Plan::default()
    }
}

pub(crate) fn limits(limits: Limits) -> Plan {
    Plan {
        limits,
        ..Plan::default()
    }
}

impl Plan {
    /// Starts a run without a barrier.
    pub(crate) fn start(self) -> Run {
        let (sender, finish) = oneshot::channel();
        self.spawn(Steering::Finish(sender), move |setup, journal| {
            Box::pin(stub::serve_until(setup, journal, async {
                finish.await.unwrap_or_default()
            }))
        })
    }

    /// Starts a run with a barrier.
    pub(crate) fn start_with_barrier(self) -> Run {
        let (control, far) = UnixStream::pair().unwrap();
        far.set_nonblocking(true).unwrap();
        self.spawn(Steering::Control(control), move |setup, journal| {
            Box::pin(async {
                stub::serve(
                    setup,
                    journal,
                    tokio::net::UnixStream::from_std(far).unwrap(),
                )
                .await
            })
        })
    }

    fn spawn<F>(self, steering: Steering, serve: F) -> Run
    where
        F: FnOnce(
            Setup,
            tokio::net::UnixStream,
        ) -> std::pin::Pin<Box<dyn Future<Output = Result<(), ServeError>>>>,
        F: Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        // A different loopback address, so that clients that compare only host names see another host.
        let elsewhere = self
            .scenario
            .needs_elsewhere()
            .then_some(())
            .filter(|()| !self.without_elsewhere)
            .map(|()| TcpListener::bind("127.0.0.2:0").unwrap());
        let elsewhere_address = elsewhere
            .as_ref()
            .map(|listener| listener.local_addr().unwrap());
        let (near, journal) = UnixStream::pair().unwrap();
        journal.set_nonblocking(true).unwrap();
        let credential = Some(SecretScanner::new(KEY).unwrap());
        let setup = Setup {
            listener,
            elsewhere,
            scenario: self.scenario,
            credential,
            belongs: model::secret::Belongs::default(),
            limits: self.limits,
            sockets: self.sockets,
        };
        let surroundings = self.surroundings;
        let thread = std::thread::spawn(move || {
            surroundings.enter();
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                serve(setup, tokio::net::UnixStream::from_std(journal).unwrap()).await
            })
        });
        Run {
            address,
            elsewhere: elsewhere_address,
            journal: BufReader::new(near),
            entries: Vec::new(),
            steering,
            thread,
        }
    }
}

impl Run {
    pub(crate) fn connect(&self) -> Client {
        Client {
            stream: TcpStream::connect(self.address).unwrap(),
        }
    }

    pub(crate) fn connect_elsewhere(&self) -> Client {
        Client {
            stream: TcpStream::connect(self.elsewhere.unwrap()).unwrap(),
        }
    }

    /// Waits for the next entry that `want` accepts; the entries before it are kept for the end.
    pub(crate) fn wait_for(&mut self, want: impl Fn(&Entry) -> bool) -> Entry {
        loop {
            let entry = self.read().expect("the journal ended");
            self.entries.push(entry.clone());
            if want(&entry) {
                return entry;
            }
        }
    }

    pub(crate) fn wait_for_began(&mut self) -> u64 {
        let entry = self.wait_for(|entry| matches!(entry, Entry::Began { .. }));
        let Entry::Began { request, .. } = entry else {
            panic!("{entry:?}")
        };
        request
    }

    pub(crate) fn wait_for_closed(&mut self) {
        self.wait_for(|entry| matches!(entry, Entry::Closed { .. }));
    }

    pub(crate) fn go(&mut self, request: u64) {
        self.say(&Control::Go { request });
    }

    fn say(&mut self, control: &Control) {
        let Steering::Control(stream) = &mut self.steering else {
            panic!("no control channel")
        };
        writeln!(stream, "{}", serde_json::to_string(control).unwrap()).unwrap();
    }

    /// Ends the run normally and returns the whole journal.
    pub(crate) fn finish(mut self) -> Journal {
        if matches!(self.steering, Steering::Control(_)) {
            self.say(&Control::Finish);
        }
        if let Steering::Finish(sender) =
            std::mem::replace(&mut self.steering, Steering::Finish(oneshot::channel().0))
        {
            // Sending and dropping both end the run.
            drop(sender);
        }
        let (result, journal) = self.join();
        result.unwrap();
        assert!(
            matches!(journal.entries.last(), Some(Entry::Done { .. })),
            "{journal:?}"
        );
        journal
    }

    /// Waits for the error with which the run ends by itself.
    pub(crate) fn fail(self) -> ServeError {
        self.join().0.unwrap_err()
    }

    /// Closes the control channel without `finish`.
    pub(crate) fn abandon(mut self) -> Result<(), ServeError> {
        self.steering = Steering::Finish(oneshot::channel().0);
        self.join().0
    }

    /// Closes the reading end of the journal.
    pub(crate) fn lose_journal(self) -> Result<(), ServeError> {
        let Self {
            journal,
            thread,
            address,
            ..
        } = self;
        drop(journal);
        drop(TcpStream::connect(address));
        thread.join().unwrap()
    }

    fn join(mut self) -> (Result<(), ServeError>, Journal) {
        while let Some(entry) = self.read() {
            self.entries.push(entry);
        }
        (
            self.thread.join().unwrap(),
            Journal {
                entries: self.entries,
            },
        )
    }

    fn read(&mut self) -> Option<Entry> {
        let mut line = String::new();
        if self.journal.read_line(&mut line).unwrap() == 0 {
            return None;
        }
        assert!(!line.contains(KEY), "{line}");
        Some(serde_json::from_str(&line).unwrap())
    }
}

/// Journal of a run.
#[derive(Debug)]
pub(crate) struct Journal {
    pub(crate) entries: Vec<Entry>,
}

impl Journal {
    /// Returns the entries as short texts, without those of the events.
    pub(crate) fn story(&self) -> Vec<String> {
        let word = |entry: &Entry| match entry {
            Entry::Accepted {
                connection, host, ..
            } => match host {
                Host::Stub => format!("{connection} accepted"),
                Host::Elsewhere => format!("{connection} accepted elsewhere"),
            },
            Entry::Began {
                connection,
                request,
                ..
            } => format!("{connection} began {request}"),
            Entry::Head { request, head, .. } => match head {
                Head::Request { method, path, .. } => format!("{request}: {method} {path}"),
                Head::Malformed { .. } => format!("{request}: malformed"),
                Head::Incomplete => format!("{request}: incomplete"),
            },
            Entry::Held { bytes, .. } => format!("{bytes} bytes held"),
            Entry::Body { request, body, .. } => {
                format!(
                    "{request}: {} bytes{}",
                    body.bytes,
                    if body.complete { "" } else { " incomplete" }
                )
            }
            Entry::Answered {
                request, status, ..
            } => format!("{request}: {status}"),
            Entry::Sent { .. } => String::new(),
            Entry::Sighting { request, place, .. } => format!("{request}: sighting {place}"),
            Entry::Unordered { request, .. } => format!("{request}: unordered"),
            Entry::Closed {
                connection,
                bytes,
                unaccounted,
                requests,
                end,
                ..
            } => {
                format!(
                    "{connection} closed {end:?} bytes={bytes} unaccounted={unaccounted} requests={requests}"
                )
            }
            Entry::Refused { connections, .. } => format!("refused {connections}"),
            Entry::Done { .. } => "done".to_owned(),
        };
        self.entries
            .iter()
            .map(word)
            .filter(|word| !word.is_empty())
            .collect()
    }

    pub(crate) fn bodies(&self) -> Vec<&Body> {
        self.entries
            .iter()
            .filter_map(|entry| {
                if let Entry::Body { body, .. } = entry {
                    Some(body)
                } else {
                    None
                }
            })
            .collect()
    }

    /// Returns the end of each connection: bytes, unaccounted bytes, and the kind of end.
    pub(crate) fn ends(&self) -> Vec<(u64, u64, End)> {
        let end = |entry: &Entry| {
            let Entry::Closed {
                bytes,
                unaccounted,
                end,
                ..
            } = entry
            else {
                return None;
            };
            Some((*bytes, *unaccounted, *end))
        };
        self.entries.iter().filter_map(end).collect()
    }

    /// Returns the events sent: name and data.
    pub(crate) fn sent(&self) -> Vec<(String, Value)> {
        let sent = |entry: &Entry| {
            let Entry::Sent { event, data, .. } = entry else {
                return None;
            };
            Some((event.clone(), data.clone()))
        };
        self.entries.iter().filter_map(sent).collect()
    }

    pub(crate) fn at_us(&self) -> Vec<u64> {
        let field = |entry: &Entry| {
            serde_json::to_value(entry).unwrap()["at_us"]
                .as_u64()
                .unwrap()
        };
        self.entries.iter().map(field).collect()
    }
}

pub(crate) const HEAD: &str = "HEAD / HTTP/1.1\r\nHost: stub\r\n\r\n";

/// Body of a message request with a stream.
pub(crate) fn post() -> String {
    post_with("/v1/messages", &format!("x-api-key: {KEY}\r\n"), &ask())
}

pub(crate) fn ask() -> String {
    r#"{"model":"model-x","max_tokens":16,"messages":[{"role":"user","content":"hi"}],"stream":true}"#.to_owned()
}

pub(crate) fn post_with(target: &str, headers: &str, body: &str) -> String {
    let mut request = format!("POST {target} HTTP/1.1\r\nHost: stub\r\n{headers}");
    write!(request, "Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
    request
}
