//! Deviations in the isolation and in the client's attempts.

use model::evidence::fixture::{Fixture, attempt, canary, case_b, connect, gap, question};
use model::evidence::{Attempt, AttemptKind, CanaryMode, CanaryStatus, GapKind, Outcome};
use model::finding::{Status, Verdict};
use model::profile::ExpectedAttempt;
use nix::errno::Errno;

use super::{deviations, finding, verdict_of};

deviations! {
    a_network_canary_that_got_through_is_errored: case_b, |run| {
        canary(&mut run.evidence, "tcp4", CanaryMode::Continued).status = CanaryStatus::NotHeld;
    } => errored ["outbound/denied"];

    a_network_canary_that_the_supervisor_let_through_is_errored: case_b, |run| {
        canary(&mut run.evidence, "udp4", CanaryMode::Answered).status = CanaryStatus::NotHeld;
    } => errored ["outbound/denied"];

    a_network_canary_that_only_the_supervisor_refused_supports_no_claim: case_b, |run| {
        canary(&mut run.evidence, "tcp4", CanaryMode::Continued).mode = CanaryMode::Answered;
    } => errored ["outbound/denied"];

    a_network_canary_that_the_supervisor_was_not_asked_is_errored: case_b, |run| {
        run.evidence.canaries.retain(|canary| {
            (canary.name.as_str(), canary.mode) != ("broadcast", CanaryMode::Answered)
        });
    } => errored ["outbound/denied"];

    a_missing_network_canary_is_errored: case_b, |run| {
        run.evidence.canaries.retain(|canary| canary.name != "multicast");
    } => errored ["outbound/denied"];

    a_network_canary_that_fails_outside_as_well_supports_no_claim: case_b, |run| {
        let canary = canary(&mut run.evidence, "tcp6", CanaryMode::Continued);
        canary.status = CanaryStatus::NotApplicable;
    } => errored ["outbound/denied"];

    another_answered_canary_that_fails_outside_as_well_says_nothing_of_the_network: case_b, |run| {
        let mut vsock = canary(&mut run.evidence, "vsock", CanaryMode::Continued).clone();
        vsock.mode = CanaryMode::Answered;
        run.evidence.canaries.push(vsock);
    } => [];

    a_kernel_without_ipv6_has_nothing_to_refuse: case_b, |run| {
        without_family(run, "tcp6");
        without_family(run, "udp6");
    } => [];

    a_kernel_without_ipv4_is_believed_by_nobody: case_b, |run| {
        without_family(run, "tcp4");
    } => errored ["outbound/denied"];

    canaries_without_their_positive_twin_are_errored: case_b, |run| {
        run.evidence.canaries.retain(|canary| canary.name != "stub");
    } => errored ["outbound/denied"];

    any_other_canary_that_did_not_hold_is_errored: case_b, |run| {
        canary(&mut run.evidence, "packet", CanaryMode::Continued).status = CanaryStatus::NotHeld;
    } => errored ["outbound/denied"];

    no_canary_at_all_is_errored: case_b, |run| run.evidence.canaries.clear() => errored ["outbound/denied"];

    a_lost_supervisor_is_errored: case_b, |run| {
        run.evidence.gaps.push(gap(GapKind::Isolation));
    } => errored ["outbound/denied"];

    an_unseen_class_is_named_and_passes: case_b, |run| {
        canary(&mut run.evidence, "vsock", CanaryMode::Continued).unseen = true;
    } => [];

    an_unseen_class_is_errored_where_the_ledger_must_be_complete: case_b, |run| {
        canary(&mut run.evidence, "vsock", CanaryMode::Continued).unseen = true;
        run.case.expect.complete_ledger = true;
    } => errored ["outbound/no-attempts"];

    a_unix_socket_refused_without_a_name_leaves_the_ledger_incomplete: case_b, |run| {
        let mut socket = connect("unix", "", None);
        socket.kind = AttemptKind::Setup;
        socket.syscall = "socket".into();
        run.evidence.attempts.push(socket);
        run.case.expect.complete_ledger = true;
    } => errored ["outbound/no-attempts"];

    a_socket_refused_at_bind_leaves_the_ledger_incomplete: case_b, |run| {
        run.evidence.attempts.push(refused_bind("inet", "0.0.0.0", 0));
        run.case.expect.complete_ledger = true;
    } => errored ["outbound/no-attempts"];

    a_socket_bound_at_any_port_leaves_the_ledger_complete: case_b, |run| {
        run.evidence.attempts.push(Attempt {
            outcome: Outcome::Allowed,
            ..refused_bind("inet", "0.0.0.0", 0)
        });
        run.case.expect.complete_ledger = true;
    } => [];

    an_attempt_beside_an_unseen_class_is_found: case_b, |run| {
        canary(&mut run.evidence, "vsock", CanaryMode::Continued).unseen = true;
        run.case.expect.complete_ledger = true;
        run.evidence.attempts.push(connect("inet", "192.0.2.1", Some(443)));
    } => ["outbound/no-attempts"];

    a_complete_ledger_passes_where_it_must_be_complete: case_b, |run| {
        run.case.expect.complete_ledger = true;
    } => [];

    an_incomplete_ledger_is_errored: case_b, |run| {
        run.evidence.gaps.push(gap(GapKind::Attempts));
    } => errored ["outbound/denied", "outbound/no-attempts"];

    a_call_of_the_setup_that_was_let_out_is_errored: case_b, |run| {
        run.evidence.attempts.push(Attempt {
            kind: AttemptKind::Setup,
            ..let_through("inet", "192.0.2.1", Some(443))
        });
    } => errored ["outbound/denied"];

    an_attempt_that_was_let_out_is_found_and_errored: case_b, |run| {
        run.evidence.attempts.push(let_through("inet6", "::ffff:192.0.2.1", Some(443)));
    } => ["outbound/no-attempts"] errored ["outbound/denied"];

    an_attempt_that_was_let_through_to_an_unreadable_address_is_errored: case_b, |run| {
        run.evidence.attempts.push(let_through("inet", "fe80::1%2", Some(443)));
    } => ["outbound/no-attempts"] errored ["outbound/denied"];

    an_attempt_at_loopback_is_found: case_b, |run| {
        run.evidence.attempts.push(let_through("inet", "127.0.0.1", Some(631)));
    } => ["outbound/no-attempts"];

    an_attempt_at_the_unspecified_address_stays_on_loopback: case_b, |run| {
        run.evidence.attempts.push(let_through("inet6", "::", Some(631)));
    } => ["outbound/no-attempts"];

    an_attempt_that_was_denied_is_found: case_b, |run| {
        run.evidence.attempts.push(connect("inet", "192.0.2.1", Some(443)));
    } => ["outbound/no-attempts"];

    an_attempt_at_a_unix_socket_is_found: case_b, |run| {
        run.evidence.attempts.push(let_through("unix", "@bus", None));
    } => ["outbound/no-attempts"];

    a_socket_that_listens_is_found: case_b, |run| {
        run.evidence.attempts.push(Attempt { outcome: Outcome::Allowed, ..attempt("listen") });
    } => ["outbound/no-attempts"];

    a_fixed_port_on_every_address_is_found_and_not_taken_for_a_way_out: case_b, |run| {
        let bind = let_through("inet", "192.0.2.1", Some(8080));
        run.evidence.attempts.push(Attempt { syscall: "bind".into(), ..bind });
    } => ["outbound/no-attempts"];

    a_name_that_was_asked_for_is_found: case_b, |run| {
        run.evidence.names.push(question("api.example.com"));
    } => ["outbound/no-attempts"];

    attempts_that_are_not_listed_are_not_taken_for_allowed: case_b, |run| {
        expect(run, &["inet:192.0.2.1:443"]);
        run.evidence.unlisted.denied = 1;
    } => errored ["outbound/no-attempts"];

    attempt_not_listed_is_found_where_none_is_expected: case_b, |run| {
        run.evidence.unlisted.denied = 1;
    } => ["outbound/no-attempts"];

    questions_that_are_not_listed_are_not_taken_for_allowed: case_b, |run| {
        run.evidence.unlisted.questions = 1;
    } => errored ["outbound/no-attempts"];

    a_cut_list_of_what_no_check_judges_costs_nothing: case_b, |run| {
        run.evidence.unlisted.setup = 7;
        run.evidence.gaps.push(gap(GapKind::Cut));
    } => [];

    an_attempt_that_is_found_stays_found_where_more_are_not_listed: case_b, |run| {
        run.evidence.attempts.push(connect("inet", "192.0.2.1", Some(443)));
        run.evidence.unlisted.denied = 7;
        run.evidence.gaps.push(gap(GapKind::Cut));
    } => ["outbound/no-attempts"];

    an_attempt_that_the_profile_names_is_no_finding: case_b, |run| {
        expect(run, &["inet:192.0.2.1:443", "unix:@bus", "inet6:[::1]:*", "inet:127.0.0.1:631"]);
        run.evidence.attempts.extend([
            connect("inet", "192.0.2.1", Some(443)),
            let_through("unix", "@bus", None),
            let_through("inet6", "::1", Some(7)),
            let_through("inet6", "::ffff:127.0.0.1", Some(631)),
        ]);
    } => [];

    an_attempt_at_another_port_than_the_profile_names_is_found: case_b, |run| {
        expect(run, &["inet:192.0.2.1:443", "unix:/run/x"]);
        run.evidence.attempts.push(connect("inet", "192.0.2.1", Some(444)));
    } => ["outbound/no-attempts"];

    a_call_that_the_profile_names_is_no_finding: case_b, |run| {
        expect(run, &["listen", "io_uring_setup", "bind inet:127.0.0.1:*", "socket inet stream protocol 262"]);
        let bind = let_through("inet", "127.0.0.1", Some(8080));
        let socket = Attempt {
            family: Some("inet".to_owned()),
            socket_type: Some("stream".to_owned()),
            protocol: Some(262),
            outcome: Outcome::Denied(Errno::EPROTONOSUPPORT),
            ..attempt("socket")
        };
        run.evidence.attempts.extend([
            Attempt { syscall: "bind".into(), ..bind },
            Attempt { outcome: Outcome::Allowed, ..attempt("listen") },
            attempt("io_uring_setup"),
            socket,
        ]);
    } => [];

    another_protocol_than_the_profile_names_is_found: case_b, |run| {
        expect(run, &["socket inet stream protocol 262"]);
        run.evidence.attempts.push(Attempt {
            family: Some("inet".to_owned()),
            socket_type: Some("stream".to_owned()),
            protocol: Some(132),
            ..attempt("socket")
        });
    } => ["outbound/no-attempts"];

    listening_where_the_profile_names_a_destination_is_found: case_b, |run| {
        expect(run, &["inet:127.0.0.1:*"]);
        let bind = let_through("inet", "127.0.0.1", Some(8080));
        run.evidence.attempts.push(Attempt { syscall: "bind".into(), ..bind });
    } => ["outbound/no-attempts"];

    a_name_that_the_profile_names_is_no_finding_nor_is_the_way_to_the_resolver: case_b, |run| {
        expect(run, &["name:api.example.com"]);
        run.evidence.names.push(question("API.example.com"));
        run.evidence.attempts.push(question_call());
    } => [];

    another_name_is_found_with_the_way_to_the_resolver: case_b, |run| {
        expect(run, &["name:api.example.com"]);
        run.evidence.names.extend([question("api.example.com"), question("other.example.com")]);
        run.evidence.attempts.push(question_call());
    } => ["outbound/no-attempts"];

    the_way_to_the_resolver_without_a_question_is_found: case_b, |run| {
        expect(run, &["name:api.example.com"]);
        run.evidence.attempts.push(let_through("inet", "127.0.0.1", Some(53)));
    } => ["outbound/no-attempts"];

    a_question_to_another_server_is_found_whatever_its_name: case_b, |run| {
        expect(run, &["name:api.example.com"]);
        let mut query = connect("inet", "192.0.2.53", Some(53));
        query.names.push("api.example.com".to_owned());
        run.evidence.attempts.push(query);
    } => ["outbound/no-attempts"];
}

