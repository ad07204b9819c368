//! Builds the [`Report`] of a run: client, host, policies, verdict and evidence.

use std::path::Path;

use judge::check;
use model::audit::{ASKED_FOR, Audit, ProgramLocation};
use model::case::{Case, Expectations, Limits, Origin, PathRule, SandboxRules, Tier};
use model::evidence::{Arg, Evidence, Exit, FileWatch};
use model::expected::Rules;
use model::finding::{Finding, Verdict};
use model::profile::{ExpectedAttempt, ExpectedFile, Profile, Variable};
use model::quote::shown_path;
use model::report::{Client, Content, Host, Policy, Report, Setting, Stdin, WiderRule};
use model::text::printable;
use policy::{self, PolicyError, Reference};
use sandbox::core_dumps;
use sandbox::error::SetupError;

use crate::prepare::{CLIENT_ARGUMENT, Prepared};
use crate::request::{RunRequest, StdinChoice};
use crate::version;
use crate::workload::{Workload, is_private};

/// An isolation level that would have been accepted, and the step that the host refused.
#[derive(Debug)]
pub(crate) struct PassedOver {
    pub(crate) tier: Tier,
    pub(crate) error: SetupError,
}

/// Builds the report, which every output format shows.
pub(crate) fn build(
    request: &RunRequest,
    prepared: &Prepared,
    content: Content,
    (landlock_abi, passed_over): (i32, Option<&PassedOver>),
    checks: Vec<Finding>,
    verdict: Verdict,
    mut evidence: Evidence,
) -> Report {
    let workload = &request.workload;
    let prompts = workload.prompts();
    let files = workload.known_files();
    let files = files.map(|files| files.of_client(prepared.plan.client_uid()));
    let rules = Rules {
        attempts: workload.expected_attempts(),
        files: files.as_ref(),
        side_requests: workload.side_requests(),
    };
    rules.explain(&mut evidence);
    Report {
        runner: version::of_this_executable(),
        host: Host {
            kernel: kernel(),
            arch: std::env::consts::ARCH.to_owned(),
            landlock_abi: u32::try_from(landlock_abi).unwrap_or(0),
        },
        purpose: workload.purpose(),
        case: Policy {
            name: workload.name().to_owned(),
            origin: workload.origin().clone(),
        },
        client: Client {
            program: program_name(request, prepared),
            content,
            profile: profile(workload),
            args: arguments(prepared, &prompts),
            stdin: stdin(&request.stdin),
            hidden_directory: hidden_directory(workload),
            settings: workload.variables().into_iter().map(shown).collect(),
            left_out: workload.left_out().into_iter().map(Setting::from).collect(),
        },
        tier: prepared.plan.tier,
        tier_because: passed_over.map(because),
        verdict,
        not_judged: workload.not_judged(),
        not_reviewed: workload.not_reviewed(),
        unsound: check::unsound(&evidence),
        kernel_refuses: check::kernel_refuses(&evidence),
        checks,
        not_proved: further_not_proved(request, prepared, &evidence),
        evidence,
        wider_rules: asked_stub(workload)
            .into_iter()
            .chain(request.limits.iter().map(asked_limit))
            .chain(match workload {
                Workload::Client { case, profile, .. } => wider_rules(case, profile, prepared),
                Workload::Inline { case, program, .. } => {
                    let mut wider = asked_for(program, prepared);
                    wider.extend(expected(&case.expect));
                    wider
                }
                Workload::Program(audit) => asked_for(audit, prepared),
            })
            .collect(),
        baseline: None,
        lock_place: None,
    }
}

/// Limits of the proof in a sandbox without namespaces, in addition to the limits of every sandbox.
const NOT_PROVED_INHERITED: [&str; 4] = [
    "Which names it would have looked up: this isolation permits no datagram sockets, so no question was sent.",
    "What it looked for: this isolation does not hide names, sizes and times of the container's files, nor the list of processes; it hides the content of files.",
    "That it acted alone: the other processes of this container are trusted.",
    "What it made and removed again, and how much it wrote in all: its home is on the container's disk, where only single files have a limit.",
];

