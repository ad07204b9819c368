//! Result of a single check, and the run that it judges.
//!
//! Messages are our own text. Text of the client occurs only in `object`, `found` and reasons, cut to a limit.

use model::case::expect::{AgentStream, Auth, Records, RequestRule, Requests};
use model::case::{Count, Expectations};
use model::evidence::{Evidence, GapKind, Request, RequestClass};
use model::journal::{Head, Host};
use model::profile::Files;
use model::text::{count, truncated};
use serde_json::Value;

/// Longest text that a finding quotes, in characters.
const QUOTE_LIMIT: usize = 300;
/// Most items that a finding lists.
const LIST_LIMIT: usize = 8;

/// Sentence for a passed check, or the reason why the check did not pass.
pub(super) type Outcome = Result<String, NotPassed>;

/// Reason why a check did not pass.
#[derive(Debug)]
pub(super) enum NotPassed {
    /// The evidence shows a deviation.
    Failed(Box<Deviation>),
    /// The evidence does not decide the check, for this reason.
    Undecided(Box<Deviation>, String),
    /// The object of the check does not exist.
    Absent(String),
    /// The case or the profile does not ask for the check.
    NotAsked(String),
}

/// Deviation from an expectation.
#[derive(Debug)]
pub(super) struct Deviation {
    pub(super) message: String,
    pub(super) object: Option<String>,
    pub(super) expected: Option<String>,
    pub(super) found: Option<String>,
    /// Kinds of evidence that must be complete for the deviation to be certain.
    pub(super) needs: &'static [GapKind],
    /// Effect of the runner's end of the client on the deviation; `None` if there is no effect.
    pub(super) effect: Option<EffectOfEnd>,
}

/// Effect of the runner's end of a client on a deviation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EffectOfEnd {
    /// The client might have removed or completed the object.
    Leftover,
    /// The client might have produced the missing object.
    Unfinished,
}

impl Deviation {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Deviation {
            message: message.into(),
            object: None,
            expected: None,
            found: None,
            needs: &[],
            effect: None,
        }
    }

    pub(super) fn at(mut self, object: impl AsRef<str>) -> Self {
        self.object = Some(quote(object.as_ref()));
        self
    }

    pub(super) fn expected(mut self, expected: impl AsRef<str>) -> Self {
        self.expected = Some(quote(expected.as_ref()));
        self
    }

    pub(super) fn found(mut self, found: impl AsRef<str>) -> Self {
        self.found = Some(quote(found.as_ref()));
        self
    }

    /// Marks an object that the client might have removed or completed, had the runner not ended it.
    pub(super) fn leftover(mut self) -> Self {
        self.effect = Some(EffectOfEnd::Leftover);
        self
    }

    /// If `is_missing`, marks an object that the client might have produced, had the runner not ended it.
    pub(super) fn unfinished_if(mut self, is_missing: bool) -> Self {
        if is_missing {
            self.effect = Some(EffectOfEnd::Unfinished);
        }
        self
    }

    /// Marks an object that the client might have produced, had the runner not ended it.
    pub(super) fn unfinished(self) -> Self {
        self.unfinished_if(true)
    }

    /// Fails a number of objects that the rule does not allow. Too small a number is certain only if no evidence of the
    /// kinds `needs` is lost.
    pub(super) fn failed_number<T>(
        self,
        rule: Count,
        number: u64,
        noun: &str,
        needs: &'static [GapKind],
    ) -> Result<T, NotPassed> {
        let is_missing = number < rule.from;
        self.expected(rule.words())
            .found(count(number as usize, noun))
            .unfinished_if(is_missing)
            .failed_if_complete(if is_missing { needs } else { &[] })
    }

    /// Fails for certain: the evidence shows the deviation, so lost evidence cannot refute it.
    pub(super) fn failed<T>(self) -> Result<T, NotPassed> {
        Err(NotPassed::Failed(Box::new(self)))
    }

    /// Fails unless evidence of these kinds is lost: the missing object might be in the lost part.
    pub(super) fn failed_if_complete<T>(
        mut self,
        needs: &'static [GapKind],
    ) -> Result<T, NotPassed> {
        self.needs = needs;
        self.failed()
    }

    pub(super) fn undecided<T>(self, because: impl Into<String>) -> Result<T, NotPassed> {
        Err(NotPassed::Undecided(Box::new(self), because.into()))
    }
}

