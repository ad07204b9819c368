//! Whole command lines: resolved, rejected, and the help.

use std::time::Duration;

use clap::CommandFactory;
use clap::error::ErrorKind;
use model::audit::Audit;
use model::case::{Access, Tier};
use report::Format;

use super::*;
use crate::request::{ClientProgram, Destination, IsolationChoice, ReportTarget, RunRequest};
use crate::workload::Workload;

fn resolve(words: &[&str]) -> Result<Command, UsageError> {
    let words = std::iter::once("runner").chain(words.iter().copied());
    Cli::try_parse_from(words).unwrap().resolve(None)
}

fn run(words: &[&str]) -> RunRequest {
    match resolve(words).unwrap() {
        Command::Run(request) => *request,
        other @ (Command::Fleet(_)
        | Command::Init(_)
        | Command::Policy(_)
        | Command::Doctor(_)
        | Command::Selftest(_)
        | Command::Diff(_)
        | Command::Verify(_)) => {
            panic!("{other:?}")
        }
    }
}

/// Names of the case and of the profile.
fn names(request: &RunRequest) -> (&str, &str) {
    match &request.workload {
        Workload::Client { case, profile, .. } => (&case.name, &profile.name),
        Workload::Program(audit) | Workload::Inline { program: audit, .. } => panic!("{audit:?}"),
    }
}

fn audit(words: &[&str]) -> (RunRequest, Audit) {
    let request = run(words);
    match &request.workload {
        Workload::Program(audit) => {
            let audit = audit.clone();
            (request, audit)
        }
        Workload::Client { .. } | Workload::Inline { .. } => panic!("no audit"),
    }
}

fn refused(words: &[&str]) -> String {
    let error = resolve(words).unwrap_err();
    assert!(!error.hint().is_empty());
    error.to_string()
}

#[test]
fn run_is_guessed_from_the_words() {
    let guess = |words: &str| {
        let words: Vec<OsString> = words.split(' ').map(OsString::from).collect();
        is_likely_run(&words)
    };
    for run in RUNS {
        assert!(Cli::command().find_subcommand(run).is_some(), "{run}");
        assert!(guess(&format!("runner {run} x")), "{run}");
    }
    for other in [
        "runner",
        "runner doctor",
        "runner case-b --help",
        "runner audit -h",
        "runner run --isolation inherited x.toml",
        "runner audit --isolation=inherited -- x",
    ] {
        assert!(!guess(other), "{other}");
    }
}

fn unparsed(words: &[&str]) -> clap::Error {
    let words = std::iter::once("runner").chain(words.iter().copied());
    Cli::try_parse_from(words).unwrap_err()
}

#[test]
fn the_definition_is_sound() {
    Cli::command().debug_assert();
}

#[test]
fn a_bare_case_runs_the_reference_client_with_its_profile() {
    let request = run(&["case-b"]);
    assert_eq!(names(&request), ("case-b", "reference"));
    assert_eq!(request.client, ClientProgram::Reference);
    assert_eq!(request.isolation, IsolationChoice::Auto);
    assert_eq!((request.timeout, request.keep_home), (None, false));
    assert_eq!(
        request.reports,
        [ReportTarget {
            format: Format::Human,
            destination: Destination::Stdout
        }]
    );
}

#[test]
fn every_option_arrives() {
    let request = run(&[
        "case-a",
        "--client=/bin/sh",
        "--report",
        "json=r.json",
        "--isolation",
        "namespace",
        "--timeout",
        "5min",
        "--keep-home",
        "--",
        "--verbose",
        "--client",
    ]);
    assert_eq!(request.client, ClientProgram::File("/bin/sh".into()));
    assert_eq!(request.reports.len(), 2);
    assert_eq!(
        request.isolation,
        IsolationChoice::Demanded(Tier::Namespace)
    );
    assert_eq!(request.timeout, Some(Duration::from_secs(300)));
    assert!(request.keep_home);
    let Workload::Client { further, .. } = &request.workload else {
        panic!("no client");
    };
    assert_eq!(*further, ["--verbose", "--client"]);
}