/// Limit of a run whose client is shown a directory with its case.
const READS_ITS_CASE: &str = "That it does not know the expectations: it can read its case, and the lock file and earlier reports beside the case.";

/// Limit of a run that records no lookups.
const NO_LOOKUPS: &str = "Which paths it looked for: only `--lookups` lists them.";

/// Returns the further limits of the proof for this isolation and this run.
fn further_not_proved(
    request: &RunRequest,
    prepared: &Prepared,
    evidence: &Evidence,
) -> Vec<String> {
    let tier = prepared.plan.tier;
    if evidence.exit == Exit::NotStarted {
        return Vec::new();
    }
    let of_tier: &[&str] = match tier {
        Tier::Namespace => &[],
        Tier::Inherited => &NOT_PROVED_INHERITED,
    };
    let by_directory = tier == Tier::Namespace && evidence.file_watch == FileWatch::BestEffort;
    let unnamed = by_directory.then(|| {
        "The names of files that it created and removed at once in a new directory: this kernel reports a directory's files only after the directory is watched.".to_owned()
    });
    let of_tier = of_tier.iter().map(|sentence| (*sentence).to_owned());
    let unlisted = tier == Tier::Namespace && !request.lookups;
    let unlisted = unlisted.then(|| NO_LOOKUPS.to_owned());
    let reads_its_case = prepared.shows_case.then(|| READS_ITS_CASE.to_owned());
    let dumped = evidence
        .layers
        .iter()
        .find(|layer| layer.name == core_dumps::LAYER);
    let dumped = dumped.and_then(|layer| Some(format!("A{}.", layer.detail.strip_prefix('a')?)));
    of_tier
        .chain(unlisted)
        .chain(reads_its_case)
        .chain(dumped)
        .chain(unnamed)
        .chain(evidence.limits_of_ledger())
        .collect()
}

pub(crate) fn because(PassedOver { tier, error }: &PassedOver) -> String {
    format!("isolation {} is not available here: {error}", tier.word())
}

/// Returns the path of the program as it was found. If that is a link, the path of the link, which the user
/// knows.
fn program_name(request: &RunRequest, prepared: &Prepared) -> String {
    let found = match &request.workload {
        Workload::Program(audit) | Workload::Inline { program: audit, .. } => match &audit.place {
            ProgramLocation::Own { path } => Some(path.as_path()),
            ProgramLocation::Alone => prepared.program_path.as_deref(),
        },
        Workload::Client { .. } => prepared.program_path.as_deref(),
    };
    found.map_or("built in".to_owned(), shown_path)
}

fn profile(workload: &Workload) -> Option<Policy> {
    match workload {
        Workload::Client { profile, .. } => Some(Policy {
            name: profile.name.clone(),
            origin: profile.origin.clone(),
        }),
        Workload::Inline { .. } | Workload::Program(_) => None,
    }
}

fn hidden_directory(workload: &Workload) -> Option<String> {
    let is_hidden = matches!(workload, Workload::Program(audit) if audit.directory.is_none());
    let directory = is_hidden.then(std::env::current_dir)?;
    directory.ok().as_deref().map(shown_path)
}

fn stdin(choice: &StdinChoice) -> Stdin {
    match choice {
        StdinChoice::Nothing => Stdin::None,
        StdinChoice::Inherit => Stdin::Inherited,
        StdinChoice::File(path) => Stdin::File(shown_path(path)),
    }
}

/// Returns a variable for the report. A value from the command line or the caller's environment may be the user's
/// secret and is not shown.
fn shown(variable: &Variable) -> Setting {
    let mut shown = Setting::from(variable);
    if is_private(variable) {
        shown.value = "(not shown)".to_owned();
    }
    shown
}

/// Returns the stub's scenario, if the command line replaces that of the case or policy.
fn asked_stub(workload: &Workload) -> Option<WiderRule> {
    workload.asked_stub().map(|name| WiderRule {
        rule: format!("the stub uses the scenario {name}"),
        reason: ASKED_FOR.to_owned(),
    })
}

