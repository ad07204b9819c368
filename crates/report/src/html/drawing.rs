//! Drawing of the timeline: lanes, a scale, and marks. Marks that would overlap are merged.
//!
//! Horizontal positions are percentages, so that the drawing fits any page and its text keeps its size.

use maud::{Markup, html};
use model::escape;

use crate::document::timeline::{Lane, Moment, Sign, Timeline};
use crate::phrases::{at, cut, duration};

/// Height of one lane, in pixels; `style.css` has the same value.
const LANE_HEIGHT: usize = 34;
/// Height of the scale above the first lane, in pixels.
const SCALE_HEIGHT: usize = 24;
/// Number of columns; marks in one column are merged.
const COLUMNS: u64 = 160;
/// Maximum number of steps of the scale.
const MAX_STEPS: u64 = 5;

/// Maximum length of a tooltip, in characters.
const MAX_HINT_CHARS: usize = 250;

/// Marks drawn as one, at the position of the first.
struct Group<'a> {
    first: &'a Moment,
    last: &'a Moment,
    number: usize,
}

/// Draws the timeline with the names of the lanes and the key.
pub(super) fn figure(timeline: &Timeline) -> Markup {
    html! {
        figure.timeline {
            ol.lanes aria-hidden="true" {
                @for lane in &timeline.lanes {
                    li { span { (lane.name) } " " span.note { (lane.note) } }
                }
            }
            (drawing(timeline))
            figcaption {
                @for sign in Sign::ALL { span.key { (self::sign(sign)) (sign.meaning()) } }
                span.key { "A taller mark stands for several." }
            }
        }
    }
}

fn drawing(timeline: &Timeline) -> Markup {
    let Timeline {
        lanes,
        total_us: total,
        released_us: released,
    } = timeline;
    let total = *total;
    let height = SCALE_HEIGHT + LANE_HEIGHT * lanes.len();
    let summaries: Vec<String> = lanes
        .iter()
        .map(|lane| format!("{}: {}", lane.name, lane.note))
        .collect();
    html! {
        svg role="img" width="100%" height=(height) aria-labelledby="timeline-title timeline-desc" {
            title id="timeline-title" { "The run on one clock, " (duration(total)) }
            desc id="timeline-desc" { (summaries.join("; ")) "." }
            @for tick in ticks(total) { (scale(tick, total, height)) }
            @if let Some(released) = *released {
                line.released x1=(position(released, total)) x2=(position(released, total)) y1=(SCALE_HEIGHT) y2=(height) {}
            }
            @for (index, lane) in lanes.iter().enumerate() {
                (self::lane(lane, SCALE_HEIGHT + LANE_HEIGHT * index, total))
            }
        }
    }
}

/// Draws one step of the scale. The label is left out if it would reach beyond the end.
fn scale(tick: u64, total: u64, height: usize) -> Markup {
    let x = position(tick, total);
    let anchor = if tick == 0 { "start" } else { "middle" };
    html! {
        line.tick x1=(x) x2=(x) y1=(SCALE_HEIGHT - 6) y2=(height) {}
        @if tick < total / 100 * 96 || tick == 0 {
            text x=(x) y=(SCALE_HEIGHT - 10) text-anchor=(anchor) { (label(tick)) }
        }
    }
}

fn lane(lane: &Lane, top: usize, total: u64) -> Markup {
    let middle = top + LANE_HEIGHT / 2;
    html! {
        line.base x1="0" x2="100%" y1=(middle) y2=(middle) {}
        @if let Some((from, to)) = lane.span {
            rect.span x=(position(from, total)) width=(position(to - from, total)) y=(middle - 7) height="14" rx="2" {
                title { (lane.name) ": " (lane.note) ", " (at(from)) " to " (at(to)) }
            }
        }
        @for group in groups(&lane.moments, total) { (mark(&group, middle, total)) }
    }
}

fn mark(group: &Group, middle: usize, total: u64) -> Markup {
    let Group {
        first,
        last,
        number,
    } = group;
    html! {
        svg x=(position(first.at_us, total)) y=(middle) overflow="visible" width="1" height="1" {
            title {
                @if *number == 1 {
                    (at(first.at_us)) ": " (hint(&first.text))
                } @else {
                    (at(first.at_us)) " to " (at(last.at_us)) ": " (number) " of them, the first: "
                    (hint(&first.text))
                }
            }
            (shape(first.sign, *number))
        }
    }
}

/// Text of a tooltip. The limit is low, because a drawing has hundreds of them.
fn hint(text: &str) -> String {
    cut(&escape::visible(text), MAX_HINT_CHARS)
}

