//! Timeline of the run: a lane for each part, for a drawing and as a table.

use model::evidence::{Attempt, AttemptKind, Evidence, Outcome};
use model::quote::shell_text;
use model::report::{Purpose, Report};
use model::text::{count, grouped};

use super::{Block, Budget, Fold, PAGE, Section, Table, own, text, word};
use crate::phrases::{at, duration, request_line};

/// Lanes on one clock.
#[derive(Debug)]
pub(crate) struct Timeline {
    pub(crate) lanes: Vec<Lane>,
    /// End of the clock, in microseconds.
    pub(crate) total_us: u64,
    /// Start of the client, in microseconds.
    pub(crate) released_us: Option<u64>,
}

/// Lane of the timeline: one part of the run.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) name: &'static str,
    /// Summary: `4.2 ms`, `3, 2 denied`.
    pub(crate) note: String,
    /// Start and end, in microseconds.
    pub(crate) span: Option<(u64, u64)>,
    pub(crate) moments: Vec<Moment>,
}

/// Moment of a lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) at_us: u64,
    pub(crate) sign: Sign,
    /// May contain text of the client.
    pub(crate) text: String,
}

/// Kind of a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sign {
    /// Traffic with the stub, or a record.
    Dot,
    /// Allowed attempt.
    Ring,
    /// Denied attempt.
    Cross,
}

impl Sign {
    pub(crate) const ALL: [Self; 3] = [Self::Dot, Self::Cross, Self::Ring];

    /// Meaning, for the key of a drawing.
    pub(crate) fn meaning(self) -> &'static str {
        match self {
            Self::Dot => "to or from the stub, a record",
            Self::Cross => "an attempt, denied",
            Self::Ring => "an attempt, let through to loopback",
        }
    }

    fn in_short(self) -> &'static str {
        match self {
            Self::Dot => "to the stub",
            Self::Cross => "denied",
            Self::Ring => "let through",
        }
    }
}

pub(super) fn section(report: &Report) -> Section {
    let evidence = &report.evidence;
    let lanes = lanes(report);
    let total_us = total(evidence, &lanes);
    let fold = Fold {
        summary: own("Timeline as a table"),
        is_open: false,
        blocks: as_table(&lanes).blocks(),
    };
    let released_us = evidence.moments.released_us;
    let timeline = Timeline {
        lanes,
        total_us,
        released_us,
    };
    let blocks = [
        Block::Timeline(timeline),
        Block::Folds(Budget::Ours, vec![fold]),
    ];
    Section::new("timeline", "Timeline", duration(total_us), blocks).only(PAGE)
}

/// Returns the end of the clock: the end of the run, or the last recorded moment.
fn total(evidence: &Evidence, lanes: &[Lane]) -> u64 {
    let ends = lanes.iter().filter_map(|lane| Some(lane.ends()?.1));
    ends.fold(whole(evidence).max(1), u64::max)
}

fn whole(evidence: &Evidence) -> u64 {
    u64::try_from(evidence.duration.as_micros()).unwrap_or(u64::MAX)
}

fn lanes(report: &Report) -> Vec<Lane> {
    let evidence = &report.evidence;
    let (moments, whole) = (evidence.moments, whole(evidence));
    let client = match report.purpose {
        Purpose::Judge => "Client",
        Purpose::Audit => "Program",
    };
    // A phase without a recorded end lasted until the end of the run.
    let or_end = |moment: Option<u64>| moment.or(Some(whole));
    let requests = evidence
        .requests
        .iter()
        .map(|one| (one.at_us, request_line(one)));
    let answers = evidence.provider_events.iter();
    let answers = answers.map(|one| {
        (
            one.at_us,
            format!("{} for request {}", one.event, one.request),
        )
    });
    let records = evidence.records.iter();
    let records = records.map(|one| (one.at_us, format!("record {}, {}", one.seq, one.label())));
    let lookups = evidence
        .lookups
        .iter()
        .map(|one| (one.at_us, shell_text(&one.path)));
    let mut lanes = vec![
        span("Set-up", Some(0), or_end(moments.supervised_us)),
        span("Canary", moments.supervised_us, or_end(moments.released_us)),
        span(client, moments.released_us, or_end(moments.ended_us)),
        connects(report),
        dots("Requests", requests),
        dots("Stub events", answers),
    ];
    if report.purpose == Purpose::Judge {
        lanes.push(dots("Records", records));
    }
    if !evidence.lookups.is_empty() {
        lanes.push(dots("Lookups", lookups));
    }
    lanes.push(span("End", moments.ended_us, Some(whole)));
    lanes
}