fn asked_limit(typed: &String) -> WiderRule {
    WiderRule {
        rule: format!("limit {typed}"),
        reason: ASKED_FOR.to_owned(),
    }
}

/// Returns the rules that an audit's command line adds to its policy.
fn asked_for(audit: &Audit, prepared: &Prepared) -> Vec<WiderRule> {
    let Ok(policy) = policy::audit() else {
        return Vec::new();
    };
    let mut wider: Vec<WiderRule> =
        more_paths(&audit.sandbox.paths, &policy.sandbox.paths, prepared).collect();
    let variables = audit.environment.iter();
    let more = variables.filter(|variable| !policy.environment.contains(variable));
    wider.extend(more.map(|variable| WiderRule {
        rule: format!("variable {}", variable.name),
        reason: variable.reason.clone(),
    }));
    wider.extend(programs_of_own(&audit.sandbox));
    wider.extend(audit.attempts.iter().map(allowed_attempt));
    wider
}

/// Returns the writable trees whose files may be executed; no built-in policy has one.
fn programs_of_own(sandbox: &SandboxRules) -> impl Iterator<Item = WiderRule> {
    sandbox.exec.iter().map(|tree| WiderRule {
        rule: format!("files in {} can be executed", tree.word()),
        reason: "--allow-exec, or allow_exec of the case".to_owned(),
    })
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

/// Returns the client's arguments without the program's name.
fn arguments(prepared: &Prepared, prompts: &[&str]) -> Vec<Arg> {
    let arguments = prepared.plan.client.arguments.iter().skip(1);
    arguments
        .filter(|argument| *argument != CLIENT_ARGUMENT)
        .map(|argument| {
            let argument = printable(argument.as_encoded_bytes());
            Arg::new(&prepared.secrets.redact(&argument), prompts)
        })
        .collect()
}

/// Reads a built-in file, unless `origin` has its text.
fn unless_same<T>(
    name: &str,
    origin: &Origin,
    read: fn(&Reference) -> Result<T, PolicyError>,
) -> Option<T> {
    let is_other = policy::text(name).is_ok_and(|text| *text != *origin.text);
    is_other.then(|| read(&Reference::BuiltIn(name.to_owned())).ok())?
}

/// Returns the rules that permit more than the built-in case and the built-in profile. The built-in policies
/// themselves have none.
fn wider_rules(case: &Case, profile: &Profile, prepared: &Prepared) -> Vec<WiderRule> {
    let mut wider: Vec<WiderRule> = programs_of_own(&case.sandbox).collect();
    if let Some(built_in) = unless_same("case-b", &case.origin, policy::case) {
        wider.extend(more_paths(
            &case.sandbox.paths,
            &built_in.sandbox.paths,
            prepared,
        ));
        wider.extend(more_time_and_space(
            &case.sandbox.limits,
            &built_in.sandbox.limits,
        ));
        wider.extend(expected(&case.expect));
    }
    if let Some(built_in) = unless_same("reference", &profile.origin, policy::profile) {
        wider.extend(more_paths(&profile.paths, &built_in.paths, prepared));
        wider.extend(more_devices(profile, &built_in));
        wider.extend(more_side_requests(case, profile));
        wider.extend(profile.files.expected.iter().map(allowed_file));
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
        wider.extend(more_in_init(profile, &built_in));
    }
    wider
}

/// Returns what a case expects beside its requests.
fn expected(expect: &Expectations) -> Vec<WiderRule> {
    let files = expect.files.iter().flat_map(|files| &files.expected);
    let programs = expect.programs.iter().flatten().map(|rule| WiderRule {
        rule: format!("the program {} is no finding", rule.program),
        reason: rule.reason.clone(),
    });
    let attempts = expect.attempts.iter().map(allowed_attempt);
    files
        .map(allowed_file)
        .chain(programs)
        .chain(attempts)
        .collect()
}

fn allowed_file(file: &ExpectedFile) -> WiderRule {
    WiderRule {
        rule: format!(
            "{} in {} is no finding{}",
            file.path,
            file.root.word(),
            if file.may_hold_credential {
                ", also with the credential in it"
            } else {
                ""
            }
        ),
        reason: file.reason.clone(),
    }
}

/// Returns permissions and extensions that the init record may have.
fn more_in_init<'a>(
    profile: &'a Profile,
    built_in: &'a Profile,
) -> impl Iterator<Item = WiderRule> + 'a {
    let [names, others] = [profile, built_in].map(|profile| &profile.records);
    let mode = (names.permission_mode != others.permission_mode).then(|| WiderRule {
        rule: format!(
            "the init record's permissionMode is {}",
            names.permission_mode
        ),
        reason: format!("the profile {}", profile.name),
    });
    let lists = names
        .init_lists
        .iter()
        .filter(|list| !others.init_lists.contains(list));
    let lists = lists.map(|list| {
        let entries = list.names.as_ref();
        let entries = entries.map_or_else(|| "any entry".to_owned(), |names| names.join(", "));
        WiderRule {
            rule: format!(
                "{} of the init record may have {entries}",
                list.field.word()
            ),
            reason: list.reason.clone(),
        }
    });
    mode.into_iter().chain(lists)
}

