//! Text form of the answer. Text of the client is escaped and behind a gutter. It is neither cut nor wrapped, because
//! a difference may be at its end.

use std::fmt;

use judge::facts::{Applied, RULES};
use model::difference::{Area, Difference, summary};
use model::digest;
use report::RenderError;
use report::human::Colour;
use report::human::drift::difference;
use report::human::page::{Page, Tone};

use super::{Answer, Identity, Status};

/// Renders the answer. The first line is repeated at the end.
pub(super) fn render(answer: &Answer, colour: Colour) -> Result<Vec<u8>, RenderError> {
    let mut page = Page::new(String::new(), colour);
    whole(&mut page, answer)?;
    Ok(page.finish().into_bytes())
}

fn whole(page: &mut Page<String>, answer: &Answer) -> fmt::Result {
    headline(page, answer)?;
    page.blank()?;
    identity(page, "old", &answer.old)?;
    identity(page, "new", &answer.new)?;
    for note in &answer.notes {
        page.say("note", Tone::Doubtful, note)?;
    }
    for reason in &answer.incomplete {
        page.quote("lost", reason)?;
    }
    for area in Area::ALL {
        let in_it = |one: &&Difference| one.fact.area == area;
        let mut found = answer.differences.iter().filter(in_it).peekable();
        if found.peek().is_some() {
            page.heading(area.word())?;
            found.try_for_each(|one| difference(page, one))?;
        }
    }
    rules(page, &answer.applied)?;
    page.blank()?;
    headline(page, answer)
}

fn headline(page: &mut Page<String>, answer: &Answer) -> fmt::Result {
    let (word, tone) = match answer.status() {
        Status::Unchanged => ("UNCHANGED", Tone::Good),
        Status::Changed => ("CHANGED", Tone::Bad),
        Status::Incomplete => ("INCOMPLETE", Tone::Doubtful),
    };
    page.headline(word, tone, &format!("  {}", summary(&answer.differences)))
}

fn identity(page: &mut Page<String>, which: &str, run: &Identity) -> fmt::Result {
    let sha256 = run.sha256.as_deref().map(digest::short);
    let sha256 = sha256.map_or_else(String::new, |short| format!(", sha256 {short}"));
    let Identity {
        client,
        case,
        tier,
        started_at,
        ..
    } = run;
    let text = format!(
        "{client}{sha256}, {case}, isolation {}, {started_at}",
        tier.word()
    );
    page.say(which, Tone::Quiet, &text)
}

fn rules(page: &mut Page<String>, applied: &Applied) -> fmt::Result {
    page.heading("Not compared:")?;
    for rule in RULES {
        let times = applied.of(rule.name);
        if times > 0 {
            let text = format!("{} (× {times}) {}", rule.name, rule.what);
            page.say("rule", Tone::Quiet, &text)?;
        }
    }
    Ok(())
}
