//! Check that a network namespace has loopback only: links, addresses and routes by rtnetlink(7).
//!
//! A namespace is sealed if only `lo` is up or has addresses, and all routes lead through `lo` to its own addresses. The
//! kernel makes fallback tunnels in each new namespace, down and without an address. They are listed and permitted.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use nix::errno::Errno;
use nix::sys::socket::SockProtocol;
use serde::{Deserialize, Serialize};
use sys::read::kernel_text;

use super::netlink::{Socket, aligned, u16_at, u32_at};

/// Links and routes of the network namespace of this process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Network {
    pub(crate) links: Vec<Link>,
    /// Distinct indices of the output devices of all routes.
    pub(crate) route_devices: Vec<u32>,
    /// Destination of the first route that was added to reach more than addresses of loopback, such as `0.0.0.0/0`.
    pub(crate) wide_route: Option<String>,
    /// Maximum of a TCP socket's send and receive buffer, in bytes; `None` if the settings cannot be read.
    pub(crate) tcp_buffer: Option<u64>,
}

/// A network interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Link {
    pub(crate) index: u32,
    pub(crate) name: String,
    pub(crate) up: bool,
    pub(crate) loopback: bool,
    pub(crate) addresses: Vec<IpAddr>,
}

/// Zeroed request body, as long as the longest of the three kinds, which selects all entries.
const ANY: [u8; 16] = [0; 16];

/// Maximum send and receive buffer of a TCP socket in a new network namespace, in bytes.
///
/// The value is the kernel's initial receive buffer. By default buffers may grow to about 40 MiB a socket (tcp(7)).
pub(crate) const TCP_BUFFER: u64 = 131_072;
/// Minimum, default and maximum size (tcp(7)); minimum and default are the kernel's.
const TCP_BUFFERS: [(&str, &str); 2] = [
    ("/proc/sys/net/ipv4/tcp_wmem", "4096 16384 131072"),
    ("/proc/sys/net/ipv4/tcp_rmem", "4096 131072 131072"),
];

/// Sets the maximum size of the TCP buffers of this network namespace. Ignores errors: a container may have a read-only
/// /proc/sys, and [`Network::read`] reads the resulting sizes.
pub(super) fn limit_tcp_buffers() {
    for (path, sizes) in TCP_BUFFERS {
        let _ = fs::write(path, sizes);
    }
}

/// Start of the description of a route that sends other addresses to loopback.
pub const ROUTE_THROUGH_LOOPBACK: &str = "a route leads through lo";

fn tcp_buffer() -> Option<u64> {
    let largest = TCP_BUFFERS.map(|(path, _)| {
        let sizes = kernel_text(path).ok()?;
        sizes.split_whitespace().nth(2)?.parse().ok()
    });
    let [send, receive] = largest;
    Some(u64::max(send?, receive?))
}

impl Network {
    /// Lists links, addresses and routes.
    ///
    /// # Errors
    /// The errno of the netlink socket; `EBADMSG` for a truncated answer.
    pub fn read() -> Result<Self, Errno> {
        let socket = Socket::open(SockProtocol::NetlinkRoute)?;
        let mut network = Self {
            tcp_buffer: tcp_buffer(),
            ..Self::default()
        };
        socket.dump(libc::RTM_GETLINK, &ANY, |body| network.add_link(body))?;
        socket.dump(libc::RTM_GETADDR, &ANY, |body| network.add_address(body))?;
        socket.dump(libc::RTM_GETROUTE, &ANY, |body| network.add_route(body))?;
        Ok(network)
    }

    /// Describes the first link, address or route beyond loopback, for people; `None` for a sealed namespace.
    pub fn more_than_loopback(&self) -> Option<String> {
        let foreign = self.links.iter().filter(|link| !link.loopback);
        for link in foreign.clone() {
            if link.up {
                return Some(format!("the link {} is up", link.name));
            }
            if let Some(address) = link.addresses.first() {
                return Some(format!("the link {} has the address {address}", link.name));
            }
        }
        let loopback: Vec<u32> = self
            .links
            .iter()
            .filter(|link| link.loopback)
            .map(|link| link.index)
            .collect();
        let mut devices = self.route_devices.iter();
        if let Some(device) = devices.find(|device| !loopback.contains(device)) {
            let name = foreign
                .clone()
                .find(|link| link.index == *device)
                .map_or("unknown", |link| link.name.as_str());
            return Some(format!("a route leads through device {device} ({name})"));
        }
        // The kernel drops packets that such a route loops back, so connect(2) waits instead of failing at once.
        let route = self.wide_route.as_ref()?;
        Some(format!("{ROUTE_THROUGH_LOOPBACK} to {route}"))
    }

