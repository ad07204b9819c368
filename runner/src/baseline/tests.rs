//! Tests of the check and the lock file, with the evidence of the report tests.

use std::fs;
use std::time::Duration;

use judge::fixture::{hostile, report};
use model::case::Tier;
use model::evidence::GapKind;
use model::evidence::fixture::{Fixture, add_header, case_b, gap};
use model::finding::Verdict;
use report::Format;

use super::*;
use crate::output;
use crate::request::{Destination, ReportTarget};

/// Report after the lock file was compared or written.
fn settled(baseline: &Baseline, mut report: Report) -> Report {
    let opened = open(baseline, &report.case.name, &[], &[]).unwrap();
    opened.settle(&mut report).unwrap();
    report
}

fn finding(report: &Report) -> &Finding {
    let [.., last] = report.checks.as_slice() else {
        panic!("no checks")
    };
    assert_eq!(last.id, BASELINE);
    last
}

/// A directory with a lock file of case B.
fn locked() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("agent.lock");
    settled(&Baseline::Update(path.clone()), report(case_b()));
    (directory, path)
}

fn with_header(value: &str) -> Fixture {
    let mut run = case_b();
    add_header(&mut run.evidence.requests[0], "x-new", value);
    run
}

#[test]
fn the_same_behaviour_passes_and_the_verdict_stays() {
    let (_directory, path) = locked();
    let report = settled(&Baseline::Compare(path), report(case_b()));
    assert_eq!(finding(&report).status, Status::Passed);
    assert_eq!(report.verdict, Verdict::Passed);
    assert_eq!(report.baseline.unwrap().differences, []);
}

#[test]
fn a_behaviour_that_only_the_lock_file_does_not_know_fails_by_that_check_alone() {
    let (_directory, path) = locked();
    // The checks of the case accept each status of success.
    let mut run = case_b();
    run.evidence.requests[0].status = Some(201);
    let report = settled(&Baseline::Compare(path.clone()), report(run));
    let failed = report
        .checks
        .iter()
        .filter(|one| one.status == Status::Failed);
    assert_eq!(failed.map(|one| &*one.id).collect::<Vec<_>>(), [BASELINE]);
    assert_eq!(report.verdict, Verdict::Failed);
    let finding = finding(&report);
    assert_eq!(
        finding.found.as_deref(),
        Some(
            "1 difference: 1 request\nrequests POST /v1/messages: message status 200, now message status 201"
        )
    );
    assert_eq!(finding.object.as_deref(), path.to_str());
    let [only] = report.baseline.as_ref().unwrap().differences.as_slice() else {
        panic!("{:?}", report.baseline)
    };
    let accept = model::difference::Accept::of(only);
    assert_eq!(
        (&*accept.verb, accept.line.as_str()),
        (
            "change",
            "\"requests POST /v1/messages\" = \"message status 201\""
        )
    );
}

#[test]
fn each_difference_stands_in_the_human_report_with_the_line_that_accepts_it() {
    let (_directory, path) = locked();
    let report = settled(
        &Baseline::Compare(path),
        report(with_header("::error::##[x]\n")),
    );
    let human = |report| report::render(report, Format::Human, report::human::Colour::Plain);
    let text = String::from_utf8(human(&report).unwrap()).unwrap();
    let line =
        "  |       add \"headers POST /v1/messages x-new\" = \"::error::#\\u0023[x]\\u000A\"\n";
    assert!(
        text.contains("  | + POST /v1/messages x-new: ::error::"),
        "{text}"
    );
    assert!(text.contains(line), "{text}");
    assert!(!text.contains("section -"), "{text}");
    let json = String::from_utf8(json::render(&report).unwrap()).unwrap();
    assert!(json.contains("\"verb\": \"add\""), "{json}");
    let markdown = report::render(&report, Format::Markdown, report::human::Colour::Plain);
    let markdown = String::from_utf8(markdown.unwrap()).unwrap();
    assert!(
        markdown.contains("### Drift from the lock file"),
        "{markdown}"
    );
}