#[test]
fn an_audit_is_its_policy_and_what_the_command_line_adds() {
    let (request, plain) = audit(&["audit", "--", "/bin/sh", "-c", "{base_url}"]);
    assert_eq!(plain.arguments, ["/bin/sh", "-c", "{base_url}"]);
    assert!(plain.stub.is_some() && plain.attempts.is_empty());
    let people = ReportTarget {
        format: Format::Human,
        destination: Destination::Stderr,
    };
    assert_eq!(request.reports, [people]);
    let (_, asked) = audit(&[
        "audit",
        "--read=/usr/share",
        "--write=/usr/lib",
        "--env=A=b=c",
        "--env=HOME=/x",
        "--allow-attempt=name:example.com",
        "--stub=none",
        "--",
        "/bin/sh",
    ]);
    let more = asked.sandbox.paths.iter().skip(plain.sandbox.paths.len());
    let access: Vec<_> = more.map(|rule| rule.access).collect();
    assert_eq!(access, [Access::ReadExecute, Access::Write]);
    assert_eq!(asked.directory, None, "not below what is shown");
    let value = |name: &str| {
        let mut all = asked.environment.iter();
        all.find(|variable| variable.name == name)
            .map(|variable| variable.value.as_str())
    };
    assert_eq!((value("A"), value("HOME")), (Some("b=c"), Some("/x")));
    assert_eq!(asked.attempts.len(), 1);
    assert!(asked.stub.is_none());
}

#[test]
fn what_an_audit_cannot_have_is_refused() {
    for (words, message) in [
        (&["--report=json"][..], "report json to standard output"),
        (&["--read=/no/such"], "cannot show /no/such"),
        (&["--write=/proc"], "/proc is never shown"),
        (&["--env=NO_SUCH_VARIABLE_HERE"], "is not set"),
        (&["--stub=none", "--env=A={base_url}"], "there is no stub"),
        (&["--stub=nonsense"], "no scenario `nonsense`"),
    ] {
        let words = [&["audit"], words, &["--", "/bin/sh"]].concat();
        let error = refused(&words);
        assert!(error.contains(message), "{error}");
    }
    let parsed = |words: &[&str]| unparsed(&[&["audit"], words].concat()).kind();
    assert_eq!(parsed(&[]), ErrorKind::MissingRequiredArgument);
    let wrong = ErrorKind::ValueValidation;
    assert_eq!(parsed(&["--allow-attempt=x", "--", "sh"]), wrong);
    assert_eq!(parsed(&["--env=1A=x", "--", "sh"]), wrong);
}

#[test]
fn a_case_and_a_profile_of_ones_own_are_read_from_files() {
    let directory = tempfile::tempdir().unwrap();
    let (case, profile) = (directory.path().join("c"), directory.path().join("p.toml"));
    std::fs::write(
        &case,
        policy::text("case-a")
            .unwrap()
            .replace("\"case-a\"", "\"mine\""),
    )
    .unwrap();
    std::fs::write(
        &profile,
        policy::text("reference")
            .unwrap()
            .replace("\"reference\"", "\"other\""),
    )
    .unwrap();
    let request = run(&[
        "run",
        case.to_str().unwrap(),
        "--profile",
        profile.to_str().unwrap(),
    ]);
    assert_eq!(names(&request), ("mine", "other"));
}

#[test]
fn a_required_digest_holds_in_either_case_and_another_is_refused() {
    let digest = policy::list().unwrap()[0].sha256.clone();
    run(&["case-a", "--require-case", &digest.to_uppercase()]);
    let message = refused(&["case-b", "--require-case", &digest]);
    assert!(
        message.ends_with(&format!("not the required {digest}")),
        "{message}"
    );
}

#[test]
fn a_tier_that_is_demanded_is_the_only_one_that_will_do() {
    let tiers = |words: &[&str]| run(words).tiers();
    assert_eq!(tiers(&["case-a"]), Tier::ALL);
    for tier in Tier::ALL {
        assert_eq!(tiers(&["case-a", "--isolation", tier.word()]), [tier]);
    }
}

#[test]
fn a_tier_that_the_case_does_not_accept_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let case = directory.path().join("c.toml");
    std::fs::write(
        &case,
        policy::text("case-a")
            .unwrap()
            .replace("[\"namespace\", ", "["),
    )
    .unwrap();
    let message = refused(&["run", case.to_str().unwrap(), "--isolation", "namespace"]);
    assert_eq!(
        message,
        "the case does not accept the isolation `namespace`"
    );
}

