//! Text of the differences in the finding, for viewers that show only the findings of a report.

use model::difference::{Change, Difference, summary};
use model::escape::visible;
use model::text::truncated;

/// Most differences in the text; the report has all of them.
const MAX_LINES: usize = 20;
/// Most characters of a key, or of a single value.
const MAX_CHARS: usize = 96;
/// Most characters of each of two values. The beginning of a digest fits.
const MAX_CHARS_EACH: usize = 48;

/// Summary, and a line for each of the first differences. Client text is escaped, so that it cannot add a line.
pub fn found(differences: &[Difference]) -> String {
    let mut lines = vec![summary(differences)];
    lines.extend(differences.iter().take(MAX_LINES).map(line));
    match differences.len().checked_sub(MAX_LINES) {
        None | Some(0) => {}
        Some(more) => lines.push(format!("and {more} more")),
    }
    lines.join("\n")
}

/// Line of a difference: `body POST /v1/messages $.max_tokens: 32000, now 7`.
fn line(difference: &Difference) -> String {
    let what = match &difference.change {
        Change::Added(new) => format!("added, {}", cut(new, MAX_CHARS)),
        Change::Removed(old) => format!("removed, {}", cut(old, MAX_CHARS)),
        Change::Changed { old, new } => format!(
            "{}, now {}",
            cut(old, MAX_CHARS_EACH),
            cut(new, MAX_CHARS_EACH)
        ),
    };
    let fact = &difference.fact;
    format!("{} {}: {what}", fact.area.word(), cut(&fact.key, MAX_CHARS))
}

fn cut(text: &str, most: usize) -> String {
    truncated(&visible(text), most)
}

#[cfg(test)]
mod tests {
    use model::difference::{Area, Fact};

    use super::*;

    fn difference(key: &str, change: Change) -> Difference {
        let (area, key) = (Area::Body, key.to_owned());
        let fact = Fact { area, key };
        Difference { fact, change }
    }

    #[test]
    fn each_difference_is_a_line() {
        let [old, new] = ["32000", "7"].map(str::to_owned);
        let differences = [
            difference("POST / $.a", Change::Added(new.clone())),
            difference("POST / $.b", Change::Removed(old.clone())),
            difference("POST / $.c", Change::Changed { old, new }),
        ];
        assert_eq!(
            found(&differences),
            "3 differences: 3 body\nbody POST / $.a: added, 7\nbody POST / $.b: removed, 32000\nbody POST / $.c: 32000, now 7"
        );
    }

    #[test]
    fn a_client_makes_neither_a_line_nor_a_long_one_nor_very_many() {
        let hostile = "::error::##x\n\u{202e}".repeat(1000);
        let change = Change::Changed {
            old: hostile.clone(),
            new: hostile.clone(),
        };
        let differences = vec![difference(&hostile, change); 50];
        let text = found(&differences);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 22);
        assert_eq!(lines.last(), Some(&"and 30 more"));
        let is_short = |line: &&str| line.chars().count() <= 220 && !line.starts_with("::");
        assert!(lines.iter().all(is_short), "{text}");
        assert!(!text.contains("##") && !text.contains('\u{202e}'));
    }
}