/// Returns the additional paths that exist on this host and are shown.
fn more_paths<'a>(
    rules: &'a [PathRule],
    built_in: &'a [PathRule],
    prepared: &'a Prepared,
) -> impl Iterator<Item = WiderRule> + 'a {
    let is_target = move |path: &Path| {
        let mut binds = prepared.plan.root.binds.iter();
        binds.any(|bind| bind.target == path.as_os_str())
    };
    // In isolation `inherited`, the target is the path without links.
    let is_shown = move |rule: &&PathRule| {
        is_target(&rule.path)
            || prepared.plan.is_inherited()
                && rule.path.canonicalize().is_ok_and(|path| is_target(&path))
    };
    rules
        .iter()
        .filter(|rule| !built_in.contains(rule))
        .filter(is_shown)
        .map(|rule| WiderRule {
            rule: format!("{} {}", rule.access.word(), shown_path(&rule.path)),
            reason: rule.reason.clone(),
        })
}

fn more_devices(profile: &Profile, built_in: &Profile) -> impl Iterator<Item = WiderRule> {
    let devices = profile
        .devices
        .iter()
        .filter(|device| !built_in.devices.contains(device));
    devices.map(|device| WiderRule {
        rule: format!("read-write /dev/{}", device.word()),
        reason: format!("the profile {}", profile.name),
    })
}

/// Returns the permitted requests beside the turn. There are none if the case permits only the message request.
fn more_side_requests(case: &Case, profile: &Profile) -> impl Iterator<Item = WiderRule> {
    let requests = case.expect.requests.as_ref();
    let others_may_come = requests.is_none_or(|rules| rules.only().is_none());
    let expected = profile
        .side_requests
        .iter()
        .filter(move |request| others_may_come && request.expected);
    expected.map(|request| WiderRule {
        rule: format!(
            "the request {} ({} {}) is no finding",
            request.name, request.method, request.path
        ),
        reason: request.reason.clone(),
    })
}

fn more_time_and_space(limits: &Limits, built_in: &Limits) -> Vec<WiderRule> {
    // Destructured, so that a new limit does not compile until it is listed.
    let counts = |limits: &Limits| {
        let Limits {
            timeout,
            cpu,
            home_bytes,
            home_files,
            memory_bytes,
            processes,
            open_files,
            file_bytes,
            output_bytes,
            output_lines,
            requests,
            connections,
            body_bytes,
        } = *limits;
        [
            ("timeout", timeout.as_secs()),
            ("cpu_time", cpu.as_secs()),
            ("home_size", home_bytes),
            ("home_files", home_files),
            ("memory", memory_bytes),
            ("processes", processes),
            ("open_files", open_files),
            ("file_size", file_bytes),
            ("output_size", output_bytes),
            ("output_lines", output_lines),
            ("requests", requests),
            ("connections", connections),
            ("body_size", body_bytes),
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
