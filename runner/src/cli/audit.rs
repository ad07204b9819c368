//! Resolution of `runner audit`: the policy of audits, the options added to it, and the program found.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use model::audit::{ASKED_FOR, Audit, ProgramLocation};
use model::case::{Access, PathRule, Presence};
use model::profile::{BASE_URL, Cases, Destination, ExpectedAttempt, Variable};
use scenario::Scenario;

use super::options::{allow_exec, baseline, isolation, scenario, set_limits, stdin};
use super::values::{FailOn, VariableArgument};
use super::{AuditOptions, UsageError, host, reports};
use crate::audit::{Caller, inside, show_program};
use crate::request::{ClientProgram, RunRequest, StdinChoice};
use crate::workload::Workload;

/// Value of `--stub` for a run without a stub.
const NO_STUB: &str = "none";

/// The run that `options` ask for. A bare program name is looked up in `search_path`, the variable PATH.
pub(super) fn request(
    options: AuditOptions,
    search_path: Option<&OsStr>,
) -> Result<RunRequest, UsageError> {
    let policy = policy::audit().map_err(UsageError::Case)?;
    let isolation = isolation(options.isolation, &policy.sandbox.tiers)?;
    let reports = reports::targets_of_audit(options.report)?;
    let name = options.program.first().map(PathBuf::from);
    let (path, file) = ClientProgram::locate(&name.unwrap_or_default(), search_path)?;
    let mut sandbox = policy.sandbox;
    set_limits(&mut sandbox.limits, &options.limit, options.timeout)?;
    allow_exec(&mut sandbox, &options.allow_exec);
    add_rules(&mut sandbox.paths, &options.read, Access::ReadExecute)?;
    add_rules(&mut sandbox.paths, &options.write, Access::Write)?;
    let directory = env::current_dir().ok();
    let home = env::var_os("HOME").map(PathBuf::from);
    let caller = Caller {
        directory: directory.as_deref(),
        home: home.as_deref(),
    };
    let location = show_program(&path, &file, &mut sandbox.paths, caller);
    let environment = environment(policy.environment, options.env, &location)?;
    let stub = stub(policy.stub, options.stub.as_deref())?;
    if stub.is_none() && names_stub(&options.program, &environment) {
        return Err(UsageError::NoStub);
    }
    Ok(RunRequest {
        workload: Workload::Program(Audit {
            name: policy.name,
            origin: policy.origin,
            stub,
            asked_stub: options.stub,
            directory: directory.and_then(|directory| inside(&directory, &sandbox.paths)),
            sandbox,
            environment,
            attempts: allowed(options.allow_attempt, ASKED_FOR),
            place: location,
            arguments: options.program,
        }),
        client: ClientProgram::File(file),
        reports,
        isolation,
        timeout: options.timeout,
        limits: options.limit,
        stdin: stdin(options.stdin, default_stdin()),
        out: options.out,
        lookups: true,
        hidden: Vec::new(),
        baseline: baseline(options.baseline, options.update_baseline),
        fail_on: options.fail_on.map_or_else(Vec::new, |FailOn(kinds)| kinds),
        keep_home: options.keep_home,
        use_cache: !options.no_cache,
    })
}

/// Returns the standard input of the runner, as timeout(1) passes it on. A terminal is passed on only if asked for:
/// reading ahead would take what the user types for the shell.
fn default_stdin() -> StdinChoice {
    if io::stdin().is_terminal() {
        StdinChoice::Nothing
    } else {
        StdinChoice::Inherit
    }
}

pub(super) fn allowed(destinations: Vec<Destination>, reason: &str) -> Vec<ExpectedAttempt> {
    let rule = |destination| ExpectedAttempt {
        destination,
        reason: reason.to_owned(),
    };
    destinations.into_iter().map(rule).collect()
}

fn add_rules(
    rules: &mut Vec<PathRule>,
    asked: &[PathBuf],
    access: Access,
) -> Result<(), UsageError> {
    asked
        .iter()
        .try_for_each(|path| add_rule(rules, path, access))
}

/// Adds a rule for `asked`.
fn add_rule(rules: &mut Vec<PathRule>, asked: &Path, access: Access) -> Result<(), UsageError> {
    let whole = host::absolute(asked)?;
    // `..` after a link leaves the link's target, so only the kernel can resolve such a path.
    let has_parent_dir = whole.components().any(|part| part == Component::ParentDir);
    let found = host::canonical(asked)?;
    let path: PathBuf = if has_parent_dir {
        found
    } else {
        whole.components().collect()
    };
    let rule = PathRule {
        path: host::shown(path)?,
        access,
        presence: Presence::Required,
        reason: ASKED_FOR.to_owned(),
    };
    host::add_rule(rules, rule);
    Ok(())
}