/// Refused bind(2) of the kind setup.
fn refused_bind(family: &str, address: &str, port: u16) -> Attempt {
    Attempt {
        kind: AttemptKind::Setup,
        syscall: "bind".into(),
        ..connect(family, address, Some(port))
    }
}

/// Call to the resolver, which received a question.
fn question_call() -> Attempt {
    Attempt {
        kind: AttemptKind::Question,
        ..let_through("inet", "127.0.0.1", Some(53))
    }
}

fn let_through(family: &str, address: &str, port: Option<u16>) -> Attempt {
    Attempt {
        outcome: Outcome::Allowed,
        ..connect(family, address, port)
    }
}

fn expect(run: &mut Fixture, destinations: &[&str]) {
    let attempts = destinations.iter().map(|text| ExpectedAttempt {
        destination: text.parse().unwrap(),
        reason: "the client is known for it".to_owned(),
    });
    run.profile.attempts = attempts.collect();
}

/// Errno of socket(2) for a family that the kernel lacks.
fn without_family(run: &mut Fixture, name: &str) {
    for mode in [CanaryMode::Continued, CanaryMode::Answered] {
        let canary = canary(&mut run.evidence, name, mode);
        canary.status = CanaryStatus::NotApplicable;
        canary.observed = "EAFNOSUPPORT".to_owned();
    }
}

