//! What drifted, as it stands in the finding: viewers that show nothing else of a report show that.

use model::difference::{Change, Difference, summary};
use model::escape::visible;
use model::text::truncated;

/// Most differences that are told; the report has all of them.
const MOST: usize = 20;
/// Most characters of a key, or of a value that stands alone.
const LONG: usize = 96;
/// Most characters of each of two values: a digest in it still shows its beginning.
const SHORT: usize = 48;

/// The summary, and a line for each of the first differences. Text of the client is made visible here, so that no
/// line is of its making.
pub fn found(differences: &[Difference]) -> String {
    let mut lines = vec![summary(differences)];
    lines.extend(differences.iter().take(MOST).map(line));
    match differences.len().checked_sub(MOST) {
        None | Some(0) => {}
        Some(more) => lines.push(format!("and {more} more")),
    }
    lines.join("\n")
}

/// `body POST /v1/messages $.max_tokens: 32000, now 7`
fn line(difference: &Difference) -> String {
    let what = match &difference.change {
        Change::Added(new) => format!("added, {}", cut(new, LONG)),
        Change::Removed(old) => format!("removed, {}", cut(old, LONG)),
        Change::Changed { old, new } => format!("{}, now {}", cut(old, SHORT), cut(new, SHORT)),
    };
    let fact = &difference.fact;
    format!("{} {}: {what}", fact.area.word(), cut(&fact.key, LONG))
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
