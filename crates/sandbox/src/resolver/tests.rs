//! Resolver on a port of its own, with a runner that reads its messages, or does not.

use std::net::SocketAddr;

use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
use tokio::time::timeout;

use super::*;

const SECRET: &str = "runner-key-0123456789";
const SOON: Duration = Duration::from_secs(5);

/// Resolver on a port of its own, its address, and the runner's end of its socket.
fn resolver() -> (Resolver, SocketAddr, OwnedFd) {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = socket.local_addr().unwrap();
    let (runner, stage) = socketpair(
        AddressFamily::Unix,
        SockType::SeqPacket,
        None,
        SockFlag::SOCK_CLOEXEC,
    )
    .unwrap();
    (
        Resolver::new(socket, stage, SecretScanner::new(SECRET).ok()).unwrap(),
        address,
        runner,
    )
}

fn query(label: &str) -> Vec<u8> {
    let mut query = vec![7, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, label.len() as u8];
    query.extend(label.bytes());
    query.extend([0, 0, 1, 0, 1]);
    query
}

fn receive_one(runner: &OwnedFd) -> Option<FromResolver> {
    message::receive(runner)
        .unwrap()
        .map(|(message, _)| message)
}

/// All messages up to the end: names, number of questions, and number of lost questions.
fn receive_all(runner: &OwnedFd) -> (Vec<String>, u64, Option<u64>) {
    let (mut names, mut total, mut missing) = (Vec::new(), 0, None);
    while let Some(message) = receive_one(runner) {
        match message {
            FromResolver::Asked { asked, count } => {
                names.push(asked.name);
                total += count;
            }
            FromResolver::Ended { unheard, .. } => missing = Some(unheard),
        }
    }
    (names, total, missing)
}

#[test]
fn localhost_is_answered_and_no_question() {
    let mut unreported = Unreported::default();
    let answer = unreported.record(&query("localhost")).unwrap();
    assert!(answer.ends_with(&[127, 0, 0, 1]));
    assert_eq!(unreported.next(), None);
    // A further byte makes the datagram an odd one, which is evidence.
    let odd = [query("localhost"), vec![0]].concat();
    let answer = unreported.record(&odd).unwrap();
    assert!(!answer.ends_with(&[127, 0, 0, 1]));
    assert!(unreported.next().is_some());
}

#[tokio::test]
async fn a_question_is_answered_and_told_at_once() {
    let (mut resolver, address, runner) = resolver();
    let client = tokio::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))
        .await
        .unwrap();
    client.send_to(&query("name"), address).await.unwrap();
    let mut answer = [0; 64];
    tokio::select! {
        never = resolver.run() => match never {},
        length = timeout(SOON, client.recv(&mut answer)) => assert!(length.unwrap().is_ok()),
    }
    assert_eq!(answer[..4], [7, 7, 0x81, 0x83]);
    let asked = Asked {
        name: "name".to_owned(),
        kind: "A".to_owned(),
        odd: None,
    };
    assert_eq!(
        receive_one(&runner),
        Some(FromResolver::Asked { asked, count: 1 })
    );
    resolver.finish().await;
    assert_eq!(receive_all(&runner), (vec![], 0, Some(0)));
}

#[tokio::test]
async fn an_odd_datagram_is_told_apart_and_searched_to_its_last_byte() {
    let (resolver, address, runner) = resolver();
    let client = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let mut long = [query("a"), vec![b'.'; 60_000]].concat();
    let plain = query("a");
    client.send_to(&plain, address).unwrap();
    client.send_to(&long, address).unwrap();
    long.extend(SECRET.bytes());
    client.send_to(&long, address).unwrap();
    resolver.finish().await;
    let mut told = Vec::new();
    while let Some(FromResolver::Asked { asked, count }) = receive_one(&runner) {
        assert_eq!((asked.name.as_str(), count), ("a", 1));
        told.push(asked.odd.map(|odd| (odd.what, odd.credential)));
    }
    let behind = |bytes: usize| {
        format!(
            "{bytes} bytes after the question, {} bytes",
            bytes + plain.len()
        )
    };
    let holding = 60_000 + SECRET.len();
    assert_eq!(
        told,
        [
            None,
            Some((behind(60_000), None)),
            Some((behind(holding), Some("as written".to_owned()))),
        ]
    );
}

#[tokio::test]
async fn what_has_arrived_is_told_at_the_end_and_what_is_no_query_as_well() {
    let (resolver, address, runner) = resolver();
    let client = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    for datagram in [query("a"), query("b"), query("a"), b"nothing".to_vec()] {
        client.send_to(&datagram, address).unwrap();
    }
    resolver.finish().await;
    let names = ["", "a", "b"].map(str::to_owned).to_vec();
    assert_eq!(receive_all(&runner), (names, 4, Some(0)));
}

#[tokio::test]
async fn a_runner_that_does_not_listen_is_not_waited_for_and_hears_every_count_later() {
    let (mut resolver, _, runner) = resolver();
    for _ in 0..20 {
        for name in 0..100 {
            resolver.unreported.record(&query(&name.to_string()));
            resolver.report();
        }
    }
    let listener = std::thread::spawn(move || receive_all(&runner));
    resolver.finish().await;
    let (_, total, missing) = listener.join().unwrap();
    assert_eq!((total, missing), (2000, Some(0)));
}

#[tokio::test]
async fn names_beyond_the_bound_are_counted() {
    let (mut resolver, _, runner) = resolver();
    for name in 0..MAX_QUESTIONS + 3 {
        resolver.unreported.record(&query(&name.to_string()));
    }
    let listener = std::thread::spawn(move || receive_all(&runner));
    resolver.finish().await;
    let (names, _, missing) = listener.join().unwrap();
    assert_eq!((names.len(), missing), (MAX_QUESTIONS, Some(3)));
}

#[tokio::test]
async fn datagrams_that_the_kernel_dropped_are_counted() {
    let (resolver, address, runner) = resolver();
    let client = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    for _ in 0..2000 {
        client.send_to(&query("flood"), address).unwrap();
    }
    resolver.finish().await;
    let (_, total, missing) = receive_all(&runner);
    assert!(missing > Some(0));
    assert_eq!(total + missing.unwrap(), 2000);
}

#[tokio::test]
async fn datagrams_of_one_call_are_heard_apart() {
    let (mut resolver, address, runner) = resolver();
    let client = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let one = query("name");
    let length = i32::try_from(one.len()).unwrap();
    setsockopt(&client, sockopt::UdpGsoSegment, &length).unwrap();
    client.send_to(&one.repeat(4), address).unwrap();
    client.set_nonblocking(true).unwrap();
    let client = tokio::net::UdpSocket::from_std(client).unwrap();
    let answers = async {
        let mut answer = [0; 64];
        for _ in 0..4 {
            client.recv(&mut answer).await.unwrap();
        }
    };
    tokio::select! {
        never = resolver.run() => match never {},
        heard = timeout(SOON, answers) => heard.unwrap(),
    }
    // The kernel counts one call and four answers.
    assert_eq!(resolver.unreported.datagrams, 1 + 4);
    resolver.finish().await;
    assert_eq!(receive_all(&runner), (vec!["name".to_owned()], 4, Some(0)));
}
