//! The report for people, for a terminal of 100 columns. The verdict is its first and its last line.
//!
//! Owns what is shown and in which order: what went wrong, what the run shows and what it does not, then the
//! evidence. How a line looks is the page's affair.

use std::fmt;

use model::digest::short;
use model::finding::{Finding, Status, Verdict};
use model::profile::{Cases, Variable};
use model::report::{Arg, Client, Purpose, Report};
use model::time;

use super::claims::{self, Standing};
use super::headline::{Headline, headline};
use super::{RenderError, phrases};

mod audit;
pub mod drift;
mod evidence;
mod ledger;
mod lookups;
pub mod page;

use page::{Page, Tone};

pub use page::Colour;

/// Renders the report as UTF-8 text. The caller decides about colours (`NO_COLOR`, a terminal).
pub fn render(report: &Report, colour: Colour) -> Result<Vec<u8>, RenderError> {
    let mut page = Page::new(String::new(), colour);
    match report.purpose {
        Purpose::Judge => judged(&mut page, report)?,
        Purpose::Audit => audit::render(&mut page, report)?,
    }
    Ok(page.finish().into_bytes())
}

fn judged(page: &mut Page<String>, report: &Report) -> fmt::Result {
    verdict(page, report)?;
    run(page, report)?;
    unsound(page, report)?;
    findings(page, report, |_| true)?;
    drift::section(page, report)?;
    shown(page, report)?;
    evidence::sections(page, report)?;
    settings(page, report)?;
    wider_rules(page, report, "Rules that are wider than the built-in case")?;
    passed(page, report)?;
    skipped(page, report)?;
    page.blank()?;
    verdict(page, report)
}

/// `FAILED  case-b: 2 checks failed, 31 passed, 2 skipped`
fn verdict(page: &mut Page<String>, report: &Report) -> fmt::Result {
    let tone = match report.verdict {
        Verdict::Passed => Tone::Good,
        Verdict::Failed => Tone::Bad,
        Verdict::Errored => Tone::Doubtful,
    };
    let Headline { word, text } = headline(report);
    page.headline(word, tone, &text)
}

fn run(page: &mut Page<String>, report: &Report) -> fmt::Result {
    let client = &report.client;
    let host = &report.host;
    let case = &report.case;
    page.blank()?;
    let source = phrases::source(&case.origin.source);
    let text = format!(
        "{}, {source}, sha256 {}",
        case.name,
        short(&case.origin.sha256)
    );
    let (policy, subject) = match report.purpose {
        Purpose::Judge => ("case", "client"),
        Purpose::Audit => ("policy", "program"),
    };
    page.say(policy, Tone::Quiet, &text)?;
    let text = format!(
        "{}, sha256 {}, {}",
        client.program,
        short(&client.sha256),
        phrases::exit(&report.evidence)
    );
    page.say(subject, Tone::Quiet, &text)?;
    let told = arguments(&client.args);
    page.quote("arguments", if told.is_empty() { "none" } else { &told })?;
    if let Some(profile) = &client.profile {
        let text = format!("{}, sha256 {}", profile.name, short(&profile.origin.sha256));
        page.say("profile", Tone::Quiet, &text)?;
    }
    let landlock = match host.landlock_abi {
        0 => "Landlock not looked at".to_owned(),
        abi => format!("Landlock ABI {abi}"),
    };
    let tried = if report.evidence.layers.is_empty() {
        ", not made"
    } else {
        ""
    };
    let tier = format!("{}{tried}", report.tier.word());
    page.say(
        "sandbox",
        Tone::Quiet,
        &format!(
            "tier {tier}, Linux {} {}, {landlock}",
            host.kernel, host.arch
        ),
    )?;
    if let Some(because) = &report.tier_because {
        page.say("", Tone::Quiet, because)?;
    }
    let started = time::rfc3339(report.evidence.wall.0);
    let seconds = report.evidence.duration.as_secs_f64();
    page.say(
        "time",
        Tone::Quiet,
        &format!("{seconds:.3} s from {started}"),
    )?;
    page.say(
        "runner",
        Tone::Quiet,
        &format!(
            "{}, sha256 {}",
            report.runner.version,
            short(&report.runner.sha256)
        ),
    )
}

fn unsound(page: &mut Page<String>, report: &Report) -> fmt::Result {
    let reasons = &report.unsound;
    if reasons.is_empty() {
        return Ok(());
    }
    page.heading(phrases::unsound(report.verdict))?;
    reasons
        .iter()
        .try_for_each(|reason| page.quote("lost", reason))
}

/// What failed and what could not be checked, in full, as far as it is wanted here.
fn findings(
    page: &mut Page<String>,
    report: &Report,
    wanted: impl Fn(&Finding) -> bool,
) -> fmt::Result {
    let wrong: Vec<_> = [Status::Failed, Status::Errored]
        .into_iter()
        .flat_map(|status| with_status(report, status))
        .filter(|finding| wanted(finding))
        .collect();
    if wrong.is_empty() {
        return Ok(());
    }
    page.heading("Findings")?;
    for (index, finding) in wrong.into_iter().enumerate() {
        if index > 0 {
            page.blank()?;
        }
        let tone = if finding.status == Status::Failed {
            Tone::Bad
        } else {
            Tone::Doubtful
        };
        let text = format!("{:<34}{}", finding.id, phrases::asked_by(finding.asked_by));
        page.say(finding.status.word(), tone, &text)?;
        page.say("", Tone::Quiet, &finding.message)?;
        for (label, text) in [
            ("object", finding.object.as_deref()),
            ("expected", finding.expected.as_deref()),
            ("found", phrases::found_in_short(finding)),
            ("because", finding.because.as_deref()),
        ] {
            if let Some(text) = text {
                page.quote(label, text)?;
            }
        }
    }
    Ok(())
}

