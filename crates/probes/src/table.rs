//! Table of all probes. The canary of each run, `runner selftest` and the tests of escapes are driven from it.

mod files;
mod kernel;
mod mounts;
mod names;
pub(crate) mod network;
mod processes;
mod run;
mod sockets;

use nix::errno::Errno;
use sys::attempt::Argument;

use crate::probe::{Canary, Class, Kind, Layer, Probe, Refusal, by};

pub use run::ABSTRACT_INSIDE;

/// Refusal of most calls that the filter refuses.
const FILTERED: &[Refusal] = &[by(Layer::Filter, Errno::EPERM)];
/// Current directory as the directory descriptor of a call.
const HERE: Argument = Argument::Number(libc::AT_FDCWD as i64);
const NULL: Argument = Argument::Number(0);

/// Classes of the selftest, in the order of the report.
pub fn classes() -> impl Iterator<Item = &'static Class> {
    let families = [
        network::CLASSES,
        names::CLASSES,
        sockets::CLASSES,
        network::SOCKETS,
        processes::CLASSES,
        files::CLASSES,
        mounts::CLASSES,
        kernel::CLASSES,
    ];
    families.into_iter().flatten()
}

/// Probes of the canary in a kind of sandbox, in the order of the report.
pub fn canary(kind: Kind) -> impl Iterator<Item = (&'static Probe, &'static Canary)> {
    let all = classes().chain([run::CLASS]).flat_map(|class| class.probes);
    all.filter_map(|probe| Some((probe, probe.canary.as_ref()?)))
        .filter(move |(_, canary)| canary.kinds.contains(&kind))
}

/// Finds a probe of the selftest by its full name.
pub fn find(name: &str) -> Option<&'static Probe> {
    let (class, probe) = name.rsplit_once('/')?;
    let class = classes().find(|known| known.id == class)?;
    class.probes.iter().find(|known| known.name == probe)
}
