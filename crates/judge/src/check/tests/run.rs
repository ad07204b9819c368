//! Deviations in the processes and the search for the credential.

use std::time::Duration;

use model::evidence::fixture::{add_header, case_b, gap};
use model::evidence::{Exit, GapKind, Sighting, Survivor};
use model::finding::Status;

use super::{deviations, finding, with_status};

#[test]
fn credential_in_another_header_names_both() {
    let mut run = case_b();
    run.evidence.sightings.push(Sighting {
        place: "request 1 header x-goog-api-key".to_owned(),
        form: "as written or encoded".to_owned(),
    });
    let message = finding("secrets/credential-not-written", &run).message;
    for part in [
        "in the header x-goog-api-key;",
        "belongs in x-api-key of the message request",
        "`credential` under `[headers]`",
    ] {
        assert!(message.contains(part), "{message}");
    }
    let findings = crate::check::audit(&[], &run.evidence);
    let mut findings = findings.into_iter();
    let audited = findings.find(|one| one.id == "secrets/credential-not-written");
    assert!(audited.unwrap().message.contains("x-goog-api-key, api-key"));
}

#[test]
fn credential_in_the_header_of_the_profile_passes() {
    let mut run = case_b();
    run.profile.headers.credential = "x-own-key".to_owned();
    run.profile.headers.message.push("x-own-key".to_owned());
    let failed = with_status(Status::Failed, &run);
    assert_eq!(failed, ["headers/api-key-present"]);
    add_header(&mut run.evidence.requests[0], "X-Own-Key", "<redacted>");
    assert_eq!(with_status(Status::Failed, &run), [""; 0]);

    run.profile.headers.credential = "authorization".to_owned();
    run.profile.headers.message.push("authorization".to_owned());
    let post = &mut run.evidence.requests[0];
    add_header(post, "authorization", "Bearer <redacted>");
    assert_eq!(with_status(Status::Failed, &run), [""; 0]);
    let absent = finding("headers/authorization-absent", &run);
    assert_eq!(absent.status, Status::Skipped);
}

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