#[test]
fn what_drifted_stands_in_the_finding_where_no_section_of_its_own_tells_of_it() {
    let (_directory, path) = locked();
    let report = settled(&Baseline::Compare(path), report(with_header("]]>\n")));
    let in_format = |format| {
        let rendered = report::render(&report, format, report::human::Colour::Plain);
        String::from_utf8(rendered.unwrap()).unwrap()
    };
    let told = "headers POST /v1/messages x-new: added, ]]";
    let line = format!("\n  {told}&gt;\\n</failure>");
    let junit = in_format(Format::Junit);
    assert!(junit.contains(&line), "{junit}");
    let sarif = in_format(Format::Sarif);
    let line = r"\nDrift: 'headers POST /v1/messages x-new: added, \\]\\]>";
    assert!(sarif.contains(line), "{sarif}");
    for format in [Format::Human, Format::Markdown, Format::Html] {
        assert!(!in_format(format).contains(told));
        assert!(in_format(format).contains("1 difference: 1 header"));
    }
}

/// The directory is removed during the run.
#[test]
fn a_lock_file_that_could_not_be_written_is_said_to_be_none() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("locks/agent.lock");
    fs::create_dir(path.parent().unwrap()).unwrap();
    let opened = open(&Baseline::Update(path.clone()), "case-b", &[], &[]).unwrap();
    fs::remove_dir(path.parent().unwrap()).unwrap();
    let mut report = report(case_b());
    let error = opened.settle(&mut report).unwrap_err();
    assert!(matches!(error, WriteError::Lock { .. }), "{error}");
    let told = finding(&report);
    assert_eq!(told.status, Status::Errored);
    let because = told.because.as_deref().unwrap();
    assert!(
        because.starts_with("cannot write the lock file "),
        "{because}"
    );
    assert!(because.ends_with("(os error 2)"), "{because}");
    assert_eq!(report.verdict, Verdict::Errored);
    assert!(report.baseline.is_none());
}

#[test]
fn another_tier_and_gaps_are_no_comparison() {
    let (_directory, path) = locked();
    let mut other_tier = report(case_b());
    other_tier.tier = Tier::Inherited;
    let mut with_gap = case_b();
    with_gap.evidence.gaps.push(gap(GapKind::Files));
    for report in [other_tier, report(with_gap)] {
        let settled = settled(&Baseline::Compare(path.clone()), report);
        assert_eq!(finding(&settled).status, Status::Errored);
        assert!(finding(&settled).because.is_some());
        assert_eq!(settled.verdict, Verdict::Errored);
        assert_eq!(settled.baseline, None);
        assert_eq!(settled.lock_place.unwrap().path, Path::new("agent.lock"));
    }
}

#[test]
fn a_lock_file_of_another_tier_is_shown_at_that_line_and_its_new_tier_is_told() {
    let (_directory, path) = locked();
    let inherited = || {
        let mut report = report(case_b());
        report.tier = Tier::Inherited;
        report
    };
    let errored = settled(&Baseline::Compare(path.clone()), inherited());
    let text = fs::read_to_string(&path).unwrap();
    let line = text.lines().position(|line| line == "tier = \"namespace\"");
    assert_eq!(errored.lock_place.unwrap().lines, [line.unwrap() + 1]);
    let updated = settled(&Baseline::Update(path.clone()), inherited());
    let baseline = updated.baseline.as_ref().unwrap();
    assert_eq!(baseline.tier_before.as_deref(), Some("namespace"));
    let human = report::render(&updated, Format::Human, report::human::Colour::Plain).unwrap();
    let human = String::from_utf8(human).unwrap();
    let told = "rewritten; its isolation was `namespace`\n";
    assert!(human.contains(told), "{human}");
    let again = settled(&Baseline::Update(path), inherited());
    assert_eq!(again.baseline.unwrap().tier_before, None);
}

