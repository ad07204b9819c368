//! Deviations in the processes and the search for the credential.

use std::time::Duration;

use crate::evidence::fixture::gap;
use crate::evidence::{Exit, GapKind, Sighting, Survivor};

use super::deviations;

deviations! {
    a_sighting_of_the_credential_is_found: case_b, |run| run.evidence.sightings.push(Sighting {
        place: "file .agent/log".to_owned(),
        form: "base64".to_owned(),
    }) => ["secrets/credential-not-written"];

    another_exit_code_is_found: case_b, |run| run.evidence.exit = Exit::Code(3) => ["process/exit-zero"];

    a_signal_is_found: case_b, |run| run.evidence.exit = Exit::Signal(9) => ["process/exit-zero"];

    a_time_out_is_a_failure_of_the_client: case_b, |run| {
        run.evidence.exit = Exit::Timeout(Duration::from_secs(60));
    } => ["process/exit-zero"];

    too_much_output_is_a_failure_of_the_client: case_b, |run| {
        run.evidence.exit = Exit::OutputLimit;
    } => ["process/exit-zero"];

    a_process_that_outlived_the_client_is_found: case_b, |run| run.evidence.survivors.push(Survivor {
        pid: 7,
        program: "sleep".to_owned(),
    }) => ["process/no-survivors"];

    a_lost_exit_status_is_errored: case_b, |run| {
        run.evidence.gaps.push(gap(GapKind::Processes));
    } => errored ["process/exit-zero", "process/no-survivors"];
}
