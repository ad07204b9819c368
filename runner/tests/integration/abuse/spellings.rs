//! The credential in fifty spellings, of which the runner promises some.

use super::Abuse;
use crate::needs_sandbox;

/// Returns each line of standard error: the spelling's name, and whether the credential was found in it.
fn seen(ended: &super::bounded::Ended) -> Vec<(&str, bool)> {
    let lines = ended.said().lines().filter_map(|line| line.split_once(' '));
    lines
        .map(|(name, text)| (name, text.contains("<credential>")))
        .collect()
}

#[test]
fn every_promised_spelling_of_the_credential_is_found_and_replaced() {
    needs_sandbox!();
    let ended = Abuse::of("spellings").run();
    ended.assert_found(&["secrets/credential-not-written"], &[]);
    let missed: Vec<_> = seen(&ended).into_iter().filter(|(_, seen)| !seen).collect();
    assert_eq!(missed, []);
    assert_eq!(seen(&ended).len(), 27);
}

/// A client can always find another spelling. The test names the spellings that are not promised.
#[test]
fn no_other_spelling_is_found() {
    needs_sandbox!();
    let ended = Abuse::of("more-spellings").run();
    let found: Vec<_> = seen(&ended).into_iter().filter(|(_, seen)| *seen).collect();
    assert_eq!(found, []);
    ended.assert_found(&[], &[]);
}