fn shown(page: &mut Page<String>, report: &Report) -> fmt::Result {
    page.heading("What this run shows, and what it does not")?;
    for claim in claims::claims(report) {
        let (word, tone) = match claim.standing {
            Standing::Proved => ("proved", Tone::Good),
            Standing::Seen => ("seen", Tone::Good),
            Standing::Refuted => ("not so", Tone::Bad),
            Standing::NotProved => ("not proved", Tone::Doubtful),
        };
        page.say(word, tone, &claim.text)?;
    }
    claims::further_not_proved(report)
        .try_for_each(|text| page.say("not proved", Tone::Doubtful, text))
}

/// What the profile set in the client's environment: settings of the harness, which may decide what was seen.
fn settings(page: &mut Page<String>, report: &Report) -> fmt::Result {
    let Client {
        settings, left_out, ..
    } = &report.client;
    let (always, of_case): (Vec<_>, Vec<_>) = settings
        .iter()
        .partition(|setting| setting.cases == Cases::Every);
    page.heading("Settings in the client's environment")?;
    let shown = |setting: &Variable| format!("{}={}", setting.name, setting.value);
    for setting in of_case {
        page.quote("this case", &shown(setting))?;
        page.quote("reason", &setting.reason)?;
    }
    for setting in left_out {
        page.quote("left out", &shown(setting))?;
    }
    if !left_out.is_empty() {
        page.say(
            "",
            Tone::Quiet,
            "--plain: what the profile sets for this case was not set",
        )?;
    }
    let always: Vec<_> = always.into_iter().map(shown).collect();
    page.quote("always", &always.join(" "))
}

fn wider_rules(page: &mut Page<String>, report: &Report, title: &str) -> fmt::Result {
    if report.wider_rules.is_empty() {
        return Ok(());
    }
    page.heading(title)?;
    report.wider_rules.iter().try_for_each(|wider| {
        page.quote("allowed", &wider.rule)?;
        page.quote("reason", &wider.reason)
    })
}

/// What passed, by area.
fn passed(page: &mut Page<String>, report: &Report) -> fmt::Result {
    let passed: Vec<_> = with_status(report, Status::Passed)
        .map(area_and_name)
        .collect();
    if passed.is_empty() {
        return Ok(());
    }
    page.heading("Checks passed")?;
    passed
        .chunk_by(|(one, _), (other, _)| one == other)
        .try_for_each(|area| {
            let names: Vec<_> = area.iter().map(|(_, name)| *name).collect();
            let label = area.first().map_or("", |(area, _)| area);
            page.say(label, Tone::Quiet, &names.join(", "))
        })
}

/// What was not checked, one line for each reason.
fn skipped(page: &mut Page<String>, report: &Report) -> fmt::Result {
    let mut reasons: Vec<(&str, Vec<&Finding>)> = Vec::new();
    let (left, others): (Vec<_>, Vec<_>) =
        with_status(report, Status::Skipped).partition(|finding| phrases::is_left(finding));
    for finding in others {
        let because = finding.because.as_deref().unwrap_or_default();
        match reasons.iter_mut().find(|(reason, _)| *reason == because) {
            Some((_, findings)) => findings.push(finding),
            None => reasons.push((because, vec![finding])),
        }
    }
    if reasons.is_empty() && left.is_empty() {
        return Ok(());
    }
    page.heading("Checks skipped")?;
    for finding in left {
        let (area, name) = area_and_name(finding);
        let because = finding.because.as_deref().unwrap_or_default();
        page.say(area, Tone::Quiet, &format!("{name}: {because}"))?;
        page.quote("left", finding.found.as_deref().unwrap_or_default())?;
    }
    reasons
        .iter()
        .try_for_each(|(reason, findings)| match findings.as_slice() {
            [only] => {
                let (area, name) = area_and_name(only);
                page.say(area, Tone::Quiet, &format!("{name}: {reason}"))
            }
            several => page.say(&format!("{} checks", several.len()), Tone::Quiet, reason),
        })
}

fn area_and_name(finding: &Finding) -> (&'static str, &'static str) {
    finding.id.split_once('/').unwrap_or((finding.id, ""))
}

fn with_status(report: &Report, status: Status) -> impl Iterator<Item = &Finding> {
    report
        .checks
        .iter()
        .filter(move |finding| finding.status == status)
}

fn arguments(args: &[Arg]) -> String {
    let words = args.iter().map(|arg| match arg {
        Arg::Word(word) if word.is_empty() || word.contains(' ') => format!("\"{word}\""),
        Arg::Word(word) => word.clone(),
        Arg::Prompt { bytes, sha256 } => format!("<{bytes} bytes, sha256 {}>", short(sha256)),
    });
    words.collect::<Vec<_>>().join(" ")
}
