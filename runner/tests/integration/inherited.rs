//! Isolation `inherited`: a host that refuses namespaces and has loopback only, as a container without network. The
//! fixture `hindered-host` makes such a host of this machine; the tests with real engines are in `containers`.

mod choice;
mod proc;
mod races;
mod reach;
mod remains;

use crate::kit::Run;

/// Missing features of a usual engine's container, and its network.
pub(crate) const CONTAINER: &str = "network,namespaces";
/// A container with another process that listens at the stub's port.
const CONTAINER_WITH_NEIGHBOUR: &str = "network,solitude,namespaces";

/// Case B in such a container.
fn case_b() -> Run {
    Run::case_b().on_a_host_without(CONTAINER)
}

/// A run, and the same one started by an ordinary user.
fn as_both(run: fn() -> Run) -> [Run; 2] {
    [run(), run().as_ordinary_user()]
}
