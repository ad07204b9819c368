//! Check for the credential of the run outside of its own header.

use model::evidence::Evidence;
use model::secret::AUTH_HEADERS;

use super::outcome::{Deviation, Outcome, list};

pub(super) fn credential_not_written(evidence: &Evidence, belongs: Option<&str>) -> Outcome {
    let sightings = &evidence.sightings;
    if sightings.is_empty() {
        return Ok("The credential is only in its own header.".to_owned());
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
