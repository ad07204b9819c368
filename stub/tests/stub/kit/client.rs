//! A client that sends raw bytes, and the answers that it reads.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};

use serde_json::Value;

use nix::sys::socket::{setsockopt, sockopt};

/// Client that sends raw bytes.
pub(crate) struct Client {
    pub(crate) stream: TcpStream,
}

/// Answer with its decoded body.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let line = |line: &'_ str| {
            line.split_once(": ")
                .filter(|(key, _)| key.eq_ignore_ascii_case(name))
                .map(|(key, _)| key.len() + 2)
        };
        self.head
            .lines()
            .find_map(|text| line(text).map(|at| &text[at..]))
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// Returns the events of a stream: name and data.
    pub(crate) fn events(&self) -> Vec<(String, Value)> {
        let event = |block: &str| {
            let (name, data) = block.split_once('\n').unwrap();
            let data = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
            (name.strip_prefix("event: ").unwrap().to_owned(), data)
        };
        assert!(self.body.ends_with("\n\n"));
        self.body.trim_end().split("\n\n").map(event).collect()
    }
}

impl Client {
    /// Closes the connection by a reset.
    pub(crate) fn reset(self) {
        let linger = nix::libc::linger {
            l_onoff: 1,
            l_linger: 0,
        };
        setsockopt(&self.stream, sockopt::Linger, &linger).unwrap();
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        self.stream.write_all(bytes.as_ref()).unwrap();
        self
    }

    pub(crate) fn end_sending(&mut self) -> &mut Self {
        self.stream.shutdown(Shutdown::Write).unwrap();
        self
    }

    /// Reads to the end of the connection.
    pub(crate) fn rest(&mut self) -> String {
        let mut bytes = Vec::new();
        self.stream.read_to_end(&mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    /// Asserts that no bytes have arrived.
    pub(crate) fn assert_nothing(&mut self) {
        self.stream.set_nonblocking(true).unwrap();
        let error = self.stream.read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        self.stream.set_nonblocking(false).unwrap();
    }

    /// Reads the next answer to a request other than HEAD.
    pub(crate) fn answer(&mut self) -> Answer {
        let answer = self.head_answer();
        let length = answer
            .header("content-length")
            .map(|length| length.parse::<usize>().unwrap());
        let body = match length {
            Some(length) => self.exactly(length),
            None if answer.header("transfer-encoding").is_some() => self.chunks(),
            None => self.rest().into_bytes(),
        };
        Answer {
            body: String::from_utf8(body).unwrap(),
            ..answer
        }
    }

    /// Reads the head of the next answer.
    pub(crate) fn head_answer(&mut self) -> Answer {
        let head = self.until("\r\n\r\n");
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer {
            status,
            head,
            body: String::new(),
        }
    }

    fn chunks(&mut self) -> Vec<u8> {
        self.pieces().concat()
    }

    /// Reads the chunks of a body, one element for each.
    pub(crate) fn pieces(&mut self) -> Vec<Vec<u8>> {
        let mut pieces = Vec::new();
        loop {
            let size = usize::from_str_radix(self.until("\r\n").trim_end(), 16).unwrap();
            pieces.push(self.exactly(size));
            assert_eq!(self.exactly(2), b"\r\n");
            if size == 0 {
                pieces.pop();
                return pieces;
            }
        }
    }

    fn exactly(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.stream.read_exact(&mut bytes).unwrap();
        bytes
    }

    fn until(&mut self, mark: &str) -> String {
        let mut bytes = Vec::new();
        while !bytes.ends_with(mark.as_bytes()) {
            bytes.extend(self.exactly(1));
        }
        String::from_utf8(bytes).unwrap()
    }
}
