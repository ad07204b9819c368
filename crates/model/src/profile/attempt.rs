//! An attempt that a profile names as no finding, and the spelling of its destination.
//!
//! One destination has one spelling, so that equal rules are equal texts and a rule reads as a report does:
//!
//! | text | allows |
//! |---|---|
//! | `unix:/var/run/nscd/socket` | a connect or an addressed send to this path |
//! | `unix:@name` | the same, to this abstract name |
//! | `inet:192.0.2.1:443` | the same, to this IPv4 address and port, also where it is asked for as a mapped IPv6 one |
//! | `inet6:[2001:db8::1]:443` | the same, to this IPv6 address and port |
//! | `inet:127.0.0.1:*` | the same, to any port of this address |
//! | `name:api.example.com` | asking the resolver for this name, whatever the type of the record |
//!
//! There is no pattern but the one for ports. A rule says what is no finding; it lets nothing out.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use thiserror::Error;

/// Length of `sun_path` in unix(7), without the final NUL or the NUL in front of an abstract name.
const MOST_UNIX_BYTES: usize = 107;
/// Longest name, and longest part of one (RFC 1035, section 2.3.4).
const MOST_NAME_BYTES: usize = 253;
const MOST_LABEL_BYTES: usize = 63;

/// An attempt that the client is known to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedAttempt {
    /// Where it goes.
    pub destination: Destination,
    /// Why it is no finding.
    pub reason: String,
}

/// Where an expected attempt goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// A socket's path, or its abstract name behind `@`, as in [`crate::evidence::Attempt::address`].
    Unix(String),
    /// An address of one of the two internet families; never a mapped one.
    Inet(IpAddr, Ports),
    /// A question to the resolver: lower case, without the final dot.
    Name(String),
}

/// Which ports of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ports {
    /// Every one.
    Any,
    /// This one, never 0.
    Only(u16),
}

impl Ports {
    /// Whether this port is among them.
    pub fn include(self, port: u16) -> bool {
        match self {
            Self::Any => true,
            Self::Only(only) => only == port,
        }
    }
}

/// Why a text is no destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DestinationError {
    /// Not one of the four words in front of the first colon.
    #[error("it begins with none of unix:, inet:, inet6:, name:")]
    Family,
    /// Neither a plain absolute path nor `@` and a name, or too long.
    #[error("neither a plain absolute path nor @ and a name, of {MOST_UNIX_BYTES} bytes at most")]
    Unix,
    /// No IPv4 address in its usual form.
    #[error("no IPv4 address and port")]
    Inet,
    /// No IPv6 address in its shortest form, or an IPv4 one in disguise.
    #[error("no IPv6 address between brackets and port, in its shortest form")]
    Inet6,
    /// Neither 1 to 65535 nor `*`.
    #[error("the port is neither a number from 1 to 65535 nor *")]
    Port,
    /// No host name in lower case.
    #[error("no host name in lower case, without a dot at the end")]
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
    if !is_plain || path.len() > MOST_UNIX_BYTES || path.chars().any(char::is_control) {
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
    // Several spellings lead to one address (RFC 5952), and a mapped address is an IPv4 one.
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
    // `parse` takes `+443` and `0443` as well.
    if port == 0 || port.to_string() != text {
        return Err(DestinationError::Port);
    }
    Ok(Ports::Only(port))
}

fn host(name: &str) -> Result<Destination, DestinationError> {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
    let is_label = |label: &str| {
        !label.is_empty() && label.len() <= MOST_LABEL_BYTES && label.chars().all(fits)
    };
    if name.len() > MOST_NAME_BYTES || !name.split('.').all(is_label) {
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