/// Result of a check whose object does not exist.
pub(super) fn absent<T>(because: impl Into<String>) -> Result<T, NotPassed> {
    Err(NotPassed::Absent(because.into()))
}

/// Result of a check that the case does not ask for.
pub(super) fn not_asked<T>(because: impl Into<String>) -> Result<T, NotPassed> {
    Err(NotPassed::NotAsked(because.into()))
}

/// Input of the checks.
pub(super) struct JudgedRun<'a> {
    /// Expectations of the case for the client of this run.
    pub(super) expect: &'a Expectations,
    pub(super) evidence: &'a Evidence,
}

/// A request with the rule that it matches.
pub(super) type Ruled<'a> = (&'a RequestRule, &'a Request);

impl<'a> JudgedRun<'a> {
    /// Rules of the requests; skips a check of a case without them.
    pub(super) fn rules(&self) -> Result<&'a Requests, NotPassed> {
        match &self.expect.requests {
            Some(rules) => Ok(rules),
            None => not_asked("the case has no [expect.requests]"),
        }
    }

    /// Rules of the files; skips a check of a case without them.
    pub(super) fn files(&self) -> Result<&'a Files, NotPassed> {
        match &self.expect.files {
            Some(files) => Ok(files),
            None => not_asked("the case has no [expect.files]"),
        }
    }

    /// Form and rules of standard output; skips a check of a case that does not judge it.
    pub(super) fn records(&self) -> Result<&'a Records, NotPassed> {
        match &self.expect.records {
            Some(records) => Ok(records),
            None => not_asked("the case has no [expect.records]"),
        }
    }

    /// Records of a turn; skips a check of a case without them.
    pub(super) fn agent_stream(&self) -> Result<&'a AgentStream, NotPassed> {
        match &self.records()?.stream {
            Some(stream) => Ok(stream),
            None => not_asked("the records of the case are not an agent-stream"),
        }
    }

    /// Rule that a request matches, if any.
    pub(super) fn rule_of(&self, request: &Request) -> Option<&'a RequestRule> {
        let mut rules = self.expect.requests.iter().flat_map(|all| &all.rules);
        rules.find(|rule| rule.covers(request))
    }

    /// Requests with a rule, in order.
    pub(super) fn ruled(&self) -> impl Iterator<Item = Ruled<'a>> {
        let requests = self.evidence.requests.iter();
        requests.filter_map(|request| Some((self.rule_of(request)?, request)))
    }

    /// All requests of a rule with a protocol, with repetitions and those beside the turn; never empty.
    pub(super) fn posts(&self) -> Result<Vec<Ruled<'a>>, NotPassed> {
        self.of_protocol(|_| true)
    }

    /// Requests for the turn, with repetitions; never empty.
    pub(super) fn turns(&self) -> Result<Vec<Ruled<'a>>, NotPassed> {
        self.of_protocol(is_turn)
    }

    fn of_protocol(&self, wanted: fn(&Request) -> bool) -> Result<Vec<Ruled<'a>>, NotPassed> {
        self.rules()?;
        let found: Vec<_> = self
            .ruled()
            .filter(|(rule, request)| rule.protocol.is_some() && wanted(request))
            .collect();
        if found.is_empty() {
            absent("there was no message request")
        } else {
            Ok(found)
        }
    }

    /// Skips a check without its object: a message request, or, in a case without a protocol, any request of a rule.
    pub(super) fn some_request(&self) -> Result<(), NotPassed> {
        let mut rules = self.rules()?.rules.iter();
        if rules.any(|rule| rule.protocol.is_some()) {
            return self.posts().map(drop);
        }
        match self.ruled().next() {
            Some(_) => Ok(()),
            None => absent("there was no request of a rule"),
        }
    }

    /// Requests whose bodies a rule judges: those for the turn, and all of rules without a protocol; never empty.
    pub(super) fn bodies(
        &self,
        asks: impl Fn(&'a RequestRule) -> bool,
    ) -> Result<Vec<Ruled<'a>>, NotPassed> {
        let is_judged = |(rule, request): &Ruled<'a>| {
            asks(rule) && (rule.protocol.is_none() || is_turn(request))
        };
        let found: Vec<_> = self.ruled().filter(is_judged).collect();
        if found.is_empty() {
            absent("there was no message request")
        } else {
            Ok(found)
        }
    }

    /// Requests that must carry no credential.
    pub(super) fn preflights(&self) -> impl Iterator<Item = Ruled<'a>> {
        self.ruled().filter(|(rule, _)| rule.auth == Auth::None)
    }

    /// Requests of [`JudgedRun::bodies`] with the shapes of their bodies and the expectation of their rule; never empty.
    pub(super) fn shapes<T>(
        &self,
        expectation: impl Fn(&'a RequestRule) -> Option<T>,
    ) -> Result<Vec<(&'a Request, &'a Value, T)>, NotPassed> {
        let asks = |rule: &'a RequestRule| expectation(rule).is_some();
        if !self.rules()?.rules.iter().any(asks) {
            return not_asked("no rule of the requests asks for this part of the body");
        }
        let shapes: Vec<_> = self
            .bodies(asks)?
            .into_iter()
            .filter_map(|(rule, request)| Some((request, request.shape()?, expectation(rule)?)))
            .collect();
        if shapes.is_empty() {
            absent("the message request has no whole JSON body")
        } else {
            Ok(shapes)
        }
    }
}

