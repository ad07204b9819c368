//! Checks of request headers. Names are compared without regard to case.
//!
//! The checks apply to each request of a rule; that of the beta header applies to the turn's only.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use model::case::expect::{Auth, HeaderRules, RequestRule};
use model::evidence::Request;
use model::journal::{Head, Host, REDACTED};
use model::secret::CREDENTIAL_HEADERS;

use super::REQUESTS;
use super::outcome::{Deviation, JudgedRun, NotPassed, Outcome, absent, list, name, not_asked};

/// Headers whose value is a list, which may occupy several lines.
const LISTS: [&str; 5] = [
    "accept",
    "accept-encoding",
    "accept-language",
    "cache-control",
    "connection",
];
/// Headers of preflight and message whose number another check judges.
const OWN_CHECK: [&str; 3] = ["x-api-key", "authorization", "user-agent"];
/// Scheme before the credential in the header `authorization`.
const BEARER: &str = "Bearer ";

/// Judges all requests but those without a credential, whose own check allows none. A request of a rule carries the
/// run's credential once; any other request carries it once or not at all.
pub(super) fn api_key_present(run: &JudgedRun) -> Outcome {
    run.rules()?;
    let Some(usual) = run.expect.credential_header() else {
        return not_asked("no rule of the requests names the header of the credential");
    };
    run.some_request()?;
    for request in &run.evidence.requests {
        let (header, is_required) = match run.rule_of(request).map(|rule| &rule.auth) {
            None => (usual, false),
            Some(Auth::Header(header)) => (header.as_str(), true),
            Some(Auth::None | Auth::Any) => continue,
        };
        let values = request.header(header);
        let found = match values.as_slice() {
            [value] if is_credential(header, value) => continue,
            [] if !is_required => continue,
            [value] => key_value(value),
            [] => "0 times".to_owned(),
            several => {
                let shown = several.iter().map(|value| key_value(value));
                format!("{} times: {}", several.len(), list(shown))
            }
        };
        return Deviation::new(format!(
            "A request does not carry the credential exactly once in {header}."
        ))
        .at(name(request))
        .expected(format!("{header} once, with the credential of the run"))
        .found(found)
        .failed();
    }
    Ok(format!(
        "{usual} is present, with the credential of the run."
    ))
}

/// Checks for the credential of the run in a redacted header value; in `authorization`, after its scheme.
fn is_credential(header: &str, kept: &str) -> bool {
    if header != "authorization" {
        return kept == REDACTED;
    }
    let parts = kept.split_at_checked(BEARER.len());
    parts.is_some_and(|(scheme, key)| scheme.eq_ignore_ascii_case(BEARER) && key == REDACTED)
}

/// Text `another value, 7 bytes, sha256 …`, from the journal's replacement of the value.
fn key_value(kept: &str) -> String {
    let inner = kept
        .strip_prefix('<')
        .and_then(|rest| rest.strip_suffix('>'));
    match inner {
        _ if kept == REDACTED => "the credential".to_owned(),
        _ if kept.trim().is_empty() => "an empty value".to_owned(),
        inner => format!("another value, {}", inner.unwrap_or(kept)),
    }
}

pub(super) fn authorization_absent(run: &JudgedRun) -> Outcome {
    run.rules()?;
    match run.expect.credential_header() {
        Some("authorization") => return not_asked("the credential belongs in authorization"),
        Some(_) => {}
        None => return not_asked("no rule of the requests names the header of the credential"),
    }
    run.some_request()?;
    let with_credential = run
        .ruled()
        .filter(|(rule, _)| matches!(rule.auth, Auth::Header(_)));
    for (_, post) in with_credential {
        let values = post.header("authorization");
        if !values.is_empty() {
            return Deviation::new("The message request carries authorization.")
                .at(name(post))
                .expected("no authorization header")
                .found(format!("{} times", values.len()))
                .failed();
        }
    }
    Ok("authorization is absent.".to_owned())
}

