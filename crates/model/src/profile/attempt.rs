//! Expected attempts of a profile, and the spelling of their destinations.
//!
//! One destination has one spelling, so equal rules are equal texts, and a rule reads as in a report:
//!
//! | text | allows |
//! |---|---|
//! | `unix:/var/run/nscd/socket` | a connect or an addressed send to this path |
//! | `unix:@name` | a connect or an addressed send to this abstract name |
//! | `inet:192.0.2.1:443` | a connect or an addressed send to this IPv4 address and port, also as a mapped IPv6 address |
//! | `inet6:[2001:db8::1]:443` | a connect or an addressed send to this IPv6 address and port |
//! | `inet:127.0.0.1:*` | a connect or an addressed send to any port of this address |
//! | `name:api.example.com` | a question to the resolver for this name, with any record type |
//!
//! `*` for ports is the only pattern. A rule makes an attempt expected; it does not let it out of the sandbox.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use thiserror::Error;

/// Largest `sun_path` of unix(7) in bytes, without the final NUL or the leading NUL of an abstract name.
const MAX_UNIX_BYTES: usize = 107;
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
    /// A name asked of the resolver, in lower case without the final dot.
    Name(String),
}

/// Ports of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ports {
    /// All ports.
    Any,
    /// One port, never 0.
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
    /// The text before the first colon is not one of the four words.
    #[error("it does not begin with unix:, inet:, inet6: or name:")]
    Family,
    /// The text is not a plain absolute path or `@` and a name, or it is too long.
    #[error("not a plain absolute path or @NAME of at most {MAX_UNIX_BYTES} bytes")]
    Unix,
    /// The text is not an IPv4 address in its usual form and a port.
    #[error("not an IPv4 address and a port")]
    Inet,
    /// The text is not an IPv6 address in its shortest form and a port, or it is an IPv4-mapped address.
    #[error("not an IPv6 address in brackets, in its shortest form, and a port")]
    Inet6,
    /// The port is neither 1 to 65535 nor `*`.
    #[error("the port is not a number from 1 to 65535 or *")]
    Port,
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
            Some(("name", name)) => host(name),
            Some(_) | None => Err(DestinationError::Family),
        }
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(out, "unix:{path}"),
            Self::Inet(IpAddr::V4(address), ports) => write!(out, "inet:{address}:{ports}"),
            Self::Inet(IpAddr::V6(address), ports) => write!(out, "inet6:[{address}]:{ports}"),
            Self::Name(name) => write!(out, "name:{name}"),
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

fn unix(path: &str) -> Result<Destination, DestinationError> {
    let is_plain = match (path.strip_prefix('/'), path.strip_prefix('@')) {
        (Some(rest), _) => rest.split('/').all(|part| !matches!(part, "" | "." | "..")),
        (None, Some(name)) => !name.is_empty(),
        (None, None) => false,
    };
    if !is_plain || path.len() > MAX_UNIX_BYTES || path.chars().any(char::is_control) {
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
    let port: u16 = text.parse().map_err(|_| DestinationError::Port)?;
    // `parse` also accepts `+443` and `0443`.
    if port == 0 || port.to_string() != text {
        return Err(DestinationError::Port);
    }
    Ok(Ports::Only(port))
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
        ] {
            assert_eq!(parsed(text), Ok(destination.clone()));
            assert_eq!(destination.to_string(), text);
        }
    }

    #[test]
    fn anything_else_is_refused_with_its_reason() {
        use DestinationError::{Family, Inet, Inet6, Name, Port, Unix};
        for (texts, reason) in [
            (
                &["", "unix", "udp:192.0.2.1:53", "UNIX:/a", "*"][..],
                Family,
            ),
            (
                &[
                    "unix:",
                    "unix:a",
                    "unix:/",
                    "unix:/a/",
                    "unix://a",
                    "unix:/a/../b",
                    "unix:@",
                    "unix:/a\0b",
                ],
                Unix,
            ),
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
                    "inet:192.0.2.1:0",
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
        assert_eq!(parsed(&format!("unix:/{}", "a".repeat(107))), Err(Unix));
        assert_eq!(parsed(&format!("name:{}", "a".repeat(64))), Err(Name));
    }

    proptest! {
        #[test]
        fn what_is_read_has_one_spelling(text in "(unix|inet|inet6|name):[\\[\\]@/.:*a-f0-9-]{0,24}") {
            if let Ok(destination) = parsed(&text) {
                prop_assert_eq!(destination.to_string(), text);
            }
        }
    }
}
