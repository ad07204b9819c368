//! The end of a run whose connections outlive the client.

use std::io;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};

use model::journal::{End, Entry};
use stub::{Held, Sockets};

use crate::kit::{Plan, Run, post};

/// Answers the listings in turn, the last one for ever, and sends a message for each.
#[derive(Debug)]
struct Scripted {
    listings: Mutex<Vec<Vec<Held>>>,
    listed: Sender<()>,
    counted: Option<u64>,
}

impl Sockets for Scripted {
    fn list_held(&self, _: SocketAddr) -> io::Result<Vec<Held>> {
        // The test may have ended its side.
        let _ = self.listed.send(());
        let mut listings = self.listings.lock().unwrap();
        Ok(if listings.len() > 1 {
            listings.remove(0)
        } else {
            listings[0].clone()
        })
    }

    fn count(&self) -> Option<u64> {
        self.counted
    }
}

/// Held bytes of a client that nobody knows.
fn held(bytes: u64) -> Vec<Held> {
    let peer = "127.0.0.1:1".parse().unwrap();
    vec![Held { peer, bytes }]
}

fn start(listings: Vec<Vec<Held>>, counted: Option<u64>) -> (Run, Receiver<()>) {
    let (listed, wait) = channel();
    let sockets = Scripted {
        listings: Mutex::new(listings),
        listed,
        counted,
    };
    let plan = Plan {
        sockets: Some(Box::new(sockets)),
        ..Plan::default()
    };
    (plan.start_with_barrier(), wait)
}

#[test]
fn bytes_that_come_while_the_kernel_holds_some_are_read_to_the_end() {
    let (mut run, listed) = start(vec![held(1), Vec::new()], None);
    let mut client = run.connect();
    client.send("P");
    run.wait_for_began();
    let rest = std::thread::spawn(move || {
        // The client continues only after the run has listed the held bytes.
        listed.recv().unwrap();
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
    let (mut run, _listed) = start(vec![held(839)], None);
    let mut client = run.connect();
    client.send("P");
    run.wait_for_began();
    let journal = run.finish();
    assert_eq!(journal.ends(), [(1, 1, End::Open)]);
    let story = journal.story();
    assert!(story.contains(&"839 bytes held".to_owned()), "{story:?}");
}

#[test]
fn sockets_are_listed_only_if_there_are_more_than_the_servers_own() {
    // The listening socket and the connection.
    for (counted, is_listed) in [(2, false), (3, true)] {
        let (mut run, listed) = start(vec![Vec::new()], Some(counted));
        let mut client = run.connect();
        client.send("P");
        run.wait_for_began();
        run.finish();
        assert_eq!(listed.try_recv().is_ok(), is_listed, "{counted} sockets");
    }
}

#[test]
fn a_connection_that_was_reset_leaves_room_for_no_other_socket() {
    // The listening socket, and one that is not the server's: the only connection has been reset.
    let (mut run, listed) = start(vec![held(1), Vec::new()], Some(2));
    let client = run.connect();
    run.wait_for(|entry| matches!(entry, Entry::Accepted { .. }));
    client.reset();
    run.finish();
    assert!(listed.try_recv().is_ok());
}