/// Judges the user agents. In requests for the turn, the version is that of the init record.
pub(super) fn user_agent(run: &JudgedRun) -> Outcome {
    let mut rules = run.rules()?.rules.iter();
    if !rules.any(|rule| rule.user_agent.is_some()) {
        return not_asked("no rule of the requests has a user agent");
    }
    run.some_request()?;
    let stream = run.expect.records.as_ref();
    let stream = stream.and_then(|records| records.stream.as_ref());
    let names = stream.and_then(|stream| stream.names.as_ref());
    let version = names.and_then(|names| {
        let init = run.evidence.init()?.json()?;
        init.get(&names.version_field)?.as_str()
    });
    for (rule, request) in run.ruled() {
        let Some(pattern) = rule.user_agent() else {
            continue;
        };
        let version = version.filter(|_| rule.protocol.is_some());
        let is_known = |found: &str| version.is_none_or(|known| found == known);
        let fits = |agent: &str| {
            let versions = pattern.versions(agent);
            versions.is_some_and(|all| all.into_iter().all(is_known))
        };
        let agents = request.header("user-agent");
        if !matches!(agents.as_slice(), [agent] if fits(agent)) {
            let shown = version.unwrap_or("<version>");
            return Deviation::new("The user agent is not the one of this client.")
                .at(name(request))
                .expected(pattern.to_string().replace("{version}", shown))
                .found(list(agents))
                .failed();
        }
    }
    Ok(match version {
        Some(_) => "The client names itself, with the version of its init record.".to_owned(),
        None => "The client names itself; no init record has a version to compare.".to_owned(),
    })
}

pub(super) fn beta_families(run: &JudgedRun) -> Outcome {
    let mut rules = run.rules()?.rules.iter();
    let Some(header) = rules
        .find(|rule| !rule.families.is_empty())
        .map(|rule| rule.beta_header.as_str())
    else {
        return not_asked("no rule of the requests has families of a beta header");
    };
    for (rule, post) in run.turns()? {
        let values: Vec<&str> = post
            .header(header)
            .iter()
            .flat_map(|value| value.split(','))
            .map(str::trim)
            .collect();
        let missing: Vec<&str> = rule
            .families
            .iter()
            .filter(|family| {
                let dated = |value: &&str| value.strip_prefix(&family.prefix).is_some_and(is_date);
                !values.iter().any(dated)
            })
            .map(|family| family.family.as_str())
            .collect();
        if !missing.is_empty() {
            return Deviation::new("The beta header does not name every protocol family.")
                .at(name(post))
                .expected(format!("{header} names, each with a date: {}", list(missing)))
                .found(list(values))
                // The class of a request depends on its body, which may be lost.
                .failed_if_complete(if post.is_complete() { &[] } else { REQUESTS });
        }
    }
    for (_, preflight) in run.preflights() {
        if !preflight.header(header).is_empty() {
            return Deviation::new("The preflight carries the beta header.")
                .at(name(preflight))
                .expected(format!("no {header} header"))
                .found(list(preflight.header(header)))
                .failed();
        }
    }
    Ok("The beta header names every protocol family.".to_owned())
}

pub(super) fn preflight_unauthenticated(run: &JudgedRun) -> Outcome {
    let mut rules = run.rules()?.rules.iter();
    if !rules.any(|rule| rule.auth == Auth::None) {
        return not_asked("no rule is of requests without a credential");
    }
    let mut preflights = run.preflights().peekable();
    if preflights.peek().is_none() {
        return absent("there was no preflight");
    }
    let own = run.expect.credential_header();
    for (_, preflight) in preflights {
        let known = CREDENTIAL_HEADERS
            .into_iter()
            .filter(|name| Some(*name) != own);
        let carried: Vec<&str> = own
            .into_iter()
            .chain(known)
            .filter(|name| !preflight.header(name).is_empty())
            .collect();
        if !carried.is_empty() {
            return Deviation::new("The preflight carries a credential.")
                .at(name(preflight))
                .expected("no credential")
                .found(list(carried))
                .failed();
        }
    }
    Ok("The preflight carries no credential.".to_owned())
}

pub(super) fn nothing_else(run: &JudgedRun) -> Outcome {
    run.some_request()?;
    for (rule, request) in run.ruled() {
        let Some(known) = &rule.headers.allowed else {
            continue;
        };
        let unknown: Vec<&str> = request
            .headers()
            .iter()
            .map(|(name, _)| name.as_str())
            .filter(|name| !known.iter().any(|known| known.eq_ignore_ascii_case(name)))
            .collect();
        if !unknown.is_empty() {
            return Deviation::new("A request carries headers that its rule does not list.")
                .at(name(request))
                .expected("only header names of the rule")
                .found(list(unknown))
                .failed();
        }
    }
    for request in &run.evidence.requests {
        occurs_once(run, request)?;
        host_fits(request, run.evidence.stub)?;
    }
    Ok("Only header names of the rules, each as often as allowed.".to_owned())
}

