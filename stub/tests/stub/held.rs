//! The end of a run whose connections outlive the client.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;

use model::journal::{End, Entry};
use stub::{Held, HeldBytes};

use crate::kit::{Plan, post};

#[test]
fn bytes_that_come_while_the_kernel_holds_some_are_read_to_the_end() {
    let (asked, wait) = channel();
    let is_first = AtomicBool::new(true);
    let held = HeldBytes::new(move |_| {
        // The client continues only after the run has listed the held bytes.
        if is_first.swap(false, Ordering::Relaxed) {
            asked.send(()).unwrap();
            let peer = "127.0.0.1:1".parse().unwrap();
            return Ok(vec![Held { peer, bytes: 1 }]);
        }
        Ok(Vec::new())
    });
    let plan = Plan {
        held: Some(held),
        ..Plan::default()
    };
    let mut run = plan.start_with_barrier();
    let mut client = run.connect();
    client.send("P");
    run.wait_for_began();
    let rest = std::thread::spawn(move || {
        wait.recv().unwrap();
        client.send(&post()[1..]);
    });
    let journal = run.finish();
    rest.join().unwrap();
    assert_eq!(journal.ends(), [(post().len() as u64, 0, End::Closed)]);
    let is_held = |entry: &Entry| matches!(entry, Entry::Held { .. });
    assert!(!journal.entries.iter().any(is_held));
}

#[test]
fn bytes_that_the_kernel_keeps_are_journaled() {
    let unknown = "127.0.0.1:1".parse().unwrap();
    let plan = Plan {
        held: Some(HeldBytes::new(move |_| {
            Ok(vec![Held {
                peer: unknown,
                bytes: 839,
            }])
        })),
        ..Plan::default()
    };
    let mut run = plan.start_with_barrier();
    let mut client = run.connect();
    client.send("P");
    run.wait_for_began();
    let journal = run.finish();
    assert_eq!(journal.ends(), [(1, 1, End::Open)]);
    let story = journal.story();
    assert!(story.contains(&"839 bytes held".to_owned()), "{story:?}");
}