/// Checks for a request for the turn. The stub does not classify requests of paths that it does not serve.
fn is_turn(request: &Request) -> bool {
    let is_unserved = request.class == RequestClass::Unknown && !request.is_post();
    request.is_turn() || is_unserved
}

/// Name of a request: `request 2`.
pub(super) fn name(request: &Request) -> String {
    format!("request {}", request.seq)
}

/// Text of a request, `POST /v1/messages`; hostile.
pub(super) fn describe(request: &Request) -> String {
    match &request.head {
        Head::Request { method, path, .. } if request.host == Host::Elsewhere => {
            format!("{method} {path} (at the second host)")
        }
        Head::Request { method, path, .. } if request.side.is_some() => {
            let side = request.side.as_deref().unwrap_or_default();
            format!("{method} {path} ({side})")
        }
        Head::Request { method, path, .. } if request.class == RequestClass::Retry => {
            format!("{method} {path} (again)")
        }
        Head::Request { method, path, .. } => format!("{method} {path}"),
        Head::Malformed { .. } => "bytes that are no request".to_owned(),
        Head::Incomplete => "a head that does not end".to_owned(),
    }
}

/// First items, joined by commas; `none` for an empty list.
pub(super) fn list<T: AsRef<str>>(items: impl IntoIterator<Item = T>) -> String {
    let items: Vec<T> = items.into_iter().collect();
    let shown: Vec<&str> = items.iter().take(LIST_LIMIT).map(AsRef::as_ref).collect();
    match items.len() {
        0 => "none".to_owned(),
        all if all > LIST_LIMIT => format!("{} and {} more", shown.join(", "), all - LIST_LIMIT),
        _ => shown.join(", "),
    }
}

/// Text, cut at the limit.
fn quote(text: &str) -> String {
    truncated(text, QUOTE_LIMIT)
}
