//! One attempt of each class: the errno, the entries of the ledger, and the arrivals with and without the sandbox.
//!
//! The attempts are the fixture's own, so that a fault of the table of probes cannot hide here. A refused call by which
//! nothing arrives, such as socket(2) of another family, is a row of that table only.

use super::world::{sandboxed, without_sandbox};
use super::{
    Entry, allowed, assert_judged, denied, denied_socket, entries, needs_outside, one, plain,
    said_inside,
};
use crate::kit::Run;

const FAR: &str = "192.0.2.2";
const FAR_6: &str = "2001:db8::2";

/// A class, with its expected results.
struct Class {
    name: &'static str,
    /// Expected result inside.
    inside: &'static str,
    entries: fn() -> Vec<Entry>,
    /// Expected result without the sandbox, and the expected arrivals.
    outside: Option<(&'static str, &'static str)>,
}

impl Class {
    #[track_caller]
    fn assert_reaches_the_world_without_the_sandbox(&self, user: &Run) {
        let Some((said, key)) = self.outside else {
            return;
        };
        let (found, arrived) = without_sandbox(self.name, user);
        assert_eq!(found, one(said), "{}", self.name);
        assert!(arrived.get(key) >= Some(&1), "{}: {arrived:?}", self.name);
    }

    #[track_caller]
    fn assert_leads_nowhere(&self, run: Run) {
        let (done, arrived) = sandboxed(run, self.name);
        assert!(arrived.is_empty(), "{}: {arrived:?}", self.name);
        assert_eq!(said_inside(&done, self.name), one(self.inside));
        assert_eq!(entries(&done, "attempt"), (self.entries)(), "{}", self.name);
        assert_judged(&done, true);
    }
}

/// One test for each line, `name: "class" => "errno inside", [entries];`, with `without the sandbox "result" and
/// "arrivals"` if anything can arrive.
macro_rules! classes {
    ($($test:ident: $name:literal => $inside:literal, [$($entry:expr),*]
        $(, without the sandbox $said:literal and $key:literal)?;)*) => {
        const CLASSES: &[Class] = &[$(Class {
            name: $name,
            inside: $inside,
            entries: || vec![$($entry),*],
            outside: classes!(@ $($said, $key)?),
        }),*];
        $(
            #[test]
            fn $test() {
                needs_outside!();
                let class = CLASSES.iter().find(|class| class.name == $name).unwrap();
                class.assert_reaches_the_world_without_the_sandbox(&Run::case_b());
                class.assert_leads_nowhere(Run::case_b());
            }
        )*
    };
    (@) => { None };
    (@ $said:literal, $key:literal) => { Some(($said, $key)) };
}