    /// Checks whether the loopback device is up.
    pub(crate) fn is_loopback_up(&self) -> bool {
        self.links.iter().any(|link| link.loopback && link.up)
    }

    /// Lists the links in one line for people, for a namespace whose routes all lead through `lo`.
    pub fn describe(&self) -> String {
        let links: Vec<String> = self
            .links
            .iter()
            .map(|link| {
                let state = if link.up { "up" } else { "down" };
                let addresses: Vec<String> =
                    link.addresses.iter().map(ToString::to_string).collect();
                format!("{} {state} [{}]", link.name, addresses.join(" "))
            })
            .collect();
        format!("{}; every route leads through lo", links.join(", "))
    }

    fn add_link(&mut self, body: &[u8]) -> Option<()> {
        // struct ifinfomsg: family, pad, type (u16), index (i32), flags (u32), change.
        let flags = u32_at(body, 8)?;
        let name = attributes(body.get(16..)?)
            .find(|(kind, _)| *kind == libc::IFLA_IFNAME)
            .map(|(_, value)| {
                String::from_utf8_lossy(value)
                    .trim_end_matches('\0')
                    .to_owned()
            })?;
        self.links.push(Link {
            index: u32_at(body, 4)?,
            name,
            up: flags & libc::IFF_UP as u32 != 0,
            loopback: flags & libc::IFF_LOOPBACK as u32 != 0,
            addresses: Vec::new(),
        });
        Some(())
    }

    fn add_address(&mut self, body: &[u8]) -> Option<()> {
        // struct ifaddrmsg: family, prefix length, flags, scope, index (u32).
        let index = u32_at(body, 4)?;
        let found = |wanted: u16| {
            attributes(body.get(8..).unwrap_or_default())
                .find(|(kind, _)| *kind == wanted)
                .and_then(|(_, value)| address(value))
        };
        // On a point-to-point link IFA_ADDRESS is the peer's address, and IFA_LOCAL the own one.
        let address = found(libc::IFA_LOCAL).or_else(|| found(libc::IFA_ADDRESS))?;
        self.links
            .iter_mut()
            .find(|link| link.index == index)?
            .addresses
            .push(address);
        Some(())
    }

    fn add_route(&mut self, body: &[u8]) -> Option<()> {
        // struct rtmsg: family, dst_len, src_len, tos, table, protocol, scope, type, flags.
        let kind = *body.get(7)?;
        let refusing = [
            libc::RTN_UNREACHABLE,
            libc::RTN_BLACKHOLE,
            libc::RTN_PROHIBIT,
        ]
        .contains(&kind);
        if refusing {
            return Some(());
        }
        let attribute = |wanted: u16| {
            let mut all = attributes(body.get(12..).unwrap_or_default());
            all.find(|(kind, _)| *kind == wanted)
                .map(|(_, value)| value)
        };
        let device = attribute(libc::RTA_OIF).and_then(|value| u32_at(value, 0));
        let (family, prefix) = (*body.first()?, *body.get(1)?);
        let any = if i32::from(family) == libc::AF_INET6 {
            IpAddr::from(Ipv6Addr::UNSPECIFIED)
        } else {
            IpAddr::from(Ipv4Addr::UNSPECIFIED)
        };
        let to = attribute(libc::RTA_DST).and_then(address).unwrap_or(any);
        // 127.0.0.0/8 and ::1/128 are loopback; the kernel adds routes to the other addresses of a link.
        let is_loopback = to.is_loopback() && prefix >= if to.is_ipv4() { 8 } else { 128 };
        let is_of_kernel = *body.get(5)? == libc::RTPROT_KERNEL && prefix > 0;
        if !is_loopback && !is_of_kernel {
            self.wide_route
                .get_or_insert_with(|| format!("{to}/{prefix}"));
        }
        match device {
            Some(device) if self.route_devices.contains(&device) => {}
            Some(device) => self.route_devices.push(device),
            // A multipath route names its devices in another attribute. No link has index 0, so the route is rejected.
            None => self.route_devices.push(0),
        }
        Some(())
    }
}

/// Parses the attributes after a message's fixed part, each a struct rtattr and its value.
fn attributes(mut rest: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16_at(rest, 0)?);
        let kind = u16_at(rest, 2)?;
        let value = rest.get(4..length)?;
        rest = rest.get(aligned(length)..).unwrap_or_default();
        Some((kind, value))
    })
}

