//! Text form of the result: the verdict first and last, then missing features with cause and fix, then all probes,
//! grouped by the isolation that needs them.

use std::fmt;

use model::case::Tier;
use nix::errno::Errno;
use nix::sys::signal::Signal;
use report::human::Colour;
use report::human::page::{Page, Tone};

use super::Examination;
use super::judge::{ProbeResult, Status, Verdict, agrees};
use super::probes::Need;
use super::trial::Observation;

/// Width of the ids in a list.
const ID_COLUMN: usize = 22;

pub(super) fn render(examination: &Examination, colour: Colour) -> Result<Vec<u8>, fmt::Error> {
    let mut page = Page::new(String::new(), colour);
    verdict(&mut page, &examination.verdict)?;
    if !examination.verdict.details.is_empty() {
        page.say("", Tone::Quiet, &examination.verdict.details)?;
    }
    page.blank()?;
    for (label, text) in examination.context.lines() {
        page.say(label, Tone::Quiet, &text)?;
    }
    whole_run(&mut page, examination)?;
    missing_features(&mut page, examination)?;
    for group in Group::ALL {
        list(&mut page, examination, group)?;
    }
    page.blank()?;
    verdict(&mut page, &examination.verdict)?;
    Ok(page.finish().into_bytes())
}

/// Writes the verdict's line, such as `NAMESPACE  a run has namespaces of its own; …`.
fn verdict(page: &mut Page<String>, verdict: &Verdict) -> fmt::Result {
    let (word, tone) = match verdict.tier {
        Some(Tier::Namespace) => ("NAMESPACE", Tone::Good),
        Some(Tier::Inherited) => ("INHERITED", Tone::Doubtful),
        None => ("NONE", Tone::Bad),
    };
    page.headline(word, tone, verdict.reason)
}

fn whole_run(page: &mut Page<String>, examination: &Examination) -> fmt::Result {
    let run = &examination.run;
    let tone = if agrees(examination.possible, run) {
        Tone::Quiet
    } else {
        Tone::Bad
    };
    page.say(
        "whole-run",
        tone,
        &format!("`runner case-b` {}", run.describe()),
    )?;
    for line in &run.errors {
        page.quote("", line)?;
    }
    Ok(())
}

/// Lists the probes that do not work with cause and fix, those of the strongest isolation first.
fn missing_features(page: &mut Page<String>, examination: &Examination) -> fmt::Result {
    let refused = |group: Group| {
        let all = examination.tried.iter();
        all.filter(move |one| one.status() == Status::Refused && Group::of(one) == group)
    };
    for group in Group::ALL {
        // A machine with isolation `namespace` does not need the features of `inherited`.
        let is_weaker =
            group == Group::Inherited && examination.possible.tier == Some(Tier::Namespace);
        if is_weaker || refused(group).next().is_none() {
            continue;
        }
        page.heading(group.heading())?;
        for one in refused(group) {
            let text = format!("{}: {}", one.probe.feature, observed(&one.observation));
            page.say(
                "refused",
                group.tone(),
                &format!("{}, {text}", one.probe.id),
            )?;
            if let Some(advice) = examination.advice(one) {
                page.say("  cause", Tone::Quiet, &advice.cause)?;
                for fix in &advice.fixes {
                    page.say("  fix", Tone::Quiet, fix)?;
                }
            }
        }
    }
    Ok(())
}

fn list(page: &mut Page<String>, examination: &Examination, group: Group) -> fmt::Result {
    page.heading(group.title())?;
    let mut members: Vec<&ProbeResult> = examination
        .tried
        .iter()
        .filter(|one| Group::of(one) == group)
        .collect();
    members.sort_by_key(|one| match one.status() {
        Status::Refused => 0,
        Status::Untried => 1,
        Status::Works => 2,
        Status::NotNeeded => 3,
    });
    for one in members {
        let tone = match one.status() {
            Status::Refused => group.tone(),
            Status::Untried => Tone::Doubtful,
            Status::Works => Tone::Good,
            Status::NotNeeded => Tone::Quiet,
        };
        let text = observed(&one.observation);
        let id = one.probe.id;
        page.say(
            one.status().word(),
            tone,
            &format!("{id:<ID_COLUMN$}{text}"),
        )?;
    }
    Ok(())
}

/// Group of probes with the same use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Group {
    Every,
    Namespace,
    Inherited,
    IfThere,
    Information,
}

impl Group {
    const ALL: [Self; 5] = [
        Self::Every,
        Self::Namespace,
        Self::Inherited,
        Self::IfThere,
        Self::Information,
    ];

    fn of(one: &ProbeResult) -> Self {
        match Tier::ALL.map(|tier| one.probe.need(tier)) {
            [Need::Required, Need::Required] => Self::Every,
            [Need::Required, _] => Self::Namespace,
            [_, Need::Required] => Self::Inherited,
            [Need::Used, _] | [_, Need::Used] => Self::IfThere,
            [Need::Unneeded, Need::Unneeded] => Self::Information,
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Every => "Required by every run",
            Self::Namespace => "Required by isolation namespace",
            Self::Inherited => "Required by isolation inherited",
            Self::IfThere => "Used by a run if available",
            Self::Information => "Not needed by any run",
        }
    }

    fn heading(self) -> &'static str {
        match self {
            Self::Every => "Missing for every run",
            Self::Namespace => "Missing for isolation namespace",
            Self::Inherited => "Missing for isolation inherited",
            Self::IfThere => "Missing, but not required",
            Self::Information => "Missing, and not needed",
        }
    }

    fn tone(self) -> Tone {
        match self {
            Self::Every | Self::Namespace => Tone::Bad,
            Self::Inherited | Self::IfThere => Tone::Doubtful,
            Self::Information => Tone::Quiet,
        }
    }
}

/// Text of an observation.
pub(super) fn observed(observation: &Observation) -> String {
    match observation {
        Observation::Works(text)
        | Observation::Wrong(text)
        | Observation::Untried(text)
        | Observation::NotNeeded(text) => text.clone(),
        Observation::Refused { doing, errno } => {
            let errno = Errno::from_raw(*errno);
            format!("cannot {doing}: {errno:?}, {}", errno.desc())
        }
        Observation::Killed(signal) => match Signal::try_from(*signal) {
            Ok(signal) => format!("ended by {}", signal.as_str()),
            Err(_) => format!("ended by signal {signal}"),
        },
        Observation::Hung => "did not return".to_owned(),
    }
}
