//! Report for a terminal of 100 columns. The verdict is the first and the last line.
//!
//! Owns the sections and their order: findings, claims, then the evidence. [`page`] owns the layout of a line.

use std::fmt;

use model::digest::short;
use model::finding::{Finding, Status, Verdict};
use model::report::{Arg, Client, Purpose, Report};
use model::report::{Scope, Setting};
use model::time;

use super::claims::{self, Strength};
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

/// Renders the report as UTF-8 text. The caller chooses `colour` by `NO_COLOR` and the terminal.
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
    claims(page, report)?;
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
    let (policy_label, program_label) = match report.purpose {
        Purpose::Judge => ("case", "client"),
        Purpose::Audit => ("policy", "program"),
    };
    page.say(policy_label, Tone::Quiet, &text)?;
    let text = format!(
        "{}, sha256 {}, {}",
        client.program,
        short(&client.sha256),
        phrases::exit(&report.evidence)
    );
    page.say(program_label, Tone::Quiet, &text)?;
    let args = arguments(&client.args);
    page.quote("arguments", if args.is_empty() { "none" } else { &args })?;
    if let Some(profile) = &client.profile {
        let text = format!("{}, sha256 {}", profile.name, short(&profile.origin.sha256));
        page.say("profile", Tone::Quiet, &text)?;
    }
    let landlock = match host.landlock_abi {
        0 => "Landlock not tested".to_owned(),
        abi => format!("Landlock ABI {abi}"),
    };
    let suffix = if report.evidence.layers.is_empty() {
        ", not set up"
    } else {
        ""
    };
    let isolation = format!("{}{suffix}", report.tier.word());
    page.say(
        "sandbox",
        Tone::Quiet,
        &format!(
            "isolation {isolation}, Linux {} {}, {landlock}",
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

/// Shows failed, then errored findings in full, if `wanted` accepts them.
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
        let text = format!("{:<34}{}", finding.id, phrases::asked_by(&finding.asked_by));
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

/// Shows the claims and the limits of the run.
fn claims(page: &mut Page<String>, report: &Report) -> fmt::Result {
    page.heading("What this run shows, and what it does not")?;
    for claim in claims::claims(report) {
        let (word, tone) = match claim.strength {
            Strength::Proved => ("proved", Tone::Good),
            Strength::Seen => ("seen", Tone::Good),
            Strength::Refuted => ("not so", Tone::Bad),
            Strength::NotProved => ("not proved", Tone::Doubtful),
        };
        page.say(word, tone, &claim.text)?;
    }
    claims::further_not_proved(report)
        .try_for_each(|text| page.say("not proved", Tone::Doubtful, text))
}

/// Shows the variables that the profile set, because they may change the client's behaviour.
fn settings(page: &mut Page<String>, report: &Report) -> fmt::Result {
    let Client {
        settings, left_out, ..
    } = &report.client;
    let (always, of_case): (Vec<_>, Vec<_>) = settings
        .iter()
        .partition(|setting| setting.scope == Scope::Always);
    page.heading("Settings in the client's environment")?;
    let shown = |setting: &Setting| format!("{}={}", setting.name, setting.value);
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
            "--plain: the profile's variables for this case were not set",
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

/// Shows the passed checks by area.
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

/// Shows the skipped checks, one line for each reason.
fn skipped(page: &mut Page<String>, report: &Report) -> fmt::Result {
    let mut reasons: Vec<(&str, Vec<&Finding>)> = Vec::new();
    let (left, others): (Vec<_>, Vec<_>) =
        with_status(report, Status::Skipped).partition(|finding| phrases::is_leftover(finding));
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

fn area_and_name(finding: &Finding) -> (&str, &str) {
    finding.id.split_once('/').unwrap_or((&finding.id, ""))
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
