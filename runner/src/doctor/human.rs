//! Text form of the result: the verdict first and last, then missing features with cause and fix, then all probes,
//! grouped by the isolation that needs them.

use std::fmt;

use model::case::Tier;
use report::human::Colour;
use report::human::page::{Page, Tone};

use super::Examination;
use super::probe::{Need, Probe, Status};

/// Width of the ids in a list.
const ID_COLUMN: usize = 22;

pub(super) fn render(examination: &Examination, colour: Colour) -> Result<Vec<u8>, fmt::Error> {
    let mut page = Page::new(String::new(), colour);
    verdict(&mut page, examination)?;
    page.blank()?;
    for (label, text) in examination.evidence.lines() {
        page.say(label, Tone::Quiet, &text)?;
    }
    missing_features(&mut page, examination)?;
    for group in Group::ALL {
        list(&mut page, examination, group)?;
    }
    page.blank()?;
    verdict(&mut page, examination)?;
    Ok(page.finish().into_bytes())
}

/// Writes the verdict's line, such as `NAMESPACE  a run has namespaces of its own; …`.
fn verdict(page: &mut Page<String>, examination: &Examination) -> fmt::Result {
    let (word, tone) = match examination.tier {
        Some(Tier::Namespace) => ("NAMESPACE", Tone::Good),
        Some(Tier::Inherited) => ("INHERITED", Tone::Doubtful),
        None => ("NONE", Tone::Bad),
    };
    page.headline(word, tone, &format!("  {}", examination.reason()))
}

/// Lists the probes that do not work with cause and fix, those of the strongest isolation first.
fn missing_features(page: &mut Page<String>, examination: &Examination) -> fmt::Result {
    for group in Group::ALL {
        // A machine with isolation `namespace` does not need the features of `inherited`.
        let is_weaker = group == Group::Inherited && examination.tier == Some(Tier::Namespace);
        let refused = examination.probes.iter();
        let refused =
            refused.filter(|one| one.status == Status::Refused && Group::of(one) == group);
        let mut refused = refused.peekable();
        if is_weaker || refused.peek().is_none() {
            continue;
        }
        page.heading(group.heading())?;
        for one in refused {
            let text = format!("{}, {}: {}", one.id, one.what, one.observed);
            page.say("refused", group.tone(), &text)?;
            if let Some(cause) = &one.cause {
                page.say("  cause", Tone::Quiet, cause)?;
            }
            for fix in &one.fixes {
                page.say("  fix", Tone::Quiet, fix)?;
            }
        }
    }
    Ok(())
}

fn list(page: &mut Page<String>, examination: &Examination, group: Group) -> fmt::Result {
    let members = examination.probes.iter();
    let mut members: Vec<&Probe> = members.filter(|one| Group::of(one) == group).collect();
    if members.is_empty() {
        return Ok(());
    }
    page.heading(group.title())?;
    members.sort_by_key(|one| one.status);
    for one in members {
        let tone = match one.status {
            Status::Refused => group.tone(),
            Status::Untried => Tone::Doubtful,
            Status::Works => Tone::Good,
        };
        let text = format!("{:<ID_COLUMN$}{}", one.id, one.observed);
        page.say(one.status.word(), tone, &text)?;
    }
    Ok(())
}

/// Group of probes with the same use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Group {
    Namespace,
    Inherited,
    Every,
    Audit,
    IfThere,
}

impl Group {
    const ALL: [Self; 5] = [
        Self::Namespace,
        Self::Inherited,
        Self::Every,
        Self::Audit,
        Self::IfThere,
    ];

    fn of(one: &Probe) -> Self {
        match (one.need, one.isolation) {
            (Need::Required, None) => Self::Every,
            (Need::Required, Some(Tier::Namespace)) => Self::Namespace,
            (Need::Required, Some(Tier::Inherited)) => Self::Inherited,
            (Need::Audit, _) => Self::Audit,
            (Need::Used, _) => Self::IfThere,
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Every => "Required by every run",
            Self::Namespace => "Required by isolation namespace",
            Self::Inherited => "Required by isolation inherited",
            Self::Audit => "Required by audits",
            Self::IfThere => "Used by a run if available",
        }
    }

    fn heading(self) -> &'static str {
        match self {
            Self::Every => "Missing for every run",
            Self::Namespace => "Missing for isolation namespace",
            Self::Inherited => "Missing for isolation inherited",
            Self::Audit => "Missing for audits",
            Self::IfThere => "Missing, but not required",
        }
    }

    fn tone(self) -> Tone {
        match self {
            Self::Every | Self::Namespace | Self::Audit => Tone::Bad,
            Self::Inherited | Self::IfThere => Tone::Doubtful,
        }
    }
}