classes! {
    a_tcp_connection_leads_nowhere: "tcp-connect" => "ENETUNREACH",
        [denied("connect", "inet", FAR, 7000)],
        without the sandbox "ok" and "tcp 192.0.2.2:7000";
    a_connection_that_does_not_wait_leads_nowhere: "tcp-connect-nonblocking" => "ENETUNREACH",
        [denied("connect", "inet", FAR, 7000)],
        without the sandbox "EINPROGRESS" and "tcp 192.0.2.2:7000";
    data_that_opens_its_own_connection_leads_nowhere: "tcp-fast-open" => "ENETUNREACH",
        [denied("sendto", "inet", FAR, 7000)],
        without the sandbox "ok" and "tcp 192.0.2.2:7000";
    a_connection_over_ipv6_leads_nowhere: "tcp-ipv6" => "ENETUNREACH",
        [denied("connect", "inet6", FAR_6, 7000)],
        without the sandbox "ok" and "tcp [2001:db8::2]:7000";
    a_mapped_address_leads_nowhere: "tcp-mapped" => "ENETUNREACH",
        [denied("connect", "inet6", "::ffff:192.0.2.2", 7000)],
        without the sandbox "ok" and "tcp 192.0.2.2:7000";
    a_datagram_leads_nowhere: "udp-send-to" => "ENETUNREACH",
        [denied("sendto", "inet", FAR, 7001)],
        without the sandbox "ok" and "udp 192.0.2.2:7001";
    a_connected_datagram_leads_nowhere: "udp-connect-and-send" => "ENETUNREACH",
        [denied("connect", "inet", FAR, 7001)],
        without the sandbox "ok" and "udp 192.0.2.2:7001";
    a_message_with_an_address_leads_nowhere: "udp-message" => "ENETUNREACH",
        [denied("sendmsg", "inet", FAR, 7001)],
        without the sandbox "ok" and "udp 192.0.2.2:7001";
    one_message_that_leads_out_stops_all_of_a_call: "udp-messages" => "ENETUNREACH",
        [
            denied("sendmmsg", "inet", "127.0.0.1", 4001),
            denied("sendmmsg", "inet", "127.0.0.1", 4002),
            denied("sendmmsg", "inet", FAR, 7001)
        ],
        without the sandbox "ok" and "udp 192.0.2.2:7001";
    a_datagram_without_a_family_is_known_by_its_address: "udp-without-family" => "ENETUNREACH",
        [denied("sendto", "inet", FAR, 7001)],
        without the sandbox "ok" and "udp 192.0.2.2:7001";
    a_message_without_a_family_is_known_by_its_address: "udp-message-without-family" => "ENETUNREACH",
        [denied("sendmsg", "inet", FAR, 7001)],
        without the sandbox "ok" and "udp 192.0.2.2:7001";
    a_port_that_is_bound_without_a_family_is_an_attempt: "bind-without-family" => "ok",
        [allowed("bind", "inet", "0.0.0.0", Some(8080))];
    a_datagram_over_ipv6_leads_nowhere: "udp-ipv6" => "ENETUNREACH",
        [denied("sendto", "inet6", FAR_6, 7001)],
        without the sandbox "ok" and "udp [2001:db8::2]:7001";
    a_broadcast_leads_nowhere: "udp-broadcast" => "ENETUNREACH",
        [denied("sendto", "inet", "255.255.255.255", 7001)],
        without the sandbox "ok" and "udp 255.255.255.255:7001";
    a_multicast_leads_nowhere: "udp-multicast" => "ENETUNREACH",
        [denied("sendto", "inet", "224.0.0.251", 5353)],
        without the sandbox "ok" and "udp 224.0.0.251:5353";
    a_question_to_another_server_leads_nowhere: "dns-elsewhere" => "ENETUNREACH",
        [denied("sendto", "inet", FAR, 53)],
        without the sandbox "ok" and "udp 192.0.2.2:53";
    a_raw_socket_does_not_exist: "raw-socket" => "EPERM",
        [denied_socket("inet", "raw", 1, "EPERM")],
        without the sandbox "ok" and "protocol 1 192.0.2.2";
    a_packet_socket_does_not_exist: "packet-socket" => "EAFNOSUPPORT",
        [denied_socket("packet", "dgram", 0xB588, "EAFNOSUPPORT")],
        without the sandbox "ok" and "ethernet 0x88b5";
    an_abstract_name_of_the_namespace_around_leads_nowhere: "unix-abstract" => "ECONNREFUSED",
        [allowed("connect", "unix", "@outside-world", None)],
        without the sandbox "ok" and "unix @outside-world";
    a_port_of_ones_own_is_an_attempt: "listen-fixed" => "ok",
        [allowed("bind", "inet", "0.0.0.0", Some(8080)), plain("listen")];
    a_port_of_the_kernels_choice_is_an_attempt_once_it_listens: "listen-anywhere" => "ok",
        [plain("listen")];
    a_question_to_the_resolver_is_a_name_and_no_attempt: "dns-resolver" => "ok", [];
    a_connection_of_a_child_leads_nowhere: "child" => "ENETUNREACH",
        [denied("connect", "inet", FAR, 7000)],
        without the sandbox "ok" and "tcp 192.0.2.2:7000";
    a_connection_of_a_thread_leads_nowhere: "thread" => "ENETUNREACH",
        [denied("connect", "inet", FAR, 7000)],
        without the sandbox "ok" and "tcp 192.0.2.2:7000";
    a_process_that_may_not_be_read_is_read_all_the_same: "undumpable" => "ENETUNREACH",
        [denied("connect", "inet", FAR, 7000)],
        without the sandbox "ok" and "tcp 192.0.2.2:7000";
    an_address_at_the_end_of_a_page_is_read: "address-at-page-end" => "ENETUNREACH",
        [denied("connect", "inet", FAR, 7000)],
        without the sandbox "ok" and "tcp 192.0.2.2:7000";
}

#[test]
fn every_class_leads_nowhere_for_an_ordinary_user() {
    needs_outside!();
    for class in CLASSES {
        class.assert_leads_nowhere(Run::case_b().as_ordinary_user());
    }
}

#[test]
fn the_world_can_be_reached_by_an_ordinary_user_without_the_sandbox() {
    needs_outside!();
    let reached = ["tcp-connect", "tcp-ipv6", "udp-broadcast", "raw-socket"];
    for class in CLASSES.iter().filter(|class| reached.contains(&class.name)) {
        let user = Run::case_b().as_ordinary_user();
        class.assert_reaches_the_world_without_the_sandbox(&user);
    }
}
