//! Deviations in the isolation, the processes and the search for the credential.

use std::time::Duration;

use crate::evidence::fixture::gap;
use crate::evidence::{CanaryMode, CanaryStatus, Exit, GapKind, Sighting, Survivor};

use super::deviations;

deviations! {
    a_sighting_of_the_credential_is_found: case_b, |run| run.evidence.sightings.push(Sighting {
        place: "file .agent/log".to_owned(),
        form: "base64".to_owned(),
    }) => ["secrets/credential-not-written"];

    a_network_canary_that_got_through_is_errored: case_b, |run| {
        run.evidence.canaries[0].status = CanaryStatus::NotHeld;
    } => errored ["outbound/denied"];

    a_network_canary_that_only_the_supervisor_refused_supports_no_claim: case_b, |run| {
        run.evidence.canaries[0].mode = CanaryMode::Answered;
    } => errored ["outbound/denied"];

    a_missing_network_canary_is_errored: case_b, |run| {
        run.evidence.canaries.retain(|canary| canary.name != "multicast");
    } => errored ["outbound/denied"];

    a_network_canary_that_fails_outside_as_well_supports_no_claim: case_b, |run| {
        run.evidence.canaries[5].status = CanaryStatus::NotApplicable;
    } => errored ["outbound/denied"];

    canaries_without_their_positive_twin_are_errored: case_b, |run| {
        run.evidence.canaries.retain(|canary| canary.name != "stub");
    } => errored ["outbound/denied"];

    any_other_canary_that_did_not_hold_is_errored: case_b, |run| {
        run.evidence.canaries[7].status = CanaryStatus::NotHeld;
    } => errored ["outbound/denied"];

    no_canary_at_all_is_errored: case_b, |run| run.evidence.canaries.clear() => errored ["outbound/denied"];

    a_lost_supervisor_is_errored: case_b, |run| {
        run.evidence.gaps.push(gap(GapKind::Isolation));
    } => errored ["outbound/denied"];

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
