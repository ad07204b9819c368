//! Expected attempts of a profile, and the spelling of their destinations.
//!
//! One destination has one spelling, so equal rules are equal texts, and a rule reads as in a report
//! ([`Attempt::rule`](crate::evidence::Attempt::rule)). The reference of policy files lists the forms.
//!
//! `*` for ports is the only pattern. A rule makes an attempt expected; it does not let it out of the sandbox.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use thiserror::Error;

use crate::escape::visible;

/// Largest `sun_path` of unix(7), 108 bytes, each escaped as `\u{NN}`, and the `@` of an abstract name.
const MAX_UNIX_BYTES: usize = 108 * 6 + 1;
/// Longest host name, and longest label in it, in bytes (RFC 1035, section 2.3.4).
const MAX_NAME_BYTES: usize = 253;
const MAX_LABEL_BYTES: usize = 63;

/// An attempt that the client is known to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedAttempt {
    /// Destination of the attempt.
    pub destination: Destination,
    /// Reason why the attempt is expected.
    pub reason: String,
}

/// Destination of an expected attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// Path of a socket, or its abstract name after `@`, as in [`crate::evidence::Attempt::address`].
    Unix(String),
    /// An IPv4 or IPv6 address, never an IPv4-mapped one, and its ports.
    Inet(IpAddr, Ports),
    /// Port of a netlink(7) socket; 0 is the kernel.
    Netlink(u32),
    /// A name asked of the resolver, in lower case without the final dot.
    Name(String),
    /// Address and ports of bind(2).
    Bind(IpAddr, Ports),
    /// A call without such a destination, with its parameters, as in [`crate::evidence::Attempt::rule`].
    Call(String),
}

/// Ports of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ports {
    /// All ports.
    Any,
    /// One port. Port 0 occurs too: libc connects datagram sockets to it, to choose among addresses.
    Only(u16),
}

impl Ports {
    /// Returns true if the rule includes this port.
    pub fn include(self, port: u16) -> bool {
        match self {
            Self::Any => true,
            Self::Only(only) => only == port,
        }
    }
}

/// Reason why a text is not a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DestinationError {
    /// The text begins with none of the known words.
    #[error("it does not begin with unix:, inet:, inet6:, netlink:, name: or a call")]
    Family,
    /// The text is empty, too long, or has characters that reports escape.
    #[error("not a path or @NAME of at most {MAX_UNIX_BYTES} bytes")]
    Unix,
    /// The text is not an IPv4 address in its usual form and a port.
    #[error("not an IPv4 address and a port")]
    Inet,
    /// The text is not an IPv6 address in its shortest form and a port, or it is an IPv4-mapped address.
    #[error("not an IPv6 address in brackets, in its shortest form, and a port")]
    Inet6,
    /// The port is neither 0 to 65535 nor `*`.
    #[error("the port is not a number from 0 to 65535 or *")]
    Port,
    /// The text is not the number of a netlink port.
    #[error("not a netlink port")]
    Netlink,
    /// The call has no such parameters.
    #[error("not the parameters that a report shows for this call")]
    Call,
    /// The text is not a host name in lower case.
    #[error("not a host name in lower case, without a final dot")]
    Name,
}

impl FromStr for Destination {
    type Err = DestinationError;

    fn from_str(text: &str) -> Result<Self, DestinationError> {
        match text.split_once(':') {
            Some(("unix", path)) => unix(path),
            Some(("inet", rest)) => inet(rest),
            Some(("inet6", rest)) => inet6(rest),
            Some(("netlink", port)) => whole_number(port)
                .map(Self::Netlink)
                .ok_or(DestinationError::Netlink),
            Some(("name", name)) => host(name),
            Some(("bind inet", rest)) => inet(rest).map(to_bind),
            Some(("bind inet6", rest)) => inet6(rest).map(to_bind),
            Some(_) | None => call(text),
        }
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(out, "unix:{path}"),
            Self::Inet(IpAddr::V4(address), ports) => write!(out, "inet:{address}:{ports}"),
            Self::Inet(IpAddr::V6(address), ports) => write!(out, "inet6:[{address}]:{ports}"),
            Self::Netlink(port) => write!(out, "netlink:{port}"),
            Self::Name(name) => write!(out, "name:{name}"),
            Self::Bind(address, ports) => {
                write!(out, "bind {}", Self::Inet(*address, *ports))
            }
            Self::Call(call) => out.write_str(call),
        }
    }
}

