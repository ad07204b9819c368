//! What the heads of the requests say. Names are compared without regard to case.
//!
//! Every `POST /v1/messages` is looked at; only the families of the beta header are the turn's alone.

use crate::evidence::Request;

use super::outcome::{Deviation, Outcome, Run, absent, list, name};

/// Headers that carry a credential.
pub(crate) const CREDENTIALS: [&str; 4] = [
    "x-api-key",
    "authorization",
    "proxy-authorization",
    "cookie",
];

pub(super) fn api_key_present(run: &Run) -> Outcome {
    for post in run.posts()? {
        let values = post.header("x-api-key");
        if !matches!(values.as_slice(), [value] if !value.trim().is_empty()) {
            return Deviation::new("The message request does not carry x-api-key exactly once.")
                .at(name(post))
                .expected("x-api-key once, with a value")
                .found(format!("{} times", values.len()))
                .failed();
        }
    }
    Ok("x-api-key is present.".to_owned())
}

pub(super) fn authorization_absent(run: &Run) -> Outcome {
    for post in run.posts()? {
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

pub(super) fn user_agent(run: &Run) -> Outcome {
    let names = &run.profile.names;
    let version = run.evidence.init().and_then(|init| {
        init.json()?
            .get(&run.profile.records.version_field)?
            .as_str()
    });
    for post in run.posts()? {
        let fits = |agent: &str| {
            agent
                .strip_prefix(names.cli_name.as_str())
                .and_then(|rest| rest.strip_prefix('/'))
                .and_then(|rest| rest.strip_suffix(" (external, sdk-cli)"))
                .is_some_and(|found| {
                    is_version(found) && version.is_none_or(|known| found == known)
                })
        };
        let shown = version.unwrap_or("<version>");
        let expected = format!("{}/{shown} (external, sdk-cli)", names.cli_name);
        agent_fits(post, &expected, fits)?;
    }
    for preflight in run.preflights() {
        let fits = |agent: &str| {
            agent
                .strip_prefix(names.runtime.as_str())
                .and_then(|rest| rest.strip_prefix('/'))
                .is_some_and(is_version)
        };
        agent_fits(preflight, &format!("{}/<version>", names.runtime), fits)?;
    }
    Ok(match version {
        Some(_) => "The client names itself, with the version of its init record.".to_owned(),
        None => "The client names itself; no init record has a version to compare.".to_owned(),
    })
}

pub(super) fn beta_families(run: &Run) -> Outcome {
    let header = format!("{}-beta", run.profile.names.vendor);
    for post in run.turns()? {
        let values: Vec<&str> = post
            .header(&header)
            .iter()
            .flat_map(|value| value.split(','))
            .map(str::trim)
            .collect();
        let missing: Vec<&str> = run
            .profile
            .headers
            .beta_families
            .iter()
            .filter(|family| !values.iter().any(|value| value.starts_with(&family.prefix)))
            .map(|family| family.family.as_str())
            .collect();
        if !missing.is_empty() {
            return Deviation::new("The beta header does not name every protocol family.")
                .at(name(post))
                .expected(format!("{header} names: {}", list(missing)))
                .found(list(values))
                .failed();
        }
    }
    for preflight in run.preflights() {
        if !preflight.header(&header).is_empty() {
            return Deviation::new("The preflight carries the beta header.")
                .at(name(preflight))
                .expected(format!("no {header} header"))
                .found(list(preflight.header(&header)))
                .failed();
        }
    }
    Ok("The beta header names every protocol family.".to_owned())
}

pub(super) fn preflight_unauthenticated(run: &Run) -> Outcome {
    let mut preflights = run.preflights().peekable();
    if preflights.peek().is_none() {
        return absent("there was no preflight");
    }
    for preflight in preflights {
        let carried = CREDENTIALS
            .iter()
            .filter(|name| !preflight.header(name).is_empty());
        let carried: Vec<_> = carried.collect();
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

pub(super) fn nothing_else(run: &Run) -> Outcome {
    let known = &run.profile.headers;
    let posts = run.posts()?.into_iter().map(|post| (post, &known.message));
    let preflights = run
        .preflights()
        .map(|preflight| (preflight, &known.preflight));
    for (request, known) in posts.chain(preflights) {
        let unknown: Vec<&str> = request
            .headers()
            .iter()
            .map(|(name, _)| name.as_str())
            .filter(|name| !known.iter().any(|known| known.eq_ignore_ascii_case(name)))
            .collect();
        if !unknown.is_empty() {
            return Deviation::new("A request carries headers that the profile does not list.")
                .at(name(request))
                .expected("only header names of the profile")
                .found(list(unknown))
                .failed();
        }
    }
    Ok("Only header names of the profile.".to_owned())
}

fn agent_fits(
    request: &Request,
    expected: &str,
    fits: impl Fn(&str) -> bool,
) -> Result<(), super::NotPassed> {
    let agents = request.header("user-agent");
    if matches!(agents.as_slice(), [agent] if fits(agent)) {
        return Ok(());
    }
    Deviation::new("The user agent is not the one of this client.")
        .at(name(request))
        .expected(expected)
        .found(list(agents))
        .failed()
}

/// `2.1.177`, `0.12.4-rc.1+build`: one token, nothing hidden behind it.
fn is_version(text: &str) -> bool {
    !text.is_empty()
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+' | '_'))
}