#[test]
fn a_profile_without_the_words_for_the_case_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let profile = directory.path().join("p.toml");
    let words = "[[arguments]]\noption = \"safe-mode\"\nwords = [\"--safe-mode\"]\n";
    std::fs::write(
        &profile,
        policy::text("reference").unwrap().replace(words, ""),
    )
    .unwrap();
    run(&["case-a", "--profile", profile.to_str().unwrap()]);
    assert_eq!(
        refused(&["case-b", "--profile", profile.to_str().unwrap()]),
        "cannot build the client's command line from the case and the profile"
    );
}

#[test]
fn a_policy_that_cannot_be_had_is_the_cause() {
    use std::error::Error;
    let error = resolve(&["case-a", "--profile", "nobody"]).unwrap_err();
    assert_eq!(error.to_string(), "cannot use the profile");
    assert_eq!(
        error.source().unwrap().to_string(),
        "no built-in profile is named `nobody`"
    );
    assert_eq!(refused(&["run", "/no/such.toml"]), "cannot use the case");
}

#[test]
fn malformed_values_and_unknown_words_are_refused_by_the_parser() {
    for words in [
        &["case-a", "--timeout", "60"][..],
        &["case-a", "--report", "xml"],
        &["case-a", "--report", "json="],
        &["case-a", "--require-case", "abc"],
    ] {
        assert_eq!(
            unparsed(words).kind(),
            ErrorKind::ValueValidation,
            "{words:?}"
        );
    }
    assert_eq!(
        unparsed(&["case-a", "--isolation", "none"]).kind(),
        ErrorKind::InvalidValue
    );
    assert_eq!(unparsed(&["watch"]).kind(), ErrorKind::InvalidSubcommand);
    assert_eq!(
        unparsed(&["case-a", "words"]).kind(),
        ErrorKind::UnknownArgument
    );
    assert_eq!(unparsed(&["case-a", "--timeout", "60"]).exit_code(), 2);
}

#[test]
fn help_and_version_are_no_errors() {
    for words in [
        &["--help"][..],
        &["-h"],
        &["--version"],
        &["case-a", "--help"],
    ] {
        assert_eq!(unparsed(words).exit_code(), 0, "{words:?}");
    }
    assert_eq!(unparsed(&[]).exit_code(), 2);
}

#[test]
fn the_help_reads_so() {
    let mut command = Cli::command().term_width(100);
    command.build();
    insta::assert_snapshot!("help", command.render_long_help().to_string());
    let run = command.find_subcommand_mut("run").unwrap();
    insta::assert_snapshot!("help_run", run.render_help().to_string());
    let policy = command.find_subcommand_mut("policy").unwrap();
    insta::assert_snapshot!("help_policy", policy.render_help().to_string());
}

#[test]
fn the_help_names_every_format_of_a_report() {
    let mut command = Cli::command();
    command.build();
    let mut asked = 0;
    for subcommand in command.get_subcommands() {
        let mut options = subcommand.get_arguments();
        let report = options.find(|option| option.get_long() == Some("report"));
        let Some(help) = report.and_then(clap::Arg::get_help) else {
            continue;
        };
        let help = help.to_string();
        for format in Format::ALL {
            let name = subcommand.get_name();
            assert!(
                help.contains(format.word()),
                "{name} {}: {help}",
                format.word()
            );
        }
        asked += 1;
    }
    assert!(asked >= 4, "{asked}");
}

#[test]
fn the_doctor_writes_one_thing() {
    use crate::request::DoctorAction;
    for (words, expected) in [
        (&["doctor"][..], DoctorAction::Human),
        (&["doctor", "--json"], DoctorAction::Json),
        (&["doctor", "--apparmor"], DoctorAction::AppArmor),
    ] {
        assert!(matches!(resolve(words), Ok(Command::Doctor(action)) if action == expected));
    }
    let both = Cli::try_parse_from(["runner", "doctor", "--json", "--apparmor"]);
    assert_eq!(both.unwrap_err().kind(), ErrorKind::ArgumentConflict);
}