/// Variables of the policy, then those of the command line.
fn environment(
    mut environment: Vec<Variable>,
    asked: Vec<VariableArgument>,
    location: &ProgramLocation,
) -> Result<Vec<Variable>, UsageError> {
    if let ProgramLocation::Own { path } = location {
        put_first_in_path(&mut environment, path);
    }
    for argument in asked {
        host::set_variable(&mut environment, variable(argument)?);
    }
    Ok(environment)
}

fn stub(of_policy: Scenario, asked: Option<&str>) -> Result<Option<Scenario>, UsageError> {
    match asked {
        None => Ok(Some(of_policy)),
        Some(NO_STUB) => Ok(None),
        Some(name) => scenario(name).map(Some),
    }
}

/// Puts the program's directory first in PATH, so that the program finds others that are installed with it.
pub(super) fn put_first_in_path(environment: &mut [Variable], program: &Path) {
    let Some(directory) = program.parent().and_then(Path::to_str) else {
        return;
    };
    for variable in environment
        .iter_mut()
        .filter(|variable| variable.name == "PATH")
    {
        if !variable.value.split(':').any(|listed| listed == directory) {
            variable.value = format!("{directory}:{}", variable.value);
            variable.reason = format!("{directory} comes first: the program's own directory");
        }
    }
}

fn variable(argument: VariableArgument) -> Result<Variable, UsageError> {
    let VariableArgument { name, value } = argument;
    let value = match value {
        Some(value) => value,
        None => host::caller_variable(&name)?,
    };
    Ok(Variable {
        name,
        value,
        cases: Cases::Every,
        reason: ASKED_FOR.to_owned(),
    })
}

fn names_stub(arguments: &[OsString], environment: &[Variable]) -> bool {
    let holds = |bytes: &[u8]| {
        let mut windows = bytes.windows(BASE_URL.len());
        windows.any(|window| window == BASE_URL.as_bytes())
    };
    arguments.iter().any(|argument| holds(argument.as_bytes()))
        || environment
            .iter()
            .any(|variable| holds(variable.value.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path_variable(value: &str) -> Vec<Variable> {
        vec![Variable {
            name: "PATH".to_owned(),
            value: value.to_owned(),
            cases: Cases::Every,
            reason: String::new(),
        }]
    }

    #[test]
    fn the_directory_of_the_program_comes_first_in_its_path_unless_it_is_there() {
        let mut environment = path_variable("/usr/bin:/bin");
        put_first_in_path(&mut environment, Path::new("/opt/tool/bin/tool"));
        assert_eq!(environment[0].value, "/opt/tool/bin:/usr/bin:/bin");
        let mut environment = path_variable("/usr/bin:/bin");
        put_first_in_path(&mut environment, Path::new("/bin/tool"));
        assert_eq!(environment[0].value, "/usr/bin:/bin");
    }

    #[test]
    fn a_path_is_taken_as_it_is_written_and_the_last_word_on_it_counts() {
        let mut rules = Vec::new();
        for (path, access) in [
            ("/usr/./bin/", Access::ReadExecute),
            ("/usr/bin/../lib", Access::Write),
            ("/usr/bin", Access::Write),
        ] {
            add_rule(&mut rules, Path::new(path), access).unwrap();
        }
        let paths: Vec<_> = rules
            .iter()
            .map(|rule| (rule.path.to_str().unwrap(), rule.access))
            .collect();
        let expected = [("/usr/lib", Access::Write), ("/usr/bin", Access::Write)];
        assert_eq!(paths, expected);
    }

    #[test]
    fn what_is_not_there_or_never_shown_is_refused() {
        let error = add_rule(&mut Vec::new(), Path::new("/no/such"), Access::Write).unwrap_err();
        assert!(matches!(error, UsageError::PathNotFound { .. }), "{error}");
        for path in ["/", "/proc", "/tmp", "/dev/null", "/etc", "/home"] {
            let error =
                add_rule(&mut Vec::new(), Path::new(path), Access::ReadExecute).unwrap_err();
            assert!(matches!(error, UsageError::NeverShown { .. }), "{error}");
        }
    }

    #[test]
    fn the_address_of_the_stub_is_found_in_arguments_and_variables() {
        let arguments = |word: &str| vec![OsString::from("tool"), OsString::from(word)];
        assert!(names_stub(&arguments("--url={base_url}/v1"), &[]));
        assert!(names_stub(&arguments("x"), &path_variable("{base_url}")));
        assert!(!names_stub(&arguments("base_url"), &path_variable("/bin")));
    }
}