impl fmt::Display for Ports {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => out.write_str("*"),
            Self::Only(port) => write!(out, "{port}"),
        }
    }
}

/// Parses a path or name as the ledger has it: a client also connects to relative and unusual paths.
fn unix(path: &str) -> Result<Destination, DestinationError> {
    if path.is_empty() || path.len() > MAX_UNIX_BYTES || visible(path) != path {
        return Err(DestinationError::Unix);
    }
    Ok(Destination::Unix(path.to_owned()))
}

fn inet(rest: &str) -> Result<Destination, DestinationError> {
    let (address, port) = rest.split_once(':').ok_or(DestinationError::Inet)?;
    let address: Ipv4Addr = address.parse().map_err(|_| DestinationError::Inet)?;
    Ok(Destination::Inet(address.into(), ports(port)?))
}

fn inet6(rest: &str) -> Result<Destination, DestinationError> {
    let (text, port) = rest
        .strip_prefix('[')
        .and_then(|rest| rest.split_once("]:"))
        .ok_or(DestinationError::Inet6)?;
    let address: Ipv6Addr = text.parse().map_err(|_| DestinationError::Inet6)?;
    // An address has several spellings (RFC 5952), and an IPv4-mapped address is an IPv4 address.
    if address.to_ipv4_mapped().is_some() || address.to_string() != text {
        return Err(DestinationError::Inet6);
    }
    Ok(Destination::Inet(address.into(), ports(port)?))
}

fn ports(text: &str) -> Result<Ports, DestinationError> {
    if text == "*" {
        return Ok(Ports::Any);
    }
    let port = whole_number(text).ok_or(DestinationError::Port)?;
    Ok(Ports::Only(port))
}

/// Parses a number in its only spelling: `parse` also accepts `+443` and `0443`.
fn whole_number<T: FromStr + ToString>(text: &str) -> Option<T> {
    let number: T = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

fn to_bind(destination: Destination) -> Destination {
    match destination {
        Destination::Inet(address, ports) => Destination::Bind(address, ports),
        other @ (Destination::Unix(_)
        | Destination::Netlink(_)
        | Destination::Name(_)
        | Destination::Bind(..)
        | Destination::Call(_)) => other,
    }
}

/// Parameters of a call in a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Parameters {
    /// No word.
    Nothing,
    /// One word: an option, a family without addresses, a flag, the call of a 32-bit program, or `unreadable`.
    Word,
    /// No word, or one.
    Optional,
    /// Family, type, and `protocol N`.
    Socket,
}

/// Calls that the ledger has as attempts without an address, with their parameters.
const CALLS: &[(&str, Parameters)] = &[
    ("socket", Parameters::Socket),
    ("socketpair", Parameters::Socket),
    ("connect", Parameters::Word),
    ("bind", Parameters::Word),
    ("listen", Parameters::Nothing),
    // A message with MSG_FASTOPEN needs no address.
    ("sendto", Parameters::Optional),
    ("sendmsg", Parameters::Optional),
    ("sendmmsg", Parameters::Optional),
    ("setsockopt", Parameters::Word),
    ("io_uring_setup", Parameters::Nothing),
    ("execve", Parameters::Word),
    ("execveat", Parameters::Word),
    // Interfaces of the kernel for 32-bit programs and x32.
    ("i386", Parameters::Word),
    ("x32", Parameters::Word),
    ("arm", Parameters::Word),
    // A call that the filter's table does not name.
    ("unknown", Parameters::Word),
];

fn call(text: &str) -> Result<Destination, DestinationError> {
    let mut words = text.split(' ');
    let name = words.next().unwrap_or_default();
    let rest: Vec<&str> = words.collect();
    let known = CALLS.iter().find(|(known, _)| *known == name);
    let (_, parameters) = known.ok_or(DestinationError::Family)?;
    let is_word = |word: &str| {
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
        !word.is_empty() && word.chars().all(fits)
    };
    let fits = match (parameters, rest.as_slice()) {
        (Parameters::Nothing | Parameters::Optional, []) => true,
        (Parameters::Word | Parameters::Optional, [word]) => is_word(word),
        (Parameters::Socket, [family, kind, "protocol", number]) => {
            is_word(family) && is_word(kind) && whole_number::<u32>(number).is_some()
        }
        _ => false,
    };
    if !fits {
        return Err(DestinationError::Call);
    }
    Ok(Destination::Call(text.to_owned()))
}

