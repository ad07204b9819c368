//! Expected behaviour of a client: one table for each kind of evidence. A kind without a table is not judged.
//!
//! Attempts, names, the credential, survivors and the completeness of the evidence are judged in every case.

use scenario::closed_set;
use serde_json::Value;

use crate::evidence::Request;
use crate::journal::Head;
use crate::policy::Count;
use crate::profile::template::fill;
use crate::profile::{BetaFamily, ExpectedAttempt, Files, Profile, SideRequest, TextPattern};

pub use records::{
    AgentStream, FieldRule, Format, RecordRule, RecordRules, Records, ValueRule, pointer,
};

mod records;

/// End of the reason of an unreviewed rule.
pub const NOT_REVIEWED: &str = "not reviewed";

/// Expected behaviour of a client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expectations {
    /// Rules of the requests.
    pub requests: Option<Requests>,
    /// Form and rules of the records on standard output.
    pub records: Option<Records>,
    /// Rules of the files.
    pub files: Option<Files>,
    /// Exit of the client.
    pub exit: Option<ExpectedExit>,
    /// Programs that the client may start.
    pub programs: Option<Vec<ProgramRule>>,
    /// Attempts and names that are no finding.
    pub attempts: Vec<ExpectedAttempt>,
    /// Known requests besides the turn.
    pub side_requests: Vec<SideRequest>,
    /// True if the ledger must be able to show every class of attempts.
    pub complete_ledger: bool,
}

/// Rules of the requests. A request that no rule matches is a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requests {
    /// Order of the requests.
    pub order: Order,
    /// Rules; the first match counts.
    pub rules: Vec<RequestRule>,
}

closed_set! {
    /// Order of the requests.
    pub enum Order {
        /// That of the rules.
        Listed = "listed",
        /// Not judged.
        Any = "any",
    }
}

/// Rule of one kind of requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestRule {
    /// Name for findings: `message`.
    pub name: String,
    /// Part of the profile that completes the rule.
    pub profile: Option<ProfileRequest>,
    /// Protocol of a request for the turn; `None` for other requests, such as a preflight.
    pub protocol: Option<Protocol>,
    /// Method: `POST`.
    pub method: String,
    /// Path, without the query.
    pub path: TextPattern,
    /// Number of such requests.
    pub count: Count,
    /// Queries that are no finding, without the question mark. A request without a query is none either.
    pub queries: Vec<String>,
    /// Credential of the requests.
    pub auth: Auth,
    /// Names of the headers.
    pub headers: HeaderRules,
    /// User agent, a [`TextPattern`] with placeholders for the names of the profile.
    pub user_agent: Option<String>,
    /// Families that the beta header names; empty: not judged.
    pub families: Vec<BetaFamily>,
    /// Name of the beta header, where there are families.
    pub beta_header: String,
    /// Body of the requests.
    pub body: BodyRules,
    /// Reason for the rule.
    pub reason: String,
}

closed_set! {
    /// Part of a profile that completes a rule: names of headers, queries, credential and beta families.
    pub enum ProfileRequest {
        /// Rules of the profile for message requests.
        Message = "message",
        /// Rule of the profile for the preflight: names of headers.
        Preflight = "preflight",
    }
}

closed_set! {
    /// Protocol of a provider.
    pub enum Protocol {
        /// Messages: `POST /v1/messages`.
        Messages = "messages",
    }
}

/// Credential that a request carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Auth {
    /// Not judged.
    Any,
    /// No header with a credential.
    None,
    /// The credential of the run, once, in this header (lower case); in `authorization` it follows `Bearer`.
    Header(String),
}

/// Names of headers, in lower case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeaderRules {
    /// All names that a request may have; `None` allows any.
    pub allowed: Option<Vec<String>>,
    /// Names that a request must have.
    pub required: Vec<String>,
    /// Names that a request must not have.
    pub forbidden: Vec<String>,
}

/// Body of a request. Each part is judged if it is there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BodyRules {
    /// Exact top-level fields.
    pub fields: Option<Vec<BodyField>>,
    /// Number of text blocks in the single user message.
    pub user_blocks: Option<usize>,
    /// Number of text blocks in the system input.
    pub system_blocks: Option<usize>,
    /// Blocks that carry `cache_control`.
    pub cache_control: Option<CacheControl>,
    /// True if the list of tools must be empty.
    pub no_tools: bool,
    /// True if the body must ask for a stream.
    pub stream: bool,
}

/// One expected top-level field of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BodyField {
    /// Name of the field.
    pub name: String,
    /// JSON type of its value; `None` for any.
    pub kind: Option<JsonKind>,
}

closed_set! {
    /// A JSON type.
    pub enum JsonKind {
        /// `{…}`
        Object = "object",
        /// `[…]`
        Array = "array",
        /// `"…"`
        String = "string",
        /// Any number.
        Number = "number",
        /// `true` or `false`.
        Boolean = "boolean",
        /// `null`
        Null = "null",
    }
}

impl JsonKind {
    /// Returns the type of a value.
    pub fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(_) => Self::Boolean,
            Value::Number(_) => Self::Number,
            Value::String(_) => Self::String,
            Value::Array(_) => Self::Array,
            Value::Object(_) => Self::Object,
        }
    }
}

/// Blocks of a body that carry `cache_control`, exactly these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheControl {
    /// Number of system blocks that carry it.
    pub system_count: usize,
    /// Numbers of the user message's blocks that carry it, from 1.
    pub user: Vec<usize>,
}