/// Draws a sign for the key.
fn sign(sign: Sign) -> Markup {
    html! {
        svg width="14" height="14" viewBox="-7 -7 14 14" aria-hidden="true" { (shape(sign, 1)) }
    }
}

/// Draws a sign, taller for more merged marks.
fn shape(sign: Sign, number: usize) -> Markup {
    let more = match number {
        1 => 0,
        2..=9 => 4,
        _ => 8,
    };
    let top = 4 + more;
    html! {
        @match sign {
            Sign::Dot => rect.dot x="-4" width="8" y=(format!("-{top}")) height=(2 * top) rx="4" {},
            Sign::Ring => rect.ring x="-4" width="8" y=(format!("-{top}")) height=(2 * top) rx="4" {},
            Sign::Cross => path.cross d=(format!("M-4-{top}L4 {top}M-4 {top}L4-{top}")) {},
        }
    }
}

/// Merges marks with the same sign in the same column.
fn groups(marks: &[Moment], total: u64) -> Vec<Group<'_>> {
    let mut groups: Vec<Group> = Vec::new();
    let column = |mark: &Moment| u128::from(mark.at_us) * u128::from(COLUMNS) / u128::from(total);
    for sign in [Sign::Dot, Sign::Ring, Sign::Cross] {
        let of_sign: Vec<&Moment> = marks.iter().filter(|mark| mark.sign == sign).collect();
        for run in of_sign.chunk_by(|one, other| column(one) == column(other)) {
            if let (Some(first), Some(last)) = (run.first(), run.last()) {
                let number = run.len();
                groups.push(Group {
                    first,
                    last,
                    number,
                });
            }
        }
    }
    groups
}

/// Returns the position of a moment, in percent of the width: `43.21%`.
fn position(us: u64, total: u64) -> String {
    let part = u128::from(us) * 10_000 / u128::from(total.max(1));
    format!("{}.{:02}%", part / 100, part % 100)
}

/// Returns round moments for the scale, from 0.
fn ticks(total: u64) -> Vec<u64> {
    let mut step = 1;
    while total / step > MAX_STEPS {
        // 1, 2, 5, 10, 20, 50, …
        let leading = step.to_string().starts_with('2');
        step = if leading { step * 5 / 2 } else { step * 2 };
    }
    (0..=total / step).map(|index| index * step).collect()
}

/// Label of a moment: `0`, `20 ms`, `1.5 s`.
fn label(us: u64) -> String {
    let decimal = |number: f64, unit: &str| format!("{number} {unit}");
    match us {
        0 => "0".to_owned(),
        us if us < 1_000 => format!("{us} µs"),
        us if us < 1_000_000 => decimal(us as f64 / 1_000.0, "ms"),
        us => decimal(us as f64 / 1_000_000.0, "s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(at_us: u64, sign: Sign) -> Moment {
        Moment {
            at_us,
            sign,
            text: String::new(),
        }
    }

    #[test]
    fn a_scale_has_few_and_round_steps() {
        let labels = |total| ticks(total).into_iter().map(label).collect::<Vec<_>>();
        assert_eq!(
            labels(412_345),
            ["0", "100 ms", "200 ms", "300 ms", "400 ms"]
        );
        assert_eq!(labels(9_900), ["0", "2 ms", "4 ms", "6 ms", "8 ms"]);
        assert_eq!(
            labels(2_900_000),
            ["0", "500 ms", "1 s", "1.5 s", "2 s", "2.5 s"]
        );
        assert_eq!(labels(1), ["0", "1 µs"]);
        assert!(ticks(u64::MAX / 2).len() <= 6);
    }

    #[test]
    fn marks_at_nearly_one_place_are_one_that_counts_them() {
        let marks: Vec<_> = (0..1_000)
            .map(|index| mark(500_000 + index, Sign::Dot))
            .chain([mark(500_003, Sign::Cross), mark(900_000, Sign::Dot)])
            .collect();
        let groups = groups(&marks, 1_000_000);
        let numbers: Vec<_> = groups.iter().map(|group| group.number).collect();
        assert_eq!(numbers, [1_000, 1, 1]);
    }

    #[test]
    fn a_place_is_a_part_of_the_width() {
        assert_eq!(position(0, 10), "0.00%");
        assert_eq!(position(1, 3), "33.33%");
        assert_eq!(position(3, 3), "100.00%");
        assert_eq!(position(u64::MAX, u64::MAX), "100.00%");
    }
}
