//! Reports of real runs, read by third-party programs: a validator of SARIF with the standard's schema, and a reader of
//! JUnit XML. The tests compare the results with the JSON report of the same run.
//!
//! `runner/tests/readers/install` puts them into a directory, which `REPORT_READERS_DIR` names.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;

use crate::failures::client_of;
use crate::kit::{Run, fixture, parsed};
use crate::needs_sandbox;

mod faults;
mod places;

/// The readers, as `install` lays them out.
struct Readers {
    python: PathBuf,
    validator: PathBuf,
    schema: jsonschema::Validator,
}

/// Returns the readers, or `None` if they are not installed; with REGISTRY_MUST_WORK that is a failure.
fn readers() -> Option<Readers> {
    match Readers::find() {
        Ok(readers) => Some(readers),
        Err(reason) => {
            crate::kit::skip_without("reader", "REGISTRY_MUST_WORK", &reason);
            None
        }
    }
}

impl Readers {
    fn find() -> Result<Self, String> {
        let directory = std::env::var_os("REPORT_READERS_DIR").map(PathBuf::from);
        let directory = directory.ok_or(
            "REPORT_READERS_DIR names no directory with readers; runner/tests/readers/install DIR makes one",
        )?;
        let package = directory.join("node/node_modules/@microsoft/sarif-multitool-linux");
        let python = directory.join("python/bin/python");
        let validator = package.join("Sarif.Multitool");
        let schema = package.join("sarif-2.1.0.json");
        for path in [&python, &validator, &schema] {
            if !path.exists() {
                return Err(format!("{} is not there", path.display()));
            }
        }
        let schema: Value = serde_json::from_slice(&fs::read(schema).unwrap()).unwrap();
        Ok(Self {
            python,
            validator,
            schema: jsonschema::validator_for(&schema).unwrap(),
        })
    }

    /// Returns errors and warnings of the validator, by the rules of the standard and by those of GitHub.
    fn faults(&self, log: &Path) -> Vec<String> {
        // The validator may fetch the schema from the log's URL, so it runs without a network.
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--net", "--"]);
        command.arg(&self.validator).arg("validate").arg(log);
        command.args(["--rule-kind", "Sarif;Gh;Ghas"]);
        let directory = log.parent().unwrap();
        command
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", directory)
            .env("TMPDIR", directory);
        // Otherwise the runtime would look for a system library, and leave sockets behind.
        command.envs([
            ("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1"),
            ("DOTNET_EnableDiagnostics", "0"),
        ]);
        let output = command.output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(
            output.status.success() && said.contains("1 files scanned"),
            "{said}"
        );
        let begin = log.display().to_string();
        let of_log = said.lines().filter_map(|line| line.strip_prefix(&begin));
        of_log
            .filter(|fault| !fault.contains("): note "))
            .map(str::to_owned)
            .collect()
    }

    /// Returns the violations of the standard's schema.
    fn misfits(&self, log: &Value) -> Vec<String> {
        let faults = self.schema.iter_errors(log);
        faults
            .map(|fault| format!("{}: {fault}", fault.instance_path()))
            .collect()
    }