#[test]
fn the_finding_counts_attempts_and_shows_them_by_program_destination_and_outcome() {
    let mut run = case_b();
    let again = Attempt {
        count: 3,
        syscall: "sendto".into(),
        ..connect("inet", "192.0.2.1", Some(443))
    };
    let refused = Attempt {
        family: Some("packet".to_owned()),
        socket_type: Some("raw".to_owned()),
        outcome: Outcome::Denied(Errno::EAFNOSUPPORT),
        program: "/usr/bin/::error::x".to_owned(),
        ..attempt("socket")
    };
    let attempts = [
        connect("inet", "192.0.2.1", Some(443)),
        again,
        let_through("unix", "/run/x", None),
        refused,
    ];
    run.evidence.attempts.extend(attempts);
    run.evidence.names.push(question("api.example.com"));
    let finding = finding("outbound/no-attempts", &run);
    assert_eq!(
        finding.message,
        "The client tried more than its way to the stub: 6 attempts of 2 programs at 3 destinations (5 denied, \
         1 let through), 1 name asked for."
    );
    assert_eq!(
        finding.found.as_deref(),
        Some(
            "inet:192.0.2.1:443 by /client/agent-cli, denied ENETUNREACH, 4 times, \
             unix:/run/x by /client/agent-cli, let through, 1 time, \
             socket packet raw by /usr/bin/::error::x, denied EAFNOSUPPORT, 1 time, \
             name:api.example.com (A), 1 time"
        )
    );
}

