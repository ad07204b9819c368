//! Attempts of the client beside its connection to the stub.

use serde_json::Value;

use super::deviations;
use crate::inherited::CONTAINER;
use crate::kit::{Done, Run, fixture};
use crate::needs_sandbox;

deviations! {
    an_attempt_at_another_host_is_found: case_b, "connects-elsewhere" => ["outbound/no-attempts"];
    an_attempt_at_another_port_is_found: case_a, "connects-to-another-port" => ["outbound/no-attempts"];
    an_attempt_at_a_unix_socket_is_found: case_b, "connects-to-a-unix-socket" => ["outbound/no-attempts"];
    a_datagram_to_another_host_is_found: case_b, "sends-a-datagram" => ["outbound/no-attempts"];
    connection_to_the_resolver_is_found: case_a, "connects-to-the-resolver" => ["outbound/no-attempts"];
    datagram_socket_connected_is_no_attempt: case_b, "connects-a-datagram-socket" => [];
    datagram_without_an_address_is_found: case_b, "sends-over-a-connected-socket" =>
        ["outbound/no-attempts"];
    a_socket_that_listens_is_found: case_b, "listens" => ["outbound/no-attempts"];
    an_attempt_at_a_proxy_that_nobody_is_is_found: case_b, "connects-to-a-dead-proxy" =>
        ["outbound/no-attempts"];
    a_key_behind_a_question_is_found: case_b, "key-behind-the-question" => ["secrets/credential-not-written",
        "outbound/no-attempts"];
    a_key_in_a_datagram_that_is_no_dns_is_found: case_b, "sends-no-dns" => ["secrets/credential-not-written",
        "outbound/no-attempts"];
    a_name_that_is_asked_for_is_found: case_b, "asks-for-a-name" => ["outbound/no-attempts"];
    an_urgent_byte_is_refused_and_found: case_b, "urgent-byte" => ["outbound/no-attempts"];
    an_urgent_message_is_refused_and_found: case_a, "urgent-message" => ["outbound/no-attempts"];
    urgent_messages_are_refused_and_found: case_b, "urgent-messages" => ["outbound/no-attempts"];
    a_message_without_an_address_is_no_attempt: case_b, "empty-message" => [];
    option_sets_pacing_is_refused_and_found: case_a, "sets-pacing" => ["outbound/no-attempts"];
    option_sets_txtime_is_refused_and_found: case_b, "sets-txtime" => ["outbound/no-attempts"];
    option_sets_filter_is_refused_and_found: case_a, "sets-filter" => ["outbound/no-attempts"];
    option_sets_md5sig_is_refused_and_found: case_b, "sets-md5sig" => ["outbound/no-attempts"];
    option_sets_ao_is_refused_and_found: case_a, "sets-ao" => ["outbound/no-attempts"];
    option_sets_repair_is_refused_and_found: case_b, "sets-repair" => ["outbound/no-attempts"];
    option_sets_ulp_is_refused_and_found: case_a, "sets-ulp" => ["outbound/no-attempts"];
    option_sets_tx_delay_is_refused_and_found: case_b, "sets-tx-delay" => ["outbound/no-attempts"];
    option_sets_congestion_is_refused_and_found: case_a, "sets-congestion" => ["outbound/no-attempts"];
    option_sets_mptcp_is_refused_and_found: case_b, "sets-mptcp" => ["outbound/no-attempts"];
    option_joins_group_is_refused_and_found: case_a, "joins-group" => ["outbound/no-attempts"];
    option_joins_source_group_is_refused_and_found: case_b, "joins-source-group" => ["outbound/no-attempts"];
    option_joins_any_group_is_refused_and_found: case_a, "joins-any-group" => ["outbound/no-attempts"];
    option_joins_ipv6_group_is_refused_and_found: case_b, "joins-ipv6-group" => ["outbound/no-attempts"];
    option_joins_any_ipv6_group_is_refused_and_found: case_a, "joins-any-ipv6-group" => ["outbound/no-attempts"];
    option_that_is_unknown_is_refused_and_no_attempt: case_b, "sets-unknown-option" => [];
}

/// Runs case B with the reference profile plus these destinations.
fn expecting(destinations: &[&str], deviation: &str) -> Done {
    let rule = |destination: &&str| {
        format!("[[attempts]]\ndestination = \"{destination}\"\nreason = \"known\"\n")
    };
    let rules: String = destinations.iter().map(rule).collect();
    Run::case_b().knowing(&rules).deviating(deviation).json()
}

/// An expected destination of the profile explains only its own traffic.
#[test]
fn datagram_beside_expected_calls_is_found() {
    needs_sandbox!();
    for (destination, deviation) in [
        ("name:api.example.com", "asks-eight-times-in-one-call"),
        ("unix:/run/helper", "connects-to-a-unix-socket"),
    ] {
        expecting(&[destination], deviation).assert_passed();
        let both = format!("{deviation}+sends-over-a-connected-socket");
        expecting(&[destination], &both).assert_fails(&["outbound/no-attempts"]);
    }
}

#[test]
fn attempts_that_the_profile_names_are_no_finding() {
    needs_sandbox!();
    for (destination, deviation) in [
        ("inet:192.0.2.1:443", "connects-elsewhere"),
        ("inet:192.0.2.1:*", "sends-a-datagram"),
        ("unix:/run/helper", "connects-to-a-unix-socket"),
        ("name:api.example.com", "asks-for-a-name"),
    ] {
        expecting(&[destination], deviation).assert_passed();
    }
}

