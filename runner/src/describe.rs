//! From a run to its [`Report`]: who was run, on what, by which rules, beside verdict and evidence.

use std::ffi::OsString;

use crate::audit::{Audit, Place};
use crate::case::{Case, Limits, PathRule, Tier};
use crate::cli::RunRequest;
use crate::evidence::Evidence;
use crate::policy::{self, Reference, shown_path};
use crate::prepare::{CLIENT_ARGUMENT, Prepared};
use crate::profile::{ExpectedAttempt, Profile};
use crate::report::{Arg, Client, Host, Policy, Process, Report, Runner, WiderRule};
use crate::subject::Subject;
use crate::verdict::{Finding, Verdict};

/// Puts together what every report shows.
pub(crate) fn report(
    request: &RunRequest,
    prepared: &Prepared,
    (program, own): (String, String),
    landlock_abi: i32,
    checks: Vec<Finding>,
    verdict: Verdict,
    evidence: Evidence,
) -> Report {
    let subject = &request.subject;
    let prompts = subject.prompts();
    Report {
        runner: Runner {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            sha256: own,
        },
        host: Host {
            kernel: kernel(),
            arch: std::env::consts::ARCH.to_owned(),
            landlock_abi: u32::try_from(landlock_abi).unwrap_or(0),
        },
        purpose: subject.purpose(),
        case: Policy {
            name: subject.name().to_owned(),
            origin: subject.origin().clone(),
        },
        client: Client {
            program: program_name(request, prepared),
            sha256: program,
            profile: profile(subject),
            args: arguments(prepared, &prompts),
            env_names: variable_names(prepared),
        },
        tier: Tier::Namespace,
        verdict,
        checks,
        processes: evidence
            .processes
            .iter()
            .map(|process| Process::new(process, &prompts))
            .collect(),
        expected_attempts: subject.expected_attempts().to_vec(),
        evidence,
        not_proved: Vec::new(),
        wider_rules: match subject {
            Subject::Client { case, profile, .. } => wider_rules(case, profile),
            Subject::Program(audit) => asked_for(audit),
        },
    }
}

/// The path of the program as it was found; where it is a link, that is what its user knows it by.
fn program_name(request: &RunRequest, prepared: &Prepared) -> String {
    let found = match &request.subject {
        Subject::Program(Audit {
            place: Place::Own { path },
            ..
        }) => Some(path.as_path()),
        Subject::Program(_) | Subject::Client { .. } => prepared.program_path.as_deref(),
    };
    found.map_or("built in".to_owned(), shown_path)
}

fn profile(subject: &Subject) -> Option<Policy> {
    match subject {
        Subject::Client { profile, .. } => Some(Policy {
            name: profile.name.clone(),
            origin: profile.origin.clone(),
        }),
        Subject::Program(_) => None,
    }
}

fn variable_names(prepared: &Prepared) -> Vec<String> {
    let variables = prepared.plan.client.environment.iter();
    let name = |variable: &OsString| {
        let text = variable.to_string_lossy();
        text.split_once('=')
            .map_or(text.to_string(), |(name, _)| name.to_owned())
    };
    variables.map(name).collect()
}

/// What the command line of an audit adds to its policy.
fn asked_for(audit: &Audit) -> Vec<WiderRule> {
    let Ok(policy) = policy::audit() else {
        return Vec::new();
    };
    let mut wider: Vec<WiderRule> =
        more_paths(&audit.sandbox.paths, &policy.sandbox.paths).collect();
    let variables = audit.environment.iter();
    let more = variables.filter(|variable| !policy.environment.contains(variable));
    wider.extend(more.map(|variable| WiderRule {
        rule: format!("variable {}", variable.name),
        reason: variable.reason.clone(),
    }));
    wider.extend(audit.attempts.iter().map(allowed_attempt));
    wider
}

fn allowed_attempt(attempt: &ExpectedAttempt) -> WiderRule {
    WiderRule {
        rule: format!("an attempt at {} is no finding", attempt.destination),
        reason: attempt.reason.clone(),
    }
}

fn kernel() -> String {
    nix::sys::utsname::uname().map_or("unknown".to_owned(), |name| {
        name.release().to_string_lossy().into_owned()
    })
}

/// What the client was told, behind the program's name.
fn arguments(prepared: &Prepared, prompts: &[&str]) -> Vec<Arg> {
    let told = prepared.plan.client.arguments.iter().skip(1);
    told.filter(|argument| *argument != CLIENT_ARGUMENT)
        .map(|argument| match argument.to_str() {
            Some(argument) => Arg::new(argument, prompts),
            None => Arg::Word(shown_path(argument.as_ref())),
        })
        .collect()
}

/// Rules that allow more than the built-in case and the built-in profile of the same purpose do. The built-in
/// ones themselves are compared with nothing.
fn wider_rules(case: &Case, profile: &Profile) -> Vec<WiderRule> {
    let mut wider = Vec::new();
    if let Ok(built_in) = policy::case(&Reference::BuiltIn("case-b".to_owned()))
        && built_in.origin.sha256 != case.origin.sha256
    {
        wider.extend(more_paths(&case.sandbox.paths, &built_in.sandbox.paths));
        wider.extend(more_time_and_space(
            &case.sandbox.limits,
            &built_in.sandbox.limits,
        ));
    }
    if let Ok(built_in) = policy::profile(&Reference::BuiltIn("reference".to_owned()))
        && built_in.origin.sha256 != profile.origin.sha256
    {
        wider.extend(more_paths(&profile.paths, &built_in.paths));
        wider.extend(profile.files.expected.iter().map(|file| WiderRule {
            rule: format!("the file {} is no finding", file.path),
            reason: file.reason.clone(),
        }));
        let attempts = profile
            .attempts
            .iter()
            .filter(|attempt| !built_in.attempts.contains(attempt));
        wider.extend(attempts.map(allowed_attempt));
        let queries = profile
            .queries
            .iter()
            .filter(|query| !built_in.queries.contains(query));
        wider.extend(queries.map(|query| WiderRule {
            rule: format!("the query {query} is no finding"),
            reason: format!("the profile {}", profile.name),
        }));
    }
    wider
}

fn more_paths<'a>(
    rules: &'a [PathRule],
    built_in: &'a [PathRule],
) -> impl Iterator<Item = WiderRule> + 'a {
    rules
        .iter()
        .filter(|rule| !built_in.contains(rule))
        .map(|rule| WiderRule {
            rule: format!("{} {}", rule.access.word(), shown_path(&rule.path)),
            reason: rule.reason.clone(),
        })
}

fn more_time_and_space(limits: &Limits, built_in: &Limits) -> Vec<WiderRule> {
    let seconds = |limits: &Limits| [limits.timeout.as_secs(), limits.cpu.as_secs()];
    let counts = |limits: &Limits| {
        let [timeout, cpu] = seconds(limits);
        [
            ("timeout", timeout),
            ("cpu_time", cpu),
            ("home_size", limits.home_bytes),
            ("home_files", limits.home_files),
            ("memory", limits.memory_bytes),
            ("processes", limits.processes),
            ("open_files", limits.open_files),
            ("file_size", limits.file_bytes),
            ("output_size", limits.output_bytes),
            ("requests", limits.requests),
            ("connections", limits.connections),
            ("body_size", limits.body_bytes),
        ]
    };
    counts(limits)
        .into_iter()
        .zip(counts(built_in))
        .filter(|((_, found), (_, usual))| found > usual)
        .map(|((name, found), (_, usual))| WiderRule {
            rule: format!("limit {name}: {found}"),
            reason: format!("the built-in case has {usual}"),
        })
        .collect()
}