#[test]
fn what_a_kernel_without_ipv6_refused_is_not_said_of_ipv6() {
    let mut run = case_b();
    without_family(&mut run, "tcp6");
    without_family(&mut run, "udp6");
    let said = finding("outbound/denied", &run).message;
    let start =
        "The kernel refused tcp4, udp4, broadcast, multicast inside this run and has no IPv6,";
    assert!(said.starts_with(start), "{said}");
}

#[test]
fn what_the_profile_names_is_counted_in_a_passed_check() {
    let mut run = case_b();
    expect(&mut run, &["unix:/run/x"]);
    run.evidence
        .attempts
        .push(let_through("unix", "/run/x", None));
    assert_eq!(
        finding("outbound/no-attempts", &run).message,
        "No attempt was seen but 1 attempt that the profile names."
    );
}

#[test]
fn call_let_out_is_never_passed() {
    let mut run = case_b();
    run.evidence
        .attempts
        .push(let_through("inet", "192.0.2.1", Some(443)));
    assert_eq!(verdict_of(&run), Verdict::Failed);
    expect(&mut run, &["inet:192.0.2.1:443"]);
    assert_eq!(verdict_of(&run), Verdict::Errored);
}

#[test]
fn a_gap_in_the_ledger_does_not_hide_an_attempt() {
    let mut run = case_b();
    run.evidence.gaps.push(gap(GapKind::Attempts));
    run.evidence
        .attempts
        .push(connect("inet", "192.0.2.1", Some(443)));
    let finding = finding("outbound/no-attempts", &run);
    assert_eq!(finding.status, Status::Failed, "{finding:?}");
}