#[test]
fn connection_to_the_resolver_is_listed_once() {
    needs_sandbox!();
    let done = Run::case_b().deviating("connects-to-the-resolver").json();
    let found = &done.check("outbound/no-attempts")["found"];
    assert_eq!(
        found,
        "inet:127.0.0.1:53 by /client/agent-cli, denied ECONNREFUSED, 1 time"
    );
}

#[test]
fn ordinary_queries_for_a_name_that_the_profile_names_are_no_finding() {
    needs_sandbox!();
    for deviation in ["asks-plainly", "asks-with-ad", "asks-with-opt"] {
        expecting(&["name:api.example.com"], deviation).assert_passed();
    }
}

#[test]
fn an_odd_query_is_found_for_a_name_that_the_profile_names() {
    needs_sandbox!();
    for (deviation, odd) in [
        (
            "bytes-behind-the-question",
            "1 bytes after the question, 34 bytes",
        ),
        ("asks-with-a-cookie", "12 bytes of EDNS options, 56 bytes"),
        ("asks-in-another-class", "class 3, 33 bytes"),
        ("asks-with-another-opcode", "opcode 2, 33 bytes"),
        ("asks-with-a-reserved-bit", "reserved bit, 33 bytes"),
        ("asks-with-a-response-code", "response code 3, 33 bytes"),
        ("asks-with-answers", "1 answer records, 33 bytes"),
        ("asks-twice-in-one", "2 questions, 54 bytes"),
    ] {
        let done = expecting(&["name:api.example.com"], deviation);
        done.assert_fails(&["outbound/no-attempts"]);
        let name = &done.report["evidence"]["names"][0];
        assert_eq!(
            (&name["odd"], &name["expected"]),
            (&odd.into(), &Value::Null)
        );
    }
    let done = expecting(&["name:api.example.com"], "key-behind-the-question");
    done.assert_fails(&["secrets/credential-not-written", "outbound/no-attempts"]);
    let found = done.check("secrets/credential-not-written")["found"].to_string();
    assert!(found.contains("after the name api.example.com"), "{found}");
    for deviation in ["answers-the-resolver", "bytes-behind-the-question"] {
        let run = Run::case_b().as_ordinary_user().deviating(deviation);
        run.json().assert_fails(&["outbound/no-attempts"]);
    }
}

#[test]
fn a_neighbour_of_what_the_profile_names_is_found() {
    needs_sandbox!();
    let destinations = [
        "inet:192.0.2.1:444",
        "inet:192.0.2.2:*",
        "inet:127.0.0.1:*",
        "unix:/run/helper2",
        "name:example.com",
    ];
    for deviation in [
        "connects-elsewhere",
        "connects-to-a-unix-socket",
        "listens",
        "asks-for-a-name",
    ] {
        let done = expecting(&destinations[..], deviation);
        // The resolver is allowed by its address here; the name is not.
        done.assert_fails(&["outbound/no-attempts"]);
    }
}

/// If bind(2) is refused, no socket listens; the report counts the sockets whose purpose is unknown.
#[test]
fn listener_without_bind_is_told_as_not_known() {
    needs_sandbox!();
    let told_by = |run: Run| {
        let done = run.on_a_host_without(CONTAINER).json();
        done.assert_passed();
        let message = done.check("outbound/no-attempts")["message"].clone();
        let not_proved = done.report["isolation"]["not_proved"].to_string();
        (message.as_str().unwrap().to_owned(), not_proved)
    };
    let told =
        "Unknown purpose of sockets, refused at bind(2) before they listened or connected: 1.";
    let (message, not_proved) = told_by(Run::case_b().deviating("listens"));
    assert!(message.ends_with(told), "{message}");
    assert!(not_proved.contains(told), "{not_proved}");
    // The positive twin: a client without bind(2) leaves no such question open.
    let (message, not_proved) = told_by(Run::case_b().client(fixture("deviant-client")));
    assert!(!message.contains("bind(2)"), "{message}");
    assert!(!not_proved.contains("bind(2)"), "{not_proved}");
}

#[test]
fn an_attempt_is_reported_with_who_made_it_and_what_became_of_it() {
    needs_sandbox!();
    let done = Run::case_b().deviating("connects-elsewhere").json();
    let attempts = done.report["evidence"]["attempts"].as_array().unwrap();
    let attempts: Vec<_> = attempts
        .iter()
        .filter(|attempt| attempt["kind"] == "attempt")
        .collect();
    let [attempt] = attempts.as_slice() else {
        panic!("{attempts:?}")
    };
    for (key, value) in [
        ("syscall", "connect"),
        ("family", "inet"),
        ("address", "192.0.2.1"),
        ("outcome", "denied"),
        ("layer", "supervisor"),
        ("errno", "ENETUNREACH"),
    ] {
        assert_eq!(attempt[key], value, "{key}");
    }
    assert_eq!(
        (&attempt["port"], &attempt["count"]),
        (&443.into(), &1.into())
    );
    let found = &done.check("outbound/no-attempts")["found"];
    assert_eq!(
        found,
        "inet:192.0.2.1:443 by /client/agent-cli, denied ENETUNREACH, 1 time"
    );
}

#[test]
fn the_programs_that_were_started_are_listed_without_the_prompt() {
    needs_sandbox!();
    let done = Run::case_b().deviating("ended-child").json();
    let processes = done.report["evidence"]["processes"].as_array().unwrap();
    let [client, child] = processes.as_slice() else {
        panic!("{processes:?}")
    };
    assert_eq!(child["ppid"], client["pid"]);
    assert_eq!(child["args"][1], "--end");
    let args = client["args"].as_array().unwrap();
    let prompts = args.iter().filter(|arg| arg["sha256"].is_string());
    assert_eq!(prompts.count(), 2, "{args:?}");
    assert!(!done.text.contains("Reply with one short sentence"));
}
