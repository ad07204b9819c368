//! Events of a stream with their faults, before encoding.

use crate::messages::{self, Event};
use crate::{Edit, Target, Turn};

/// One event to encode.
#[derive(Clone, Debug)]
pub(super) struct FaultyEvent<'a> {
    pub(super) event: Event<'a>,
    /// True to omit the `event:` line.
    pub(super) is_nameless: bool,
    /// Changes to the encoded data, in order.
    damage: Vec<Damage>,
}

#[derive(Clone, Copy, Debug)]
enum Damage {
    Cut,
    InvalidUtf8,
    NoType,
}

/// The events, and the first missing target with the key that named it.
#[derive(Debug)]
pub(super) struct FaultyEvents<'a> {
    pub(super) events: Vec<FaultyEvent<'a>>,
    pub(super) missing: Option<(&'static str, Target)>,
}

impl<'a> FaultyEvent<'a> {
    fn new(event: Event<'a>) -> Self {
        Self {
            event,
            is_nameless: false,
            damage: Vec::new(),
        }
    }

    fn is(&self, target: Target) -> bool {
        self.event.known() == Some(target.event)
    }

    /// Encodes the value of the `data:` line.
    pub(super) fn data(&self) -> Vec<u8> {
        // Serialising plain structs and strings cannot fail.
        let mut data = serde_json::to_vec(&self.event).unwrap_or_default();
        for damage in &self.damage {
            match damage {
                Damage::Cut => data.truncate(char_boundary(&data, data.len() / 2)),
                Damage::InvalidUtf8 => {
                    let end = data.iter().rposition(|byte| *byte == b'"');
                    data.insert(end.unwrap_or(data.len()), 0xff);
                }
                Damage::NoType => {
                    let field = format!(r#""type":"{}""#, self.event.name());
                    if data.get(1..=field.len()) == Some(field.as_bytes()) {
                        data.drain(1..=field.len());
                        data.drain(1..1 + usize::from(data.get(1) == Some(&b',')));
                    }
                }
            }
        }
        data
    }
}

/// Returns the last character boundary at or before `at`.
fn char_boundary(data: &[u8], at: usize) -> usize {
    (0..=at)
        .rev()
        .find(|at| data.get(*at).is_none_or(|byte| byte & 0xc0 != 0x80))
        .unwrap_or(0)
}

/// Lists the events of the turn, applies its faults in order, and puts the `error` event in its place.
pub(super) fn apply_faults<'a>(turn: &'a Turn, id: &'a str, model: &'a str) -> FaultyEvents<'a> {
    let mut events: Vec<FaultyEvent<'a>> = messages::events(turn, id, model)
        .into_iter()
        .map(FaultyEvent::new)
        .collect();
    let mut missing = None;
    for fault in &turn.faults {
        let found = find(&events, fault.target).filter(|at| *at > 0 || fault.edit != Edit::Early);
        match found {
            Some(at) => edit(&mut events, at, fault.edit),
            None => missing = missing.or(Some(("faults", fault.target))),
        }
    }
    if let Some(error) = &turn.error_event {
        let end = error
            .after
            .map_or(Some(0), |target| find(&events, target).map(|at| at + 1));
        match (end, error.after) {
            (Some(end), _) => {
                events.truncate(end);
                events.push(FaultyEvent::new(Event::error(error.kind, &error.message)));
            }
            (None, Some(target)) => missing = missing.or(Some(("error_event", target))),
            (None, None) => {}
        }
    }
    FaultyEvents { events, missing }
}

fn find(events: &[FaultyEvent<'_>], target: Target) -> Option<usize> {
    let mut named = (0..events.len()).filter(|at| events[*at].is(target));
    named.nth(target.nth.saturating_sub(1))
}

fn edit(events: &mut Vec<FaultyEvent<'_>>, at: usize, edit: Edit) {
    let faulty = &mut events[at];
    match edit {
        Edit::Duplicate => {
            let twin = faulty.clone();
            events.insert(at, twin);
        }
        Edit::Missing => {
            events.remove(at);
        }
        Edit::Early => events.swap(at, at.saturating_sub(1)),
        Edit::MalformedJson => faulty.damage.push(Damage::Cut),
        Edit::InvalidUtf8 => faulty.damage.push(Damage::InvalidUtf8),
        Edit::NoType => faulty.damage.push(Damage::NoType),
        Edit::NoEventLine => faulty.is_nameless = true,
        Edit::NoUsage => match &mut faulty.event {
            Event::MessageStart { message } => message.usage = None,
            Event::MessageDelta { usage, .. } => *usage = None,
            Event::ContentBlockStart { .. }
            | Event::Ping
            | Event::ContentBlockDelta { .. }
            | Event::ContentBlockStop { .. }
            | Event::MessageStop
            | Event::Error { .. }
            | Event::StubNotice { .. } => {}
        },
        Edit::WrongIndex(wrong) => match &mut faulty.event {
            Event::ContentBlockStart { index, .. }
            | Event::ContentBlockDelta { index, .. }
            | Event::ContentBlockStop { index } => *index = wrong,
            Event::MessageStart { .. }
            | Event::Ping
            | Event::MessageDelta { .. }
            | Event::MessageStop
            | Event::Error { .. }
            | Event::StubNotice { .. } => {}
        },
    }
}
