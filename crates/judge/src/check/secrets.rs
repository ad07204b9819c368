//! Check for the credential of the run outside of its own header.

use std::collections::BTreeSet;

use model::evidence::{Evidence, Sighting};
use model::expected::rule_for_sighting;
use model::profile::Files;
use model::secret::AUTH_HEADERS;
use model::text::count;

use super::outcome::{Deviation, Outcome, list};

pub(super) fn credential_not_written(
    evidence: &Evidence,
    belongs: Option<&str>,
    files: Option<&Files>,
) -> Outcome {
    let (allowed, sightings): (Vec<&Sighting>, Vec<&Sighting>) =
        evidence.sightings.iter().partition(|sighting| {
            files.is_some_and(|files| rule_for_sighting(files, sighting).is_some())
        });
    if sightings.is_empty() {
        let files = BTreeSet::from_iter(allowed.iter().filter_map(|sighting| sighting.file()));
        let names = files
            .iter()
            .map(|(root, path)| format!("{}: {path}", root.word()));
        return Ok(match files.len() {
            0 => "The credential is only in its own header.".to_owned(),
            number => format!(
                "The credential is only in its own header and in {} that may hold it: {}.",
                count(number, "file"),
                list(names)
            ),
        });
    }
    let place = match belongs {
        Some(header) => format!("{header} of the message request"),
        None => format!("a header of its provider: {}", AUTH_HEADERS.join(", ")),
    };
    let mut headers = sightings.iter().filter_map(|sighting| {
        let (request, header) = sighting.place.split_once(" header ")?;
        request.starts_with("request ").then_some(header)
    });
    let message = match (headers.next(), belongs) {
        (Some(header), Some(_)) => format!(
            "The credential was found in the header {header}; it belongs in {place}, unless the profile names another \
             header as `credential` under `[headers]`."
        ),
        (Some(header), None) => {
            format!("The credential was found in the header {header}; it belongs in {place}.")
        }
        (None, _) => "The credential was found outside of its own header.".to_owned(),
    };
    Deviation::new(message)
        .expected(format!("only in {place}"))
        .found(list(sightings.iter().map(|sighting| {
            format!("{} ({})", sighting.place, sighting.form)
        })))
        .failed()
}
