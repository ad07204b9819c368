//! Where the credential of the run was found and does not belong.

use crate::evidence::Evidence;

use super::outcome::{Deviation, Outcome, list};

pub(super) fn credential_not_written(evidence: &Evidence) -> Outcome {
    let sightings = &evidence.sightings;
    if sightings.is_empty() {
        return Ok("The credential stands nowhere but in its own header.".to_owned());
    }
    Deviation::new("The credential was found outside of its own header.")
        .expected("nowhere but in x-api-key of the message request")
        .found(list(sightings.iter().map(|sighting| {
            format!("{} ({})", sighting.place, sighting.form)
        })))
        .failed()
}