/// Exit of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpectedExit {
    /// This code.
    Code(i32),
    /// Any code, of the client's own accord.
    AnyCode,
}

/// A program that the client may start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramRule {
    /// Path of the program inside the sandbox.
    pub program: TextPattern,
    /// Reason why the client starts it.
    pub reason: String,
}

impl Expectations {
    /// Returns the expectations of the case for the client of a profile.
    pub fn of_client(&self, profile: &Profile) -> Self {
        let mut complete = self.clone();
        for rule in complete.requests.iter_mut().flat_map(|all| &mut all.rules) {
            rule.complete(profile);
        }
        let stream = complete.records.as_mut();
        if let Some(stream) = stream.and_then(|records| records.stream.as_mut()) {
            stream.names.get_or_insert_with(|| profile.records.clone());
        }
        if let Some(files) = &mut complete.files {
            files.add(&profile.files);
        }
        complete.attempts.extend(profile.attempts.iter().cloned());
        complete
            .side_requests
            .extend(profile.side_requests.iter().cloned());
        complete
    }

    /// Returns the expectations of a run on this machine: `{project}` filled in, and the interpreters of the client.
    pub fn on_machine(&self, project: &str, interpreters: &[ProgramRule]) -> Self {
        let mut expect = self.clone();
        if let Some(rules) = &mut expect.programs {
            for rule in rules.iter_mut() {
                rule.program = rule.program.filled(project);
            }
            rules.extend_from_slice(interpreters);
        }
        expect
    }

    /// Returns the expectations of a client with this user id.
    pub fn with_uid(&self, uid: u32) -> Self {
        let files = self.files.as_ref();
        Self {
            files: files.map(|files| files.of_client(uid)),
            ..self.clone()
        }
    }

    /// Kinds of evidence without a table, for people.
    pub fn not_judged(&self) -> Vec<&'static str> {
        let kinds = [
            (self.requests.is_none(), "requests"),
            (self.records.is_none(), "records"),
            (self.files.is_none(), "files"),
            (self.exit.is_none(), "exit code"),
            (self.programs.is_none(), "programs"),
        ];
        let absent = kinds.into_iter().filter(|(is_absent, _)| *is_absent);
        absent.map(|(_, kind)| kind).collect()
    }

    /// Number of unreviewed rules, by the end of their reason.
    pub fn not_reviewed(&self) -> usize {
        let requests = self.requests.iter().flat_map(|all| &all.rules);
        let requests = requests.map(|rule| &rule.reason);
        let records = self.records.iter().flat_map(|records| &records.rules);
        let records = records.flat_map(|rules| &rules.rules);
        let records = records.map(|rule| &rule.reason);
        let files = self.files.iter();
        let files = files.flat_map(|files| files.expected.iter().chain(&files.transient));
        let files = files.map(|rule| &rule.reason);
        let programs = self.programs.iter().flatten().map(|rule| &rule.reason);
        let attempts = self.attempts.iter().map(|rule| &rule.reason);
        let reasons = requests.chain(records).chain(files);
        let reasons = reasons.chain(programs).chain(attempts);
        reasons
            .filter(|reason| reason.ends_with(NOT_REVIEWED))
            .count()
    }

    /// Header of the requests for the turn that carries the credential, if a rule names one.
    pub fn credential_header(&self) -> Option<&str> {
        let mut rules = self.requests.iter().flat_map(|all| &all.rules);
        rules.find_map(|rule| match &rule.auth {
            Auth::Header(name) => Some(name.as_str()),
            Auth::Any | Auth::None => None,
        })
    }
}

impl Requests {
    /// The single rule of a case that allows one request only.
    pub fn only(&self) -> Option<&RequestRule> {
        let mut possible = self.rules.iter().filter(|rule| rule.count.to != Some(0));
        let first = possible.next()?;
        (possible.next().is_none() && first.count == Count::ONCE).then_some(first)
    }
}

impl RequestRule {
    /// Adds the rules of the profile, and fills in the client's names.
    fn complete(&mut self, profile: &Profile) {
        let headers = &profile.headers;
        match self.profile {
            None => {}
            Some(ProfileRequest::Preflight) => {
                self.headers.allowed = Some(headers.preflight.clone());
            }
            Some(ProfileRequest::Message) => {
                self.headers.allowed = Some(headers.message.clone());
                self.queries.extend(profile.queries.iter().cloned());
                self.auth = Auth::Header(headers.credential.clone());
                self.families.clone_from(&headers.beta_families);
                self.beta_header = format!("{}-beta", profile.names.vendor);
            }
        }
        let names = &profile.names;
        let user_agent = self.user_agent.take();
        self.user_agent = user_agent.map(|text| fill(&text, |name| names.value(name)));
    }

    /// Pattern of the user agent, with the client's names.
    pub fn user_agent(&self) -> Option<TextPattern> {
        let text = self.user_agent.as_deref()?;
        Some(text.parse().unwrap_or_else(|_| TextPattern::literal(text)))
    }

    /// Checks for a request of the rule: by method and path.
    pub fn covers(&self, request: &Request) -> bool {
        match &request.head {
            Head::Request { method, path, .. } => *method == self.method && self.path.matches(path),
            Head::Malformed { .. } | Head::Incomplete => false,
        }
    }

    /// Text of such requests: `POST /v1/messages`.
    pub fn words(&self) -> String {
        format!("{} {}", self.method, self.path)
    }
}