fn address(value: &[u8]) -> Option<IpAddr> {
    <[u8; 4]>::try_from(value)
        .map(IpAddr::from)
        .or_else(|_| <[u8; 16]>::try_from(value).map(IpAddr::from))
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(index: u32, name: &str) -> Link {
        Link {
            index,
            name: name.into(),
            up: false,
            loopback: name == "lo",
            addresses: Vec::new(),
        }
    }

    fn sealed() -> Network {
        let mut lo = link(1, "lo");
        lo.up = true;
        lo.addresses = vec!["127.0.0.1".parse().unwrap(), "::1".parse().unwrap()];
        Network {
            links: vec![lo, link(2, "tunl0")],
            route_devices: vec![1],
            wide_route: None,
            tcp_buffer: None,
        }
    }

    #[test]
    fn loopback_and_idle_tunnels_are_sealed() {
        assert_eq!(sealed().more_than_loopback(), None);
    }

    #[test]
    fn a_link_that_is_up_is_found() {
        let mut network = sealed();
        network.links[1].up = true;
        assert_eq!(
            network.more_than_loopback().unwrap(),
            "the link tunl0 is up"
        );
    }

    #[test]
    fn an_address_on_another_link_is_found() {
        let mut network = sealed();
        network.links[1]
            .addresses
            .push("192.0.2.7".parse().unwrap());
        assert_eq!(
            network.more_than_loopback().unwrap(),
            "the link tunl0 has the address 192.0.2.7"
        );
    }

    #[test]
    fn a_route_through_another_device_is_found() {
        let mut network = sealed();
        network.route_devices.push(2);
        assert_eq!(
            network.more_than_loopback().unwrap(),
            "a route leads through device 2 (tunl0)"
        );
    }

    /// A struct rtmsg with its attributes, of a route through device 1 to `to`.
    fn route(to: Option<IpAddr>, prefix: u8, protocol: u8, kind: u8) -> Vec<u8> {
        let is_six = to.is_some_and(|to| to.is_ipv6());
        let family = if is_six {
            libc::AF_INET6
        } else {
            libc::AF_INET
        } as u8;
        let mut body = vec![family, prefix, 0, 0, 254, protocol, 0, kind, 0, 0, 0, 0];
        let mut add = |kind: u16, value: &[u8]| {
            body.extend((4 + value.len() as u16).to_ne_bytes());
            body.extend(kind.to_ne_bytes());
            body.extend(value);
        };
        add(libc::RTA_OIF, &1_u32.to_ne_bytes());
        match to {
            Some(IpAddr::V4(to)) => add(libc::RTA_DST, &to.octets()),
            Some(IpAddr::V6(to)) => add(libc::RTA_DST, &to.octets()),
            None => {}
        }
        body
    }

    #[test]
    fn wide_route_through_loopback_is_found() {
        let of = |to: Option<&str>, prefix, protocol, kind| {
            let mut network = sealed();
            let to = to.map(|to| to.parse().unwrap());
            network
                .add_route(&route(to, prefix, protocol, kind))
                .unwrap();
            network.more_than_loopback()
        };
        const KERNEL: u8 = libc::RTPROT_KERNEL;
        const BOOT: u8 = libc::RTPROT_BOOT;
        let (unicast, local) = (libc::RTN_UNICAST, libc::RTN_LOCAL);
        for (to, prefix, protocol, kind) in [
            (Some("127.0.0.0"), 8, BOOT, unicast),
            (Some("127.0.0.1"), 32, KERNEL, local),
            (Some("::1"), 128, BOOT, unicast),
            (Some("10.0.0.0"), 24, KERNEL, local),
            (None, 0, BOOT, libc::RTN_UNREACHABLE),
        ] {
            assert_eq!(of(to, prefix, protocol, kind), None, "{to:?}/{prefix}");
        }
        for (to, prefix, protocol, kind, shown) in [
            (None, 0, BOOT, unicast, "0.0.0.0/0"),
            (None, 0, KERNEL, local, "0.0.0.0/0"),
            (Some("::"), 0, BOOT, unicast, "::/0"),
            (Some("192.0.2.0"), 24, BOOT, unicast, "192.0.2.0/24"),
            (Some("192.0.2.0"), 24, BOOT, local, "192.0.2.0/24"),
            (Some("126.0.0.0"), 7, BOOT, unicast, "126.0.0.0/7"),
            (Some("127.0.0.0"), 7, BOOT, unicast, "127.0.0.0/7"),
        ] {
            let expected = format!("a route leads through lo to {shown}");
            assert_eq!(of(to, prefix, protocol, kind), Some(expected));
        }
    }

    #[test]
    fn the_kernel_lists_the_loopback_device_of_this_namespace() {
        let network = Network::read().unwrap();
        assert!(
            network
                .links
                .iter()
                .any(|link| link.loopback && link.name == "lo")
        );
    }
}