fn host(name: &str) -> Result<Destination, DestinationError> {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
    let is_label = |label: &str| {
        !label.is_empty() && label.len() <= MAX_LABEL_BYTES && label.chars().all(fits)
    };
    if name.len() > MAX_NAME_BYTES || !name.split('.').all(is_label) {
        return Err(DestinationError::Name);
    }
    Ok(Destination::Name(name.to_owned()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parsed(text: &str) -> Result<Destination, DestinationError> {
        text.parse()
    }

    #[test]
    fn each_kind_of_destination_is_read() {
        let unix = |path: &str| Destination::Unix(path.to_owned());
        let inet = |address: &str, ports| Destination::Inet(address.parse().unwrap(), ports);
        for (text, destination) in [
            ("unix:/var/run/nscd/socket", unix("/var/run/nscd/socket")),
            ("unix:@bus:1", unix("@bus:1")),
            ("inet:192.0.2.1:443", inet("192.0.2.1", Ports::Only(443))),
            ("inet:127.0.0.1:*", inet("127.0.0.1", Ports::Any)),
            ("inet6:[::1]:65535", inet("::1", Ports::Only(65535))),
            (
                "name:api.example.com",
                Destination::Name("api.example.com".to_owned()),
            ),
            ("unix:run/a b.sock", unix("run/a b.sock")),
            ("inet:192.0.2.1:0", inet("192.0.2.1", Ports::Only(0))),
            ("netlink:42", Destination::Netlink(42)),
            (
                "bind inet6:[::1]:*",
                Destination::Bind("::1".parse().unwrap(), Ports::Any),
            ),
            ("listen", Destination::Call("listen".to_owned())),
            (
                "socket inet stream protocol 262",
                Destination::Call("socket inet stream protocol 262".to_owned()),
            ),
        ] {
            assert_eq!(parsed(text), Ok(destination.clone()));
            assert_eq!(destination.to_string(), text);
        }
    }

    #[test]
    fn anything_else_is_refused_with_its_reason() {
        use DestinationError::{Call, Family, Inet, Inet6, Name, Netlink, Port, Unix};
        for (texts, reason) in [
            (
                &["", "unix", "udp:192.0.2.1:53", "UNIX:/a", "*", "LISTEN"][..],
                Family,
            ),
            (
                &[
                    "listen 1",
                    "listen ",
                    "setsockopt",
                    "setsockopt A B",
                    "connect",
                    "bind 192.0.2.1:80",
                    "socket packet",
                    "socket packet raw protocol",
                    "socket packet raw protocol 03",
                    "socket packet raw  protocol 3",
                    "io_uring_setup 1",
                ],
                Call,
            ),
            (&["netlink:", "netlink:-1", "netlink:4294967296"], Netlink),
            (&["unix:", "unix:/a\0b", "unix:@a\n"], Unix),
            (
                &[
                    "inet:",
                    "inet:*:443",
                    "inet:192.0.2.1",
                    "inet:192.0.2.01:443",
                    "inet:a.example:443",
                    "inet:[::1]:443",
                ],
                Inet,
            ),
            (
                &[
                    "inet6:::1:443",
                    "inet6:[::1]",
                    "inet6:[0:0::1]:443",
                    "inet6:[::ffff:192.0.2.1]:443",
                    "inet6:[fe80::1%2]:443",
                ],
                Inet6,
            ),
            (
                &[
                    "inet:192.0.2.1:",
                    "bind inet:192.0.2.1:",
                    "inet:192.0.2.1:+443",
                    "inet:192.0.2.1:0443",
                    "inet:192.0.2.1:65536",
                    "inet:192.0.2.1:80-90",
                ],
                Port,
            ),
            (
                &[
                    "name:",
                    "name:A.example",
                    "name:a.example.",
                    "name:*.example",
                    "name:a..b",
                    "name:a b",
                ],
                Name,
            ),
        ] {
            for text in texts {
                assert_eq!(parsed(text), Err(reason), "{text}");
            }
        }
        assert_eq!(parsed(&format!("unix:/{}", "a".repeat(649))), Err(Unix));
        assert_eq!(parsed(&format!("name:{}", "a".repeat(64))), Err(Name));
    }

    proptest! {
        #[test]
        fn what_is_read_has_one_spelling(text in "(unix|inet|inet6|name|netlink|bind inet):[\\[\\]@/.:*a-f0-9-]{0,24}") {
            if let Ok(destination) = parsed(&text) {
                prop_assert_eq!(destination.to_string(), text);
            }
        }
    }
}