    /// Returns the result of the JUnit XML reader.
    fn junit(&self, file: &Path) -> Value {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/readers/junit.py");
        let output = Command::new(&self.python)
            .arg(script)
            .arg(file)
            .env_clear()
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

/// The one remaining warning: the tool has no page that `informationUri` could name. It also proves that the validator
/// ran to its end: for a log with type errors, the validator prints no results.
const NO_PAGE: &str = "): warning SARIF2005: ";

/// The reports of one run, in one directory.
struct Reports {
    directory: TempDir,
}

impl Reports {
    fn options(run: Run) -> (Run, Self) {
        let reports = Self {
            directory: tempfile::tempdir().unwrap(),
        };
        let with_each = ["json", "sarif", "junit"]
            .into_iter()
            .fold(run, |run, format| {
                let option = format!("{format}={}", reports.file(format).display());
                run.argument("--report").argument(option)
            });
        (with_each, reports)
    }

    /// Returns the reports of a run that ends with this code.
    #[track_caller]
    fn of(run: Run, code: i32) -> Self {
        let (run, reports) = Self::options(run);
        let output = run.output();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{said}");
        reports
    }

    /// Returns the file of a format. The validator silently skips files whose names do not end with `.sarif`.
    fn file(&self, format: &str) -> PathBuf {
        self.directory.path().join(format!("report.{format}"))
    }

    fn json(&self) -> Value {
        parsed(&fs::read(self.file("json")).unwrap(), "")
    }

    fn sarif(&self) -> Value {
        serde_json::from_slice(&fs::read(self.file("sarif")).unwrap()).unwrap()
    }
}

/// Asserts that each reader accepts the report without a complaint and reads the values of the JSON report.
#[track_caller]
fn assert_read(readers: &Readers, reports: &Reports) {
    let report = reports.json();
    let faults = readers.faults(&reports.file("sarif"));
    assert!(
        faults.len() == 1 && faults[0].contains(NO_PAGE),
        "{faults:?}"
    );
    assert_eq!(readers.misfits(&reports.sarif()), [""; 0]);
    assert_is_told(&report, &reports.sarif()["runs"][0]);
    assert_has_the_checks(&report, &readers.junit(&reports.file("junit")));
}

/// Returns id and status of each check of the run.
fn made(report: &Value) -> Vec<(&str, &str)> {
    let checks = report["checks"].as_array().unwrap().iter();
    checks
        .map(|check| {
            (
                check["id"].as_str().unwrap(),
                check["status"].as_str().unwrap(),
            )
        })
        .collect()
}

/// Asserts that each failed check is an error of its rule, and each errored one a warning. An errored run has a warning
/// for each undecided check, and is no success.
#[track_caller]
fn assert_is_told(report: &Value, run: &Value) {
    let made = made(report);
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    assert!(
        rules
            .iter()
            .map(|rule| &rule["id"])
            .eq(made.iter().map(|(id, _)| id))
    );
    let results = run["results"].as_array().unwrap().iter();
    let results: Vec<_> = results
        .map(|result| {
            let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
            assert_eq!(rules[index]["id"], result["ruleId"]);
            (made[index].0, result["level"].as_str().unwrap())
        })
        .collect();
    let is_errored = report["verdict"] == "errored";
    let expected = made.iter().filter_map(|(id, status)| match *status {
        "failed" if !is_errored => Some((*id, "error")),
        "errored" | "failed" => Some((*id, "warning")),
        "passed" | "skipped" => None,
        other => panic!("{other}"),
    });
    let expected: Vec<_> = expected.collect();
    if is_errored {
        assert!(
            expected.iter().all(|one| results.contains(one)),
            "{results:?}"
        );
        assert!(
            results.iter().all(|(_, level)| *level == "warning"),
            "{results:?}"
        );
        assert!(!results.is_empty());
    } else {
        assert_eq!(results, expected);
    }
    let invocation = &run["invocations"][0];
    assert_eq!(invocation["executionSuccessful"], !is_errored);
    assert_eq!(run["properties"]["caseSha256"], report["case"]["sha256"]);
}

#[track_caller]
fn assert_has_the_checks(report: &Value, read: &Value) {
    let made = made(report);
    assert_eq!(read["name"], report["case"]["name"]);
    let checks = read["checks"].as_array().unwrap();
    let told = checks.iter().map(|check| {
        let id = check["id"].as_str().unwrap();
        assert_eq!(check["area"].as_str(), id.split('/').next());
        (id, check["status"].as_str().unwrap())
    });
    assert_eq!(told.collect::<Vec<_>>(), made);
    for (check, (id, status)) in checks.iter().zip(&made) {
        let all = report["checks"].as_array().unwrap();
        let own = all.iter().find(|own| own["id"] == *id).unwrap();
        let why = match *status {
            "passed" => &Value::Null,
            "skipped" => &own["because"],
            _ => &own["message"],
        };
        assert_eq!(&check["message"], why, "{id}");
    }
    let number = |wanted| made.iter().filter(|(_, status)| *status == wanted).count();
    let counts = [
        made.len(),
        number("failed"),
        number("errored"),
        number("skipped"),
    ];
    assert_eq!(read["counts"], serde_json::json!(counts));
    assert_eq!(read["counted"], read["counts"]);
    assert_eq!(read["properties"]["verdict"], report["verdict"]);
    assert_eq!(read["properties"]["case.sha256"], report["case"]["sha256"]);
}

#[test]
fn a_run_that_passed_is_read_by_readers_that_are_not_ours() {
    needs_sandbox!();
    let Some(readers) = readers() else { return };
    assert_read(&readers, &Reports::of(Run::case_b(), 0));
}

#[test]
fn a_run_that_failed_is_read_by_readers_that_are_not_ours() {
    needs_sandbox!();
    let Some(readers) = readers() else { return };
    for deviation in ["unknown-get", "key-in-state-as-base64"] {
        let run = Run::case_a().deviating(deviation);
        assert_read(&readers, &Reports::of(run, 1));
    }
}

#[test]
fn a_run_that_drifted_is_read_by_readers_that_are_not_ours_and_lies_in_its_lock_file() {
    needs_sandbox!();
    let Some(readers) = readers() else { return };
    let directory = tempfile::tempdir().unwrap();
    let lock = directory.path().join("agent.lock");
    let locked = |run: Run| run.argument("--baseline").argument(&lock);
    let made = locked(Run::case_b()).argument("--update-baseline");
    assert_read(&readers, &Reports::of(made, 0));
    let other = locked(Run::case_b())
        .client_argument("--max-tokens")
        .client_argument("7");
    let reports = Reports::of(other, 1);
    assert_read(&readers, &reports);
    let result = &reports.sarif()["runs"][0]["results"][0];
    assert_eq!(result["ruleId"], "baseline/unchanged");
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "agent.lock");
    let line = usize::try_from(place["region"]["startLine"].as_u64().unwrap()).unwrap();
    let text = fs::read_to_string(&lock).unwrap();
    let accepting = text.lines().nth(line - 1).unwrap();
    assert!(accepting.contains("$.max_tokens"), "{line}: {accepting}");
}

#[test]
fn a_run_that_never_started_is_read_by_readers_that_are_not_ours() {
    needs_sandbox!();
    let Some(readers) = readers() else { return };
    let reports = Reports::of(Run::case_b().client("/bin/true"), 3);
    assert_read(&readers, &reports);
}

#[test]
fn a_run_that_was_interrupted_is_read_by_readers_that_are_not_ours() {
    needs_sandbox!();
    let Some(readers) = readers() else { return };
    let (run, reports) = Reports::options(Run::case_b().deviating("stays"));
    let mut run = run
        .command()
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    client_of(&run);
    kill(Pid::from_raw(run.id().try_into().unwrap()), Signal::SIGTERM).unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(3));
    assert_read(&readers, &reports);
}

#[test]
fn an_audit_with_attempts_is_read_by_readers_that_are_not_ours() {
    needs_sandbox!();
    let Some(readers) = readers() else { return };
    let program = [
        "/usr/bin/curl",
        "-sS",
        "--max-time",
        "5",
        "http://192.0.2.1/",
    ];
    let run = program
        .into_iter()
        .fold(Run::case("audit"), Run::client_argument);
    let reports = Reports::of(run, 7);
    assert_read(&readers, &reports);
    let run = &reports.sarif()["runs"][0];
    assert_eq!(run["results"][0]["ruleId"], "outbound/no-attempts");
    assert_eq!(run["automationDetails"]["id"], "runner/audit/curl/");
}

#[test]
fn what_a_hostile_client_prints_is_read_by_readers_that_are_not_ours() {
    needs_sandbox!();
    let Some(readers) = readers() else { return };
    for abuse in ["forged-verdict", "nul-bytes", "invalid-utf8"] {
        let run = Run::case_b().client(fixture("abusive-client"));
        let run = run.client_argument("--deviate").client_argument(abuse);
        assert_read(&readers, &Reports::of(run, 1));
    }
}