fn span(name: &'static str, from: Option<u64>, to: Option<u64>) -> Lane {
    let span = from.zip(to).filter(|(from, to)| from <= to);
    let note = span.map_or_else(
        || "not reached".to_owned(),
        |(from, to)| duration(to - from),
    );
    Lane {
        name,
        note,
        span,
        moments: Vec::new(),
    }
}

fn dots(name: &'static str, moments: impl Iterator<Item = (u64, String)>) -> Lane {
    let dot = |(at_us, text)| Moment {
        at_us,
        sign: Sign::Dot,
        text,
    };
    lane(name, moments.map(dot).collect())
}

fn lane(name: &'static str, mut moments: Vec<Moment>) -> Lane {
    moments.sort_by_key(|moment| moment.at_us);
    let note = match moments.len() {
        0 => "none".to_owned(),
        number => grouped(number as u64),
    };
    Lane {
        name,
        note,
        span: None,
        moments,
    }
}

/// Lane of connections to the stub and of attempts, each kind of attempt at its first time.
fn connects(report: &Report) -> Lane {
    let accepted = report.evidence.connections.iter().map(|one| Moment {
        at_us: one.at_us,
        sign: Sign::Dot,
        text: format!("connection {} to the stub", one.seq),
    });
    let tried = report.evidence.attempts.iter();
    let tried = tried.filter(|attempt| attempt.kind == AttemptKind::Attempt);
    let tried = tried.map(tried_at);
    let lane = lane("Connects", accepted.chain(tried).collect());
    let parts = Sign::ALL.into_iter().filter_map(|sign| {
        let number = lane.moments.iter().filter(|one| one.sign == sign).count();
        (number > 0).then(|| format!("{} {}", grouped(number as u64), sign.in_short()))
    });
    let note = parts.collect::<Vec<_>>().join(", ");
    if note.is_empty() {
        lane
    } else {
        Lane { note, ..lane }
    }
}

fn tried_at(attempt: &Attempt) -> Moment {
    let known = attempt
        .expected
        .as_ref()
        .map_or("", |_| ", which the profile names");
    let often = match attempt.count {
        1 => String::new(),
        more => format!(", the first of {}", count(more, "time")),
    };
    let outcome = attempt.outcome.words();
    Moment {
        at_us: attempt.at_us,
        sign: match attempt.outcome {
            Outcome::Denied(_) => Sign::Cross,
            Outcome::Allowed => Sign::Ring,
        },
        text: format!("{}, {outcome}{known}{often}", attempt.target()),
    }
}

impl Lane {
    /// Returns the first and the last moment.
    fn ends(&self) -> Option<(u64, u64)> {
        let moments = self.moments.first().zip(self.moments.last());
        self.span
            .or_else(|| moments.map(|(first, last)| (first.at_us, last.at_us)))
    }
}

fn as_table(lanes: &[Lane]) -> Table {
    Table::of(Budget::Ours, lanes, |lane| {
        let (from, to) = lane.ends().unzip();
        let moment = |us: Option<u64>| us.map(|us| own(at(us)));
        [
            word("part", lane.name),
            word("from", moment(from)),
            word("to", moment(to)),
            text("what", &*lane.note),
        ]
    })
}