/// Judges the names that a rule requires or forbids.
pub(super) fn rules(run: &JudgedRun) -> Outcome {
    let named = |rule: &RequestRule| {
        let HeaderRules {
            required,
            forbidden,
            ..
        } = &rule.headers;
        !required.is_empty() || !forbidden.is_empty()
    };
    if !run.rules()?.rules.iter().any(named) {
        return not_asked("no rule of the requests requires or forbids a header");
    }
    let mut judged = run.ruled().filter(|(rule, _)| named(rule)).peekable();
    if judged.peek().is_none() {
        return absent("there was no request of such a rule");
    }
    for (rule, request) in judged {
        let is_there = |name: &&String| !request.header(name).is_empty();
        let missing = rule.headers.required.iter().filter(|name| !is_there(name));
        let missing = missing.map(|name| format!("{name} is missing"));
        let present = rule.headers.forbidden.iter().filter(is_there);
        let present = present.map(|name| format!("{name} is there"));
        let faults: Vec<String> = missing.chain(present).collect();
        if !faults.is_empty() {
            return Deviation::new("A request does not have the headers of its rule.")
                .at(name(request))
                .expected(format!(
                    "with: {}; without: {}",
                    list(&rule.headers.required),
                    list(&rule.headers.forbidden)
                ))
                .found(list(faults))
                .failed();
        }
    }
    Ok("Every required header is there, and no forbidden one.".to_owned())
}

/// Fails for a header on two lines, unless its value is a list (RFC 9110, 5.3): servers may take either line.
fn occurs_once(run: &JudgedRun, request: &Request) -> Result<(), NotPassed> {
    let is_of_the_turn = run.rule_of(request).is_some();
    let credential = run.expect.credential_header();
    let has_own_check =
        |name: &str| is_of_the_turn && (OWN_CHECK.contains(&name) || Some(name) == credential);
    let mut lines: BTreeMap<String, usize> = BTreeMap::new();
    for (name, _) in request.headers() {
        *lines.entry(name.to_ascii_lowercase()).or_default() += 1;
    }
    let repeated: Vec<String> = lines
        .into_iter()
        .filter(|(name, lines)| {
            *lines > 1 && !LISTS.contains(&name.as_str()) && !has_own_check(name)
        })
        .map(|(name, lines)| format!("{name} in {lines} lines"))
        .collect();
    if repeated.is_empty() {
        return Ok(());
    }
    Deviation::new("A request repeats a header that may occur only once.")
        .at(name(request))
        .expected("each header in one line, lists excepted")
        .found(list(repeated))
        .failed()
}

/// Fails unless Host names the stub, which HTTP/1.1 requires of every request (RFC 9112, 3.2). Requests at the second
/// host of a redirect are judged by requests/*.
fn host_fits(request: &Request, stub: Option<SocketAddr>) -> Result<(), NotPassed> {
    let (Head::Request { version, .. }, Host::Stub, Some(stub)) =
        (&request.head, request.host, stub)
    else {
        return Ok(());
    };
    let by_name = format!("localhost:{}", stub.port());
    let fits = |host: &str| host == stub.to_string() || host.eq_ignore_ascii_case(&by_name);
    let hosts = request.header("host");
    match hosts.as_slice() {
        [] if version == "HTTP/1.0" => return Ok(()),
        [host] if fits(host) => return Ok(()),
        _ => {}
    }
    Deviation::new("The Host header is not the provider's.")
        .at(name(request))
        .expected(format!("host once: {stub}, or localhost with that port"))
        .found(if hosts.is_empty() {
            "no Host header".to_owned()
        } else {
            list(hosts)
        })
        .failed()
}

/// Checks for a date: `20250219`, `2025-05-14`.
fn is_date(text: &str) -> bool {
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    match text.split('-').collect::<Vec<_>>().as_slice() {
        [date] => date.len() == 8 && digits(date),
        [year, month, day] => {
            let lengths = [year.len(), month.len(), day.len()];
            lengths == [4, 2, 2] && [year, month, day].into_iter().all(|part| digits(part))
        }
        _ => false,
    }
}
