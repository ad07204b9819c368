//! Namespace probes, which make namespaces as the stage does: user and network by unshare(2), the others by clone(2).

use std::os::fd::OwnedFd;

use model::case::Tier;
use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use nix::unistd::{Gid, Uid, fchown, getegid, geteuid, pipe, setgroups};
use sandbox::netns_check::Network;
use sandbox::plan::Identity;
use sandbox::stage::INIT_NAMESPACES;
use sandbox::{identity, resolver};
use sys::net::set_loopback_up;

use crate::doctor::trial::{Doctor, Doing as _, Observation, Outcome, in_child};

/// Namespaces that init is cloned into, with their names.
const EACH: [(&str, libc::c_int); 5] = [
    ("pid", libc::CLONE_NEWPID),
    ("mount", libc::CLONE_NEWNS),
    ("ipc", libc::CLONE_NEWIPC),
    ("uts", libc::CLONE_NEWUTS),
    ("cgroup", libc::CLONE_NEWCGROUP),
];

/// Enters a new user namespace and the namespaces `others`, writes the id maps and changes the group.
pub(super) fn enter(doctor: &Doctor, others: CloneFlags) -> Result<Identity, Observation> {
    let identity = identity::for_caller(Tier::Namespace);
    identity::drop_groups(identity)?;
    unshare(CloneFlags::CLONE_NEWUSER | others).doing("make the namespaces by unshare")?;
    doctor.write_maps(identity)?;
    identity::become_inside_group(identity)?;
    Ok(identity)
}

/// Tests that a user namespace can be made.
pub(in crate::doctor) fn user(_: &Doctor) -> Outcome {
    unshare(CloneFlags::CLONE_NEWUSER).doing("make a user namespace")?;
    Ok("made".to_owned())
}

/// As root: tests an unused user id for the client, and a pipe that belongs to it.
pub(in crate::doctor) fn other_user(_: &Doctor) -> Outcome {
    let Identity::Mapped { host_id } = identity::for_caller(Tier::Namespace) else {
        return Err(Observation::NotNeeded(
            "started by an ordinary user, the client is that user".to_owned(),
        ));
    };
    if identity::free_ids().is_none() {
        return Err(Observation::Wrong(identity::NO_FREE_ID.to_owned()));
    }
    let (_, end) = pipe().doing("make a pipe")?;
    fchown(
        &end,
        Some(Uid::from_raw(host_id)),
        Some(Gid::from_raw(host_id)),
    )
    .doing("give a pipe to an unused user id")?;
    setgroups(&[]).doing("drop the supplementary groups")?;
    Ok(format!("user id {host_id}"))
}

/// Tests the id maps, and the change to the inside user.
pub(in crate::doctor) fn id_map(doctor: &Doctor) -> Outcome {
    let identity = enter(doctor, CloneFlags::empty())?;
    identity::become_inside_user(identity)?;
    let (host, _) = identity::host_ids(identity);
    Ok(format!(
        "user {} group {} inside is user {host} outside",
        geteuid(),
        getegid()
    ))
}

/// Tests a network namespace, made with the user namespace as the stage does.
pub(in crate::doctor) fn network(doctor: &Doctor) -> Outcome {
    enter(doctor, CloneFlags::CLONE_NEWNET)?;
    Ok("made".to_owned())
}

/// Tests setting loopback up, which is down in a new network namespace.
pub(in crate::doctor) fn loopback(doctor: &Doctor) -> Outcome {
    enter_with_loopback(doctor)?;
    Ok("lo is up".to_owned())
}

/// Tests by netlink that a new network namespace has only loopback.
pub(in crate::doctor) fn silence(doctor: &Doctor) -> Outcome {
    enter_with_loopback(doctor)?;
    let network = Network::read().doing("list links, addresses and routes")?;
    match network.more_than_loopback() {
        None => Ok(network.describe()),
        Some(what) => Err(Observation::Wrong(format!(
            "a new network namespace has more than loopback: {what}"
        ))),
    }
}

/// Tests binding the resolver's port, which needs CAP_NET_BIND_SERVICE in the namespace.
pub(in crate::doctor) fn resolver_port(doctor: &Doctor) -> Outcome {
    enter_with_loopback(doctor)?;
    let socket = resolver::bind(Tier::Namespace).doing("bind 127.0.0.1:53")?;
    let address = socket.local_addr().doing("ask for the address")?;
    Ok(format!("bound {address}"))
}

/// Tests all namespaces of init with one clone(2). If it is refused, tests each alone to find the refused one.
pub(in crate::doctor) fn others(doctor: &Doctor) -> Outcome {
    enter(doctor, CloneFlags::empty())?;
    let together = in_child(INIT_NAMESPACES, "make the namespaces by clone", empty);
    let Err(Observation::Refused { .. }) = together else {
        return together.map(|_| EACH.map(|(name, _)| name).join(", "));
    };
    for (name, flag) in EACH {
        in_child(flag, &format!("make a {name} namespace by clone"), empty)?;
    }
    together
}

/// Tests that the current network namespace, which isolation `inherited` uses, has only loopback.
pub(in crate::doctor) fn is_loopback_only(_: &Doctor) -> Outcome {
    let network = Network::read().doing("list links, addresses and routes")?;
    match network.more_than_loopback() {
        None => Ok(network.describe()),
        Some(what) => Err(Observation::Wrong(what)),
    }
}

/// Tests that loopback of the current network namespace carries a connection.
pub(in crate::doctor) fn loopback_here(_: &Doctor) -> Outcome {
    let listener = std::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0))
        .doing("listen on 127.0.0.1")?;
    let address = listener.local_addr().doing("ask for the address")?;
    std::net::TcpStream::connect(address).doing("connect to 127.0.0.1")?;
    Ok("127.0.0.1 carries a connection".to_owned())
}

fn enter_with_loopback(doctor: &Doctor) -> Result<(), Observation> {
    enter(doctor, CloneFlags::CLONE_NEWNET)?;
    set_loopback_up(any_socket().doing("make a socket")?).doing("set the loopback device up")
}

fn any_socket() -> Result<OwnedFd, Errno> {
    socket(
        AddressFamily::Inet,
        SockType::Datagram,
        SockFlag::SOCK_CLOEXEC,
        None,
    )
}

fn empty() -> Outcome {
    Ok(String::new())
}