#[test]
fn the_lock_file_of_another_case_is_refused_before_the_run_and_left_alone() {
    let (_directory, path) = locked();
    let before = fs::read(&path).unwrap();
    for baseline in [
        Baseline::Compare(path.clone()),
        Baseline::Update(path.clone()),
    ] {
        let error = open(&baseline, "case-a", &[], &[]).unwrap_err();
        let said = "agent.lock: it belongs to `case-b`, and this run to case-a";
        assert!(error.to_string().ends_with(said), "{error}");
        assert!(error.hint().unwrap().contains("this case's own lock file"));
    }
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn what_says_nothing_is_not_written() {
    let (_directory, path) = locked();
    let before = fs::read(&path).unwrap();
    let report = settled(&Baseline::Update(path.clone()), hostile());
    assert_eq!(finding(&report).status, Status::Errored);
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn what_is_accepted_whatever_it_is_is_counted_when_all_else_is_as_it_was() {
    let (_directory, path) = locked();
    let message = || {
        let report = settled(&Baseline::Compare(path.clone()), report(case_b()));
        finding(&report).message.clone()
    };
    let whole = message();
    let number = whole.split(' ').find_map(|word| word.parse().ok());
    let number: usize = number.unwrap();
    let said = |compared: usize, rest: &str| {
        format!("The behaviour matches the lock file: {compared} facts{rest}.")
    };
    assert_eq!(whole, said(number, ""));
    let text = fs::read_to_string(&path).unwrap();
    let text = text.replace(r#"exit" = "code 0""#, r#"exit" = "*""#);
    fs::write(&path, &text).unwrap();
    let one = ", and 1 with any value";
    assert_eq!(message(), said(number - 1, one));
    let nothing = r#"standard error" = "nothing""#;
    let something = r#"standard error" = "something""#;
    let old = if text.contains(nothing) {
        nothing
    } else {
        something
    };
    fs::write(&path, text.replace(old, r#"standard error" = "*""#)).unwrap();
    let two = ", and 2 with any value";
    assert_eq!(message(), said(number - 2, two));
}

#[test]
fn the_lock_file_keeps_its_mode_when_it_is_written_anew() {
    use std::os::unix::fs::PermissionsExt as _;
    let (_directory, path) = locked();
    for mode in [0o640, 0o606] {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        settled(&Baseline::Update(path.clone()), report(with_header("1")));
        let found = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(found & 0o7777, mode);
    }
}

/// Root can write the file for the user who commits it.
#[test]
fn the_lock_file_keeps_its_owner_when_root_writes_it_anew() {
    use std::os::unix::fs::{MetadataExt as _, chown};
    if !nix::unistd::Uid::current().is_root() {
        return eprintln!("only root can give a file away");
    }
    let (_directory, path) = locked();
    chown(&path, Some(1000), Some(1001)).unwrap();
    settled(&Baseline::Update(path.clone()), report(with_header("1")));
    let found = fs::metadata(&path).unwrap();
    assert_eq!((found.uid(), found.gid()), (1000, 1001));
}

#[test]
fn what_the_runner_cut_short_is_compared_and_never_written() {
    let (directory, path) = locked();
    let before = fs::read(&path).unwrap();
    for exit in [
        Exit::Timeout(Duration::from_secs(30)),
        Exit::OutputLimit,
        Exit::RequestLimit,
        Exit::Signal(libc::SIGKILL),
        Exit::Signal(libc::SIGXCPU),
    ] {
        let run = || {
            let mut run = case_b();
            run.evidence.exit = exit;
            report(run)
        };
        for path in [path.clone(), directory.path().join("new.lock")] {
            let refused = settled(&Baseline::Update(path), run());
            assert_eq!(finding(&refused).status, Status::Errored, "{exit:?}");
            let because = finding(&refused).because.as_deref().unwrap();
            let told = "this run does not show all that the client does: ";
            assert!(because.starts_with(told), "{because}");
            assert_eq!(refused.baseline, None);
        }
        let compared = settled(&Baseline::Compare(path.clone()), run());
        assert_eq!(finding(&compared).status, Status::Failed);
    }
    assert_eq!(fs::read(&path).unwrap(), before);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn what_failed_other_checks_is_written() {
    let (_directory, path) = locked();
    let mut run = case_b();
    run.evidence.exit = Exit::Code(7);
    let report = settled(&Baseline::Update(path.clone()), report(run));
    assert_eq!(report.verdict, Verdict::Failed);
    assert_eq!(finding(&report).status, Status::Skipped);
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains("\"outcome exit\" = \"code 7\"\n"), "{text}");
}

#[test]
fn writing_twice_makes_the_same_bytes_and_keeps_what_accepts_anything() {
    let (_directory, path) = locked();
    let before = fs::read_to_string(&path).unwrap();
    let again = settled(&Baseline::Update(path.clone()), report(case_b()));
    assert_eq!(fs::read_to_string(&path).unwrap(), before);
    assert_eq!(finding(&again).status, Status::Skipped);
    assert_eq!(again.verdict, Verdict::Passed);

    let line = "\"headers POST /v1/messages content-type\" = ";
    let any = before.replace(
        &format!("{line}\"application/json\""),
        &format!("{line}\"*\""),
    );
    let any = any.replace(
        "\"processes ",
        "\"names example.com A\" = \"*\"\n\"processes ",
    );
    assert_ne!(any, before);
    fs::write(&path, &any).unwrap();
    let updated = settled(&Baseline::Update(path.clone()), report(with_header("1")));
    let baseline = updated.baseline.unwrap();
    assert_eq!(baseline.outcome, BaselineOutcome::Updated);
    assert_eq!(baseline.differences.len(), 1);
    let text = fs::read_to_string(&path).unwrap();
    let new = "\"headers POST /v1/messages x-new\" = \"1\"\n";
    assert_eq!(text.replace(new, ""), any);
}

#[test]
fn what_a_hostile_client_says_is_read_back_from_its_lock_file() {
    let report = hostile();
    let rendered = json::render(&report).unwrap();
    let behaviour = RunFacts::of(&facts::Report::parse(&rendered).unwrap());
    let lock = Lock::of(&behaviour, made(&report), None, &report);
    let text = lock.print();
    assert_eq!(Lock::parse(text.as_bytes()).unwrap(), lock);
    assert!(text.is_ascii() && !text.contains("##") && text.contains("evil"));
    assert!(text.lines().all(|line| !line.starts_with("::")));
}

#[test]
fn a_file_that_is_not_there_is_made_and_never_compared() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("agent.lock");
    let error = open(&Baseline::Compare(path.clone()), "case-b", &[], &[]).unwrap_err();
    assert!(
        error
            .hint()
            .unwrap()
            .starts_with("--update-baseline makes it")
    );
    let made = settled(&Baseline::Update(path.clone()), report(case_b()));
    assert_eq!(made.baseline.unwrap().outcome, BaselineOutcome::Made);
    assert!(path.exists());
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn a_file_that_is_no_lock_file_stops_both() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("precious.toml");
    fs::write(&path, "precious = true\n").unwrap();
    for baseline in [
        Baseline::Compare(path.clone()),
        Baseline::Update(path.clone()),
    ] {
        let error = open(&baseline, "case-b", &[], &[]).unwrap_err();
        assert!(error.to_string().contains("precious.toml:1:1: "), "{error}");
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), "precious = true\n");
}

#[test]
fn the_lock_file_is_neither_a_report_nor_what_the_run_reads() {
    let (_directory, path) = locked();
    let update = Baseline::Update(path.clone());
    let input = Input {
        what: "the client",
        path: &path,
    };
    let error = open(&update, "case-b", &[input], &[]).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("the lock file would replace the client")
    );
    let target = ReportTarget {
        format: Format::Json,
        destination: Destination::File(path),
    };
    let outputs = output::open(&[target], &[]).unwrap();
    let error = open(&update, "case-b", &[], &outputs).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("cannot write a report and the lock file to")
    );
}
